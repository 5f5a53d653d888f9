//! Faults on calls: no answer, other answers, late answers, answers of others.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use sluice_mock_node::{
    Became, Config, Endpoint, Fault, LogFilter, Rule, Scope, SignatureForm, Silence,
};
use uuid::Uuid;

use crate::scene::{Envelope, Scene, keys_of, number_of, stepped, text, time_of};

/// broadcasthex that waits for an answer only so long.
async fn try_send(scene: &Scene, envelope: &Envelope) -> Result<Value, reqwest::Error> {
    let body = json!({ "transaction": hex::encode(envelope.bytes()) });
    scene
        .client
        .post(format!("{}/wallet/broadcasthex", scene.net.url(0)))
        .timeout(Duration::from_millis(300))
        .body(body.to_string())
        .send()
        .await?
        .json()
        .await
}

fn answer(code: &str, message: &str, keep: bool) -> Fault {
    Fault::Answer {
        code: code.to_owned(),
        message: message.to_owned(),
        keep,
        result: None,
    }
}

#[tokio::test]
async fn accepted_and_then_no_answer_the_transaction_is_in_the_pool() {
    for (number, how) in (1..).zip([Silence::Hold, Silence::Reset, Silence::Close]) {
        let scene = Scene::new().await;
        let envelope = scene.envelope(number);
        let rule = Rule::new(Fault::AcceptThenTimeout { how }).times(1);
        scene.net.add_fault(rule).expect("a rule");
        let error = try_send(&scene, &envelope).await.expect_err("no answer");
        assert_eq!(
            error.is_timeout(),
            how == Silence::Hold,
            "{how:?}: {error:?}"
        );
        assert_eq!(scene.code_of(0, &envelope).await, "DUP_TRANSACTION_ERROR");
        let sends = scene.net.sends(&LogFilter::default());
        assert_eq!(
            (sends[0].answered.as_str(), sends[0].accepted),
            ("NO_ANSWER", true)
        );
        assert_eq!(sends[0].judged.as_deref(), Some("SUCCESS"));
        assert_eq!(sends[0].faults, ["accept_then_timeout"]);
        scene.net.produce(1);
        let report = scene.report(&envelope);
        assert_eq!(
            (report.accepts, report.sends, report.block),
            (1, 2, Some(31))
        );
    }
}

#[tokio::test]
async fn dropped_and_then_no_answer_the_transaction_is_nowhere() {
    for (number, how) in (1..).zip([Silence::Hold, Silence::Reset, Silence::Close]) {
        let scene = Scene::new().await;
        let envelope = scene.envelope(number);
        let rule = Rule::new(Fault::DropThenTimeout { how }).times(1);
        scene.net.add_fault(rule).expect("a rule");
        try_send(&scene, &envelope).await.expect_err("no answer");
        let report = scene.report(&envelope);
        assert_eq!((report.became, report.accepts), (Became::NeverKept, 0));
        assert_eq!(scene.net.sends(&LogFilter::default())[0].judged, None);
        assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    }
}

#[tokio::test]
async fn a_reset_connection_is_reset_and_a_closed_one_closed() {
    use std::io::{Read, Write};
    for how in [Silence::Reset, Silence::Close] {
        let scene = Scene::new().await;
        let fault = Fault::DropThenTimeout { how };
        scene
            .net
            .add_fault(Rule::new(fault).at(Scope::Any))
            .expect("a rule");
        let address = scene.net.url(0).trim_start_matches("http://").to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).expect("a connection");
            stream
                .write_all(b"GET /wallet/getnowblock HTTP/1.1\r\nhost: x\r\n\r\n")
                .expect("sent");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).map(|_| answer)
        });
        match (how, read.await.expect("no panic")) {
            (Silence::Close, Ok(answer)) => assert!(answer.is_empty()),
            (Silence::Reset, Err(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            }
            (_, other) => panic!("{how:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn any_code_can_be_answered_with_or_without_the_pool_keeping_the_bytes() {
    let codes = [
        ("SIGERROR", "Validate signature error: sig error"),
        (
            "CONTRACT_VALIDATE_ERROR",
            "Contract validate error : account does not exist",
        ),
        ("CONTRACT_EXE_ERROR", ""),
        ("BANDWITH_ERROR", "Account resource insufficient error."),
        ("DUP_TRANSACTION_ERROR", "Dup transaction."),
        ("DUP_TRANSACTION_ERROR", "Transaction already exists."),
        ("TAPOS_ERROR", "Tapos check error."),
        ("TOO_BIG_TRANSACTION_ERROR", ""),
        ("TRANSACTION_EXPIRATION_ERROR", "Transaction expired"),
        ("SERVER_BUSY", "Server busy."),
        ("NO_CONNECTION", "No connection."),
        ("NOT_ENOUGH_EFFECTIVE_CONNECTION", "P2P broadcast failed."),
        ("BLOCK_UNSOLIDIFIED", "Block unsolidified."),
        ("OTHER_ERROR", "Error: null"),
        ("SOMETHING_NEW", "nobody knows this"),
        ("SUCCESS", ""),
    ];
    let scene = Scene::new().await;
    let mut number = 0;
    for (code, message) in codes {
        for keep in [false, true] {
            number += 1;
            let envelope = scene.envelope(number);
            let rule = Rule::new(answer(code, message, keep)).txid(envelope.txid);
            scene.net.add_fault(rule).expect("a rule");
            let said = scene.send_to(0, &envelope).await;
            assert_eq!(
                (text(&said["code"]), text(&said["message"])),
                (code.into(), message.into())
            );
            assert_eq!(said["result"], code == "SUCCESS");
            assert_eq!(said["txid"], envelope.id());
            let report = scene.report(&envelope);
            assert_eq!(report.accepts, u64::from(keep), "{code} {keep}");
            let wanted = if keep {
                Became::Waiting
            } else {
                Became::NeverKept
            };
            assert_eq!(report.became, wanted, "{code} {keep}");
        }
    }
    scene.net.produce(1);
    let included = scene
        .net
        .transactions()
        .iter()
        .filter(|report| report.block.is_some())
        .count();
    assert_eq!(included, codes.len());
}

#[tokio::test]
async fn a_failure_by_broadcasttransaction_has_no_result_and_its_message_in_hex() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    let by_id = json!({ "value": envelope.id() });
    let body = scene.post(0, "/wallet/gettransactionbyid", &by_id).await;
    scene
        .net
        .add_fault(Rule::new(answer("SIGERROR", "nö", false)))
        .expect("a rule");
    let said = scene.post(0, "/wallet/broadcasttransaction", &body).await;
    let wanted = json!({ "code": "SIGERROR", "message": hex::encode("nö"), "txid": envelope.id() });
    assert_eq!(said, wanted);
}

#[tokio::test]
async fn a_late_answer_comes_late_and_the_work_may_wait_too() {
    let scene = Scene::new().await;
    for (number, before) in [(1, false), (2, true)] {
        let envelope = scene.envelope(number);
        let fault = Fault::Delay { ms: 400, before };
        scene
            .net
            .add_fault(Rule::new(fault).txid(envelope.txid))
            .expect("a rule");
        let begun = Instant::now();
        let (said, accepted) = tokio::join!(scene.code_of(0, &envelope), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            scene
                .net
                .transaction(&envelope.txid)
                .is_some_and(|report| report.accepts == 1)
        });
        assert_eq!(said, "SUCCESS");
        assert!(begun.elapsed() >= Duration::from_millis(400));
        assert_eq!(accepted, !before);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_undo_what_the_node_has_begun() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    let fault = Fault::Delay {
        ms: 600,
        before: true,
    };
    scene.net.add_fault(Rule::new(fault)).expect("a rule");
    let error = try_send(&scene, &envelope).await.expect_err("too late");
    assert!(error.is_timeout());
    assert!(scene.net.transaction(&envelope.txid).is_none());
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(scene.report(&envelope).accepts, 1);
}

#[tokio::test]
async fn the_bodies_seen_in_the_wild() {
    let scene = Scene::new().await;
    let cases = [
        (Fault::Empty { keep: true }, 200, "{}"),
        (
            Fault::Error {
                message: "class java.lang.Exception : x".to_owned(),
                keep: true,
            },
            200,
            r#"{"Error":"class java.lang.Exception : x"}"#,
        ),
        (
            Fault::Status {
                status: 429,
                keep: true,
            },
            429,
            r#"{"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s"}"#,
        ),
        (
            Fault::Status {
                status: 404,
                keep: true,
            },
            404,
            r#"{"Error":"this API is unavailable due to config"}"#,
        ),
        (
            Fault::Status {
                status: 502,
                keep: true,
            },
            502,
            "<html><body><h1>HTTP 502</h1></body></html>",
        ),
        (
            Fault::Lite {},
            200,
            "this API is closed because this node is a lite fullnode",
        ),
        (
            Fault::Body {
                status: 200,
                json: None,
                text: "<!doctype html>".to_owned(),
                keep: true,
            },
            200,
            "<!doctype html>",
        ),
        (
            Fault::Body {
                status: 500,
                json: Some(json!([1])),
                text: String::new(),
                keep: true,
            },
            500,
            "[1]",
        ),
    ];
    for (number, (fault, status, wanted)) in (1..).zip(cases) {
        let kept = fault != Fault::Lite {};
        scene
            .net
            .add_fault(Rule::new(fault.clone()).times(2))
            .expect("a rule");
        let envelope = scene.envelope(number);
        let body = json!({ "transaction": hex::encode(envelope.bytes()) });
        let sent = scene
            .post_raw(0, "/wallet/broadcasthex", body.to_string())
            .await;
        let asked = scene
            .post_raw(0, "/walletsolidity/getnowblock", "{}".to_owned())
            .await;
        for response in [sent, asked] {
            assert_eq!(response.status().as_u16(), status, "{fault:?}");
            assert_eq!(
                response.text().await.expect("text").trim(),
                wanted,
                "{fault:?}"
            );
        }
        assert_eq!(
            scene.report(&envelope).accepts,
            u64::from(kept),
            "{fault:?}"
        );
    }
    for status in [403, 503] {
        let fault = Fault::Status {
            status,
            keep: false,
        };
        scene
            .net
            .add_fault(Rule::new(fault).times(1))
            .expect("a rule");
        let response = scene
            .post_raw(0, "/wallet/getnowblock", "{}".to_owned())
            .await;
        assert_eq!(response.status().as_u16(), status);
    }
    assert_eq!(
        number_of(&scene.get(0, "/wallet/getnowblock").await),
        30,
        "the truth again"
    );
    assert!(
        scene
            .net
            .add_fault(Rule::new(Fault::Status {
                status: 42,
                keep: false
            }))
            .is_err()
    );
}

#[tokio::test]
async fn answers_can_name_another_txid_lack_keys_or_break_off() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    let add = |fault| {
        scene
            .net
            .add_fault(Rule::new(fault).times(1))
            .expect("a rule")
    };
    add(Fault::WrongTxid {});
    let said = scene.send_to(0, &envelope).await;
    assert_eq!(said["code"], "SUCCESS");
    assert_ne!(said["txid"], envelope.id());
    assert_eq!(text(&said["txid"]).len(), 64);

    add(Fault::Missing {
        fields: vec!["code".to_owned(), "txid".to_owned()],
    });
    let said = scene.send_to(0, &envelope).await;
    assert_eq!(keys_of(&said), ["message", "result", "transaction"]);

    add(Fault::Patch {
        merge: json!({ "code": null, "result": "yes", "more": { "a": 1 } }),
    });
    let said = scene.send_to(0, &envelope).await;
    assert_eq!(
        keys_of(&said),
        ["message", "more", "result", "transaction", "txid"]
    );
    assert_eq!(said["result"], "yes");

    add(Fault::Truncated {});
    let body = json!({ "transaction": hex::encode(envelope.bytes()) });
    let response = scene
        .post_raw(0, "/wallet/broadcasthex", body.to_string())
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.text().await.expect("text");
    assert!(serde_json::from_str::<Value>(&body).is_err() && body.starts_with('{'));
}

#[tokio::test]
async fn a_transaction_can_be_kept_by_one_node_alone() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    let envelope = scene.envelope(1);
    scene
        .net
        .add_fault(Rule::new(Fault::LocalOnly {}).times(1))
        .expect("a rule");
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    let pools: Vec<_> = scene
        .net
        .status()
        .nodes
        .iter()
        .map(|node| node.pool)
        .collect();
    assert_eq!(pools, [1, 0]);
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).became, Became::Waiting);
}

#[tokio::test]
async fn accepted_and_then_dropped_a_transaction_is_gone_from_every_pool() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .add_fault(Rule::new(Fault::NeverInclude {}))
        .expect("a rule");
    scene
        .net
        .add_fault(Rule::new(Fault::Evict { after_ms: 5_000 }))
        .expect("a rule");
    let envelope = scene.envelope(1);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).became, Became::Waiting);
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).became, Became::Dropped);
}

#[tokio::test]
async fn a_rule_strikes_only_what_it_names() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    let busy = || Rule::new(answer("SERVER_BUSY", "", false));
    let envelope = scene.envelope(1);
    let code = async |rule: Rule, node: usize, envelope: &Envelope| {
        let id = scene.net.add_fault(rule).expect("a rule");
        let code = scene.code_of(node, envelope).await;
        assert!(scene.net.remove_fault(id));
        code == "SERVER_BUSY"
    };
    assert!(!code(busy().node(1), 0, &envelope).await);
    assert!(code(busy().node(1), 1, &envelope).await);
    assert!(code(busy().txid(envelope.txid), 0, &envelope).await);
    assert!(!code(busy().txid(envelope.txid), 0, &scene.envelope(2)).await);
    assert!(code(busy().owner(scene.owner()), 0, &envelope).await);
    assert!(code(busy().operation(Uuid::from_bytes([1; 16])), 0, &envelope).await);
    assert!(!code(busy().operation(Uuid::from_bytes([9; 16])), 0, &envelope).await);
    assert!(
        code(
            busy().at(Scope::Named(Endpoint::BroadcastHex)),
            0,
            &envelope
        )
        .await
    );
    let other = Scope::Named(Endpoint::BroadcastTransaction);
    assert!(!code(busy().at(other), 0, &envelope).await);
    assert!(!code(busy().worker("one"), 0, &envelope).await);
    assert!(!code(busy().after(1), 0, &envelope).await);
    assert!(scene.net.add_fault(busy().node(2)).is_err());
    assert!(
        scene
            .net
            .add_fault(busy().at(Scope::Named(Endpoint::NowBlock)))
            .is_err()
    );
    assert!(scene.net.add_fault(busy().with_probability(1.5)).is_err());
    let form = SignatureForm::HighS;
    assert!(
        scene
            .net
            .add_fault(Rule::new(Fault::Resign { form }))
            .is_ok()
    );
}

#[tokio::test]
async fn a_worker_is_known_by_its_user_agent() {
    let scene = Scene::new().await;
    let rule = Rule::new(answer("SERVER_BUSY", "", false)).worker("one");
    scene.net.add_fault(rule).expect("a rule");
    let body = json!({ "transaction": hex::encode(scene.envelope(1).bytes()) });
    for (worker, wanted) in [("one", "SERVER_BUSY"), ("two", "SUCCESS")] {
        let answer: Value = scene
            .client
            .post(format!("{}/wallet/broadcasthex", scene.net.url(0)))
            .header("user-agent", format!("sluice-runner/0.1.0 ({worker})"))
            .body(body.to_string())
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("JSON");
        assert_eq!(answer["code"], wanted);
    }
    let workers: Vec<_> = scene
        .net
        .sends(&LogFilter::default())
        .into_iter()
        .filter_map(|sent| sent.worker)
        .collect();
    assert_eq!(workers, ["one", "two"]);
}

#[tokio::test]
async fn two_backends_behind_one_address_have_different_heads() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .change_node(1, |node| node.lag = 4)
        .expect("there is a node 1");
    scene.net.produce(10);
    let rule = Rule::new(Fault::Backend { node: 1 })
        .at(Scope::Blocks)
        .node(0)
        .after(1)
        .times(1);
    scene.net.add_fault(rule).expect("a rule");
    let mut heads = Vec::new();
    for _ in 0..3 {
        heads.push(scene.head(0).await);
    }
    assert_eq!(heads, [40, 36, 40]);
    scene.net.clear_faults();
    scene
        .net
        .add_fault(Rule::new(Fault::Behind { blocks: 3 }).times(2))
        .expect("a rule");
    assert_eq!(scene.head(0).await, 37);
    let solid = scene
        .post(0, "/walletsolidity/getnowblock", &json!({}))
        .await;
    assert_eq!(number_of(&solid), 18);
    assert!(time_of(&solid) > 0);
    assert!(
        scene
            .net
            .add_fault(Rule::new(Fault::Backend { node: 7 }))
            .is_err()
    );
}

#[tokio::test]
async fn a_solid_list_can_leak_once() {
    let scene = Scene::new().await;
    let ask = json!({ "startNum": 10, "endNum": 31 });
    let scope = Scope::Solid(Endpoint::BlockByLimitNext);
    let rule = Rule::new(Fault::LeakUnsolid {}).at(scope).times(1);
    scene.net.add_fault(rule).expect("a rule");
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let answer = scene
            .post(0, "/walletsolidity/getblockbylimitnext", &ask)
            .await;
        lengths.push(answer["block"].as_array().map(Vec::len));
    }
    assert_eq!(lengths, [Some(21), Some(2)]);
}
