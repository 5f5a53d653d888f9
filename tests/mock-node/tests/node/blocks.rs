//! Blocks as JSON and as bytes: a reader that knows nothing of this crate builds the bytes from the JSON, and sluice's own
//! checks hold for them.

use prost::Message;
use serde_json::{Value, json};
use sluice_core::block::decode_block;
use sluice_core::envelope::Txid;
use sluice_core::proto::{
    AmountEntry, Block, BlockHeader, BlockHeaderRaw, MarketOrderDetail, Transaction,
    TransactionResult,
};
use sluice_core::signature::recover;
use sluice_mock_node::{Config, Fault, Rule};

use crate::scene::{Scene, number_of, stepped, text};

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap_or_default()).expect("hex")
}

fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// What `BlockCapsule` would hold, from what `Util.printBlock` printed.
fn block_from_json(block: &Value) -> Vec<u8> {
    let header = &block["block_header"];
    let raw = &header["raw_data"];
    let raw = BlockHeaderRaw {
        timestamp: integer(&raw["timestamp"]),
        tx_trie_root: bytes(&raw["txTrieRoot"]),
        parent_hash: bytes(&raw["parentHash"]),
        number: integer(&raw["number"]),
        witness_id: integer(&raw["witness_id"]),
        witness_address: bytes(&raw["witness_address"]),
        version: integer(&raw["version"]) as i32,
        account_state_root: bytes(&raw["accountStateRoot"]),
    };
    Block {
        transactions: list(&block["transactions"])
            .iter()
            .map(transaction_from_json)
            .collect(),
        block_header: BlockHeader {
            raw_data: raw.encode_to_vec(),
            witness_signature: bytes(&header["witness_signature"]),
        }
        .encode_to_vec(),
    }
    .encode_to_vec()
}

fn transaction_from_json(transaction: &Value) -> Vec<u8> {
    Transaction {
        raw_data: bytes(&transaction["raw_data_hex"]),
        signature: list(&transaction["signature"]).iter().map(bytes).collect(),
        ret: list(&transaction["ret"])
            .iter()
            .map(result_from_json)
            .collect(),
    }
    .encode_to_vec()
}

fn result_from_json(ret: &Value) -> Vec<u8> {
    let name = ret["contractRet"].as_str().unwrap_or("DEFAULT");
    let contract_ret = sluice_core::block::Receipt::from_name(name)
        .and_then(sluice_core::block::Receipt::code)
        .expect("a result that has a name");
    let details = list(&ret["orderDetails"]);
    let amounts = list(&ret["cancel_unfreezeV2_amount"]);
    TransactionResult {
        fee: integer(&ret["fee"]),
        ret: i32::from(ret["ret"] == "FAILED"),
        contract_ret,
        asset_issue_id: ret["assetIssueID"].as_str().unwrap_or_default().to_owned(),
        withdraw_amount: integer(&ret["withdraw_amount"]),
        unfreeze_amount: integer(&ret["unfreeze_amount"]),
        exchange_received_amount: integer(&ret["exchange_received_amount"]),
        exchange_inject_another_amount: integer(&ret["exchange_inject_another_amount"]),
        exchange_withdraw_another_amount: integer(&ret["exchange_withdraw_another_amount"]),
        exchange_id: integer(&ret["exchange_id"]),
        shielded_transaction_fee: integer(&ret["shielded_transaction_fee"]),
        order_id: bytes(&ret["orderId"]),
        order_details: details
            .iter()
            .map(|detail| MarketOrderDetail {
                maker_order_id: bytes(&detail["makerOrderId"]),
                taker_order_id: bytes(&detail["takerOrderId"]),
                fill_sell_quantity: integer(&detail["fillSellQuantity"]),
                fill_buy_quantity: integer(&detail["fillBuyQuantity"]),
            })
            .collect(),
        withdraw_expire_amount: integer(&ret["withdraw_expire_amount"]),
        cancel_unfreeze_v2_amount: amounts
            .iter()
            .map(|entry| AmountEntry {
                key: entry["key"].as_str().map(str::to_owned),
                value: entry["value"].as_i64(),
            })
            .collect(),
    }
    .encode_to_vec()
}

#[tokio::test]
async fn the_bytes_can_be_built_from_the_json_and_give_id_and_root() {
    let scene = Scene::with(Config {
        foreign_per_block: 9,
        ..stepped()
    })
    .await;
    for number in 1..=4 {
        scene.send_to(0, &scene.envelope(number)).await;
    }
    scene.net.produce(1);
    let mut parent = None;
    for number in 0..=31 {
        let shown = scene.block(0, number).await;
        let built = block_from_json(&shown);
        assert_eq!(
            Some(&built),
            scene.net.block_bytes(number).as_ref(),
            "block {number}"
        );
        let block = decode_block(&built).expect("a block");
        assert_eq!(block.number, number);
        assert_eq!(
            hex::encode(block.id),
            text(&shown["blockID"]),
            "block {number}"
        );
        assert!(block.root_holds, "block {number}");
        assert!(
            parent.is_none_or(|parent| parent == block.parent_id),
            "block {number}"
        );
        let ids: Vec<_> = block
            .transactions
            .iter()
            .map(|tx| tx.txid.to_string())
            .collect();
        assert_eq!(ids, crate::scene::txids_of(&shown), "block {number}");
        parent = Some(block.id);
    }
    // The foreign ones of a block show every field that a result can have.
    let whole = scene.block(0, 1).await.to_string() + &scene.block(0, 2).await.to_string();
    for name in [
        "assetIssueID",
        "orderDetails",
        "cancel_unfreezeV2_amount",
        "withdraw_expire_amount",
        "OUT_OF_ENERGY",
        "WithdrawExpireUnfreezeContract",
    ] {
        assert!(whole.contains(name), "{name}");
    }
}

#[tokio::test]
async fn a_witness_has_signed_the_plain_hash_of_the_header() {
    let scene = Scene::new().await;
    let shown = scene.block(0, 30).await;
    let header = BlockHeader::decode(
        Block::decode(scene.net.block_bytes(30).expect("a block").as_slice())
            .expect("a block")
            .block_header
            .as_slice(),
    )
    .expect("a header");
    // `Txid::of` is SHA-256 of whatever it is given.
    let digest = Txid::of(&header.raw_data);
    assert_eq!(header.witness_signature.len(), 65);
    let by = recover(&digest, &header.witness_signature).expect("a signature");
    let witness = text(&shown["block_header"]["raw_data"]["witness_address"]);
    assert_eq!(hex::encode(by.as_bytes()), witness);
}

#[tokio::test]
async fn a_successful_transaction_ends_with_its_result() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let bytes = scene.net.block_bytes(31).expect("a block");
    let block = Block::decode(bytes.as_slice()).expect("a block");
    let wanted = [envelope.bytes(), vec![0x2a, 0x02, 0x18, 0x01]].concat();
    assert_eq!(block.transactions, [wanted]);
}

#[tokio::test]
async fn a_block_stripped_of_its_transactions_does_not_give_its_root() {
    let scene = Scene::new().await;
    scene.send_to(0, &scene.envelope(1)).await;
    scene.net.produce(1);
    let whole = scene.block(0, 31).await;
    let rule = Rule::new(Fault::StripTransactions {}).block(31).times(1);
    scene.net.add_fault(rule).expect("a rule");
    let stripped = scene.block(0, 31).await;
    assert!(stripped.get("transactions").is_none());
    assert_eq!(stripped["block_header"], whole["block_header"]);
    let block = decode_block(&block_from_json(&stripped)).expect("a block");
    assert!(!block.root_holds);
    assert_eq!(scene.block(0, 31).await, whole, "once");
}

#[tokio::test]
async fn an_altered_result_does_not_give_its_root() {
    let scene = Scene::new().await;
    let fault = Fault::Receipt {
        result: "REVERT".to_owned(),
    };
    scene.net.add_fault(Rule::new(fault)).expect("a rule");
    scene.send_to(0, &scene.envelope(1)).await;
    scene.net.produce(1);
    let fault = Fault::AlterRet {
        result: "SUCCESS".to_owned(),
    };
    scene
        .net
        .add_fault(Rule::new(fault).block(31))
        .expect("a rule");
    let ask = json!({ "startNum": 30, "endNum": 32 });
    let answer = scene.post(0, "/wallet/getblockbylimitnext", &ask).await;
    let altered = &answer["block"][1];
    assert_eq!(
        altered["transactions"][0]["ret"],
        json!([{ "contractRet": "SUCCESS" }])
    );
    assert!(
        !decode_block(&block_from_json(altered))
            .expect("a block")
            .root_holds
    );
}

#[tokio::test]
async fn a_block_of_another_chain_is_sound_and_has_a_foreign_parent() {
    let scene = Scene::new().await;
    let whole = scene.block(0, 20).await;
    let rule = Rule::new(Fault::ForeignParent {}).block(20);
    scene.net.add_fault(rule).expect("a rule");
    let shown = scene.block(0, 20).await;
    let block = decode_block(&block_from_json(&shown)).expect("a block");
    assert!(block.root_holds);
    assert_eq!(hex::encode(block.id), text(&shown["blockID"]));
    assert_eq!(block.number, 20);
    assert_ne!(shown["blockID"], whole["blockID"]);
    assert_ne!(
        hex::encode(block.parent_id),
        text(&scene.block(0, 19).await["blockID"])
    );
}

#[tokio::test]
async fn a_gap_leaves_a_block_out_of_a_list_and_answers_the_next_alone() {
    let scene = Scene::new().await;
    scene
        .net
        .add_fault(Rule::new(Fault::Gap {}).block(20))
        .expect("a rule");
    let ask = json!({ "startNum": 18, "endNum": 22 });
    let answer = scene.post(0, "/wallet/getblockbylimitnext", &ask).await;
    let numbers: Vec<_> = list(&answer["block"]).iter().map(number_of).collect();
    assert_eq!(numbers, [18, 19, 21]);
    assert_eq!(number_of(&scene.block(0, 20).await), 21);
    assert_eq!(number_of(&scene.block(0, 21).await), 21);
}
