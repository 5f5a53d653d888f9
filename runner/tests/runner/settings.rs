//! Settings: who wins, and that each complaint is one line that names the key, where it was given and the remedy.

use clap::Parser as _;
use sluice_runner::cli::Cli;
use sluice_runner::config::Config;
use sluice_runner::settings::{ConfigError, KEYS, Settings};

const NODE: &str = "http://127.0.0.1:8090";

/// What a command line, an environment and a file make together.
fn read(
    arguments: &[&str],
    environment: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Config, ConfigError> {
    let path = std::env::temp_dir().join(format!(
        "sluice-config-{}-{:x}.toml",
        std::process::id(),
        fastrand::u64(..)
    ));
    let mut line = vec!["sluice-runner".to_owned(), "run".to_owned()];
    if let Some(text) = file {
        std::fs::write(&path, text).expect("a temporary file can be written");
        line.extend(["--config".to_owned(), path.display().to_string()]);
    }
    line.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
    let environment = |name: &str| {
        environment
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let config = Settings::gather(&cli.flags, environment).and_then(Config::read);
    if file.is_some() {
        std::fs::remove_file(path).expect("it can be removed");
    }
    config
}

fn refused(arguments: &[&str], environment: &[(&str, &str)], file: Option<&str>) -> String {
    let config = read(arguments, environment, file);
    let error = config
        .and_then(|config| config.nodes().map(|_| config))
        .err()
        .expect("it is wrong")
        .to_string();
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file_and_all_over_the_defaults() {
    let file = Some("batch = 30\nconcurrency = 3\npoll_min = \"30ms\"\nno_follow = true\n");
    let environment = [("SLUICE_BATCH", "20"), ("SLUICE_CONCURRENCY", "2")];
    let config = read(&["--batch", "10"], &environment, file).expect("it is right");
    assert_eq!(config.work.batch, 10);
    assert_eq!(config.work.concurrency, 2);
    assert_eq!(config.work.poll_min.as_millis(), 30);
    assert!(!config.follows);
    assert_eq!(config.work.stop_grace.as_secs(), 10);
}

#[test]
fn an_empty_variable_is_no_value() {
    assert_eq!(
        read(&[], &[("SLUICE_BATCH", "")], None)
            .expect("it is right")
            .work
            .batch,
        100
    );
}

#[test]
fn every_default_is_within_its_own_bounds() {
    let config = read(&["--node", NODE], &[], None).expect("the defaults are right");
    config.nodes().expect("they make a client");
    config
        .database(|_| None)
        .expect("they say where the database is");
}

#[test]
fn lists_are_repeated_flags_commas_or_arrays() {
    let count = |config: Config| config.nodes().expect("nodes").all().len();
    let two = "http://a:1,http://b:2";
    assert_eq!(
        count(read(&["--node", "http://a:1", "--node", "http://b:2"], &[], None).expect("right")),
        2
    );
    assert_eq!(count(read(&["--node", two], &[], None).expect("right")), 2);
    assert_eq!(
        count(read(&[], &[("SLUICE_NODE", two)], None).expect("right")),
        2
    );
    assert_eq!(
        count(read(&[], &[], Some("node = [\"http://a:1\", \"http://b:2\"]")).expect("right")),
        2
    );
}

#[test]
fn a_wrong_value_is_one_line_with_flag_variable_file_key_place_and_remedy() {
    let line = refused(&["--batch", "0"], &[], None);
    for part in [
        "--batch",
        "SLUICE_BATCH",
        "batch in the file",
        "command line",
        "1 to 1000",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(refused(&[], &[("SLUICE_LEASE", "5")], None).contains("given in the environment"));
    assert!(refused(&[], &[], Some("poll_max = \"eternity\"")).contains(".toml"));
    assert!(
        refused(&[], &[], None)
            .contains("--node (SLUICE_NODE, or node in the file; not given): give at least one")
    );
}

#[test]
fn wrong_values_of_every_kind_are_refused() {
    let cases: &[&[&str]] = &[
        &["--batch", "1001"],
        &["--batch", "ten"],
        &["--batch=-1"],
        &["--concurrency", "0"],
        &["--lease", "0s"],
        &["--lease", "30"],
        &["--lease", "999999999999999999999s"],
        &["--poll-min", "5s"],
        &["--statement-timeout", "10ms"],
        &["--max-response", "64"],
        &["--max-response", "1PiB"],
        &["--worker-id", ""],
        &["--worker-id", "two words"],
        &["--worker-id", "a)b"],
        &["--log", "loud=very=much"],
        &["--log-format", "xml"],
        &["--no-follow=perhaps"],
        &["--node", "127.0.0.1:8090"],
        &["--node", "ftp://h"],
        &["--node", "http://h/?key=5ec2e7"],
        &["--node", NODE, "--solidity", "http://a,http://b"],
        &["--node", NODE, "--node-proxy", "nowhere"],
        &["--node", NODE, "--node-api-key", "5ec2e7"],
        &[
            "--node",
            NODE,
            "--node-api-key",
            "env:SLUICE_TEST_OF_NOTHING",
        ],
        &["--wallet", "5ec2e7"],
        &["--wallet", "*=local:5ec2e7"],
        &["--wallet", "*=ledger:env:K"],
        &["--wallet", "*=hmac:env:A", "--wallet", "*=hmac:env:B"],
        &["--wallet", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T=hmac:env:A"],
    ];
    for case in cases {
        let line = refused(case, &[], None);
        let key = case
            .iter()
            .rev()
            .find(|word| word.starts_with("--"))
            .expect("a flag");
        let key = key.split('=').next().expect("a name");
        assert!(line.starts_with(key), "{case:?}: {line}");
        assert!(
            !line.contains("5ec2e7"),
            "a secret in the wrong place is not repeated: {line}"
        );
    }
}

#[test]
fn a_file_with_an_unknown_key_or_of_another_form_is_refused_with_a_hint() {
    assert!(refused(&[], &[], Some("btach = 5")).contains("unknown key \"btach\""));
    assert!(refused(&[], &[], Some("poll-min = \"1s\"")).contains("did you mean \"poll_min\""));
    assert!(refused(&[], &[], Some("batch = 5\nnode = ")).contains("line 2"));
    assert!(refused(&[], &[], Some("batch = 1.5")).contains("\"batch\""));
    assert!(refused(&[], &[], Some("batch = [1]")).contains("\"batch\""));
    assert!(refused(&[], &[], Some("[worker]\nbatch = 1")).contains("unknown key \"worker\""));
    let missing = read(&["--config", "/nonexistent/sluice.toml"], &[], None)
        .err()
        .expect("no such file")
        .to_string();
    assert!(
        missing.starts_with("/nonexistent/sluice.toml: "),
        "{missing}"
    );
}

#[test]
fn help_explains_every_setting_with_its_default_variable_and_file_key() {
    use clap::CommandFactory as _;
    let help = Cli::command().term_width(10_000).render_help().to_string();
    for key in KEYS {
        assert!(help.contains(&key.flag()), "{}", key.name);
        assert!(
            help.contains(&format!("[env: {}]", key.variable())),
            "{}",
            key.name
        );
        assert!(
            help.contains(&format!("[file: {}]", key.in_file())),
            "{}",
            key.name
        );
        match key.default {
            Some(default) => assert!(
                help.contains(&format!("[default: {default}]")),
                "{}",
                key.name
            ),
            None => assert!(!key.help.is_empty(), "{}", key.name),
        }
    }
}

#[test]
fn settings_stand_before_or_after_the_command() {
    for line in [
        ["sluice-runner", "--batch", "7", "run"],
        ["sluice-runner", "run", "--batch", "7"],
    ] {
        let cli = Cli::try_parse_from(line).expect("both are right");
        let settings = Settings::gather(&cli.flags, |_| None)
            .and_then(Config::read)
            .expect("it is right");
        assert_eq!(settings.work.batch, 7);
    }
}

#[test]
fn two_runners_never_have_the_same_default_name() {
    let name = || read(&[], &[], None).expect("it is right").work.worker_id;
    let (one, other) = (name(), name());
    assert_ne!(one, other);
    assert!(
        one.len() <= 64 && one.contains(&std::process::id().to_string()),
        "{one}"
    );
}
