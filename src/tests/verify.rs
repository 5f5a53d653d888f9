//! `sluice.verify()`: an honest history holds every invariant, and each kind of tampering breaks the one that speaks of it. Who
//! tampers here is a superuser who has switched every trigger off and dropped every check.

use super::scene::*;
use pgrx::prelude::*;

/// contractRet UNKNOWN: it decides nothing.
const UNKNOWN: i64 = 13;

/// The invariants that do not hold after these statements, which are taken back. The guard sees nothing of them.
fn broken_by(statements: &str) -> String {
    run(&format!(
        "create or replace function pg_temp.broken_by(statements text) returns text language plpgsql as $$
         declare v_broken text; v_drop text;
         begin
           set local session_replication_role = replica;
           for v_drop in
             select format('alter table %s drop constraint %I', c.conrelid::regclass, c.conname)
               from pg_constraint c
              where c.connamespace = 'sluice'::regnamespace and c.contype = 'c'
           loop
             execute v_drop;
           end loop;
           execute statements;
           v_broken := ({BROKEN});
           raise exception '%', v_broken using errcode = 'TAKEN';
         end $$"
    ));
    forgotten_message(statements)
}

fn forgotten_message(statements: &str) -> String {
    let (state, message) = refused(&format!("select pg_temp.broken_by({})", quoted(statements)));
    assert_eq!(state, "TAKEN", "{statements}: {message}");
    message
}

/// Asserts that the statements break this invariant, whatever others they break.
fn breaks(invariant: &str, statements: &str) {
    let found = broken_by(statements);
    assert!(
        found.split(' ').any(|name| name == invariant),
        "{statements}\nbreaks: {found}"
    );
    assert_eq!(broken(), "", "{statements}: was not taken back");
}

/// Withdrawals of every kind of life: the task of each that was built.
struct History {
    scene: Scene,
    confirmed: Task,
    confirmed_too: Task,
    failed: Task,
    rebuilt: Task,
    deepening: Task,
    parked: Task,
    broadcast: Task,
    signed: Task,
}

impl History {
    fn told() -> Self {
        let mut scene = Scene::open();
        let confirmed = scene.broadcast(1);
        let confirmed_too = scene.broadcast(2);
        let failed = scene.broadcast(3);
        let rebuilt = scene.broadcast(4);
        let parked = scene.broadcast(5);
        scene.follow(
            3000,
            &[
                in_block(&confirmed.raw_data, SUCCESS),
                in_block(&confirmed_too.raw_data, SUCCESS),
                in_block(&failed.raw_data, REVERT),
                in_block(&parked.raw_data, UNKNOWN),
            ],
        );
        // Number 4 dies, and lives again; number 6 dies and is cancelled; number 7 pays only after its second try.
        let cancelled = scene.broadcast(6);
        let second = scene.broadcast(7);
        scene.follow(3000, &[in_block(&second.raw_data, OUT_OF_ENERGY)]);
        scene.pass(360);
        run(&format!(
            "select sluice.cancel('{}', 'changed their mind')",
            cancelled.operation_id
        ));
        let again = scene.claim("w");
        let sent = scene.sign("w", &again);
        scene.answer("w", &sent, "SUCCESS");
        let paid_late = again
            .iter()
            .find(|task| task.operation_id == second.operation_id)
            .expect("it is built anew")
            .clone();
        scene.follow(3000, &[in_block(&paid_late.raw_data, SUCCESS)]);
        // One paid and not deep enough, and one in each state on the way.
        run("update sluice.assets set depth = 50");
        let deepening = scene.broadcast(8);
        scene.follow(3000, &[in_block(&deepening.raw_data, SUCCESS)]);
        run("update sluice.assets set depth = 0");
        let broadcast = scene.broadcast(9);
        scene.broadcasting(10);
        let signed = scene.signed(11);
        scene.signing(12);
        scene.submit(13);
        run(&format!(
            "select sluice.cancel('{}', 'never wanted')",
            scene.submit(14)
        ));
        run_as_owner(&format!(
            "update sluice.withdrawals set state = 'validated' where operation_id = '{}'",
            scene.submit(15)
        ));
        Self {
            scene,
            confirmed,
            confirmed_too,
            failed,
            rebuilt,
            deepening,
            parked,
            broadcast,
            signed,
        }
    }

    fn states(&self) -> String {
        one("(select string_agg(distinct state::text, ' ') from sluice.withdrawals)")
            .expect("there are withdrawals")
    }
}

/// Statements that add a well-made entry to a withdrawal's log and move its row to it, as who knows the hash would.
fn forged_entry(id: &str, to: &str, detail: &str, sets: &str) -> String {
    format!(
        "insert into sluice.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
         select w.operation_id, w.seq + 1, w.state, '{to}', w.changed_at, 'w', d.detail,
                sluice.entry_hash(w.hash, w.operation_id, w.seq + 1, w.state::text, '{to}', w.changed_at, 'w', d.detail::text)
           from sluice.withdrawals w, (select ({detail})::jsonb as detail) d where w.operation_id = '{id}';
         update sluice.withdrawals w set state = '{to}', seq = w.seq + 1, {sets},
                hash = (select e.hash from sluice.events e where e.operation_id = w.operation_id and e.seq = w.seq + 1)
          where w.operation_id = '{id}'"
    )
}

fn hex_of(txid: &[u8]) -> String {
    hex::encode(txid)
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn an_honest_history_holds_every_invariant() {
        let history = History::told();
        assert_eq!(
            history.states(),
            "broadcast broadcasting confirmed failed rejected requested signed signing validated"
        );
        assert_eq!(
            history.scene.state(&history.deepening.operation_id),
            "broadcast"
        );
        assert!(
            count("select count(*) from sluice.envelopes where fate = 'dead'") >= 2,
            "somebody has died"
        );
        assert_eq!(
            broken(),
            "",
            "{:?}",
            one("(select jsonb_agg(v) from sluice.verify() v where not holds)")
        );
        assert_eq!(
            count(
                "select count(*) from sluice.verify(sluice.now() - interval '1 minute') where holds"
            ),
            count("select count(*) from sluice.verify()")
        );
        assert_eq!(sqlstate("select sluice.verify(null)"), "SL005");
    }

    #[pg_test]
    fn verify_finds_an_altered_request() {
        let history = History::told();
        let id = &history.confirmed.operation_id;
        for set in [
            "amount_units = amount_units + 1",
            "amount_units = amount_units + 1, request_hash = sluice.request_hash(to_address, amount_units + 1, asset, account)",
            "amount = '2.5'",
            "to_address = 'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC'",
            "to_address = 'nowhere'",
            "destination = ' ' || to_address",
            "destination = 'nowhere'",
            "account = 'another'",
            "requested_by = 'another'",
            "asset = 'OTHER'",
        ] {
            breaks(
                "rows_say_what_was_asked",
                &format!("update sluice.withdrawals set {set} where operation_id = '{id}'"),
            );
        }
        // What is on its way would pay something else than it says.
        breaks(
            "envelopes_pay_the_row",
            &format!(
                "update sluice.withdrawals set amount_units = 1 where operation_id = '{}'",
                history.broadcast.operation_id
            ),
        );
        breaks(
            "sums_agree",
            &format!("update sluice.withdrawals set amount_units = 1 where operation_id = '{id}'"),
        );
    }

    #[pg_test]
    fn verify_finds_a_log_that_was_altered_cut_or_added_to() {
        let history = History::told();
        let id = &history.confirmed.operation_id;
        for tampering in [
            "delete from sluice.events where operation_id = '{id}' and seq = 3",
            "delete from sluice.events where operation_id = '{id}' and seq = 1",
            "delete from sluice.events where operation_id = '{id}' and seq = (select max(seq) from sluice.events where operation_id = '{id}')",
            "delete from sluice.events where operation_id = '{id}'",
            "update sluice.events set detail = detail || '{\"x\": 1}' where operation_id = '{id}' and seq = 2",
            "update sluice.events set at = at + interval '1 second' where operation_id = '{id}' and seq = 2",
            "update sluice.events set worker_id = 'another' where operation_id = '{id}' and seq = 4",
            "update sluice.events set to_state = 'signed', from_state = 'signing' where operation_id = '{id}' and seq = 2",
            "update sluice.events set seq = seq + 1 where operation_id = '{id}' and seq = (select max(seq) from sluice.events where operation_id = '{id}')",
            "insert into sluice.events select operation_id, seq + 1, to_state, to_state, at, worker_id, detail, hash from sluice.events where operation_id = '{id}' and to_state = 'confirmed'",
            "update sluice.withdrawals set hash = sha256(hash) where operation_id = '{id}'",
            "update sluice.withdrawals set seq = seq - 1 where operation_id = '{id}'",
            "update sluice.withdrawals set changed_at = changed_at - interval '1 day' where operation_id = '{id}'",
            // A row that moved without a word.
            "update sluice.withdrawals set state = 'broadcasting' where operation_id = '{id}'",
        ] {
            breaks("logs_are_unbroken", &tampering.replace("{id}", id));
        }
        // A well-made entry of a step that the chart does not have.
        breaks(
            "logs_are_unbroken",
            &forged_entry(
                &history.signed.operation_id,
                "broadcast",
                "'{}'",
                "last_error = null",
            ),
        );
    }

    #[pg_test]
    fn verify_finds_a_success_whose_row_was_set_back_with_its_log() {
        let history = History::told();
        let id = &history.confirmed.operation_id;
        let back = format!(
            "delete from sluice.events e using sluice.withdrawals w
              where w.operation_id = '{id}' and e.operation_id = w.operation_id and e.seq = w.seq;
             update sluice.withdrawals w set state = e.to_state, seq = e.seq, hash = e.hash, changed_at = e.at, block_number = null,
                    confirmed_at = null, due_at = sluice.now()
               from sluice.events e
              where w.operation_id = '{id}' and e.operation_id = w.operation_id and e.seq = w.seq - 1"
        );
        breaks("payments_are_the_confirmed", &back);
        assert!(
            !broken_by(&back).contains("logs_are_unbroken"),
            "the log is whole: only the payment tells"
        );
    }

    #[pg_test]
    fn verify_finds_a_swapped_txid() {
        let history = History::told();
        let (one, other) = (
            hex_of(&history.confirmed.txid),
            hex_of(&history.confirmed_too.txid),
        );
        breaks(
            "one_withdrawal_a_txid",
            &format!("update sluice.envelopes set txid = sha256(txid) where txid = '\\x{one}'"),
        );
        breaks(
            "one_withdrawal_a_txid",
            &format!(
                "update sluice.payments p set operation_id = o.operation_id from sluice.payments o where p.txid = '\\x{one}' and o.txid = '\\x{other}'"
            ),
        );
        breaks(
            "payments_are_the_confirmed",
            &format!("update sluice.payments set txid = sha256(txid) where txid = '\\x{one}'"),
        );
        // Two withdrawals' envelopes with each other's bytes: each is the hash of what it holds.
        let swap = format!(
            "create temp table kept on commit drop as select * from sluice.envelopes where txid in ('\\x{one}', '\\x{other}');
             delete from sluice.envelopes where txid in ('\\x{one}', '\\x{other}');
             update kept k set operation_id = o.operation_id from (select * from kept) o where o.txid <> k.txid;
             insert into sluice.envelopes select * from kept"
        );
        breaks("envelopes_pay_the_row", &swap);
        breaks("one_withdrawal_a_txid", &swap);
    }

    #[pg_test]
    fn verify_finds_a_forged_end() {
        let history = History::told();
        let id = &history.broadcast.operation_id;
        let txid = hex_of(&history.broadcast.txid);
        breaks(
            "logs_are_unbroken",
            &format!(
                "update sluice.withdrawals set state = 'confirmed', block_number = 1001, confirmed_at = now(), due_at = null where operation_id = '{id}'"
            ),
        );
        let evidence = format!(
            "jsonb_build_object('txid', '{txid}', 'fate', 'included', 'receipt', 'SUCCESS', 'block_number', 1001, 'depth', 0, 'tip', 1200,
                                'block_id', (select encode(b.id, 'hex') from sluice.blocks b where b.number = 1001))"
        );
        let ended = "block_number = 1001, confirmed_at = now(), due_at = null, leased_by = null";
        let confirmed = forged_entry(id, "confirmed", &evidence, ended);
        breaks("ends_have_their_cause", &confirmed);
        breaks("payments_are_the_confirmed", &confirmed);
        // And with an envelope that says so too: no block does.
        breaks(
            "deaths_are_proven",
            &format!(
                "{confirmed}; update sluice.envelopes set fate = 'included', receipt = 'SUCCESS', block_number = 1001 where txid = '\\x{txid}'"
            ),
        );
        // A failure, while its envelope can still pay.
        breaks(
            "ends_have_their_cause",
            &forged_entry(
                id,
                "failed",
                "'{}'",
                "failure_reason = 'no reason', due_at = null, leased_by = null",
            ),
        );
        // A failure of what was paid.
        breaks(
            "ends_have_their_cause",
            &format!(
                "update sluice.withdrawals set state = 'failed', failure_reason = 'no reason', block_number = null, confirmed_at = null where operation_id = '{}'",
                history.confirmed.operation_id
            ),
        );
        breaks(
            "ends_have_their_cause",
            &format!(
                "update sluice.withdrawals set failure_reason = '' where operation_id = '{}'",
                history.failed.operation_id
            ),
        );
        // A rejection of what was built.
        breaks(
            "ends_have_their_cause",
            &format!(
                "update sluice.withdrawals set state = 'rejected' where operation_id = '{}'",
                history.failed.operation_id
            ),
        );
        // Paid, and confirmed before its depth.
        let shallow = &history.deepening;
        breaks(
            "ends_have_their_cause",
            &forged_entry(
                &shallow.operation_id,
                "confirmed",
                &format!(
                    "(select v.evidence || '{{\"depth\": 50}}' from sluice.evidence_of(array['{}'::uuid]) v)",
                    shallow.operation_id
                ),
                &format!(
                    "block_number = (select e.block_number from sluice.envelopes e where e.txid = '\\x{}'), confirmed_at = now(), due_at = null, leased_by = null, deep_at = null",
                    hex_of(&shallow.txid)
                ),
            ),
        );
    }

    #[pg_test]
    fn verify_finds_what_was_removed() {
        let history = History::told();
        let id = &history.confirmed.operation_id;
        breaks(
            "nothing_is_removed",
            &format!("delete from sluice.withdrawals where operation_id = '{id}'"),
        );
        breaks(
            "nothing_is_removed",
            &format!(
                "delete from sluice.envelopes where txid = '\\x{}'",
                hex_of(&history.rebuilt.txid)
            ),
        );
        breaks(
            "payments_are_the_confirmed",
            &format!("delete from sluice.payments where operation_id = '{id}'"),
        );
        // With every trace of it: what was counted once still is.
        breaks(
            "sums_agree",
            &format!(
                "delete from sluice.withdrawals where operation_id = '{id}'; delete from sluice.events where operation_id = '{id}';
                 delete from sluice.envelopes where operation_id = '{id}'; delete from sluice.payments where operation_id = '{id}'"
            ),
        );
        breaks(
            "blocks_are_chained",
            "delete from sluice.blocks where number = 1050",
        );
        breaks(
            "blocks_are_chained",
            "delete from sluice.blocks where number = 1000",
        );
    }

    #[pg_test]
    fn verify_finds_a_death_that_the_blocks_do_not_prove() {
        let history = History::told();
        let died = hex_of(&history.rebuilt.txid);
        let live = hex_of(&history.broadcast.txid);
        for tampering in [
            format!("update sluice.envelopes set last_block = last_block - 1 where txid = '\\x{died}'"),
            format!("update sluice.envelopes set last_block = last_block + 1 where txid = '\\x{died}'"),
            format!("update sluice.envelopes set first_block = first_block + 1 where txid = '\\x{died}'"),
            format!("update sluice.envelopes set fate = 'dead', first_block = ref_block_number, last_block = (select max(number) from sluice.blocks) where txid = '\\x{live}'"),
            // Its blocks: one missing, one of another chain, one with another time.
            "delete from sluice.blocks where number = 1050".to_owned(),
            "update sluice.blocks set id = sha256(id) where number = 1050".to_owned(),
            "update sluice.blocks set timestamp_ms = timestamp_ms + 1000000 where number = 1050".to_owned(),
            // A followed block holds it after all.
            format!(
                "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units, seen_at)
                 select e.txid, e.operation_id, 1050, 0, 'SUCCESS', e.wallet, a.contract, w.to_address, w.amount_units, now()
                   from sluice.envelopes e join sluice.withdrawals w using (operation_id) join sluice.assets a using (asset) where e.txid = '\\x{died}'"
            ),
            // An end that another block than the one on file shows.
            format!("update sluice.envelopes set block_number = block_number + 1 where txid = '\\x{}'", hex_of(&history.failed.txid)),
        ] {
            breaks("deaths_are_proven", &tampering);
        }
        // The evidence in the log: taken out, or of other blocks. The chain of hashes is made to hold.
        let id = &history.rebuilt.operation_id;
        let rehashed = |detail: &str| {
            format!(
                "update sluice.events e set detail = {detail}
                  where e.operation_id = '{id}' and e.detail ->> 'fate' = 'dead';
                 do $rehash$
                 declare r record; v_hash bytea;
                 begin
                   for r in select * from sluice.events e where e.operation_id = '{id}' order by e.seq loop
                     v_hash := sluice.entry_hash(v_hash, r.operation_id, r.seq, r.from_state::text, r.to_state::text, r.at, r.worker_id, r.detail::text);
                     update sluice.events e set hash = v_hash where e.operation_id = r.operation_id and e.seq = r.seq;
                   end loop;
                   update sluice.withdrawals w set hash = v_hash where w.operation_id = '{id}';
                 end $rehash$"
            )
        };
        for detail in [
            "'{}'::jsonb",
            "e.detail || '{\"last_block\": 1090}'",
            "e.detail || '{\"last_block_id\": \"00\"}'",
            "e.detail || '{\"margin_blocks\": 1000}'",
            "e.detail - 'tip'",
        ] {
            assert_eq!(
                broken_by(&rehashed(detail)),
                "deaths_are_proven",
                "{detail}"
            );
        }
    }

    #[pg_test]
    fn verify_finds_a_second_envelope_a_strange_signature_and_a_row_that_nobody_looks_at() {
        let history = History::told();
        let id = &history.rebuilt.operation_id;
        breaks(
            "one_live_envelope",
            &format!(
                "drop index sluice.envelopes_one_live;
                 update sluice.envelopes set fate = null, first_block = null, last_block = null where operation_id = '{id}'"
            ),
        );
        for signer in [
            "update sluice.envelopes e set wallet = 'TUovF8AbwuqEmqehCPUSAFu3wfUAqsp2Fg' where e.txid = '\\x{txid}'",
            "update sluice.wallets set signer = 'secp256k1' where address = 'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC'",
            "update sluice.envelopes e set signature = '\\x01' where e.txid = '\\x{txid}'",
            "update sluice.envelopes e set signature = null where e.txid = '\\x{txid}'",
            "update sluice.envelopes e set expiration_ms = expiration_ms + 1 where e.txid = '\\x{txid}'",
        ] {
            breaks(
                "envelopes_pay_the_row",
                &signer.replace("{txid}", &hex_of(&history.broadcast.txid)),
            );
        }
        breaks(
            "nothing_is_lost",
            &format!(
                "update sluice.withdrawals set due_at = null where operation_id = '{}'",
                history.broadcast.operation_id
            ),
        );
        // What waits for a person does so for a receipt.
        breaks(
            "nothing_is_lost",
            &format!(
                "update sluice.envelopes set fate = null, receipt = null, block_number = null where operation_id = '{}'",
                history.parked.operation_id
            ),
        );
    }

    #[pg_test]
    fn verify_is_for_auditors_and_operators() {
        let _history = History::told();
        for (role, state) in [
            ("sluice_auditor", ""),
            ("sluice_operator", ""),
            ("sluice_app", "42501"),
            ("sluice_runner", "42501"),
            ("sluice_approver", "42501"),
        ] {
            let (found, message) = tried_as(role, "select * from sluice.verify()");
            assert_eq!(found, state, "{role}: {message}");
        }
    }
}
