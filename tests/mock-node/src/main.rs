//! The network as a program: flags in, one line of JSON out when it is ready, then it stays until it is told to stop.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde::Serialize;
use sluice_core::address::Address;
use sluice_mock_node::{ClockMode, Config, MockNet, NodeSettings, Rule, Signer};
use tokio::signal::unix::{SignalKind, signal};

/// A TRON network for tests: java-tron's HTTP API over one simulated chain, with faults on schedule.
///
/// When ready it prints one line on standard output:
/// {"nodes":["http://127.0.0.1:PORT",…],"control":"http://127.0.0.1:PORT","genesis":"<hex>"}
/// and stays until SIGTERM or SIGINT. Time, blocks, faults and the log are under /control/ on the control port.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// How many nodes
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Port of the first node, the others following; 0: each a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Port of the control path; 0: a free one
    #[arg(long, default_value_t = 0)]
    control_port: u16,
    /// Chain time between blocks, in milliseconds
    #[arg(long, default_value_t = 3000)]
    block_interval_ms: i64,
    /// Blocks on top of a block that make it solid
    #[arg(long, default_value_t = 19)]
    solidity_lag: i64,
    /// Blocks that exist at the start, block 0 aside
    #[arg(long, default_value_t = 30)]
    history: i64,
    /// Foreign transactions in each block
    #[arg(long, default_value_t = 0)]
    foreign: usize,
    /// How chain time passes: real, stepped (by hand), or a factor such as 20
    #[arg(long, default_value = "real", value_parser = ClockMode::parse)]
    clock: ClockMode,
    /// What the chain's clock shows at the start, in milliseconds since the Unix epoch [default: the machine's time]
    #[arg(long)]
    start_ms: Option<i64>,
    /// Of everything that is drawn: keys, foreign transactions, probabilities
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An account that signs by HMAC-SHA256 under this key; may be repeated
    #[arg(long, value_name = "OWNER=HEX", value_parser = hmac_key)]
    hmac_key: Vec<(Address, Signer)>,
    /// An account whose transactions another key signs; may be repeated [default: each account signs for itself]
    #[arg(long, value_name = "OWNER=ADDRESS", value_parser = signer)]
    signer: Vec<(Address, Signer)>,
    /// A file with a JSON list of fault rules, as POST /control/faults takes them
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Chain time until a pool drops a transaction, in milliseconds
    #[arg(long, default_value_t = 60_000)]
    pool_timeout_ms: i64,
    /// Chain time for which nodes ignore an id that they have seen, in milliseconds
    #[arg(long, default_value_t = 3_600_000)]
    seen_cache_ms: i64,
    /// Chain parameter 88: packing also asks for an expiration at or past the next slot
    #[arg(long)]
    consensus_logic_optimization: bool,
    /// Nodes remember ids that were offered and answer "Transaction already exists." (node.rpc.trxCacheEnable)
    #[arg(long)]
    trx_cache: bool,
    /// /walletsolidity shows so many blocks less than solidityBlock says
    #[arg(long, default_value_t = 0)]
    solid_behind: i64,
}

/// The line that says that it is ready.
#[derive(Serialize)]
struct Ready {
    nodes: Vec<String>,
    control: String,
    genesis: String,
}

impl Args {
    fn config(self) -> Result<Config, Box<dyn Error>> {
        let faults = self
            .faults
            .as_deref()
            .map(read_faults)
            .transpose()?
            .unwrap_or_default();
        Ok(Config {
            nodes: self.nodes,
            port: self.port,
            control_port: self.control_port,
            block_interval_ms: self.block_interval_ms,
            solidity_lag: self.solidity_lag,
            history: self.history,
            foreign_per_block: self.foreign,
            clock: self.clock,
            start_ms: self.start_ms,
            seed: self.seed,
            wallets: [self.hmac_key, self.signer].concat(),
            faults,
            node: NodeSettings {
                trx_cache: self.trx_cache,
                solid_behind: self.solid_behind,
                ..NodeSettings::default()
            },
            consensus_logic_optimization: self.consensus_logic_optimization,
            pool_timeout_ms: self.pool_timeout_ms,
            seen_cache_ms: self.seen_cache_ms,
            ..Config::default()
        })
    }
}

fn read_faults(path: &Path) -> Result<Vec<Rule>, Box<dyn Error>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}").into())
}

fn owner_and<'a>(text: &'a str, form: &str) -> Result<(Address, &'a str), String> {
    let (owner, value) = text.split_once('=').ok_or_else(|| format!("give {form}"))?;
    let owner = Address::parse(owner).map_err(|error| error.to_string())?;
    Ok((owner, value))
}

fn hmac_key(text: &str) -> Result<(Address, Signer), String> {
    let (owner, key) = owner_and(text, "OWNER=HEX")?;
    let key = hex::decode(key).map_err(|_| "the key is not hex".to_owned())?;
    Ok((owner, Signer::Hmac { key }))
}

fn signer(text: &str) -> Result<(Address, Signer), String> {
    let (owner, signer) = owner_and(text, "OWNER=ADDRESS")?;
    let signer = Address::parse(signer).map_err(|error| error.to_string())?;
    Ok((
        owner,
        Signer::Secp256k1 {
            signer,
            permission_id: 0,
        },
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = Args::parse().config()?;
    // Before the line is out, so that whoever reads it can stop us.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let net = MockNet::start(config).await?;
    let ready = Ready {
        nodes: net.urls(),
        control: net.control_url(),
        genesis: hex::encode(net.genesis()),
    };
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::to_string(&ready)?)?;
    out.flush()?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
