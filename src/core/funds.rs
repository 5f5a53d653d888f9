//! Funds: which of several withdrawals an account can cover. Each that fits takes its amount away from those after it; one that
//! does not fit takes nothing, and stands in nobody's way.

use std::collections::HashMap;
use std::hash::Hash;

use crate::units::Units;

/// For each request, in the order given, whether what is left of its account's available units covers it. An account that is
/// not listed has nothing.
pub fn cover<A: Eq + Hash>(
    available: impl IntoIterator<Item = (A, Units)>,
    requests: impl IntoIterator<Item = (A, Units)>,
) -> Vec<bool> {
    let mut left: HashMap<A, u128> = available
        .into_iter()
        .map(|(account, units)| (account, units.get()))
        .collect();
    requests
        .into_iter()
        .map(|(account, units)| {
            let Some(left) = left.get_mut(&account) else {
                return false;
            };
            let Some(rest) = left.checked_sub(units.get()) else {
                return false;
            };
            *left = rest;
            true
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(count: u128) -> Units {
        Units::new(count).expect("few")
    }

    #[test]
    fn what_does_not_fit_takes_nothing_from_what_does() {
        let covered = cover(
            [("a", units(10)), ("b", Units::MAX)],
            [
                ("a", units(8)),
                ("a", units(5)),
                ("b", Units::MAX),
                ("a", units(2)),
                ("a", units(1)),
                ("b", units(1)),
                ("c", units(1)),
            ],
        );
        assert_eq!(covered, [true, false, true, true, false, false, false]);
    }
}
