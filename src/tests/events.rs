//! The log: written by the guard alone, never changed, and a hash chain over bytes that anybody can recompute. It is recomputed
//! here from the words of `sluice_core::event`, without its code. And rows that a dump brings back, which are kept as they are.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Microseconds from the Unix epoch to 2000-01-01 UTC, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;

/// One part of an entry: its length, then its bytes; nothing is a length of its own.
fn part(bytes: Option<&[u8]>) -> Vec<u8> {
    match bytes {
        Some(bytes) => [&(bytes.len() as u64).to_be_bytes()[..], bytes].concat(),
        None => u64::MAX.to_be_bytes().to_vec(),
    }
}

/// The hashes of a withdrawal's log as they must be, and as they are, entry by entry.
fn hashes(id: &str) -> Vec<(String, String)> {
    let rows = one(&format!(
        "select jsonb_agg(jsonb_build_object(
                  'seq', e.seq, 'from', e.from_state, 'to', e.to_state, 'us', (extract(epoch from e.at) * 1000000)::bigint,
                  'by', e.worker_id, 'detail', e.detail::text, 'hash', encode(e.hash, 'hex')) order by e.seq)
           from sluice.events e where e.operation_id = '{id}'"
    ))
    .expect("the withdrawal has a log");
    let rows: Vec<Value> = serde_json::from_str(&rows).expect("jsonb is JSON");
    let operation_id = hex::decode(id.replace('-', "")).expect("a UUID is hex");
    let mut previous: Option<Vec<u8>> = None;
    (1_i32..)
        .zip(rows)
        .map(|(seq, row)| {
            assert_eq!(row["seq"], seq, "the log has no gap");
            let micros = row["us"].as_i64().expect("a time is a number") - EPOCH_US;
            let text = |key: &str| row[key].as_str().map(str::as_bytes);
            let bytes = [
                part(previous.as_deref()),
                part(Some(&operation_id)),
                part(Some(&seq.to_be_bytes())),
                part(text("from")),
                part(text("to")),
                part(Some(&micros.to_be_bytes())),
                part(text("by")),
                part(text("detail")),
            ]
            .concat();
            let hash = Sha256::digest(bytes).to_vec();
            previous = Some(hash.clone());
            (
                hex::encode(hash),
                row["hash"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

/// The log recomputes, its sequence is the row's, and so is its last hash.
fn holds(id: &str) {
    let chain = hashes(id);
    for (seq, (computed, stored)) in (1..).zip(&chain) {
        assert_eq!(computed, stored, "entry {seq} of {id}");
    }
    let row = one(&format!(
        "select seq || ' ' || encode(hash, 'hex') from sluice.withdrawals where operation_id = '{id}'"
    ));
    let last = chain
        .last()
        .map(|(computed, _)| format!("{} {computed}", chain.len()));
    assert_eq!(row, last, "the row ends where its log ends");
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_chain_recomputes_for_a_withdrawal_that_was_refused_rebuilt_and_paid() {
        let mut scene = Scene::open();
        let task = scene.broadcasting(1);
        let id = task.operation_id.clone();
        scene.answer("w", std::slice::from_ref(&task), "TAPOS_ERROR");
        holds(&id);
        scene.clock(80);
        scene.pass(90);
        let again = scene.claim("w");
        scene.answer("w", &again, "SUCCESS");
        scene.pass(300);
        let second = scene.claim("w");
        assert_eq!(second[0].attempt, 2);
        holds(&id);
        // Unsigned, as far as this database knows: the block walks it through every state between.
        scene.follow(3000, &[in_block(&second[0].raw_data, SUCCESS)]);
        assert_eq!(
            scene.log(&id),
            ">requested requested>validated validated>signing signing>signed signed>broadcasting broadcasting>broadcasting \
             broadcasting>broadcast broadcast>signing signing>signing signing>signed signed>broadcasting broadcasting>broadcast \
             broadcast>confirmed"
        );
        holds(&id);
    }

    #[pg_test]
    fn the_chain_recomputes_for_one_that_failed_one_that_was_cancelled_and_one_that_was_moved_by_hand()
     {
        let mut scene = Scene::open();
        let failed = scene.broadcast(1);
        scene.follow(3000, &[in_block(&failed.raw_data, REVERT)]);
        let cancelled = scene.submit(2);
        run(&format!(
            "select sluice.cancel('{cancelled}', 'Grüße, \"quoted\" \\ and \u{1F4B8}')"
        ));
        let by_hand = scene.signed(3).operation_id;
        run_as_owner(&format!(
            "update sluice.withdrawals set state = 'broadcasting' where operation_id = '{by_hand}'"
        ));
        run_as_owner(&format!(
            "update sluice.withdrawals set state = 'broadcast', step_seq = seq, step_path = '{{broadcasting,broadcast}}',
                    step_detail = '[{{\"b\": 1.50, \"a\": null}}]', step_by = 'jemand äöü' where operation_id = '{by_hand}'"
        ));
        for id in [&failed.operation_id, &cancelled, &by_hand] {
            holds(id);
        }
    }

    #[pg_test]
    fn the_chain_recomputes_for_every_row_of_a_statement_that_writes_many() {
        let mut scene = Scene::open();
        for number in 1..=20 {
            scene.submit(number);
        }
        let signed = scene.sign("w", &scene.claim("w"));
        assert_eq!(signed.len(), 20);
        scene.answer("w", &signed, "SUCCESS");
        let all: Vec<_> = signed
            .iter()
            .map(|task| in_block(&task.raw_data, SUCCESS))
            .collect();
        scene.follow(3000, &all);
        for task in &signed {
            assert_eq!(scene.state(&task.operation_id), "confirmed");
            holds(&task.operation_id);
        }
    }

    #[pg_test]
    fn only_the_guard_writes_the_log() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let entry = format!(
            "insert into sluice.events (operation_id, seq, from_state, to_state, at, detail, hash)
             values ('{id}', 2, 'requested', 'validated', now(), '{{}}', '\\x00')"
        );
        assert_eq!(as_owner(&entry), "SL013");
        assert_eq!(
            as_owner(&format!("{entry} on conflict do nothing")),
            "SL013"
        );
        assert_eq!(
            as_owner(&format!(
                "{entry} on conflict (operation_id, seq) do update set detail = '{{}}'"
            )),
            "SL013"
        );
        assert_eq!(
            as_owner("insert into sluice.events select * from sluice.events where false"),
            "SL013"
        );
        for statement in [
            "update sluice.events set detail = '{}'",
            "update sluice.events set worker_id = 'somebody' where false",
            "delete from sluice.events",
            "truncate sluice.events",
            "truncate sluice.withdrawals, sluice.events",
            "merge into sluice.events e using sluice.events s on e.seq = s.seq when matched then delete",
        ] {
            assert_eq!(as_owner(statement), "SL013", "{statement}");
        }
        assert_eq!(scene.log(&id), ">requested");
        holds(&id);
    }

    #[pg_test]
    fn what_a_refused_statement_would_have_told_is_not_in_the_log() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let before = scene.log(&task.operation_id);
        let (code, _) = refused(&format!(
            "update sluice.withdrawals set state = 'failed', failure_reason = 'by hand' where operation_id = '{}'",
            task.operation_id
        ));
        assert_eq!(code, "SL012");
        assert_eq!(scene.log(&task.operation_id), before);
        holds(&task.operation_id);
    }

    #[pg_test]
    fn rows_that_a_dump_brings_back_are_kept_as_they_are_and_add_nothing_to_the_log() {
        let mut scene = Scene::open();
        let paid = scene.broadcast(1);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        scene.broadcast(2);
        let rejected = scene.submit(3);
        run(&format!("select sluice.cancel('{rejected}', 'not wanted')"));
        scene.submit(4);
        // The same rows under other ids, as another database would have dumped them.
        run("create temp table dumped as select * from sluice.withdrawals");
        run("update dumped set operation_id = ('1' || substr(operation_id::text, 2))::uuid");
        run("grant select on dumped to sluice_owner");
        let logged = count("select count(*) from sluice.events");
        run_as_owner("insert into sluice.withdrawals select * from dumped");
        assert_eq!(count("select count(*) from sluice.events"), logged);
        assert_eq!(
            count(
                "select count(*) from sluice.withdrawals w join dumped d on d.operation_id = w.operation_id and d::text = w::text"
            ),
            4
        );
        assert_eq!(
            one("select string_agg(state::text, ' ' order by state) from sluice.withdrawals where operation_id::text like '1%'").as_deref(),
            Some("requested broadcast confirmed rejected")
        );
        // The guard holds for them like for all others.
        assert_eq!(
            as_owner(
                "update sluice.withdrawals set state = 'signed' where operation_id::text like '1%4'"
            ),
            "SL010"
        );
        assert_eq!(
            as_owner(
                "update sluice.withdrawals set state = 'broadcast' where operation_id::text like '1%1'"
            ),
            "SL011"
        );
    }

    #[pg_test]
    fn a_restored_row_and_a_fresh_one_in_one_statement_are_told_apart() {
        let scene = Scene::open();
        scene.submit(1);
        run("create temp table dumped as select * from sluice.withdrawals");
        run("update dumped set operation_id = ('1' || substr(operation_id::text, 2))::uuid");
        run("insert into dumped (operation_id, to_address, amount, asset, state, fencing_token, attempt, uncounted, accepted)
             select '20000000-0000-4000-8000-000000000001', to_address, amount, asset, 'requested', 0, 0, 0, false from dumped");
        run("grant select on dumped to sluice_owner");
        run_as_owner("insert into sluice.withdrawals select * from dumped");
        assert_eq!(
            scene.log("20000000-0000-4000-8000-000000000001"),
            ">requested"
        );
        holds("20000000-0000-4000-8000-000000000001");
        assert_eq!(scene.log("10000000-0000-4000-8000-000000000001"), "");
    }

    #[pg_test]
    fn an_app_cannot_pass_a_row_off_as_restored() {
        let _scene = Scene::open();
        for (column, value) in [
            ("hash", "'\\x00'"),
            ("seq", "7"),
            ("state", "'confirmed'"),
            ("created_at", "now()"),
            ("due_at", "null"),
        ] {
            let statement = format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount, {column}) values ('{}', '{THEIRS}', '1', {value})",
                id(1)
            );
            assert_eq!(tried_as("sluice_app", &statement).0, "42501", "{column}");
        }
        let plain = format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount) values ('{}', '{THEIRS}', '1')",
            id(1)
        );
        assert_eq!(tried_as("sluice_app", &plain).0, "");
    }

    #[pg_test]
    fn envelopes_blocks_and_payments_that_a_dump_brings_back_are_kept_unchecked() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        // In any order, and each without the others.
        for statement in [
            "insert into sluice.envelopes select sluice.txid('\\x01'), gen_random_uuid(), 7, wallet, 0, 0, time_to_live_ms, 0, 7, 0,
                    '\\x01', built_at, signature, fate, receipt, block_number, first_block, last_block from sluice.envelopes",
            "insert into sluice.payments select sha256(txid), gen_random_uuid(), 7, position, receipt, wallet, contract, to_address,
                    amount_units, tag, seen_at from sluice.payments",
            "insert into sluice.blocks select number - 500, sha256(id), parent_id, timestamp_ms - 1, root, transactions, followed_at
               from sluice.blocks where number > 1000",
        ] {
            assert_eq!(as_owner(statement), "", "{statement}");
        }
        assert_eq!(
            count("select count(*) from sluice.blocks where number > 1000"),
            1,
            "there was something to bring back"
        );
    }
}
