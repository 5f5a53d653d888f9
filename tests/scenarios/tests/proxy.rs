//! The proxy itself: what it does to a commit, seen by both sides.

use std::thread;

use postgres::{Client, Error, NoTls};
use sluice_scenarios::{CommitRule, Database, Postgres, Proxy, Role, Strike, wait};

const TABLE: &str = "
    create table kept (what text not null);
    grant select, insert on kept to public;
    create function keep(what text) returns void language sql as $$ insert into kept values (what) $$;
";

/// How a client keeps something.
type Keep = fn(&mut Client, &str) -> Result<(), Error>;

fn in_a_transaction(client: &mut Client, what: &str) -> Result<(), Error> {
    let mut transaction = client.transaction()?;
    transaction.execute("select keep($1)", &[&what])?;
    transaction.commit()
}

fn by_itself(client: &mut Client, what: &str) -> Result<(), Error> {
    client.execute("select keep($1)", &[&what]).map(drop)
}

fn in_plain_text(client: &mut Client, what: &str) -> Result<(), Error> {
    client.batch_execute(&format!("select keep('{what}')"))
}

fn connect(database: &Database, proxy: &Proxy) -> Client {
    Client::connect(&database.through(proxy).url(Role::App), NoTls).expect("the proxy leads there")
}

fn kept(database: &Database) -> Vec<String> {
    let rows = database
        .superuser()
        .query("select what from kept order by what", &[]);
    rows.expect("it can be read")
        .iter()
        .map(|row| row.get(0))
        .collect()
}

fn place() -> (Postgres, Database, Proxy) {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("kept");
    database
        .superuser()
        .batch_execute(TABLE)
        .expect("the table can be made");
    let proxy = Proxy::to(&database);
    (postgres, database, proxy)
}

#[test]
fn a_commit_is_cut_on_the_side_that_the_rule_says_and_only_where_it_says_so() {
    let (_postgres, database, proxy) = place();
    let ways: [(&str, Keep); 3] = [
        ("in a transaction", in_a_transaction),
        ("by itself", by_itself),
        ("in plain text", in_plain_text),
    ];
    let mut expected = vec![];
    for (way, keep) in ways {
        for (strike, done) in [(Strike::CutBefore, false), (Strike::CutAfter, true)] {
            let rule = proxy.add(CommitRule::new(strike).of("keep(").after(1).times(1));
            let mut client = connect(&database, &proxy);
            let what = |which| format!("{way}, {strike:?}: {which}");
            client
                .execute("select 1", &[])
                .expect("another call passes");
            keep(&mut client, &what("first")).expect("the first passes");
            assert_eq!(proxy.struck(rule), 0);
            keep(&mut client, &what("struck")).expect_err("the second is struck");
            assert_eq!(proxy.struck(rule), 1);
            assert!(client.is_closed() || client.execute("select 1", &[]).is_err());
            keep(&mut connect(&database, &proxy), &what("after")).expect("one strike is all");
            assert_eq!(proxy.struck(rule), 1);
            expected.extend([what("first"), what("after")]);
            expected.extend(done.then(|| what("struck")));
        }
    }
    expected.sort();
    assert_eq!(kept(&database), expected);
}

#[test]
fn an_answer_is_held_until_it_is_let_go_and_what_it_tells_is_done_before() {
    let (_postgres, database, proxy) = place();
    let rule = proxy.add(CommitRule::new(Strike::HoldAnswer).times(1));
    let mut client = connect(&database, &proxy);
    thread::scope(|scope| {
        let kept_once = scope.spawn(|| in_a_transaction(&mut client, "held"));
        proxy.wait_until_struck(rule, 1);
        wait::until("the answer is held", || (proxy.held() == 1).then_some(()));
        assert_eq!(kept(&database), ["held"]);
        assert!(!kept_once.is_finished());
        proxy.release();
        kept_once
            .join()
            .expect("no panic")
            .expect("it is acknowledged");
    });
    assert_eq!(proxy.held(), 0);
}

#[test]
fn all_connections_can_be_cut_and_new_ones_refused() {
    let (_postgres, database, proxy) = place();
    let mut client = connect(&database, &proxy);
    proxy.refuse(true);
    let url = database.through(&proxy).url(Role::App);
    assert!(Client::connect(&url, NoTls).is_err());
    by_itself(&mut client, "connected before").expect("old connections stay");
    proxy.cut_all();
    by_itself(&mut client, "cut").expect_err("until they are cut");
    proxy.refuse(false);
    by_itself(&mut connect(&database, &proxy), "new").expect("it leads there again");
    assert_eq!(kept(&database), ["connected before", "new"]);
}
