//! The two wallets that every scenario pays from: one that signs as a mock, and one that signs as TRON does. Their keys are
//! public: test use only.

use sluice_core::address::Address;
use sluice_core::signature::SecretKey;
use sluice_mock_node::Signer;

/// The wallets.
#[derive(Debug)]
pub struct Wallets;

impl Wallets {
    /// What the mock's wallet signs with.
    pub const HMAC_KEY: &str = "the scenarios' mock key";
    /// The environment variable that a runner reads it from.
    pub const HMAC_KEY_VARIABLE: &str = "SCENARIO_HMAC_KEY";
    /// The other wallet's secp256k1 key: the one of the published vector pub-key-003.
    pub const LOCAL_KEY: &str = "00000000000000b47e5bf012efc29b5e25f82c7da7a3266f0943dccf54339b97";
    /// The environment variable that a runner reads it from.
    pub const LOCAL_KEY_VARIABLE: &str = "SCENARIO_LOCAL_KEY";

    /// The wallet of kind `hmac`.
    #[must_use]
    pub fn hmac() -> Address {
        Address::from_body([0x11; 20])
    }

    /// The wallet of kind `secp256k1`.
    #[must_use]
    pub fn local() -> Address {
        SecretKey::from_hex(Self::LOCAL_KEY)
            .expect("a published key")
            .address()
    }

    /// Who signs for which, as a runner is told.
    #[must_use]
    pub fn rules() -> String {
        format!(
            "{}=hmac:env:{},{}=local:env:{}",
            Self::hmac(),
            Self::HMAC_KEY_VARIABLE,
            Self::local(),
            Self::LOCAL_KEY_VARIABLE
        )
    }

    /// Whose signature the network takes for which.
    #[must_use]
    pub fn signers() -> Vec<(Address, Signer)> {
        let key = Self::HMAC_KEY.as_bytes().to_vec();
        vec![
            (Self::hmac(), Signer::Hmac { key }),
            (
                Self::local(),
                Signer::Secp256k1 {
                    signer: Self::local(),
                    permission_id: 0,
                },
            ),
        ]
    }
}

/// The `n`th of the addresses that scenarios pay to.
#[must_use]
pub fn destination(n: u32) -> Address {
    let mut body = [0xd5; 20];
    body[16..].copy_from_slice(&n.to_be_bytes());
    Address::from_body(body)
}
