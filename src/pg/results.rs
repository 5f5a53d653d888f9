//! What a runner reports: an array with an object for each task. Every element is checked before any is used, and an error
//! names the element and the key.

use crate::pg::errors::{Code, OrRaise, raise};
use pgrx::prelude::*;
use serde_json::{Map, Value};
use sluice_core::envelope::Txid;

/// The largest batch that a call takes, claims included.
const MAX_RESULTS: usize = 10_000;

struct Element<'a> {
    position: usize,
    fields: &'a Map<String, Value>,
}

impl Element<'_> {
    fn refuse(&self, key: &str, reason: &str) -> ! {
        raise(
            Code::BadArgument,
            format!("results[{}].{key}: {reason}", self.position),
            "",
        )
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.fields.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => self.refuse(key, "must be a string"),
        }
    }

    fn required(&self, key: &str) -> &str {
        self.text(key)
            .unwrap_or_else(|| self.refuse(key, "is missing"))
    }

    fn ord(&self) -> i32 {
        i32::try_from(self.position).unwrap_or(i32::MAX)
    }

    fn operation_id(&self) -> pgrx::Uuid {
        let text = self.required("operation_id");
        // Of the forms that the parser knows, the two that PostgreSQL's uuid reads as well.
        match uuid::Uuid::parse_str(text) {
            Ok(id) if matches!(text.len(), 32 | 36) => pgrx::Uuid::from_bytes(*id.as_bytes()),
            Ok(_) | Err(_) => self.refuse("operation_id", "is no UUID"),
        }
    }

    fn fencing_token(&self) -> i64 {
        match self.fields.get("fencing_token").and_then(Value::as_i64) {
            Some(token) => token,
            None => self.refuse("fencing_token", "must be an integer"),
        }
    }

    fn txid(&self) -> Vec<u8> {
        let txid = self.required("txid").parse::<Txid>();
        txid.or_raise(
            Code::BadArgument,
            &format!("results[{}].txid", self.position),
        )
        .as_bytes()
        .to_vec()
    }
}

/// Reads the array. PostgreSQL's jsonb nests deeper and counts further than this parser does: what it cannot hold is no report.
fn parsed(results: &str) -> Value {
    serde_json::from_str(results).or_raise(Code::BadArgument, "results")
}

fn elements<'a>(results: &'a Value, keys: &[&str]) -> Vec<Element<'a>> {
    let Value::Array(array) = results else {
        raise(
            Code::BadArgument,
            "results: must be an array",
            "Give an array with an object for each task.",
        );
    };
    if array.len() > MAX_RESULTS {
        raise(
            Code::BadArgument,
            format!("results: more than {MAX_RESULTS} elements"),
            "Report in smaller batches.",
        );
    }
    let mut ids = std::collections::HashSet::new();
    array
        .iter()
        .zip(1..)
        .map(|(value, position)| {
            let Value::Object(fields) = value else {
                raise(
                    Code::BadArgument,
                    format!("results[{position}]: must be an object"),
                    "",
                );
            };
            let element = Element { position, fields };
            if let Some(unknown) = fields.keys().find(|key| !keys.contains(&key.as_str())) {
                let shown: String = unknown.chars().take(40).collect();
                raise(
                    Code::BadArgument,
                    format!("results[{position}]: unknown key \"{shown}\""),
                    &format!("Known are {}.", keys.join(", ")),
                );
            }
            if !ids.insert(*element.operation_id().as_bytes()) {
                element.refuse("operation_id", "stands twice in the batch");
            }
            element
        })
        .collect()
}

/// What signers made.
#[pg_extern(immutable, strict, parallel_safe)]
fn read_signatures(
    results: &str,
) -> TableIterator<
    'static,
    (
        name!(ord, i32),
        name!(operation_id, pgrx::Uuid),
        name!(fencing_token, i64),
        name!(txid, Vec<u8>),
        name!(signature, Vec<u8>),
    ),
> {
    let results = parsed(results);
    let rows: Vec<_> = elements(
        &results,
        &["operation_id", "fencing_token", "txid", "signature"],
    )
    .iter()
    .map(|element| {
        let Ok(signature) = hex::decode(element.required("signature")) else {
            element.refuse("signature", "is no hex");
        };
        (
            element.ord(),
            element.operation_id(),
            element.fencing_token(),
            element.txid(),
            signature,
        )
    })
    .collect();
    TableIterator::new(rows)
}

/// What nodes answered.
#[pg_extern(immutable, strict, parallel_safe)]
fn read_broadcasts(
    results: &str,
) -> TableIterator<
    'static,
    (
        name!(ord, i32),
        name!(operation_id, pgrx::Uuid),
        name!(fencing_token, i64),
        name!(txid, Vec<u8>),
        name!(node, String),
        name!(code, String),
        name!(message, Option<String>),
    ),
> {
    const LONGEST: usize = 500;
    let bounded = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let keys = [
        "operation_id",
        "fencing_token",
        "txid",
        "node",
        "code",
        "message",
    ];
    let results = parsed(results);
    let rows: Vec<_> = elements(&results, &keys)
        .iter()
        .map(|element| {
            (
                element.ord(),
                element.operation_id(),
                element.fencing_token(),
                element.txid(),
                bounded(element.required("node")),
                bounded(element.required("code")),
                element.text("message").map(bounded),
            )
        })
        .collect();
    TableIterator::new(rows)
}
