//! Addresses: from keys, and from text as people paste it.

use crate::file::{address, array, bytes, vectors};
use sluice_core::address::{Address, AddressError};
use sluice_core::signature::SecretKey;

const VALID: &str = "TBuEjd8JnPL7azKYVGuVrCV3aRQLHAdfEi";

#[test]
fn a_private_key_gives_its_address_in_every_form() {
    for key in &vectors().addresses.keys {
        let secret = SecretKey::from_hex(&key.private_key).expect(&key.id);
        let expected = Address::from_bytes(&bytes(&key.hex21)).expect(&key.id);
        assert_eq!(secret.address(), expected, "{}", key.id);
        assert_eq!(expected.to_string(), key.address, "{}", key.id);
        assert_eq!(address(&key.address), expected, "{}", key.id);
        assert_eq!(
            Address::from_body(array(&key.evm20)),
            expected,
            "{}",
            key.id
        );
        assert_eq!(expected.body(), bytes(&key.evm20), "{}", key.id);
        assert_eq!(expected.as_bytes(), &array::<21>(&key.hex21), "{}", key.id);
    }
}

/// `tests/vectors/README.md`: base58check and 42 hex digits, ASCII white space at the ends trimmed; nothing else.
#[test]
fn text_is_an_address_in_the_forms_that_sluice_accepts_and_in_no_other() {
    let mut accepted = 0;
    for string in &vectors().addresses.strings {
        let digits = string.text.strip_prefix("0x").unwrap_or(&string.text);
        let evm_form = digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let padded = matches!(
            string.reason.as_str(),
            "leading space" | "trailing space" | "trailing newline"
        );
        let ours = match string.kind.as_str() {
            "valid" => true,
            "valid_other_representation" => !evm_form,
            "ambiguous" => false,
            "invalid" => padded,
            other => panic!(
                "{}: a kind that this test does not know: {other}",
                string.id
            ),
        };
        let parsed = Address::parse(&string.text);
        let why = format!("{} ({}): {parsed:?}", string.id, string.reason);
        assert_eq!(parsed.is_ok(), ours, "{why}");
        if let Ok(parsed) = parsed {
            accepted += 1;
            let denoted = string.denotes.as_deref().unwrap_or(VALID);
            assert_eq!(parsed.to_string(), denoted, "{why}");
        }
        if evm_form {
            assert_eq!(parsed, Err(AddressError::EvmForm), "{why}");
        }
    }
    assert_eq!(
        accepted, 7,
        "the address itself, three hex forms, three padded"
    );
}

#[test]
fn each_refusal_says_what_is_wrong() {
    let refusal = |id: &str| {
        let found = vectors().addresses.strings.iter().find(|s| s.id == id);
        let text = &found.expect(id).text;
        Address::parse(text).expect_err(id)
    };
    for id in 2..=7 {
        let id = format!("pub-adr-{id:03}");
        assert_eq!(refusal(&id), AddressError::Checksum, "{id}");
    }
    assert_eq!(refusal("pub-adr-008"), AddressError::Prefix(0x00));
    assert_eq!(refusal("pub-adr-009"), AddressError::Prefix(0xa0));
    assert_eq!(refusal("pub-adr-010"), AddressError::Prefix(0x42));
    assert_eq!(refusal("pub-adr-011"), AddressError::Prefix(0x40));
    assert_eq!(refusal("pub-adr-050"), AddressError::Prefix(0xa0));
    assert_eq!(refusal("pub-adr-018"), AddressError::LetterCase);
    assert_eq!(refusal("pub-adr-019"), AddressError::LetterCase);
    assert_eq!(refusal("pub-adr-020"), AddressError::Checksum);
    assert_eq!(refusal("pub-adr-040"), AddressError::Empty);
    for id in [12, 13, 14, 15, 16, 17, 21, 22, 23, 24, 25, 51, 52, 54, 55] {
        let id = format!("pub-adr-{id:03}");
        assert!(matches!(refusal(&id), AddressError::Length { .. }), "{id}");
    }
    for (id, found, position) in [
        ("pub-adr-026", ' ', 18),
        ("pub-adr-030", '\u{a0}', 35),
        ("pub-adr-031", '\u{200b}', 11),
        ("pub-adr-032", '\u{feff}', 1),
    ] {
        assert_eq!(refusal(id), AddressError::Space { found, position }, "{id}");
    }
    for (id, found, position, form) in [
        ("pub-adr-033", '\u{ff18}', 7, "base58"),
        ("pub-adr-034", '\u{ff34}', 1, "base58"),
        ("pub-adr-035", '\u{422}', 1, "base58"),
        ("pub-adr-036", '0', 25, "base58"),
        ("pub-adr-037", 'O', 5, "base58"),
        ("pub-adr-038", 'I', 30, "base58"),
        ("pub-adr-039", 'l', 16, "base58"),
        ("pub-adr-041", '"', 1, "base58"),
        ("pub-adr-042", ':', 5, "base58"),
        ("pub-adr-053", 'g', 21, "hex"),
    ] {
        let expected = AddressError::Character {
            found,
            position,
            form,
        };
        assert_eq!(refusal(id), expected, "{id}");
    }
}

#[test]
fn messages_name_the_fault_and_the_remedy() {
    let message = |text: &str| Address::parse(text).expect_err(text).to_string();
    assert_eq!(
        message("0x153008fb5a4396a18394152cd508800541a78b40"),
        "the address looks like one of an EVM chain (20 bytes in hex): give the TRON form, T… or 41…"
    );
    assert_eq!(
        message("TBuEjd8JnPL7azKYV GuVrCV3aRQLHAdfEi"),
        "the address has white space or an invisible character (U+0020) at character 18: take it out"
    );
    assert_eq!(
        message("0x41153008fb5a4396a183g4152cd508800541a78b40"),
        "the address has 'g' (U+0067) at character 23, which hex does not use: copy the address again"
    );
}

#[test]
fn white_space_is_trimmed_where_it_is_ascii_and_at_the_ends() {
    for space in [" ", "\t", "\n", "\r\n", "\u{b}", "\u{c}"] {
        let padded = format!("{space}{VALID}{space}");
        assert_eq!(Address::parse(&padded), Ok(address(VALID)), "{padded:?}");
        let only = AddressError::Empty;
        assert_eq!(Address::parse(space), Err(only), "{space:?}");
    }
    for character in ['\u{a0}', '\u{3000}', '\u{85}', '\u{2028}', '\0'] {
        let padded = format!("{VALID}{character}");
        let space = AddressError::Space {
            found: character,
            position: 35,
        };
        assert_eq!(Address::parse(&padded), Err(space), "{padded:?}");
    }
}

#[test]
fn a_hex_address_may_be_in_either_case_but_its_prefix_is_0x() {
    let digits = hex::encode(address(VALID).as_bytes());
    for text in [
        digits.clone(),
        digits.to_uppercase(),
        format!("0x{digits}"),
        format!("0x{}", digits.to_uppercase()),
        format!(" 0x{digits}\n"),
    ] {
        assert_eq!(Address::parse(&text), Ok(address(VALID)), "{text:?}");
    }
    for text in [
        format!("0X{digits}"),
        format!("\\x{digits}"),
        format!("0x0x{digits}"),
        format!("0x {digits}"),
    ] {
        assert!(Address::parse(&text).is_err(), "{text:?}");
    }
}

#[test]
fn an_endless_text_is_refused_without_being_decoded_or_quoted() {
    for text in [
        "T".repeat(50_000_000),
        "4".repeat(50_000_000),
        "0x".repeat(1 << 20),
    ] {
        let error = Address::parse(&text).expect_err("no address is that long");
        assert!(matches!(error, AddressError::Length { .. }), "{error}");
        assert!(error.to_string().len() < 200);
    }
}

#[test]
fn bytes_are_an_address_only_as_21_that_begin_with_41() {
    let valid = address(VALID);
    assert_eq!(Address::from_bytes(valid.as_bytes()), Ok(valid));
    let mut other = *valid.as_bytes();
    other[0] = 0x42;
    assert_eq!(Address::from_bytes(&other), Err(AddressError::Prefix(0x42)));
    for wrong in [&[][..], valid.body(), &[0x41; 22]] {
        let error = Address::from_bytes(wrong).expect_err("not 21 bytes");
        assert!(matches!(error, AddressError::Length { .. }), "{error}");
    }
}

#[test]
fn the_zero_address_is_known_in_any_form() {
    let zero = address("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb");
    assert!(zero.is_zero());
    assert_eq!(address("410000000000000000000000000000000000000000"), zero);
    assert!(!address("T9yDas54URWo8LzC8jrXbCz38vkKfMDyZ4").is_zero());
    assert!(!address(VALID).is_zero());
}
