//! What the database holds by itself: rows of the table in `docs/failures.md`, a file for each subject. Calls and statements are made
//! by hand, so that no care of a runner's stands before a rule.

mod by_hand;
mod caller;
mod calls;
mod false_blocks;
mod proofs;
mod receipts;
