//! What the clients are to submit: drawn from the seed, withdrawal by withdrawal. Some are said twice and more at the same
//! time, some again much later, and some ids are used for two meanings.

use sluice_scenarios::destination;
use uuid::Uuid;

use crate::accounts::{PAYERS, payer};
use crate::clients::{Meaning, Order, Way};
use crate::draw::Draw;
use crate::stage::OTHER_ASSET;

/// How many addresses are paid.
pub const DESTINATIONS: u64 = 40;

/// An order, who gives it, and when.
#[derive(Debug, Clone)]
pub struct Given {
    /// The step.
    pub step: u64,
    /// The client; any number.
    pub client: usize,
    /// The order.
    pub order: Order,
}

/// All orders of a run, by step.
#[must_use]
pub fn orders(seed: u64, withdrawals: usize, steps: u64) -> Vec<Given> {
    // The last fifth of the steps brings only repetitions.
    let last = (steps * 4 / 5).max(1);
    let mut given = vec![];
    for index in 0..withdrawals as u64 {
        let mut draw = Draw::new(seed, "withdrawal", index);
        let operation_id = Uuid::from_bytes(draw.id());
        let meaning = meaning(&mut draw);
        let step = index * last / withdrawals as u64;
        let mut say = |step: u64, draw: &mut Draw, meaning: &Meaning| {
            given.push(Given {
                step,
                client: draw.index(64),
                order: Order {
                    operation_id,
                    meaning: meaning.clone(),
                    way: draw.pick(&[Way::Arguments, Way::Json, Way::Insert]),
                },
            });
        };
        say(step, &mut draw, &meaning);
        for _ in 0..draw.below(3) {
            say(step, &mut draw, &meaning);
        }
        if draw.below(8) == 0 {
            let other = other_meaning(&meaning, &mut draw);
            say(step, &mut draw, &other);
        }
        if draw.below(4) == 0 {
            let later = (step + draw.between(1, 30)).min(steps.saturating_sub(1));
            say(later, &mut draw, &meaning);
        }
    }
    given.sort_by_key(|given| given.step);
    given
}

fn meaning(draw: &mut Draw) -> Meaning {
    let asset = if draw.below(4) == 0 {
        OTHER_ASSET
    } else {
        "USDT-TRC20"
    };
    Meaning {
        to_address: a_destination(draw),
        amount: amount(draw),
        asset: asset.to_owned(),
        account: (draw.below(3) == 0).then(|| payer(draw.below(PAYERS))),
    }
}

fn a_destination(draw: &mut Draw) -> String {
    let n = u32::try_from(draw.below(DESTINATIONS)).expect("a small number");
    destination(n).to_string()
}

/// In its shortest form, which is how it comes back.
fn amount(draw: &mut Draw) -> String {
    let (whole, millionths) = (draw.below(5000), draw.between(1, 999_999));
    format!("{whole}.{millionths:06}")
        .trim_end_matches('0')
        .to_owned()
}

fn other_meaning(meaning: &Meaning, draw: &mut Draw) -> Meaning {
    let mut other = meaning.clone();
    match draw.below(3) {
        0 => other.amount = format!("1{}", meaning.amount),
        1 => other.account = Some(format!("nobody's {}", draw.below(1000))),
        _ => other.to_address = destination(900_000).to_string(),
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_repeat_and_each_step_of_the_run_has_room_for_its_own() {
        let told = |seed| {
            orders(seed, 200, 100)
                .into_iter()
                .map(|given| (given.step, given.order.operation_id, given.order.meaning))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(3), told(3));
        assert_ne!(told(3), told(4));
        let ids: std::collections::BTreeSet<Uuid> = told(3).iter().map(|given| given.1).collect();
        assert_eq!(ids.len(), 200);
        assert!(told(3).iter().all(|given| given.0 < 100));
    }
}
