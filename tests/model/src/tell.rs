//! What happened, in words: a counterexample is read by people.

use std::fmt;

use crate::database::{Circumstances, Clock};
use crate::model::Action;

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim {
                worker,
                withdrawal,
                found,
            } => write!(f, "worker {worker} claims withdrawal {withdrawal}{found}"),
            Self::Sign { worker } => write!(f, "the signer answers worker {worker}"),
            Self::RecordSignature { worker, paused } => write!(
                f,
                "worker {worker} records its signature{}",
                if *paused {
                    ", while sending is paused"
                } else {
                    ""
                }
            ),
            Self::Send { worker, answer } => {
                write!(
                    f,
                    "worker {worker} sends, and is answered {}",
                    answer.code().name()
                )
            }
            Self::RecordAnswer { worker } => write!(f, "worker {worker} records the answer"),
            Self::Crash { worker } => write!(f, "worker {worker} dies"),
            Self::Lie { worker, to } => write!(f, "worker {worker} says that it is {to}"),
            Self::Zombie {
                withdrawal,
                transaction,
            } => write!(
                f,
                "somebody who was asked to sign {} does, and sends it",
                name(*withdrawal, *transaction)
            ),
            Self::Arrive {
                withdrawal,
                transaction,
                node,
            } => write!(f, "node {node} gets {}", name(*withdrawal, *transaction)),
            Self::Drop {
                withdrawal,
                transaction,
                node,
            } => write!(f, "node {node} drops {}", name(*withdrawal, *transaction)),
            Self::Produce { gap, taken } => {
                write!(f, "a block, {} s after its parent", u32::from(*gap) * 30)?;
                for take in taken {
                    let bytes = name(take.withdrawal, take.transaction);
                    write!(f, ", with {bytes}: {}", take.outcome.receipt().name())?;
                }
                Ok(())
            }
            Self::Fork => write!(f, "the newest block is forked away"),
            Self::Observe { blocks: 1 } => write!(f, "the follower reads a block"),
            Self::Observe { blocks } => write!(f, "the follower reads {blocks} blocks"),
            Self::Cancel { withdrawal } => write!(f, "somebody cancels withdrawal {withdrawal}"),
        }
    }
}

impl fmt::Display for Circumstances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clock {
            Clock::Agrees => {}
            Clock::Ahead => write!(f, ", while the database's clock is ahead")?,
            Clock::FarAhead => write!(f, ", while the database's clock is a day ahead")?,
        }
        if self.paused {
            write!(f, ", while building is paused")?;
        }
        if self.asset_changed {
            write!(f, ", after its asset has changed")?;
        }
        Ok(())
    }
}

fn name(withdrawal: u8, transaction: u8) -> String {
    format!("transaction {withdrawal}.{transaction}")
}
