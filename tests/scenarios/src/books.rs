//! Both sides' books: what the database calls paid against what the chain holds, whatever happened on the way.

use sluice_core::envelope::tag;
use sluice_mock_node::Tag;
use uuid::Uuid;

use crate::scene::Scene;

impl Scene {
    /// Each withdrawal on file was paid at most once, exactly those that are confirmed were paid, each the sum on file, and the
    /// chain holds no other success out of our wallets.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_books_agree(&self) {
        let tags = self.network.tags();
        let rows = self.database.superuser().query(
            "select operation_id, state = 'confirmed', amount_units::text from sluice.withdrawals",
            &[],
        );
        let mut confirmed = 0;
        for row in rows.expect("withdrawals can be read") {
            let (operation_id, is_confirmed, units): (Uuid, bool, String) =
                (row.get(0), row.get(1), row.get(2));
            let tag = Tag(tag(operation_id.into_bytes())).to_string();
            let on_chain = tags.get(&tag).cloned().unwrap_or_default();
            assert_eq!(
                on_chain.successes,
                u64::from(is_confirmed),
                "{operation_id}: {on_chain:?}"
            );
            if is_confirmed {
                assert_eq!(on_chain.units, units, "{operation_id}");
                confirmed += 1;
            }
        }
        let totals = self.network.totals();
        let transfers: u64 = totals.iter().map(|total| total.transfers).sum();
        let solid: u64 = totals.iter().map(|total| total.solid_transfers).sum();
        assert_eq!((transfers, solid), (confirmed, confirmed), "{totals:?}");
    }
}
