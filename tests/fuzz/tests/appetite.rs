//! How much time and memory the readers take for input that is made to cost much: as long as may be, or of the smallest parts, or
//! nested without end. A reader whose work grows with the square of its input would take hours for these; one that keeps far more
//! than it was given would show.
//!
//! One test, for nothing else may take memory beside it.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use sluice_core::address::Address;
use sluice_core::block::{MAX_BLOCK_BYTES, block_id, decode_block};
use sluice_core::envelope::{MAX_TRANSACTION_BYTES, Txid, decode_raw_data, transfer_of};
use sluice_core::request::request_hash;
use sluice_core::signature::{SecretKey, recover};
use sluice_core::units::{Units, format_amount, parse_amount, shortest};
use sluice_runner::block_json::checked_block;
use sluice_runner::config::{WalletRule, duration};
use sluice_runner::database_url::DatabaseUrl;

/// An input of a linear reader takes a second in a build for debugging, on a slow machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// A field of two bytes is a struct of a hundred, once it is read.
const TIMES_THE_INPUT: usize = 200;

/// What a process takes for itself whatever it reads.
const AT_ANY_RATE: usize = 16 << 20;

/// Long enough: the square of it is a number of steps that nothing makes within our patience.
const LONG: usize = 1 << 18;

#[test]
fn no_input_takes_more_time_or_memory_than_its_length_explains() {
    for text in texts() {
        costs_little("an address", &text, |text| drop(Address::parse(text)));
        costs_little("an amount", &text, |text| {
            drop((
                parse_amount(text, 38),
                shortest(text),
                format_amount(text, 6),
            ))
        });
        costs_little("units, a txid, a key", &text, |text| {
            drop((
                text.parse::<Units>(),
                text.parse::<Txid>(),
                SecretKey::from_hex(text),
            ));
        });
        costs_little("a request", &text, |text| {
            let _ = request_hash(&Address::from_body([1; 20]), "1", text, Some(text));
        });
        costs_little("a database", &text, |text| {
            drop(DatabaseUrl::read(text, None, PATIENCE, &|_| None).map(|url| url.to_string()));
        });
        costs_little("a setting", &text, |text| {
            drop((duration(text, "1s", "1h"), text.parse::<WalletRule>()))
        });
        costs_little("a node's JSON", &text, |text| {
            drop(serde_json::from_str(text).map(|json: serde_json::Value| checked_block(&json)));
        });
    }
    for bytes in messages() {
        costs_little("a block", &bytes, |bytes| {
            drop((decode_block(bytes), block_id(bytes)))
        });
        costs_little("a transaction", &bytes, |bytes| {
            drop((decode_raw_data(bytes), transfer_of(bytes)))
        });
        costs_little("a signature", &bytes, |bytes| {
            drop(recover(&Txid::of(bytes), bytes))
        });
    }
}

fn texts() -> Vec<String> {
    let all = |part: &str| part.repeat(LONG / part.len());
    let header = r#""blockID":"00","block_header":{"raw_data":{"number":1,"txTrieRoot":"00","parentHash":"00"}}"#;
    vec![
        all("9"),
        all("0"),
        all("1"),
        all("T"),
        all(" "),
        all("."),
        all("\u{202e}"),
        format!("0x{}", all("41")),
        format!("41{}", all("zz")),
        format!("{}.{}", all("9"), all("9")),
        format!("{}s", all("9")),
        all("["),
        all("{\"a\":"),
        format!("[{}0]", all("0,")),
        format!("[{}0]", all("{},")),
        format!("{{{header},\"transactions\":[{}{{}}]}}", all("{},")),
        format!(
            "{{{header},\"transactions\":[{{\"raw_data_hex\":\"{}\"}}]}}",
            all("0a")
        ),
        format!("\"{}\"", all("\\u0000")),
        format!("1{}", all("0")),
        format!("1e{}", all("9")),
        all("a=b "),
        all("a='b' "),
        format!("a='{}", all("\\'")),
        format!("postgresql://{}", all("a,")),
        format!("postgresql://h/d?{}", all("a=b&")),
        format!("postgresql://{}@h", all("%41")),
        format!("{}=local:env:K", all("T")),
    ]
}

fn messages() -> Vec<Vec<u8>> {
    let all = |part: &[u8], length: usize| part.repeat(length / part.len());
    let within = |number: u8, inner: Vec<u8>| {
        let mut bytes = vec![number << 3 | 2];
        let mut length = inner.len();
        while length >= 0x80 {
            bytes.push((length as u8 & 0x7f) | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        [bytes, inner].concat()
    };
    vec![
        // Transactions of nothing, of an empty raw_data, and too many bytes of them.
        all(&[0x0a, 0x00], MAX_BLOCK_BYTES),
        all(&[0x0a, 0x02, 0x0a, 0x00], LONG),
        all(&[0x0a, 0x02, 0x0a, 0x00], 2 * MAX_BLOCK_BYTES),
        // One with very many signatures, and with very many results.
        within(1, [vec![0x0a, 0x00], all(&[0x12, 0x00], LONG)].concat()),
        within(1, [vec![0x0a, 0x00], all(&[0x2a, 0x00], LONG)].concat()),
        // Headers without end, groups in groups, integers without end.
        all(&[0x12, 0x00], LONG),
        all(&[0x0b], LONG),
        all(&[0x0b, 0x0c], LONG),
        all(&[0x80], LONG),
        all(&[0xff], LONG),
        all(&[0x08, 0x00], LONG),
        // raw_data of empty contracts, of empty auths, of a parameter that is all of it.
        all(&[0x5a, 0x00], MAX_TRANSACTION_BYTES),
        all(&[0x4a, 0x00], MAX_TRANSACTION_BYTES),
        within(
            11,
            within(2, within(2, all(&[0x22, 0x00], MAX_TRANSACTION_BYTES - 64))),
        ),
        within(10, vec![7; MAX_TRANSACTION_BYTES - 8]),
        vec![0; LONG],
    ]
}

fn costs_little<I: AsRef<[u8]>>(what: &str, input: &I, read: impl Fn(&I)) {
    let length = input.as_ref().len();
    let beginning = String::from_utf8_lossy(&input.as_ref()[..length.min(20)]).into_owned();
    // The kernel forgets the most that it has seen of us (`proc(5)`, clear_refs).
    fs::write("/proc/self/clear_refs", "5").expect("a process may ask that of itself");
    let before = memory("VmRSS:");
    let start = Instant::now();
    read(black_box(input));
    let took = start.elapsed();
    let grew = memory("VmHWM:").saturating_sub(before);
    assert!(
        took < PATIENCE,
        "{what} of {length} bytes ({beginning:?}…): {took:?}"
    );
    assert!(
        grew <= AT_ANY_RATE + TIMES_THE_INPUT * length,
        "{what} of {length} bytes ({beginning:?}…): {grew} bytes"
    );
}

/// In bytes.
fn memory(line: &str) -> usize {
    let status =
        fs::read_to_string("/proc/self/status").expect("the kernel says how much a process has");
    let kilobytes: Option<usize> = status.lines().find_map(|found| {
        found
            .strip_prefix(line)?
            .trim()
            .strip_suffix(" kB")?
            .parse()
            .ok()
    });
    kilobytes.expect("the kernel says how much a process has") << 10
}
