//! Envelopes: the exact bytes, plain, with a tag, and with a permission.

use crate::file::{Envelope, array, bytes, vectors};
use serde_json::{Value, json};
use sluice_core::envelope::{
    EnvelopeError, EnvelopeSpec, MAX_TRANSACTION_BYTES, Transfer, Txid, calldata, decode_raw_data,
    ref_block_bytes, ref_block_hash, tag, transfer_of,
};

/// Every form of every envelope: its id, what it is built from, its bytes and txid.
fn forms(envelope: &Envelope) -> Vec<(&str, EnvelopeSpec, Vec<u8>, Txid)> {
    let plain = envelope.inputs.spec();
    let outputs = &envelope.outputs;
    let mut forms = vec![(
        envelope.id.as_str(),
        plain,
        bytes(&outputs.raw_data),
        outputs.txid.parse().expect("a txid"),
    )];
    for tagged in [
        Some(&envelope.with_tag),
        envelope.with_tag_and_permission.as_ref(),
    ] {
        let Some(tagged) = tagged else { continue };
        let spec = EnvelopeSpec {
            tag: Some(tag(tagged.operation_id())),
            permission_id: tagged.permission_id,
            ..plain
        };
        forms.push((
            tagged.id.as_str(),
            spec,
            bytes(&tagged.outputs.raw_data),
            tagged.outputs.txid.parse().expect("a txid"),
        ));
    }
    forms
}

fn all_forms() -> Vec<(&'static str, EnvelopeSpec, Vec<u8>, Txid)> {
    let all: Vec<_> = vectors().envelopes.iter().flat_map(forms).collect();
    assert_eq!(all.len(), 54);
    all
}

#[test]
fn an_envelope_has_exactly_the_bytes_that_other_encoders_give_it() {
    for (id, spec, raw_data, txid) in all_forms() {
        assert_eq!(hex::encode(spec.raw_data()), hex::encode(&raw_data), "{id}");
        assert_eq!(Txid::of(&raw_data), txid, "{id}");
        assert_eq!(Txid::from_bytes(txid.as_bytes()), Ok(txid), "{id}");
    }
}

#[test]
fn the_parts_of_an_envelope_are_those_of_the_vectors() {
    for envelope in &vectors().envelopes {
        let spec = envelope.inputs.spec();
        let expected = &envelope.outputs;
        let bytes = hex::encode(ref_block_bytes(spec.ref_block_number));
        assert_eq!(bytes, expected.ref_block_bytes, "{}", envelope.id);
        let hash = hex::encode(ref_block_hash(&spec.ref_block_id));
        assert_eq!(hash, expected.ref_block_hash, "{}", envelope.id);
        let data = hex::encode(calldata(&spec.to, spec.units));
        assert_eq!(data, expected.calldata, "{}", envelope.id);
        let tagged = &envelope.with_tag;
        let tag = hex::encode(tag(tagged.operation_id()));
        assert_eq!(tag, tagged.tag, "{}", envelope.id);
    }
}

#[test]
fn the_transfer_read_from_an_envelope_is_the_one_it_was_built_from() {
    for (id, spec, raw_data, _) in all_forms() {
        let transfer = Transfer {
            owner: spec.owner,
            contract: spec.contract,
            to: spec.to,
            units: spec.units,
            tag: spec.tag,
        };
        assert_eq!(transfer_of(&raw_data), Some(transfer), "{id}");
    }
}

#[test]
fn every_field_of_an_envelope_can_be_read_by_a_person() {
    for (id, spec, raw_data, _) in all_forms() {
        let tag = spec.tag.map_or(Value::Null, |tag| json!(hex::encode(tag)));
        let expected = json!({
            "ref_block_bytes": hex::encode(ref_block_bytes(spec.ref_block_number)),
            "ref_block_num": 0,
            "ref_block_hash": hex::encode(ref_block_hash(&spec.ref_block_id)),
            "expiration_ms": spec.expiration.0,
            "timestamp_ms": spec.timestamp.0,
            "fee_limit_sun": spec.fee_limit_sun,
            "auths": [],
            "memo": null,
            "scripts": tag,
            "tag": tag,
            "contract_type": "TriggerSmartContract",
            "type_url": "type.googleapis.com/protocol.TriggerSmartContract",
            "provider": null,
            "contract_name": null,
            "permission_id": spec.permission_id,
            "owner": spec.owner.to_string(),
            "contract": spec.contract.to_string(),
            "to": spec.to.to_string(),
            "amount_units": spec.units.to_string(),
            "data": hex::encode(calldata(&spec.to, spec.units)),
            "parameter": null,
            "call_value_sun": 0,
            "call_token_value": 0,
            "token_id": 0,
            "canonical": true,
        });
        assert_eq!(decode_raw_data(&raw_data), Ok(expected), "{id}");
    }
}

#[test]
fn a_txid_reads_64_hex_digits_and_nothing_else() {
    let text = &vectors().envelopes[0].outputs.txid;
    let txid: Txid = text.parse().expect("a txid");
    assert_eq!(txid.to_string(), *text);
    assert_eq!(text.to_uppercase().parse(), Ok(txid));
    assert_eq!(txid.as_bytes(), &array::<32>(text));
    for wrong in [
        "",
        "0x",
        &format!("0x{text}"),
        &text[1..],
        &text[2..],
        &format!("{text}00"),
    ] {
        let parsed = wrong.parse::<Txid>();
        assert_eq!(parsed, Err(EnvelopeError::TxidText), "{wrong:?}");
    }
    let short = Txid::from_bytes(&[0; 31]);
    assert_eq!(short, Err(EnvelopeError::TxidLength { found: 31 }));
}

#[test]
fn bytes_that_are_no_transaction_are_an_error_and_no_transfer() {
    let valid = bytes(&vectors().envelopes[0].outputs.raw_data);
    let truncated = &valid[..valid.len() - 1];
    let endless = vec![0x5a; MAX_TRANSACTION_BYTES + 1];
    for wrong in [
        &[][..],
        b"no protobuf at all",
        truncated,
        &[0xff; 64],
        &endless,
    ] {
        assert!(decode_raw_data(wrong).is_err(), "{wrong:.40?}");
        assert_eq!(transfer_of(wrong), None, "{wrong:.40?}");
    }
    // A second contract entry: nodes take exactly one.
    let doubled = [&valid[..], &valid[..]].concat();
    let two = EnvelopeError::Contracts { found: 2 };
    assert_eq!(decode_raw_data(&doubled), Err(two));
    assert_eq!(transfer_of(&doubled), None);
}
