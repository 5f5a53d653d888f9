//! The scaffold itself: what the scenarios lean on without looking.

use std::panic;
use std::path::Path;

use sluice_scenarios::postgres::Stop;
use sluice_scenarios::{Postgres, wait};

#[test]
fn what_was_committed_survives_a_crash_of_the_throwaway_postgres() {
    let mut postgres = Postgres::start();
    let database = postgres.createdb("kept");
    database
        .superuser()
        .batch_execute("create table t as select 7 as n")
        .expect("a table can be made");

    postgres.stop(Stop::Immediate);
    postgres.launch();

    let n: i32 = postgres
        .database("kept")
        .superuser()
        .query_one("select n from t", &[])
        .expect("it is there")
        .get(0);
    assert_eq!(n, 7);
}

#[test]
fn a_scenario_that_panics_leaves_no_postgres_behind() {
    let pid = panic::catch_unwind(|| {
        let postgres = Postgres::start();
        let pid: i32 = postgres
            .database("template1")
            .superuser()
            .query_one("select pg_backend_pid()", &[])
            .expect("the backend knows its pid")
            .get(0);
        panic::panic_any(pid);
    })
    .expect_err("it panics")
    .downcast::<i32>()
    .expect("with a backend's pid");

    wait::until("the backend is gone", || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}
