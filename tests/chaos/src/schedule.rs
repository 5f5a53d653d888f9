//! The schedule: which faults strike at a step, and the numbers that say against whom. A pure function of the seed and the
//! step; nothing that happens in a run can shift it.

use crate::draw::Draw;
use crate::kind::{Kind, Reach};

/// A fault that strikes now.
#[derive(Debug, Clone)]
pub struct Strike {
    /// Which.
    pub kind: Kind,
    /// Against whom, how long, how hard.
    pub draw: Draw,
}

/// What strikes at this step, in the order of [`Kind::ALL`]. Each kind strikes once in each of its periods, at a step that
/// the seed draws.
#[must_use]
pub fn strikes(seed: u64, step: u64, server_wide: bool) -> Vec<Strike> {
    Kind::ALL
        .iter()
        .filter(|kind| server_wide || kind.reach() == Reach::Short)
        .filter(|kind| strikes_at(seed, **kind, step))
        .map(|kind| Strike {
            kind: *kind,
            draw: Draw::new(seed, kind.name(), step),
        })
        .collect()
}

fn strikes_at(seed: u64, kind: Kind, step: u64) -> bool {
    let every = kind.every();
    if every == 0 {
        return false;
    }
    let period = step / every;
    let place = Draw::new(seed, "place", period ^ (kind as u64) << 32).below(every);
    step % every == place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seed: u64) -> Vec<(u64, Kind, u64)> {
        (0..200)
            .flat_map(|step| {
                strikes(seed, step, true)
                    .into_iter()
                    .map(move |mut strike| (step, strike.kind, strike.draw.number()))
            })
            .collect()
    }

    #[test]
    fn the_seed_and_nothing_else_decides_what_strikes_whom_and_when() {
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn every_kind_strikes_once_in_each_of_its_periods() {
        for seed in 0..20 {
            for kind in Kind::ALL.iter().filter(|kind| kind.every() > 0) {
                let every = kind.every();
                for period in 0..4 {
                    let struck = (period * every..(period + 1) * every)
                        .filter(|step| strikes_at(seed, *kind, *step))
                        .count();
                    assert_eq!(struck, 1, "{kind} in period {period} of seed {seed}");
                }
            }
        }
    }
}
