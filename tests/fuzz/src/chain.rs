//! TRON's messages with anything in their fields: what a chain may hold, whether or not one of our wallets ever asked for it.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;
use sluice_core::block::merkle_root;
use sluice_core::chain::ChainTime;
use sluice_core::envelope::EnvelopeSpec;
use sluice_core::proto;
use sluice_core::units::Units;

use crate::text::address;

/// An envelope of ours, in all that it may be.
pub fn envelope() -> impl Strategy<Value = EnvelopeSpec> {
    (
        (address(), address(), address()),
        (0..=Units::MAX.get()).prop_map(|units| units >> (units % 127)),
        any::<(i64, [u8; 32], i64, i64, i64)>(),
        any::<(Option<[u8; 16]>, i32)>(),
    )
        .prop_map(
            |((owner, contract, to), units, numbers, (tag, permission_id))| {
                let (ref_block_number, ref_block_id, expiration, timestamp, fee_limit_sun) =
                    numbers;
                EnvelopeSpec {
                    owner,
                    contract,
                    to,
                    units: Units::new(units).expect("at most the largest"),
                    ref_block_number,
                    ref_block_id,
                    expiration: ChainTime(expiration),
                    timestamp: ChainTime(timestamp),
                    fee_limit_sun,
                    tag,
                    permission_id,
                }
            },
        )
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => Just(vec![]), 2 => vec(any::<u8>(), 0..40)]
}

fn some_number() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(0), 1 => any::<i64>(), 1 => 0..2_000_000_000_000_i64, 1 => Just(i64::MIN)]
}

/// The bytes of a call or a transfer, or others in their place.
fn parameter() -> BoxedStrategy<(i32, proto::Any)> {
    let party = prop_oneof![4 => address().prop_map(|address| address.as_bytes().to_vec()), 1 => some_bytes()];
    let calldata = prop_oneof![
        3 => (address(), any::<u128>(), vec(any::<u8>(), 0..8)).prop_map(|(to, amount, rest)| {
            let mut data = vec![0xa9, 0x05, 0x9c, 0xbb];
            data.extend([0; 12]);
            data.extend(to.body());
            data.extend([0; 16]);
            data.extend(amount.to_be_bytes());
            data.extend(rest);
            data
        }),
        1 => vec(any::<u8>(), 0..80),
    ];
    let call = (
        party.clone(),
        party.clone(),
        calldata,
        some_number(),
        some_number(),
        some_number(),
    )
        .prop_map(
            |(owner_address, contract_address, data, call_value, call_token_value, token_id)| {
                proto::TriggerSmartContract {
                    owner_address,
                    contract_address,
                    call_value,
                    data,
                    call_token_value,
                    token_id,
                }
            },
        );
    let transfer =
        (party.clone(), party, some_number()).prop_map(|(owner_address, to_address, amount)| {
            proto::TransferContract {
                owner_address,
                to_address,
                amount,
            }
        });
    let named = |kind: i32, name: &str, value: Vec<u8>| {
        let type_url = format!("{}{name}", proto::TYPE_URL_PREFIX);
        (kind, proto::Any { type_url, value })
    };
    prop_oneof![
        5 => call.prop_map(move |call| named(31, "TriggerSmartContract", call.encode_to_vec())),
        2 => transfer.prop_map(move |transfer| named(1, "TransferContract", transfer.encode_to_vec())),
        1 => (any::<i32>(), crate::text::any_text(), crate::bytes::noise(120))
            .prop_map(|(kind, type_url, value)| (kind, proto::Any { type_url, value })),
    ]
    .boxed()
}

/// `protocol.Transaction.raw` with anything in its fields.
pub fn raw_data() -> BoxedStrategy<Vec<u8>> {
    let contract = (parameter(), some_bytes(), some_bytes(), any::<i32>())
        .prop_map(
            |((kind, parameter), provider, contract_name, permission_id)| proto::Contract {
                r#type: kind,
                parameter: Some(parameter),
                provider,
                contract_name,
                permission_id,
            },
        )
        .boxed();
    let others = (
        (some_bytes(), some_number(), some_bytes(), some_number()),
        (
            vec(some_bytes(), 0..2),
            some_bytes(),
            some_bytes(),
            some_number(),
            some_number(),
        ),
        prop_oneof![6 => vec(contract.clone(), 1..2), 1 => vec(contract, 0..4)],
    );
    let foreign = others.prop_map(|(first, second, contract)| {
        let (ref_block_bytes, ref_block_num, ref_block_hash, expiration) = first;
        let (auths, data, scripts, timestamp, fee_limit) = second;
        let raw = proto::TransactionRaw {
            ref_block_bytes,
            ref_block_num,
            ref_block_hash,
            expiration,
            auths,
            data,
            contract,
            scripts,
            timestamp,
            fee_limit,
        };
        raw.encode_to_vec()
    });
    prop_oneof![1 => envelope().prop_map(|spec| spec.raw_data()), 2 => foreign].boxed()
}

/// `protocol.Transaction` as a block holds it.
pub fn transaction() -> BoxedStrategy<Vec<u8>> {
    let signatures = vec(vec(any::<u8>(), 60..70), 0..3);
    let codes = vec(-2..20, 0..3);
    (raw_data(), signatures, codes)
        .prop_map(|(raw_data, signature, codes)| {
            let results = codes
                .into_iter()
                .map(|contract_ret| proto::TransactionResult {
                    contract_ret,
                    ..proto::TransactionResult::default()
                });
            let transaction = proto::Transaction {
                raw_data,
                signature,
                ret: results.map(|result| result.encode_to_vec()).collect(),
            };
            transaction.encode_to_vec()
        })
        .boxed()
}

/// A block around some transactions: its root is theirs.
pub fn block() -> BoxedStrategy<proto::Block> {
    let header = (
        0..i64::MAX,
        0..i64::MAX,
        any::<[u8; 32]>(),
        some_bytes(),
        any::<i32>(),
    );
    (vec(transaction(), 0..6), header, some_bytes())
        .prop_map(|(transactions, header, witness_signature)| {
            let (number, timestamp, parent, witness_address, version) = header;
            let raw = proto::BlockHeaderRaw {
                timestamp,
                tx_trie_root: merkle_root(&transactions).to_vec(),
                parent_hash: parent.to_vec(),
                number,
                witness_address,
                version,
                ..proto::BlockHeaderRaw::default()
            };
            let header = proto::BlockHeader {
                raw_data: raw.encode_to_vec(),
                witness_signature,
            };
            proto::Block {
                transactions,
                block_header: header.encode_to_vec(),
            }
        })
        .boxed()
}

/// What protobuf there is, good and damaged.
pub fn any_bytes() -> BoxedStrategy<Vec<u8>> {
    let good = prop_oneof![
        block().prop_map(|block| block.encode_to_vec()),
        block().prop_map(|block| block.block_header),
        transaction(),
        raw_data(),
    ]
    .boxed();
    prop_oneof![
        2 => good.clone(),
        4 => (good, crate::bytes::damages()).prop_map(|(bytes, damages)| crate::bytes::damaged(bytes, &damages)),
        1 => crate::bytes::noise(400),
    ]
    .boxed()
}
