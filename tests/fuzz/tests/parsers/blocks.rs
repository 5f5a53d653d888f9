//! A node's JSON of a block, as the mock network prints it, with something else somewhere: what the runner takes for a block, the
//! database takes for the same one.

use proptest::prelude::*;
use serde_json::Value;
use sluice_core::block::{BlockError, MAX_BLOCK_BYTES, decode_block};
use sluice_fuzz::fuzz;
use sluice_fuzz::json::{any_value, changed, changes, no_json};
use sluice_runner::block_json::{CheckedBlock, checked_block};

use crate::node_answers::shown_blocks;

/// What the database makes of the bytes that the runner would hand it.
pub fn database_agrees(block: &CheckedBlock) -> Result<(), TestCaseError> {
    prop_assert!(block.bytes.len() <= MAX_BLOCK_BYTES);
    match decode_block(&block.bytes) {
        Ok(read) => {
            prop_assert!(read.root_holds);
            prop_assert_eq!(
                (
                    read.number,
                    read.id,
                    read.parent_id,
                    read.timestamp,
                    read.transactions.len()
                ),
                (
                    block.number,
                    block.id,
                    block.parent_id,
                    block.timestamp,
                    block.transactions
                )
            );
        }
        // What no chain has, and what the runner does not look for: the database refuses the block.
        Err(BlockError::Folded { .. } | BlockError::Time(_)) => {}
        Err(error) => prop_assert!(false, "the runner took it, the database: {}", error),
    }
    Ok(())
}

#[test]
fn what_the_runner_takes_for_a_block_the_database_takes_for_the_same() {
    let blocks = shown_blocks();
    let count = blocks.len();
    let given = (0..count, changes());
    fuzz("block_json", 1000, given, |(which, changes)| {
        let json = changed(blocks[which].clone(), &changes);
        let read = checked_block(&json);
        prop_assert!(read.is_ok() || !changes.is_empty(), "{:?}", read);
        match read {
            Ok(block) => database_agrees(&block),
            Err(error) => {
                prop_assert!(error.to_string().len() < 2000, "{}", error);
                Ok(())
            }
        }
    });
}

#[test]
fn no_json_brings_the_reader_of_blocks_down() {
    let given = prop_oneof![
        any_value().prop_map(|value| value.to_string().into_bytes()),
        no_json()
    ];
    fuzz("no_block_json", 1000, given, |bytes| {
        if let Ok(json) = serde_json::from_slice::<Value>(&bytes) {
            prop_assert!(checked_block(&json).is_err());
        }
        Ok(())
    });
}
