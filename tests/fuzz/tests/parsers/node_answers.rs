//! What a node says over a real connection: broken HTTP, broken JSON, good JSON with something else somewhere. The runner has a
//! clean answer or none, and what it takes for clean is what was said.

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_core::broadcast::BroadcastCode;
use sluice_core::envelope::Txid;
use sluice_fuzz::fuzz;
use sluice_fuzz::http::{Answering, PATIENCE, answer};
use sluice_fuzz::json::{any_value, changed, changes, no_json};
use sluice_mock_node::{ClockMode, Config, MockNet};
use sluice_runner::block_json::CheckedBlock;
use sluice_runner::node::{Limits, Node};

use crate::blocks::database_agrees;

const MAX_RESPONSE: u64 = 1 << 20;

/// Blocks as a node shows them, with strangers' transactions.
pub fn shown_blocks() -> Vec<Value> {
    let config = Config {
        clock: ClockMode::Stepped,
        history: 24,
        foreign_per_block: 3,
        ..Config::default()
    };
    let network = MockNet::start_blocking(config).expect("a network");
    let shown = run(async {
        let body = json!({ "startNum": 1, "endNum": 21 }).to_string();
        let response = client()
            .post(format!("{}/wallet/getblockbylimitnext", network.url(0)))
            .body(body)
            .send()
            .await
            .expect("an answer");
        let bytes = response.bytes().await.expect("a body");
        serde_json::from_slice::<Value>(&bytes).expect("JSON")
    });
    shown["block"].as_array().expect("a list").clone()
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client")
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

fn node(server: &Answering) -> Node {
    let url: reqwest::Url = server.url().parse().expect("a URL");
    let limits = Limits {
        read_timeout: PATIENCE,
        send_timeout: PATIENCE,
        max_response: MAX_RESPONSE,
    };
    Node::new(url.clone(), url, client(), limits)
}

/// A body in an answer: mostly as HTTP wants it, sometimes not.
fn wrapped(body: impl Strategy<Value = Vec<u8>> + 'static) -> impl Strategy<Value = Vec<u8>> {
    let status = prop_oneof![
        12 => Just("200 OK".to_owned()),
        1 => (100..1000_u16).prop_map(|status| format!("{status} Something")),
        1 => Just("301 Moved\r\nlocation: /elsewhere".to_owned()),
    ];
    let headers = prop_oneof![
        6 => Just(String::new()),
        1 => Just("content-encoding: gzip\r\n".to_owned()),
        1 => Just("content-type: text/html; charset=utf-16\r\n".to_owned()),
        1 => Just("transfer-encoding: chunked\r\n".to_owned()),
        1 => Just("content-length: 7\r\n".to_owned()),
        1 => "[a-z-]{1,20}: [ -~]{0,60}\r\n",
        1 => (1..400_usize).prop_map(|times| "x-more: and more\r\n".repeat(times)),
    ];
    let whole = (status, headers, body)
        .prop_map(|(status, headers, body)| answer(&status, &headers, &body));
    let whole = whole.boxed();
    let chunked = (whole.clone(), 0..3_u8).prop_map(|(whole, end)| {
        let end: &[u8] = match end {
            0 => b"\r\n0\r\n\r\n",
            1 => b"\r\nffffffffffffffffff\r\n",
            _ => b"",
        };
        let size = format!("{:x}\r\n", whole.len());
        [
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            size.as_bytes(),
            &whole,
            end,
        ]
        .concat()
    });
    let cut = (whole.clone(), any::<usize>())
        .prop_map(|(whole, at)| whole[..at % (whole.len() + 1)].to_vec());
    let damaged = (whole.clone(), sluice_fuzz::bytes::damages())
        .prop_map(|(whole, damages)| sluice_fuzz::bytes::damaged(whole, &damages));
    let endless = (1..4_u64).prop_map(|times| {
        let body = vec![b' '; usize::try_from(MAX_RESPONSE * times / 2 + times).expect("small")];
        [b"HTTP/1.1 200 OK\r\n\r\n", body.as_slice()].concat()
    });
    prop_oneof![
        10 => whole,
        2 => cut,
        2 => damaged,
        1 => chunked,
        1 => endless,
        1 => sluice_fuzz::bytes::noise(300),
    ]
}

fn txid() -> Txid {
    Txid::of(b"sent")
}

/// What /wallet/broadcasthex may say.
fn broadcast_answer() -> impl Strategy<Value = Value> {
    let codes: Vec<String> = BroadcastCode::LISTED
        .iter()
        .map(|code| code.name().into_owned())
        .collect();
    (
        prop::sample::select(codes),
        sluice_fuzz::text::any_text(),
        changes(),
    )
        .prop_map(|(code, message, changes)| {
            let clean = json!({
                "result": code == "SUCCESS",
                "code": code,
                "message": message,
                "transaction": "{}",
                "txid": txid().to_string(),
            });
            changed(clean, &changes)
        })
}

/// A second reading of a clean answer, from the JSON that was sent.
fn clean_code(body: &[u8]) -> Option<String> {
    let json: Value = serde_json::from_slice(body).ok()?;
    let code = json.get("code")?.as_str()?;
    let consistent = json.get("result")?.as_bool()? == (code == "SUCCESS");
    let ours = json
        .get("txid")?
        .as_str()?
        .eq_ignore_ascii_case(&txid().to_string());
    let whole = json.get("message")?.is_string() && json.get("Error").is_none();
    (consistent && ours && whole).then(|| code.to_owned())
}

#[test]
fn an_answer_to_a_broadcast_is_what_a_node_cleanly_said_or_none() {
    let server = Answering::start();
    let node = node(&server);
    let said = broadcast_answer().prop_map(|json| json.to_string().into_bytes());
    fuzz("clean_answers", 200, said, |body| {
        server.answer(answer("200 OK", "", &body));
        let answer = run(node.broadcast(b"sent", &txid(), PATIENCE));
        let answer = answer.expect("it is connected");
        match (&answer.code, clean_code(&body)) {
            (BroadcastCode::NoAnswer, None) => {}
            // A node that says NO_ANSWER, in so many words.
            (BroadcastCode::NoAnswer, Some(code)) => prop_assert_eq!(code, "NO_ANSWER"),
            (read, clean) => {
                let clean = clean.expect("only what is clean is read");
                prop_assert_eq!(read.verdict(), BroadcastCode::from_name(&clean).verdict());
            }
        }
        is_fit_for_a_log(&answer.message)
    });
}

#[test]
fn no_answer_to_a_broadcast_brings_the_runner_down() {
    let server = Answering::start();
    let node = node(&server);
    let body = prop_oneof![
        4 => broadcast_answer().prop_map(|json| json.to_string().into_bytes()),
        2 => any_value().prop_map(|json| json.to_string().into_bytes()),
        3 => no_json(),
    ];
    fuzz("broadcast_answers", 250, wrapped(body), |bytes| {
        server.answer(bytes.clone());
        match run(node.broadcast(b"sent", &txid(), PATIENCE)) {
            Ok(answer) => {
                if answer.code != BroadcastCode::NoAnswer {
                    prop_assert!(
                        bytes
                            .windows(64)
                            .any(|part| part.eq_ignore_ascii_case(txid().to_string().as_bytes()))
                    );
                }
                is_fit_for_a_log(&answer.message)
            }
            Err(error) => {
                prop_assert!(false, "it is connected: {}", error);
                Ok(())
            }
        }
    });
}

#[test]
fn no_answer_to_a_question_for_blocks_is_taken_for_another_block() {
    let server = Answering::start();
    let node = node(&server);
    let blocks = shown_blocks();
    let list = (0..blocks.len(), 0..5_usize, changes()).prop_map(move |(first, count, changes)| {
        let some: Vec<Value> = blocks.iter().skip(first).take(count).cloned().collect();
        let json = match some.as_slice() {
            [one] => one.clone(),
            some => json!({ "block": some }),
        };
        changed(json, &changes)
    });
    let body = prop_oneof![
        6 => list.prop_map(|json| json.to_string().into_bytes()),
        1 => any_value().prop_map(|json| json.to_string().into_bytes()),
        2 => no_json(),
    ];
    let asked = (1..24_i64, 0..4_i64);
    fuzz(
        "block_answers",
        200,
        (wrapped(body), asked),
        |(bytes, (first, more))| {
            server.answer(bytes);
            let agree = |block: &CheckedBlock| database_agrees(block);
            let (head, one, some) = run(async {
                (
                    node.solid_head().await,
                    node.solid_block(first).await,
                    node.blocks(first, first + more).await,
                )
            });
            if let Ok(block) = head {
                agree(&block)?;
            }
            if let Ok(Some(block)) = one {
                prop_assert_eq!(block.number, first);
                agree(&block)?;
            }
            match some {
                Ok(blocks) => {
                    prop_assert!(!blocks.is_empty());
                    for (block, number) in blocks.iter().zip(first..=first + more) {
                        prop_assert_eq!(block.number, number);
                        agree(block)?;
                    }
                }
                Err(error) => prop_assert!(error.to_string().len() < 4000, "{}", error),
            }
            Ok(())
        },
    );
}

fn is_fit_for_a_log(message: &str) -> Result<(), TestCaseError> {
    prop_assert!(message.chars().count() < 500, "{}", message);
    prop_assert!(!message.contains(char::is_control), "{:?}", message);
    Ok(())
}

#[test]
fn words_that_cannot_be_printed_make_no_message_longer() {
    let server = Answering::start();
    let body = "\u{a0}".repeat(300);
    server.answer(answer("200 OK", "", body.as_bytes()));
    let answer = run(node(&server).broadcast(b"sent", &txid(), PATIENCE)).expect("it is connected");
    assert_eq!(answer.code, BroadcastCode::NoAnswer);
    assert!(answer.message.chars().count() <= 300, "{}", answer.message);
}
