//! What fuzzing has found in the database, as small as it gets.

use sluice_fuzz::sql::session::{Session, Who};
use sluice_scenarios::Postgres;

#[test]
fn a_log_that_would_count_beyond_an_integer_is_refused_by_name() {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("sluice");
    let mut superuser = Session::open(&database, Who::Superuser);
    let entries = "select * from sluice.entries_of(gen_random_uuid(), 2147483647, null, 'signing', '{signed}', now(), 'x', null)";
    assert_eq!(superuser.say(entries, false), Err("SL005".to_owned()));
}
