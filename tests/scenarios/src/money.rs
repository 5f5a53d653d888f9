//! What every scenario asks first: where the money went, as the network's own log and chain tell it.

use std::collections::HashMap;

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
        self.assert_each_paid_once(operation_ids);
        let sent = self.network.transactions();
        assert_eq!(sent.len(), operation_ids.len(), "{sent:#?}");
    }

    /// This withdrawal was paid by one transaction, the only one of it that there ever was, and is confirmed.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_paid_once(&self, operation_id: Uuid) {
        self.assert_each_paid_once(&[operation_id]);
    }

    /// The same of each of these.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_each_paid_once(&self, operation_ids: &[Uuid]) {
        let mut by_tag: HashMap<Tag, Vec<TxReport>> = HashMap::new();
        for transaction in self.network.transactions() {
            if let Some(tag) = transaction.tag {
                by_tag.entry(tag).or_default().push(transaction);
            }
        }
        for operation_id in operation_ids {
            let transactions = by_tag.remove(&tag_of(*operation_id)).unwrap_or_default();
            let [paid] = transactions.as_slice() else {
                panic!("{operation_id}: one transaction: {transactions:#?}")
            };
            assert_eq!(
                (paid.accepts, paid.result.as_deref(), paid.solid),
                (1, Some("SUCCESS"), true),
                "{operation_id}: {paid:#?}"
            );
        }
        let rows = self.database.superuser().query(
            "select w.operation_id, w.state::text, (select count(*) from sluice.envelopes e where e.operation_id = w.operation_id)
               from sluice.withdrawals w where w.operation_id = any ($1)",
            &[&operation_ids],
        );
        let rows = rows.expect("withdrawals can be read");
        assert_eq!(rows.len(), operation_ids.len(), "each is on file");
        for row in rows {
            let (operation_id, state, built): (Uuid, String, i64) =
                (row.get(0), row.get(1), row.get(2));
            assert_eq!(state, "confirmed", "{operation_id}");
            assert_eq!(built, 1, "{operation_id}: envelopes");
        }
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
