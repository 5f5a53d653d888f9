//! A withdrawal's way through its states, as blocks and workers move it.

use super::scene::*;
use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_withdrawal_is_paid_once_its_block_is_solid() {
        let mut scene = Scene::open();
        let id = scene.submit(1);
        let claimed = scene.claim("w");
        assert_eq!(claimed.len(), 1);
        assert_eq!(
            (claimed[0].action.as_str(), claimed[0].state.as_str()),
            ("sign", "signing")
        );
        let to_send = scene.sign("w", &claimed);
        assert_eq!(
            (to_send[0].action.as_str(), to_send[0].state.as_str()),
            ("broadcast", "broadcasting")
        );
        assert_eq!(scene.answer("w", &to_send, "SUCCESS")[0].state, "broadcast");
        let moved = scene.follow(3000, &[in_block(&to_send[0].raw_data, SUCCESS)]);
        assert_eq!(moved[0].state, "confirmed");
        assert_eq!(
            scene.log(&id),
            ">requested requested>validated validated>signing signing>signed signed>broadcasting broadcasting>broadcast broadcast>confirmed"
        );
    }

    #[pg_test]
    fn an_envelope_that_no_block_held_is_rebuilt_with_the_blocks_that_prove_it() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(297);
        assert_eq!(scene.state(&task.operation_id), "broadcast");
        assert!(
            scene
                .claim("w")
                .iter()
                .all(|task| task.action == "broadcast"),
            "nothing is built while it lives"
        );
        scene.follow(3000, &[]);
        assert_eq!(scene.state(&task.operation_id), "signing");
        let evidence =
            one("select detail from sluice.events order by seq desc limit 1").unwrap_or_default();
        assert!(
            evidence.contains("\"first_block\": 1000") && evidence.contains("\"last_block\": 1100"),
            "{evidence}"
        );
        let again = scene.claim("w");
        assert_eq!((again[0].action.as_str(), again[0].attempt), ("sign", 2));
        assert_ne!(again[0].txid, task.txid);
    }

    #[pg_test]
    fn a_transaction_in_the_first_block_past_its_expiration_is_confirmed() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(297);
        let moved = scene.follow(60_000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(moved[0].state, "confirmed");
    }
}
