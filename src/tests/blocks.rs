//! Blocks on their way in: what follows from the newest is taken, once, however often it is brought; all else is refused whole, with
//! a word on what is wrong. A block that shows less than its root says is no block, whatever tree the rest is made to fit.

use super::scene::*;
use pgrx::prelude::*;
use sha2::{Digest, Sha256};

fn observe(blocks: &[&Block]) -> String {
    let bytes: Vec<String> = blocks.iter().map(|block| literal(&block.bytes)).collect();
    format!(
        "select sluice.observe_blocks('node', array[{}]::bytea[])",
        bytes.join(",")
    )
}

/// So many empty blocks after the tip, three seconds apart.
fn chain_of(scene: &Scene, length: i64) -> Vec<Block> {
    let mut blocks = vec![scene.next(3000, &[])];
    while (blocks.len() as i64) < length {
        let tip = blocks.last().expect("there is one");
        blocks.push(block(tip.number + 1, &tip.id, tip.time + 3000, &[]));
    }
    blocks
}

/// A block with another list of transactions under the same header.
fn with_transactions(of: &Block, transactions: &[Vec<u8>]) -> Block {
    let header_at = of
        .bytes
        .len()
        .checked_sub(header_of(of).len())
        .expect("the header comes last");
    let bytes = transactions
        .iter()
        .flat_map(|transaction| wire::bytes(1, transaction))
        .chain(of.bytes[header_at..].iter().copied())
        .collect();
    Block {
        bytes,
        ..of.clone()
    }
}

/// The header field of a block made by `scene::block`: an empty one of the same header has nothing else.
fn header_of(of: &Block) -> Vec<u8> {
    // Field 2 follows the last transaction; its length is that of an empty block of the same shape.
    let empty = block(of.number, &[0; 32], of.time, &[]);
    of.bytes[of.bytes.len() - empty.bytes.len()..].to_vec()
}

/// How many fields 1 with bytes these are, if they are a protobuf message at all.
fn first_fields(mut bytes: &[u8]) -> Option<usize> {
    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut value = 0_u64;
        for shift in 0..10 {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            value |= u64::from(byte & 0x7f).checked_shl(7 * shift)?;
            if *byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
    let mut found = 0;
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let length = match (key >> 3, key & 7) {
            (0, _) => return None,
            (_, 0) => {
                varint(&mut bytes)?;
                0
            }
            (_, 1) => 8,
            (number, 2) => {
                found += usize::from(number == 1);
                varint(&mut bytes)?
            }
            (_, 5) => 4,
            _ => return None,
        };
        bytes = bytes.get(usize::try_from(length).ok()?..)?;
    }
    Some(found)
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_same_blocks_again_move_nothing_and_change_nothing() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        let mut blocks = chain_of(&scene, 2);
        let tip = blocks[1].clone();
        blocks.push(block(
            tip.number + 1,
            &tip.id,
            tip.time + 3000,
            &[in_block(&task.raw_data, SUCCESS)],
        ));
        assert_eq!(scene.observe(&blocks).len(), 1);
        let before = contents();
        for again in [&blocks[..], &blocks[1..2], &blocks[2..], &blocks[..1]] {
            let again: Vec<&Block> = again.iter().collect();
            let moved = count(&observe(&again).replace("select ", "select count(*) from "));
            assert_eq!(moved, 0);
        }
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn batches_may_overlap_and_what_is_new_in_them_counts() {
        let mut scene = Scene::open();
        let first = scene.broadcasting(1);
        let second = scene.broadcasting(2);
        let a = scene.next(3000, &[in_block(&first.raw_data, SUCCESS)]);
        let b = block(a.number + 1, &a.id, a.time + 3000, &[]);
        let c = block(
            b.number + 1,
            &b.id,
            b.time + 3000,
            &[in_block(&second.raw_data, SUCCESS)],
        );
        let moved = scene.observe(&[a.clone(), b.clone()]);
        assert_eq!(moved.len(), 1);
        assert_eq!(moved[0].operation_id, first.operation_id);
        let moved = scene.observe(&[a, b, c.clone()]);
        assert_eq!(moved.len(), 1, "the first one moved before");
        assert_eq!(moved[0].operation_id, second.operation_id);
        assert_eq!(count("select count(*) from sluice.payments"), 2);
        assert_eq!(count("select max(number) from sluice.blocks"), c.number);
        assert_eq!(count("select count(*) from sluice.blocks"), 4);
    }

    #[pg_test]
    fn what_a_block_says_is_kept_as_its_bytes_say_it() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow(
            3001,
            &[
                in_block(&[1, 2, 3], SUCCESS),
                in_block(&task.raw_data, SUCCESS),
            ],
        );
        let row = one(
            "select concat_ws(' ', number, encode(id, 'hex'), encode(parent_id, 'hex'), timestamp_ms, transactions) from sluice.blocks order by number desc limit 1",
        );
        let parent = one("select encode(id, 'hex') from sluice.blocks where number = 1000")
            .unwrap_or_default();
        assert_eq!(
            row,
            Some(format!(
                "1001 {} {parent} {} 2",
                hex::encode(scene.tip.id),
                START_MS + 3001
            ))
        );
        let payment = one(
            "select concat_ws(' ', encode(txid, 'hex'), operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units, encode(tag, 'hex')) from sluice.payments",
        );
        assert_eq!(
            payment,
            Some(format!(
                "{} {} 1001 1 SUCCESS {MOCK_WALLET} TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t {THEIRS} 1500000 {}",
                hex::encode(&task.txid),
                task.operation_id,
                one(&format!(
                    "select encode(sluice.tag('{}'), 'hex')",
                    task.operation_id
                ))
                .unwrap_or_default()
            ))
        );
    }

    #[pg_test]
    fn a_block_that_does_not_follow_is_refused_and_nothing_is_written() {
        let mut scene = Scene::open();
        scene.follow(3000, &[]);
        scene.follow(3000, &[]);
        let blocks = chain_of(&scene, 3);
        let [next, second, third] = &blocks[..] else {
            unreachable!("three were asked for")
        };
        let tip = scene.tip.clone();
        let foreign = block(next.number, &[9; 32], next.time, &[]);
        let other_tip = block(tip.number, &[9; 32], tip.time, &[]);
        let before_all = block(FIRST - 1, &[9; 32], START_MS - 3000, &[]);
        let standing = block(next.number, &tip.id, tip.time, &[]);
        let falling = block(next.number, &tip.id, tip.time - 1, &[]);
        let torn = block(second.number, &[9; 32], second.time, &[]);
        let slow = block(second.number, &next.id, next.time, &[]);
        let before = contents();
        for (batch, what) in [
            (vec![second], "a gap"),
            (vec![next, third], "a gap in the batch"),
            (vec![second, next], "the wrong order"),
            (vec![next, next], "one twice"),
            (vec![&foreign], "a foreign parent"),
            (vec![next, &torn], "a foreign parent in the batch"),
            (vec![&other_tip], "another block at a number that is there"),
            (
                vec![&other_tip, next],
                "another block at a number that is there, and one that follows from the right one",
            ),
            (vec![&before_all], "a block before the first"),
            (vec![&standing], "a time that stands"),
            (vec![&falling], "a time that falls"),
            (vec![next, &slow], "a time that stands in the batch"),
        ] {
            assert_eq!(sqlstate(&observe(&batch)), "SL021", "{what}");
        }
        assert_eq!(contents(), before);
        assert_eq!(sqlstate(&observe(&[next, second, third])), "");
    }

    #[pg_test]
    fn a_stripped_or_altered_block_is_no_block() {
        let scene = Scene::open();
        let task = scene.broadcasting(1);
        let (ours, other) = (
            in_block(&task.raw_data, SUCCESS),
            in_block(&[1, 2, 3], SUCCESS),
        );
        let whole = scene.next(3000, &[other.clone(), ours.clone(), other.clone()]);
        let before = contents();
        for (transactions, what) in [
            (vec![], "all of them gone"),
            (vec![other.clone(), other.clone()], "ours gone"),
            (vec![other.clone(), ours.clone()], "the last gone"),
            (
                vec![ours.clone(), other.clone(), other.clone()],
                "another order",
            ),
            (
                vec![other.clone(), ours.clone(), other.clone(), other.clone()],
                "the last doubled",
            ),
            (
                vec![
                    other.clone(),
                    in_block(&task.raw_data, REVERT),
                    other.clone(),
                ],
                "another receipt",
            ),
        ] {
            let altered = with_transactions(&whole, &transactions);
            assert_eq!(sqlstate(&observe(&[&altered])), "SL020", "{what}");
        }
        assert_eq!(contents(), before);
        let same = with_transactions(&whole, &[other.clone(), ours, other]);
        assert_eq!(
            same.bytes, whole.bytes,
            "the altered blocks are altered by nothing else"
        );
        assert_eq!(sqlstate(&observe(&[&same])), "");
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }

    #[pg_test]
    fn two_transactions_folded_into_their_node_of_the_tree_are_not_a_transaction() {
        // An inner node of the tree is the hash of two hashes, 64 bytes, and a leaf is the hash of a transaction's bytes. So a block
        // that shows those 64 bytes in place of two transactions has the same root; now and then they even read as protobuf.
        let scene = Scene::open();
        let task = scene.broadcasting(1);
        let other = in_block(b"anything", SUCCESS);
        let leaf = |transaction: &[u8]| Sha256::digest(transaction).to_vec();
        // The signature is ours to vary: it is no part of the txid.
        let (ours, node) = (0_u32..)
            .map(|nonce| {
                [
                    in_block(&task.raw_data, SUCCESS),
                    wire::bytes(2, &nonce.to_be_bytes()),
                ]
                .concat()
            })
            .map(|ours| {
                let node = [leaf(&ours), leaf(&other)].concat();
                (ours, node)
            })
            .take(2_000_000)
            .find(|(_, node)| first_fields(node) == Some(1))
            .expect("one in some ten thousand reads as a message with one field 1");
        let whole = scene.next(3000, &[ours, other]);
        let folded = with_transactions(&whole, &[node]);
        assert_eq!(sqlstate(&observe(&[&folded])), "SL020");
        assert_eq!(sqlstate(&observe(&[&whole])), "");
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }

    #[pg_test]
    fn what_is_not_ours_in_a_block_is_passed_over_whatever_it_is() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        let nobody = wire::bytes(1, &[]);
        let moved = scene.follow(
            3000,
            &[
                in_block(&[0xff; 40], SUCCESS),
                in_block(b"", SUCCESS),
                nobody,
                in_block(&wire::bytes(11, &[0xff, 0xff]), 15),
                in_block(&task.raw_data[1..], SUCCESS),
                in_block(&task.raw_data, SUCCESS),
            ],
        );
        assert_eq!(moved.len(), 1);
        assert_eq!(count("select count(*) from sluice.payments"), 1);
        assert_eq!(
            count("select transactions from sluice.blocks order by number desc limit 1"),
            6
        );
    }

    #[pg_test]
    fn an_envelope_counts_under_any_signature_and_once() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        let resigned = [
            wire::bytes(1, &task.raw_data),
            wire::bytes(2, &[7; 65]),
            wire::bytes(2, &[8; 66]),
            wire::bytes(5, &wire::number(3, SUCCESS)),
        ]
        .concat();
        // Twice in one block, as no chain would have it: the first stands.
        let moved = scene.follow(3000, &[resigned, in_block(&task.raw_data, REVERT)]);
        assert_eq!(moved[0].state, "confirmed");
        assert_eq!(
            one("select receipt from sluice.payments").as_deref(),
            Some("SUCCESS")
        );
        // And again in a later one.
        assert_eq!(
            scene
                .follow(3000, &[in_block(&task.raw_data, REVERT)])
                .len(),
            0
        );
        assert_eq!(count("select count(*) from sluice.payments"), 1);
    }

    #[pg_test]
    fn bytes_that_are_no_block_are_refused_by_name_and_place() {
        let scene = Scene::open();
        let next = literal(&scene.next(3000, &[]).bytes);
        let before = contents();
        for (blocks, code, says) in [
            (
                format!("array[{next}, '\\x00'::bytea]"),
                "SL020",
                "blocks[2]",
            ),
            (format!("array[{next}, ''::bytea]"), "SL020", "blocks[2]"),
            (
                format!("array[{next} || '\\xff'::bytea]"),
                "SL020",
                "blocks[1]",
            ),
            (
                "array['{\"Error\": \"x\"}'::bytea]".to_owned(),
                "SL020",
                "blocks[1]",
            ),
            (format!("array[{next}, null]"), "SL005", "blocks[2]"),
            ("'{}'".to_owned(), "SL005", "1 to 1000"),
            ("null".to_owned(), "SL005", "1 to 1000"),
            (
                format!("array_fill({next}, array[1001])"),
                "SL005",
                "1 to 1000",
            ),
        ] {
            let (found, message) =
                refused(&format!("select sluice.observe_blocks('node', {blocks})"));
            assert_eq!(found, code, "{blocks}");
            assert!(message.contains(says), "{blocks}: {message}");
        }
        assert_eq!(
            sqlstate(&format!(
                "select sluice.observe_blocks(null, array[{next}])"
            )),
            "SL005"
        );
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn no_block_is_followed_before_a_chain_is_named_and_it_is_named_once() {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        assert_eq!(sqlstate(&observe(&[&first])), "SL022");
        let follow = format!(
            "select sluice.follow_from({}, '\\x{GENESIS}')",
            literal(&first.bytes)
        );
        assert_eq!(sqlstate(&follow), "");
        assert_eq!(sqlstate(&follow), "SL022");
        assert_eq!(
            sqlstate(&observe(&[&first])),
            "",
            "and brought again it is there"
        );
    }

    #[pg_test]
    fn a_login_is_credited_with_the_blocks_it_read_without_a_gap_and_no_others() {
        let mut scene = Scene::open();
        let mut blocks = chain_of(&scene, 40);
        blocks.insert(0, scene.tip.clone());
        scene.observe(&blocks);
        run("create role other_observer; grant sluice_runner to other_observer");
        let credited = |from: usize, to: usize| {
            let batch: Vec<&Block> = blocks[from..=to].iter().collect();
            run("set session authorization other_observer");
            run(&observe(&batch));
            run("reset session authorization");
            one("select first_number - 1000 || '..' || last_number - 1000 from sluice.observers where login = 'other_observer'")
                .unwrap_or_default()
        };
        assert_eq!(credited(10, 12), "10..12");
        assert_eq!(credited(13, 15), "10..15", "the next ones");
        assert_eq!(credited(14, 17), "10..17", "some again, and more");
        assert_eq!(credited(11, 12), "10..17", "some again");
        assert_eq!(credited(8, 9), "8..17", "those just before");
        assert_eq!(credited(5, 8), "5..17", "those before, with one again");
        assert_eq!(
            credited(25, 26),
            "25..26",
            "a gap: what was before it does not count any more"
        );
        assert_eq!(
            credited(10, 12),
            "10..12",
            "nor what comes after a gap the other way"
        );
        assert_eq!(credited(9, 30), "9..30", "all of it");
    }
}
