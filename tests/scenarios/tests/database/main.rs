//! What can go wrong with PostgreSQL: rows of the table in `docs/failures.md`, a file for each subject.

mod durability;
mod failing_commits;
mod lost_commits;
mod stage;
mod standby;
mod stops;
