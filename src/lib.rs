//! sluice, the PostgreSQL extension: a table of contents. The Rust that SQL calls is in `pg`, a file per subject; the tables
//! and the set-based functions are in `sql/`, a file per job, loaded in the order below. What there is to decide is decided
//! in the crate `sluice-core`.

use pgrx::prelude::*;

mod pg;

::pgrx::pg_module_magic!(name, version);

extension_sql_file!("../sql/types.sql", name = "types", bootstrap);
extension_sql_file!(
    "../sql/amount.sql",
    name = "amount",
    requires = [
        "types",
        pg::amount::amount_in,
        pg::amount::amount_recv,
        pg::amount::amount_from_text,
        pg::amount::amount_from_numeric,
        pg::amount::amount_from_bigint
    ]
);
extension_sql_file!(
    "../sql/tables.sql",
    name = "tables",
    requires = [
        "amount",
        pg::clock::now,
        pg::decision::max_time_to_live_ms,
        pg::envelope::address_is_valid,
        pg::envelope::txid
    ]
);
extension_sql_file!(
    "../sql/pure.sql",
    name = "pure",
    requires = [
        "tables",
        pg::amount::parse_amount,
        pg::amount::format_amount,
        pg::block::decode_block,
        pg::decision::chart,
        pg::decision::chart_has,
        pg::envelope::address_bytes,
        pg::envelope::address_text,
        pg::envelope::request_hash,
        pg::envelope::raw_data,
        pg::envelope::tag,
        pg::envelope::decode_raw_data,
        pg::envelope::signed_transaction
    ]
);
extension_sql_file!(
    "../sql/guard.sql",
    name = "guard",
    requires = [
        "pure",
        pg::fresh::mark_fresh,
        pg::guard::withdrawals_before_update,
        pg::intake::withdrawals_before_insert
    ]
);
extension_sql_file!(
    "../sql/guard_envelopes.sql",
    name = "guard_envelopes",
    requires = ["guard"]
);
extension_sql_file!(
    "../sql/guard_chain.sql",
    name = "guard_chain",
    requires = ["guard_envelopes"]
);
extension_sql_file!(
    "../sql/guard_ledger.sql",
    name = "guard_ledger",
    requires = ["guard_chain"]
);
extension_sql_file!(
    "../sql/defaults.sql",
    name = "defaults",
    requires = ["guard_ledger"]
);
extension_sql_file!(
    "../sql/commit.sql",
    name = "commit",
    requires = ["defaults"]
);
extension_sql_file!("../sql/setup.sql", name = "setup", requires = ["commit"]);
extension_sql_file!("../sql/custody.sql", name = "custody", requires = ["setup"]);
extension_sql_file!(
    "../sql/ledger.sql",
    name = "ledger",
    requires = ["custody", pg::route::posting_id]
);
extension_sql_file!(
    "../sql/rails.sql",
    name = "rails",
    requires = ["ledger", pg::route::cover, pg::route::decide_route]
);
extension_sql_file!("../sql/submit.sql", name = "submit", requires = ["rails"]);
extension_sql_file!(
    "../sql/worker.sql",
    name = "worker",
    requires = [
        "submit",
        pg::decision::backoff_ms,
        pg::decision::longest_wait_ms
    ]
);
extension_sql_file!("../sql/claim.sql", name = "claim", requires = ["worker"]);
extension_sql_file!("../sql/record.sql", name = "record", requires = ["claim"]);
extension_sql_file!(
    "../sql/observe.sql",
    name = "observe",
    requires = ["record", pg::decision::receipt_failed]
);
extension_sql_file!(
    "../sql/approvals.sql",
    name = "approvals",
    requires = ["observe"]
);
extension_sql_file!(
    "../sql/ending.sql",
    name = "ending",
    requires = ["approvals"]
);
extension_sql_file!("../sql/people.sql", name = "people", requires = ["ending"]);
extension_sql_file!(
    "../sql/overview.sql",
    name = "overview",
    requires = ["people"]
);
extension_sql_file!(
    "../sql/verify.sql",
    name = "verify",
    requires = ["overview", pg::guard::entry_hash]
);
extension_sql_file!("../sql/grants.sql", name = "grants", finalize);

/// Called once per backend, when the library is loaded.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::clock::define_setting();
    pg::intake::watch_subtransactions();
}

#[cfg(any(test, feature = "pg_test"))]
mod tests;

/// What `cargo pgrx test` asks the crate's root for.
#[cfg(test)]
pub mod pg_test {
    /// Nothing needs preparing.
    pub fn setup(_options: Vec<&str>) {}

    /// Nothing needs configuring.
    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![]
    }
}
