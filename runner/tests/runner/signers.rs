//! Signers: the published signatures, and the refusal to sign what is not what it seems.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use prost::Message as _;
use sluice_core::address::Address;
use sluice_core::envelope::Txid;
use sluice_core::proto::Transaction;
use sluice_core::signature::{hmac_verify, recover};
use sluice_runner::config::WalletRule;
use sluice_runner::signer::{Digest, Signer, SignerError, Signers};

use crate::support::{run, unhex, vectors};

fn key_file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sluice-key-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a temporary file can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .expect("its mode can be set");
    path
}

fn signers(rules: &[String]) -> Signers {
    let rules: Vec<WalletRule> = rules
        .iter()
        .map(|rule| rule.parse().expect("a rule"))
        .collect();
    Signers::from_rules(&rules).unwrap_or_else(|(rule, error)| panic!("{rule:?}: {error}"))
}

/// A transfer of the vectors: its owner and its bytes.
fn transfer(signed: &serde_json::Value) -> (Address, Vec<u8>) {
    let signed = unhex(signed["signed_tx"].as_str().expect("hex"));
    let transaction = Transaction::decode(signed.as_slice()).expect("a transaction");
    let transfer = sluice_core::envelope::transfer_of(&transaction.raw_data);
    (transfer.expect("a transfer").owner, transaction.raw_data)
}

#[test]
fn the_local_signer_makes_the_published_signatures() {
    let vectors = vectors();
    for (count, published) in vectors["signatures"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        let (owner, raw_data) = transfer(published);
        let path = key_file(
            &format!("local-{count}"),
            &format!("{}\n", published["private_key"].as_str().expect("hex")),
        );
        let signers = signers(&[format!("{owner}=local:file:{}", path.display())]);
        let txid = Txid::of(&raw_data);
        let signature = run(signers.sign(
            &owner,
            Digest {
                txid: &txid,
                raw_data: &raw_data,
            },
        ))
        .expect("it signs");
        assert_eq!(hex::encode(&signature), published["signature"]);
        assert_eq!(
            recover(&txid, &signature).expect("a signature").to_string(),
            published["signer"]
        );
        assert_eq!(
            signers.names(),
            [(
                owner.to_string(),
                format!(
                    "local, the key of {}",
                    published["signer"].as_str().expect("text")
                )
            )]
        );
        std::fs::remove_file(path).expect("it can be removed");
    }
}

#[test]
fn the_mock_signs_for_every_wallet_with_the_text_of_its_key() {
    let vectors = vectors();
    let (owner, raw_data) = transfer(&vectors["signatures"][0]);
    let path = key_file("hmac", "a shared key\n");
    let signers = signers(&[format!("*=hmac:file:{}", path.display())]);
    let txid = Txid::of(&raw_data);
    let signature = run(signers.sign(
        &owner,
        Digest {
            txid: &txid,
            raw_data: &raw_data,
        },
    ))
    .expect("it signs");
    assert!(hmac_verify(b"a shared key", &txid, &signature));
    std::fs::remove_file(path).expect("it can be removed");
}

#[test]
fn a_key_is_not_lent_to_another_digest_another_wallet_or_other_bytes() {
    let vectors = vectors();
    let (owner, raw_data) = transfer(&vectors["signatures"][0]);
    let path = key_file("lent", "a shared key");
    let all = signers(&[format!("*=hmac:file:{}", path.display())]);
    let txid = Txid::of(&raw_data);
    let ask = |wallet: &Address, txid: &Txid, raw_data: &[u8]| {
        run(all.sign(wallet, Digest { txid, raw_data }))
    };

    let other_digest = ask(&owner, &Txid::of(b"another"), &raw_data);
    assert!(matches!(other_digest, Err(SignerError::OtherDigest { .. })));
    let stranger = Address::from_body([9; 20]);
    assert!(matches!(
        ask(&stranger, &txid, &raw_data),
        Err(SignerError::OtherWallet(_))
    ));
    let no_transfer = b"not a transfer".as_slice();
    assert!(matches!(
        ask(&owner, &Txid::of(no_transfer), no_transfer),
        Err(SignerError::OtherWallet(_))
    ));

    let one = signers(&[format!("{owner}=hmac:file:{}", path.display())]);
    let unserved = run(one.sign(
        &stranger,
        Digest {
            txid: &txid,
            raw_data: &raw_data,
        },
    ));
    assert!(matches!(unserved, Err(SignerError::NoSigner(_))));
    std::fs::remove_file(path).expect("it can be removed");
}

#[test]
fn a_bad_key_is_refused_by_its_place_and_never_shown() {
    for (name, text) in [
        ("short", "5ec2e7"),
        (
            "zero",
            "0000000000000000000000000000000000000000000000000000000000000000",
        ),
        ("words", "my secret words"),
    ] {
        let path = key_file(name, text);
        let rule: WalletRule = format!("*=local:file:{}", path.display())
            .parse()
            .expect("a rule");
        let (_, error) = Signers::from_rules(&[rule]).err().expect("no key");
        let told = error.to_string();
        assert!(told.contains(name) && !told.contains(text), "{told}");
        std::fs::remove_file(path).expect("it can be removed");
    }
}

/// A signer that takes its time.
struct Slow;

#[async_trait]
impl Signer for Slow {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    async fn sign(&self, _: Digest<'_>) -> Result<Vec<u8>, SignerError> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(SignerError::Late)
    }
}

#[test]
fn a_signer_of_another_kind_fits_behind_the_same_trait() {
    let vectors = vectors();
    let (owner, raw_data) = transfer(&vectors["signatures"][0]);
    let signers = Signers::one(std::sync::Arc::new(Slow));
    let txid = Txid::of(&raw_data);
    let answer = run(signers.sign(
        &owner,
        Digest {
            txid: &txid,
            raw_data: &raw_data,
        },
    ));
    assert!(matches!(answer, Err(SignerError::Late)));
}
