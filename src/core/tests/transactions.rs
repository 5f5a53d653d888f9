//! Transactions that others built: what is a transfer of a token, what is not, and how each is shown.

use prost::Message;
use serde_json::{Value, json};
use sluice_core::address::Address;
use sluice_core::chain::ChainTime;
use sluice_core::envelope::{EnvelopeError, EnvelopeSpec, decode_raw_data, transfer_of};
use sluice_core::proto::{
    Any, Contract, TYPE_URL_PREFIX, TransactionRaw, TransferContract, TriggerSmartContract,
};
use sluice_core::units::Units;

fn spec() -> EnvelopeSpec {
    EnvelopeSpec {
        owner: Address::from_body([1; 20]),
        contract: Address::from_body([2; 20]),
        to: Address::from_body([3; 20]),
        units: Units::new(1_500_000).expect("an amount"),
        ref_block_number: 92_843_293,
        ref_block_id: [4; 32],
        expiration: ChainTime(1_769_355_809_183),
        timestamp: ChainTime(1_769_269_409_183),
        fee_limit_sun: 100_000_000,
        tag: None,
        permission_id: 0,
    }
}

fn raw() -> TransactionRaw {
    TransactionRaw::decode(&spec().raw_data()[..]).expect("our own bytes")
}

fn entry_of(kind: i32, type_url: &str, message: &impl Message) -> Contract {
    Contract {
        r#type: kind,
        parameter: Some(Any {
            type_url: type_url.to_owned(),
            value: message.encode_to_vec(),
        }),
        ..Contract::default()
    }
}

fn with_entry(entry: Contract) -> Vec<u8> {
    let raw = TransactionRaw {
        contract: vec![entry],
        ..raw()
    };
    raw.encode_to_vec()
}

fn with_call(change: impl FnOnce(&mut TriggerSmartContract)) -> Vec<u8> {
    let [entry] = &raw().contract[..] else {
        panic!("an envelope has one contract entry");
    };
    let value = &entry.parameter.as_ref().expect("a parameter").value;
    let mut call = TriggerSmartContract::decode(&value[..]).expect("our own bytes");
    change(&mut call);
    let url = format!("{TYPE_URL_PREFIX}TriggerSmartContract");
    with_entry(entry_of(31, &url, &call))
}

fn shown(raw_data: &[u8]) -> Value {
    decode_raw_data(raw_data).expect("a transaction")
}

#[test]
fn the_padding_before_a_recipient_is_masked_as_the_token_masks_it() {
    for padding in [
        [0x41; 12],
        [0xff; 12],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x41],
    ] {
        let raw_data = with_call(|call| call.data[4..16].copy_from_slice(&padding));
        let transfer = transfer_of(&raw_data).expect("a transfer");
        assert_eq!(transfer.to, spec().to);
        assert_eq!(shown(&raw_data)["to"], json!(spec().to.to_string()));
    }
}

#[test]
fn bytes_after_the_two_words_are_ignored_and_missing_ones_are_not() {
    let longer = with_call(|call| call.data.extend([7; 100]));
    assert_eq!(
        transfer_of(&longer).map(|transfer| transfer.units),
        Some(spec().units)
    );
    for length in [0, 3, 4, 36, 67] {
        let shorter = with_call(|call| call.data.truncate(length));
        assert_eq!(transfer_of(&shorter), None, "{length} bytes");
        assert_eq!(shown(&shorter)["amount_units"], Value::Null);
    }
}

#[test]
fn another_function_is_no_transfer() {
    // transferFrom(address,address,uint256) and approve(address,uint256).
    for selector in [[0x23, 0xb8, 0x72, 0xdd], [0x09, 0x5e, 0xa7, 0xb3]] {
        let raw_data = with_call(|call| call.data[..4].copy_from_slice(&selector));
        assert_eq!(transfer_of(&raw_data), None);
        let shown = shown(&raw_data);
        assert_eq!(shown["to"], Value::Null);
        assert_eq!(shown["contract"], json!(spec().contract.to_string()));
    }
}

#[test]
fn an_amount_that_no_withdrawal_can_have_is_shown_but_is_no_transfer_of_ours() {
    let with_amount = |word: [u8; 32]| with_call(|call| call.data[36..].copy_from_slice(&word));
    let all = with_amount([0xff; 32]);
    assert_eq!(transfer_of(&all), None);
    assert_eq!(
        shown(&all)["amount_units"],
        json!("115792089237316195423570985008687907853269984665640564039457584007913129639935")
    );
    let mut word = [0; 32];
    word[16..].copy_from_slice(&(Units::MAX.get() + 1).to_be_bytes());
    let just_beyond = with_amount(word);
    assert_eq!(transfer_of(&just_beyond), None);
    let shown_units = shown(&just_beyond)["amount_units"].clone();
    assert_eq!(
        shown_units,
        json!("100000000000000000000000000000000000000")
    );
    word[16..].copy_from_slice(&Units::MAX.get().to_be_bytes());
    let largest = transfer_of(&with_amount(word)).map(|transfer| transfer.units);
    assert_eq!(largest, Some(Units::MAX));
    let nothing = with_amount([0; 32]);
    assert_eq!(
        transfer_of(&nothing).map(|transfer| transfer.units.get()),
        Some(0)
    );
    assert_eq!(shown(&nothing)["amount_units"], json!("0"));
}

#[test]
fn an_owner_or_contract_that_is_no_address_makes_no_transfer_and_shows_in_hex() {
    let short = with_call(|call| call.owner_address.truncate(20));
    assert_eq!(transfer_of(&short), None);
    assert_eq!(
        shown(&short)["owner"],
        json!(format!("41{}", "01".repeat(19)))
    );
    let other = with_call(|call| call.contract_address[0] = 0xa0);
    assert_eq!(transfer_of(&other), None);
    assert_eq!(
        shown(&other)["contract"],
        json!(format!("a0{}", "02".repeat(20)))
    );
    let none = with_call(|call| call.contract_address.clear());
    assert_eq!(shown(&none)["contract"], Value::Null);
}

#[test]
fn a_transfer_of_trx_is_shown_and_is_no_transfer_of_a_token() {
    let transfer = TransferContract {
        owner_address: spec().owner.as_bytes().to_vec(),
        to_address: spec().to.as_bytes().to_vec(),
        amount: 5_000_000,
    };
    let url = format!("{TYPE_URL_PREFIX}TransferContract");
    let raw_data = with_entry(entry_of(1, &url, &transfer));
    assert_eq!(transfer_of(&raw_data), None);
    let shown = shown(&raw_data);
    assert_eq!(shown["contract_type"], json!("TransferContract"));
    assert_eq!(shown["owner"], json!(spec().owner.to_string()));
    assert_eq!(shown["to"], json!(spec().to.to_string()));
    assert_eq!(shown["amount_units"], json!("5000000"));
    assert_eq!(shown["contract"], Value::Null);
    assert_eq!(shown["data"], Value::Null);
    assert_eq!(shown["expiration_ms"], json!(1_769_355_809_183_i64));
}

#[test]
fn a_type_that_disagrees_with_its_number_is_neither() {
    let [entry] = &raw().contract[..] else {
        panic!("an envelope has one contract entry");
    };
    let value = &entry.parameter.as_ref().expect("a parameter").value;
    let call = TriggerSmartContract::decode(&value[..]).expect("our own bytes");
    let trigger = format!("{TYPE_URL_PREFIX}TriggerSmartContract");
    let transfer = format!("{TYPE_URL_PREFIX}TransferContract");
    for (kind, url) in [
        (1, trigger.as_str()),
        (31, &transfer),
        (0, &trigger),
        (31, "protocol.TriggerSmartContract"),
        (31, ""),
    ] {
        let raw_data = with_entry(entry_of(kind, url, &call));
        assert_eq!(transfer_of(&raw_data), None, "{kind} {url}");
        let shown = shown(&raw_data);
        assert_eq!(shown["contract_type"], json!(kind), "{url}");
        assert_eq!(shown["type_url"], json!(url), "{kind}");
        assert_eq!(
            shown["parameter"],
            json!(hex::encode(value)),
            "{kind} {url}"
        );
        assert_eq!(shown["owner"], Value::Null, "{kind} {url}");
    }
    // What stands before the last slash is free.
    let elsewhere = with_entry(entry_of(31, "a/b/protocol.TriggerSmartContract", &call));
    assert!(transfer_of(&elsewhere).is_some());
}

#[test]
fn a_parameter_that_is_not_the_message_it_claims_to_be_is_an_error() {
    let url = format!("{TYPE_URL_PREFIX}TriggerSmartContract");
    let broken = Contract {
        r#type: 31,
        parameter: Some(Any {
            type_url: url,
            value: vec![0xff; 8],
        }),
        ..Contract::default()
    };
    let raw_data = with_entry(broken);
    assert_eq!(transfer_of(&raw_data), None);
    let error = decode_raw_data(&raw_data).expect_err("no such message");
    assert!(matches!(
        error,
        EnvelopeError::Protobuf {
            message: "protocol.TriggerSmartContract",
            ..
        }
    ));
    let without = with_entry(Contract::default());
    assert_eq!(transfer_of(&without), None);
    assert_eq!(shown(&without)["type_url"], Value::Null);
}

#[test]
fn a_memo_and_scripts_of_any_length_are_shown_but_only_16_bytes_are_a_tag() {
    let with_scripts = |length| {
        let raw = TransactionRaw {
            scripts: vec![9; length],
            data: b"memo".to_vec(),
            ..raw()
        };
        raw.encode_to_vec()
    };
    for length in [1, 15, 17, 200] {
        let raw_data = with_scripts(length);
        assert_eq!(transfer_of(&raw_data).expect("a transfer").tag, None);
        let shown = shown(&raw_data);
        assert_eq!(shown["tag"], Value::Null);
        assert_eq!(shown["scripts"], json!("09".repeat(length)));
        assert_eq!(shown["memo"], json!(hex::encode("memo")));
    }
    let tagged = with_scripts(16);
    assert_eq!(transfer_of(&tagged).expect("a transfer").tag, Some([9; 16]));
    assert_eq!(shown(&tagged)["tag"], json!("09".repeat(16)));
}

#[test]
fn bytes_that_a_node_would_write_otherwise_are_said_not_to_be_canonical() {
    let canonical = spec().raw_data();
    assert_eq!(shown(&canonical)["canonical"], json!(true));
    // Field 19, which java-tron does not know; and the fee limit twice.
    let unknown = [&canonical[..], &[0x98, 0x01, 0x01]].concat();
    let doubled = [&canonical[..], &[0x90, 0x01, 0x01]].concat();
    for raw_data in [unknown, doubled] {
        assert_eq!(shown(&raw_data)["canonical"], json!(false));
        assert!(transfer_of(&raw_data).is_some());
    }
}
