//! Text that nobody meant: letters of every script, what cannot be seen, what stops a line, and far too much of one thing.

use proptest::collection::vec;
use proptest::prelude::*;
use sluice_core::address::Address;

/// Characters that programs trip over: NUL, controls, quotes, white space that is none, marks that turn the direction, letters
/// beyond the basic plane, digits of another script, what folds into several letters.
pub const ODD: &[char] = &[
    '\0',
    '\u{1}',
    '\t',
    '\n',
    '\r',
    '\u{1b}',
    ' ',
    '"',
    '\'',
    '\\',
    '$',
    '%',
    '{',
    '}',
    ';',
    ',',
    ':',
    '=',
    '/',
    '@',
    '#',
    '?',
    '&',
    '-',
    '+',
    '.',
    '0',
    '9',
    'e',
    'T',
    'é',
    'ß',
    'ſ',
    'İ',
    'K',
    '٣',
    '１',
    '\u{a0}',
    '\u{ad}',
    '\u{300}',
    '\u{200b}',
    '\u{202e}',
    '\u{2028}',
    '\u{feff}',
    '\u{fffd}',
    '\u{ffff}',
    '𝟗',
    '👩',
    '\u{10ffff}',
];

/// Any text.
pub fn any_text() -> BoxedStrategy<String> {
    let odd = prop::sample::select(ODD);
    let long = (odd.clone(), 1..5_000_usize)
        .prop_map(|(character, times)| std::iter::repeat_n(character, times).collect());
    prop_oneof![
        2 => any::<String>(),
        3 => vec(odd, 0..24).prop_map(String::from_iter),
        2 => "[ -~]{0,40}",
        1 => long,
    ]
    .boxed()
}

/// Some address.
pub fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        8 => any::<[u8; 20]>(),
        1 => Just([0; 20]),
        1 => Just([0xff; 20]),
    ]
    .prop_map(Address::from_body)
}

/// An address in one of its forms, nearly one, or anything.
pub fn nearly_an_address() -> BoxedStrategy<String> {
    let written = (address(), 0..6_u8)
        .prop_map(|(address, form)| {
            let digits = hex::encode(address.as_bytes());
            match form {
                0 | 1 => address.to_string(),
                2 => digits,
                3 => format!("0x{}", digits.to_uppercase()),
                4 => digits[2..].to_owned(),
                _ => address.to_string().to_lowercase(),
            }
        })
        .boxed();
    // 25 bytes in base58 that are no address: another network's, or of a wrong sum.
    let foreign = vec(any::<u8>(), 20..30).prop_map(|bytes| base58(&bytes));
    prop_oneof![
        2 => written.clone(),
        3 => (written, touches()).prop_map(|(text, touches)| touched(&text, &touches)),
        2 => foreign,
        1 => any_text(),
    ]
    .boxed()
}

/// One way to change a text; places are taken modulo its length in characters.
#[derive(Debug, Clone)]
pub enum Touch {
    /// A character becomes another.
    Set(usize, char),
    /// A character too many.
    Insert(usize, char),
    /// A character too few.
    Remove(usize),
    /// The end is missing.
    Cut(usize),
    /// All of it comes twice.
    Twice,
}

/// From one change to some.
pub fn touches() -> BoxedStrategy<Vec<Touch>> {
    let character = prop_oneof![
        prop::sample::select(ODD),
        "[!-~]".prop_map(|text| first(&text)),
        any::<char>()
    ];
    let touch =
        (any::<usize>(), character, 0..9_u8).prop_map(|(place, character, kind)| match kind {
            0..3 => Touch::Set(place, character),
            3..6 => Touch::Insert(place, character),
            6 => Touch::Remove(place),
            7 => Touch::Cut(place),
            _ => Touch::Twice,
        });
    vec(touch, 1..4).boxed()
}

fn first(text: &str) -> char {
    text.chars().next().expect("the pattern has one character")
}

/// The text with these changes, one after the other.
#[must_use]
pub fn touched(text: &str, touches: &[Touch]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for touch in touches {
        let length = characters.len().max(1);
        match touch {
            Touch::Insert(place, character) => {
                characters.insert(place % (characters.len() + 1), *character);
            }
            _ if characters.is_empty() => {}
            Touch::Set(place, character) => characters[place % length] = *character,
            Touch::Remove(place) => drop(characters.remove(place % length)),
            Touch::Cut(place) => characters.truncate(place % length),
            Touch::Twice => characters.extend_from_within(..),
        }
    }
    characters.into_iter().collect()
}

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Base58 by long division: a second opinion on the crate that sluice uses.
#[must_use]
pub fn base58(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut digits: Vec<u8> = vec![];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    let ones = std::iter::repeat_n('1', zeros);
    ones.chain(
        digits
            .iter()
            .rev()
            .map(|digit| char::from(ALPHABET[usize::from(*digit)])),
    )
    .collect()
}

/// And back, the same way; `None` for text in other characters.
#[must_use]
pub fn base58_bytes(text: &str) -> Option<Vec<u8>> {
    let ones = text.bytes().take_while(|byte| *byte == b'1').count();
    let mut bytes: Vec<u8> = vec![];
    for character in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == character)?;
        let mut carry = u32::try_from(value).expect("below 58");
        for byte in &mut bytes {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
        while carry > 0 {
            bytes.push(carry as u8);
            carry >>= 8;
        }
    }
    bytes.extend(std::iter::repeat_n(0, ones));
    bytes.reverse();
    Some(bytes)
}
