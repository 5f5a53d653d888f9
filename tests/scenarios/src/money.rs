//! What every scenario asks first: where the money went, as the network's own log and chain tell it.

use sluice_core::envelope::tag;
use sluice_mock_node::{LogFilter, Tag, TxReport};
use uuid::Uuid;

use crate::scene::Scene;

impl Scene {
    /// The transactions of this withdrawal that somebody sent.
    #[must_use]
    pub fn transactions_of(&self, operation_id: Uuid) -> Vec<TxReport> {
        let tag = tag_of(operation_id);
        let mut transactions = self.network.transactions();
        transactions.retain(|transaction| transaction.tag == Some(tag));
        transactions
    }

    /// How often somebody sent bytes of this withdrawal, whatever the nodes made of them.
    #[must_use]
    pub fn sends_of(&self, operation_id: Uuid) -> usize {
        let filter = LogFilter {
            tag: Some(tag_of(operation_id)),
            ..LogFilter::default()
        };
        self.network.sends(&filter).len()
    }

    /// Each of these withdrawals was paid by one transaction, the only one of it that there ever was, and each is confirmed;
    /// nothing else was ever sent by anybody.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_each_paid_once_and_nothing_else(&self, operation_ids: &[Uuid]) {
        for operation_id in operation_ids {
            self.assert_paid_once(*operation_id);
        }
        let sent = self.network.transactions();
        assert_eq!(sent.len(), operation_ids.len(), "{sent:#?}");
    }

    /// This withdrawal was paid by one transaction, the only one of it that there ever was, and is confirmed.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_paid_once(&self, operation_id: Uuid) {
        let transactions = self.transactions_of(operation_id);
        let [paid] = transactions.as_slice() else {
            panic!("{operation_id}: one transaction: {transactions:#?}")
        };
        assert_eq!(
            (paid.accepts, paid.result.as_deref(), paid.solid),
            (1, Some("SUCCESS"), true),
            "{operation_id}: {paid:#?}"
        );
        assert_eq!(self.state(operation_id), "confirmed", "{operation_id}");
        let row = self.database.superuser().query_one(
            "select count(*) from sluice.envelopes where operation_id = $1",
            &[&operation_id],
        );
        let built: i64 = row.expect("envelopes can be counted").get(0);
        assert_eq!(built, 1, "{operation_id}: envelopes");
    }

    /// Whatever happened: each withdrawal on file was paid at most once, exactly those that are confirmed were paid, each the sum
    /// on file, and the chain holds no other success out of our wallets.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_chain_and_database_agree(&self) {
        let tags = self.network.tags();
        let rows = self.database.superuser().query(
            "select operation_id, state = 'confirmed', amount_units::text from sluice.withdrawals",
            &[],
        );
        let mut confirmed = 0;
        for row in rows.expect("withdrawals can be read") {
            let (operation_id, is_confirmed, units): (Uuid, bool, String) =
                (row.get(0), row.get(1), row.get(2));
            let on_chain = tags
                .get(&tag_of(operation_id).to_string())
                .cloned()
                .unwrap_or_default();
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

    /// Lets time pass until all of these withdrawals are confirmed. Somebody must work.
    pub fn let_time_pass_until_confirmed(&self, operation_ids: &[Uuid]) {
        self.let_time_pass_until("every withdrawal is confirmed", || {
            let row = self.database.superuser().query_one(
                "select count(*) from sluice.withdrawals where operation_id = any ($1) and state = 'confirmed'",
                &[&operation_ids],
            );
            let confirmed: i64 = row.expect("withdrawals can be counted").get(0);
            (confirmed == operation_ids.len() as i64).then_some(())
        });
    }
}

fn tag_of(operation_id: Uuid) -> Tag {
    Tag(tag(operation_id.into_bytes()))
}
