//! Bytes that nobody meant: noise, and good bytes with something wrong somewhere.

use proptest::collection::vec;
use proptest::prelude::*;

/// One way to damage bytes; places are taken modulo the length.
#[derive(Debug, Clone)]
pub enum Damage {
    /// A byte becomes another.
    Set(usize, u8),
    /// A bit is flipped.
    Flip(usize, u8),
    /// A byte too many.
    Insert(usize, u8),
    /// A byte too few.
    Remove(usize),
    /// The end is missing.
    Cut(usize),
    /// The end comes twice.
    Repeat(usize),
    /// A length or an integer that is as large as ten bytes can say.
    Huge(usize),
    /// A part comes again elsewhere.
    Move(usize, usize, usize),
}

/// From one damage to some.
pub fn damages() -> BoxedStrategy<Vec<Damage>> {
    let damage = prop_oneof![
        4 => any::<(usize, u8)>().prop_map(|(place, byte)| Damage::Set(place, byte)),
        3 => (any::<usize>(), 0..8_u8).prop_map(|(place, bit)| Damage::Flip(place, bit)),
        2 => any::<(usize, u8)>().prop_map(|(place, byte)| Damage::Insert(place, byte)),
        2 => any::<usize>().prop_map(Damage::Remove),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => any::<usize>().prop_map(Damage::Repeat),
        1 => any::<usize>().prop_map(Damage::Huge),
        1 => any::<(usize, usize, usize)>().prop_map(|(from, length, to)| Damage::Move(from, length, to)),
    ];
    vec(damage, 1..6).boxed()
}

/// The bytes with these damages, one after the other.
#[must_use]
pub fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let length = bytes.len().max(1);
        match damage {
            Damage::Insert(place, byte) => bytes.insert(place % (bytes.len() + 1), *byte),
            _ if bytes.is_empty() => {}
            Damage::Set(place, byte) => bytes[place % length] = *byte,
            Damage::Flip(place, bit) => bytes[place % length] ^= 1 << bit,
            Damage::Remove(place) => drop(bytes.remove(place % length)),
            Damage::Cut(place) => bytes.truncate(place % length),
            Damage::Repeat(place) => bytes.extend_from_within(place % length..),
            Damage::Huge(place) => {
                let at = place % length;
                bytes.splice(at..=at, [[0xff; 9].as_slice(), &[0x01]].concat());
            }
            Damage::Move(from, some, to) => {
                let from = from % length;
                let part = bytes[from..(from + some % 64).min(length)].to_vec();
                let to = to % length;
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

/// Bytes of all lengths up to so many; half of them begin as a protobuf message would.
pub fn noise(most: usize) -> BoxedStrategy<Vec<u8>> {
    let plain = vec(any::<u8>(), 0..most);
    let field = (1..20_u8, vec(any::<u8>(), 0..100)).prop_map(|(number, inner)| {
        let length = u8::try_from(inner.len()).expect("below 128");
        [&[number << 3 | 2, length], inner.as_slice()].concat()
    });
    let like_a_message = vec(field, 1..6).prop_map(|fields| fields.concat());
    prop_oneof![plain, like_a_message].boxed()
}
