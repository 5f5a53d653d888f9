//! What the judge reads: plain SELECTs of the tables, the network's own record, and what the clients were told.

use std::collections::{BTreeMap, BTreeSet};

use postgres::Client;
use serde_json::Value;
use sluice_core::envelope::Txid;
use sluice_core::state::State;
use sluice_mock_node::{BlockRecord, MockNet, TagReport, Total, TxReport};
use uuid::Uuid;

use crate::clients::Ledger;

/// A withdrawal's row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its id.
    pub operation_id: Uuid,
    /// Where it stands.
    pub state: State,
    /// Base58.
    pub to_address: String,
    /// In its shortest form.
    pub amount: String,
    /// Base units, decimal.
    pub amount_units: String,
    /// The asset's name.
    pub asset: String,
    /// The sub-account.
    pub account: Option<String>,
    /// Who pays.
    pub wallet: Option<String>,
    /// Envelopes built.
    pub attempt: i32,
    /// Entries in its log.
    pub seq: i32,
    /// The last one's hash.
    pub hash: Vec<u8>,
    /// Whether it is ever due again.
    pub due: bool,
    /// The block that paid it.
    pub block_number: Option<i64>,
    /// Why it failed.
    pub failure_reason: Option<String>,
    /// Whether it goes over the ledger.
    pub internal: bool,
    /// The account that it credits there.
    pub credit_account: Option<String>,
}

/// What is kept of an account's funds for a withdrawal.
#[derive(Debug, Clone)]
pub struct Hold {
    /// For which.
    pub operation_id: Uuid,
    /// Of which account.
    pub account: String,
    /// Base units, decimal.
    pub units: String,
    /// How it ended.
    pub ended: Option<String>,
}

/// An entry of a log.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its place.
    pub seq: i32,
    /// The state left.
    pub from: Option<State>,
    /// The state reached.
    pub to: State,
    /// Microseconds from 2000-01-01 UTC.
    pub at_us: i64,
    /// Who wrote it.
    pub by: Option<String>,
    /// As PostgreSQL prints it.
    pub detail_text: String,
    /// The same, read.
    pub detail: Value,
    /// Its hash.
    pub hash: Vec<u8>,
}

/// An envelope's row.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Its id.
    pub txid: Txid,
    /// Whose.
    pub operation_id: Uuid,
    /// Which of its envelopes.
    pub attempt: i32,
    /// The block that it refers to.
    pub ref_block_number: i64,
    /// Its bytes.
    pub raw_data: Vec<u8>,
    /// What became of it.
    pub fate: Option<String>,
    /// With what result.
    pub receipt: Option<String>,
    /// In which block.
    pub block_number: Option<i64>,
    /// The first block of the coverage that proved it dead.
    pub first_block: Option<i64>,
    /// The last.
    pub last_block: Option<i64>,
}

/// An asset.
#[derive(Debug, Clone)]
pub struct Asset {
    /// The token's contract, base58.
    pub contract: String,
    /// Fractional digits.
    pub decimals: i32,
    /// Followed blocks beyond the including one.
    pub depth: i32,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Materials {
    /// What clients were told.
    pub ledger: Ledger,
    /// What the operator cancelled, or may have.
    pub cancelled: BTreeSet<Uuid>,
    /// Envelopes that may be spent on one withdrawal.
    pub attempts: i32,
    /// The withdrawals.
    pub rows: Vec<Row>,
    /// Their logs.
    pub events: BTreeMap<Uuid, Vec<Event>>,
    /// Their envelopes, in the order they were built.
    pub envelopes: BTreeMap<Uuid, Vec<Envelope>>,
    /// Followed blocks: number, id, time.
    pub followed: Vec<(i64, Vec<u8>, i64)>,
    /// The assets.
    pub assets: BTreeMap<String, Asset>,
    /// What accounts have, in base units, by account and asset.
    pub balances: BTreeMap<(String, String), String>,
    /// What is and was held.
    pub holds: Vec<Hold>,
    /// What the network says of each transaction that anybody sent.
    pub transactions: BTreeMap<Txid, TxReport>,
    /// Of each operation, by its tag.
    pub tags: BTreeMap<String, TagReport>,
    /// Of each payer and token.
    pub totals: Vec<Total>,
    /// The chain, block 0 first.
    pub chain: Vec<BlockRecord>,
    /// Invariants that `sluice.verify()` says do not hold.
    pub verify_says_no: Vec<(String, String)>,
}

impl Materials {
    /// Reads everything.
    #[must_use]
    pub fn read(
        client: &mut Client,
        network: &MockNet,
        ledger: Ledger,
        cancelled: BTreeSet<Uuid>,
    ) -> Self {
        Self {
            ledger,
            cancelled,
            attempts: client
                .query_one("select attempts from sluice.settings", &[])
                .expect("settings can be read")
                .get(0),
            rows: read_rows(client),
            events: read_events(client),
            envelopes: read_envelopes(client),
            followed: client
                .query(
                    "select number, id, timestamp_ms from sluice.blocks order by number",
                    &[],
                )
                .expect("blocks can be read")
                .iter()
                .map(|row| (row.get(0), row.get(1), row.get(2)))
                .collect(),
            balances: read_balances(client),
            holds: read_holds(client),
            assets: client
                .query(
                    "select asset, contract, decimals, depth from sluice.assets",
                    &[],
                )
                .expect("assets can be read")
                .iter()
                .map(|row| {
                    let asset = Asset {
                        contract: row.get(1),
                        decimals: row.get(2),
                        depth: row.get(3),
                    };
                    (row.get(0), asset)
                })
                .collect(),
            transactions: network
                .transactions()
                .into_iter()
                .map(|report| (report.txid, report))
                .collect(),
            tags: network.tags(),
            totals: network.totals(),
            chain: network.blocks(),
            verify_says_no: client
                .query(
                    "select invariant, detail::text from sluice.verify() where not holds",
                    &[],
                )
                .expect("sluice.verify() can be asked")
                .iter()
                .map(|row| (row.get(0), row.get(1)))
                .collect(),
        }
    }

    /// The block of this number, by the network.
    #[must_use]
    pub fn block(&self, number: i64) -> Option<&BlockRecord> {
        usize::try_from(number)
            .ok()
            .and_then(|index| self.chain.get(index))
    }

    /// A withdrawal's envelopes.
    #[must_use]
    pub fn envelopes_of(&self, id: Uuid) -> &[Envelope] {
        self.envelopes.get(&id).map_or(&[], Vec::as_slice)
    }
}

fn state(text: &str) -> State {
    text.parse().expect("the column is of the enum")
}

fn read_rows(client: &mut Client) -> Vec<Row> {
    let rows = client.query(
        "select operation_id, state::text, to_address, amount::text, amount_units::text, asset, account, wallet, attempt, seq,
                hash, due_at is not null, block_number, failure_reason, rail is not distinct from 'internal', credit_account
           from sluice.withdrawals order by operation_id",
        &[],
    );
    rows.expect("withdrawals can be read")
        .iter()
        .map(|row| Row {
            operation_id: row.get(0),
            state: state(row.get(1)),
            to_address: row.get(2),
            amount: row.get(3),
            amount_units: row.get(4),
            asset: row.get(5),
            account: row.get(6),
            wallet: row.get(7),
            attempt: row.get(8),
            seq: row.get(9),
            hash: row.get(10),
            due: row.get(11),
            block_number: row.get(12),
            failure_reason: row.get(13),
            internal: row.get(14),
            credit_account: row.get(15),
        })
        .collect()
}

fn read_balances(client: &mut Client) -> BTreeMap<(String, String), String> {
    let rows = client.query(
        "select account, asset, posted::text from sluice.accounts",
        &[],
    );
    rows.expect("accounts can be read")
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .collect()
}

fn read_holds(client: &mut Client) -> Vec<Hold> {
    let rows = client.query(
        "select operation_id, account, units::text, ended from sluice.holds",
        &[],
    );
    rows.expect("holds can be read")
        .iter()
        .map(|row| Hold {
            operation_id: row.get(0),
            account: row.get(1),
            units: row.get(2),
            ended: row.get(3),
        })
        .collect()
}

fn read_events(client: &mut Client) -> BTreeMap<Uuid, Vec<Event>> {
    let rows = client.query(
        "select operation_id, seq, from_state::text, to_state::text,
                (extract(epoch from at - timestamptz '2000-01-01 00:00:00+00') * 1000000)::bigint,
                worker_id, detail::text, hash
           from sluice.events order by operation_id, seq",
        &[],
    );
    let mut events: BTreeMap<Uuid, Vec<Event>> = BTreeMap::new();
    for row in rows.expect("events can be read") {
        let detail_text: String = row.get(6);
        events.entry(row.get(0)).or_default().push(Event {
            seq: row.get(1),
            from: row.get::<_, Option<&str>>(2).map(state),
            to: state(row.get(3)),
            at_us: row.get(4),
            by: row.get(5),
            detail: serde_json::from_str(&detail_text).expect("the column is jsonb"),
            detail_text,
            hash: row.get(7),
        });
    }
    events
}

fn read_envelopes(client: &mut Client) -> BTreeMap<Uuid, Vec<Envelope>> {
    let rows = client.query(
        "select txid, operation_id, attempt, ref_block_number, raw_data, fate, receipt, block_number, first_block, last_block
           from sluice.envelopes order by operation_id, attempt",
        &[],
    );
    let mut envelopes: BTreeMap<Uuid, Vec<Envelope>> = BTreeMap::new();
    for row in rows.expect("envelopes can be read") {
        let operation_id = row.get(1);
        envelopes.entry(operation_id).or_default().push(Envelope {
            txid: Txid::from_bytes(row.get(0)).expect("a txid has 32 bytes"),
            operation_id,
            attempt: row.get(2),
            ref_block_number: row.get(3),
            raw_data: row.get(4),
            fate: row.get(5),
            receipt: row.get(6),
            block_number: row.get(7),
            first_block: row.get(8),
            last_block: row.get(9),
        });
    }
    envelopes
}
