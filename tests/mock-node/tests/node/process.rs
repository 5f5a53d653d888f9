//! The binary: its line when it is ready, its flags, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use sluice_core::signature::{SecretKey, hmac_sign};

const BINARY: &str = env!("CARGO_BIN_EXE_sluice-mock-node");

/// Killed if a test fails half way.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> (Process, Value) {
    let mut child = Command::new(BINARY)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    let mut reader = BufReader::new(stdout);
    reader.read_line(&mut line).expect("a line");
    child.stdout = Some(reader.into_inner());
    (
        Process(child),
        serde_json::from_str(&line).expect("one line of JSON"),
    )
}

fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

#[tokio::test]
async fn it_says_where_it_listens_and_ends_when_told() {
    for signal in ["TERM", "INT"] {
        let (mut process, ready) = start(&["--nodes", "3", "--clock", "stepped", "--seed", "9"]);
        let nodes = ready["nodes"].as_array().expect("a list");
        assert_eq!(nodes.len(), 3);
        let client = reqwest::Client::new();
        for node in nodes {
            let url = format!(
                "{}/wallet/getblockbynum?num=0",
                node.as_str().expect("a URL")
            );
            let block: Value = client
                .get(url)
                .send()
                .await
                .expect("an answer")
                .json()
                .await
                .expect("JSON");
            assert_eq!(block["blockID"], ready["genesis"]);
        }
        let url = format!(
            "{}/control/status",
            ready["control"].as_str().expect("a URL")
        );
        let status: Value = client
            .get(url)
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("JSON");
        assert_eq!(status["clock"], json!({ "mode": "stepped" }));

        let pid = process.0.id().to_string();
        // The shell's own: a bare machine has no program of that name.
        let killed = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {pid}")])
            .status();
        assert!(killed.expect("a shell runs").success());
        assert!(process.0.wait().expect("it ends").success(), "{signal}");
        let mut rest = String::new();
        process
            .0
            .stdout
            .take()
            .expect("piped")
            .read_to_string(&mut rest)
            .expect("text");
        assert_eq!(rest, "", "one line and no more");
    }
}

#[tokio::test]
async fn flags_set_up_the_network() {
    let key = SecretKey::from_bytes(&[7; 32]).expect("a key");
    let owner = key.address();
    let faults = std::env::temp_dir().join(format!("sluice-mock-faults-{}", std::process::id()));
    std::fs::write(
        &faults,
        r#"[{"do":"empty","when":{"endpoint":"getnowblock"},"count":1}]"#,
    )
    .expect("written");
    let hmac = format!("{owner}=0a0b");
    let other = SecretKey::from_bytes(&[8; 32]).expect("a key").address();
    let signer = format!("{other}={owner}");
    let (_process, ready) = start(&[
        "--clock",
        "stepped",
        "--start-ms",
        "1800000000000",
        "--history",
        "5",
        "--block-interval-ms",
        "1000",
        "--solidity-lag",
        "3",
        "--foreign",
        "2",
        "--hmac-key",
        &hmac,
        "--signer",
        &signer,
        "--faults",
        faults.to_str().expect("a path"),
    ]);
    std::fs::remove_file(&faults).expect("removed");
    let client = reqwest::Client::new();
    let node = ready["nodes"][0].as_str().expect("a URL");
    let ask = async |path: &str| -> Value {
        let url = format!("{node}{path}");
        client
            .get(url)
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("JSON")
    };
    assert_eq!(ask("/wallet/getnowblock").await, json!({}));
    let head = ask("/wallet/getnowblock").await;
    assert_eq!(head["block_header"]["raw_data"]["number"], 5);
    assert_eq!(
        head["block_header"]["raw_data"]["timestamp"],
        1_800_000_000_000_i64
    );
    assert_eq!(head["transactions"].as_array().map(Vec::len), Some(2));
    let solid = ask("/walletsolidity/getnowblock").await;
    assert_eq!(solid["block_header"]["raw_data"]["number"], 2);

    let mut spec = sluice_core::envelope::EnvelopeSpec {
        owner,
        contract: other,
        to: other,
        units: sluice_core::units::Units::new(1).expect("in range"),
        ref_block_number: 2,
        ref_block_id: [0; 32],
        expiration: sluice_core::chain::ChainTime(1_800_000_060_000),
        timestamp: sluice_core::chain::ChainTime(1_800_000_000_000),
        fee_limit_sun: 1,
        tag: None,
        permission_id: 0,
    };
    let id = solid["blockID"].as_str().expect("an id");
    hex::decode_to_slice(id, &mut spec.ref_block_id).expect("hex");
    let by_hmac = |txid: &_| hmac_sign(&[0x0a, 0x0b], txid);
    let by_key = |txid: &_| key.sign(txid);
    let mut send =
        async |owner, sign: &dyn Fn(&sluice_core::envelope::Txid) -> [u8; 65]| -> Value {
            spec.owner = owner;
            let raw_data = spec.raw_data();
            let signature = sign(&sluice_core::envelope::Txid::of(&raw_data));
            let bytes = sluice_core::envelope::signed_transaction(&raw_data, &signature);
            let body = json!({ "transaction": hex::encode(bytes) });
            let url = format!("{node}/wallet/broadcasthex");
            let answer = client
                .post(url)
                .body(body.to_string())
                .send()
                .await
                .expect("an answer");
            answer.json::<Value>().await.expect("JSON")["code"].clone()
        };
    assert_eq!(send(owner, &by_key).await, "SIGERROR");
    assert_eq!(send(owner, &by_hmac).await, "SUCCESS");
    assert_eq!(send(other, &by_hmac).await, "SIGERROR");
    assert_eq!(send(other, &by_key).await, "SUCCESS");
}

#[test]
fn help_names_every_flag() {
    let output = run(&["--help"]);
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).expect("text");
    for flag in [
        "--nodes",
        "--port",
        "--control-port",
        "--block-interval-ms",
        "--solidity-lag",
        "--history",
        "--foreign",
        "--clock",
        "--start-ms",
        "--seed",
        "--hmac-key",
        "--signer",
        "--faults",
        "--pool-timeout-ms",
        "--seen-cache-ms",
        "--consensus-logic-optimization",
        "--trx-cache",
        "--solid-behind",
    ] {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn a_wrong_flag_is_named() {
    for (arguments, wanted) in [
        (["--clock", "fast"], "--clock"),
        (["--hmac-key", "nobody"], "--hmac-key"),
        (["--signer", "T=T"], "--signer"),
        (["--nodes", "0"], "nodes"),
        (["--faults", "/no/such/file"], "/no/such/file"),
    ] {
        let output = run(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(error.contains(wanted), "{arguments:?}: {error}");
    }
}
