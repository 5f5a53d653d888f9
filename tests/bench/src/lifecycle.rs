//! Whole lives through sluice's own functions, by a stand-in for the runner in this process: intake, claim, signatures, answers, blocks. In
//! batches as the runner works, and a withdrawal at a time, the way most such code is written.

use std::thread;
use std::time::Duration;

use postgres::Client;
use serde_json::{Value, json};
use sluice_scenarios::Database;
use uuid::Uuid;

use crate::Options;
use crate::chain::{Chain, GENESIS};
use crate::report::Report;
use crate::server::{Server, rate, settle, timed};

/// A wallet that signs as a mock.
const WALLET: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";

/// Somebody's address.
const THEIRS: &str = "TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ";

/// Of the per-row way few are enough: it is slow.
const PER_ROW_SHARE: usize = 20;

/// Measures in batches, by one session and two at once, and a withdrawal at a time.
pub fn measure(server: &Server, options: &Options, report: &mut Report) {
    for sessions in [1, 2] {
        let best = (0..options.runs)
            .map(|_| {
                run(
                    &server.database(),
                    options.withdrawals,
                    options.batch,
                    sessions,
                )
            })
            .min()
            .expect("there is a run");
        report.figure(
            &format!("in the database, {sessions} session(s)"),
            rate(options.withdrawals * sessions, best),
            "lifecycles/s",
        );
    }
    let few = (options.withdrawals / PER_ROW_SHARE).max(1);
    let took = run(&server.database(), few, 1, 1);
    report.figure(
        "in the database, a row at a time",
        rate(few, took),
        "lifecycles/s",
    );
}

/// How long so many take a session.
fn run(database: &Database, withdrawals: usize, batch: usize, sessions: usize) -> Duration {
    let mut operator = database.superuser();
    let (chain, first) = Chain::begin();
    operator
        .execute(
            "select sluice.add_wallet($1, 'hmac', live_window => 1000000)",
            &[&WALLET],
        )
        .expect("a wallet can be added");
    operator
        .execute(
            "select sluice.follow_from($1, $2)",
            &[&first, &GENESIS.to_vec()],
        )
        .expect("a chain can be followed");
    settle(&mut operator);
    let chain = std::sync::Mutex::new(chain);
    let (_, took) = timed(|| {
        thread::scope(|scope| {
            for session in 0..sessions {
                let (chain, database) = (&chain, database);
                scope.spawn(move || {
                    StandIn::new(database, chain, session).live(withdrawals, batch);
                });
            }
        });
    });
    let ended: i64 = operator
        .query_one(
            "select count(*) from sluice.withdrawals where state = 'confirmed'",
            &[],
        )
        .expect("withdrawals can be counted")
        .get(0);
    assert_eq!(
        usize::try_from(ended),
        Ok(withdrawals * sessions),
        "all are confirmed"
    );
    took
}

struct StandIn<'a> {
    client: Client,
    chain: &'a std::sync::Mutex<Chain>,
    worker_id: String,
}

/// Something to do for a withdrawal.
struct Task {
    operation_id: Uuid,
    fencing_token: i64,
    txid: Vec<u8>,
    raw_data: Vec<u8>,
}

impl<'a> StandIn<'a> {
    fn new(database: &Database, chain: &'a std::sync::Mutex<Chain>, session: usize) -> Self {
        let mut client = database.superuser();
        // It does what three roles do, one after the other.
        client
            .batch_execute("load 'sluice'")
            .expect("the library can be loaded");
        Self {
            client,
            chain,
            worker_id: format!("bench{session}"),
        }
    }

    fn live(&mut self, withdrawals: usize, batch: usize) {
        let mut left = withdrawals;
        while left > 0 {
            let size = left.min(batch);
            self.submit(size);
            let mut claimed = 0;
            while claimed < size {
                claimed += self.work(size);
            }
            left -= size;
        }
    }

    fn submit(&mut self, count: usize) {
        let ids: Vec<Uuid> = (0..count).map(|_| Uuid::new_v4()).collect();
        self.client
            .execute(
                "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
                 select id, $2, '1.5', 'USDT-TRC20' from unnest($1::uuid[]) id",
                &[&ids, &THEIRS],
            )
            .expect("withdrawals are taken in");
    }

    /// Claims some, signs, sends and settles them. Returns how many.
    fn work(&mut self, batch: usize) -> usize {
        self.show_chain_time();
        let limit = i32::try_from(batch).expect("a batch is small");
        let rows = self
            .client
            .query(
                "select operation_id, fencing_token, txid, raw_data from sluice.claim_batch($1, $2)",
                &[&self.worker_id, &limit],
            )
            .expect("a batch can be claimed");
        let tasks: Vec<Task> = rows
            .iter()
            .map(|row| Task {
                operation_id: row.get(0),
                fencing_token: row.get(1),
                txid: row.get(2),
                raw_data: row.get(3),
            })
            .collect();
        let signature = [1_u8; 65];
        let signed = |task: &Task| json!({ "signature": hex(&signature), "txid": hex(&task.txid) });
        self.report("record_signatures", &tasks, signed);
        let answered =
            |task: &Task| json!({ "node": "bench", "code": "SUCCESS", "txid": hex(&task.txid) });
        self.report("record_broadcasts", &tasks, answered);
        let sent: Vec<(Vec<u8>, Vec<u8>)> = tasks
            .iter()
            .map(|task| (task.raw_data.clone(), signature.to_vec()))
            .collect();
        let mut chain = self.chain.lock().expect("nobody panics with it");
        let block = chain.next(&sent);
        self.client
            .execute(
                "select from sluice.observe_blocks('bench', array[$1::bytea])",
                &[&block],
            )
            .expect("a block is followed");
        tasks.len()
    }

    fn report(&mut self, call: &str, tasks: &[Task], element: impl Fn(&Task) -> Value) {
        let results: Value = tasks
            .iter()
            .map(|task| {
                let mut element = element(task);
                element["operation_id"] = json!(task.operation_id);
                element["fencing_token"] = json!(task.fencing_token);
                element
            })
            .collect();
        self.client
            .execute(
                &format!("select from sluice.{call}($1, $2)"),
                &[&self.worker_id, &results],
            )
            .expect("results are filed");
    }

    /// The database's clock stands where the chain is, so that it is fresh.
    fn show_chain_time(&mut self) {
        let ms = self.chain.lock().expect("nobody panics with it").time;
        self.client
            .execute(
                "select set_config('sluice.now', to_timestamp($1::bigint / 1000.0)::text, false)",
                &[&ms],
            )
            .expect("the clock can be set");
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes what is written");
        text
    })
}
