//! Two branches of the chain behind one address: some of its backends have not heard that the branch they hold has lost. What
//! only the losing branch holds was never paid, and nothing of it is taken.

use std::collections::HashSet;

use sluice_core::block::decode_block;
use sluice_mock_node::{Endpoint, Fault, ForkPlan, Rule, Scope};
use uuid::Uuid;

use crate::stage::{RESEND_S, SOLID_AFTER_S, Stage, TIME_TO_LIVE_S, work_off_by};

/// The backend that is asked, and the one on the losing branch.
const ABREAST: usize = 0;
const ON_THE_LOSING_BRANCH: usize = 1;

/// Each block on file from this one on is the chain's.
fn assert_followed_the_chain(stage: &Stage, from: i64) {
    let rows = stage.scene.database.superuser().query(
        "select number, id from sluice.blocks where number >= $1 order by number",
        &[&from],
    );
    let rows = rows.expect("followed blocks can be read");
    assert!(!rows.is_empty(), "the branches were read");
    for row in rows {
        let (number, id): (i64, Vec<u8>) = (row.get(0), row.get(1));
        let bytes = stage.scene.network.block_bytes(number);
        let block = decode_block(&bytes.expect("it is there")).expect("it is a block");
        assert_eq!(id, block.id, "block {number}");
    }
}

#[test]
fn what_only_a_backend_on_a_losing_branch_shows_is_never_confirmed_and_what_the_winning_one_holds_is()
 {
    let mut stage = Stage::with(|config| config.nodes = 2);
    let [stays, lost]: [Uuid; 2] = [(); 2].map(|()| stage.submit());
    work_off_by(stage.runner_at(ABREAST));
    stage.scene.advance(12);
    let [first_of_stays, first_of_lost] = [stays, lost].map(|id| stage.envelope(id));
    for txid in [first_of_stays, first_of_lost] {
        let sent = stage.on_chain(&txid);
        assert!(sent.block.is_some() && !sent.solid, "{sent:?}");
    }
    let plan = ForkPlan {
        drop: HashSet::from([first_of_lost]),
        ..ForkPlan::default()
    };
    let forked = stage
        .scene
        .network
        .fork(8, 9, 0, plan, &[ON_THE_LOSING_BRANCH]);
    let common = forked.expect("what is not solid can be erased").common;
    stage.fault(Rule::new(Fault::NeverInclude {}).txid(first_of_lost));

    // The follower has fallen behind, so it asks for many at once, and it is the other backend that answers that: all of its
    // blocks are sound, and follow from each other and from what is on file.
    let other_backend = Fault::Backend {
        node: ON_THE_LOSING_BRANCH,
    };
    stage.fault(Rule::new(other_backend).at(Scope::Full(Endpoint::BlockByLimitNext)));
    stage.scene.advance(SOLID_AFTER_S);
    work_off_by(stage.runner_at(ABREAST));
    let struck = stage.scene.network.faults_struck();
    assert!(struck["backend"] > 0, "it was asked: {struck:?}");
    stage.scene.assert_paid_once(stays);
    assert_eq!(stage.on_chain(&first_of_lost).block, None);
    assert_eq!(stage.scene.state(lost), "broadcast");
    assert_eq!(stage.envelope(lost), first_of_lost);
    assert_followed_the_chain(&stage, common + 1);

    let mut left_s = TIME_TO_LIVE_S + 2 * SOLID_AFTER_S;
    while left_s > 0 {
        let some = left_s.min(RESEND_S);
        stage.scene.advance(some);
        work_off_by(stage.runner_at(ABREAST));
        left_s -= some;
    }
    stage.assert_paid_by_the_second_after_a_proof(lost);
    assert_followed_the_chain(&stage, common + 1);
    stage.scene.assert_books_agree();
}
