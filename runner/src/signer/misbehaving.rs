//! A signer that misbehaves as a test says: the failpoint `signer` stands between every signer and its answer. Only builds with
//! the feature `failpoints` have it.
//!
//! `FAILPOINTS="signer=1*return(short)"` and its like: `silent` (never answers), `slow` (takes a tenth of a second), `short`
//! (64 bytes), `bad` (65 that no key can have made), `other-key` (another key's signature), `high-s` (the same signature with
//! n − s: other bytes, as good).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sluice_core::signature::{SIGNATURE_BYTES, SecretKey};

use super::{Digest, Signer, SignerError};

const SLOW: Duration = Duration::from_millis(100);

/// The order of secp256k1's group (SEC 2, section 2.4.1).
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// A signer that does what the failpoint says.
pub struct Misbehaving(pub Arc<dyn Signer>);

/// What the failpoint says for this digest, if anything.
fn misbehaviour() -> Option<String> {
    fail::fail_point!("signer", |action| Some(action.unwrap_or_default()));
    None
}

#[async_trait]
impl Signer for Misbehaving {
    fn name(&self) -> String {
        self.0.name()
    }

    async fn sign(&self, digest: Digest<'_>) -> Result<Vec<u8>, SignerError> {
        let Some(how) = misbehaviour() else {
            return self.0.sign(digest).await;
        };
        let mut signature = self.0.sign(digest).await?;
        match how.as_str() {
            "silent" => std::future::pending().await,
            "slow" => tokio::time::sleep(SLOW).await,
            "short" => signature.truncate(SIGNATURE_BYTES - 1),
            "bad" => signature.fill(0),
            "other-key" => {
                let other = SecretKey::from_bytes(&[7; 32]).expect("a number below the order");
                signature = other.sign(digest.txid).to_vec();
            }
            "high-s" => raise_s(&mut signature),
            other => panic!("failpoint signer: {other:?} is no way to misbehave"),
        }
        Ok(signature)
    }
}

/// Makes (r, s, v) into (r, n − s, v with its lowest bit turned).
fn raise_s(signature: &mut [u8]) {
    let mut borrow = 0;
    for (digit, of_order) in signature[32..64].iter_mut().zip(ORDER).rev() {
        let value = i32::from(of_order) - i32::from(*digit) - borrow;
        borrow = i32::from(value < 0);
        *digit = u8::try_from(value.rem_euclid(256)).expect("a byte");
    }
    // 27 and 28 change places.
    signature[64] = 55 - signature[64];
}
