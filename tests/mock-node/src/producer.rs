//! The block producers: what they hold, what they pack, and how a fault lets them hold back, leave out, or change what a
//! block says of a transaction (`Manager.generateBlock`).

use std::collections::HashMap;
use std::sync::Arc;

use sluice_core::envelope::Txid;

use crate::block::Included;
use crate::faults::{Fault, SignatureForm, Slot};
use crate::log::{Happened, Holder};
use crate::net::Net;
use crate::outcome::Outcome;
use crate::pool::Pool;
use crate::rules::{Struck, Subject};
use crate::text::Tag;
use crate::transaction::Tx;

/// `ChainConstant.BLOCK_SIZE`.
const MAX_BLOCK_BYTES: usize = 2_000_000;

/// What producers hold. They are peers of every node and never lag.
#[derive(Debug, Default)]
pub struct Producers {
    /// As any node's.
    pub pool: Pool,
    /// Transactions held back on purpose, out of reach of a pool's time-out: any holder of the bytes can still bring them
    /// in until they are dead.
    pub held: Vec<Held>,
    /// Results that a fork has decided.
    pub results: HashMap<Txid, Outcome>,
}

/// A transaction held back.
#[derive(Debug, Clone)]
pub struct Held {
    /// The transaction.
    pub tx: Arc<Tx>,
    /// Until when.
    pub until: Until,
}

/// When a transaction held back is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// In the first block of this height or above.
    Height(i64),
    /// In the first block stamped so or later.
    Time(i64),
}

impl Net {
    /// The transactions of the next block: those held back that are due, then the pool in the order in which it was
    /// filled. What fails the checks is lost to the producers.
    pub(crate) fn pack(&mut self, timestamp: i64) -> Vec<Included> {
        let number = self.trunk.head().number + 1;
        let due: Vec<_> = self
            .producers
            .held
            .extract_if(.., |held| match held.until {
                Until::Height(height) => height <= number,
                Until::Time(time) => time <= timestamp,
            })
            .map(|held| held.tx)
            .collect();
        let mut packed = Vec::new();
        let mut size = 0;
        for tx in due {
            self.pack_one(tx, &mut packed, &mut size);
        }
        let waiting: Vec<_> = self
            .producers
            .pool
            .iter()
            .map(|p| Arc::clone(&p.tx))
            .collect();
        for tx in waiting {
            if self.may_pack(&tx, number, timestamp) {
                self.producers.pool.remove(&tx.txid);
                self.pack_one(tx, &mut packed, &mut size);
            }
        }
        packed
    }

    /// Whether a pooled transaction is tried now; a fault may have it left out or held back.
    fn may_pack(&mut self, tx: &Arc<Tx>, number: i64, timestamp: i64) -> bool {
        let until = match self.strike_one(Slot::Inclusion, tx) {
            None => return true,
            Some(Fault::DelayInclusion { blocks }) if blocks > 0 => {
                Until::Height(number.saturating_add(blocks))
            }
            Some(Fault::IncludeAtExpiration {}) if tx.raw.expiration > timestamp => {
                Until::Time(tx.raw.expiration)
            }
            Some(Fault::NeverInclude {}) => return false,
            Some(_) => return true,
        };
        self.producers.pool.remove(&tx.txid);
        self.hold(Arc::clone(tx), until);
        false
    }

    /// Holds a transaction back.
    pub(crate) fn hold(&mut self, tx: Arc<Tx>, until: Until) {
        self.log
            .step(&tx.txid, self.clock.now(), Happened::HeldBack {});
        self.producers.held.push(Held { tx, until });
    }

    fn pack_one(&mut self, tx: Arc<Tx>, packed: &mut Vec<Included>, size: &mut usize) {
        let again = packed.iter().any(|included| included.tx.txid == tx.txid);
        let failed = match self.check_against(&self.trunk, &tx) {
            Ok(()) if again => Some("DUP_TRANSACTION_ERROR"),
            Ok(()) => None,
            Err(refusal) => Some(refusal.code),
        };
        let bytes = tx.encode(&tx.signatures, &Outcome::SUCCESS.ret()).len();
        let failed = failed.or((*size + bytes > MAX_BLOCK_BYTES).then_some("block is full"));
        if let Some(why) = failed {
            let dropped = Happened::Dropped {
                by: Holder::Producers,
                why: why.to_owned(),
            };
            self.log.step(&tx.txid, self.clock.now(), dropped);
            return;
        }
        *size += bytes;
        let outcome = self.outcome_of(&tx);
        let signatures = match self.strike_one(Slot::Signature, &tx) {
            Some(Fault::Resign { form }) => tx
                .signatures
                .iter()
                .map(|signature| reform(signature, form))
                .collect(),
            Some(_) | None => tx.signatures.clone(),
        };
        packed.push(Included {
            tx,
            signatures,
            ret: outcome.ret(),
            outcome,
            foreign: false,
        });
    }

    fn outcome_of(&mut self, tx: &Tx) -> Outcome {
        if let Some(outcome) = self.producers.results.remove(&tx.txid) {
            return outcome;
        }
        match self.strike_one(Slot::Receipt, tx) {
            Some(Fault::Receipt { result }) => Outcome::parse(&result).unwrap_or(Outcome::SUCCESS),
            Some(_) | None => Outcome::SUCCESS,
        }
    }

    fn strike_one(&mut self, slot: Slot, tx: &Tx) -> Option<Fault> {
        let subject = Subject {
            owner: tx.owner,
            txid: Some(tx.txid),
            tag: tx.tag().map(Tag),
            ..Subject::default()
        };
        self.faults
            .strike(&[slot], &subject)
            .into_iter()
            .next()
            .map(|Struck { fault, .. }| fault)
    }
}

/// The order of secp256k1's group (SEC 2, section 2.4.1).
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// Another form of the same signature; one too short to be a signature stays as it is.
fn reform(signature: &[u8], form: SignatureForm) -> Vec<u8> {
    let mut out = signature.to_vec();
    if out.len() < 65 {
        return out;
    }
    match form {
        SignatureForm::HighS => {
            let mut borrow = 0;
            for place in (0..32).rev() {
                let value = i32::from(ORDER[place]) - i32::from(signature[32 + place]) - borrow;
                borrow = i32::from(value < 0);
                out[32 + place] = value.rem_euclid(256) as u8;
            }
            out[64] = if out[64] >= 27 {
                ((out[64] - 27) ^ 1) + 27
            } else {
                out[64] ^ 1
            };
        }
        SignatureForm::OtherV => {
            out[64] = if out[64] >= 27 {
                out[64] - 27
            } else {
                out[64] + 27
            };
        }
        SignatureForm::Trailing => out.extend_from_slice(b"more"),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::signature;

    #[test]
    fn every_form_of_a_signature_recovers_the_same_signer() {
        let key = crate::foreign::key(1, "signer");
        let txid = Txid::of(b"anything");
        let sent = key.sign(&txid).to_vec();
        for form in [
            SignatureForm::HighS,
            SignatureForm::OtherV,
            SignatureForm::Trailing,
        ] {
            let other = reform(&sent, form);
            assert_ne!(other, sent, "{form:?}");
            let signer = signature::recover(&txid, &other[..65]).expect("a signature");
            assert_eq!(signer, key.address(), "{form:?}");
        }
        assert_eq!(
            reform(&reform(&sent, SignatureForm::HighS), SignatureForm::HighS),
            sent
        );
    }
}
