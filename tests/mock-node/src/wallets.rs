//! Whose signature a node takes: the accounts' permissions, as far as this network keeps any. An account that nobody
//! registered is its own signer, as on TRON.

use std::collections::HashMap;

use sluice_core::address::Address;
use sluice_core::signature;

use crate::transaction::Tx;

/// `Permission_id` of the owner permission.
const OWNER_PERMISSION: i32 = 0;
/// The active permission that every account has from the start, with the owner's own key
/// (`AccountCapsule.createDefaultActivePermission`).
const DEFAULT_ACTIVE_PERMISSION: i32 = 2;
/// What java-tron reads of a signature; more may follow (`TransactionCapsule.checkWeight`).
const SIGNATURE_LEN: usize = 65;

/// How an account's signature is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// HMAC-SHA256 under this key: the mock scheme.
    Hmac {
        /// The key.
        key: Vec<u8>,
    },
    /// A secp256k1 key with this address, under this permission.
    Secp256k1 {
        /// The key's address.
        signer: Address,
        /// 0 for the owner permission.
        permission_id: i32,
    },
}

/// The registered accounts.
#[derive(Debug, Default)]
pub struct Wallets {
    hmac: HashMap<Address, Vec<u8>>,
    signers: HashMap<(Address, i32), Address>,
}

impl Wallets {
    /// From now on the account's transactions are judged so. A key replaces the one before.
    pub fn register(&mut self, owner: Address, signer: Signer) {
        match signer {
            Signer::Hmac { key } => {
                self.hmac.insert(owner, key);
            }
            Signer::Secp256k1 {
                signer,
                permission_id,
            } => {
                self.hmac.remove(&owner);
                self.signers.insert((owner, permission_id), signer);
            }
        }
    }

    /// Whether the signatures carry the permission that the transaction names; else what java-tron's message says
    /// (`TransactionCapsule.validateSignature`).
    pub fn check(&self, tx: &Tx) -> Result<(), String> {
        let Some(owner) = tx.owner else {
            return Err("owner address is not set or wrong".to_owned());
        };
        if tx.signatures.is_empty() {
            return Err("miss sig or contract".to_owned());
        }
        for sent in &tx.signatures {
            if sent.len() < SIGNATURE_LEN {
                return Err(format!("Signature size is {}", sent.len()));
            }
        }
        let permission = tx.permission_id();
        if permission != OWNER_PERMISSION && permission < DEFAULT_ACTIVE_PERMISSION {
            return Err("Permission type is error".to_owned());
        }
        match self.hmac.get(&owner) {
            Some(key) => check_hmac(key, tx),
            None => self.check_secp256k1(owner, permission, tx),
        }
    }

    fn check_secp256k1(&self, owner: Address, permission: i32, tx: &Tx) -> Result<(), String> {
        let registered = self.signers.get(&(owner, permission)).copied();
        let signer = match (registered, permission) {
            (Some(signer), _) => signer,
            (None, OWNER_PERMISSION | DEFAULT_ACTIVE_PERMISSION) => owner,
            (None, _) => return Err("permission isn't exit".to_owned()),
        };
        // Every permission here has one key of full weight.
        if tx.signatures.len() > 1 {
            return Err(format!(
                "Signature count is {} more than key counts of permission : 1",
                tx.signatures.len()
            ));
        }
        for sent in &tx.signatures {
            let by = signature::recover(&tx.txid, &sent[..SIGNATURE_LEN])
                .map_err(|error| error.to_string())?;
            if by != signer {
                return Err(format!(
                    "{} is signed by {by} but it is not contained of permission.",
                    hex::encode(sent)
                ));
            }
        }
        Ok(())
    }
}

fn check_hmac(key: &[u8], tx: &Tx) -> Result<(), String> {
    let [sent] = tx.signatures.as_slice() else {
        return Err(format!(
            "Signature count is {} more than key counts of permission : 1",
            tx.signatures.len()
        ));
    };
    if signature::hmac_verify(key, &tx.txid, &sent[..SIGNATURE_LEN]) {
        Ok(())
    } else {
        Err("the signature is not the HMAC of this transaction under the registered key".to_owned())
    }
}
