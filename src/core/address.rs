//! A TRON address: 21 bytes, the first of them 0x41. Text is read once, at the edge, in exactly the forms that sluice
//! accepts; nothing behind it can hold a wrong one.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The first byte of every address on TRON's main network, its test networks and private chains
/// (`Constant.java`, `ADD_PRE_FIX_BYTE_MAINNET`).
pub const PREFIX: u8 = 0x41;

/// Base58check of 21 bytes is 34 characters where the first byte is 0x41. Text far beyond that is refused before it is
/// decoded: base58 takes quadratic time.
const LONGEST_BASE58: usize = 64;

/// A TRON address. Shown in base58check, `T…`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 21]);

/// Why a text or bytes are no address that sluice takes. Positions count characters from 1, after white space at both
/// ends was trimmed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing, or white space only.
    #[error("the address is empty")]
    Empty,
    /// White space or an invisible character between the ends.
    #[error("the address has white space or an invisible character (U+{:04X}) at character {position}: take it out", *.found as u32)]
    Space {
        /// The character.
        found: char,
        /// Where it is.
        position: usize,
    },
    /// A character that has no place in the form the text otherwise has.
    #[error("the address has {found:?} (U+{:04X}) at character {position}, which {form} does not use: copy the address again", *.found as u32)]
    Character {
        /// The character.
        found: char,
        /// Where it is.
        position: usize,
        /// `base58` or `hex`.
        form: &'static str,
    },
    /// All letters are small, or all are capitals.
    #[error(
        "the address has all its letters in one case: in base58 their case counts, so give them as they were written"
    )]
    LetterCase,
    /// Too short or too long.
    #[error("the address is {found}: it must be {expected}")]
    Length {
        /// What was given.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The last four bytes do not fit the others.
    #[error(
        "the address has a wrong checksum: a character is wrong, missing or in the wrong case; copy the address again"
    )]
    Checksum,
    /// The checksum is right, or there is none, but the first byte is that of another network.
    #[error(
        "the address begins with byte 0x{0:02x}, not with TRON's 0x41: it belongs to another network"
    )]
    Prefix(u8),
    /// 20 bytes in hex.
    #[error(
        "the address looks like one of an EVM chain (20 bytes in hex): give the TRON form, T… or 41…"
    )]
    EvmForm,
}

impl Address {
    /// Reads an address in a form that sluice accepts: base58check (`T…`), or its 21 bytes as 42 hex digits in either case
    /// (`41…`, `0x41…`), ASCII white space at both ends trimmed.
    ///
    /// The 20 bytes without 0x41 are refused, with or without `0x`: the same 20 bytes may be a contract on an EVM chain,
    /// and nobody's on TRON.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim_matches(is_ascii_space);
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.len() > 4 * LONGEST_BASE58 {
            return Err(too_long(text.len(), "bytes of text"));
        }
        refuse_hidden_characters(text)?;
        match text.strip_prefix("0x") {
            Some(digits) => Self::parse_hex(digits, 2),
            None if looks_like_hex(text) => Self::parse_hex(text, 0),
            None => Self::parse_base58(text),
        }
    }

    /// `skipped` characters stood before the digits.
    fn parse_hex(digits: &str, skipped: usize) -> Result<Self, AddressError> {
        if let Some((found, position)) = first_outside(digits, |c| c.is_ascii_hexdigit()) {
            return Err(AddressError::Character {
                found,
                position: position + skipped,
                form: "hex",
            });
        }
        match hex::decode(digits) {
            Ok(bytes) if bytes.len() == 20 => Err(AddressError::EvmForm),
            Ok(bytes) if bytes.len() == 21 => Self::from_bytes(&bytes),
            // An odd number of digits is a wrong length too.
            Ok(_) | Err(_) => Err(AddressError::Length {
                found: format!("{} hex digits", digits.len()),
                expected: "42 hex digits, or 34 characters of base58",
            }),
        }
    }

    fn parse_base58(text: &str) -> Result<Self, AddressError> {
        Self::parse_base58check(text).map_err(|error| match error {
            AddressError::Character { .. } | AddressError::Checksum
                if has_one_letter_case(text) =>
            {
                AddressError::LetterCase
            }
            other => other,
        })
    }

    fn parse_base58check(text: &str) -> Result<Self, AddressError> {
        if let Some((found, position)) = first_outside(text, |c| BASE58.contains(c)) {
            return Err(AddressError::Character {
                found,
                position,
                form: "base58",
            });
        }
        if text.len() > LONGEST_BASE58 {
            return Err(too_long(text.len(), "characters of base58"));
        }
        let wrong_length = || AddressError::Length {
            found: format!("{} characters of base58", text.len()),
            expected: "34 characters, which give 25 bytes",
        };
        let bytes = bs58::decode(text).into_vec().map_err(|_| wrong_length())?;
        let Some((payload, checksum)) = bytes.split_last_chunk::<4>() else {
            return Err(wrong_length());
        };
        if payload.len() != 21 {
            return Err(wrong_length());
        }
        if checksum_of(payload) != *checksum {
            return Err(AddressError::Checksum);
        }
        Self::from_bytes(payload)
    }

    /// The address with these 21 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        let bytes: [u8; 21] = bytes.try_into().map_err(|_| AddressError::Length {
            found: format!("{} bytes", bytes.len()),
            expected: "21 bytes, the first of them 0x41",
        })?;
        match bytes[0] {
            PREFIX => Ok(Self(bytes)),
            other => Err(AddressError::Prefix(other)),
        }
    }

    /// The address with these 20 bytes after 0x41: the form in which contracts see it.
    #[must_use]
    pub fn from_body(body: [u8; 20]) -> Self {
        let mut bytes = [PREFIX; 21];
        bytes[1..].copy_from_slice(&body);
        Self(bytes)
    }

    /// All 21 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 21] {
        &self.0
    }

    /// The 20 bytes after 0x41.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.0[1..]
    }

    /// Whether the 20 bytes are all zero: an address nobody holds, where tokens are burnt.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.body().iter().all(|byte| *byte == 0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 25];
        bytes[..21].copy_from_slice(&self.0);
        bytes[21..].copy_from_slice(&checksum_of(&self.0));
        f.write_str(&bs58::encode(bytes).into_string())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

fn checksum_of(payload: &[u8]) -> [u8; 4] {
    let digest = Sha256::digest(Sha256::digest(payload));
    [digest[0], digest[1], digest[2], digest[3]]
}

fn too_long(length: usize, of: &str) -> AddressError {
    AddressError::Length {
        found: format!("{length} {of}"),
        expected: "34 characters of base58, or 42 hex digits",
    }
}

/// C's `isspace` in the POSIX locale: what a database or a shell strips.
fn is_ascii_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

fn refuse_hidden_characters(text: &str) -> Result<(), AddressError> {
    // Beyond Unicode's white space: zero-width characters, direction marks, word joiners and the byte order mark.
    let hides = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    match first_outside(text, |c| !hides(c)) {
        Some((found, position)) => Err(AddressError::Space { found, position }),
        None => Ok(()),
    }
}

/// Text that nobody could mean as base58: an address there begins with T, which is no hex digit.
fn looks_like_hex(text: &str) -> bool {
    let all_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    let begins_so = text.starts_with("41") && text.len() >= 40;
    all_hex || begins_so
}

fn has_one_letter_case(text: &str) -> bool {
    let small = text.bytes().any(|b| b.is_ascii_lowercase());
    let capital = text.bytes().any(|b| b.is_ascii_uppercase());
    text.len() == 34 && text.is_ascii() && small != capital
}

/// The first character that is not allowed, and its place, counted from 1.
fn first_outside(text: &str, allowed: impl Fn(char) -> bool) -> Option<(char, usize)> {
    text.chars()
        .zip(1..)
        .find(|(character, _)| !allowed(*character))
}
