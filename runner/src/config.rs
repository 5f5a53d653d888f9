//! The configuration: every setting read, bounded and turned into what the rest of the runner takes, so that nothing wrong
//! gets past this file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use sluice_core::address::Address;
use zeroize::Zeroizing;

use crate::database_url::DatabaseUrl;
use crate::logging::Format;
use crate::node::{Limits, Node};
use crate::nodes::Nodes;
use crate::secret::SecretSource;
use crate::settings::{ConfigError, Settings};

/// Ten blocks' time, at java-tron's pace: a chain that stands still for as long has worse to show than an extra request.
const STALLED: Duration = Duration::from_secs(30);

/// Which wallet a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalletName {
    /// This one.
    One(Address),
    /// Every one that no other rule names.
    AllOthers,
}

impl fmt::Display for WalletName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(address) => address.fmt(f),
            Self::AllOthers => f.write_str("*"),
        }
    }
}

/// Which signer, and where its key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignerRule {
    /// A secp256k1 key in this process.
    Local(SecretSource),
    /// The mock.
    Hmac(SecretSource),
}

/// Who signs for a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletRule {
    /// Which wallet.
    pub wallet: WalletName,
    /// By whom.
    pub signer: SignerRule,
}

impl FromStr for WalletRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write WALLET=SIGNER:SOURCE, such as T…=local:file:/etc/sluice/hot.key or *=hmac:env:KEY";
        let (wallet, signer) = text.split_once('=').ok_or(FORM)?;
        let wallet = match wallet.trim() {
            "*" => WalletName::AllOthers,
            address => WalletName::One(
                Address::parse(address)
                    .map_err(|error| format!("\"{}\": {error}", shown(address)))?,
            ),
        };
        let (kind, source) = signer.trim().split_once(':').ok_or(FORM)?;
        let source = source.parse().map_err(|_| FORM)?;
        let signer = match kind {
            "local" => SignerRule::Local(source),
            "hmac" => SignerRule::Hmac(source),
            other => {
                return Err(format!(
                    "\"{}\" is no signer: write local or hmac",
                    shown(other)
                ));
            }
        };
        Ok(Self { wallet, signer })
    }
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// In the words of tracing's filters.
    pub filter: String,
    /// For people or for machines.
    pub format: Format,
}

/// How the database is spoken to.
#[derive(Clone)]
pub struct DatabaseConfig {
    /// Where it is.
    pub url: DatabaseUrl,
    /// How long it may take for one statement.
    pub statement_timeout: Duration,
}

/// How withdrawals are worked on.
#[derive(Debug, Clone)]
pub struct WorkConfig {
    /// What this runner is called.
    pub worker_id: String,
    /// The most withdrawals held at once.
    pub batch: usize,
    /// How long a claim lasts; `None` for the database's setting.
    pub lease: Option<Duration>,
    /// The most signings, and the most sends, at once.
    pub concurrency: usize,
    /// How long a signer may take.
    pub sign_timeout: Duration,
    /// How long a broadcast may take.
    pub send_timeout: Duration,
    /// The shortest pause between looks.
    pub poll_min: Duration,
    /// The longest.
    pub poll_max: Duration,
    /// How long to finish what is held when told to stop.
    pub stop_grace: Duration,
}

/// How blocks are followed.
#[derive(Debug, Clone, Copy)]
pub struct FollowConfig {
    /// The pause between looks for the next block.
    pub poll: Duration,
    /// The most blocks handed in at once.
    pub batch: i64,
    /// How long a node's solid head may stand still before the other nodes are asked for theirs.
    pub stalled: Duration,
}

/// All of it.
pub struct Config {
    settings: Settings,
    /// How to log.
    pub log: LogConfig,
    /// How withdrawals are worked on.
    pub work: WorkConfig,
    /// How blocks are followed.
    pub follow: FollowConfig,
    /// Whether this runner follows at all.
    pub follows: bool,
    /// Who signs.
    pub wallets: Vec<WalletRule>,
    full: Vec<Url>,
    solid: Vec<Url>,
    limits: Limits,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

impl Config {
    /// Reads every setting, whether the command needs it or not: a wrong value is told of when it is written, not when it
    /// is first used. What the settings point to (secrets, certificates) is read when it is needed.
    pub fn read(settings: Settings) -> Result<Self, ConfigError> {
        let s = &settings;
        let work = WorkConfig {
            worker_id: s
                .optional("worker-id", worker_id)?
                .unwrap_or_else(default_worker_id),
            batch: s.value("batch", |text| count(text, 1, 1000))?,
            lease: s.optional("lease", |text| duration(text, "1s", "1h"))?,
            concurrency: s.value("concurrency", |text| count(text, 1, 256))?,
            sign_timeout: s.value("sign-timeout", |text| duration(text, "100ms", "10m"))?,
            send_timeout: s.value("send-timeout", |text| duration(text, "100ms", "10m"))?,
            poll_min: s.value("poll-min", |text| duration(text, "10ms", "1m"))?,
            poll_max: s.value("poll-max", |text| duration(text, "10ms", "10m"))?,
            stop_grace: s.value("stop-grace", |text| duration(text, "0s", "10m"))?,
        };
        if work.poll_max < work.poll_min {
            return Err(s.complaint(
                "poll-min",
                format!(
                    "{:?} is longer than poll-max, {:?}: raise that, or lower this",
                    work.poll_min, work.poll_max
                ),
            ));
        }
        let log = LogConfig {
            filter: s.value("log", |text| {
                match tracing_subscriber::EnvFilter::try_new(text) {
                    Ok(_) => Ok(text.to_owned()),
                    Err(error) => Err(format!(
                        "\"{}\" is no filter ({error}): write error, warn, info or debug",
                        shown(text)
                    )),
                }
            })?,
            format: s.value("log-format", |text| match text {
                "human" => Ok(Format::Human),
                "json" => Ok(Format::Json),
                other => Err(format!(
                    "\"{}\" is no format: write human or json",
                    shown(other)
                )),
            })?,
        };
        let follow = FollowConfig {
            poll: s.value("follow-poll", |text| duration(text, "10ms", "1m"))?,
            batch: s
                .value("follow-batch", |text| count(text, 1, 100))?
                .try_into()
                .expect("100 fits in an i64"),
            stalled: STALLED,
        };
        let follows = !s.value("no-follow", truth)?;
        let wallets: Vec<WalletRule> = s.all("wallet", str::parse)?;
        let named_before = |(place, rule): &(usize, &WalletRule)| {
            wallets[..*place]
                .iter()
                .any(|before| before.wallet == rule.wallet)
        };
        if let Some((_, twice)) = wallets.iter().enumerate().find(named_before) {
            return Err(s.complaint(
                "wallet",
                format!(
                    "{} is given twice: name one signer for each wallet",
                    twice.wallet
                ),
            ));
        }
        let full = s.all("node", node_url)?;
        let solid = match s.all("solidity", node_url)? {
            none if none.is_empty() => full.clone(),
            solid if solid.len() == full.len() => solid,
            solid => {
                let (given, wanted) = (solid.len(), full.len());
                let complaint = format!(
                    "{given} addresses for {wanted} nodes: give one for each --node, or none"
                );
                return Err(s.complaint("solidity", complaint));
            }
        };
        let limits = Limits {
            read_timeout: s.value("read-timeout", |text| duration(text, "100ms", "10m"))?,
            send_timeout: work.send_timeout,
            max_response: s.value("max-response", |text| size(text, "1MiB", "1GiB"))?,
        };
        Ok(Self {
            connect_timeout: s.value("connect-timeout", |text| duration(text, "100ms", "1m"))?,
            statement_timeout: s.value("statement-timeout", |text| duration(text, "1s", "10m"))?,
            log,
            work,
            follow,
            follows,
            wallets,
            full,
            solid,
            limits,
            settings,
        })
    }

    /// Where the database is.
    pub fn database(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<DatabaseConfig, ConfigError> {
        let s = &self.settings;
        let text = s
            .optional("database", |text| Ok(text.to_owned()))?
            .unwrap_or_default();
        let password = self.secret("database-password")?;
        let url = DatabaseUrl::read(&text, password, self.connect_timeout, &environment)
            .map_err(|complaint| s.complaint("database", complaint))?;
        Ok(DatabaseConfig {
            url,
            statement_timeout: self.statement_timeout,
        })
    }

    /// Whether the command line shows the database's password to every user of the machine.
    #[must_use]
    pub fn shows_password(&self) -> bool {
        let text = self
            .settings
            .optional("database", |text| Ok(text.to_owned()));
        self.settings.is_from_flags("database")
            && text
                .is_ok_and(|text| text.is_some_and(|text| DatabaseUrl::text_holds_password(&text)))
    }

    /// The nodes, at least one.
    pub fn nodes(&self) -> Result<Nodes, ConfigError> {
        let client = self.http_client()?;
        let addresses = self.full.iter().cloned().zip(self.solid.iter().cloned());
        let nodes =
            addresses.map(|(full, solid)| Node::new(full, solid, client.clone(), self.limits));
        Nodes::new(nodes.collect()).ok_or_else(|| {
            let complaint = "give at least one node, such as http://127.0.0.1:8090".to_owned();
            self.settings.complaint("node", complaint)
        })
    }

    fn http_client(&self) -> Result<reqwest::Client, ConfigError> {
        let s = &self.settings;
        let mut headers = reqwest::header::HeaderMap::new();
        if let Some(key) = self.secret("node-api-key")? {
            let mut value = reqwest::header::HeaderValue::from_str(&key).map_err(|_| {
                s.complaint(
                    "node-api-key",
                    "the key holds characters that no HTTP header may hold".to_owned(),
                )
            })?;
            value.set_sensitive(true);
            headers.insert("TRON-PRO-API-KEY", value);
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(format!(
                "sluice-runner/{} ({})",
                env!("CARGO_PKG_VERSION"),
                self.work.worker_id
            ))
            .default_headers(headers)
            .connect_timeout(self.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            // The environment's proxy is meant for browsers; money goes where the configuration says.
            .no_proxy();
        if let Some(proxy) = s.optional("node-proxy", http_url)? {
            let proxy = reqwest::Proxy::all(proxy)
                .map_err(|error| s.complaint("node-proxy", error.to_string()))?;
            builder = builder.proxy(proxy);
        }
        builder
            .build()
            .map_err(|error| s.complaint("node", format!("no HTTP client can be made: {error}")))
    }

    fn secret(&self, name: &'static str) -> Result<Option<Zeroizing<String>>, ConfigError> {
        let source = self.settings.optional(name, |text| {
            text.parse::<SecretSource>()
                .map_err(|error| error.to_string())
        })?;
        source
            .map(|source| {
                source
                    .read()
                    .map_err(|error| self.settings.complaint(name, error.to_string()))
            })
            .transpose()
    }

    /// The complaint that a wallet's key is no good.
    #[must_use]
    pub fn wallet_complaint(&self, rule: &WalletRule, complaint: &impl ToString) -> ConfigError {
        self.settings.complaint(
            "wallet",
            format!("the key for {}: {}", rule.wallet, complaint.to_string()),
        )
    }
}

/// Host, process and a random part: no two runners share it, not even two in one container after another.
fn default_worker_id() -> String {
    let system = rustix::system::uname();
    let host: String = system
        .nodename()
        .to_string_lossy()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '-'
            }
        })
        .take(32)
        .collect();
    format!("{host}-{}-{:08x}", std::process::id(), fastrand::u32(..))
}

fn worker_id(text: &str) -> Result<String, String> {
    // It stands in an HTTP header between parentheses.
    let fits = |c: char| c.is_ascii_graphic() && !"()\\\"".contains(c);
    if (1..=64).contains(&text.len()) && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err("write 1 to 64 letters, digits or other ASCII signs, without spaces, parentheses, quotes and backslashes".to_owned())
}

fn count(text: &str, least: usize, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(number) => Err(format!(
            "{number} is out of bounds: write {least} to {most}"
        )),
        Err(_) => Err(format!(
            "\"{}\" is not a number: write {least} to {most}",
            shown(text)
        )),
    }
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        other => Err(format!("\"{}\" is neither true nor false", shown(other))),
    }
}

/// A duration between two bounds, or a complaint.
pub fn duration(text: &str, least: &str, most: &str) -> Result<Duration, String> {
    let form = || {
        format!(
            "\"{}\" is not a duration: write a whole number and ms, s, m or h, from {least} to {most}",
            shown(text)
        )
    };
    let read = parse_duration(text).ok_or_else(form)?;
    let bounds = parse_duration(least).expect("a bound in this file")
        ..=parse_duration(most).expect("a bound in this file");
    if bounds.contains(&read) {
        Ok(read)
    } else {
        Err(format!(
            "{} is out of bounds: write {least} to {most}",
            shown(text)
        ))
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

fn size(text: &str, least: &str, most: &str) -> Result<u64, String> {
    let form = || {
        format!(
            "\"{}\" is not a size: write a whole number and KiB, MiB or GiB, from {least} to {most}",
            shown(text)
        )
    };
    let read = parse_size(text).ok_or_else(form)?;
    let bounds = parse_size(least).expect("a bound in this file")
        ..=parse_size(most).expect("a bound in this file");
    if bounds.contains(&read) {
        Ok(read)
    } else {
        Err(format!(
            "{} is out of bounds: write {least} to {most}",
            shown(text)
        ))
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let bytes = match unit {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    Some((number.parse().ok()?, unit.trim_start()))
}

fn http_url(text: &str) -> Result<Url, String> {
    // The rest of an address may be a customer's key, so no complaint repeats it.
    let url = Url::parse(text)
        .map_err(|error| format!("not a URL ({error}): write http://host:port or https://host"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("not an HTTP address: write http://host:port or https://host".to_owned());
    }
    Ok(url)
}

fn node_url(text: &str) -> Result<Url, String> {
    let url = http_url(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(
            "a node's address has no ? and no #: write its base, such as http://127.0.0.1:8090"
                .to_owned(),
        );
    }
    Ok(url)
}

/// The beginning of a wrong value, for the complaint about it.
fn shown(text: &str) -> String {
    text.chars()
        .take(60)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
