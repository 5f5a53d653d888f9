//! What the producers do with a transaction: leave it out, hold it back, end it otherwise, show another signature.

use serde_json::json;
use sluice_core::signature::{self, hmac_sign};
use sluice_mock_node::{Became, Config, Fault, Rule, SignatureForm, Signer};
use uuid::Uuid;

use crate::scene::{Scene, stepped, text, txids_of};

#[tokio::test]
async fn blocks_hold_what_was_sent_in_the_order_it_came() {
    let scene = Scene::with(Config {
        nodes: 3,
        ..stepped()
    })
    .await;
    let envelopes: Vec<_> = (1..=5).map(|number| scene.envelope(number)).collect();
    for (index, envelope) in envelopes.iter().enumerate() {
        scene.send_to(index % 3, envelope).await;
    }
    scene.net.produce(1);
    let wanted: Vec<_> = envelopes.iter().map(|envelope| envelope.id()).collect();
    assert_eq!(txids_of(&scene.block(0, 31).await), wanted);
}

#[tokio::test]
async fn an_operation_can_be_left_out_of_every_block() {
    let scene = Scene::new().await;
    let [left_out, other] = [1, 2].map(|number| scene.envelope(number));
    let rule = Rule::new(Fault::NeverInclude {}).operation(Uuid::from_bytes([1; 16]));
    scene.net.add_fault(rule).expect("a rule");
    for envelope in [&left_out, &other] {
        assert_eq!(scene.code_of(0, envelope).await, "SUCCESS");
    }
    scene.net.produce(40);
    assert_eq!(scene.report(&left_out).became, Became::Expired);
    assert_eq!(scene.report(&other).block, Some(31));
}

#[tokio::test]
async fn a_transaction_can_be_held_back_past_any_pools_time_out() {
    let scene = Scene::new().await;
    let envelope = scene.envelope_until(1, scene.net.now_ms() + 300_000);
    let rule = Rule::new(Fault::DelayInclusion { blocks: 50 }).txid(envelope.txid);
    scene.net.add_fault(rule).expect("a rule");
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let status = scene.net.status();
    assert_eq!((status.producer_pool, status.held_back), (0, 1));
    scene.net.produce(49);
    assert_eq!(scene.report(&envelope).became, Became::Waiting);
    let ask = json!({ "value": envelope.id() });
    let pending = scene
        .post(0, "/wallet/gettransactionfrompending", &ask)
        .await;
    assert_eq!(pending, json!({}), "no node has it any more");
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).block, Some(81));
}

#[tokio::test]
async fn every_result_can_be_asked_for() {
    let scene = Scene::new().await;
    let results = [
        "SUCCESS",
        "REVERT",
        "BAD_JUMP_DESTINATION",
        "OUT_OF_MEMORY",
        "PRECOMPILED_CONTRACT",
        "STACK_TOO_SMALL",
        "STACK_TOO_LARGE",
        "ILLEGAL_OPERATION",
        "STACK_OVERFLOW",
        "OUT_OF_ENERGY",
        "OUT_OF_TIME",
        "JVM_STACK_OVER_FLOW",
        "UNKNOWN",
        "TRANSFER_FAILED",
        "INVALID_CODE",
    ];
    for (number, result) in (1..).zip(results) {
        let envelope = scene.envelope(number);
        let fault = Fault::Receipt {
            result: result.to_owned(),
        };
        scene
            .net
            .add_fault(Rule::new(fault).times(1))
            .expect("a rule");
        assert_eq!(
            scene.code_of(0, &envelope).await,
            "SUCCESS",
            "a failure is no refusal"
        );
        scene.net.produce(1);
        let block = scene.block(0, scene.head(0).await).await;
        assert_eq!(
            block["transactions"][0]["ret"],
            json!([{ "contractRet": result }])
        );
        assert_eq!(scene.report(&envelope).result.as_deref(), Some(result));
    }
    for (number, result, ret) in [
        (31, "DEFAULT", Some(json!([{}]))),
        (
            32,
            "77",
            Some(json!([{ "contractRet": "UNKNOWN_ENUM_VALUE_contractResult_77" }])),
        ),
        (33, "ABSENT", None),
    ] {
        let envelope = scene.envelope(number);
        let fault = Fault::Receipt {
            result: result.to_owned(),
        };
        scene
            .net
            .add_fault(Rule::new(fault).times(1))
            .expect("a rule");
        scene.send_to(0, &envelope).await;
        scene.net.produce(1);
        let block = scene.block(0, scene.head(0).await).await;
        assert_eq!(
            block["transactions"][0].get("ret"),
            ret.as_ref(),
            "{result}"
        );
    }
    let no_result = Fault::Receipt {
        result: "NO_SUCH".to_owned(),
    };
    assert!(scene.net.add_fault(Rule::new(no_result)).is_err());
}

#[tokio::test]
async fn a_block_may_show_another_form_of_the_signature_than_was_sent() {
    let scene = Scene::new().await;
    let forms = [
        SignatureForm::HighS,
        SignatureForm::OtherV,
        SignatureForm::Trailing,
    ];
    for (number, form) in (1..).zip(forms) {
        let envelope = scene.envelope(number);
        let rule = Rule::new(Fault::Resign { form }).txid(envelope.txid);
        scene.net.add_fault(rule).expect("a rule");
        scene.send_to(0, &envelope).await;
        scene.net.produce(1);
        let head = scene.head(0).await;
        let block = scene.block(0, head).await;
        let transaction = &block["transactions"][0];
        assert_eq!(transaction["txID"], envelope.id());
        let shown = hex::decode(text(&transaction["signature"][0])).expect("hex");
        assert_ne!(shown, envelope.signature, "{form:?}");
        let by = signature::recover(&envelope.txid, &shown[..65]).expect("a signature");
        assert_eq!(by, scene.owner(), "{form:?}");
        let bytes = scene.net.block_bytes(head).expect("a block");
        let checked = sluice_core::block::decode_block(&bytes).expect("a block");
        assert!(
            checked.root_holds,
            "{form:?}: the root is over what the block holds"
        );
    }
}

#[tokio::test]
async fn an_hmac_signature_can_change_its_form_as_well() {
    let scene = Scene::new().await;
    scene
        .net
        .register(scene.owner(), Signer::Hmac { key: vec![1] });
    let mut envelope = scene.envelope(1);
    envelope.signature = hmac_sign(&[1], &envelope.txid).to_vec();
    let fault = Fault::Resign {
        form: SignatureForm::Trailing,
    };
    scene.net.add_fault(Rule::new(fault)).expect("a rule");
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let block = scene.block(0, 31).await;
    let shown = text(&block["transactions"][0]["signature"][0]);
    assert!(shown.starts_with(&hex::encode(&envelope.signature)) && shown.len() > 130);
}

#[tokio::test]
async fn a_txid_is_in_the_chain_at_most_once() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.produce(1);
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.produce(2);
    let mut found = Vec::new();
    for number in 31..=33 {
        found.extend(txids_of(&scene.block(0, number).await));
    }
    assert_eq!(found, [envelope.id()]);
}
