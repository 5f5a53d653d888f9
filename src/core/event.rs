//! The hash chain over a withdrawal's log. Each entry's hash covers the one before it and every byte of what the entry
//! says, so that nothing can be altered, dropped or slipped in without the chain ceasing to end where the row stands.

use crate::state::State;
use sha2::{Digest, Sha256};

/// One entry of a withdrawal's log, as hashed.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The withdrawal: the 16 bytes of its UUID.
    pub operation_id: [u8; 16],
    /// Position in the withdrawal's log, from 1.
    pub seq: i32,
    /// The state left; none for the first entry.
    pub from: Option<State>,
    /// The state reached.
    pub to: State,
    /// When, in microseconds as PostgreSQL counts them (from 2000-01-01 UTC).
    pub at_us: i64,
    /// Who wrote it.
    pub by: Option<&'a str>,
    /// The facts filed with it, as PostgreSQL prints the jsonb.
    pub detail: &'a str,
}

impl Entry<'_> {
    /// The entry's hash, given the hash of the entry before it (none for the first). Every part is preceded by its length, so
    /// that no two different entries hash the same bytes.
    #[must_use]
    pub fn hash(&self, previous: Option<&[u8]>) -> [u8; 32] {
        let mut hasher = Sha256::new();
        let mut part = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => {
                hasher.update((bytes.len() as u64).to_be_bytes());
                hasher.update(bytes);
            }
            None => hasher.update(u64::MAX.to_be_bytes()),
        };
        part(previous);
        part(Some(&self.operation_id));
        part(Some(&self.seq.to_be_bytes()));
        part(self.from.map(|state| state.name().as_bytes()));
        part(Some(self.to.name().as_bytes()));
        part(Some(&self.at_us.to_be_bytes()));
        part(self.by.map(str::as_bytes));
        part(Some(self.detail.as_bytes()));
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Entry = Entry {
        operation_id: [7; 16],
        seq: 1,
        from: None,
        to: State::Requested,
        at_us: 42,
        by: Some("w"),
        detail: "{}",
    };

    #[test]
    fn every_part_of_an_entry_and_the_one_before_it_changes_its_hash() {
        let base = FIRST.hash(None);
        let others = [
            FIRST.hash(Some(&[0; 32])),
            Entry {
                operation_id: [8; 16],
                ..FIRST
            }
            .hash(None),
            Entry { seq: 2, ..FIRST }.hash(None),
            Entry {
                from: Some(State::Requested),
                ..FIRST
            }
            .hash(None),
            Entry {
                to: State::Validated,
                ..FIRST
            }
            .hash(None),
            Entry { at_us: 43, ..FIRST }.hash(None),
            Entry { by: None, ..FIRST }.hash(None),
            Entry {
                by: Some(""),
                ..FIRST
            }
            .hash(None),
            Entry {
                by: Some("w{"),
                detail: "}",
                ..FIRST
            }
            .hash(None),
        ];
        for (n, other) in others.iter().enumerate() {
            assert_ne!(*other, base, "variant {n}");
        }
    }
}
