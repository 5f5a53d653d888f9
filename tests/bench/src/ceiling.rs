//! The ceiling: the same rows and bytes as a withdrawal's whole life, written by bare set-based SQL in as few statements as can be, into
//! tables of the same columns and indexes without a trigger. What the disk and the executor can do; all else is a ratio to it.

use std::thread;
use std::time::Duration;

use postgres::Client;
use sluice_scenarios::Database;

use crate::Options;
use crate::report::Report;
use crate::server::{Server, rate, settle, timed};

/// The tables without their guard.
const TABLES: &str = "
    create schema bare;
    create table bare.withdrawals (like sluice.withdrawals including defaults including indexes) with (fillfactor = 80);
    create table bare.events (like sluice.events including indexes);
    create table bare.envelopes (like sluice.envelopes including indexes) with (fillfactor = 70);
    create table bare.payments (like sluice.payments including indexes);
    -- As long as an envelope's bytes.
    create function bare.raw_data(id uuid) returns bytea language sql as $$
      select decode(rpad(replace(id::text, '-', ''), 560, 'ab'), 'hex') $$;
    create function bare.hash(id uuid, seq int) returns bytea language sql as $$
      select sha256(uuid_send(id) || int4send(seq)) $$;";

/// A whole life, a statement a step; $1: the ids of a batch. Each step is a transaction, as with sluice.
const STEPS: [&str; 5] = [
    // Taken in.
    "with new as (
       insert into bare.withdrawals (operation_id, to_address, amount, asset, destination, amount_units, asset_version, request_hash,
         submitted_by, created_at, changed_at, due_at, state, seq, hash, step_seq, step_path, step_detail, step_by)
       select id, 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', '1.5', 'USDT-TRC20', 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', 1500000, 1,
              bare.hash(id, 0), 'bench', now(), now(), now(), 'requested', 1, bare.hash(id, 1), 0, '{requested}', '[{\"amount_units\": \"1500000\"}]', 'bench'
         from unnest($1::uuid[]) id
       returning operation_id, hash)
     insert into bare.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
     select operation_id, 1, null, 'requested', now(), 'bench',
            jsonb_build_object('to_address', 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', 'amount_units', '1500000', 'asset', 'USDT-TRC20'), hash from new",
    // Claimed and built.
    "with w as (
       update bare.withdrawals set state = 'signing', seq = 3, hash = bare.hash(operation_id, 3), changed_at = now(), due_at = now() + '30 s',
              leased_by = 'bench', fencing_token = 1, wallet = 'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC', attempt = 1, rail = 'external',
              reason_code = 'not_custodied', reason = 'destination is not an address in custody', depth = 0,
              step_seq = 1, step_path = '{validated,signing}', step_detail = '[{\"rail\": \"external\"}, {\"attempt\": 1}]', step_by = 'bench'
        where operation_id = any ($1::uuid[])
       returning operation_id, hash),
     v as (
       insert into bare.envelopes (txid, operation_id, attempt, wallet, slot, ref_block_number, time_to_live_ms, fee_limit_sun, permission_id,
              expiration_ms, raw_data, built_at)
       select sha256(bare.raw_data(operation_id)), operation_id, 1, 'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC', 1, 1, 300000, 100000000, 0, 1,
              bare.raw_data(operation_id), now() from w)
     insert into bare.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
     select operation_id, s, f::sluice.state, t::sluice.state, now(), 'bench', jsonb_build_object('txid', repeat('ab', 32), 'attempt', 1), bare.hash(operation_id, s)
       from w, (values (2, 'requested', 'validated'), (3, 'validated', 'signing')) e (s, f, t)",
    // Signed, and committed to sending.
    "with w as (
       update bare.withdrawals set state = 'broadcasting', seq = 5, hash = bare.hash(operation_id, 5), changed_at = now(), due_at = now() + '30 s',
              step_seq = 3, step_path = '{signed,broadcasting}', step_detail = '[{\"txid\": \"ab\"}, {\"txid\": \"ab\"}]', step_by = 'bench'
        where operation_id = any ($1::uuid[])
       returning operation_id),
     v as (
       update bare.envelopes set signature = decode(repeat('ab', 65), 'hex') where operation_id in (select operation_id from w))
     insert into bare.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
     select operation_id, s, f::sluice.state, t::sluice.state, now(), 'bench', jsonb_build_object('txid', repeat('ab', 32)), bare.hash(operation_id, s)
       from w, (values (4, 'signing', 'signed'), (5, 'signed', 'broadcasting')) e (s, f, t)",
    // Sent.
    "with w as (
       update bare.withdrawals set state = 'broadcast', seq = 6, hash = bare.hash(operation_id, 6), changed_at = now(), due_at = now() + '75 s',
              accepted = true, sent_ms = 1, leased_by = null,
              step_seq = 5, step_path = '{broadcast}', step_detail = '[{\"code\": \"SUCCESS\"}]', step_by = 'bench'
        where operation_id = any ($1::uuid[])
       returning operation_id)
     insert into bare.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
     select operation_id, 6, 'broadcasting', 'broadcast', now(), 'bench', jsonb_build_object('txid', repeat('ab', 32), 'code', 'SUCCESS'), bare.hash(operation_id, 6)
       from w",
    // Settled.
    "with w as (
       update bare.withdrawals set state = 'confirmed', seq = 7, hash = bare.hash(operation_id, 7), changed_at = now(), due_at = null,
              block_number = 1, confirmed_at = now(),
              step_seq = 6, step_path = '{confirmed}', step_detail = '[{\"fate\": \"included\"}]', step_by = 'bench'
        where operation_id = any ($1::uuid[])
       returning operation_id),
     v as (
       update bare.envelopes set fate = 'included', receipt = 'SUCCESS', block_number = 1 where operation_id in (select operation_id from w)),
     p as (
       insert into bare.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units, seen_at)
       select sha256(bare.raw_data(operation_id)), operation_id, 1, 1, 'SUCCESS', 'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC',
              'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', 1500000, now() from w)
     insert into bare.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
     select operation_id, 7, 'broadcast', 'confirmed', now(), 'bench',
            jsonb_build_object('txid', repeat('ab', 32), 'fate', 'included', 'block_id', repeat('ab', 32), 'tip', 1, 'depth', 0), bare.hash(operation_id, 7)
       from w",
];

/// Measures one session, and two at once.
pub fn measure(server: &Server, options: &Options, report: &mut Report) {
    for sessions in [1, 2] {
        let best = (0..options.runs)
            .map(|_| run(&server.database(), options, sessions))
            .min()
            .expect("there is a run");
        report.figure(
            &format!("ceiling, {sessions} session(s)"),
            rate(options.withdrawals * sessions, best),
            "lifecycles/s",
        );
    }
}

fn run(database: &Database, options: &Options, sessions: usize) -> Duration {
    let mut client = database.superuser();
    client.batch_execute(TABLES).expect("tables can be made");
    settle(&mut client);
    let (_, took) = timed(|| {
        thread::scope(|scope| {
            for _ in 0..sessions {
                let mut client = database.superuser();
                scope.spawn(move || live(&mut client, options));
            }
        });
    });
    took
}

fn live(client: &mut Client, options: &Options) {
    let steps = STEPS.map(|step| client.prepare(step).expect("a step can be prepared"));
    let mut left = options.withdrawals;
    while left > 0 {
        let batch = left.min(options.batch);
        let ids: Vec<uuid::Uuid> = (0..batch).map(|_| uuid::Uuid::new_v4()).collect();
        for step in &steps {
            client.execute(step, &[&ids]).expect("a step is taken");
        }
        left -= batch;
    }
}
