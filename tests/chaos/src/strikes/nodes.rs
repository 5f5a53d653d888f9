//! Faults of nodes: what they answer, what becomes of the transactions they take, what they show of the chain. Each is a rule
//! of the network's with a count, labelled by its kind: it strikes the next calls that meet it, and the network counts.

use serde_json::json;
use sluice_mock_node::{Endpoint, Fault, Rule, Scope, SignatureForm, Silence};
use uuid::Uuid;

use crate::draw::Draw;
use crate::kind::Kind;
use crate::stage::Stage;

/// What java-tron refuses with; none of them proves anything.
const REFUSALS: [&str; 12] = [
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
];

const SILENCES: [Silence; 3] = [Silence::Hold, Silence::Reset, Silence::Close];

/// Sets a trap for the next calls.
pub fn strike(stage: &mut Stage, kind: Kind, mut draw: Draw) {
    let rule = match kind {
        Kind::AcceptedInSilence => {
            let how = draw.pick(&SILENCES);
            Rule::new(Fault::AcceptThenTimeout { how }).times(draw.between(1, 4))
        }
        Kind::DroppedInSilence => {
            let how = draw.pick(&SILENCES);
            Rule::new(Fault::DropThenTimeout { how }).times(draw.between(1, 4))
        }
        Kind::Refused => answer(draw.pick(&REFUSALS), "", false).times(draw.between(1, 5)),
        Kind::RefusedAndKept => refused_and_kept(&mut draw).times(draw.between(1, 4)),
        Kind::FalseWelcome => false_welcome(&mut draw).times(draw.between(1, 3)),
        Kind::OddAnswer => Rule::new(odd_answer(&mut draw))
            .at(Scope::Broadcasts)
            .times(draw.between(1, 3)),
        Kind::Slow => Rule::new(Fault::Delay {
            ms: draw.between(50, 400),
            before: draw.below(2) == 0,
        })
        .times(draw.between(1, 6)),
        Kind::Evicted => {
            let after_ms = i64::try_from(draw.below(20_000)).expect("a small number");
            Rule::new(Fault::Evict { after_ms }).times(draw.between(1, 4))
        }
        Kind::LocalOnly => Rule::new(Fault::LocalOnly {}).times(draw.between(1, 4)),
        Kind::NeverIncluded => never_included(stage, &mut draw),
        Kind::Delayed => {
            let blocks = i64::try_from(draw.between(5, 30)).expect("a small number");
            Rule::new(Fault::DelayInclusion { blocks }).times(draw.between(1, 3))
        }
        Kind::AtExpiration => Rule::new(Fault::IncludeAtExpiration {}).times(1),
        Kind::RanOut => receipt(draw.pick(&["OUT_OF_ENERGY", "OUT_OF_TIME"])).times(1),
        Kind::Reverted => receipt(draw.pick(&[
            "REVERT",
            "TRANSFER_FAILED",
            "ILLEGAL_OPERATION",
            "BAD_JUMP_DESTINATION",
        ]))
        .times(1),
        Kind::Undecided => receipt(draw.pick(&["ABSENT", "DEFAULT", "UNKNOWN", "77"])).times(1),
        Kind::Resigned => Rule::new(Fault::Resign {
            form: draw.pick(&[
                SignatureForm::HighS,
                SignatureForm::OtherV,
                SignatureForm::Trailing,
            ]),
        })
        .times(draw.between(1, 3)),
        Kind::BadBlock => bad_block(stage, &mut draw),
        Kind::Behind => {
            let blocks = i64::try_from(draw.between(1, 8)).expect("a small number");
            Rule::new(Fault::Behind { blocks })
                .node(node(stage, &mut draw))
                .times(draw.between(5, 40))
        }
        Kind::OtherBackend => {
            let other = node(stage, &mut draw);
            Rule::new(Fault::Backend { node: other })
                .node(node(stage, &mut draw))
                .times(draw.between(5, 20))
        }
        Kind::Leaked => Rule::new(Fault::LeakUnsolid {})
            .node(node(stage, &mut draw))
            .at(Scope::Named(Endpoint::BlockByLimitNext))
            .times(draw.between(1, 10)),
        other => unreachable!("{other} is no fault of a node"),
    };
    let labelled = Rule {
        label: kind.name().to_owned(),
        ..rule
    };
    stage
        .network
        .add_fault(labelled)
        .unwrap_or_else(|error| panic!("{kind}: {error}"));
}

fn node(stage: &Stage, draw: &mut Draw) -> usize {
    draw.index(stage.network.urls().len())
}

fn answer(code: &str, message: &str, keep: bool) -> Rule {
    Rule::new(Fault::Answer {
        code: code.to_owned(),
        message: message.to_owned(),
        keep,
        result: None,
    })
}

fn receipt(result: &str) -> Rule {
    Rule::new(Fault::Receipt {
        result: result.to_owned(),
    })
}

fn refused_and_kept(draw: &mut Draw) -> Rule {
    match draw.below(3) {
        0 => answer(
            "NOT_ENOUGH_EFFECTIVE_CONNECTION",
            "P2P broadcast failed.",
            true,
        ),
        1 => answer("OTHER_ERROR", "Error: null", true),
        _ => answer(draw.pick(&REFUSALS), "", true),
    }
}

fn false_welcome(draw: &mut Draw) -> Rule {
    match draw.below(4) {
        0 => answer("SUCCESS", "", false),
        1 => answer(
            "DUP_TRANSACTION_ERROR",
            "Transaction already exists.",
            false,
        ),
        2 => answer("DUP_TRANSACTION_ERROR", "Dup transaction.", false),
        _ => answer("A_CODE_OF_TOMORROW", "", draw.below(2) == 0),
    }
}

fn odd_answer(draw: &mut Draw) -> Fault {
    let keep = draw.below(2) == 0;
    match draw.below(8) {
        0 => Fault::Empty { keep },
        1 => Fault::Error {
            message: "class java.lang.IllegalAccessException : lack of computing resources"
                .to_owned(),
            keep,
        },
        2 => Fault::Status {
            status: draw.pick(&[403, 404, 429, 503]),
            keep,
        },
        3 => Fault::Lite {},
        4 => Fault::WrongTxid {},
        5 => Fault::Truncated {},
        6 => Fault::Missing {
            fields: vec!["code".to_owned()],
        },
        _ => Fault::Patch {
            merge: json!({"result": true, "code": "SIGERROR"}),
        },
    }
}

/// One operation's transactions, for as many blocks as two envelopes live.
fn never_included(stage: &mut Stage, draw: &mut Draw) -> Rule {
    let rule = Rule::new(Fault::NeverInclude {});
    let waiting: Vec<Uuid> = stage.clients.ledger().ids.into_keys().collect();
    if waiting.is_empty() {
        return rule.times(20);
    }
    // Of the newest: the others are paid already.
    let newest = stage.newest_operations(8);
    let victim = if newest.is_empty() {
        waiting[draw.index(waiting.len())]
    } else {
        newest[draw.index(newest.len())]
    };
    rule.operation(victim).times(draw.between(30, 120))
}

/// One node's blocks; two in three times only as the follower sees them that reads no other node, and must alarm.
fn bad_block(stage: &mut Stage, draw: &mut Draw) -> Rule {
    let stripped = Fault::StripTransactions {};
    let altered = Fault::AlterRet {
        result: "REVERT".to_owned(),
    };
    let fault = match draw.below(4) {
        0 => stripped,
        1 => altered,
        2 => Fault::ForeignParent {},
        _ => {
            return Rule::new(Fault::Gap {})
                .node(node(stage, draw))
                .times(draw.between(1, 6));
        }
    };
    let rule = Rule::new(fault).times(draw.between(1, 6));
    if draw.below(3) == 0 {
        return rule.node(node(stage, draw));
    }
    // A new process: the one before may rest for a while after an answer that was none.
    let follower = stage.follower();
    stage.workers[follower].kill();
    stage.start(follower);
    rule.worker(&stage.workers[follower].worker_id())
}
