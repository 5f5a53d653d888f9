//! Somebody with a runner's login, who makes the runner's calls by hand and says whatever is wanted: what a call answers, row by
//! row, is what these scenarios look at.

use postgres::Client;
use serde_json::{Value, json};
use sluice_core::envelope::{Txid, signed_transaction};
use sluice_core::signature::{SecretKey, hmac_sign};
use sluice_scenarios::{Role, Scene, Wallets};
use uuid::Uuid;

/// The caller.
pub struct Caller {
    name: &'static str,
    client: Client,
}

/// A task as it was handed out.
#[derive(Debug, Clone, PartialEq)]
pub struct Handed {
    pub operation_id: Uuid,
    pub token: i64,
    pub state: String,
    pub action: String,
    pub wallet: String,
    pub txid: Txid,
    pub raw_data: Vec<u8>,
    pub signature: Option<Vec<u8>>,
}

impl Handed {
    /// As its wallet signs.
    pub fn good_signature(&self) -> Vec<u8> {
        if self.wallet == Wallets::hmac().to_string() {
            return hmac_sign(Wallets::HMAC_KEY.as_bytes(), &self.txid).to_vec();
        }
        let key = SecretKey::from_hex(Wallets::LOCAL_KEY).expect("a published key");
        key.sign(&self.txid).to_vec()
    }

    /// As a node takes it.
    pub fn transaction(&self) -> Vec<u8> {
        signed_transaction(&self.raw_data, &self.good_signature())
    }
}

impl Caller {
    pub fn new(scene: &Scene, name: &'static str) -> Self {
        Self {
            name,
            client: scene.database.as_role(Role::Runner),
        }
    }

    /// Waits for no lock longer than a moment: what would wait for ever fails soon.
    pub fn impatient(mut self) -> Self {
        self.client
            .batch_execute("set lock_timeout = '500ms'")
            .expect("a setting can be made");
        self
    }

    pub fn claim(&mut self) -> Vec<Handed> {
        let rows = self.client.query(
            "select operation_id, fencing_token, state::text, action::text, wallet, txid, raw_data, signature
               from sluice.claim_batch($1, 100)",
            &[&self.name],
        );
        rows.expect("a batch can be claimed")
            .iter()
            .map(|row| Handed {
                operation_id: row.get(0),
                token: row.get(1),
                state: row.get(2),
                action: row.get(3),
                wallet: row.get(4),
                txid: Txid::from_bytes(row.get(5)).expect("a txid has 32 bytes"),
                raw_data: row.get(6),
                signature: row.get(7),
            })
            .collect()
    }

    /// Claims what must be one task.
    pub fn claim_one(&mut self) -> Handed {
        let handed = self.claim();
        let [task] = handed.as_slice() else {
            panic!("one task: {handed:?}")
        };
        task.clone()
    }

    /// Files this signature; answers the state, and whether the bytes are now to be sent. No state: not the caller's.
    pub fn sign(&mut self, task: &Handed, signature: &[u8]) -> (Option<String>, bool) {
        self.file(&json!([signed(task, signature)])).remove(0)
    }

    /// Signs all of them as their wallets do, in one batch; answers the states.
    pub fn sign_all(&mut self, tasks: &[Handed]) -> Vec<Option<String>> {
        let results: Value = tasks
            .iter()
            .map(|task| signed(task, &task.good_signature()))
            .collect();
        let filed = self.file(&results);
        filed.into_iter().map(|(state, _)| state).collect()
    }

    fn file(&mut self, results: &Value) -> Vec<(Option<String>, bool)> {
        let rows = self.client.query(
            "select state::text, action is not distinct from 'broadcast' from sluice.record_signatures($1, $2)",
            &[&self.name, results],
        );
        let rows = rows.expect("signatures are answered");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Files what a node said; answers the states. No state: not the caller's.
    pub fn answer(&mut self, answers: &[(&Handed, &Txid, &str)]) -> Vec<Option<String>> {
        let results: Value = answers
            .iter()
            .map(|(task, txid, code)| {
                json!({
                    "operation_id": task.operation_id,
                    "fencing_token": task.token,
                    "txid": txid.to_string(),
                    "node": "a node",
                    "code": code,
                })
            })
            .collect();
        let rows = self.client.query(
            "select state::text from sluice.record_broadcasts($1, $2)",
            &[&self.name, &results],
        );
        let rows = rows.expect("answers are answered");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Files what a node said of the task's own transaction.
    pub fn answer_one(&mut self, task: &Handed, code: &str) -> Option<String> {
        self.answer(&[(task, &task.txid, code)]).remove(0)
    }

    /// Claims what is there to be signed, signs it, and has it answered SUCCESS.
    pub fn carry(&mut self) -> Vec<Handed> {
        let handed = self.claim();
        for task in &handed {
            let (state, _) = self.sign(task, &task.good_signature());
            assert_eq!(state.as_deref(), Some("broadcasting"), "{task:?}");
            let state = self.answer_one(task, "SUCCESS");
            assert_eq!(state.as_deref(), Some("broadcast"), "{task:?}");
        }
        handed
    }

    /// Gives it back; answers how many were still the caller's.
    pub fn release(&mut self, task: &Handed) -> i64 {
        let row = self.client.query_one(
            "select sluice.release($1, array[$2::uuid], array[$3::bigint])",
            &[&self.name, &task.operation_id, &task.token],
        );
        row.expect("what is held can be given back").get(0)
    }
}

fn signed(task: &Handed, signature: &[u8]) -> Value {
    json!({
        "operation_id": task.operation_id,
        "fencing_token": task.token,
        "txid": task.txid.to_string(),
        "signature": hex(signature),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
