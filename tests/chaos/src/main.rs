//! `sluice-chaos`: one run, told by the environment: SEED, OPS, WORKERS, MINUTES, and KEEP, where logs go.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_chaos::{Config, report, run};

fn main() -> ExitCode {
    let config = match configured() {
        Ok(config) => config,
        Err(complaint) => {
            eprintln!("sluice-chaos: {complaint}");
            return ExitCode::from(2);
        }
    };
    println!("chaos: SEED={} repeats the schedule", config.seed);
    let outcome = run(&config);
    print!("{}", report::summary(&config, &outcome));
    report::keep_or_clear(&config, &outcome);
    if outcome.is_clean() {
        println!("chaos: nothing found");
        return ExitCode::SUCCESS;
    }
    print!("{}", report::findings(&config, &outcome));
    ExitCode::FAILURE
}

fn configured() -> Result<Config, String> {
    let seed = number("SEED")?.unwrap_or_else(seed_of_now);
    let keep = env::var_os("KEEP").map_or_else(env::temp_dir, PathBuf::from);
    Ok(Config {
        seed,
        withdrawals: usize::try_from(number("OPS")?.unwrap_or(1000)).map_err(|e| e.to_string())?,
        workers: usize::try_from(number("WORKERS")?.unwrap_or(4)).map_err(|e| e.to_string())?,
        steps: Config::steps_of(number("MINUTES")?.unwrap_or(3)),
        server_wide: true,
        keep: keep.join(format!("sluice-chaos-{seed}")),
    })
    .and_then(|config| {
        if config.withdrawals == 0 || config.workers == 0 || config.steps == 0 {
            return Err("OPS, WORKERS and MINUTES must each be 1 or more".to_owned());
        }
        Ok(config)
    })
}

fn number(name: &str) -> Result<Option<u64>, String> {
    match env::var(name) {
        Ok(text) if !text.is_empty() => text
            .parse()
            .map(Some)
            .map_err(|_| format!("{name}: {text:?} is no whole number")),
        _ => Ok(None),
    }
}

fn seed_of_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_micros() as u64 % 1_000_000_000)
}
