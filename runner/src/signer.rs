//! Signers: who holds keys, behind one trait. A signer may be slow or fail; what it answers late or wrongly does no harm,
//! for the database checks every signature and offers the same digest again until the envelope is dead.

pub mod hmac;
pub mod local;
#[cfg(feature = "failpoints")]
mod misbehaving;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sluice_core::address::Address;
use sluice_core::envelope::{Txid, transfer_of};

use crate::config::{SignerRule, WalletName, WalletRule};
use crate::secret::SecretError;

/// What a signer is asked to sign: the digest, and the bytes it is the digest of.
#[derive(Debug, Clone, Copy)]
pub struct Digest<'a> {
    /// SHA-256 of `raw_data`: what is signed.
    pub txid: &'a Txid,
    /// The transaction, for a signer with a policy of its own.
    pub raw_data: &'a [u8],
}

/// A holder of a key.
#[async_trait]
pub trait Signer: Send + Sync {
    /// For logs: which kind, and which key it holds, without any part of a secret.
    fn name(&self) -> String;

    /// A signature of the digest, as 65 bytes r, s, v.
    async fn sign(&self, digest: Digest<'_>) -> Result<Vec<u8>, SignerError>;
}

/// Why there is no signature.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// No signer is configured for the wallet.
    #[error(
        "no signer is configured for wallet {0}: every runner must be able to sign for every wallet"
    )]
    NoSigner(Address),
    /// The digest is not that of the bytes.
    #[error(
        "the digest {digest} offered for signing is not that of its bytes, which is {computed}: nothing was signed"
    )]
    OtherDigest {
        /// As it was offered.
        digest: Txid,
        /// As it is.
        computed: Txid,
    },
    /// The bytes do not pay out of the wallet.
    #[error("the bytes offered for signing are no transfer out of wallet {0}: nothing was signed")]
    OtherWallet(Address),
    /// It took too long.
    #[error("the signer did not answer in time")]
    Late,
}

/// Why a signer cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SignerSetupError {
    /// The key cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The key is none.
    #[error("{0}")]
    Key(String),
}

/// The signers by the wallets they serve.
#[derive(Clone)]
pub struct Signers {
    by_wallet: BTreeMap<Address, Arc<dyn Signer>>,
    of_the_rest: Option<Arc<dyn Signer>>,
}

impl Signers {
    /// Reads every key. An error names the rule.
    pub fn from_rules(rules: &[WalletRule]) -> Result<Self, (WalletRule, SignerSetupError)> {
        let mut signers = Self {
            by_wallet: BTreeMap::new(),
            of_the_rest: None,
        };
        for rule in rules {
            let signer = open(&rule.signer).map_err(|error| (rule.clone(), error))?;
            match rule.wallet {
                WalletName::One(address) => {
                    signers.by_wallet.insert(address, signer);
                }
                WalletName::AllOthers => signers.of_the_rest = Some(signer),
            }
        }
        Ok(signers)
    }

    /// One signer for every wallet.
    #[must_use]
    pub fn one(signer: Arc<dyn Signer>) -> Self {
        Self {
            by_wallet: BTreeMap::new(),
            of_the_rest: Some(signer),
        }
    }

    /// What to say at the start: each wallet and who signs for it.
    #[must_use]
    pub fn names(&self) -> Vec<(String, String)> {
        let named = self
            .by_wallet
            .iter()
            .map(|(wallet, signer)| (wallet.to_string(), signer.name()));
        let rest = self
            .of_the_rest
            .iter()
            .map(|signer| ("every other".to_owned(), signer.name()));
        named.chain(rest).collect()
    }

    /// Has the wallet's signer sign, once the bytes are seen to be a transfer out of that wallet with that digest: a key
    /// is not lent to whatever a database row may hold.
    pub async fn sign(&self, wallet: &Address, digest: Digest<'_>) -> Result<Vec<u8>, SignerError> {
        let signer = self
            .by_wallet
            .get(wallet)
            .or(self.of_the_rest.as_ref())
            .ok_or(SignerError::NoSigner(*wallet))?;
        let computed = Txid::of(digest.raw_data);
        if computed != *digest.txid {
            return Err(SignerError::OtherDigest {
                digest: *digest.txid,
                computed,
            });
        }
        match transfer_of(digest.raw_data) {
            Some(transfer) if transfer.owner == *wallet => signer.sign(digest).await,
            Some(_) | None => Err(SignerError::OtherWallet(*wallet)),
        }
    }
}

fn open(rule: &SignerRule) -> Result<Arc<dyn Signer>, SignerSetupError> {
    let signer: Arc<dyn Signer> = match rule {
        SignerRule::Local(source) => Arc::new(local::LocalSigner::open(source)?),
        SignerRule::Hmac(source) => Arc::new(hmac::HmacSigner::open(source)?),
    };
    #[cfg(feature = "failpoints")]
    let signer: Arc<dyn Signer> = Arc::new(misbehaving::Misbehaving(signer));
    Ok(signer)
}
