//! The chain as a clock and a ruler: block times, slots, the bounds that follow from how TRON makes blocks, and the
//! networks that have a name.

use std::fmt;

/// Milliseconds since the Unix epoch as a block's header states them. Every decision about an envelope's life reads
/// this clock and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainTime(pub i64);

impl ChainTime {
    /// The slot this moment lies in.
    #[must_use]
    pub const fn slot(self) -> Slot {
        Slot(self.0.div_euclid(SLOT_MS))
    }
}

impl fmt::Display for ChainTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A minute of chain time, counted from the Unix epoch. All envelopes built in one slot refer to its first followed
/// block, so that two builders that know nothing of each other build the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub i64);

/// Length of a slot, in milliseconds.
pub const SLOT_MS: i64 = 60_000;

/// The longest time to live of any envelope, in milliseconds. A constant and not a setting: after a restore, what an
/// earlier life of the database may have built is over once this much chain time has passed.
pub const MAX_TIME_TO_LIVE_MS: i64 = 600_000;

/// java-tron accepts an expiration at most this far beyond the head block's time (`Constant.java`,
/// `MAXIMUM_TIME_UNTIL_EXPIRATION`).
pub const MAX_EXPIRATION_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;

/// A network that has a name, known by the id of its block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// TRON's main network.
    Main,
    /// The Nile test network.
    Nile,
    /// Any other chain: a private one, or a mock.
    Other,
}

const MAIN_GENESIS: &str = "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc";
const NILE_GENESIS: &str = "0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc";

impl Network {
    /// The network whose block 0 has this id.
    #[must_use]
    pub fn of_genesis(id: &[u8; 32]) -> Self {
        match hex::encode(id).as_str() {
            MAIN_GENESIS => Self::Main,
            NILE_GENESIS => Self::Nile,
            _ => Self::Other,
        }
    }

    /// Whether a mock signature may stand in for a real one: never where coins have a price or people share a test net.
    #[must_use]
    pub const fn takes_mock_signatures(self) -> bool {
        match self {
            Self::Main | Self::Nile => false,
            Self::Other => true,
        }
    }
}
