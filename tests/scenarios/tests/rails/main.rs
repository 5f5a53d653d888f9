//! Rails, accounts and approvals: rows of the table in `docs/failures.md`, a file for each subject.

mod approvals;
mod crowd;
mod deaths;
mod external;
mod in_flight;
mod isolation;
mod stage;
