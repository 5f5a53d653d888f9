//! The node client: what a clean answer is, and that everything else is none.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluice_core::broadcast::BroadcastCode;
use sluice_core::envelope::Txid;
use sluice_mock_node::{ClockMode, Config, MockNet};
use sluice_runner::node::{Answer, ReadError, Reason};
use sluice_runner::nodes::Nodes;

use crate::support::{Asked, LIMITS, Reply, ScriptedNode, node, run};

const RAW: &[u8] = b"any bytes: a node's word is judged by the id alone";

fn txid() -> Txid {
    Txid::of(RAW)
}

fn answer(code: &str) -> Value {
    json!({ "result": code == "SUCCESS", "code": code, "message": "words", "transaction": "{}", "txid": txid().to_string() })
}

async fn broadcast(reply: Reply) -> Answer {
    let scripted = ScriptedNode::start(move |_| reply.clone()).await;
    let node = node(&scripted.url(), &scripted.url());
    let answer = node
        .broadcast(RAW, &txid(), Duration::from_secs(60))
        .await
        .expect("it is connected");
    assert_eq!(
        answer.node,
        scripted.address.to_string(),
        "a node is named by host and port"
    );
    answer
}

#[test]
fn every_code_that_a_node_says_cleanly_is_passed_on_with_its_words() {
    run(async {
        for code in BroadcastCode::LISTED
            .iter()
            .filter(|code| **code != BroadcastCode::NoAnswer)
        {
            let said = broadcast(Reply::Json(answer(&code.name()))).await;
            assert_eq!((&said.code, said.message.as_str()), (code, "words"));
        }
        let said = broadcast(Reply::Json(answer("NOVELTY"))).await;
        assert_eq!(said.code, BroadcastCode::Unlisted("NOVELTY".to_owned()));
    });
}

#[test]
fn anything_but_a_clean_answer_to_a_broadcast_is_no_answer() {
    run(async {
        let changed = |key: &str, value: Value| {
            let mut json = answer("SUCCESS");
            json[key] = value;
            Reply::Json(json)
        };
        let without = |key: &str| {
            let mut json = answer("SUCCESS");
            json.as_object_mut().expect("an object").remove(key);
            Reply::Json(json)
        };
        let replies = [
            Reply::Text(503, "{}".to_owned()),
            Reply::Text(
                403,
                "{\"Error\":\"The key exceeds the frequency limit(15)\"}".to_owned(),
            ),
            Reply::Text(
                404,
                "{\"Error\":\"this API is unavailable due to config\"}".to_owned(),
            ),
            Reply::Text(204, String::new()),
            Reply::Text(307, String::new()),
            Reply::Text(
                200,
                "this API is closed because this node is a lite fullnode".to_owned(),
            ),
            Reply::Text(200, String::new()),
            Reply::Text(200, "<html>ok</html>".to_owned()),
            Reply::Text(200, format!("{}}}", answer("SUCCESS"))),
            Reply::Text(500, answer("SUCCESS").to_string()),
            Reply::Json(json!({ "Error": "class java.lang.NullPointerException : null" })),
            changed("Error", json!("lack of computing resources")),
            Reply::Json(json!({})),
            Reply::Json(json!([])),
            Reply::Json(json!("SUCCESS")),
            Reply::Json(json!(null)),
            without("result"),
            without("code"),
            without("message"),
            without("txid"),
            changed("txid", json!(Txid::of(b"another").to_string())),
            changed("txid", json!("")),
            changed("txid", json!(null)),
            changed("code", json!("SIGERROR")),
            changed("code", json!(0)),
            changed("result", json!(false)),
            changed("result", json!("true")),
            changed("message", json!({})),
            Reply::Silence,
            Reply::Broken,
            Reply::Long(usize::try_from(LIMITS.max_response).expect("small") + 1),
        ];
        for reply in replies {
            let said = broadcast(reply.clone()).await;
            assert_eq!(
                said.code,
                BroadcastCode::NoAnswer,
                "{reply:?} was taken for {said:?}"
            );
            assert!(
                !said.message.is_empty() && said.message.chars().count() < 500,
                "{said:?}"
            );
        }
    });
}

#[test]
fn what_a_node_says_is_cut_and_cleaned_before_anybody_keeps_it() {
    run(async {
        let mut json = answer("SIGERROR");
        json["message"] = json!(format!("a\u{0}b\nc{}", "x".repeat(5000)));
        let said = broadcast(Reply::Json(json)).await;
        assert!(said.message.starts_with("a b c") && said.message.chars().count() <= 300);
        let mut json = answer(&"C".repeat(500));
        json["result"] = json!(false);
        assert!(
            broadcast(Reply::Json(json))
                .await
                .code
                .name()
                .chars()
                .count()
                <= 64
        );
    });
}

#[test]
fn a_send_ends_with_the_lease_if_that_is_sooner() {
    run(async {
        let scripted = ScriptedNode::start(|_| Reply::Silence).await;
        let node = node(&scripted.url(), &scripted.url());
        let start = Instant::now();
        let said = node
            .broadcast(RAW, &txid(), Duration::from_millis(50))
            .await
            .expect("it is connected");
        assert_eq!(said.code, BroadcastCode::NoAnswer);
        assert!(
            start.elapsed() < LIMITS.send_timeout,
            "{:?}",
            start.elapsed()
        );
    });
}

#[test]
fn requests_go_where_they_belong_with_hex_and_plain_json() {
    run(async {
        let full = ScriptedNode::start(|_| Reply::Json(json!({}))).await;
        let solid = ScriptedNode::start(|_| Reply::Json(json!({}))).await;
        let node = node(&format!("{}/customer-key/", full.url()), &solid.url());
        assert_eq!(
            node.name(),
            full.address.to_string(),
            "no path in the name: it may be a customer's key"
        );
        node.broadcast(RAW, &txid(), Duration::from_secs(1))
            .await
            .expect("it is connected");
        node.blocks(5, 9).await.expect_err("no blocks");
        node.solid_head().await.expect_err("no block");
        assert_eq!(node.solid_block(7).await.expect("an answer"), None);
        let seen = |node: &ScriptedNode| {
            node.asked()
                .into_iter()
                .map(|asked: Asked| (asked.path, asked.body))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            seen(&full),
            [
                (
                    "/customer-key/wallet/broadcasthex".to_owned(),
                    json!({ "transaction": hex::encode(RAW) })
                ),
                (
                    "/customer-key/wallet/getblockbylimitnext".to_owned(),
                    json!({ "startNum": 5, "endNum": 10 })
                ),
            ]
        );
        assert_eq!(
            seen(&solid),
            [
                ("/walletsolidity/getnowblock".to_owned(), json!({})),
                (
                    "/walletsolidity/getblockbynum".to_owned(),
                    json!({ "num": 7 })
                ),
            ]
        );
    });
}

#[test]
fn reading_takes_only_the_block_that_was_asked_for() {
    run(async {
        let config = Config {
            clock: ClockMode::Stepped,
            history: 10,
            solidity_lag: 1,
            ..Config::default()
        };
        let net = MockNet::start(config).await.expect("a network");
        let honest = node(&net.url(0), &net.url(0));
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        let block = |number: i64| {
            let (client, url) = (
                client.clone(),
                format!("{}/wallet/getblockbynum", net.url(0)),
            );
            async move {
                let response = client
                    .post(url)
                    .body(json!({ "num": number }).to_string())
                    .send()
                    .await
                    .expect("an answer");
                serde_json::from_slice::<Value>(&response.bytes().await.expect("a body"))
                    .expect("JSON")
            }
        };
        let (four, five, six, seven) = (
            block(4).await,
            block(5).await,
            block(6).await,
            block(7).await,
        );
        assert!(honest.solid_block(5).await.expect("an answer").is_some());

        let single = [
            four.clone(),
            json!([]),
            json!({ "Error": "busy" }),
            json!({ "block_header": {} }),
            json!(null),
        ];
        for reply in single {
            let liar = ScriptedNode::start(move |_| Reply::Json(reply.clone())).await;
            let read = node(&liar.url(), &liar.url()).solid_block(5).await;
            assert!(matches!(read, Err(ReadError::NoAnswer(_))), "{read:?}");
        }
        let mut stripped = five.clone();
        stripped["block_header"]["raw_data"]["txTrieRoot"] = json!("00".repeat(31) + "01");
        let lists = [
            (json!({}), true),
            (json!([]), true),
            (json!({ "block": [] }), true),
            (json!({ "block": {} }), true),
            (json!({ "block": [four.clone(), five.clone()] }), true),
            (json!({ "block": [five.clone(), seven.clone()] }), true),
            (json!({ "block": [five.clone(), five.clone()] }), true),
            (
                json!({ "block": [five.clone(), six.clone(), seven.clone()] }),
                true,
            ),
            (json!({ "block": [five.clone(), {}] }), true),
            (json!({ "block": [stripped, six.clone()] }), false),
        ];
        for (list, is_no_answer) in lists {
            let liar = ScriptedNode::start({
                let list = list.clone();
                move |_| Reply::Json(list.clone())
            })
            .await;
            let read = node(&liar.url(), &liar.url()).blocks(5, 6).await;
            match read {
                Err(ReadError::NoAnswer(_)) => assert!(is_no_answer, "{list}"),
                Err(ReadError::BadBlock { .. }) => assert!(!is_no_answer, "{list}"),
                Ok(blocks) => panic!("{} blocks of {list}", blocks.len()),
            }
        }
        let read = honest.blocks(5, 6).await.expect("a range");
        assert_eq!(
            read.iter().map(|block| block.number).collect::<Vec<_>>(),
            [5, 6]
        );
    });
}

#[test]
fn an_answer_that_is_too_long_or_too_late_is_given_up() {
    run(async {
        for reply in [Reply::Long(2 << 20), Reply::Silence, Reply::Broken] {
            let scripted = ScriptedNode::start(move |_| reply.clone()).await;
            let start = Instant::now();
            let read = node(&scripted.url(), &scripted.url()).solid_head().await;
            assert!(matches!(read, Err(ReadError::NoAnswer(_))), "{read:?}");
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    });
}

/// An address on which nobody listens.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    format!(
        "http://{}",
        listener.local_addr().expect("a listener has an address")
    )
}

#[test]
fn a_node_that_cannot_be_reached_costs_no_turn_and_one_that_is_silent_does() {
    run(async {
        let good = ScriptedNode::start(|_| Reply::Json(answer("SUCCESS"))).await;
        let gone = nobody().await;
        let nodes = Nodes::new(vec![node(&gone, &gone), node(&good.url(), &good.url())])
            .expect("two nodes");
        for _ in 0..4 {
            let said = nodes.broadcast(RAW, &txid(), Duration::from_secs(1)).await;
            assert_eq!(said.code, BroadcastCode::Success);
        }
        assert_eq!(good.asked().len(), 4);

        let alone = Nodes::new(vec![node(&gone, &gone)]).expect("one node");
        let said = alone.broadcast(RAW, &txid(), Duration::from_secs(1)).await;
        assert_eq!(said.code, BroadcastCode::NoAnswer);

        let silent = ScriptedNode::start(|_| Reply::Silence).await;
        let before = good.asked().len();
        let nodes = Nodes::new(vec![
            node(&silent.url(), &silent.url()),
            node(&good.url(), &good.url()),
        ])
        .expect("two nodes");
        let mut codes = vec![];
        for _ in 0..2 {
            codes.push(
                nodes
                    .broadcast(RAW, &txid(), Duration::from_millis(100))
                    .await
                    .code,
            );
        }
        codes.sort_by_key(|code| code.name().into_owned());
        assert_eq!(
            codes,
            [BroadcastCode::NoAnswer, BroadcastCode::Success],
            "sending goes round"
        );
        assert_eq!(
            good.asked().len() - before,
            1,
            "bytes that may have arrived are not sent on at once"
        );
    });
}

#[test]
fn a_connection_that_never_came_about_is_told_from_one_that_broke() {
    run(async {
        let gone = nobody().await;
        let failed = node(&gone, &gone)
            .broadcast(RAW, &txid(), Duration::from_secs(1))
            .await
            .expect_err("nobody there");
        assert!(matches!(failed.reason, Reason::NotConnected(_)), "{failed}");
    });
}
