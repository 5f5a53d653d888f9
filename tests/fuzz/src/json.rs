//! JSON that nobody meant: values of every kind in every place, and good values with something else somewhere.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::text::any_text;

/// Numbers at the ends of what types hold.
pub fn edge_number() -> BoxedStrategy<Value> {
    let integers = prop::sample::select(&[
        0,
        1,
        -1,
        2,
        99,
        100,
        101,
        i64::MAX,
        i64::MIN,
        i64::MAX - 1,
        i32::MAX as i64,
        i32::MIN as i64,
        i32::MAX as i64 + 1,
        u32::MAX as i64,
        u32::MAX as i64 + 1,
    ]);
    prop_oneof![
        3 => integers.prop_map(|number| json!(number)),
        1 => Just(json!(u64::MAX)),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => prop::sample::select(&[0.5, -0.0, 1e300, 1.0, f64::MAX, f64::MIN_POSITIVE]).prop_map(|number| json!(number)),
    ]
    .boxed()
}

/// Any value, a few levels deep.
pub fn any_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        3 => edge_number(),
        2 => any_text().prop_map(Value::String),
        1 => vec(any::<u8>(), 0..70).prop_map(|bytes| json!(hex::encode(bytes))),
        1 => edge_number().prop_map(|number| json!(number.to_string())),
        1 => prop::sample::select(&["SUCCESS", "REVERT", "true", "T", "{}", "1e5", "UNKNOWN_ENUM_VALUE_contractResult_99"])
            .prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            vec((any_text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
    .boxed()
}

/// One way to change a value; places are taken modulo the number of values in it.
#[derive(Debug, Clone)]
pub enum Change {
    /// Something else in its place.
    Replace(usize, Value),
    /// An object loses a field, a list an element.
    Remove(usize, usize),
    /// A list has an element twice.
    Repeat(usize, usize),
    /// An object has a field more.
    Add(usize, String, Value),
    /// It is inside a list.
    Wrap(usize),
    /// A text changes by a character.
    Touch(usize, Vec<crate::text::Touch>),
}

/// From no change to some.
pub fn changes() -> BoxedStrategy<Vec<Change>> {
    let change = prop_oneof![
        4 => (any::<usize>(), any_value()).prop_map(|(place, value)| Change::Replace(place, value)),
        3 => any::<(usize, usize)>().prop_map(|(place, which)| Change::Remove(place, which)),
        1 => any::<(usize, usize)>().prop_map(|(place, which)| Change::Repeat(place, which)),
        1 => (any::<usize>(), any_text(), any_value()).prop_map(|(place, key, value)| Change::Add(place, key, value)),
        1 => any::<usize>().prop_map(Change::Wrap),
        3 => (any::<usize>(), crate::text::touches()).prop_map(|(place, touches)| Change::Touch(place, touches)),
    ];
    vec(change, 0..4).boxed()
}

/// The value with these changes, one after the other.
#[must_use]
pub fn changed(mut value: Value, changes: &[Change]) -> Value {
    for change in changes {
        let count = count(&value);
        let place = match change {
            Change::Replace(place, _)
            | Change::Remove(place, _)
            | Change::Repeat(place, _)
            | Change::Add(place, _, _)
            | Change::Wrap(place)
            | Change::Touch(place, _) => place % count,
        };
        let mut left = place;
        if let Some(found) = nth(&mut value, &mut left) {
            change_one(found, change);
        }
    }
    value
}

fn change_one(found: &mut Value, change: &Change) {
    match (change, &mut *found) {
        (Change::Replace(_, other), _) => *found = other.clone(),
        (Change::Remove(_, which), Value::Object(fields)) if !fields.is_empty() => {
            let key = fields.keys().nth(which % fields.len()).cloned();
            fields.remove(&key.expect("there is a field"));
        }
        (Change::Remove(_, which), Value::Array(list)) if !list.is_empty() => {
            list.remove(which % list.len());
        }
        (Change::Repeat(_, which), Value::Array(list)) if !list.is_empty() => {
            let again = list[which % list.len()].clone();
            list.push(again);
        }
        (Change::Add(_, key, other), Value::Object(fields)) => {
            fields.insert(key.clone(), other.clone());
        }
        (Change::Wrap(_), _) => *found = Value::Array(vec![found.take()]),
        (Change::Touch(_, touches), Value::String(text)) => {
            *text = crate::text::touched(text, touches);
        }
        (Change::Remove(..) | Change::Repeat(..) | Change::Add(..) | Change::Touch(..), _) => {}
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The value at this place, in the order in which they are written.
fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|inner| nth(inner, left)),
        Value::Object(fields) => fields.values_mut().find_map(|inner| nth(inner, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Bytes that a JSON parser meets and that no printer of ours makes: nesting without end, numbers without end, half of
/// something, bytes that are no text.
pub fn no_json() -> BoxedStrategy<Vec<u8>> {
    let nested = (
        prop::sample::select(&["[", "{\"a\":", "[[],"]),
        1..30_000_usize,
    )
        .prop_map(|(opening, times)| opening.repeat(times).into_bytes());
    let number = (
        prop::sample::select(&["9", "0.0", "1e", "-", "1E+9"]),
        1..2_000_usize,
    )
        .prop_map(|(digits, times)| digits.repeat(times).into_bytes());
    let half = (any_value(), any::<usize>()).prop_map(|(value, cut)| {
        let bytes = value.to_string().into_bytes();
        bytes[..cut % (bytes.len() + 1)].to_vec()
    });
    let no_text = (any_value(), crate::bytes::damages()).prop_map(|(value, damages)| {
        crate::bytes::damaged(value.to_string().into_bytes(), &damages)
    });
    let twice = any_value()
        .prop_map(|value| format!("{{\"block\":{value},\"block\":{value}}}").into_bytes());
    prop_oneof![
        2 => nested,
        1 => number,
        2 => half,
        3 => no_text,
        1 => twice,
        1 => crate::bytes::noise(200),
        1 => Just(b"\xef\xbb\xbf{}".to_vec()),
        1 => Just(b"\"\\ud800\"".to_vec()),
    ]
    .boxed()
}
