//! Exact sums of base units as decimal text. A word of calldata holds 256 bits and a test may add any number of them, so
//! no machine integer is wide enough; speed does not matter here.

/// A big-endian unsigned integer of any length, in decimal.
#[must_use]
pub fn of_be_bytes(bytes: &[u8]) -> String {
    let mut digits = vec![0_u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = u32::from(*digit) * 256 + carry;
            *digit = (value % 10) as u8;
            carry = value / 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    to_text(&digits)
}

/// The sum of two decimal integers, given and answered without a sign and without leading zeros.
#[must_use]
pub fn sum(left: &str, right: &str) -> String {
    let (left, right) = (to_digits(left), to_digits(right));
    let mut digits = Vec::with_capacity(left.len().max(right.len()) + 1);
    let mut carry = 0;
    for place in 0..left.len().max(right.len()) {
        let value =
            left.get(place).copied().unwrap_or(0) + right.get(place).copied().unwrap_or(0) + carry;
        digits.push(value % 10);
        carry = value / 10;
    }
    if carry > 0 {
        digits.push(carry);
    }
    to_text(&digits)
}

/// Least significant digit first.
fn to_digits(text: &str) -> Vec<u8> {
    text.bytes()
        .rev()
        .map(|byte| byte.wrapping_sub(b'0'))
        .collect()
}

fn to_text(digits: &[u8]) -> String {
    let text: String = digits
        .iter()
        .rev()
        .map(|digit| char::from(b'0' + digit))
        .collect();
    let trimmed = text.trim_start_matches('0');
    if trimmed.is_empty() {
        "0".to_owned()
    } else {
        trimmed.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_calldata_is_read_to_the_last_digit() {
        assert_eq!(of_be_bytes(&[]), "0");
        assert_eq!(of_be_bytes(&[0, 0, 1, 0]), "256");
        assert_eq!(
            of_be_bytes(&[0xff; 32]),
            "115792089237316195423570985008687907853269984665640564039457584007913129639935"
        );
    }

    #[test]
    fn sums_never_overflow() {
        assert_eq!(sum("0", "0"), "0");
        assert_eq!(sum("999", "1"), "1000");
        assert_eq!(
            sum(
                "99999999999999999999999999999999999999",
                "99999999999999999999999999999999999999"
            ),
            "199999999999999999999999999999999999998"
        );
    }
}
