//! Addresses, held against a reading of the same forms that shares no code with sluice's.

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use sluice_core::address::Address;
use sluice_fuzz::fuzz;
use sluice_fuzz::text::{address, base58, base58_bytes, nearly_an_address};

/// The forms as the README states them: base58check of 21 bytes, or these in hex; white space of ASCII around either.
fn read_anew(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_matches(['\t', '\n', '\u{b}', '\u{c}', '\r', ' ']);
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() == 42 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return hex::decode(digits).ok().filter(|bytes| bytes[0] == 0x41);
    }
    if text.len() > 64 {
        return None;
    }
    let bytes = base58_bytes(text).filter(|bytes| bytes.len() == 25)?;
    let (payload, sum) = bytes.split_at(21);
    let twice = Sha256::digest(Sha256::digest(payload));
    (twice[..4] == *sum && payload[0] == 0x41).then(|| payload.to_vec())
}

#[test]
fn an_address_is_what_another_reading_of_its_forms_takes_for_one() {
    fuzz("addresses", 3000, nearly_an_address(), |text| {
        let read = Address::parse(&text);
        prop_assert_eq!(
            read.as_ref()
                .ok()
                .map(|address| address.as_bytes().to_vec()),
            read_anew(&text)
        );
        match read {
            Ok(address) => prop_assert_eq!(Address::parse(&address.to_string()), Ok(address)),
            Err(error) => prop_assert!(error.to_string().len() < 300, "{}", error),
        }
        Ok(())
    });
}

#[test]
fn an_address_is_printed_as_another_encoder_prints_it() {
    fuzz("printed_addresses", 500, address(), |address| {
        let sum = Sha256::digest(Sha256::digest(address.as_bytes()));
        let bytes = [address.as_bytes(), &sum[..4]].concat();
        prop_assert_eq!(address.to_string(), base58(&bytes));
        prop_assert_eq!(bs58::decode(base58(&bytes)).into_vec(), Ok(bytes));
        Ok(())
    });
}
