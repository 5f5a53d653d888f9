//! A value of any type, as SQL writes it: what a caller would give, what is nearly that, and the ends of what the type holds.

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bytes::{damaged, damages};
use crate::chain::any_bytes;
use crate::json::{any_value, changed, changes};
use crate::session::Draws;
use crate::sql::catalog::{Catalog, Column, Kind};
use crate::text::{any_text, nearly_an_address};

/// What stands in the database, so that calls are about something.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Withdrawals with their present fencing tokens and envelopes.
    pub held: Vec<Held>,
    /// Wallets' and others' addresses.
    pub addresses: Vec<String>,
    /// Blocks of the chain, as protobuf.
    pub blocks: Vec<Vec<u8>>,
}

/// A withdrawal, as a runner holds it.
#[derive(Debug, Clone)]
pub struct Held {
    /// Its id.
    pub operation_id: Uuid,
    /// Its fencing token.
    pub fencing_token: i64,
    /// The newest envelope.
    pub envelope: Option<Built>,
}

/// An envelope.
#[derive(Debug, Clone, Default)]
pub struct Built {
    /// Its id.
    pub txid: Vec<u8>,
    /// Its bytes.
    pub raw_data: Vec<u8>,
    /// Its signature, once it has one.
    pub signature: Option<Vec<u8>>,
}

/// Writes values.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    /// Whether all of them are what somebody would give who means it: else few calls came past their first argument.
    pub polite: bool,
    /// What types are made of.
    pub catalog: &'a Catalog,
    /// What stands.
    pub known: &'a Known,
}

/// Half a megabyte, or far less.
fn length(draws: &mut Draws) -> usize {
    *draws.pick(&[1, 40, 41, 200, 201, 1000, 1001, 65_536, 500_000])
}

/// A text as SQL writes it; no text of SQL's has a NUL.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}

fn hex_literal(bytes: &[u8]) -> String {
    format!("'\\x{}'::bytea", hex::encode(bytes))
}

impl Values<'_> {
    /// A value for this argument or column.
    ///
    /// # Panics
    /// Where nobody has said what values of its type are: say it here.
    pub fn of(&self, draws: &mut Draws, column: &Column) -> String {
        self.nested(draws, &column.name, column.of, 0)
    }

    fn nested(&self, draws: &mut Draws, name: &str, of: u32, depth: usize) -> String {
        let of_type = self.catalog.type_of(of);
        if self.is_rude(draws, 14) {
            return match of_type.name.as_str() {
                "internal" | "cstring" => "null".to_owned(),
                other => format!("null::{other}"),
            };
        }
        match &of_type.kind {
            Kind::Enum(_) if self.is_rude(draws, 20) => {
                format!("{}::{}", quoted(&draws.next(&any_text())), of_type.name)
            }
            Kind::Enum(labels) => format!("'{}'::{}", draws.pick(labels), of_type.name),
            Kind::Array(element) => self.array(draws, name, *element, &of_type.name, depth),
            Kind::Composite(columns) if depth > 2 || columns.is_empty() => {
                format!("null::{}", of_type.name)
            }
            Kind::Composite(columns) => {
                let fields: Vec<String> = columns
                    .iter()
                    .map(|column| self.nested(draws, &column.name, column.of, depth + 1))
                    .collect();
                format!("row({})::{}", fields.join(", "), of_type.name)
            }
            Kind::Base => self.base(draws, name, &of_type.name),
        }
    }

    /// Elements, none, nulls among them, counted from elsewhere, in two dimensions, or very many.
    fn array(
        &self,
        draws: &mut Draws,
        name: &str,
        element: u32,
        array: &str,
        depth: usize,
    ) -> String {
        let one = |draws: &mut Draws| self.nested(draws, name, element, depth + 1);
        let shape = if self.polite { 9 } else { draws.below(10) };
        match shape {
            0 => format!("'{{}}'::{array}"),
            1 => format!("array_fill({}, array[2], array[-5])::{array}", one(draws)),
            2 => format!("array[[{}], [{}]]::{array}", one(draws), one(draws)),
            3 => {
                let count = draws.pick(&[1, 1001, 3000]).to_string();
                format!("array_fill({}, array[{count}])::{array}", one(draws))
            }
            _ => {
                let count = draws.below(5) + 1;
                let all: Vec<String> = (0..count).map(|_| one(draws)).collect();
                format!("array[{}]::{array}", all.join(", "))
            }
        }
    }

    fn base(&self, draws: &mut Draws, name: &str, of: &str) -> String {
        match of {
            "text" | "character varying" | "name" | "cstring" | "character" | "\"char\"" => {
                self.text(draws, name, of)
            }
            "sluice.amount" => format!("{}::text::sluice.amount", quoted(&self.amount(draws))),
            "uuid" if draws.one_in(4) || self.known.held.is_empty() => format!(
                "'{}'::uuid",
                Uuid::from_bytes(draws.next(&any::<[u8; 16]>()))
            ),
            "uuid" => format!("'{}'::uuid", self.held(draws).operation_id),
            "smallint" => format!(
                "({})::smallint",
                draws.pick(&[0, 1, -1, i16::MAX, i16::MIN])
            ),
            "integer" => format!(
                "({})::integer",
                self.number(draws, name, i32::MIN.into(), i32::MAX.into())
            ),
            "bigint" => format!("({})::bigint", self.number(draws, name, i64::MIN, i64::MAX)),
            "oid" => format!("{}::oid", draws.below(100_000)),
            "numeric" => self.numeric(draws),
            "double precision" | "real" => format!(
                "{}::{of}",
                draws.pick(&["1.5", "'nan'", "'-infinity'", "1e30", "0"])
            ),
            "boolean" => (*draws.pick(&["true", "false"])).to_owned(),
            "bytea" => self.bytea(draws, name),
            "jsonb" => self.jsonb(draws, name),
            "timestamp with time zone" => self.timestamp(draws),
            "interval" => self.interval(draws),
            // No SQL text makes one.
            "internal" => "null".to_owned(),
            other => panic!(
                "no values are known of the type {other}: write some in sluice-fuzz's sql/values.rs"
            ),
        }
    }

    /// Whether it is one of so many times that manners fail.
    fn is_rude(&self, draws: &mut Draws, times: usize) -> bool {
        !self.polite && draws.one_in(times)
    }

    fn held(&self, draws: &mut Draws) -> Held {
        match self.known.held.as_slice() {
            [] => Held {
                operation_id: Uuid::from_bytes(draws.next(&any::<[u8; 16]>())),
                fencing_token: 1,
                envelope: None,
            },
            held => draws.pick(held).clone(),
        }
    }

    fn amount(&self, draws: &mut Draws) -> String {
        let kind = if self.polite { 3 } else { draws.below(4) };
        match kind {
            0 => draws.next(&any_text()),
            1 => draws.next(&"[0-9]{1,45}(\\.[0-9]{1,45})?"),
            _ => (*draws.pick(&[
                "1",
                "12.50",
                "0.000001",
                "0",
                "0.0000001",
                "1000000.000000",
                "00.10",
                "99999999999999999999999999999999999999",
            ]))
            .to_owned(),
        }
    }

    fn text(&self, draws: &mut Draws, name: &str, of: &str) -> String {
        if self.is_rude(draws, 40) {
            let characters = ["x", "9", "0", ".", "é", "{", "[", "\\", "T"];
            let character = quoted(characters[draws.below(characters.len())]);
            return format!("repeat({character}, {})::{of}", length(draws));
        }
        let text = if self.is_rude(draws, 4) {
            draws.next(&prop_oneof![any_text(), nearly_an_address()])
        } else {
            self.text_named(draws, name)
        };
        // Longer than a name of PostgreSQL's is cut by it.
        format!("{}::{of}", quoted(&text))
    }

    /// What somebody would write there.
    fn text_named(&self, draws: &mut Draws, name: &str) -> String {
        let one_of = |draws: &mut Draws, of: &[&str]| (*draws.pick(of)).to_owned();
        match name {
            "amount" | "minimum" | "maximum" | "units" => self.amount(draws),
            "asset" => one_of(
                draws,
                &["USDT-TRC20", "USDT-TRC20", "USDT-TRC20", "XYZ", ""],
            ),
            "to_address" | "address" | "owner" | "contract" | "wallet" | "signer_address"
            | "wallets" | "owners" | "destination" => match self.known.addresses.as_slice() {
                [] => "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".to_owned(),
                known if draws.one_in(2) => draws.pick(known).clone(),
                _ => draws.next(&crate::text::address()).to_string(),
            },
            "signer" => one_of(draws, &["secp256k1", "hmac", "HMAC", ""]),
            "worker_id" | "step_by" | "leased_by" => {
                one_of(draws, &["fuzzer", "by hand", "another", "", " "])
            }
            "name" => one_of(
                draws,
                &[
                    "time_to_live",
                    "freshness",
                    "margin_blocks",
                    "lease",
                    "resend",
                    "attempts",
                    "observers",
                    "only_row",
                    "ctid",
                    "changed_by",
                ],
            ),
            "value" => one_of(
                draws,
                &[
                    "300 s",
                    "1",
                    "90 seconds",
                    "2",
                    "-1",
                    "infinity",
                    "1 year",
                    "P1D",
                    "1e9",
                    "nan",
                    "30 s; drop table x",
                ],
            ),
            "from_state" | "to_state" | "state" => one_of(
                draws,
                &[
                    "requested",
                    "signing",
                    "broadcast",
                    "confirmed",
                    "failed",
                    "none",
                ],
            ),
            "path" => one_of(
                draws,
                &[
                    "{}",
                    "{signing}",
                    "{signed,broadcasting}",
                    "{requested,NULL}",
                    "{{signing}}",
                    "signing",
                    "{",
                ],
            ),
            "receipt" | "code" => one_of(
                draws,
                &[
                    "SUCCESS",
                    "REVERT",
                    "OUT_OF_ENERGY",
                    "ABSENT",
                    "CODE_77",
                    "SIGERROR",
                    "NO_ANSWER",
                    "DUP_TRANSACTION_ERROR",
                ],
            ),
            "fate" => one_of(draws, &["included", "dead", "in flight", ""]),
            "file" => one_of(
                draws,
                &["file_signatures", "file_broadcasts", "now", "no_such"],
            ),
            "table_name" => one_of(draws, &["envelopes", "payments", "withdrawals"]),
            "results" => self.results(draws).to_string(),
            _ => one_of(
                draws,
                &[
                    "",
                    "a",
                    "a reason",
                    "node",
                    "T",
                    "NULL",
                    "2026-01-01 00:00:00+00",
                    "1 second",
                ],
            ),
        }
    }

    fn number(&self, draws: &mut Draws, name: &str, least: i64, most: i64) -> i64 {
        let held = self.held(draws);
        let likely: &[i64] = match name {
            "fencing_token" | "fencing_tokens" => &[held.fencing_token, held.fencing_token, 0],
            "decimals" => &[6, 0, 38, 255, 256],
            "batch_size" => &[1, 5, 100, 10_000, 10_001, 0],
            "permission_id" => &[0, 2, 9, 1],
            "live_window" => &[6000, 1, 1_000_000],
            "depth" => &[0, 1, 19, 100_000],
            "fee_limit_sun" => &[100_000_000, 1, 15_000_000_000],
            "expiration_ms" | "timestamp_ms" | "ms" => &[1_767_225_600_000, 1_767_225_900_000, 0],
            "number" | "block_number" | "ref_block_number" => &[589_075_190, 589_075_200, 12, 0],
            _ => &[0, 1, 2, 3],
        };
        let ends = [0, 1, -1, least, most, most - 1, least + 1, 99, 1001];
        let kind = if self.polite { 2 } else { draws.below(3) };
        match kind {
            0 => *draws.pick(&ends),
            1 => draws.next(&any::<i64>()).clamp(least, most),
            _ => (*draws.pick(likely)).clamp(least, most),
        }
    }

    fn numeric(&self, draws: &mut Draws) -> String {
        let text = *draws.pick(&[
            "0",
            "1",
            "1500000",
            "-1",
            "0.5",
            "1.500000",
            "99999999999999999999999999999999999999",
            "100000000000000000000000000000000000000",
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "1e100",
            "1e1000",
            "1e-1000",
            "(1::numeric / 3)",
            "power(10::numeric, 5000)",
            "0.00000000000000000000000000000000000000000000000001",
        ]);
        format!("{text}::numeric")
    }

    fn timestamp(&self, draws: &mut Draws) -> String {
        let text = *draws.pick(&[
            "2026-01-01 00:00:00+00",
            "2026-01-01 00:10:00.123456+00",
            "infinity",
            "-infinity",
            "4713-01-01 BC",
            "294276-12-31 23:59:59.999999+00",
            "1969-12-31 23:59:59+00",
        ]);
        format!("'{text}'::timestamptz")
    }

    fn interval(&self, draws: &mut Draws) -> String {
        let text = *draws.pick(&[
            "30 seconds",
            "1 second",
            "1 hour",
            "0",
            "-1 second",
            "178000000 years",
            "-178000000 years",
            "1 mon -30 days",
            "2147483647 days",
            "0.000001 s",
            "-2147483648 months",
            "2562047788:00:54.775807",
        ]);
        format!("'{text}'::interval")
    }

    fn bytea(&self, draws: &mut Draws, name: &str) -> String {
        if self.is_rude(draws, 40) {
            let byte = draws.below(256);
            return format!("decode(repeat('{byte:02x}', {}), 'hex')", length(draws));
        }
        let held = self.held(draws);
        let Built {
            txid,
            raw_data,
            signature,
        } = held.envelope.unwrap_or_default();
        let likely = match name {
            "txid" | "txids" => txid,
            "signature" => signature.unwrap_or_else(|| vec![0; 65]),
            "block" | "blocks" if !self.known.blocks.is_empty() => {
                draws.pick(&self.known.blocks).clone()
            }
            "raw_data" | "transaction" => raw_data,
            "genesis_id" | "ref_block_id" | "hash" | "previous" | "id" | "parent_id" | "root" => {
                draws.next(&any::<[u8; 32]>()).to_vec()
            }
            "address" | "bytes" => draws.next(&crate::text::address()).as_bytes().to_vec(),
            _ => txid,
        };
        let kind = if self.polite { 4 } else { draws.below(5) };
        let bytes = match kind {
            0 => draws.next(&any_bytes()),
            1 => {
                let how = draws.next(&damages());
                damaged(likely, &how)
            }
            _ => likely,
        };
        hex_literal(&bytes)
    }

    fn jsonb(&self, draws: &mut Draws, name: &str) -> String {
        if self.is_rude(draws, 25) {
            return (*draws.pick(&[
                "(repeat('[', 3000) || repeat(']', 3000))::jsonb",
                "(repeat('{\"a\":', 200) || '1' || repeat('}', 200))::jsonb",
                "(select jsonb_agg(n) from generate_series(1, 10001) n)",
                "('[' || repeat('9', 3000) || ']')::jsonb",
                "'[1e400]'::jsonb",
                "'\"\\ud83d\\udc69\"'::jsonb",
                "to_jsonb(repeat('x', 500000))",
                "'null'::jsonb",
            ]))
            .to_owned();
        }
        let likely = match name {
            "results" => self.results(draws),
            "payload" => self.payload(draws),
            "sets" => json!({ "last_error": "e", "due_in": "5 s" }),
            "assets" => {
                json!([{ "asset": "A", "contract": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "decimals": 6, "minimum": "1", "maximum": "9", "version": 1 }])
            }
            _ => json!({ "txid": "00", "why": [1, "two"] }),
        };
        let kind = if self.polite { 3 } else { draws.below(4) };
        let value = match kind {
            0 => draws.next(&any_value()),
            1 => {
                let how = draws.next(&changes());
                changed(likely, &how)
            }
            _ => likely,
        };
        format!("{}::jsonb", quoted(&value.to_string()))
    }

    /// What a runner reports: of withdrawals that it holds, or not.
    fn results(&self, draws: &mut Draws) -> Value {
        let signatures = draws.one_in(2);
        let count = draws.below(4);
        (0..count)
            .map(|_| {
                let held = self.held(draws);
                let Built {
                    txid, signature, ..
                } = held.envelope.unwrap_or_else(|| Built {
                    txid: vec![7; 32],
                    ..Built::default()
                });
                let mut element = json!({
                    "operation_id": held.operation_id,
                    "fencing_token": held.fencing_token - i64::from(draws.one_in(5)),
                    "txid": hex::encode(txid),
                });
                if signatures {
                    let signature =
                        signature.unwrap_or_else(|| vec![u8::from(draws.one_in(2)); 65]);
                    element["signature"] = json!(hex::encode(signature));
                } else {
                    element["node"] = json!("node");
                    element["code"] = json!(*draws.pick(&[
                        "SUCCESS",
                        "SIGERROR",
                        "NO_ANSWER",
                        "DUP_TRANSACTION_ERROR",
                        "NOVELTY"
                    ]));
                    element["message"] = json!(draws.next(&any_text()));
                }
                element
            })
            .collect()
    }

    fn payload(&self, draws: &mut Draws) -> Value {
        json!({
            "operation_id": self.held(draws).operation_id,
            "to_address": self.text_named(draws, "to_address"),
            "amount": self.amount(draws),
            "asset": "USDT-TRC20",
        })
    }
}
