//! What workers report: whose reports count, which signatures are taken, and that nothing a node says moves more than it may.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::{Value, json};
use sluice_core::envelope::Txid;
use sluice_core::signature::SecretKey;

fn result(task: &Task, token: i64, signature: &str) -> Value {
    json!({"operation_id": task.operation_id, "fencing_token": token, "txid": hex::encode(&task.txid), "signature": signature})
}

fn states(function: &str, worker: &str, results: &[Value]) -> String {
    one(&format!(
        "select string_agg(coalesce(state::text, 'null'), ' ' order by n)
           from sluice.{function}('{worker}', '{}') with ordinality r (operation_id, state, a, b, c, d, e, f, g, h, n)",
        json!(results)
    ))
    .unwrap_or_default()
}

fn entries(id: &str) -> String {
    one(&format!(
        "select count(*) from sluice.events where operation_id = '{id}'"
    ))
    .unwrap_or_default()
}

/// A signer, good or bad: what it answers for a task.
type Signer<'a> = Box<dyn Fn(&Task) -> String + 'a>;

/// A scene whose wallet signs with a real key.
fn keyed() -> (Scene, SecretKey) {
    alone();
    let first = block(FIRST, &[0; 32], START_MS, &[]);
    run(&format!(
        "select sluice.add_wallet('{KEYED_WALLET}', 'secp256k1')"
    ));
    run(&format!(
        "select sluice.follow_from({}, '\\x{GENESIS}')",
        literal(&first.bytes)
    ));
    let scene = Scene { tip: first };
    scene.clock(0);
    (
        scene,
        SecretKey::from_hex(KEY).expect("a key of the vectors"),
    )
}

fn signed_by(key: &SecretKey, task: &Task) -> [u8; 65] {
    key.sign(&Txid::from_bytes(&task.txid).expect("a txid"))
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_report_on_what_is_not_yours_comes_back_empty_in_the_order_given() {
        let scene = Scene::open();
        for number in 1..=4 {
            scene.submit(number);
        }
        let tasks = scene.claim("w");
        let good = "01".repeat(65);
        let mut foreign = result(&tasks[2], tasks[2].fencing_token, &good);
        foreign["txid"] = json!(hex::encode(&tasks[3].txid));
        let mut unknown = result(&tasks[3], 1, &good);
        unknown["operation_id"] = json!(id(99));
        let reports = [
            result(&tasks[1], tasks[1].fencing_token - 1, &good),
            result(&tasks[0], tasks[0].fencing_token, &good),
            foreign,
            unknown,
        ];
        assert_eq!(
            states("record_signatures", "w", &reports),
            "null broadcasting null null"
        );
        let signed = one("select count(*) from sluice.envelopes where signature is not null");
        assert_eq!(signed.as_deref(), Some("1"));
        let again = [result(&tasks[0], tasks[0].fencing_token, &good)];
        assert_eq!(
            states("record_signatures", "w", &again),
            "null",
            "a second time it is signing no more"
        );
    }

    #[pg_test]
    fn a_signature_that_is_not_the_wallets_is_refused_and_the_same_digest_offered_again() {
        let (scene, key) = keyed();
        let id = scene.submit(1);
        let other = SecretKey::from_hex(&format!("{:064x}", 2)).expect("a key");
        let mut token = 0;
        let mut first_txid = vec![];
        let bad: [(&str, Signer); 4] = [
            (
                "of another key",
                Box::new(|task| hex::encode(signed_by(&other, task))),
            ),
            (
                "short",
                Box::new(|task| hex::encode(&signed_by(&key, task)[..64])),
            ),
            (
                "long",
                Box::new(|task| hex::encode(signed_by(&key, task)) + "00"),
            ),
            ("zeros", Box::new(|_| "00".repeat(65))),
        ];
        for (what, signature) in bad {
            let task = scene.claim("w").remove(0);
            assert!(task.fencing_token > token, "{what}");
            token = task.fencing_token;
            if first_txid.is_empty() {
                first_txid.clone_from(&task.txid);
            }
            assert_eq!(task.txid, first_txid, "{what}");
            let report = [result(&task, token, &signature(&task))];
            assert_eq!(
                states("record_signatures", "w", &report),
                "signing",
                "{what}"
            );
            let error = one(&format!(
                "select last_error from sluice.withdrawals where operation_id = '{id}'"
            ))
            .unwrap_or_default();
            assert!(error.starts_with("signature refused"), "{what}: {error}");
            assert!(scene.claim("w").is_empty(), "{what}: not at once");
            run("update sluice.withdrawals set due_at = sluice.now()");
        }
        assert_eq!(
            one("select count(*) from sluice.envelopes").as_deref(),
            Some("1")
        );
        assert_eq!(entries(&id), "3");
        let task = scene.claim("w").remove(0);
        let report = [result(
            &task,
            task.fencing_token,
            &hex::encode(signed_by(&key, &task)),
        )];
        assert_eq!(states("record_signatures", "w", &report), "broadcasting");
    }

    #[pg_test]
    fn a_signature_is_taken_with_every_last_byte_that_java_tron_takes_and_stored_as_it_came() {
        let (scene, key) = keyed();
        for (number, offset) in (1..).zip([-27_i16, 0, 4]) {
            scene.submit(number);
            let task = scene.claim("w").remove(0);
            let mut signature = signed_by(&key, &task);
            signature[64] = u8::try_from(i16::from(signature[64]) + offset).expect("a byte");
            let report = [result(&task, task.fencing_token, &hex::encode(signature))];
            assert_eq!(
                states("record_signatures", "w", &report),
                "broadcasting",
                "offset {offset}"
            );
            let stored = one(&format!(
                "select encode(signature, 'hex') from sluice.envelopes where txid = {}",
                literal(&task.txid)
            ));
            assert_eq!(stored, Some(hex::encode(signature)));
        }
    }

    #[pg_test]
    fn only_an_acceptance_moves_a_withdrawal_and_only_the_first_refusal_is_logged() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let sent = scene.sign("w", &scene.claim("w"));
        let codes = [
            "NO_ANSWER",
            "SIGERROR",
            "CONTRACT_VALIDATE_ERROR",
            "CONTRACT_EXE_ERROR",
            "BANDWITH_ERROR",
            "TAPOS_ERROR",
            "TOO_BIG_TRANSACTION_ERROR",
            "TRANSACTION_EXPIRATION_ERROR",
            "SERVER_BUSY",
            "NO_CONNECTION",
            "NOT_ENOUGH_EFFECTIVE_CONNECTION",
            "BLOCK_UNSOLIDIFIED",
            "OTHER_ERROR",
            "A_CODE_OF_NEXT_YEAR",
        ];
        for code in codes {
            assert_eq!(
                scene.answer("w", &sent, code)[0].state,
                "broadcasting",
                "{code}"
            );
        }
        assert_eq!(
            scene.log(&id),
            ">requested requested>validated validated>signing signing>signed signed>broadcasting broadcasting>broadcasting"
        );
        let refusal = one("select refusal from sluice.withdrawals");
        assert_eq!(
            refusal.as_deref(),
            Some("SIGERROR"),
            "the first that was an answer"
        );
        assert_eq!(
            scene.answer("w", &sent, "DUP_TRANSACTION_ERROR")[0].state,
            "broadcast"
        );
        for code in codes {
            assert_eq!(
                scene.answer("w", &sent, code)[0].state,
                "broadcast",
                "{code}"
            );
        }
        assert_eq!(entries(&id), "7");
    }

    #[pg_test]
    fn a_runner_cannot_fail_what_was_never_tried() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let cas = |from: &str, to: &str| {
            format!(
                "select state from sluice.fenced_cas('{id}', 0, '{from}', '{to}', 'w', '{{\"last_error\": \"the chain says REVERT\"}}')"
            )
        };
        assert_eq!(
            one(&cas("requested", "validated")).as_deref(),
            Some("validated")
        );
        assert_eq!(sqlstate(&cas("validated", "signing")), "SL012");
        assert_eq!(sqlstate(&cas("validated", "failed")), "SL010");
        assert_eq!(scene.state(&id), "validated");
    }

    #[pg_test]
    fn an_answer_about_another_transaction_is_nobodys() {
        let scene = Scene::open();
        scene.submit(1);
        let mut sent = scene.sign("w", &scene.claim("w"));
        sent[0].txid = vec![7; 32];
        assert!(scene.answer("w", &sent, "SUCCESS")[0].state.is_empty());
        assert_eq!(scene.state(&id(1)), "broadcasting");
    }

    #[pg_test]
    fn the_same_bytes_are_sent_again_after_the_interval_and_no_sooner() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(72);
        assert!(scene.claim("w").is_empty());
        scene.pass(3);
        let again = scene.claim("w");
        assert_eq!(
            (again[0].action.as_str(), &again[0].raw_data),
            ("broadcast", &task.raw_data)
        );
        assert_eq!(
            scene.answer("w", &again, "DUP_TRANSACTION_ERROR")[0].state,
            "broadcast"
        );
        assert_eq!(
            entries(&task.operation_id),
            "6",
            "a send that changes nothing is no news"
        );
    }

    #[pg_test]
    fn a_pause_holds_first_sends_and_lets_what_may_be_out_be_sent_again() {
        let mut scene = Scene::open();
        let out = scene.broadcast(1);
        scene.submit(2);
        let claimed = scene.claim("w");
        run("select sluice.pause('hold')");
        let held = scene.sign("w", &claimed);
        assert_eq!(
            (held[0].state.as_str(), held[0].action.as_str()),
            ("signed", "")
        );
        scene.pass(75);
        let sent: Vec<String> = scene
            .claim("w")
            .into_iter()
            .map(|task| task.operation_id)
            .collect();
        assert_eq!(sent, [out.operation_id]);
        run("select sluice.resume('on')");
        scene.pass(6);
        let then = scene.claim("w");
        assert_eq!(
            (
                then[0].operation_id.as_str(),
                then[0].action.as_str(),
                then[0].state.as_str()
            ),
            (id(2).as_str(), "broadcast", "broadcasting")
        );
    }

    #[pg_test]
    fn a_single_step_is_the_token_holders_and_the_charts() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let task = scene.claim("w").remove(0);
        let token = task.fencing_token;
        let cas = |token: i64, from: &str, to: &str, more: &str| {
            format!(
                "select state from sluice.fenced_cas('{id}', {token}, '{from}', '{to}', 'w'{more})"
            )
        };
        assert_eq!(
            one(&cas(token - 1, "signing", "signing", "")),
            None,
            "another's token"
        );
        assert_eq!(
            one(&cas(token, "signed", "broadcasting", "")),
            None,
            "another state"
        );
        assert_eq!(
            sqlstate(&cas(token, "signing", "signed", "")),
            "SL012",
            "no signature is on file"
        );
        assert_eq!(
            sqlstate(&cas(token, "signing", "failed", "")),
            "SL012",
            "its envelope lives"
        );
        assert_eq!(sqlstate(&cas(token, "signing", "broadcast", "")), "SL010");
        assert_eq!(
            sqlstate(&cas(token, "requested", "rejected", "")),
            "SL010",
            "a runner may not reject"
        );
        assert_eq!(
            sqlstate(&cas(
                token,
                "signing",
                "signing",
                ", '{\"state\": \"failed\"}'"
            )),
            "SL005"
        );
        assert_eq!(
            sqlstate(&cas(
                token,
                "signing",
                "signing",
                ", '{\"due_in\": \"2 hours\"}'"
            )),
            "SL005"
        );
        let postponed = one(&cas(
            token,
            "signing",
            "signing",
            ", '{\"due_in\": \"10 seconds\", \"last_error\": \"no signer\"}'",
        ));
        assert_eq!(postponed.as_deref(), Some("signing"));
        let row = one(
            "select last_error || ' ' || extract(epoch from due_at - sluice.now()) || ' ' || coalesce(leased_by, 'nobody') from sluice.withdrawals",
        );
        assert_eq!(row.as_deref(), Some("no signer 10.000000 nobody"));
        assert_eq!(entries(&id), "3", "a postponement is no news");
    }
}
