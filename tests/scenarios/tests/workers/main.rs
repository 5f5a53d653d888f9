//! What runners and signers can do wrong: die, stand still, come too late, sign badly, report what is not so. Each test is a row
//! of docs/failures.md.

mod batches;
mod claims;
mod crashes;
mod followers;
mod poison;
mod refusals;
mod reports;
mod signing;
mod stage;
mod zombies;
