//! The chain to follow, as it is named: once, by a whole block, and never one of value beside a mock wallet.

use super::scene::*;
use super::setup::{changes, rows};
use pgrx::prelude::*;
use serde_json::json;

const MAIN: &str = "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc";
const NILE: &str = "0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc";

fn first_block() -> Block {
    block(FIRST, &[0; 32], START_MS, &[])
}

fn follow_from(first: &Block, genesis: &str) -> String {
    format!(
        "select sluice.follow_from({}, '\\x{genesis}')",
        literal(&first.bytes)
    )
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn mock_signatures_and_a_chain_of_value_exclude_each_other_both_ways_round() {
        alone();
        for genesis in [MAIN, NILE] {
            let outcome = |first: &str, then: &str| {
                tried_as(
                    &superuser(),
                    &format!("do $$ begin perform {first}; perform {then}; end $$"),
                )
            };
            let follow = follow_from(&first_block(), genesis).replacen("select ", "", 1);
            let mock = format!("sluice.add_wallet('{MOCK_WALLET}', 'hmac')");
            let real = format!("sluice.add_wallet('{MOCK_WALLET}', 'secp256k1')");
            for (first, then, argument) in
                [(&mock, &follow, "genesis_id"), (&follow, &mock, "signer")]
            {
                let (state, message) = outcome(first, then);
                assert_eq!(state, "SL005", "{genesis}: {first}; {then}: {message}");
                assert!(message.starts_with(&format!("{argument}: ")), "{message}");
            }
            for (first, then) in [(&real, &follow), (&follow, &real)] {
                assert_eq!(outcome(first, then).0, "", "{genesis}: {first}; {then}");
            }
        }
        let elsewhere = follow_from(&first_block(), GENESIS);
        run(&elsewhere);
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"
        ));
        assert_eq!(
            one("select distinct mock_wallets from sluice.overview").as_deref(),
            Some(MOCK_WALLET),
            "the overview says so"
        );
    }

    #[pg_test]
    fn following_begins_once_and_is_on_file() {
        alone();
        let first = first_block();
        assert_eq!(
            sqlstate("select sluice.observe_blocks('n', array['\\x00'::bytea])"),
            "SL020"
        );
        let unnamed = format!(
            "select sluice.observe_blocks('n', array[{}])",
            literal(&first.bytes)
        );
        assert_eq!(sqlstate(&unnamed), "SL022", "no chain is named");
        run(&follow_from(&first, GENESIS));
        let filed = changes();
        assert_eq!(filed.len(), 1);
        assert_eq!(filed[0]["what"], "chain");
        assert_eq!(
            filed[0]["after"],
            json!({"genesis_id": GENESIS, "number": FIRST, "id": hex::encode(first.id)})
        );
        assert_eq!(
            rows(
                "select number, id, parent_id, timestamp_ms, root, transactions from sluice.blocks"
            ),
            [json!({
                "number": FIRST, "id": format!("\\x{}", hex::encode(first.id)), "parent_id": format!("\\x{}", "00".repeat(32)),
                "timestamp_ms": START_MS, "root": format!("\\x{}", "00".repeat(32)), "transactions": 0,
            })]
        );
        let before = contents();
        for again in [
            first.clone(),
            block(FIRST + 1, &first.id, START_MS + 3000, &[]),
        ] {
            assert_eq!(sqlstate(&follow_from(&again, GENESIS)), "SL022");
            assert_eq!(sqlstate(&follow_from(&again, MAIN)), "SL022");
        }
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn following_begins_with_a_whole_block_and_a_whole_id() {
        alone();
        let transaction = in_block(&[1, 2, 3], SUCCESS);
        let whole = block(
            FIRST,
            &[0; 32],
            START_MS,
            &[transaction.clone(), transaction],
        );
        // The same header over one transaction fewer.
        let cut = Block {
            bytes: whole.bytes[whole.bytes.len() / 2..].to_vec(),
            ..whole.clone()
        };
        let header_at = whole.bytes.len() - first_block().bytes.len();
        let stripped = Block {
            bytes: whole.bytes[header_at..].to_vec(),
            ..whole.clone()
        };
        let before = contents();
        let bytes = literal(&whole.bytes);
        let none = "'\\x'::bytea".to_owned();
        let id = format!("'\\x{GENESIS}'::bytea");
        for (block, genesis, argument, state) in [
            ("null", id.as_str(), "block", "SL005"),
            (&none, &id, "block", "SL020"),
            ("'\\xdeadbeef'", &id, "block", "SL020"),
            (&literal(&cut.bytes), &id, "block", "SL020"),
            (&literal(&stripped.bytes), &id, "block", "SL020"),
            (&bytes, "null", "genesis_id", "SL005"),
            (&bytes, "'\\x'", "genesis_id", "SL005"),
            (&bytes, "'\\x00'", "genesis_id", "SL005"),
            (&bytes, &format!("{id} || '\\x00'"), "genesis_id", "SL005"),
        ] {
            let call = format!("select sluice.follow_from({block}, {genesis})");
            let (found, message) = refused(&call);
            assert_eq!(found, state, "{call}: {message}");
            assert!(
                message.starts_with(&format!("{argument}: ")),
                "{call}: {message}"
            );
        }
        assert!(refused(&follow_from(&stripped, GENESIS)).1.contains("root"));
        assert_eq!(contents(), before);
        run(&follow_from(&whole, GENESIS));
    }

    #[pg_test]
    fn the_first_followed_block_is_the_first_of_its_slot_wherever_in_it_it_lies() {
        alone();
        let first = block(FIRST, &[0; 32], START_MS + 41_000, &[]);
        run(&follow_from(&first, GENESIS));
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"
        ));
        let mut scene = Scene { tip: first };
        scene.follow(3000, &[]);
        scene.submit(1);
        scene.claim("w");
        assert_eq!(
            rows(
                "select ref_block_number, expiration_ms, raw_data = sluice.raw_data(wallet, 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', 1500000, 1000, (select id from sluice.blocks where number = 1000), expiration_ms, 1767225641000, 100000000, operation_id) as same from sluice.envelopes"
            ),
            [
                json!({"ref_block_number": FIRST, "expiration_ms": START_MS + 41_000 + 300_000, "same": true})
            ]
        );
    }
}
