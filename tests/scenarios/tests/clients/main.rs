//! What can go wrong between clients and intake: rows of the table in `docs/failures.md`, a file for each subject.

mod intake;
mod isolation;
mod lost_answers;
mod twins;
