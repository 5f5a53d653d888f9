//! Amounts: decimal text as people write it, base units as the chain counts them. All of it is work on digits; no float
//! is anywhere.

use std::fmt;
use std::str::FromStr;

/// An amount in base units, 0 to 10^38 - 1: what PostgreSQL's `numeric(38,0)` holds, and what a withdrawal may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units(u128);

/// The most decimals a token can have: TRC-20's `decimals()` is a `uint8`.
pub const MAX_DECIMALS: u32 = 255;

/// Why a text is no amount, or an amount cannot be held. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// No characters.
    #[error("the amount is empty: give digits, such as 12.5")]
    Empty,
    /// Anything but a digit or a point: a sign, an exponent, a separator, white space, digits of another script.
    #[error("the amount has {found:?} (U+{:04X}) at character {position}: only the digits 0-9 and one decimal point may stand there, without sign, exponent, separator or space", *.found as u32)]
    Character {
        /// The character.
        found: char,
        /// Where it is.
        position: usize,
    },
    /// A point with no digit before it, or none after it.
    #[error("the amount has no digit {side} its decimal point: write 0.5 and 5, not .5 and 5.")]
    BarePoint {
        /// `before` or `after`.
        side: &'static str,
    },
    /// A second point.
    #[error("the amount has a second decimal point, at character {position}")]
    SecondPoint {
        /// Where it is.
        position: usize,
    },
    /// More fractional digits than the asset has. Zeros at the end count: who writes them means that precision.
    #[error("the amount has {found} digits after its decimal point, the asset has {allowed}")]
    FractionDigits {
        /// As written.
        found: usize,
        /// The asset's decimals.
        allowed: u32,
    },
    /// Base units with anything but digits.
    #[error("base units are a whole number in the digits 0-9; these have {found:?} (U+{:04X}) at character {position}", *.found as u32)]
    NotWhole {
        /// The character.
        found: char,
        /// Where it is.
        position: usize,
    },
    /// Base units beyond [`Units::MAX`].
    #[error("the amount has more than 38 digits of base units, the most that numeric(38,0) holds")]
    TooLarge,
    /// More decimals than a token can have.
    #[error("{0} decimals: a TRC-20 token has at most 255")]
    Decimals(u32),
}

impl Units {
    /// 10^38 - 1.
    pub const MAX: Self = Self(10_u128.pow(38) - 1);

    /// These base units, where `numeric(38,0)` holds them.
    pub fn new(units: u128) -> Result<Self, AmountError> {
        if units > Self::MAX.0 {
            return Err(AmountError::TooLarge);
        }
        Ok(Self(units))
    }

    /// The base units as a number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Units {
    type Err = AmountError;

    /// Plain digits; zeros in front are no harm.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = without_leading_zeros(whole(text)?);
        if digits.len() > 38 {
            return Err(AmountError::TooLarge);
        }
        digits.parse().map(Self).map_err(|_| AmountError::TooLarge)
    }
}

/// Decimal text to base units: digits of any length, without zeros in front.
///
/// Accepted is what [`check_amount_form`] accepts with at most `decimals` digits after the point, as written.
pub fn parse_amount(text: &str, decimals: u32) -> Result<String, AmountError> {
    let places = places(decimals)?;
    let (whole, fraction) = split(text)?;
    if fraction.len() > places {
        return Err(AmountError::FractionDigits {
            found: fraction.len(),
            allowed: decimals,
        });
    }
    let mut digits = String::with_capacity(whole.len() + places);
    digits.push_str(whole);
    digits.push_str(fraction);
    digits.extend(std::iter::repeat_n('0', places - fraction.len()));
    Ok(without_leading_zeros(&digits).to_owned())
}

/// Base units, as digits, to decimal text in its shortest exact form: `1500000` with 6 decimals is `1.5`.
pub fn format_amount(units: &str, decimals: u32) -> Result<String, AmountError> {
    let places = places(decimals)?;
    let digits = without_leading_zeros(whole(units)?);
    if digits.len() > places {
        let (whole, fraction) = digits.split_at(digits.len() - places);
        return Ok(join(whole, fraction));
    }
    let mut fraction = "0".repeat(places - digits.len());
    fraction.push_str(digits);
    Ok(join("0", &fraction))
}

/// Whether the whole text is `^[0-9]+(\.[0-9]+)?$`: ASCII digits, at most one point, digits on both sides of it.
pub fn check_amount_form(text: &str) -> Result<(), AmountError> {
    split(text).map(|_| ())
}

/// The same number in its shortest form: `0010.50` is `10.5`.
pub fn shortest(text: &str) -> Result<String, AmountError> {
    let (whole, fraction) = split(text)?;
    Ok(join(without_leading_zeros(whole), fraction))
}

fn places(decimals: u32) -> Result<usize, AmountError> {
    match usize::try_from(decimals) {
        Ok(places) if decimals <= MAX_DECIMALS => Ok(places),
        Ok(_) | Err(_) => Err(AmountError::Decimals(decimals)),
    }
}

/// The digits before and after the point; the second is empty only where there is no point.
fn split(text: &str) -> Result<(&str, &str), AmountError> {
    if text.is_empty() {
        return Err(AmountError::Empty);
    }
    let stranger = text
        .chars()
        .zip(1..)
        .find(|(c, _)| !c.is_ascii_digit() && *c != '.');
    if let Some((found, position)) = stranger {
        return Err(AmountError::Character { found, position });
    }
    let Some((whole, fraction)) = text.split_once('.') else {
        return Ok((text, ""));
    };
    if let Some(second) = fraction.find('.') {
        return Err(AmountError::SecondPoint {
            position: whole.len() + 2 + second,
        });
    }
    match (whole, fraction) {
        ("", _) => Err(AmountError::BarePoint { side: "before" }),
        (_, "") => Err(AmountError::BarePoint { side: "after" }),
        both => Ok(both),
    }
}

fn whole(units: &str) -> Result<&str, AmountError> {
    if units.is_empty() {
        return Err(AmountError::Empty);
    }
    match units.chars().zip(1..).find(|(c, _)| !c.is_ascii_digit()) {
        Some((found, position)) => Err(AmountError::NotWhole { found, position }),
        None => Ok(units),
    }
}

/// Zero keeps one digit.
fn without_leading_zeros(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" => "0",
        rest => rest,
    }
}

fn join(whole: &str, fraction: &str) -> String {
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}
