//! The settings, as one table: what each is called on the command line, in the environment and in the file, what it means,
//! its unit and default. `--help` is printed from it, and every complaint about a value names its key from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// In words joined by hyphens, as on the command line.
    pub name: &'static str,
    /// What stands for the value in `--help`.
    pub value: &'static str,
    /// What it means, with its unit and, where there is no default, what happens then.
    pub help: &'static str,
    /// The default, as it would be written.
    pub default: Option<&'static str>,
    /// Whether it may be given several times.
    pub many: bool,
}

const fn key(
    name: &'static str,
    value: &'static str,
    default: Option<&'static str>,
    help: &'static str,
) -> Key {
    Key {
        name,
        value,
        help,
        default,
        many: false,
    }
}

const fn list(name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key {
        name,
        value,
        help,
        default: None,
        many: true,
    }
}

/// Every setting but the file they may stand in.
pub const KEYS: &[Key] = &[
    key(
        "database",
        "URL",
        None,
        "The database, as a libpq URL (postgresql://host:5432/name?sslmode=verify-full) or keywords (host=… dbname=…). \
         sslmode may be disable, prefer, require, verify-ca or verify-full; sslrootcert a PEM file or `system`. What it \
         leaves out comes from PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD, PGPASSFILE, PGSSLMODE, PGSSLROOTCERT and \
         ~/.pgpass. Its user must be a member of sluice_runner",
    ),
    key(
        "database-password",
        "SOURCE",
        None,
        "Where the database password is: file:PATH (mode 0600 or 0400) or env:NAME. Not the password itself",
    ),
    list(
        "node",
        "URL",
        "A TRON node's HTTP API, such as http://127.0.0.1:8090 or https://api.trongrid.io. Give several, each with its own \
         --node or separated by commas, and sending goes round while reading moves on from one that fails",
    ),
    list(
        "solidity",
        "URL",
        "The same node's solid API where that is another address, such as http://127.0.0.1:8091: one for each --node, in the \
         same order. Default: the address of --node",
    ),
    key(
        "node-api-key",
        "SOURCE",
        None,
        "Where the key is that goes out as TRON-PRO-API-KEY: file:PATH or env:NAME. Default: none is sent",
    ),
    key(
        "node-proxy",
        "URL",
        None,
        "An HTTP proxy for all requests to nodes. Default: none; the environment's is not used",
    ),
    list(
        "wallet",
        "WALLET=SIGNER:SOURCE",
        "Who signs for a wallet: its address (or * for all not named), `local` (a secp256k1 key of 64 hex digits) or `hmac` \
         (a mock: any text), and where the key is: file:PATH (mode 0600 or 0400) or env:NAME. Example: \
         TJRabPrwbZy45sbavfcjinPJC18kjpRTv8=local:file:/etc/sluice/hot.key. Every runner of a database must be able to \
         sign for every wallet",
    ),
    key(
        "worker-id",
        "NAME",
        None,
        "What this runner is called in the database, in nodes' logs and in its own: 1 to 64 printable ASCII characters, \
         different for each runner. Default: HOST-PID-RANDOM",
    ),
    key(
        "batch",
        "COUNT",
        Some("100"),
        "The most withdrawals held at once, 1 to 1000",
    ),
    key(
        "lease",
        "DURATION",
        None,
        "How long a claimed withdrawal is ours, 1s to 1h. Default: the database's setting",
    ),
    key(
        "concurrency",
        "COUNT",
        Some("16"),
        "The most digests with signers, and the most sends under way, at once, 1 to 256",
    ),
    key(
        "sign-timeout",
        "DURATION",
        Some("20s"),
        "How long a signer may take, 100ms to 10m; never beyond the lease",
    ),
    key(
        "send-timeout",
        "DURATION",
        Some("10s"),
        "How long a node may take to answer a broadcast, 100ms to 10m; never beyond the lease",
    ),
    key(
        "read-timeout",
        "DURATION",
        Some("20s"),
        "How long a node may take to answer any other request, 100ms to 10m",
    ),
    key(
        "connect-timeout",
        "DURATION",
        Some("5s"),
        "How long it may take to reach a node or the database, 100ms to 1m",
    ),
    key(
        "max-response",
        "SIZE",
        Some("64MiB"),
        "The longest answer taken from a node, 1MiB to 1GiB",
    ),
    key(
        "statement-timeout",
        "DURATION",
        Some("20s"),
        "How long the database may take for one statement, 1s to 10m. It has five seconds more to say anything at all; \
         a COMMIT not answered by then counts as not made",
    ),
    key(
        "poll-min",
        "DURATION",
        Some("200ms"),
        "The pause after a look that found something due, 10ms to 1m",
    ),
    key(
        "poll-max",
        "DURATION",
        Some("3s"),
        "The longest pause while nothing is due, 10ms to 10m; pauses double up to it",
    ),
    key(
        "follow-poll",
        "DURATION",
        Some("1s"),
        "The pause between looks for the next solid block, 10ms to 1m",
    ),
    key(
        "follow-batch",
        "COUNT",
        Some("20"),
        "The most blocks read and handed in at once when catching up, 1 to 100",
    ),
    key(
        "no-follow",
        "BOOL",
        Some("false"),
        "Whether to leave the reading of blocks to another runner",
    ),
    key(
        "stop-grace",
        "DURATION",
        Some("10s"),
        "How long to finish what is held after SIGTERM or SIGINT before the rest is released, 0s to 10m; never beyond the lease",
    ),
    key(
        "log",
        "FILTER",
        Some("info"),
        "What to log, on standard error: error, warn, info (a line per batch), debug (a line per withdrawal), or a list such \
         as warn,sluice_runner::follower=debug",
    ),
    key(
        "log-format",
        "FORMAT",
        Some("human"),
        "human or json (an object a line)",
    ),
];

impl Key {
    /// `--poll-min`
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// `SLUICE_POLL_MIN`
    #[must_use]
    pub fn variable(&self) -> String {
        format!(
            "SLUICE_{}",
            self.name.replace('-', "_").to_ascii_uppercase()
        )
    }

    /// `poll_min`
    #[must_use]
    pub fn in_file(&self) -> String {
        self.name.replace('-', "_")
    }

    fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    fn argument(&self) -> Arg {
        let default = self
            .default
            .map_or(String::new(), |default| format!(" [default: {default}]"));
        let arg = Arg::new(self.name)
            .long(self.name)
            .value_name(self.value)
            .global(true)
            .help(format!(
                "{}{default} [env: {}] [file: {}]",
                self.help,
                self.variable(),
                self.in_file()
            ));
        match (self.many, self.value) {
            (true, _) => arg.action(ArgAction::Append),
            (false, "BOOL") => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            (false, _) => arg,
        }
    }
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// On the command line.
    Flag,
    /// In the environment.
    Environment,
    /// In this file.
    File(PathBuf),
    /// Nowhere.
    Default,
}

/// A complaint about the configuration: one line that names the key and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A value that will not do.
    #[error("{}", value_line(.key, .source_of, .complaint))]
    Value {
        /// The setting's name.
        key: &'static str,
        /// Where it was given.
        source_of: Source,
        /// What is wrong and what to write instead.
        complaint: String,
    },
    /// The file cannot be used.
    #[error("{path}: {complaint}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        complaint: String,
    },
}

fn value_line(name: &str, source: &Source, complaint: &str) -> String {
    let key = Key::named(name).expect("complaints are made about settings of the table");
    let (flag, variable, in_file) = (key.flag(), key.variable(), key.in_file());
    let given = match source {
        Source::Flag => "given on the command line".to_owned(),
        Source::Environment => "given in the environment".to_owned(),
        Source::File(path) => format!("given in {}", path.display()),
        Source::Default => "not given".to_owned(),
    };
    format!("{flag} ({variable}, or {in_file} in the file; {given}): {complaint}")
}

/// What was given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    values: BTreeMap<&'static str, Vec<String>>,
    config: Option<String>,
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("config")
                    .long("config")
                    .value_name("FILE")
                    .global(true)
                    .help("A TOML file with any of the settings below. Flags win over the environment, the environment over the file [env: SLUICE_CONFIG]"),
            )
            .args(KEYS.iter().map(Key::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one::<String>("config").cloned();
        for key in KEYS {
            if let Some(given) = matches.get_many::<String>(key.name) {
                self.values.insert(key.name, given.cloned().collect());
            }
        }
        Ok(())
    }
}

/// Every setting's text and where it came from.
#[derive(Debug, Clone)]
pub struct Settings {
    values: BTreeMap<&'static str, (Vec<String>, Source)>,
}

impl Settings {
    /// Flags over environment over file over defaults.
    pub fn gather(
        flags: &Flags,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        // An empty variable is how a deployment says that it has no value.
        let set = |name: &str| environment(name).filter(|given| !given.is_empty());
        let path = flags
            .config
            .clone()
            .or_else(|| set("SLUICE_CONFIG"))
            .map(PathBuf::from);
        let mut file = path.as_deref().map_or(Ok(BTreeMap::new()), read_file)?;
        let values = KEYS
            .iter()
            .map(|key| {
                let from_flags = || {
                    flags
                        .values
                        .get(key.name)
                        .cloned()
                        .map(|given| (given, Source::Flag))
                };
                let from_environment =
                    || set(&key.variable()).map(|given| (vec![given], Source::Environment));
                let from_file = |path: &PathBuf| {
                    file.remove(key.name)
                        .map(|given| (given, Source::File(path.clone())))
                };
                let value = from_flags()
                    .or_else(from_environment)
                    .or_else(|| path.as_ref().and_then(from_file))
                    .unwrap_or_else(|| {
                        (
                            key.default.map(str::to_owned).into_iter().collect(),
                            Source::Default,
                        )
                    });
                (key.name, value)
            })
            .collect();
        Ok(Self { values })
    }

    /// The setting's value, read by `parse`, or `None` where it is given nowhere and has no default.
    pub fn optional<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let (given, _) = self.given(name);
        match given {
            [] => Ok(None),
            [one] => parse(one.trim())
                .map(Some)
                .map_err(|complaint| self.complaint(name, complaint)),
            [_, _, ..] => Err(self.complaint(name, "give it once".to_owned())),
        }
    }

    /// The value of a setting that has a default.
    pub fn value<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let value = self.optional(name, parse)?;
        Ok(value.expect("the caller asks this of settings with a default only"))
    }

    /// All values of a setting that may be given several times, by repeating it, by commas or as a list.
    pub fn all<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, ConfigError> {
        let (given, _) = self.given(name);
        given
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(|text| parse(text).map_err(|complaint| self.complaint(name, complaint)))
            .collect()
    }

    /// A complaint about a setting.
    #[must_use]
    pub fn complaint(&self, name: &'static str, complaint: String) -> ConfigError {
        ConfigError::Value {
            key: name,
            source_of: self.given(name).1.clone(),
            complaint,
        }
    }

    /// Whether the setting was given on the command line.
    #[must_use]
    pub fn is_from_flags(&self, name: &'static str) -> bool {
        *self.given(name).1 == Source::Flag
    }

    fn given(&self, name: &'static str) -> (&[String], &Source) {
        let (given, source) = self
            .values
            .get(name)
            .expect("only settings of the table are asked for");
        (given, source)
    }
}

/// The file's values by setting. Unknown keys are refused: a misspelt limit that is silently ignored is worse than none.
fn read_file(path: &Path) -> Result<BTreeMap<&'static str, Vec<String>>, ConfigError> {
    let complain = |complaint: String| ConfigError::File {
        path: path.to_owned(),
        complaint,
    };
    let text = std::fs::read_to_string(path).map_err(|error| complain(error.to_string()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        complain(format!(
            "line {line} is not TOML: {}",
            error.message().replace('\n', " ")
        ))
    })?;
    let mut values = BTreeMap::new();
    for (name, value) in table {
        let Some(key) = KEYS.iter().find(|key| key.in_file() == name) else {
            return Err(complain(format!(
                "unknown key \"{name}\": {}",
                nearest(&name)
            )));
        };
        values.insert(key.name, texts(key, value).map_err(complain)?);
    }
    Ok(values)
}

fn texts(key: &Key, value: toml::Value) -> Result<Vec<String>, String> {
    let one = |value: toml::Value| match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        toml::Value::Float(_)
        | toml::Value::Datetime(_)
        | toml::Value::Array(_)
        | toml::Value::Table(_) => Err(format!(
            "key \"{}\" must be a text, an integer or true or false",
            key.in_file()
        )),
    };
    match value {
        toml::Value::Array(values) if key.many => values.into_iter().map(one).collect(),
        value => one(value).map(|text| vec![text]),
    }
}

/// The remedy for an unknown key: the key that shares most of its beginning, or the way to the list.
fn nearest(name: &str) -> String {
    let name = name.replace('-', "_");
    let shared = |key: &Key| {
        key.in_file()
            .chars()
            .zip(name.chars())
            .take_while(|(a, b)| a == b)
            .count()
    };
    match KEYS.iter().max_by_key(|key| shared(key)) {
        Some(key) if shared(key) >= 2 => format!(
            "did you mean \"{}\"? sluice-runner --help lists all",
            key.in_file()
        ),
        Some(_) | None => "sluice-runner --help lists all".to_owned(),
    }
}
