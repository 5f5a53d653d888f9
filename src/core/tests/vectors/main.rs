//! The public test vectors, all of them. They were made by other encoders than ours (`tests/vectors/README.md` says which),
//! so what passes here is what the rest of TRON writes. A module per section; here, that none was emptied.

mod addresses;
mod amounts;
mod blocks;
mod envelopes;
mod file;
mod requests;
mod signatures;

use file::vectors;

#[test]
fn every_section_has_as_many_entries_as_it_was_published_with() {
    let vectors = vectors();
    assert_eq!(vectors.addresses.keys.len(), 12);
    assert_eq!(vectors.addresses.strings.len(), 55);
    assert_eq!(vectors.envelopes.len(), 24);
    let permissions = vectors
        .envelopes
        .iter()
        .filter(|envelope| envelope.with_tag_and_permission.is_some())
        .count();
    assert_eq!(permissions, 6);
    assert_eq!(vectors.signatures.len(), 8);
    assert_eq!(vectors.amounts.len(), 101);
    assert_eq!(vectors.request_hashes.len(), 12);
    assert_eq!(vectors.merkle.len(), 6);
    assert_eq!(vectors.blocks.len(), 6);
}
