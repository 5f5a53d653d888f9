//! Nodes that lie, forget and disagree, and a chain that forks, stalls and fails what it is given: rows of the table in
//! `docs/failures.md`, a file for each subject.

mod answers;
mod bad_blocks;
mod branches;
mod folded_blocks;
mod inclusion;
mod pools;
mod receipts;
mod resends;
mod stage;
