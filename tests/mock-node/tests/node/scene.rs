//! A network with time moved by hand, a payer, and short ways to say what a test does.

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use sluice_core::address::Address;
use sluice_core::chain::ChainTime;
use sluice_core::envelope::{self, EnvelopeSpec, Txid};
use sluice_core::signature::SecretKey;
use sluice_core::units::Units;
use sluice_mock_node::{ClockMode, Config, MockNet, TxReport};

/// A multiple of the block interval.
pub const START_MS: i64 = 1_800_000_000_000;
/// Between blocks.
pub const INTERVAL_MS: i64 = 3_000;
pub const TOKEN: &str = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
pub const RECIPIENT: &str = "TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ";

/// What most scenes start from: 30 blocks of history, the last stamped `START_MS`.
pub fn stepped() -> Config {
    Config {
        clock: ClockMode::Stepped,
        start_ms: Some(START_MS),
        ..Config::default()
    }
}

pub struct Scene {
    pub net: MockNet,
    pub client: Client,
    pub key: SecretKey,
}

/// A signed transaction that pays `RECIPIENT`.
#[derive(Clone)]
pub struct Envelope {
    pub raw_data: Vec<u8>,
    pub txid: Txid,
    pub signature: Vec<u8>,
    pub operation_id: [u8; 16],
}

impl Envelope {
    pub fn bytes(&self) -> Vec<u8> {
        envelope::signed_transaction(&self.raw_data, &self.signature)
    }

    pub fn id(&self) -> String {
        self.txid.to_string()
    }

    pub fn tag(&self) -> String {
        hex::encode(envelope::tag(self.operation_id))
    }
}

impl Scene {
    pub async fn new() -> Self {
        Self::with(stepped()).await
    }

    pub async fn with(config: Config) -> Self {
        let net = MockNet::start(config).await.expect("the network starts");
        let key = SecretKey::from_bytes(&[7; 32]).expect("a key");
        Self {
            net,
            client: Client::new(),
            key,
        }
    }

    pub fn owner(&self) -> Address {
        self.key.address()
    }

    /// What the next envelopes of this scene say: pays 1.5 tokens, refers to the newest solid block, expires in a minute.
    pub fn spec(&self, number: u8) -> EnvelopeSpec {
        let status = self.net.status();
        let mut id = [0; 32];
        hex::decode_to_slice(&status.solid_id, &mut id).expect("hex");
        EnvelopeSpec {
            owner: self.owner(),
            contract: Address::parse(TOKEN).expect("an address"),
            to: Address::parse(RECIPIENT).expect("an address"),
            units: Units::new(1_500_000).expect("in range"),
            ref_block_number: status.solid,
            ref_block_id: id,
            expiration: ChainTime(status.head_ms + 60_000),
            timestamp: ChainTime(status.head_ms),
            fee_limit_sun: 100_000_000,
            tag: Some(envelope::tag([number; 16])),
            permission_id: 0,
        }
    }

    /// A signed envelope; `number` names its operation.
    pub fn envelope(&self, number: u8) -> Envelope {
        self.sign(number, &self.spec(number))
    }

    pub fn envelope_until(&self, number: u8, expiration_ms: i64) -> Envelope {
        let spec = EnvelopeSpec {
            expiration: ChainTime(expiration_ms),
            ..self.spec(number)
        };
        self.sign(number, &spec)
    }

    pub fn sign(&self, number: u8, spec: &EnvelopeSpec) -> Envelope {
        let raw_data = spec.raw_data();
        let txid = Txid::of(&raw_data);
        let signature = self.key.sign(&txid).to_vec();
        Envelope {
            raw_data,
            txid,
            signature,
            operation_id: [number; 16],
        }
    }

    // Calls

    pub async fn post(&self, node: usize, path: &str, body: &Value) -> Value {
        let response = self.post_raw(node, path, body.to_string()).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.json().await.expect("JSON")
    }

    pub async fn post_raw(&self, node: usize, path: &str, body: String) -> Response {
        self.client
            .post(format!("{}{path}", self.net.url(node)))
            .body(body)
            .send()
            .await
            .expect("an answer")
    }

    pub async fn get(&self, node: usize, path_and_query: &str) -> Value {
        let url = format!("{}{path_and_query}", self.net.url(node));
        let response = self.client.get(url).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK, "{path_and_query}");
        response.json().await.expect("JSON")
    }

    /// broadcasthex.
    pub async fn send_to(&self, node: usize, envelope: &Envelope) -> Value {
        let body = json!({ "transaction": hex::encode(envelope.bytes()) });
        self.post(node, "/wallet/broadcasthex", &body).await
    }

    /// broadcasthex, and the code alone.
    pub async fn code_of(&self, node: usize, envelope: &Envelope) -> String {
        text(&self.send_to(node, envelope).await["code"])
    }

    /// broadcasthex, and `code: message`.
    pub async fn said_of(&self, node: usize, envelope: &Envelope) -> String {
        let answer = self.send_to(node, envelope).await;
        format!("{}: {}", text(&answer["code"]), text(&answer["message"]))
    }

    pub async fn block(&self, node: usize, number: i64) -> Value {
        self.post(node, "/wallet/getblockbynum", &json!({ "num": number }))
            .await
    }

    pub async fn head(&self, node: usize) -> i64 {
        number_of(&self.post(node, "/wallet/getnowblock", &json!({})).await)
    }

    pub fn report(&self, envelope: &Envelope) -> TxReport {
        self.net
            .transaction(&envelope.txid)
            .expect("somebody has sent it")
    }
}

pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

pub fn number_of(block: &Value) -> i64 {
    block["block_header"]["raw_data"]["number"]
        .as_i64()
        .unwrap_or(0)
}

pub fn time_of(block: &Value) -> i64 {
    block["block_header"]["raw_data"]["timestamp"]
        .as_i64()
        .unwrap_or(0)
}

pub fn txids_of(block: &Value) -> Vec<String> {
    let none = Vec::new();
    let list = block["transactions"].as_array().unwrap_or(&none);
    list.iter()
        .map(|transaction| text(&transaction["txID"]))
        .collect()
}

pub fn keys_of(value: &Value) -> Vec<String> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect()
}
