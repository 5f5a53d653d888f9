//! Blocks that are none: each part missing, doubled, too long or broken, and what is said of it. And receipts, by number
//! and by name.

use prost::Message;
use sluice_core::block::{
    BlockError, MAX_BLOCK_BYTES, Receipt, ReceiptVerdict, WireError, block_id, decode_block,
    merkle_root,
};
use sluice_core::proto;

fn header_raw() -> proto::BlockHeaderRaw {
    proto::BlockHeaderRaw {
        timestamp: 1_771_194_876_000,
        tx_trie_root: vec![0; 32],
        parent_hash: vec![1; 32],
        number: 79_380_970,
        ..proto::BlockHeaderRaw::default()
    }
}

/// A field of a message inside another, as the wire has it.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encode_length_delimiter(bytes.len(), &mut field).expect("a Vec grows");
    field.extend_from_slice(bytes);
    field
}

fn header(raw: &proto::BlockHeaderRaw) -> Vec<u8> {
    field(2, &field(1, &raw.encode_to_vec()))
}

/// A block around these transactions, with the root that they give.
fn block(transactions: &[Vec<u8>]) -> Vec<u8> {
    let mut block: Vec<u8> = transactions.iter().flat_map(|tx| field(1, tx)).collect();
    block.extend(header(&proto::BlockHeaderRaw {
        tx_trie_root: merkle_root(transactions).to_vec(),
        ..header_raw()
    }));
    block
}

fn transaction(results: &[proto::TransactionResult]) -> Vec<u8> {
    let transaction = proto::Transaction {
        raw_data: b"raw data".to_vec(),
        signature: vec![vec![1; 65], vec![2; 68]],
        ret: results.iter().map(Message::encode_to_vec).collect(),
    };
    transaction.encode_to_vec()
}

fn refusal(bytes: &[u8]) -> BlockError {
    decode_block(bytes).expect_err("no block")
}

#[test]
fn an_empty_block_is_a_header_with_32_zero_bytes_for_a_root() {
    let decoded = decode_block(&header(&header_raw())).expect("a block");
    assert!(decoded.root_holds);
    assert_eq!(decoded.transactions, []);
    assert_eq!(decoded.number, 79_380_970);
    assert_eq!(decoded.parent_id, [1; 32]);
    assert_eq!(merkle_root::<Vec<u8>>(&[]), [0; 32]);
}

#[test]
fn nothing_and_text_and_json_are_no_block() {
    let missing = BlockError::Part {
        part: "block header",
        found: 0,
    };
    assert_eq!(refusal(b""), missing);
    for text in [
        &b"{}"[..],
        b"[]",
        b"{\"Error\":\"class java.lang.NullPointerException : null\"}",
    ] {
        refusal(text);
    }
    assert_eq!(
        missing.to_string(),
        "the block has 0 block header: it must have one"
    );
}

#[test]
fn a_part_that_comes_twice_or_not_at_all_is_refused() {
    let once = header(&header_raw());
    let twice = [&once[..], &once].concat();
    let part = |part, found| BlockError::Part { part, found };
    assert_eq!(refusal(&twice), part("block header", 2));
    assert_eq!(refusal(&field(2, b"")), part("block header raw_data", 0));
    let raw = field(1, &header_raw().encode_to_vec());
    let two_raws = field(2, &[&raw[..], &raw].concat());
    assert_eq!(refusal(&two_raws), part("block header raw_data", 2));
}

#[test]
fn a_transaction_has_one_raw_data() {
    let raw_data = |index, found| BlockError::RawData { index, found };
    let valid = transaction(&[]);
    let without = field(2, &[1; 65]);
    assert_eq!(refusal(&block(&[valid.clone(), without])), raw_data(1, 0));
    assert_eq!(refusal(&block(&[vec![]])), raw_data(0, 0));
    let two = [field(1, b"one"), field(1, b"two")].concat();
    assert_eq!(refusal(&block(&[valid, two])), raw_data(1, 2));
}

#[test]
fn a_transaction_is_never_as_long_as_two_hashes_of_the_tree() {
    let long = |length: usize| field(1, &vec![7; length - 2]);
    assert_eq!(long(64).len(), 64);
    assert_eq!(
        refusal(&block(&[long(63), long(65), long(64)])),
        BlockError::Folded { index: 2 }
    );
    assert!(decode_block(&block(&[long(63), long(65)])).is_ok());
}

#[test]
fn numbers_and_times_are_not_negative_and_digests_have_32_bytes() {
    let with = |change: fn(&mut proto::BlockHeaderRaw)| {
        let mut raw = header_raw();
        change(&mut raw);
        (refusal(&header(&raw)), block_id(&raw.encode_to_vec()))
    };
    let (error, id) = with(|raw| raw.number = -1);
    assert_eq!(error, BlockError::Number(-1));
    assert_eq!(id, Err(BlockError::Number(-1)));
    let (error, id) = with(|raw| raw.timestamp = -1);
    assert_eq!(error, BlockError::Time(-1));
    assert!(id.is_ok(), "an id needs no time");
    let digest = |field, found| BlockError::Digest { field, found };
    let (error, _) = with(|raw| raw.tx_trie_root = vec![0; 31]);
    assert_eq!(error, digest("txTrieRoot", 31));
    let (error, _) = with(|raw| raw.tx_trie_root = vec![]);
    assert_eq!(error, digest("txTrieRoot", 0));
    let (error, _) = with(|raw| raw.parent_hash = vec![0; 33]);
    assert_eq!(error, digest("parentHash", 33));
    assert!(matches!(block_id(b"\xff"), Err(BlockError::Header(_))));
}

#[test]
fn a_block_longer_than_any_is_not_looked_into() {
    let found = MAX_BLOCK_BYTES + 1;
    assert_eq!(refusal(&vec![0; found]), BlockError::TooLong { found });
    // One byte less is looked into, and found to be something else.
    let at_the_limit = refusal(&vec![0; found - 1]);
    assert!(
        matches!(at_the_limit, BlockError::Wire { .. }),
        "{at_the_limit}"
    );
}

#[test]
fn broken_bytes_are_named_by_their_place() {
    let wire = |part, source| BlockError::Wire { part, source };
    let valid = header(&header_raw());
    let truncated = &valid[..valid.len() - 1];
    let cut = WireError::Truncated { number: 2 };
    assert_eq!(refusal(truncated), wire("block", cut));
    // A length that claims 2^63 bytes.
    let endless = [&[0x0a][..], &[0xff; 9], &[0x01]].concat();
    let beyond = WireError::Truncated { number: 1 };
    assert_eq!(refusal(&endless), wire("block", beyond));
    // A varint of more than ten bytes.
    let at = |at| WireError::Varint { at };
    assert_eq!(refusal(&[0xff; 20]), wire("block", at(0)));
    assert_eq!(refusal(&[0x08]), wire("block", at(1)));
    // Field number 0 does not exist.
    assert_eq!(refusal(&[0x02, 0x00]), wire("block", at(0)));
    // The end of a group that was not begun, and types that do not exist.
    for wire_type in [4, 6, 7] {
        let number = 1;
        let key = u8::try_from(number << 3 | wire_type).expect("below 16");
        let source = WireError::WireType { number, wire_type };
        assert_eq!(refusal(&[key]), wire("block", source));
    }
    // A group that does not end, and one that ends as another.
    let open = WireError::Truncated { number: 11 };
    assert_eq!(refusal(&[0x5b, 0x08, 0x01]), wire("block", open));
    let crossed = WireError::WireType {
        number: 2,
        wire_type: 4,
    };
    assert_eq!(refusal(&[0x5b, 0x14]), wire("block", crossed));
    let inside = block(&[transaction(&[]), b"\x0a\xff".to_vec()]);
    let BlockError::Transaction { index: 1, source } = refusal(&inside) else {
        panic!("transaction 1 is the broken one");
    };
    assert_eq!(source, at(1));
    let bad_header = field(2, b"\x0a\x05\x00");
    let cut = WireError::Truncated { number: 1 };
    assert_eq!(refusal(&bad_header), wire("block header", cut));
}

#[test]
fn unknown_fields_are_passed_over_but_stay_in_the_hashes() {
    // Field 15 as an integer, field 14 as bytes, 13 and 12 as eight and four bytes, 11 as a group with another in it.
    let unknown = [
        &[0x5b, 0x08, 0x01, 0x13, 0x14, 0x5c][..],
        &[0x78, 0x05, 0x72, 1, 9, 0x69],
        &[0; 8],
        &[0x65],
        &[0; 4],
    ]
    .concat();
    let plain = transaction(&[]);
    let longer = [&plain[..], &unknown].concat();
    let whole = [block(std::slice::from_ref(&longer)), unknown].concat();
    let decoded = decode_block(&whole).expect("a block");
    assert!(decoded.root_holds);
    assert_eq!(decoded.transactions[0].raw_data, b"raw data");
    assert_ne!(decoded.root, merkle_root(&[plain]));
}

#[test]
fn signatures_are_kept_as_they_are_in_the_block() {
    let decoded = decode_block(&block(&[transaction(&[])])).expect("a block");
    assert_eq!(
        decoded.transactions[0].signatures,
        [vec![1; 65], vec![2; 68]]
    );
}

#[test]
fn the_receipt_is_the_contract_ret_of_the_first_result() {
    let receipt = |results: &[proto::TransactionResult]| {
        let decoded = decode_block(&block(&[transaction(results)])).expect("a block");
        decoded.transactions[0].receipt
    };
    let result = |contract_ret| proto::TransactionResult {
        fee: 345_000,
        contract_ret,
        asset_issue_id: "1000001".to_owned(),
        ..proto::TransactionResult::default()
    };
    assert_eq!(receipt(&[]), Receipt::Absent);
    let empty = proto::TransactionResult::default();
    assert_eq!(receipt(&[empty]), Receipt::Default);
    assert_eq!(receipt(&[result(1)]), Receipt::Success);
    assert_eq!(receipt(&[result(2), result(1)]), Receipt::Revert);
    assert_eq!(receipt(&[result(77)]), Receipt::Unlisted(77));
    assert_eq!(receipt(&[result(-1)]), Receipt::Unlisted(-1));
    assert_eq!(receipt(&[result(i32::MIN)]), Receipt::Unlisted(i32::MIN));
}

#[test]
fn a_receipt_is_known_by_its_number_and_by_its_name() {
    let names = [
        "DEFAULT",
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
    for (code, name) in (0..).zip(names) {
        let receipt = Receipt::from_code(code);
        assert_eq!(receipt.name(), name);
        assert_eq!(receipt.code(), Some(code), "{name}");
        assert_eq!(Receipt::from_name(name), Some(receipt), "{name}");
    }
    for code in [16, 77, -1, i32::MAX, i32::MIN] {
        let receipt = Receipt::from_code(code);
        assert_eq!(receipt, Receipt::Unlisted(code));
        assert_eq!(receipt.code(), Some(code));
        assert_eq!(Receipt::from_name(&receipt.name()), Some(receipt));
        let of_the_json = format!("UNKNOWN_ENUM_VALUE_contractResult_{code}");
        assert_eq!(Receipt::from_name(&of_the_json), Some(receipt));
    }
    assert_eq!(Receipt::Absent.code(), None);
    assert_eq!(Receipt::from_name("ABSENT"), Some(Receipt::Absent));
    for wrong in [
        "", "success", "SUCCESS ", "CODE_", "CODE_1", "CODE_+77", "CODE_077", "FAILED",
    ] {
        assert_eq!(Receipt::from_name(wrong), None, "{wrong:?}");
    }
}

#[test]
fn only_success_succeeds_and_what_says_nothing_decides_nothing() {
    for code in -3..100 {
        let expected = match code {
            1 => ReceiptVerdict::Success,
            10 | 11 => ReceiptVerdict::Transient,
            2..=9 | 12 | 14 | 15 => ReceiptVerdict::Failed,
            _ => ReceiptVerdict::Undecided,
        };
        assert_eq!(Receipt::from_code(code).verdict(), expected, "{code}");
    }
    assert_eq!(Receipt::Absent.verdict(), ReceiptVerdict::Undecided);
}
