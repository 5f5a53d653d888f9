//! A secp256k1 key in this process.

use async_trait::async_trait;
use sluice_core::signature::SecretKey;

use super::{Digest, Signer, SignerError, SignerSetupError};
use crate::secret::SecretSource;

/// Signs as TRON demands, with a key of 64 hex digits.
pub struct LocalSigner {
    key: SecretKey,
}

impl LocalSigner {
    /// Reads the key.
    pub fn open(source: &SecretSource) -> Result<Self, SignerSetupError> {
        let text = source.read()?;
        let key = SecretKey::from_hex(&text)
            .map_err(|error| SignerSetupError::Key(format!("{source}: {error}")))?;
        Ok(Self { key })
    }
}

#[async_trait]
impl Signer for LocalSigner {
    fn name(&self) -> String {
        format!("local, the key of {}", self.key.address())
    }

    async fn sign(&self, digest: Digest<'_>) -> Result<Vec<u8>, SignerError> {
        Ok(self.key.sign(digest.txid).to_vec())
    }
}
