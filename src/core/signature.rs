//! Signatures: who signed a txid, and signing one. Secp256k1 through libsecp256k1, as every TRON node demands; and an HMAC
//! that stands in for it where nothing is at stake.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, Mac};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SECP256K1};
use sha2::Sha256;
use sha3::{Digest, Keccak256};

use crate::address::Address;
use crate::envelope::Txid;

/// r (32 bytes), s (32), v (1).
pub const SIGNATURE_BYTES: usize = 65;

/// How a wallet signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignerKind {
    /// As TRON demands: ECDSA over the txid.
    Secp256k1,
    /// A mock: HMAC-SHA256 over the txid. Only who holds the key can check it, so the guard checks its length alone.
    Hmac,
}

/// Why a signature does not count, or a key is none. No message holds any part of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not 65 bytes.
    #[error("a signature has 65 bytes (r, s, v), these are {found}")]
    Length {
        /// How many there are.
        found: usize,
    },
    /// A v that java-tron refuses.
    #[error("the signature's last byte is {0}: java-tron takes 0 to 7 and 27 to 34")]
    RecoveryByte(u8),
    /// No key can have made it: r or s is 0 or beyond the curve's order, or r names no point.
    #[error("these 65 bytes are no secp256k1 signature of the txid: no key can have made them")]
    NoKey,
    /// Somebody else's.
    #[error(
        "the signature was made by {recovered}, not by the wallet's signer {expected}, or for another txid"
    )]
    OtherSigner {
        /// Whose key signed, if the txid is the one signed.
        recovered: Address,
        /// Whose key should have.
        expected: Address,
    },
    /// No private key.
    #[error(
        "a private key is 32 bytes, given as 64 hex digits, above zero and below the order of secp256k1"
    )]
    Key,
    /// No kind of signer.
    #[error("the signer must be secp256k1 or hmac")]
    Kind,
}

impl SignerKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Secp256k1, Self::Hmac];

    /// As SQL and configuration write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secp256k1 => "secp256k1",
            Self::Hmac => "hmac",
        }
    }
}

impl fmt::Display for SignerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SignerKind {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or(SignatureError::Kind)
    }
}

/// The address whose key made this signature of the txid. High s is accepted, and every v that java-tron takes.
pub fn recover(txid: &Txid, signature: &[u8]) -> Result<Address, SignatureError> {
    let signature: &[u8; SIGNATURE_BYTES] =
        signature.try_into().map_err(|_| SignatureError::Length {
            found: signature.len(),
        })?;
    let [rs @ .., v] = signature;
    let signature = RecoverableSignature::from_compact(rs, recovery_id(*v)?)
        .map_err(|_| SignatureError::NoKey)?;
    let key = SECP256K1
        .recover_ecdsa(Message::from_digest(*txid.as_bytes()), &signature)
        .map_err(|_| SignatureError::NoKey)?;
    Ok(address_of(&key))
}

/// java-tron adds 27 to a v below 27, takes 27 to 34, and folds 31 to 34 onto 27 to 30 (`Rsv.java`, `ECKey.java`
/// `signatureToKeyBytes`): a flag of compressed keys that means nothing here.
fn recovery_id(v: u8) -> Result<RecoveryId, SignatureError> {
    match v {
        0..=7 => Ok(RecoveryId::from_u8_masked(v)),
        27..=34 => Ok(RecoveryId::from_u8_masked(v - 27)),
        8..=26 | 35.. => Err(SignatureError::RecoveryByte(v)),
    }
}

/// Whether this may stand as a signature of the txid by `signer`. Of a mock's, only the length can be checked.
pub fn verify(
    kind: SignerKind,
    signer: &Address,
    txid: &Txid,
    signature: &[u8],
) -> Result<(), SignatureError> {
    match kind {
        SignerKind::Secp256k1 => match recover(txid, signature)? {
            recovered if recovered == *signer => Ok(()),
            recovered => Err(SignatureError::OtherSigner {
                recovered,
                expected: *signer,
            }),
        },
        SignerKind::Hmac if signature.len() == SIGNATURE_BYTES => Ok(()),
        SignerKind::Hmac => Err(SignatureError::Length {
            found: signature.len(),
        }),
    }
}

/// A private key. It is never shown, and its bytes are overwritten when it goes.
pub struct SecretKey(secp256k1::SecretKey);

impl SecretKey {
    /// The key with these 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SignatureError> {
        let bytes = bytes.try_into().map_err(|_| SignatureError::Key)?;
        secp256k1::SecretKey::from_byte_array(bytes)
            .map(Self)
            .map_err(|_| SignatureError::Key)
    }

    /// The key in 64 hex digits; white space around them, such as a file's last newline, is ignored.
    pub fn from_hex(text: &str) -> Result<Self, SignatureError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim_ascii(), &mut bytes).map_err(|_| SignatureError::Key)?;
        Self::from_bytes(&bytes)
    }

    /// The address this key signs for.
    #[must_use]
    pub fn address(&self) -> Address {
        address_of(&self.0.public_key(SECP256K1))
    }

    /// Signs a txid: nonce by RFC 6979, so the same bytes each time; low s; v 27 or 28.
    #[must_use]
    pub fn sign(&self, txid: &Txid) -> [u8; SIGNATURE_BYTES] {
        let message = Message::from_digest(*txid.as_bytes());
        let (id, rs) = SECP256K1
            .sign_ecdsa_recoverable(message, &self.0)
            .serialize_compact();
        let mut signature = [0; SIGNATURE_BYTES];
        signature[..64].copy_from_slice(&rs);
        signature[64] = match id {
            RecoveryId::Zero => 27,
            RecoveryId::One => 28,
            RecoveryId::Two => 29,
            RecoveryId::Three => 30,
        };
        signature
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.address())
    }
}

/// The last 20 bytes of Keccak-256 over the uncompressed public key, without its first byte.
fn address_of(key: &PublicKey) -> Address {
    let [_, point @ ..] = key.serialize_uncompressed();
    let digest = Keccak256::digest(point);
    Address::from_body(std::array::from_fn(|i| digest[12 + i]))
}

/// The mock's signature: HMAC-SHA256 over the txid, then 33 zero bytes.
#[must_use]
pub fn hmac_sign(key: &[u8], txid: &Txid) -> [u8; SIGNATURE_BYTES] {
    let mut signature = [0; SIGNATURE_BYTES];
    signature[..32].copy_from_slice(&hmac_over(key, txid).finalize().into_bytes());
    signature
}

/// Whether this is the mock's signature of the txid with this key.
#[must_use]
pub fn hmac_verify(key: &[u8], txid: &Txid, signature: &[u8]) -> bool {
    signature.len() == SIGNATURE_BYTES
        && signature[32..].iter().all(|byte| *byte == 0)
        && hmac_over(key, txid).verify_slice(&signature[..32]).is_ok()
}

fn hmac_over(key: &[u8], txid: &Txid) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(txid.as_bytes());
    mac
}
