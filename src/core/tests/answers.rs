//! Nodes' answers to a broadcast, by name and by what they are good for.

use sluice_core::broadcast::{BroadcastCode, BroadcastVerdict, LONGEST_CODE};

/// As java-tron's `api.proto` (`Return.response_code`) spells them.
const ANSWERS: [(&str, BroadcastVerdict); 15] = [
    ("SUCCESS", BroadcastVerdict::Accepted),
    ("DUP_TRANSACTION_ERROR", BroadcastVerdict::Accepted),
    ("SIGERROR", BroadcastVerdict::Refused),
    ("CONTRACT_VALIDATE_ERROR", BroadcastVerdict::Refused),
    ("CONTRACT_EXE_ERROR", BroadcastVerdict::Refused),
    ("BANDWITH_ERROR", BroadcastVerdict::Refused),
    ("TAPOS_ERROR", BroadcastVerdict::Refused),
    ("TOO_BIG_TRANSACTION_ERROR", BroadcastVerdict::Refused),
    ("TRANSACTION_EXPIRATION_ERROR", BroadcastVerdict::Refused),
    ("OTHER_ERROR", BroadcastVerdict::Refused),
    ("SERVER_BUSY", BroadcastVerdict::Busy),
    ("NO_CONNECTION", BroadcastVerdict::Busy),
    ("NOT_ENOUGH_EFFECTIVE_CONNECTION", BroadcastVerdict::Busy),
    ("BLOCK_UNSOLIDIFIED", BroadcastVerdict::Busy),
    ("NO_ANSWER", BroadcastVerdict::NoAnswer),
];

#[test]
fn every_answer_is_known_by_the_name_that_nodes_give_it() {
    for (name, verdict) in ANSWERS {
        let code = BroadcastCode::from_name(name);
        assert!(!matches!(code, BroadcastCode::Unlisted(_)), "{name}");
        assert_eq!(code.name(), name);
        assert_eq!(code.verdict(), verdict, "{name}");
    }
    assert_eq!(BroadcastCode::LISTED.len(), ANSWERS.len());
}

#[test]
fn an_answer_that_nobody_knows_is_kept_and_counts_as_none() {
    for name in ["", "success", "BANDWIDTH_ERROR", "SIGERROR ", "13"] {
        let code = BroadcastCode::from_name(name);
        assert_eq!(code, BroadcastCode::Unlisted(name.to_owned()));
        assert_eq!(code.name(), name);
        assert_eq!(code.verdict(), BroadcastVerdict::NoAnswer, "{name}");
    }
}

#[test]
fn a_code_without_end_is_cut() {
    let code = BroadcastCode::from_name(&"ß".repeat(1_000_000));
    assert_eq!(code.name(), "ß".repeat(LONGEST_CODE));
}
