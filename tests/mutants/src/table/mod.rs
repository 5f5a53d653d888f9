//! The mutants, a file for each part of sluice that they break. They are sorted by what is lost, not by where the line stands: one
//! rule is often held in more than one place, and a mutant that a second place would hold changes both.

mod blocks;
mod claims;
mod clients;
mod ends;
mod guard;
mod rails;
mod reports;

use crate::mutant::Mutant;

/// All of them.
#[must_use]
pub fn mutants() -> Vec<Mutant> {
    [
        claims::MUTANTS,
        reports::MUTANTS,
        ends::MUTANTS,
        blocks::MUTANTS,
        guard::MUTANTS,
        clients::MUTANTS,
        rails::MUTANTS,
    ]
    .concat()
}
