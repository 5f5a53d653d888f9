//! The deterministic mock: HMAC-SHA256 over the digest. For chains on which nothing is at stake; the database refuses such
//! wallets on TRON's main network and on Nile.

use async_trait::async_trait;
use sluice_core::signature::hmac_sign;
use zeroize::Zeroizing;

use super::{Digest, Signer, SignerError, SignerSetupError};
use crate::secret::SecretSource;

/// Signs with a shared key.
pub struct HmacSigner {
    key: Zeroizing<Vec<u8>>,
}

impl HmacSigner {
    /// Reads the key: the bytes of the text, whatever they are.
    pub fn open(source: &SecretSource) -> Result<Self, SignerSetupError> {
        Ok(Self {
            key: Zeroizing::new(source.read()?.as_bytes().to_vec()),
        })
    }
}

#[async_trait]
impl Signer for HmacSigner {
    fn name(&self) -> String {
        "hmac (a mock)".to_owned()
    }

    async fn sign(&self, digest: Digest<'_>) -> Result<Vec<u8>, SignerError> {
        Ok(hmac_sign(&self.key, digest.txid).to_vec())
    }
}
