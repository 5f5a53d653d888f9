//! The short run of chaos: every fault that strikes one process, one session, one node or one client, and none that takes the
//! whole server away (`make chaos` has those).

use std::env;
use std::path::PathBuf;

use sluice_chaos::{Config, report, run};

/// Another seed is tried with CHAOS_SEED.
const SEED: u64 = 20_260_101;

#[test]
fn two_hundred_withdrawals_under_every_fault_are_each_paid_at_most_once_and_none_is_lost() {
    let seed = env::var("CHAOS_SEED")
        .ok()
        .map_or(SEED, |text| text.parse().expect("a whole number"));
    let config = Config {
        seed,
        withdrawals: 200,
        workers: 4,
        steps: 100,
        server_wide: false,
        keep: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{seed}")),
    };
    let outcome = run(&config);
    println!("{}", report::summary(&config, &outcome));
    report::keep_or_clear(&config, &outcome);
    assert!(
        outcome.is_clean(),
        "{}",
        report::findings(&config, &outcome)
    );
}
