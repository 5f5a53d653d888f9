//! The checks of a broadcast, their order, and what their answers prove.

use serde_json::json;
use sluice_core::address::Address;
use sluice_core::chain::ChainTime;
use sluice_core::envelope::{EnvelopeSpec, Txid, signed_transaction};
use sluice_core::signature::{SecretKey, hmac_sign};
use sluice_mock_node::{Config, Connection, NodeSettings, Signer};

use crate::scene::{Envelope, INTERVAL_MS, START_MS, Scene, stepped, text};

/// An envelope with everything wrong that a node checks, and the means to put it right one by one.
#[tokio::test]
async fn checks_come_in_java_trons_order() {
    let config = Config {
        pool_limit: 0,
        node: NodeSettings {
            max_unsolidified: Some(19),
            connection: Connection::Alone,
            trx_cache: true,
            ..NodeSettings::default()
        },
        ..stepped()
    };
    let scene = Scene::with(config).await;
    let node = |change: &dyn Fn(&mut NodeSettings)| {
        scene.net.change_node(0, change).expect("there is a node 0");
    };
    // Too late, signed by nobody, a reference to nothing, too big.
    let mut spec = scene.spec(1);
    spec.expiration = ChainTime(START_MS + INTERVAL_MS - 1);
    spec.ref_block_id = [0xee; 32];
    let bad = |spec: &EnvelopeSpec| {
        let mut envelope = scene.sign(1, spec);
        envelope.signature = vec![9; 65];
        envelope
    };
    let mut wrong = bad(&spec);

    assert_eq!(scene.code_of(0, &wrong).await, "BLOCK_UNSOLIDIFIED");
    node(&|node| node.max_unsolidified = None);
    assert_eq!(scene.code_of(0, &wrong).await, "NO_CONNECTION");
    node(&|node| node.connection = Connection::Unsynced);
    let said = scene.said_of(0, &wrong).await;
    assert!(
        said.starts_with("NOT_ENOUGH_EFFECTIVE_CONNECTION: Effective connection:"),
        "{said}"
    );
    node(&|node| node.connection = Connection::Synced);

    assert_eq!(
        scene.code_of(0, &wrong).await,
        "TRANSACTION_EXPIRATION_ERROR"
    );
    // Refused, and all the same a duplicate from now on where ids are cached.
    let said = scene.said_of(0, &wrong).await;
    assert_eq!(said, "DUP_TRANSACTION_ERROR: Transaction already exists.");
    node(&|node| node.trx_cache = false);
    assert_eq!(
        scene.code_of(0, &wrong).await,
        "TRANSACTION_EXPIRATION_ERROR"
    );

    // At the next slot is early enough.
    spec.expiration = ChainTime(START_MS + INTERVAL_MS);
    wrong = bad(&spec);
    assert_eq!(scene.code_of(0, &wrong).await, "SIGERROR");
    let signed = scene.sign(1, &spec);
    assert_eq!(scene.code_of(0, &signed).await, "TAPOS_ERROR");
    let id = scene.spec(1).ref_block_id;
    spec.ref_block_id = id;
    // Beyond 24 hours is the same code as expired, but after the signature.
    spec.expiration = ChainTime(START_MS + 24 * 3_600_000 + 1);
    assert_eq!(scene.code_of(0, &bad(&spec)).await, "SIGERROR");
    assert_eq!(
        scene.code_of(0, &scene.sign(1, &spec)).await,
        "TRANSACTION_EXPIRATION_ERROR"
    );
    spec.expiration = ChainTime(START_MS + 24 * 3_600_000);
    spec.fee_limit_sun = 15_000_000_001;
    assert_eq!(
        scene.code_of(0, &scene.sign(1, &spec)).await,
        "CONTRACT_VALIDATE_ERROR"
    );
    spec.fee_limit_sun = 15_000_000_000;
    let good = scene.sign(1, &spec);
    assert_eq!(scene.said_of(0, &good).await, "SUCCESS: ");
    // The pool is full now: nothing else is looked at.
    assert_eq!(scene.code_of(0, &good).await, "SERVER_BUSY");
}

#[tokio::test]
async fn a_transaction_needs_exactly_one_contract() {
    let scene = Scene::new().await;
    let send = async |raw_data: Vec<u8>| {
        let txid = Txid::of(&raw_data);
        let signature = scene.key.sign(&txid).to_vec();
        let envelope = Envelope {
            raw_data,
            txid,
            signature,
            operation_id: [1; 16],
        };
        scene.said_of(0, &envelope).await
    };
    use prost::Message;
    let raw = sluice_core::proto::TransactionRaw::decode(scene.spec(1).raw_data().as_slice())
        .expect("an envelope");
    let none = sluice_core::proto::TransactionRaw {
        contract: Vec::new(),
        ..raw.clone()
    };
    let said = send(none.encode_to_vec()).await;
    assert_eq!(
        said,
        "CONTRACT_VALIDATE_ERROR: Contract validate error : No contract!"
    );
    let mut two = raw;
    two.contract.push(two.contract[0].clone());
    let said = send(two.encode_to_vec()).await;
    assert!(said.starts_with("CONTRACT_VALIDATE_ERROR: "), "{said}");
    assert!(said.contains("act size should be exactly 1"), "{said}");
    // Another type is none that runs here, but it has an owner who must have signed.
    let mut other = sluice_core::proto::TransactionRaw::decode(scene.spec(1).raw_data().as_slice())
        .expect("an envelope");
    other.contract[0].r#type = 4;
    let said = send(other.encode_to_vec()).await;
    assert!(said.starts_with("CONTRACT_VALIDATE_ERROR: "), "{said}");
}

#[tokio::test]
async fn more_than_512000_bytes_are_too_big() {
    let scene = Scene::new().await;
    use prost::Message;
    let mut raw = sluice_core::proto::TransactionRaw::decode(scene.spec(1).raw_data().as_slice())
        .expect("an envelope");
    let sized = |data: usize, raw: &mut sluice_core::proto::TransactionRaw| {
        raw.data = vec![0x61; data];
        let raw_data = raw.encode_to_vec();
        let txid = Txid::of(&raw_data);
        let signature = scene.key.sign(&txid).to_vec();
        Envelope {
            raw_data,
            txid,
            signature,
            operation_id: [1; 16],
        }
    };
    let around = 512_000 - 128 - sized(500_000, &mut raw).bytes().len() + 500_000;
    let largest = sized(around, &mut raw);
    assert_eq!(largest.bytes().len(), 512_000 - 128);
    let larger = sized(around + 1, &mut raw);
    assert_eq!(scene.code_of(0, &larger).await, "TOO_BIG_TRANSACTION_ERROR");
    assert_eq!(scene.code_of(0, &largest).await, "SUCCESS");
}

#[tokio::test]
async fn a_duplicate_is_one_in_the_pool_or_in_the_chain_of_this_node() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    assert_eq!(scene.said_of(0, &envelope).await, "SUCCESS: ");
    assert_eq!(
        scene.said_of(0, &envelope).await,
        "DUP_TRANSACTION_ERROR: Dup transaction."
    );
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).block, Some(31));
    assert_eq!(
        scene.said_of(0, &envelope).await,
        "DUP_TRANSACTION_ERROR: Dup transaction."
    );
    assert_eq!(scene.report(&envelope).accepts, 1);
}

#[tokio::test]
async fn the_other_duplicate_says_only_that_the_id_was_offered_within_the_hour() {
    let node = NodeSettings {
        trx_cache: true,
        ..NodeSettings::default()
    };
    let scene = Scene::with(Config { node, ..stepped() }).await;
    let mut unsigned = scene.envelope(1);
    unsigned.signature = vec![1; 65];
    assert_eq!(scene.code_of(0, &unsigned).await, "SIGERROR");
    let signed = scene.envelope(1);
    assert_eq!(signed.txid, unsigned.txid);
    let already = "DUP_TRANSACTION_ERROR: Transaction already exists.";
    assert_eq!(scene.said_of(0, &signed).await, already);
    assert_eq!(scene.report(&signed).accepts, 0);
    // The ids of an applied block are in the cache as well.
    let other = scene.envelope(2);
    scene.net.inject(&other.bytes()).expect("a transaction");
    scene.net.produce(1);
    assert_eq!(scene.said_of(0, &other).await, already);
    // An hour later its expiration is what is seen.
    scene.net.step(3_600_000);
    assert_eq!(
        scene.code_of(0, &signed).await,
        "TRANSACTION_EXPIRATION_ERROR"
    );
}

#[tokio::test]
async fn a_transaction_on_chain_can_be_refused_as_expired_or_as_badly_signed() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    // The account's key is changed.
    let other = SecretKey::from_bytes(&[8; 32]).expect("a key").address();
    let owner = scene.owner();
    scene.net.register(
        owner,
        Signer::Secp256k1 {
            signer: other,
            permission_id: 0,
        },
    );
    assert_eq!(scene.code_of(0, &envelope).await, "SIGERROR");
    scene.net.register(
        owner,
        Signer::Secp256k1 {
            signer: owner,
            permission_id: 0,
        },
    );
    scene.net.step(60_000);
    assert_eq!(
        scene.code_of(0, &envelope).await,
        "TRANSACTION_EXPIRATION_ERROR"
    );
    assert_eq!(scene.report(&envelope).result.as_deref(), Some("SUCCESS"));
}

#[tokio::test]
async fn an_hmac_wallet_signs_with_its_registered_key_alone() {
    let scene = Scene::new().await;
    scene.net.register(
        scene.owner(),
        Signer::Hmac {
            key: b"secret".to_vec(),
        },
    );
    let mut envelope = scene.envelope(1);
    assert_eq!(scene.code_of(0, &envelope).await, "SIGERROR");
    envelope.signature = hmac_sign(b"another", &envelope.txid).to_vec();
    assert_eq!(scene.code_of(0, &envelope).await, "SIGERROR");
    envelope.signature = hmac_sign(b"secret", &envelope.txid).to_vec();
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
}

#[tokio::test]
async fn a_secp256k1_signature_may_be_in_any_form_that_java_tron_takes() {
    let scene = Scene::new().await;
    let forms: [fn(&mut Vec<u8>); 4] = [
        |_| {},
        |signature| signature[64] -= 27,
        |signature| signature[64] += 4,
        |signature| signature.extend_from_slice(b"more"),
    ];
    for (number, form) in (1..).zip(forms) {
        let mut envelope = scene.envelope(number);
        form(&mut envelope.signature);
        assert_eq!(
            scene.code_of(0, &envelope).await,
            "SUCCESS",
            "form {number}"
        );
    }
    let mut short = scene.envelope(10);
    short.signature.truncate(64);
    let said = scene.said_of(0, &short).await;
    assert_eq!(
        said,
        "SIGERROR: Validate signature error: Signature size is 64"
    );
    let mut other = scene.envelope(10);
    let key = SecretKey::from_bytes(&[8; 32]).expect("a key");
    other.signature = key.sign(&other.txid).to_vec();
    assert_eq!(scene.code_of(0, &other).await, "SIGERROR");
    // Registered, it is the one that counts.
    let signer = key.address();
    scene.net.register(
        scene.owner(),
        Signer::Secp256k1 {
            signer,
            permission_id: 0,
        },
    );
    assert_eq!(scene.code_of(0, &scene.envelope(10)).await, "SIGERROR");
    assert_eq!(scene.code_of(0, &other).await, "SUCCESS");
}

#[tokio::test]
async fn a_permission_is_signed_for_by_its_own_key() {
    let scene = Scene::new().await;
    let with_permission = |permission_id: i32| {
        let mut spec = scene.spec(1);
        spec.permission_id = permission_id;
        scene.sign(1, &spec)
    };
    assert_eq!(scene.code_of(0, &with_permission(3)).await, "SIGERROR");
    assert_eq!(scene.code_of(0, &with_permission(1)).await, "SIGERROR");
    let signer = scene.owner();
    scene.net.register(
        signer,
        Signer::Secp256k1 {
            signer,
            permission_id: 3,
        },
    );
    assert_eq!(scene.code_of(0, &with_permission(3)).await, "SUCCESS");
    // Every account has permission 2 with its own key from the start.
    assert_eq!(scene.code_of(0, &with_permission(2)).await, "SUCCESS");
}

#[tokio::test]
async fn two_signatures_are_more_than_the_permission_has_keys() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    let mut bytes = envelope.bytes();
    // Field 2 once more.
    bytes.extend_from_slice(&[0x12, 65]);
    bytes.extend_from_slice(&envelope.signature);
    let body = json!({ "transaction": hex::encode(bytes) });
    let answer = scene.post(0, "/wallet/broadcasthex", &body).await;
    assert_eq!(answer["code"], "SIGERROR");
    assert!(text(&answer["message"]).contains("more than key counts of permission"));
}

#[tokio::test]
async fn the_node_hashes_its_own_serialization() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    // The last field, fee_limit, written first: other bytes, the same message.
    let fee_limit = [&[0x90, 0x01][..], &[0x80, 0xc2, 0xd7, 0x2f]].concat();
    assert!(envelope.raw_data.ends_with(&fee_limit));
    let rest = &envelope.raw_data[..envelope.raw_data.len() - fee_limit.len()];
    let moved = [&fee_limit, rest].concat();
    let body =
        json!({ "transaction": hex::encode(signed_transaction(&moved, &envelope.signature)) });
    let answer = scene.post(0, "/wallet/broadcasthex", &body).await;
    assert_eq!(answer["code"], "SUCCESS");
    assert_eq!(answer["txid"], envelope.id());

    // A field that nobody knows is kept, and counts.
    let unknown = [&envelope.raw_data[..], &[0xa0, 0x06, 0x01]].concat();
    let txid = Txid::of(&unknown);
    let signature = scene.key.sign(&txid);
    let body = json!({ "transaction": hex::encode(signed_transaction(&unknown, &signature)) });
    let answer = scene.post(0, "/wallet/broadcasthex", &body).await;
    assert_eq!(answer["code"], "SUCCESS");
    assert_eq!(answer["txid"], txid.to_string());
    scene.net.produce(1);
    let by_id = json!({ "value": txid.to_string() });
    let shown = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    assert_eq!(shown["raw_data_hex"], hex::encode(&unknown));
}

#[tokio::test]
async fn what_the_client_wrote_into_ret_is_dropped() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    let mut bytes = envelope.bytes();
    bytes.extend_from_slice(&[0x2a, 0x02, 0x18, 0x02]);
    let body = json!({ "transaction": hex::encode(bytes) });
    assert_eq!(
        scene.post(0, "/wallet/broadcasthex", &body).await["code"],
        "SUCCESS"
    );
    scene.net.produce(1);
    let block = scene.block(0, 31).await;
    assert_eq!(
        block["transactions"][0]["ret"],
        json!([{ "contractRet": "SUCCESS" }])
    );
}

#[tokio::test]
async fn the_public_vectors_signed_transactions_are_read_as_they_were_meant() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/public.json");
    let text_of_file = std::fs::read_to_string(path).expect("the vectors");
    let vectors: serde_json::Value = serde_json::from_str(&text_of_file).expect("JSON");
    let entries = vectors["signatures"].as_array().expect("a list");
    assert!(entries.len() >= 8);
    let scene = Scene::new().await;
    for entry in entries {
        let body = json!({ "transaction": entry["signed_tx"] });
        let answer = scene.post(0, "/wallet/broadcasthex", &body).await;
        assert_eq!(answer["txid"], entry["txid"], "{}", entry["id"]);
        let signer = Address::parse(&text(&entry["signer"])).expect("an address");
        let signed = hex::decode(text(&entry["signed_tx"])).expect("hex");
        let tx = sluice_mock_node::transaction::Tx::decode(&signed).expect("a transaction");
        let by = sluice_core::signature::recover(&tx.txid, &tx.signatures[0]);
        assert_eq!(by.expect("a signature"), signer, "{}", entry["id"]);
    }
}
