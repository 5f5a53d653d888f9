//! JSON back to the bytes: over the published vectors, over what the mock network prints, and over what no block may be.

use serde_json::{Value, json};
use sluice_core::block::{block_id, merkle_root};
use sluice_mock_node::{ClockMode, Config, MockNet};
use sluice_runner::block_json::{BlockJsonError, checked_block};

use crate::support::{run, unhex, vectors};

/// A varint, by hand: these tests are to catch the encoder, not to share it.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 0x80 {
        bytes.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn field(tag: &[u8], bytes: &[u8]) -> Vec<u8> {
    [tag, &varint(bytes.len() as u64), bytes].concat()
}

/// `protocol.Transaction` taken apart by hand: raw_data, signatures, ret entries.
fn parts(transaction: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut raw, mut signatures, mut ret) = (vec![], vec![], vec![]);
    let mut rest = transaction;
    while let [tag, after @ ..] = rest {
        let mut length = 0;
        let mut used = 0;
        for (place, byte) in after.iter().enumerate() {
            length |= usize::from(byte & 0x7f) << (7 * place);
            used = place + 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (bytes, next) = after[used..].split_at(length);
        match tag {
            0x0a => raw = bytes.to_vec(),
            0x12 => signatures.push(bytes.to_vec()),
            0x2a => ret.push(bytes.to_vec()),
            other => panic!("tag {other:02x} in a vector"),
        }
        rest = next;
    }
    (raw, signatures, ret)
}

fn shown_transaction(transaction: &[u8]) -> Value {
    let (raw, signatures, ret) = parts(transaction);
    let mut json = json!({
        "raw_data": { "contract": [] },
        "raw_data_hex": hex::encode(&raw),
        "txID": sluice_core::envelope::Txid::of(&raw).to_string(),
    });
    if !signatures.is_empty() {
        json["signature"] = signatures.iter().map(hex::encode).collect();
    }
    if !ret.is_empty() {
        json["ret"] = ret
            .iter()
            .map(|bytes| match bytes.as_slice() {
                [] => json!({}),
                [0x18, 0x01] => json!({ "contractRet": "SUCCESS" }),
                [0x18, 0x0a] => json!({ "contractRet": "OUT_OF_ENERGY" }),
                other => panic!("ret {} in a vector", hex::encode(other)),
            })
            .collect();
    }
    json
}

/// A block of the vectors as java-tron shows it, and the bytes it must give.
fn vector_block(vectors: &Value, block: &Value) -> (Value, Vec<u8>) {
    let merkle = vectors["merkle"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|merkle| merkle["id"] == block["merkle_id"]);
    let transactions: Vec<Vec<u8>> = merkle
        .map(|merkle| {
            merkle["transactions"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|hex| unhex(hex.as_str().expect("hex")))
                .collect()
        })
        .unwrap_or_default();
    let header = &block["header"];
    let mut raw = json!({});
    for (name, shown) in [
        ("timestamp", "timestamp"),
        ("tx_trie_root", "txTrieRoot"),
        ("parent_hash", "parentHash"),
        ("number", "number"),
        ("witness_id", "witness_id"),
        ("witness_address", "witness_address"),
        ("version", "version"),
        ("account_state_root", "accountStateRoot"),
    ] {
        // Default values are not printed.
        if header[name] != json!(0) && header[name] != json!("") {
            raw[shown] = header[name].clone();
        }
    }
    let witness_signature = vec![7; 65];
    let mut json = json!({
        "blockID": block["block_id"],
        "block_header": { "raw_data": raw, "witness_signature": hex::encode(&witness_signature) },
    });
    if !transactions.is_empty() {
        json["transactions"] = transactions
            .iter()
            .map(|bytes| shown_transaction(bytes))
            .collect();
    }
    let header = [
        field(&[0x0a], &unhex(block["raw"].as_str().expect("hex"))),
        field(&[0x12], &witness_signature),
    ]
    .concat();
    let mut bytes: Vec<u8> = transactions
        .iter()
        .flat_map(|transaction| field(&[0x0a], transaction))
        .collect();
    bytes.extend(field(&[0x12], &header));
    (json, bytes)
}

fn with_transactions(vectors: &Value) -> Vec<(Value, Vec<u8>)> {
    let blocks = vectors["blocks"].as_array().expect("a list").iter();
    blocks
        .filter(|block| block.get("merkle_id").is_some())
        .map(|block| vector_block(vectors, block))
        .collect()
}

#[test]
fn every_block_of_the_vectors_comes_back_from_its_json_byte_for_byte() {
    let vectors = vectors();
    let blocks = with_transactions(&vectors);
    assert!(blocks.len() >= 3);
    for (json, bytes) in blocks {
        let block = checked_block(&json).expect("a vector is a block");
        assert_eq!(hex::encode(&block.bytes), hex::encode(&bytes));
        assert_eq!(hex::encode(block.id), json["blockID"]);
        let core =
            sluice_core::block::decode_block(&block.bytes).expect("the database reads these bytes");
        assert!(core.root_holds);
        assert_eq!(
            (core.number, core.id, core.parent_id),
            (block.number, block.id, block.parent_id)
        );
    }
}

#[test]
fn headers_of_every_shape_give_their_id() {
    let vectors = vectors();
    for block in vectors["blocks"].as_array().expect("a list") {
        let (mut json, _) = vector_block(&vectors, block);
        let root = &json["block_header"]["raw_data"]["txTrieRoot"];
        if block.get("merkle_id").is_none() && root != &json!("00".repeat(32)) {
            // Whose transactions are not in the vectors: the id holds, the root cannot.
            let error = checked_block(&json).expect_err("its transactions are missing");
            assert!(matches!(error, BlockJsonError::Root { .. }), "{error}");
            continue;
        }
        assert!(checked_block(&json).is_ok(), "{block}");
        json["blockID"] = json!("00".repeat(32));
        assert!(matches!(
            checked_block(&json),
            Err(BlockJsonError::Id { .. })
        ));
    }
}

/// A block around one transaction whose only `ret` is this, and what must come of that `ret`.
fn block_with_ret(ret: &Value, expected: &[u8]) -> Result<Vec<u8>, BlockJsonError> {
    let raw_data = unhex("0a02ffff2208d6458041edbd829040a1cd33");
    let transaction = [
        field(&[0x0a], &raw_data),
        field(&[0x12], &[9; 65]),
        field(&[0x2a], expected),
    ]
    .concat();
    let root = merkle_root(&[&transaction]);
    let parent = [3; 32];
    let header = [
        vec![0x08],
        varint(1_771_194_876_000),
        field(&[0x12], &root),
        field(&[0x1a], &parent),
        vec![0x38],
        varint(77),
    ]
    .concat();
    let json = json!({
        "blockID": hex::encode(block_id(&header).expect("a header")),
        "block_header": { "raw_data": {
            "timestamp": 1_771_194_876_000_i64, "txTrieRoot": hex::encode(root), "parentHash": hex::encode(parent), "number": 77,
        }},
        "transactions": [{ "raw_data_hex": hex::encode(&raw_data), "signature": [hex::encode([9; 65])], "ret": [ret] }],
    });
    checked_block(&json).map(|block| block.bytes)
}

#[test]
fn every_field_of_a_result_goes_back_to_its_number() {
    let full = json!({
        "fee": 345_000, "ret": "FAILED", "contractRet": "OUT_OF_ENERGY", "assetIssueID": "1000001",
        "withdraw_amount": 1, "unfreeze_amount": 2, "exchange_received_amount": 3, "exchange_inject_another_amount": 4,
        "exchange_withdraw_another_amount": 5, "exchange_id": 6, "shielded_transaction_fee": 7,
        "orderId": "0a0b", "orderDetails": [
            { "makerOrderId": "01", "takerOrderId": "02", "fillSellQuantity": 300, "fillBuyQuantity": -1 }, {}
        ],
        "withdraw_expire_amount": 9, "cancel_unfreezeV2_amount": [{ "key": "ENERGY", "value": 0 }, { "key": "BANDWIDTH", "value": 5 }],
    });
    let expected = unhex(
        concat!(
            "08a88715", // 1 fee 345000
            "1001",
            "180a",               // 2 FAILED, 3 OUT_OF_ENERGY
            "720731303030303031", // 14 assetIssueID
            "7801",
            "800102",
            "900103",
            "980104",
            "a00105",
            "a80106",
            "b00107",     // 15, 16, 18 to 22
            "ca01020a0b", // 25 orderId
            "d201140a01011201021 8ac0220ffffffffffffffffff01",
            "d20100", // 26 orderDetails
            "d80109", // 27
            "e2010a0a06454e455247591000",
            "e2010d0a0942414e4457494454481005", // 28: zeros are written in a map's entry
        )
        .replace(' ', ""),
    );
    block_with_ret(&full, &expected).expect("its root holds only if every byte is right");
}

#[test]
fn results_that_say_little_and_numbers_without_a_name_go_back_too() {
    block_with_ret(&json!({}), &[]).expect("an empty result is 2a 00");
    block_with_ret(&json!({ "contractRet": "SUCCESS" }), &[0x18, 1]).expect("2a 02 18 01");
    block_with_ret(
        &json!({ "contractRet": "UNKNOWN_ENUM_VALUE_contractResult_77" }),
        &[0x18, 77],
    )
    .expect("protobuf's stand-in");
    block_with_ret(&json!({ "contractRet": "DEFAULT", "ret": "SUCESS" }), &[])
        .expect("defaults are not written");
}

#[test]
fn what_has_no_number_is_refused_by_its_name() {
    let error = block_with_ret(
        &json!({ "contractRet": "SUCCESS", "novelty": 1 }),
        &[0x18, 1],
    )
    .expect_err("unknown field");
    assert!(
        error.contradicts_itself()
            && error.to_string().contains("block 77")
            && error.to_string().contains("\"novelty\""),
        "{error}"
    );
    let error = block_with_ret(&json!({ "contractRet": "NOVELTY" }), &[0x18, 1])
        .expect_err("unknown value");
    assert!(
        error.contradicts_itself() && error.to_string().contains("NOVELTY"),
        "{error}"
    );

    let vectors = vectors();
    let (json, _) = vector_block(&vectors, &vectors["blocks"][1]);
    for path in ["/block_header/raw_data", "/block_header"] {
        let mut json = json.clone();
        json.pointer_mut(path).expect("it is there")["novelty"] = json!("00");
        let error = checked_block(&json).expect_err("unknown field");
        assert!(
            matches!(&error, BlockJsonError::UnknownField { key, .. } if key == "novelty"),
            "{error}"
        );
    }
}

#[test]
fn a_block_without_all_its_transactions_is_named_with_both_roots() {
    let vectors = vectors();
    for (json, _) in with_transactions(&vectors) {
        let Some(count) = json["transactions"].as_array().map(Vec::len) else {
            continue;
        };
        let mut cut = json.clone();
        cut["transactions"].as_array_mut().expect("a list").pop();
        let mut stripped = json.clone();
        stripped
            .as_object_mut()
            .expect("an object")
            .remove("transactions");
        for (json, left) in [(cut, count - 1), (stripped, 0)] {
            let error = checked_block(&json).expect_err("transactions are missing");
            assert!(error.contradicts_itself());
            let BlockJsonError::Root {
                number,
                transactions,
                ..
            } = &error
            else {
                panic!("{error}")
            };
            assert_eq!(
                (*number, *transactions),
                (
                    json["block_header"]["raw_data"]["number"]
                        .as_i64()
                        .expect("a number"),
                    left
                )
            );
        }
    }
}

#[test]
fn a_changed_byte_anywhere_is_noticed() {
    let vectors = vectors();
    let (json, _) = vector_block(&vectors, &vectors["blocks"][2]);
    let flip = |pointer: &str| {
        let mut json = json.clone();
        let place = json
            .pointer_mut(pointer)
            .unwrap_or_else(|| panic!("{pointer}"));
        let mut bytes = unhex(place.as_str().expect("hex"));
        bytes[0] ^= 1;
        *place = json!(hex::encode(bytes));
        checked_block(&json).expect_err(pointer)
    };
    for pointer in [
        "/blockID",
        "/block_header/raw_data/parentHash",
        "/block_header/raw_data/witness_address",
        "/block_header/raw_data/txTrieRoot",
        "/transactions/0/raw_data_hex",
        "/transactions/0/txID",
        "/transactions/0/signature/0",
    ] {
        assert!(flip(pointer).contradicts_itself(), "{pointer}");
    }
    let mut json = json;
    json["transactions"][0]["ret"] = json!([{ "contractRet": "REVERT" }]);
    assert!(matches!(
        checked_block(&json),
        Err(BlockJsonError::Root { .. })
    ));
    json["transactions"][0]["unheard"] = json!(1);
    let error = checked_block(&json)
        .expect_err("its root is wrong")
        .to_string();
    assert!(
        error.contains("transactions[0].unheard"),
        "what was passed over may be the reason: {error}"
    );
}

#[test]
fn a_node_that_writes_at_length_gets_a_short_error() {
    let vectors = vectors();
    let (good, _) = vector_block(&vectors, &vectors["blocks"][2]);
    let long = "ff".repeat(5000);
    let changed = |pointer: &str, value: Value| {
        let mut json = good.clone();
        *json.pointer_mut(pointer).expect("it is there") = value;
        json
    };
    let added = |pointer: &str, key: &str, value: Value| {
        let mut json = good.clone();
        json.pointer_mut(pointer).expect("it is there")[key] = value;
        json
    };
    let mut passed_over = changed("/block_header/raw_data/txTrieRoot", json!(long));
    for (index, shown) in passed_over["transactions"]
        .as_array_mut()
        .expect("a list")
        .iter_mut()
        .enumerate()
    {
        shown[format!("{index}{long}")] = json!(1);
    }
    let wrong_receipt = json!([{ "contractRet": long }]);
    for json in [
        changed("/blockID", json!(long)),
        changed("/transactions/0/txID", json!(long)),
        changed("/transactions/0/raw_data_hex", json!(long)),
        changed("/transactions/0/ret", wrong_receipt),
        added("/block_header", &long, json!(1)),
        added("/block_header/raw_data", &long, json!(1)),
        passed_over,
    ] {
        let error = checked_block(&json).expect_err("it contradicts itself");
        assert!(error.contradicts_itself(), "{error}");
        assert!(error.to_string().len() < 1000, "{error}");
    }
}

#[test]
fn what_is_no_block_is_no_answer_and_no_alarm() {
    let vectors = vectors();
    let (good, _) = vector_block(&vectors, &vectors["blocks"][1]);
    let without = |pointer: &str, key: &str| {
        let mut json = good.clone();
        json.pointer_mut(pointer)
            .expect("it is there")
            .as_object_mut()
            .expect("an object")
            .remove(key);
        json
    };
    let with = |pointer: &str, value: Value| {
        let mut json = good.clone();
        *json.pointer_mut(pointer).expect("it is there") = value;
        json
    };
    for json in [
        json!({}),
        json!([]),
        json!(null),
        json!("block"),
        json!({ "block": [] }),
        without("", "blockID"),
        without("", "block_header"),
        without("/block_header", "raw_data"),
        without("/block_header/raw_data", "txTrieRoot"),
        without("/block_header/raw_data", "parentHash"),
        without("/transactions/0", "raw_data_hex"),
        with("/blockID", json!(7)),
        with("/blockID", json!("zz")),
        with("/block_header/raw_data/number", json!("5")),
        with("/block_header/raw_data/number", json!(-1)),
        with("/block_header/raw_data/number", json!(1.5)),
        with("/block_header/raw_data/version", json!(1_i64 << 40)),
        with("/transactions", json!({})),
        with("/transactions/0", json!([])),
        with("/transactions/0/signature", json!("00")),
    ] {
        let error = checked_block(&json).expect_err("no block");
        assert!(!error.contradicts_itself(), "{error} for {json}");
    }
}

#[test]
fn blocks_that_the_mock_network_prints_come_back_byte_for_byte() {
    run(async {
        let config = Config {
            foreign_per_block: 7,
            clock: ClockMode::Stepped,
            history: 12,
            solidity_lag: 2,
            ..Config::default()
        };
        let net = MockNet::start(config).await.expect("a network");
        let url = net.url(0);
        let node = crate::support::node(&url, &url);
        let head = node.solid_head().await.expect("a head");
        assert!(head.number > 5);
        for number in 0..=head.number {
            let block = node
                .solid_block(number)
                .await
                .expect("an answer")
                .expect("a block");
            assert_eq!(
                Some(&block.bytes),
                net.block_bytes(number).as_ref(),
                "block {number}"
            );
        }
        let all = node.blocks(1, head.number).await.expect("a range");
        assert_eq!(all.len() as i64, head.number);
    });
}
