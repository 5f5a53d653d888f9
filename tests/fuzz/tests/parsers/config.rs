//! The runner's configuration: files, variables, durations, and the sources of secrets. A wrong one is told of in one line.

use std::collections::HashMap;
use std::io::Write as _;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sluice_fuzz::fuzz;
use sluice_fuzz::text::{any_text, nearly_an_address, touched, touches};
use sluice_runner::config::{Config, WalletRule, duration};
use sluice_runner::secret::SecretSource;
use sluice_runner::settings::{Flags, KEYS, Key, Settings};

/// Some setting.
fn key() -> impl Strategy<Value = &'static Key> {
    (0..KEYS.len()).prop_map(|place| &KEYS[place])
}

/// A value that some setting takes, or nearly.
fn value() -> impl Strategy<Value = String> {
    let good = prop::sample::select(&[
        "1",
        "100",
        "16",
        "200ms",
        "3s",
        "10m",
        "1h",
        "64MiB",
        "1GiB",
        "true",
        "false",
        "info",
        "json",
        "human",
        "warn,sluice_runner::follower=debug",
        "http://127.0.0.1:8090",
        "https://api.trongrid.io/key/",
        "env:KEY",
        "file:/k",
        "*=hmac:env:KEY",
        "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8=local:file:/k",
        "postgresql://u@h:5432/d",
        "a-worker",
    ]);
    prop_oneof![
        3 => good.clone().prop_map(str::to_owned),
        3 => (good, touches()).prop_map(|(good, touches)| touched(good, &touches)),
        1 => any::<u64>().prop_map(|number| number.to_string()),
        1 => any_text(),
    ]
}

/// Each complaint is one line that people can read.
fn complains_in_one_line(complaint: &str) -> Result<(), TestCaseError> {
    prop_assert!(
        !complaint.is_empty() && complaint.chars().count() < 1000,
        "{}",
        complaint
    );
    prop_assert!(
        !complaint.contains(['\n', '\r', '\0', '\u{1b}']),
        "{:?}",
        complaint
    );
    Ok(())
}

#[test]
fn a_duration_is_a_whole_number_and_a_unit_within_its_bounds() {
    let text = prop_oneof![
        3 => "[0-9]{1,21} {0,2}(ms|s|m|h|d|S|)",
        1 => value(),
    ];
    fuzz("durations", 2000, text, |text| {
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let unit = match unit.trim_start() {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let expected = number
            .parse::<u128>()
            .ok()
            .zip(unit)
            .map(|(number, unit)| number * unit)
            .filter(|milliseconds| (1000..=3_600_000).contains(milliseconds));
        match duration(&text, "1s", "1h") {
            Ok(read) => prop_assert_eq!(Some(read.as_millis()), expected),
            Err(complaint) => {
                prop_assert_eq!(expected, None);
                complains_in_one_line(&complaint)?;
            }
        }
        Ok(())
    });
}

#[test]
fn no_file_and_no_variable_brings_the_runner_down() {
    let line = prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| format!("{} = {value:?}", key.in_file())),
        1 => (key(), value()).prop_map(|(key, value)| format!("{} = [{value:?}, 1]", key.in_file())),
        1 => (key(), "[0-9]{1,20}|-1|1e9|nan|true|\\[\\]|1979-05-27|\\{a=1\\}")
            .prop_map(|(key, value)| format!("{} = {value}", key.in_file())),
        1 => any_text(),
    ];
    let file = prop_oneof![
        6 => vec(line, 0..6).prop_map(|lines| lines.join("\n").into_bytes()),
        1 => sluice_fuzz::bytes::noise(300),
        1 => (1..20_000_usize).prop_map(|deep| ("batch = ".to_owned() + &"[".repeat(deep)).into_bytes()),
    ];
    let variables = vec((key(), value()), 0..5);
    fuzz("settings", 500, (file, variables), |(file, variables)| {
        let mut given = tempfile::NamedTempFile::new().expect("a file");
        given.write_all(&file).expect("it can be written");
        let mut environment: HashMap<String, String> = variables
            .into_iter()
            .map(|(key, value)| (key.variable(), value))
            .collect();
        environment.insert(
            "SLUICE_CONFIG".to_owned(),
            given.path().display().to_string(),
        );
        let read = Settings::gather(&Flags::default(), |name| environment.get(name).cloned())
            .and_then(Config::read);
        match read {
            Ok(config) => {
                prop_assert!((1..=1000).contains(&config.work.batch));
                prop_assert!((1..=256).contains(&config.work.concurrency));
                prop_assert!(config.work.poll_min <= config.work.poll_max);
                prop_assert!(config.work.poll_min >= Duration::from_millis(10));
                let named = &config.work.worker_id;
                prop_assert!((1..=64).contains(&named.len()) && named.is_ascii());
            }
            Err(error) => complains_in_one_line(&error.to_string())?,
        }
        Ok(())
    });
}

#[test]
fn a_rule_for_a_wallet_is_read_or_refused_in_one_line() {
    let rule = prop_oneof![
        3 => (nearly_an_address(), "(local|hmac|kms)", "(file:|env:|)[!-~]{0,12}")
            .prop_map(|(wallet, signer, source)| format!("{wallet}={signer}:{source}")),
        1 => value(),
    ];
    fuzz("wallet_rules", 1000, rule, |text| {
        if let Err(complaint) = text.parse::<WalletRule>() {
            complains_in_one_line(&complaint)?;
        }
        if let Ok(source) = text.parse::<SecretSource>() {
            prop_assert_eq!(source.to_string(), text);
        }
        Ok(())
    });
}
