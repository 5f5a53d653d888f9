//! A worker by hand: the runner's calls one at a time, so that a scenario can leave a withdrawal in any state.

use postgres::{Client, Row};
use serde_json::{Value, json};
use sluice_core::address::Address;
use sluice_core::envelope::{Txid, signed_transaction};
use sluice_core::signature::{SecretKey, hmac_sign};
use uuid::Uuid;

use crate::postgres::{Database, Role};
use crate::wallets::Wallets;

const TASK: &str = "operation_id, fencing_token, wallet, txid, raw_data, signature";

/// Something to do for one withdrawal.
#[derive(Debug, Clone)]
pub struct Task {
    /// The withdrawal.
    pub operation_id: Uuid,
    /// Who claims it.
    pub fencing_token: i64,
    /// Who pays.
    pub wallet: Address,
    /// The envelope.
    pub txid: Txid,
    /// Its bytes.
    pub raw_data: Vec<u8>,
    /// Its signature, once it is on file.
    pub signature: Option<Vec<u8>>,
}

/// The worker.
pub struct Worker {
    worker_id: String,
    client: Client,
}

impl Worker {
    /// A worker of this name.
    #[must_use]
    pub fn new(worker_id: &str, database: &Database) -> Self {
        Self {
            worker_id: worker_id.to_owned(),
            client: database.as_role(Role::Runner),
        }
    }

    /// Claims up to so many withdrawals that are due.
    pub fn claim(&mut self, batch_size: i32) -> Vec<Task> {
        let query = format!("select {TASK} from sluice.claim_batch($1, $2)");
        let rows = self
            .client
            .query(&query, &[&self.worker_id, &batch_size])
            .expect("a batch can be claimed");
        rows.iter().map(task_of).collect()
    }

    /// Files these results by this call, whatever they say; the state that each element left its withdrawal in, or none where
    /// it was not the worker's to write.
    pub fn report(&mut self, call: &str, results: &Value) -> Vec<Option<String>> {
        let query = format!("select state::text from sluice.{call}($1, $2)");
        let rows = self
            .client
            .query(&query, &[&self.worker_id, results])
            .expect("results are filed");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Signs as the task's wallet does and files the signatures; returns what is now to be sent.
    pub fn sign(&mut self, tasks: &[Task]) -> Vec<Task> {
        let results: Value = tasks
            .iter()
            .map(|task| {
                json!({
                    "operation_id": task.operation_id,
                    "fencing_token": task.fencing_token,
                    "txid": task.txid.to_string(),
                    "signature": task.signature_in_hex(),
                })
            })
            .collect();
        let query = format!(
            "select {TASK} from sluice.record_signatures($1, $2) where action = 'broadcast'"
        );
        let rows = self
            .client
            .query(&query, &[&self.worker_id, &results])
            .expect("signatures are filed");
        rows.iter().map(task_of).collect()
    }

    /// Files that a node answered so.
    pub fn answer(&mut self, tasks: &[Task], code: &str) {
        let results: Value = tasks
            .iter()
            .map(|task| {
                json!({
                    "operation_id": task.operation_id,
                    "fencing_token": task.fencing_token,
                    "txid": task.txid.to_string(),
                    "node": "by hand",
                    "code": code,
                })
            })
            .collect();
        self.client
            .query(
                "select from sluice.record_broadcasts($1, $2)",
                &[&self.worker_id, &results],
            )
            .expect("answers are filed");
    }
}

impl Task {
    /// The signature that its wallet's signer makes.
    #[must_use]
    pub fn signature_in_hex(&self) -> String {
        hex(&sign(self))
    }

    /// The transaction as a node takes it.
    ///
    /// # Panics
    /// Where no signature is on file.
    #[must_use]
    pub fn transaction(&self) -> Vec<u8> {
        let signature = self
            .signature
            .as_deref()
            .expect("only signed envelopes are sent");
        signed_transaction(&self.raw_data, signature)
    }
}

fn sign(task: &Task) -> [u8; 65] {
    if task.wallet == Wallets::hmac() {
        return hmac_sign(Wallets::HMAC_KEY.as_bytes(), &task.txid);
    }
    SecretKey::from_hex(Wallets::LOCAL_KEY)
        .expect("a published key")
        .sign(&task.txid)
}

fn task_of(row: &Row) -> Task {
    let wallet: String = row.get("wallet");
    Task {
        operation_id: row.get("operation_id"),
        fencing_token: row.get("fencing_token"),
        wallet: Address::parse(&wallet).expect("a wallet is an address"),
        txid: Txid::from_bytes(row.get("txid")).expect("a txid has 32 bytes"),
        raw_data: row.get("raw_data"),
        signature: row.get("signature"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
