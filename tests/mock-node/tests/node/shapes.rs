//! The shapes of the API: what is found, what is not, and what is wrong.

use reqwest::StatusCode;
use serde_json::{Value, json};
use sluice_mock_node::Endpoint;

use crate::scene::{START_MS, Scene, TOKEN, keys_of, number_of, stepped, text, time_of};
use sluice_mock_node::Config;

#[tokio::test]
async fn every_endpoint_answers_json_to_post_and_get_under_both_roots_where_java_tron_has_it() {
    let scene = Scene::new().await;
    for root in ["wallet", "walletsolidity"] {
        for endpoint in Endpoint::ALL {
            let path = format!("/{root}/{}", endpoint.name());
            let exists = Endpoint::find(endpoint.name(), root == "walletsolidity").is_some();
            let response = scene.post_raw(0, &path, "{}".to_owned()).await;
            if !exists {
                assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
                continue;
            }
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            let content_type = response.headers()["content-type"].clone();
            assert_eq!(content_type, "application/json; charset=utf-8", "{path}");
            response.json::<Value>().await.expect("JSON");

            let url = format!(
                "{}{path}?num=1&value=00&startNum=1&endNum=2",
                scene.net.url(0)
            );
            let status = scene
                .client
                .get(url)
                .send()
                .await
                .expect("an answer")
                .status();
            let wanted = if endpoint.is_broadcast() {
                StatusCode::METHOD_NOT_ALLOWED
            } else {
                StatusCode::OK
            };
            assert_eq!(status, wanted, "GET {path}");
        }
    }
}

#[tokio::test]
async fn get_and_post_give_the_same_answer() {
    let scene = Scene::new().await;
    let by_post = scene.block(0, 7).await;
    assert_eq!(scene.get(0, "/wallet/getblockbynum?num=7").await, by_post);
    assert_eq!(
        scene.get(0, "/walletsolidity/getblockbynum?num=7").await,
        by_post
    );
    let id = text(&by_post["blockID"]);
    assert_eq!(
        scene
            .get(0, &format!("/wallet/getblock?id_or_num={id}&detail=true"))
            .await,
        by_post
    );
    let form = scene
        .client
        .post(format!("{}/wallet/getblockbynum", scene.net.url(0)))
        .header("content-type", "application/x-www-form-urlencoded")
        .body("num=7")
        .send()
        .await
        .expect("an answer");
    assert_eq!(form.json::<Value>().await.expect("JSON"), by_post);
}

#[tokio::test]
async fn block_0_has_an_id_of_its_own_and_prints_neither_number_nor_time() {
    let scene = Scene::new().await;
    let block = scene.block(0, 0).await;
    assert_eq!(text(&block["blockID"]), hex::encode(scene.net.genesis()));
    assert_ne!(
        block["blockID"],
        "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc"
    );
    assert_ne!(
        block["blockID"],
        "0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc"
    );
    let raw = &block["block_header"]["raw_data"];
    assert_eq!(
        keys_of(raw),
        ["parentHash", "txTrieRoot", "witness_address"]
    );
    // `num` left out means 0, and so does an empty object.
    assert_eq!(
        scene.post(0, "/wallet/getblockbynum", &json!({})).await,
        block
    );
}

#[tokio::test]
async fn another_seed_is_another_chain() {
    let one = Scene::new().await;
    let other = Scene::with(Config {
        seed: 2,
        ..stepped()
    })
    .await;
    let same = Scene::new().await;
    assert_eq!(one.net.status().head_id, same.net.status().head_id);
    assert_ne!(one.net.genesis(), other.net.genesis());
}

#[tokio::test]
async fn an_empty_block_has_a_root_of_zeros_and_no_transactions() {
    let scene = Scene::new().await;
    let block = scene.block(0, 30).await;
    assert_eq!(time_of(&block), START_MS);
    assert_eq!(
        block["block_header"]["raw_data"]["txTrieRoot"],
        "0".repeat(64)
    );
    assert!(block.get("transactions").is_none());
    assert_eq!(text(&block["block_header"]["witness_signature"]).len(), 130);
    let before = scene.block(0, 29).await;
    assert_eq!(
        block["block_header"]["raw_data"]["parentHash"],
        before["blockID"]
    );
}

#[tokio::test]
async fn what_is_not_there_is_an_empty_object_or_list_with_status_200() {
    let scene = Scene::new().await;
    let unknown = json!({ "value": "ab".repeat(32) });
    for root in ["wallet", "walletsolidity"] {
        for (endpoint, body, wanted) in [
            ("gettransactionbyid", unknown.clone(), json!({})),
            ("gettransactioninfobyid", unknown.clone(), json!({})),
            ("getblockbynum", json!({ "num": 1_000 }), json!({})),
            ("getblockbynum", json!({ "num": -1 }), json!({})),
            ("getblock", json!({ "id_or_num": "1000" }), json!({})),
            // An empty block, a block not there yet, and no block at all.
            (
                "gettransactioninfobyblocknum",
                json!({ "num": 5 }),
                json!([]),
            ),
            (
                "gettransactioninfobyblocknum",
                json!({ "num": 1_000 }),
                json!([]),
            ),
            (
                "gettransactioninfobyblocknum",
                json!({ "num": 0 }),
                json!({}),
            ),
        ] {
            let path = format!("/{root}/{endpoint}");
            assert_eq!(scene.post(0, &path, &body).await, wanted, "{path} {body}");
        }
    }
    assert_eq!(
        scene
            .post(0, "/wallet/gettransactionfrompending", &unknown)
            .await,
        json!({})
    );
    assert_eq!(
        scene
            .post(0, "/wallet/gettransactionlistfrompending", &json!({}))
            .await,
        json!({})
    );
}

#[tokio::test]
async fn a_list_of_blocks_ends_before_its_end_and_has_at_most_100() {
    let scene = Scene::with(Config {
        history: 150,
        ..stepped()
    })
    .await;
    let list = async |start: i64, end: i64| {
        let body = json!({ "startNum": start, "endNum": end });
        scene.post(0, "/wallet/getblockbylimitnext", &body).await
    };
    let numbers = |answer: &Value| {
        let blocks = answer["block"].as_array().expect("a list");
        blocks.iter().map(number_of).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&list(5, 8).await), [5, 6, 7]);
    assert_eq!(numbers(&list(0, 2).await), [0, 1]);
    assert_eq!(numbers(&list(10, 110).await).len(), 100);
    assert_eq!(list(10, 111).await, json!({}));
    assert_eq!(list(8, 8).await, json!({}));
    assert_eq!(list(9, 8).await, json!({}));
    assert_eq!(numbers(&list(149, 160).await), [149, 150]);
    assert_eq!(list(200, 210).await, json!({ "block": [] }));
    let by_get = scene
        .get(0, "/wallet/getblockbylimitnext?startNum=5&endNum=8")
        .await;
    assert_eq!(by_get, list(5, 8).await);
}

#[tokio::test]
async fn getblock_takes_a_number_an_id_or_nothing_and_shows_transactions_only_on_demand() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let ask = async |body: Value| scene.post(0, "/wallet/getblock", &body).await;
    let full = scene.block(0, 31).await;
    assert_eq!(
        ask(json!({ "id_or_num": "31", "detail": true })).await,
        full
    );
    assert_eq!(
        ask(json!({ "id_or_num": full["blockID"], "detail": true })).await,
        full
    );
    assert_eq!(ask(json!({ "detail": true })).await, full);
    let bare = ask(json!({ "id_or_num": "31" })).await;
    assert_eq!(bare["blockID"], full["blockID"]);
    assert!(bare.get("transactions").is_none());

    let error = |message: &str| json!({ "Error": message });
    let no_hash = error("id must be legal block hash.");
    assert_eq!(
        ask(json!({ "id_or_num": "-1" })).await,
        error("num must be non-positive number.")
    );
    assert_eq!(ask(json!({ "id_or_num": "zz" })).await, no_hash);
    assert_eq!(ask(json!({ "id_or_num": "ff".repeat(32) })).await, no_hash);
    // The right height, another block.
    let other = format!("{:016x}{}", 31, "ab".repeat(24));
    assert_eq!(ask(json!({ "id_or_num": other })).await, json!({}));
    let response = scene.post_raw(0, "/wallet/getblock", String::new()).await;
    assert_eq!(number_of(&response.json().await.expect("JSON")), 31);
}

#[tokio::test]
async fn broadcasthex_answers_every_key_and_its_message_as_text() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    let answer = scene.send_to(0, &envelope).await;
    assert_eq!(
        keys_of(&answer),
        ["code", "message", "result", "transaction", "txid"]
    );
    assert_eq!(answer["result"], true);
    assert_eq!(answer["code"], "SUCCESS");
    assert_eq!(answer["message"], "");
    assert_eq!(answer["txid"], envelope.id());
    let transaction: Value =
        serde_json::from_str(&text(&answer["transaction"])).expect("JSON as text");
    assert_eq!(
        transaction["signature"][0],
        hex::encode(&envelope.signature)
    );
    let parameter = &transaction["raw_data"]["contract"][0]["parameter"];
    assert_eq!(
        parameter["type_url"],
        "type.googleapis.com/protocol.TriggerSmartContract"
    );
    assert!(parameter["value"].is_string());

    let again = scene.send_to(0, &envelope).await;
    assert_eq!(
        keys_of(&again),
        ["code", "message", "result", "transaction", "txid"]
    );
    assert_eq!(again["result"], false);
    assert_eq!(again["message"], "Dup transaction.");
}

#[tokio::test]
async fn broadcasttransaction_leaves_out_defaults_and_has_its_message_in_hex() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    // The transaction's own JSON, as a node prints it.
    scene.send_to(0, &envelope).await;
    let by_id = json!({ "value": envelope.id() });
    let mut body = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    scene.net.evict(&envelope.txid);
    // Neither is looked at.
    body["txID"] = json!("00");
    body["raw_data_hex"] = json!("ff");

    let answer = scene.post(0, "/wallet/broadcasttransaction", &body).await;
    // It was dropped, so it is taken anew; but the peers have seen it.
    let message = hex::encode("P2P broadcast failed.");
    let wanted = json!({
        "code": "NOT_ENOUGH_EFFECTIVE_CONNECTION",
        "message": message,
        "txid": envelope.id(),
    });
    assert_eq!(answer, wanted);
    body["visible"] = json!(true);
    let raw = &mut body["raw_data"]["contract"][0]["parameter"]["value"];
    raw["owner_address"] = json!(scene.owner().to_string());
    raw["contract_address"] = json!(TOKEN);
    let answer = scene.post(0, "/wallet/broadcasttransaction", &body).await;
    assert_eq!(answer["message"], "Dup transaction.");
    assert_eq!(answer["txid"], envelope.id());
}

#[tokio::test]
async fn broadcasttransaction_answers_a_success_without_a_code() {
    let scene = Scene::with(Config {
        nodes: 1,
        ..stepped()
    })
    .await;
    let other = Scene::new().await;
    let envelope = scene.envelope(1);
    // Printed by another network with the same chain.
    other.send_to(0, &envelope).await;
    let by_id = json!({ "value": envelope.id() });
    let body = other.post(0, "/wallet/gettransactionbyid", &by_id).await;
    let answer = scene.post(0, "/wallet/broadcasttransaction", &body).await;
    assert_eq!(answer, json!({ "result": true, "txid": envelope.id() }));
}

#[tokio::test]
async fn a_contract_that_does_not_parse_is_dropped_and_changes_the_txid() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    let by_id = json!({ "value": envelope.id() });
    let mut body = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    body["raw_data"]["contract"][0]["type"] = json!("NoSuchContract");
    let answer = scene.post(0, "/wallet/broadcasttransaction", &body).await;
    assert_eq!(answer["code"], "CONTRACT_VALIDATE_ERROR");
    assert_ne!(answer["txid"], envelope.id());
    let answer = scene
        .post(0, "/wallet/broadcasttransaction", &json!({}))
        .await;
    assert_eq!(
        answer,
        json!({ "Error": "class java.lang.NullPointerException : null" })
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_with_status_200() {
    let scene = Scene::new().await;
    for (path, body) in [
        ("/wallet/broadcasthex", r#"{"transaction":"xyz"}"#),
        ("/wallet/broadcasthex", r#"{"transaction":"0a05"}"#),
        ("/wallet/broadcasthex", "not JSON"),
        ("/wallet/broadcasthex", ""),
        ("/wallet/getblockbynum", r#"{"num":"many"}"#),
        ("/wallet/getblockbynum", "[1]"),
        ("/wallet/gettransactionbyid", r#"{"value":"no hex"}"#),
        ("/wallet/gettransactionfrompending", r#"{"value":"ab"}"#),
    ] {
        let response = scene.post_raw(0, path, body.to_owned()).await;
        assert_eq!(response.status(), StatusCode::OK, "{path} {body}");
        let answer: Value = response.json().await.expect("JSON");
        let error = text(&answer["Error"]);
        assert!(error.starts_with("class "), "{path} {body}: {error}");
    }
    let url = format!("{}/wallet/getblockbynum", scene.net.url(0));
    let answer: Value = scene
        .client
        .get(url)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(
        answer,
        json!({ "Error": "class java.lang.NumberFormatException : null" })
    );
    assert_eq!(scene.net.sends(&Default::default()).len(), 4);
}

#[tokio::test]
async fn a_body_above_4_mib_is_refused() {
    let scene = Scene::new().await;
    let body = format!(r#"{{"transaction":"{}"}}"#, "0".repeat(4 * 1024 * 1024));
    let response = scene.post_raw(0, "/wallet/broadcasthex", body).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn visible_shows_addresses_in_base58_and_leaves_calldata_in_hex() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let ask = json!({ "value": envelope.id(), "visible": true });
    let shown = scene.post(0, "/wallet/gettransactionbyid", &ask).await;
    let value = &shown["raw_data"]["contract"][0]["parameter"]["value"];
    assert_eq!(value["owner_address"], scene.owner().to_string());
    assert_eq!(value["contract_address"], TOKEN);
    assert!(text(&value["data"]).starts_with("a9059cbb"));
    let query = format!(
        "/wallet/gettransactionbyid?value={}&visible=true",
        envelope.id()
    );
    assert_eq!(scene.get(0, &query).await, shown);

    let hidden = json!({ "value": envelope.id() });
    let hidden = scene.post(0, "/wallet/gettransactionbyid", &hidden).await;
    let value = &hidden["raw_data"]["contract"][0]["parameter"]["value"];
    assert_eq!(
        value["owner_address"],
        hex::encode(scene.owner().as_bytes())
    );
    let block = scene
        .post(
            0,
            "/wallet/getblockbynum",
            &json!({ "num": 31, "visible": true }),
        )
        .await;
    assert!(text(&block["block_header"]["raw_data"]["witness_address"]).starts_with('T'));
}

#[tokio::test]
async fn a_transactions_json_has_what_java_tron_prints_and_no_defaults() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(1);
    let by_id = json!({ "value": envelope.id() });
    let shown = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    assert_eq!(
        keys_of(&shown),
        ["raw_data", "raw_data_hex", "ret", "signature", "txID"]
    );
    assert_eq!(shown["ret"], json!([{ "contractRet": "SUCCESS" }]));
    assert_eq!(shown["raw_data_hex"], hex::encode(&envelope.raw_data));
    assert_eq!(
        keys_of(&shown["raw_data"]),
        [
            "contract",
            "expiration",
            "fee_limit",
            "ref_block_bytes",
            "ref_block_hash",
            "scripts",
            "timestamp"
        ]
    );
    assert_eq!(shown["raw_data"]["scripts"], envelope.tag());
    let contract = &shown["raw_data"]["contract"][0];
    assert_eq!(keys_of(contract), ["parameter", "type"]);
    assert_eq!(contract["type"], "TriggerSmartContract");

    // Permission_id is printed where it is above 0.
    let mut spec = scene.spec(2);
    spec.permission_id = 2;
    let envelope = scene.sign(2, &spec);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    let by_id = json!({ "value": envelope.id() });
    let shown = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    assert_eq!(shown["raw_data"]["contract"][0]["Permission_id"], 2);
}

#[tokio::test]
async fn nodeinfo_names_head_and_solid_block() {
    let scene = Scene::new().await;
    let info = scene.get(0, "/wallet/getnodeinfo").await;
    let status = scene.net.status();
    assert_eq!(info["block"], format!("Num:30,ID:{}", status.head_id));
    assert_eq!(
        info["solidityBlock"],
        format!("Num:11,ID:{}", status.solid_id)
    );
    assert!(info["configNodeInfo"]["codeVersion"].is_string());
    assert!(info["peerList"].is_array());
    assert_eq!(scene.get(0, "/walletsolidity/getnodeinfo").await, info);
}

#[tokio::test]
async fn chain_parameter_88_is_printed_without_a_value_while_it_is_off() {
    let find = |answer: Value| {
        let list = answer["chainParameter"].as_array().expect("a list").clone();
        list.into_iter()
            .find(|entry| entry["key"] == "getConsensusLogicOptimization")
    };
    let off = Scene::new().await;
    let entry = find(off.get(0, "/wallet/getchainparameters").await);
    assert_eq!(
        entry,
        Some(json!({ "key": "getConsensusLogicOptimization" }))
    );
    let on = Scene::with(Config {
        consensus_logic_optimization: true,
        ..stepped()
    })
    .await;
    let entry = find(on.get(0, "/wallet/getchainparameters").await);
    assert_eq!(
        entry,
        Some(json!({ "key": "getConsensusLogicOptimization", "value": 1 }))
    );
}

#[tokio::test]
async fn a_lite_node_answers_history_with_bare_text() {
    let scene = Scene::new().await;
    scene
        .net
        .change_node(0, |node| node.lite = true)
        .expect("there is a node 0");
    for path in [
        "/wallet/getblockbynum",
        "/walletsolidity/gettransactionbyid",
    ] {
        let response = scene
            .post_raw(0, path, r#"{"num":1,"value":"00"}"#.to_owned())
            .await;
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.text().await.expect("text");
        assert_eq!(
            body.trim(),
            "this API is closed because this node is a lite fullnode"
        );
    }
    // Not filtered.
    assert_eq!(scene.head(0).await, 30);
}

#[tokio::test]
async fn a_closed_endpoint_is_404_with_a_json_body() {
    let scene = Scene::new().await;
    scene
        .net
        .change_node(0, |node| {
            node.disabled = vec!["getnowblock".to_owned(), "broadcasthex".to_owned()]
        })
        .expect("there is a node 0");
    for path in ["/wallet/getnowblock", "/wallet/broadcasthex"] {
        let body = json!({ "transaction": hex::encode(scene.envelope(1).bytes()) });
        let response = scene.post_raw(0, path, body.to_string()).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let answer: Value = response.json().await.expect("JSON");
        assert_eq!(answer["Error"], "this API is unavailable due to config");
    }
    assert_eq!(scene.net.status().nodes[0].pool, 0);
}

#[tokio::test]
async fn a_transfer_of_trx_is_printed_as_one() {
    let scene = Scene::with(Config {
        foreign_per_block: 1,
        ..stepped()
    })
    .await;
    // The first shape of foreign transactions.
    let block = scene.block(0, 1).await;
    let contract = &block["transactions"][0]["raw_data"]["contract"][0];
    assert_eq!(contract["type"], "TransferContract");
    let value = &contract["parameter"]["value"];
    assert_eq!(keys_of(value), ["amount", "owner_address", "to_address"]);
}
