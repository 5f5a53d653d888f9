//! The same bytes sent again, and refused: by then the first copy may be anywhere, so the refusal is no failure.

use sluice_mock_node::{Became, Fault, Rule, Signer, Silence};
use sluice_scenarios::Wallets;
use uuid::Uuid;

use crate::stage::{RESEND_S, SOLID_AFTER_S, Stage, TIME_TO_LIVE_S, answer, work_off_by};

/// What java-tron answers by itself to bytes that are on chain, or in somebody else's pool: all are found before, or without, a
/// look for a duplicate (`Wallet.broadcastTransaction`, `Manager.processTransaction`).
const REFUSALS: [(&str, &str); 7] = [
    ("SIGERROR", "Validate signature error: permission denied"),
    (
        "CONTRACT_VALIDATE_ERROR",
        "Contract validate error : balance is not sufficient.",
    ),
    (
        "CONTRACT_EXE_ERROR",
        "Contract execute error : out of energy",
    ),
    ("BANDWITH_ERROR", "Account resource insufficient error."),
    ("TAPOS_ERROR", "Tapos check error."),
    ("TRANSACTION_EXPIRATION_ERROR", "Transaction expired"),
    ("TOO_BIG_TRANSACTION_ERROR", "Transaction size is too big."),
];

/// Between two sends where an operator wants to know sooner, so that what is on chain is sent again before it is solid.
const SOON_S: u64 = 15;

/// Two withdrawals for each refusal, which is all that the second node has to say of them: one whose first send the first node
/// answers with SUCCESS, and one for which no answer comes, though it was taken.
fn refused_by_the_second_node(stage: &mut Stage) -> Vec<(Uuid, &'static str)> {
    let mut withdrawals = vec![];
    for (code, message) in REFUSALS {
        for is_answered in [true, false] {
            let operation_id = stage.submit();
            if !is_answered {
                let silent = Fault::AcceptThenTimeout {
                    how: Silence::Reset,
                };
                stage.fault(Rule::new(silent).operation(operation_id).node(0));
            }
            let refused = answer(code, message, false);
            stage.fault(Rule::new(refused).operation(operation_id).node(1));
            withdrawals.push((operation_id, code));
        }
    }
    withdrawals
}

/// Each was sent twice, the second time to be refused, and nothing has come of that.
fn assert_refused_once(stage: &Stage, withdrawals: &[(Uuid, &str)]) {
    for ((operation_id, code), is_answered) in withdrawals.iter().zip([true, false].iter().cycle())
    {
        let sent = stage.on_chain(&stage.envelope(*operation_id));
        assert_eq!((sent.sends, sent.answers[*code]), (2, 1), "{sent:?}");
        let state = if *is_answered {
            "broadcast"
        } else {
            "broadcasting"
        };
        assert_eq!(stage.scene.state(*operation_id), state, "{code}");
    }
}

#[test]
fn a_resend_refused_while_the_first_copy_is_in_another_nodes_pool_is_no_failure_and_the_first_copy_pays()
 {
    let mut stage = Stage::with(|config| config.nodes = 2);
    let withdrawals = refused_by_the_second_node(&mut stage);
    stage.fault(Rule::new(Fault::DelayInclusion { blocks: 40 }));
    work_off_by(stage.runner_at(0));

    stage.scene.advance(RESEND_S);
    work_off_by(stage.runner_at(1));
    assert_refused_once(&stage, &withdrawals);
    for (operation_id, _) in &withdrawals {
        let sent = stage.on_chain(&stage.envelope(*operation_id));
        assert_eq!((sent.became, sent.block), (Became::Waiting, None));
    }

    for _ in 0..3 {
        stage.scene.advance(SOLID_AFTER_S);
        work_off_by(stage.runner_at(1));
    }
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(stage.submitted());
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn a_resend_refused_while_the_first_copy_is_on_chain_is_no_failure_and_the_first_copy_has_paid() {
    let mut stage = Stage::with(|config| config.nodes = 2);
    stage.operate(&format!(
        "select sluice.set_setting('resend', '{SOON_S} seconds', 'soon')"
    ));
    let withdrawals = refused_by_the_second_node(&mut stage);
    work_off_by(stage.runner_at(0));

    stage.scene.advance(SOON_S + 3);
    work_off_by(stage.runner_at(1));
    assert_refused_once(&stage, &withdrawals);
    for (operation_id, _) in &withdrawals {
        let sent = stage.on_chain(&stage.envelope(*operation_id));
        assert_eq!((sent.became, sent.solid), (Became::Included, false));
    }

    for _ in 0..3 {
        stage.scene.advance(SOON_S + 3);
        work_off_by(stage.runner_at(1));
    }
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(stage.submitted());
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

/// The network takes no signature of our wallets any more: somebody changed their permissions.
fn change_permissions(stage: &Stage) {
    for wallet in [Wallets::hmac(), Wallets::local()] {
        let key = b"another key".to_vec();
        stage.scene.network.register(wallet, Signer::Hmac { key });
    }
}

/// And takes them again.
fn restore_permissions(stage: &Stage) {
    for (wallet, signer) in Wallets::signers() {
        stage.scene.network.register(wallet, signer);
    }
}

#[test]
fn a_paid_transaction_that_a_lagging_node_and_then_every_node_refuses_in_truth_is_confirmed() {
    // The second node has not seen the reference block yet, and finds that out before it looks for a duplicate.
    let mut stage = Stage::with(|config| {
        config.nodes = 2;
        config.node.lag = 60;
    });
    let abreast = stage.scene.network.change_node(0, |node| node.lag = 0);
    abreast.expect("a node");
    stage.operate(&format!(
        "select sluice.set_setting('resend', '{SOON_S} seconds', 'soon')"
    ));
    let operation_id = stage.submit();
    work_off_by(stage.runner_at(0));
    let txid = stage.envelope(operation_id);

    stage.scene.advance(SOON_S + 3);
    let lagging = stage
        .runner_at(1)
        .set("SLUICE_SOLIDITY", &stage.scene.network.url(0));
    work_off_by(lagging);
    change_permissions(&stage);
    stage.scene.advance(SOON_S + 3);
    work_off_by(stage.runner_at(0));

    let sent = stage.on_chain(&txid);
    assert_eq!(
        (sent.sends, sent.solid, sent.became),
        (3, false, Became::Included)
    );
    assert_eq!(
        (sent.answers["TAPOS_ERROR"], sent.answers["SIGERROR"]),
        (1, 1)
    );
    assert_eq!(stage.scene.state(operation_id), "broadcast");
    stage.pass(SOLID_AFTER_S);
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&[operation_id]);
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn a_duplicate_that_was_refused_before_and_is_in_no_pool_dies_by_its_blocks_and_is_rebuilt() {
    // The node notes an id before it looks at the transaction, and does not forget it when it refuses (`Wallet.java`).
    let mut stage = Stage::with(|config| config.node.trx_cache = true);
    let withdrawals = stage.submit_many(2);
    change_permissions(&stage);
    stage.work_off();
    restore_permissions(&stage);
    stage.pass(RESEND_S);
    for operation_id in &withdrawals {
        let sent = stage.on_chain(&stage.envelope(*operation_id));
        assert_eq!((sent.kept, sent.became), (0, Became::NeverKept), "{sent:?}");
        assert_eq!(
            (
                sent.answers["SIGERROR"],
                sent.answers["DUP_TRANSACTION_ERROR"]
            ),
            (1, 1)
        );
        assert_eq!(stage.scene.state(*operation_id), "broadcast");
    }
    // Up to its last second it may still come into a block.
    stage.pass(2 * RESEND_S);
    for operation_id in &withdrawals {
        assert_eq!(stage.deaths(*operation_id).len(), 0);
    }
    stage.pass(TIME_TO_LIVE_S - 3 * RESEND_S + 3);
    stage.pass(SOLID_AFTER_S);
    for operation_id in &withdrawals {
        stage.assert_paid_by_the_second_after_a_proof(*operation_id);
    }
    stage.scene.assert_books_agree();
}
