//! Signatures of a wallet that signs for real: every form that java-tron takes is one and is stored as it came, every other is none.
//! And late ones, which change nothing.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::json;
use sluice_core::envelope::Txid;
use sluice_core::signature::SecretKey;

/// The order of secp256k1's group (SEC 2, 2.4.1).
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

fn keyed() -> (Scene, SecretKey) {
    let scene = Scene::without_wallet();
    run(&format!(
        "select sluice.add_wallet('{KEYED_WALLET}', 'secp256k1')"
    ));
    (scene, SecretKey::from_hex(KEY).expect("the key is one"))
}

fn sign(key: &SecretKey, task: &Task) -> [u8; 65] {
    key.sign(&Txid::from_bytes(&task.txid).expect("a txid has 32 bytes"))
}

/// The other signature that the same nonce makes: s taken from the group's order, and the point's other half.
fn high(signature: &[u8; 65]) -> [u8; 65] {
    let order = hex::decode(ORDER).expect("it is hex");
    let mut other = *signature;
    let mut borrow = 0;
    for place in (0..32).rev() {
        let difference = i16::from(order[place]) - i16::from(signature[32 + place]) - borrow;
        borrow = i16::from(difference < 0);
        other[32 + place] = difference.rem_euclid(256) as u8;
    }
    other[64] = 27 + (1 - (signature[64] - 27));
    other
}

fn report(task: &Task, signature: &[u8]) -> String {
    one(&format!(
        "select coalesce(state::text, 'fenced') from sluice.record_signatures('w', '{}')",
        json!([{
            "operation_id": task.operation_id,
            "fencing_token": task.fencing_token,
            "txid": hex::encode(&task.txid),
            "signature": hex::encode(signature),
        }])
    ))
    .unwrap_or_default()
}

fn stored(task: &Task) -> String {
    one(&format!(
        "select encode(signature, 'hex') from sluice.envelopes where txid = {}",
        literal(&task.txid)
    ))
    .unwrap_or_default()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn of_256_last_bytes_the_four_that_java_tron_folds_together_are_taken_and_no_other() {
        let (scene, key) = keyed();
        let task = scene.signing(1);
        for signature in [sign(&key, &task), high(&sign(&key, &task))] {
            let id = signature[64] - 27;
            let taken: Vec<u8> = (0..=255)
                .filter(|v| {
                    let mut varied = signature;
                    varied[64] = *v;
                    let statement = format!(
                        "update sluice.envelopes set signature = {} where txid = {}",
                        literal(&varied),
                        literal(&task.txid)
                    );
                    match as_owner(&statement).as_str() {
                        "" => true,
                        code => {
                            assert_eq!(code, "SL015", "v {v}");
                            false
                        }
                    }
                })
                .collect();
            assert_eq!(taken, [id, id + 4, id + 27, id + 31]);
        }
    }

    #[pg_test]
    fn every_form_of_a_good_signature_is_stored_as_it_came_and_sent_so() {
        let (scene, key) = keyed();
        let mut number = 0;
        for flip in [false, true] {
            for offset in [0, 4, 27, 31] {
                number += 1;
                let task = scene.signing(number);
                let low = sign(&key, &task);
                let mut signature = if flip { high(&low) } else { low };
                signature[64] = signature[64] - 27 + offset;
                assert_eq!(
                    report(&task, &signature),
                    "broadcasting",
                    "high s: {flip}, offset {offset}"
                );
                assert_eq!(stored(&task), hex::encode(signature));
            }
        }
        scene.clock(31);
        let sent = one(
            "select bool_and(t.signature = e.signature) || ' ' || count(*) from sluice.claim_batch('w') t join sluice.envelopes e on e.txid = t.txid",
        );
        assert_eq!(sent.as_deref(), Some("true 8"));
    }

    #[pg_test]
    fn a_signature_with_numbers_that_are_none_is_refused() {
        let (scene, key) = keyed();
        let task = scene.signing(1);
        let good = sign(&key, &task);
        let order = hex::decode(ORDER).expect("it is hex");
        for (from, part, what) in [
            (0, vec![0; 32], "r is zero"),
            (32, vec![0; 32], "s is zero"),
            (0, order.clone(), "r is the order"),
            (32, order.clone(), "s is the order"),
            (0, vec![0xff; 32], "r is beyond the field"),
            (32, vec![0xff; 32], "s is beyond the order"),
        ] {
            let mut bad = good;
            bad[from..from + 32].copy_from_slice(&part);
            let again = Task {
                fencing_token: scene_token(&task),
                ..task.clone()
            };
            assert_eq!(report(&again, &bad), "signing", "{what}");
            assert_eq!(stored(&task), "", "{what}");
        }
        let again = Task {
            fencing_token: scene_token(&task),
            ..task.clone()
        };
        assert_eq!(report(&again, &good), "broadcasting");
    }

    #[pg_test]
    fn a_wallet_may_sign_with_an_address_other_than_its_own_and_then_only_with_that() {
        let scene = Scene::without_wallet();
        let key = SecretKey::from_hex(KEY).expect("the key is one");
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'secp256k1', signer_address => '{KEYED_WALLET}', permission_id => 2)"
        ));
        let task = scene.signing(1);
        // The wallet's own key is the number 1.
        let mut one = [0; 32];
        one[31] = 1;
        let own = SecretKey::from_bytes(&one).expect("1 is a key");
        assert_eq!(own.address().to_string(), MOCK_WALLET);
        assert_eq!(
            report(&task, &sign(&own, &task)),
            "signing",
            "not the wallet's own"
        );
        assert_eq!(report(&task, &sign(&key, &task)), "broadcasting");
    }

    #[pg_test]
    fn a_signature_of_the_last_worker_is_fenced_out_and_the_next_ones_is_over_the_same_digest() {
        let (scene, key) = keyed();
        let first = scene.signing(1);
        scene.clock(31);
        let second = scene.claim("next").remove(0);
        assert_eq!(second.txid, first.txid);
        let signature = sign(&key, &first);
        assert_eq!(report(&first, &signature), "fenced");
        assert_eq!(stored(&first), "");
        assert_eq!(report(&second, &signature), "broadcasting");
        assert_eq!(report(&first, &signature), "fenced");
    }

    #[pg_test]
    fn a_signature_for_an_envelope_that_died_meanwhile_is_fenced_out_though_its_withdrawal_is_in_signing_again()
     {
        let (mut scene, key) = keyed();
        let task = scene.signing(1);
        scene.pass(300);
        assert_eq!(scene.state(&task.operation_id), "signing");
        assert_eq!(report(&task, &sign(&key, &task)), "fenced");
        scene.pass(300);
        let again = scene.claim("w").remove(0);
        assert_ne!(again.txid, task.txid);
        let old_bytes = Task {
            fencing_token: again.fencing_token,
            ..task.clone()
        };
        assert_eq!(
            report(&old_bytes, &sign(&key, &task)),
            "fenced",
            "the old digest under the new token"
        );
        assert_eq!(stored(&task), "");
        assert_eq!(report(&again, &sign(&key, &again)), "broadcasting");
    }

    #[pg_test]
    fn a_signature_that_comes_after_the_expiration_is_kept_and_its_envelope_is_not_sent() {
        let (mut scene, key) = keyed();
        run("select sluice.set_setting('margin_blocks', '5', 'to look at what lies between')");
        let task = scene.signing(1);
        scene.pass(300);
        assert_eq!(report(&task, &sign(&key, &task)), "signed");
        assert_eq!(stored(&task), hex::encode(sign(&key, &task)));
        for seconds in [0, 40, 200] {
            scene.clock(seconds);
            assert_eq!(scene.claim("w").len(), 0);
        }
        scene.pass(15);
        assert_eq!(
            scene.log(&task.operation_id),
            ">requested requested>validated validated>signing signing>signed signed>signing"
        );
    }

    #[pg_test]
    fn a_report_that_raises_stops_its_own_row_and_the_others_are_filed_in_the_order_given() {
        let scene = Scene::open();
        for number in 1..=3 {
            scene.submit(number);
        }
        let mut tasks = scene.claim("w");
        tasks.reverse();
        run(
            "create function pg_temp.poison() returns trigger language plpgsql as $$ begin raise exception 'poisoned' using errcode = 'P0666'; end $$",
        );
        run(&format!(
            "create trigger a_poison before update on sluice.envelopes for each row when (new.operation_id = '{}') execute function pg_temp.poison()",
            id(2)
        ));
        let filed = scene.sign("w", &tasks);
        let answer: Vec<_> = filed
            .iter()
            .map(|task| (task.operation_id.clone(), task.state.as_str()))
            .collect();
        assert_eq!(
            answer,
            [
                (id(3), "broadcasting"),
                (id(2), ""),
                (id(1), "broadcasting")
            ]
        );
        assert_eq!(scene.state(&id(2)), "signing");
        assert_eq!(scene.column(&id(2), "last_error"), "P0666 poisoned");
        assert_eq!(scene.due_in(&id(2)), 300);
        run("drop trigger a_poison on sluice.envelopes");
        run(&format!(
            "create trigger a_poison before update on sluice.withdrawals for each row
               when (new.operation_id = '{}' and new.state = 'broadcast') execute function pg_temp.poison()",
            id(3)
        ));
        let sent: Vec<_> = filed
            .into_iter()
            .filter(|task| !task.state.is_empty())
            .collect();
        let filed = scene.answer("w", &sent, "SUCCESS");
        let answer: Vec<_> = filed
            .iter()
            .map(|task| (task.operation_id.clone(), task.state.as_str()))
            .collect();
        assert_eq!(answer, [(id(3), ""), (id(1), "broadcast")]);
        assert_eq!(scene.state(&id(3)), "broadcasting");
        assert_eq!(scene.column(&id(3), "last_error"), "P0666 poisoned");
    }

    /// The token that a withdrawal's row has now.
    fn scene_token(task: &Task) -> i64 {
        count(&format!(
            "select fencing_token from sluice.withdrawals where operation_id = '{}'",
            task.operation_id
        ))
    }
}
