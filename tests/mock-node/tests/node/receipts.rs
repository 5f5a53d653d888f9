//! Receipts of transactions in blocks.

use serde_json::{Value, json};
use sluice_mock_node::{Config, Fault, Rule};

use crate::scene::{RECIPIENT, Scene, TOKEN, keys_of, stepped, text};

async fn info_of(scene: &Scene, result: &str, visible: bool) -> Value {
    let envelope = scene.envelope(1);
    let fault = Fault::Receipt {
        result: result.to_owned(),
    };
    scene.net.add_fault(Rule::new(fault)).expect("a rule");
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let ask = json!({ "value": envelope.id(), "visible": visible });
    let info = scene.post(0, "/wallet/gettransactioninfobyid", &ask).await;
    assert_eq!(info["id"], envelope.id());
    let ask = json!({ "num": 31, "visible": visible });
    let list = scene
        .post(0, "/wallet/gettransactioninfobyblocknum", &ask)
        .await;
    assert_eq!(list, json!([info]));
    info
}

#[tokio::test]
async fn a_success_has_a_transfer_event_no_result_and_a_returned_false() {
    let scene = Scene::new().await;
    let info = info_of(&scene, "SUCCESS", false).await;
    assert_eq!(
        keys_of(&info),
        [
            "blockNumber",
            "blockTimeStamp",
            "contractResult",
            "contract_address",
            "fee",
            "id",
            "log",
            "receipt"
        ]
    );
    assert_eq!(info["receipt"]["result"], "SUCCESS");
    assert_eq!(info["contractResult"], json!(["0".repeat(64)]));
    let log = &info["log"][0];
    assert_eq!(log["address"], "a614f803b6fd780986a42c78ec9c7f77e6ded13c");
    assert_eq!(log["data"], format!("{:064x}", 1_500_000));
    let topics = log["topics"].as_array().expect("a list");
    assert!(text(&topics[0]).starts_with("ddf252ad"));
    assert!(text(&topics[1]).ends_with(&hex::encode(scene.owner().body())));
    let to = sluice_core::address::Address::parse(RECIPIENT).expect("an address");
    assert!(text(&topics[2]).ends_with(&hex::encode(to.body())));
}

#[tokio::test]
async fn a_revert_says_so_at_the_top_and_in_the_receipt() {
    let scene = Scene::new().await;
    let info = info_of(&scene, "REVERT", false).await;
    assert_eq!(info["result"], "FAILED");
    assert_eq!(info["receipt"]["result"], "REVERT");
    let message = hex::decode(text(&info["resMessage"])).expect("hex");
    assert_eq!(message, b"REVERT opcode executed");
    let reason = hex::decode(text(&info["contractResult"][0])).expect("hex");
    assert_eq!(reason.len(), 4 + 3 * 32);
    assert_eq!(reason[..4], [0x08, 0xc3, 0x79, 0xa0]);
    assert_eq!(&reason[68..88], b"insufficient balance");
    assert!(info.get("log").is_none());
}

#[tokio::test]
async fn running_out_of_energy_burns_the_whole_fee_limit() {
    let scene = Scene::new().await;
    let info = info_of(&scene, "OUT_OF_ENERGY", true).await;
    assert_eq!(info["result"], "FAILED");
    assert_eq!(info["fee"], 100_000_000);
    assert!(text(&info["resMessage"]).contains("energy"));
    assert_eq!(info["contract_address"], TOKEN);
}

#[tokio::test]
async fn an_unknown_result_is_printed_as_protobuf_prints_it() {
    let scene = Scene::new().await;
    let info = info_of(&scene, "77", false).await;
    assert_eq!(
        info["receipt"]["result"],
        "UNKNOWN_ENUM_VALUE_contractResult_77"
    );
}

#[tokio::test]
async fn with_the_history_switch_off_there_are_no_receipts() {
    let scene = Scene::new().await;
    info_of(&scene, "SUCCESS", false).await;
    scene
        .net
        .change_node(0, |node| node.history_switch = false)
        .expect("there is a node 0");
    let by_id = json!({ "value": &scene.net.transactions()[0].txid.to_string() });
    assert_eq!(
        scene
            .post(0, "/wallet/gettransactioninfobyid", &by_id)
            .await,
        json!({})
    );
    let shown = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    assert_eq!(shown["ret"], json!([{ "contractRet": "SUCCESS" }]));
}

#[tokio::test]
async fn a_transfer_of_trx_has_no_result_anywhere() {
    let scene = Scene::with(Config {
        foreign_per_block: 1,
        ..stepped()
    })
    .await;
    let list = scene
        .post(
            0,
            "/wallet/gettransactioninfobyblocknum",
            &json!({ "num": 1 }),
        )
        .await;
    let info = &list[0];
    assert!(info.get("result").is_none());
    assert!(info["receipt"].get("result").is_none());
    assert!(info.get("contract_address").is_none());
}
