//! Blocks that do not follow, or not hold together, or come in an array of another shape: refused, and nothing of them stays.

use super::scene::*;
use pgrx::prelude::*;

fn observe(blocks: &[&Block]) -> String {
    let list: Vec<String> = blocks.iter().map(|block| literal(&block.bytes)).collect();
    format!(
        "select * from sluice.observe_blocks('node', array[{}])",
        list.join(", ")
    )
}

/// A block in which a transaction is left out, under the header that was made over both.
fn stripped(number: i64, parent: &[u8; 32], time: i64, transactions: &[Vec<u8>]) -> Block {
    let whole = block(number, parent, time, transactions);
    let skipped = wire::bytes(1, &transactions[0]).len();
    Block {
        bytes: whole.bytes[skipped..].to_vec(),
        ..whole
    }
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn blocks_that_do_not_follow_are_refused_and_leave_nothing() {
        let mut scene = Scene::open();
        let first = scene.tip.clone();
        scene.follow(3000, &[]);
        let tip = scene.tip.clone();
        let transaction = in_block(&[1, 2, 3], SUCCESS);
        let next = scene.next(3000, std::slice::from_ref(&transaction));
        let after = block(next.number + 1, &next.id, next.time + 3000, &[]);
        let later = block(after.number + 1, &after.id, after.time + 3000, &[]);
        let foreign = block(next.number, &[7; 32], next.time, &[]);
        let early = block(next.number, &tip.id, tip.time, &[]);
        let earlier = block(next.number, &tip.id, tip.time - 1, &[]);
        let twin = block(tip.number, &first.id, tip.time + 1, &[]);
        let before_first = block(first.number - 1, &[0; 32], first.time - 3000, &[]);
        let other_after = block(next.number + 1, &[7; 32], after.time, &[]);
        let same_time = block(next.number + 1, &next.id, next.time, &[]);
        let cut = stripped(
            next.number,
            &tip.id,
            next.time,
            &[transaction.clone(), transaction],
        );
        for (blocks, state, fault) in [
            (&[&after][..], "SL021", "blocks[1]"),
            (&[&next, &later], "SL021", "blocks[2]"),
            (&[&after, &next], "SL021", "blocks[2]"),
            (&[&next, &next], "SL021", "blocks[2]"),
            (&[&next, &other_after], "SL021", "blocks[2]"),
            (&[&next, &same_time], "SL021", "blocks[2]"),
            (&[&foreign], "SL021", "block 1002"),
            (&[&early], "SL021", "block 1002"),
            (&[&earlier], "SL021", "block 1002"),
            (&[&twin], "SL021", "blocks[1]"),
            (&[&before_first], "SL021", "blocks[1]"),
            (&[&cut], "SL020", "blocks[1]"),
            (&[&tip, &cut], "SL020", "blocks[2]"),
        ] {
            refuses(&observe(blocks), state, fault);
        }
        for (blocks, fault) in [
            ("null", "blocks"),
            ("'{}'", "blocks"),
            ("array[null::bytea]", "blocks[1]"),
            ("array_fill(''::bytea, array[1001])", "blocks"),
        ] {
            refuses(
                &format!("select sluice.observe_blocks('node', {blocks})"),
                "SL005",
                fault,
            );
        }
        let gap = format!(
            "select sluice.observe_blocks('node', array[{}, null])",
            literal(&next.bytes)
        );
        refuses(&gap, "SL005", "blocks[2]");
        run(&observe(&[&tip, &next, &after]));
        assert_eq!(count("select max(number) from sluice.blocks"), after.number);
        let again = observe(&[&first, &tip, &next, &after]);
        run(&again);
        let before = contents();
        run(&again);
        assert_eq!(contents(), before, "seen before");
    }

    /// An array of PostgreSQL may begin at any number and have rows. What a count from 1 passes over would be followed unread.
    #[pg_test]
    fn no_shape_of_array_hides_a_payment_from_the_database() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(297);
        let paying = scene.next(3000, &[in_block(&task.raw_data, SUCCESS)]);
        let after = block(paying.number + 1, &paying.id, paying.time + 3000, &[]);
        let element = |block: &Block| format!("\"\\\\x{}\"", hex::encode(&block.bytes));
        let (one_block, two) = (
            element(&paying),
            format!("{},{}", element(&paying), element(&after)),
        );
        for array in [
            format!("[0:0]={{{one_block}}}"),
            format!("[-5:-5]={{{one_block}}}"),
            format!("[2:2]={{{one_block}}}"),
            format!("[-1:0]={{{two}}}"),
            format!("[0:1]={{{two}}}"),
            format!("{{{{{one_block}}}}}"),
            format!("{{{{{}}},{{{}}}}}", element(&paying), element(&after)),
            format!("[1:1][0:1]={{{{{two}}}}}"),
        ] {
            let call = format!("select sluice.observe_blocks('node', '{array}'::bytea[])");
            refuses(&call, "SL005", "blocks");
        }
        run(&observe(&[&paying, &after]));
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }
}
