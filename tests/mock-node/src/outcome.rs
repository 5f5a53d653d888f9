//! How a transaction ended in a block: java-tron's `contractResult` codes by name and number, and what a test may ask for
//! beyond them (no result at all, a number that no name has).

use prost::Message;
use sluice_core::proto::TransactionResult;

/// `Transaction.Result.contractResult` of Tron.proto; the place in the list is the number.
const NAMES: [&str; 16] = [
    "DEFAULT",
    "SUCCESS",
    "REVERT",
    "BAD_JUMP_DESTINATION",
    "OUT_OF_MEMORY",
    "PRECOMPILED_CONTRACT",
    "STACK_TOO_SMALL",
    "STACK_TOO_LARGE",
    "ILLEGAL_OPERATION",
    "STACK_OVERFLOW",
    "OUT_OF_ENERGY",
    "OUT_OF_TIME",
    "JVM_STACK_OVER_FLOW",
    "UNKNOWN",
    "TRANSFER_FAILED",
    "INVALID_CODE",
];

/// The number of `SUCCESS`.
const SUCCESS: i32 = 1;

/// What a block says became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// One `ret` entry with this `contractRet`, which need not be a number that has a name.
    Code(i32),
    /// No `ret` entry, as in very old blocks.
    Absent,
}

impl Outcome {
    /// The transaction did what it asked for.
    pub const SUCCESS: Self = Self::Code(SUCCESS);

    /// `SUCCESS`, `REVERT`, …; `ABSENT`; a plain number for `contractRet` without a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "ABSENT" {
            return Some(Self::Absent);
        }
        if let Some(code) = NAMES.iter().position(|name| *name == text) {
            return i32::try_from(code).ok().map(Self::Code);
        }
        text.parse().ok().map(Self::Code)
    }

    /// The text that [`Self::parse`] reads.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Absent => "ABSENT".to_owned(),
            Self::Code(code) => named(code).map_or_else(|| code.to_string(), str::to_owned),
        }
    }

    /// Whether the transaction did what it asked for.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// The `ret` entries that a block carries: `2a 02 18 01` for a success, `2a 00` for DEFAULT.
    #[must_use]
    pub fn ret(self) -> Vec<Vec<u8>> {
        match self {
            Self::Absent => Vec::new(),
            Self::Code(code) => {
                vec![
                    TransactionResult {
                        contract_ret: code,
                        ..Default::default()
                    }
                    .encode_to_vec(),
                ]
            }
        }
    }
}

/// A `contractResult` as java-tron's JSON prints it. For a number without a name protobuf's Java code makes one up
/// (`Descriptors.EnumDescriptor.findValueByNumberCreatingIfUnknown`).
#[must_use]
pub fn json_name(code: i32) -> String {
    named(code).map_or_else(
        || format!("UNKNOWN_ENUM_VALUE_contractResult_{code}"),
        str::to_owned,
    )
}

fn named(code: i32) -> Option<&'static str> {
    usize::try_from(code)
        .ok()
        .and_then(|code| NAMES.get(code))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_back_from_its_name() {
        for code in 0..20 {
            let outcome = Outcome::Code(code);
            assert_eq!(Outcome::parse(&outcome.name()), Some(outcome));
        }
        assert_eq!(Outcome::parse("ABSENT"), Some(Outcome::Absent));
        assert_eq!(Outcome::parse("no such result"), None);
    }

    #[test]
    fn a_success_ends_a_transaction_with_2a021801() {
        assert_eq!(Outcome::SUCCESS.ret(), vec![vec![0x18, 0x01]]);
        assert_eq!(Outcome::Code(0).ret(), vec![Vec::<u8>::new()]);
        assert!(Outcome::Absent.ret().is_empty());
    }
}
