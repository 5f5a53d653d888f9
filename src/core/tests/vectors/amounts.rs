//! Amounts: what is one, and how many base units it is.

use crate::file::vectors;
use sluice_core::units::{
    AmountError, Units, check_amount_form, format_amount, parse_amount, shortest,
};

#[test]
fn an_amount_is_accepted_or_refused_as_the_vectors_say_and_exact() {
    let mut accepted = 0;
    for amount in &vectors().amounts {
        let parsed = parse_amount(&amount.text, amount.decimals);
        let why = format!("{} ({}): {parsed:?}", amount.id, amount.why);
        assert_eq!(parsed.is_ok(), amount.accepted, "{why}");
        assert_eq!(parsed.ok(), amount.units, "{why}");
        accepted += usize::from(amount.accepted);
    }
    assert_eq!(accepted, 31);
}

#[test]
fn base_units_show_as_the_shortest_text_that_reads_back_as_them() {
    for amount in vectors().amounts.iter().filter(|amount| amount.accepted) {
        let units = amount.units.as_deref().expect(&amount.id);
        let text = format_amount(units, amount.decimals).expect(&amount.id);
        assert_eq!(shortest(&amount.text).as_ref(), Ok(&text), "{}", amount.id);
        assert!(text.len() <= amount.text.len(), "{}: {text}", amount.id);
        let again = parse_amount(&text, amount.decimals);
        assert_eq!(again.as_deref(), Ok(units), "{}", amount.id);
    }
}

#[test]
fn the_form_is_refused_for_its_own_sake_whatever_the_asset() {
    for amount in &vectors().amounts {
        let too_fine = matches!(
            parse_amount(&amount.text, amount.decimals),
            Err(AmountError::FractionDigits { .. })
        );
        let formed = check_amount_form(&amount.text).is_ok();
        assert_eq!(formed, amount.accepted || too_fine, "{}", amount.id);
        assert_eq!(formed, shortest(&amount.text).is_ok(), "{}", amount.id);
    }
}

#[test]
fn units_hold_what_numeric_38_0_holds() {
    let mut beyond = 0;
    for amount in vectors().amounts.iter().filter(|amount| amount.accepted) {
        let digits = amount.units.as_deref().expect(&amount.id);
        let units = digits.parse::<Units>();
        assert_eq!(
            Some(units.is_ok()),
            amount.fits_numeric_38_0,
            "{}",
            amount.id
        );
        match units {
            Ok(units) => assert_eq!(units.to_string(), digits, "{}", amount.id),
            Err(error) => {
                beyond += 1;
                assert_eq!(error, AmountError::TooLarge, "{}", amount.id);
            }
        }
    }
    assert_eq!(beyond, 5);
    assert_eq!(Units::new(Units::MAX.get()), Ok(Units::MAX));
    assert_eq!(Units::new(Units::MAX.get() + 1), Err(AmountError::TooLarge));
    assert_eq!(Units::new(u128::MAX), Err(AmountError::TooLarge));
    assert_eq!("0".repeat(100_000).parse(), Units::new(0));
    assert!("".parse::<Units>().is_err());
    assert!("+1".parse::<Units>().is_err());
    assert!("1.0".parse::<Units>().is_err());
}

#[test]
fn each_refusal_names_the_character_and_its_place() {
    let refusal = |text: &str| parse_amount(text, 6).expect_err(text);
    let character = |found, position| AmountError::Character { found, position };
    assert_eq!(refusal(""), AmountError::Empty);
    assert_eq!(refusal("-26"), character('-', 1));
    assert_eq!(refusal("+20"), character('+', 1));
    assert_eq!(refusal("1.5e3"), character('e', 4));
    assert_eq!(refusal("2,000"), character(',', 2));
    assert_eq!(refusal(" 22"), character(' ', 1));
    assert_eq!(refusal("15\n"), character('\n', 3));
    assert_eq!(refusal("1٢"), character('٢', 2));
    assert_eq!(refusal("."), AmountError::BarePoint { side: "before" });
    assert_eq!(refusal(".5"), AmountError::BarePoint { side: "before" });
    assert_eq!(refusal("1."), AmountError::BarePoint { side: "after" });
    assert_eq!(refusal("1.2.3"), AmountError::SecondPoint { position: 4 });
    assert_eq!(refusal("1..2"), AmountError::SecondPoint { position: 3 });
    let too_fine = AmountError::FractionDigits {
        found: 7,
        allowed: 6,
    };
    assert_eq!(refusal("1.0000000"), too_fine);
    assert_eq!(
        too_fine.to_string(),
        "the amount has 7 digits after its decimal point, the asset has 6"
    );
}

#[test]
fn text_from_base_units_is_the_shortest_exact_form() {
    for (units, decimals, text) in [
        ("1500000", 6, "1.5"),
        ("1", 6, "0.000001"),
        ("0", 6, "0"),
        ("000", 0, "0"),
        ("1000000", 6, "1"),
        ("0001500000", 6, "1.5"),
        ("10", 0, "10"),
        ("123", 3, "0.123"),
        (
            "1000000000000000000000000000000",
            6,
            "1000000000000000000000000",
        ),
    ] {
        assert_eq!(format_amount(units, decimals).as_deref(), Ok(text));
    }
    assert_eq!(shortest("0010.50").as_deref(), Ok("10.5"));
    assert_eq!(shortest("0.0").as_deref(), Ok("0"));
    assert_eq!(shortest("000").as_deref(), Ok("0"));
    for units in ["", "-1", "1.0", "NaN", " 1", "1\n"] {
        assert!(format_amount(units, 6).is_err(), "{units:?}");
    }
}

#[test]
fn an_asset_has_at_most_as_many_decimals_as_a_token_can_say() {
    let smallest = format_amount("1", 255).expect("255 is what a uint8 holds");
    assert_eq!(smallest.len(), 257);
    assert_eq!(parse_amount(&smallest, 255).as_deref(), Ok("1"));
    for decimals in [256, u32::MAX] {
        let refused = AmountError::Decimals(decimals);
        assert_eq!(parse_amount("1", decimals), Err(refused.clone()));
        assert_eq!(format_amount("1", decimals), Err(refused));
    }
}

#[test]
fn a_number_of_a_million_digits_is_read_exactly() {
    let long = "7".repeat(1_000_000);
    let units = parse_amount(&format!("{long}.5"), 6).expect("any length");
    assert_eq!(units, format!("{long}500000"));
    assert_eq!(format_amount(&units, 6), Ok(format!("{long}.5")));
}
