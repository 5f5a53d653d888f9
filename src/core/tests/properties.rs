//! What holds for all inputs, tried on many: round trips. That no bytes from outside can bring the process down is tried in
//! tests/fuzz.

use proptest::prelude::*;
use prost::Message;
use sluice_core::address::Address;
use sluice_core::block::{decode_block, merkle_root};
use sluice_core::chain::ChainTime;
use sluice_core::envelope::{
    EnvelopeSpec, Transfer, Txid, decode_raw_data, signed_transaction, transfer_of,
};
use sluice_core::proto;
use sluice_core::signature::{SecretKey, SignerKind, recover, verify};
use sluice_core::units::{AmountError, Units, format_amount, parse_amount, shortest};

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::from_body)
}

fn units() -> impl Strategy<Value = Units> {
    let any_size = (0..=Units::MAX.get()).prop_map(|units| units >> (units % 127));
    any_size.prop_map(|units| Units::new(units).expect("at most the largest"))
}

prop_compose! {
    fn spec()(
        (owner, contract, to, units) in (address(), address(), address(), units()),
        (ref_block_number, ref_block_id) in any::<(i64, [u8; 32])>(),
        (expiration, timestamp, fee_limit_sun) in any::<(i64, i64, i64)>(),
        (tag, permission_id) in any::<(Option<[u8; 16]>, i32)>(),
    ) -> EnvelopeSpec {
        EnvelopeSpec {
            owner,
            contract,
            to,
            units,
            ref_block_number,
            ref_block_id,
            expiration: ChainTime(expiration),
            timestamp: ChainTime(timestamp),
            fee_limit_sun,
            tag,
            permission_id,
        }
    }
}

prop_compose! {
    fn transaction()(
        spec in spec(),
        signatures in prop::collection::vec(prop::collection::vec(any::<u8>(), 60..70), 0..3),
        codes in prop::collection::vec(-2..20, 0..3),
    ) -> Vec<u8> {
        let results = codes.into_iter().map(|contract_ret| proto::TransactionResult {
            contract_ret,
            ..proto::TransactionResult::default()
        });
        let transaction = proto::Transaction {
            raw_data: spec.raw_data(),
            signature: signatures,
            ret: results.map(|result| result.encode_to_vec()).collect(),
        };
        transaction.encode_to_vec()
    }
}

fn block_around(transactions: Vec<Vec<u8>>) -> proto::Block {
    let header = proto::BlockHeaderRaw {
        timestamp: 1_771_194_876_000,
        tx_trie_root: merkle_root(&transactions).to_vec(),
        parent_hash: vec![1; 32],
        number: 79_380_970,
        witness_address: vec![0x41; 21],
        version: 32,
        ..proto::BlockHeaderRaw::default()
    };
    let header = proto::BlockHeader {
        raw_data: header.encode_to_vec(),
        witness_signature: vec![2; 65],
    };
    proto::Block {
        transactions,
        block_header: header.encode_to_vec(),
    }
}

fn transactions() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(transaction(), 0..6)
}

/// One way to damage bytes; places are taken modulo the length.
#[derive(Debug, Clone)]
enum Damage {
    Set(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    Cut(usize),
    Repeat(usize),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let damage = prop_oneof![
        4 => any::<(usize, u8)>().prop_map(|(place, byte)| Damage::Set(place, byte)),
        2 => any::<(usize, u8)>().prop_map(|(place, byte)| Damage::Insert(place, byte)),
        2 => any::<usize>().prop_map(Damage::Remove),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => any::<usize>().prop_map(Damage::Repeat),
    ];
    prop::collection::vec(damage, 1..6)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let length = bytes.len().max(1);
        match damage {
            Damage::Insert(place, byte) => bytes.insert(place % (bytes.len() + 1), *byte),
            _ if bytes.is_empty() => {}
            Damage::Set(place, byte) => bytes[place % length] = *byte,
            Damage::Remove(place) => drop(bytes.remove(place % length)),
            Damage::Cut(place) => bytes.truncate(place % length),
            Damage::Repeat(place) => bytes.extend_from_within(place % length..),
        }
    }
    bytes
}

proptest! {
    #[test]
    fn an_address_reads_back_from_each_form_it_is_written_in(address in address()) {
        let text = address.to_string();
        prop_assert_eq!(text.len(), 34);
        prop_assert!(text.starts_with('T'));
        prop_assert_eq!(Address::parse(&text), Ok(address));
        let digits = hex::encode(address.as_bytes());
        prop_assert_eq!(Address::parse(&digits), Ok(address));
        prop_assert_eq!(Address::parse(&format!("0x{}", digits.to_uppercase())), Ok(address));
        prop_assert_eq!(Address::parse(&format!("\t{text}\r\n")), Ok(address));
        prop_assert!(Address::parse(&digits[2..]).is_err());
    }

    #[test]
    fn an_address_with_one_character_changed_is_refused(
        address in address(),
        place in 0..34_usize,
        other in "[1-9A-HJ-NP-Za-km-z]",
    ) {
        let mut text = address.to_string();
        prop_assume!(text[place..=place] != other);
        text.replace_range(place..=place, &other);
        prop_assert!(Address::parse(&text).is_err(), "{}", text);
    }

    #[test]
    fn base_units_of_any_length_read_back_from_their_text(
        digits in "[1-9][0-9]{0,120}|0",
        decimals in 0..=255_u32,
    ) {
        let text = format_amount(&digits, decimals).expect("digits");
        prop_assert_eq!(parse_amount(&text, decimals), Ok(digits));
        prop_assert_eq!(shortest(&text), Ok(text));
    }

    #[test]
    fn an_amount_keeps_its_value_in_its_shortest_form(
        text in "[0-9]{1,60}(\\.[0-9]{1,40})?",
        decimals in 0..=60_u32,
    ) {
        let short = shortest(&text).expect("an amount");
        match parse_amount(&text, decimals) {
            Ok(units) => {
                prop_assert_eq!(format_amount(&units, decimals), Ok(short.clone()));
                prop_assert_eq!(parse_amount(&short, decimals), Ok(units));
            }
            Err(AmountError::FractionDigits { found, allowed }) => {
                prop_assert!(found > usize::try_from(allowed).expect("at most 60"));
            }
            Err(other) => prop_assert!(false, "{} is an amount: {}", text, other),
        }
    }

    #[test]
    fn an_envelope_reads_back_as_the_transfer_it_was_built_for(spec in spec()) {
        let transfer = Transfer {
            owner: spec.owner,
            contract: spec.contract,
            to: spec.to,
            units: spec.units,
            tag: spec.tag,
        };
        prop_assert_eq!(transfer_of(&spec.raw_data()), Some(transfer));
    }

    #[test]
    fn an_envelopes_bytes_are_those_that_any_encoder_gives_its_fields(spec in spec()) {
        let raw_data = spec.raw_data();
        let raw = proto::TransactionRaw::decode(&raw_data[..]).expect("our own bytes");
        prop_assert_eq!(raw.encode_to_vec(), &raw_data[..]);
        prop_assert_eq!(raw.expiration, spec.expiration.0);
        prop_assert_eq!(raw.fee_limit, spec.fee_limit_sun);
        prop_assert_eq!(raw.contract[0].permission_id, spec.permission_id);
        let value = &raw.contract[0].parameter.as_ref().expect("a parameter").value;
        let call = proto::TriggerSmartContract::decode(&value[..]).expect("our own bytes");
        prop_assert_eq!(&call.encode_to_vec(), value);
        let shown = decode_raw_data(&raw_data).expect("our own bytes");
        prop_assert_eq!(&shown["canonical"], true);
    }

    #[test]
    fn an_envelope_that_differs_in_any_one_thing_is_another_transaction(spec in spec(), other in spec()) {
        let txid = Txid::of(&spec.raw_data());
        let mut ref_block_id = spec.ref_block_id;
        ref_block_id[8..16].copy_from_slice(&other.ref_block_id[8..16]);
        for changed in [
            EnvelopeSpec { owner: other.owner, ..spec },
            EnvelopeSpec { contract: other.contract, ..spec },
            EnvelopeSpec { to: other.to, ..spec },
            EnvelopeSpec { units: other.units, ..spec },
            EnvelopeSpec { ref_block_number: spec.ref_block_number ^ 1, ..spec },
            EnvelopeSpec { ref_block_id, ..spec },
            EnvelopeSpec { expiration: other.expiration, ..spec },
            EnvelopeSpec { timestamp: other.timestamp, ..spec },
            EnvelopeSpec { fee_limit_sun: other.fee_limit_sun, ..spec },
            EnvelopeSpec { tag: other.tag, ..spec },
            EnvelopeSpec { permission_id: other.permission_id, ..spec },
        ] {
            prop_assert_eq!(Txid::of(&changed.raw_data()) == txid, changed == spec);
        }
    }

    #[test]
    fn whoever_signed_is_recovered(key in any::<[u8; 32]>(), spec in spec()) {
        let Ok(key) = SecretKey::from_bytes(&key) else {
            return Ok(());
        };
        let txid = Txid::of(&spec.raw_data());
        let signature = key.sign(&txid);
        prop_assert_eq!(recover(&txid, &signature), Ok(key.address()));
        prop_assert_eq!(key.sign(&txid), signature, "the same bytes each time");
        let signed = signed_transaction(&spec.raw_data(), &signature);
        let read = proto::Transaction::decode(&signed[..]).expect("our own bytes");
        prop_assert_eq!(Txid::of(&read.raw_data), txid);
        prop_assert_eq!(&read.signature[..], &[signature.to_vec()]);
    }

    #[test]
    fn a_signature_with_one_bit_changed_is_not_the_wallets(
        key in any::<[u8; 32]>(),
        data in any::<[u8; 8]>(),
        bit in 0..512_usize,
    ) {
        let Ok(key) = SecretKey::from_bytes(&key) else {
            return Ok(());
        };
        let txid = Txid::of(&data);
        let mut signature = key.sign(&txid);
        signature[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(verify(SignerKind::Secp256k1, &key.address(), &txid, &signature).is_err());
    }

    #[test]
    fn random_65_bytes_are_refused_or_name_somebody(
        rs in any::<[u8; 32]>(),
        s in any::<[u8; 32]>(),
        v in any::<u8>(),
    ) {
        let signature = [&rs[..], &s, &[v]].concat();
        let txid = Txid::of(&rs);
        let recovered = recover(&txid, &signature);
        if let Ok(address) = recovered {
            prop_assert!(matches!(v, 0..=7 | 27..=34));
            prop_assert_eq!(verify(SignerKind::Secp256k1, &address, &txid, &signature), Ok(()));
        }
    }

    #[test]
    fn a_block_reads_back_as_what_it_was_built_from(transactions in transactions()) {
        let bytes = block_around(transactions.clone()).encode_to_vec();
        let block = decode_block(&bytes).expect("a block");
        prop_assert!(block.root_holds);
        prop_assert_eq!(block.transactions.len(), transactions.len());
        for (read, built) in block.transactions.iter().zip(&transactions) {
            let built = proto::Transaction::decode(&built[..]).expect("our own bytes");
            prop_assert_eq!(&read.raw_data, &built.raw_data);
            prop_assert_eq!(&read.signatures, &built.signature);
            let code = built.ret.first().map(|first| {
                proto::TransactionResult::decode(&first[..]).expect("our own bytes").contract_ret
            });
            prop_assert_eq!(read.receipt.code(), code);
        }
    }

    #[test]
    fn a_block_whose_transactions_were_touched_does_not_hold_its_root(
        transactions in prop::collection::vec(transaction(), 1..6),
        which in any::<usize>(),
        damages in damages(),
    ) {
        let mut block = block_around(transactions);
        let which = which % block.transactions.len();
        let before = block.transactions[which].clone();
        block.transactions[which] = damaged(before.clone(), &damages);
        prop_assume!(block.transactions[which] != before);
        if let Ok(read) = decode_block(&block.encode_to_vec()) {
            prop_assert!(!read.root_holds);
        }
    }
}
