//! Signatures: made, recovered, refused.

use crate::file::{Signature, address, array, bytes, vectors};
use sluice_core::envelope::{Txid, signed_transaction};
use sluice_core::signature::{
    SecretKey, SignatureError, SignerKind, hmac_sign, hmac_verify, recover, verify,
};

fn txid(signature: &Signature) -> Txid {
    signature.txid.parse().expect("a txid")
}

/// The same r and s under another last byte.
fn with_v(signature: &Signature, v: u8) -> Vec<u8> {
    let mut bytes = bytes(&signature.signature);
    bytes[64] = v;
    bytes
}

#[test]
fn a_key_signs_a_txid_with_the_bytes_of_the_vectors() {
    for vector in &vectors().signatures {
        let key = SecretKey::from_hex(&vector.private_key).expect(&vector.id);
        assert_eq!(key.address(), address(&vector.signer), "{}", vector.id);
        let signature = key.sign(&txid(vector));
        assert_eq!(hex::encode(&signature[..32]), vector.r, "{}", vector.id);
        assert_eq!(hex::encode(&signature[32..64]), vector.s, "{}", vector.id);
        assert_eq!(signature[64] % 27, vector.recovery_id, "{}", vector.id);
        assert_eq!(hex::encode(signature), vector.signature, "{}", vector.id);
    }
}

#[test]
fn raw_data_and_signature_make_the_transaction_that_a_node_takes() {
    for vector in &vectors().signatures {
        let raw_data = vectors()
            .envelopes
            .iter()
            .find_map(|envelope| match vector.envelope_id.as_str() {
                id if id == envelope.id => Some(&envelope.outputs.raw_data),
                id if id == envelope.with_tag.id => Some(&envelope.with_tag.outputs.raw_data),
                _ => None,
            })
            .expect(&vector.envelope_id);
        let whole = signed_transaction(&bytes(raw_data), &bytes(&vector.signature));
        assert_eq!(hex::encode(whole), vector.signed_tx, "{}", vector.id);
        assert_eq!(Txid::of(&bytes(raw_data)), txid(vector), "{}", vector.id);
    }
}

#[test]
fn the_signer_is_recovered_under_every_last_byte_that_java_tron_takes() {
    for vector in &vectors().signatures {
        let signer = address(&vector.signer);
        for base in [0, 4, 27, 31] {
            let signature = with_v(vector, base + vector.recovery_id);
            let recovered = recover(&txid(vector), &signature);
            assert_eq!(recovered, Ok(signer), "{} {base}", vector.id);
            let verdict = verify(SignerKind::Secp256k1, &signer, &txid(vector), &signature);
            assert_eq!(verdict, Ok(()), "{} {base}", vector.id);
        }
    }
}

#[test]
fn every_other_last_byte_is_refused_by_its_number() {
    let vector = &vectors().signatures[0];
    for v in (8..=26).chain(35..=255) {
        let refused = recover(&txid(vector), &with_v(vector, v));
        assert_eq!(refused, Err(SignatureError::RecoveryByte(v)));
    }
}

#[test]
fn a_high_s_is_the_same_signers_signature() {
    for vector in &vectors().signatures {
        let low = secp256k1::SecretKey::from_byte_array(array(&vector.s)).expect(&vector.id);
        let high = low.negate().secret_bytes();
        assert!(high > low.secret_bytes(), "{}", vector.id);
        let mut signature = bytes(&vector.signature);
        signature[32..64].copy_from_slice(&high);
        for base in [0, 4, 27, 31] {
            signature[64] = base + (vector.recovery_id ^ 1);
            let recovered = recover(&txid(vector), &signature);
            assert_eq!(recovered, Ok(address(&vector.signer)), "{}", vector.id);
        }
    }
}

#[test]
fn a_signature_of_another_txid_or_by_another_key_is_not_the_wallets() {
    let [one, other, ..] = &vectors().signatures[..] else {
        panic!("there are at least two signatures");
    };
    let signer = address(&one.signer);
    let signature = bytes(&one.signature);
    let kind = SignerKind::Secp256k1;
    let wrong_txid = verify(kind, &signer, &txid(other), &signature);
    assert!(
        matches!(wrong_txid, Err(SignatureError::OtherSigner { expected, .. }) if expected == signer)
    );
    let stranger = address("TYqdLF2wQHt5Qyh3cdSq4X7iw1nuChMRos");
    let wrong_key = SignatureError::OtherSigner {
        recovered: signer,
        expected: stranger,
    };
    assert_eq!(
        verify(kind, &stranger, &txid(one), &signature),
        Err(wrong_key)
    );
    // The other recovery id names another key.
    let flipped = with_v(one, 27 + (one.recovery_id ^ 1));
    assert!(verify(kind, &signer, &txid(one), &flipped).is_err());
}

#[test]
fn bytes_that_no_key_can_have_signed_are_refused() {
    let vector = &vectors().signatures[0];
    for length in [0, 1, 64, 66, 1_000_000] {
        let error = recover(&txid(vector), &vec![1; length]);
        assert_eq!(error, Err(SignatureError::Length { found: length }));
    }
    let valid = bytes(&vector.signature);
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    for (r, s) in [
        (bytes(order), valid[32..64].to_vec()),
        (valid[..32].to_vec(), bytes(order)),
        (vec![0; 32], valid[32..64].to_vec()),
        (valid[..32].to_vec(), vec![0; 32]),
        (vec![0xff; 32], vec![0xff; 32]),
        (vec![0; 32], vec![0; 32]),
    ] {
        for v in [0, 1, 2, 3] {
            let signature = [&r[..], &s, &[v]].concat();
            let error = recover(&txid(vector), &signature);
            assert_eq!(error, Err(SignatureError::NoKey), "{signature:02x?}");
        }
    }
}

#[test]
fn a_key_is_read_from_a_file_with_a_newline_and_never_shown() {
    let vector = &vectors().signatures[0];
    let key = SecretKey::from_hex(&format!("{}\n", vector.private_key)).expect("a key");
    assert_eq!(
        format!("{key:?}"),
        format!("SecretKey(of {})", vector.signer)
    );
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    for wrong in [
        "",
        "0x",
        &vector.private_key[1..],
        order,
        &"0".repeat(64),
        "not hex",
    ] {
        let error = SecretKey::from_hex(wrong).expect_err(wrong);
        assert_eq!(error, SignatureError::Key, "{wrong}");
    }
    assert!(SecretKey::from_bytes(&[1; 31]).is_err());
    assert!(SecretKey::from_bytes(&[1; 32]).is_ok());
}

#[test]
fn a_mock_signature_is_an_hmac_and_33_zero_bytes() {
    let txid = Txid::of(b"some raw data");
    let signature = hmac_sign(b"a key", &txid);
    assert!(hmac_verify(b"a key", &txid, &signature));
    assert_eq!(signature[32..], [0; 33]);
    assert!(!hmac_verify(b"another key", &txid, &signature));
    assert!(!hmac_verify(b"a key", &Txid::of(b"other"), &signature));
    assert!(!hmac_verify(b"a key", &txid, &signature[..64]));
    for place in [0, 31, 32, 64] {
        let mut changed = signature;
        changed[place] ^= 1;
        assert!(!hmac_verify(b"a key", &txid, &changed), "byte {place}");
    }
    // Python's hmac.new(b"Jefe", bytes(32), "sha256").
    let zeros = Txid::from_bytes(&[0; 32]).expect("32 bytes");
    assert_eq!(
        hex::encode(&hmac_sign(b"Jefe", &zeros)[..32]),
        "f1a7eb1df72d2829416527ab99cbc2804a8ffab2fbee1fd6fee843b5f0fac94f"
    );
}

#[test]
fn of_a_mock_wallet_only_the_length_is_checked() {
    let vector = &vectors().signatures[0];
    let signer = address(&vector.signer);
    let mock = |signature: &[u8]| verify(SignerKind::Hmac, &signer, &txid(vector), signature);
    assert_eq!(mock(&[7; 65]), Ok(()));
    for found in [0, 64, 66] {
        let error = SignatureError::Length { found };
        assert_eq!(mock(&vec![0; found]), Err(error));
    }
    assert_eq!("secp256k1".parse(), Ok(SignerKind::Secp256k1));
    assert_eq!("hmac".parse(), Ok(SignerKind::Hmac));
    assert_eq!("HMAC".parse::<SignerKind>(), Err(SignatureError::Kind));
    for kind in SignerKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
}
