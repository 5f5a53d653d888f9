//! What can go wrong with PostgreSQL: rows of the table in `docs/failures.md`, a file for each subject.

mod clock;
mod contention;
mod durability;
mod failing_commits;
mod full_disk;
mod isolation;
mod lost_commits;
mod open_transactions;
mod stage;
mod standby;
mod stops;
