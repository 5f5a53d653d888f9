//! Intake alone: batches against a bare multi-row INSERT into a table of the same columns and indexes, and single submits.

use std::thread;
use std::time::Duration;

use sluice_scenarios::{Database, Role};
use uuid::Uuid;

use crate::Options;
use crate::report::Report;
use crate::server::{Server, rate, settle, timed};

const BARE: &str = "
    create schema bare;
    create table bare.withdrawals (like sluice.withdrawals including defaults including indexes) with (fillfactor = 80)";

/// The columns that intake fills, all of them.
const BARE_INSERT: &str = "
    insert into bare.withdrawals (operation_id, to_address, amount, asset, destination, amount_units, asset_version, request_hash,
      submitted_by, created_at, changed_at, due_at, state, seq, hash, step_seq, step_path, step_detail, step_by)
    select id, 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', '1.5', 'USDT-TRC20', 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', 1500000, 1,
           sha256(uuid_send(id)), 'bench', now(), now(), now(), 'requested', 1, sha256(uuid_send(id)), 0, '{requested}',
           '[{\"asset\": \"USDT-TRC20\", \"to_address\": \"TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ\", \"amount_units\": \"1500000\"}]', 'bench'
      from unnest($1::uuid[]) id";

const INSERT: &str = "
    insert into sluice.withdrawals (operation_id, to_address, amount, asset)
    select id, 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', '1.5', 'USDT-TRC20' from unnest($1::uuid[]) id";

const SUBMIT: &str = "
    select created from unnest($1::uuid[]) id cross join lateral sluice.submit(id, 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', '1.5')";

/// Of single submits few are enough: each is a commit.
const SINGLES_SHARE: usize = 10;

/// Measures batches, and single submits from one connection and sixteen.
pub fn measure(server: &Server, options: &Options, report: &mut Report) {
    for (name, statement) in [("a bare INSERT", BARE_INSERT), ("an INSERT", INSERT)] {
        let best = (0..options.runs)
            .map(|_| {
                run(
                    &server.database(),
                    statement,
                    options.withdrawals,
                    options.batch,
                    1,
                )
            })
            .min()
            .expect("there is a run");
        report.figure(
            &format!("intake, {name} in batches"),
            rate(options.withdrawals, best),
            "withdrawals/s",
        );
    }
    let few = (options.withdrawals / SINGLES_SHARE).max(1);
    for connections in [1, 4, 16] {
        let each = few.div_ceil(connections);
        let took = run(&server.database(), SUBMIT, each, 1, connections);
        report.figure(
            &format!("intake, single submits, {connections} connection(s)"),
            rate(each * connections, took),
            "withdrawals/s",
        );
    }
}

fn run(
    database: &Database,
    statement: &str,
    each: usize,
    batch: usize,
    connections: usize,
) -> Duration {
    let mut client = database.superuser();
    client.batch_execute(BARE).expect("a table can be made");
    settle(&mut client);
    let bare = statement == BARE_INSERT;
    let (_, took) = timed(|| {
        thread::scope(|scope| {
            for _ in 0..connections {
                scope.spawn(move || {
                    let mut client = if bare {
                        database.superuser()
                    } else {
                        database.as_role(Role::App)
                    };
                    let statement = client.prepare(statement).expect("it can be prepared");
                    let mut left = each;
                    while left > 0 {
                        let size = left.min(batch);
                        let ids: Vec<Uuid> = (0..size).map(|_| Uuid::new_v4()).collect();
                        client
                            .execute(&statement, &[&ids])
                            .expect("they are taken in");
                        left -= size;
                    }
                });
            }
        });
    });
    took
}
