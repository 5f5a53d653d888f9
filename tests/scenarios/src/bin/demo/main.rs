//! The story of three withdrawals, told on the terminal with nothing simulated but the chain: a real PostgreSQL, real runners,
//! real time. A node takes the first payment and never answers; the runner is killed the moment it has committed to sending
//! the second; another inherits both; the third stays in the house. The program checks every claim it makes, and fails if one is not so.

mod telling;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;

use postgres::Row;
use serde_json::Value;
use sluice_core::envelope::Txid;
use sluice_mock_node::{Config, Fault, LogFilter, MockNet, Rule, Silence};
use sluice_scenarios::{Database, Postgres, Role, RunnerSetup, Wallets, destination, wait};
use telling::Telling;
use uuid::Uuid;

const BLOCK_MS: i64 = 1000;
const SOLID_AFTER: i64 = 3;
const HISTORY: i64 = 40;
/// An address in custody.
const OF_BOB: u32 = 3;
/// The first runner dies the second time that it has committed to sending, before a byte leaves.
const DEATH: &str = "signatures.after_commit=1*off->return(kill)";

fn main() -> ExitCode {
    let telling = Telling::begin(
        "sluice: a withdrawal is paid exactly once",
        "· a block a second, solid three later, lease 5 s",
    );
    let told = Story::begin(&telling).tell();
    telling.end(if told {
        "Three withdrawals: two payments on the chain, one on the ledger."
    } else {
        "The story went wrong."
    });
    if told {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A withdrawal of the story.
#[derive(Debug, Clone, Copy)]
struct Withdrawal {
    operation_id: Uuid,
    amount: &'static str,
    destination: u32,
}

/// The stage. Fields end in the order written.
struct Story<'a> {
    telling: &'a Telling,
    network: MockNet,
    database: Database,
    _postgres: Postgres,
}

impl<'a> Story<'a> {
    fn begin(telling: &'a Telling) -> Self {
        let postgres = Postgres::start();
        let database = postgres.createdb_with_sluice("sluice");
        telling.happens("a PostgreSQL of its own, and in it:");
        telling.statement("create extension sluice;");

        let network = MockNet::start_blocking(Config {
            block_interval_ms: BLOCK_MS,
            solidity_lag: SOLID_AFTER,
            history: HISTORY,
            foreign_per_block: 3,
            wallets: Wallets::signers(),
            ..Config::default()
        })
        .expect("the network can be started");
        telling.happens(format!(
            "a TRON network at {}, {} blocks long",
            network.url(0),
            network.status().head
        ));

        let story = Self {
            telling,
            network,
            database,
            _postgres: postgres,
        };
        story.set_up();
        story
    }

    /// What an operator does, once.
    fn set_up(&self) {
        let mut operator = self.database.as_role(Role::Operator);
        let wallet = format!(
            "select sluice.add_wallet('{}', 'secp256k1');",
            Wallets::local()
        );
        let lease = "select sluice.set_setting('lease', '5 seconds', 'a demo is short');";
        let follow = self.runner("operator").answer(&["start-block"]);
        for statement in [wallet.as_str(), lease, follow.trim_end()] {
            operator
                .batch_execute(statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
            self.telling.statement(&shortened(statement));
        }
        let ours = format!(
            "select sluice.set_custody('{}', 'bob');",
            destination(OF_BOB)
        );
        let open =
            "select sluice.open_account('alice'), sluice.deposit('alice', '100', 'invoice 17');";
        let mut app = self.database.as_role(Role::App);
        for statement in [open, ours.as_str()] {
            app.batch_execute(statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
            self.telling.statement(statement);
        }
    }

    fn runner(&self, worker_id: &str) -> RunnerSetup {
        RunnerSetup::new(worker_id, &self.database, &self.network.urls())
            .set("SLUICE_SEND_TIMEOUT", "2s")
    }

    fn tell(&self) -> bool {
        let telling = self.telling;
        let first = Withdrawal {
            operation_id: Uuid::new_v4(),
            amount: "25",
            destination: 1,
        };
        let second = Withdrawal {
            operation_id: Uuid::new_v4(),
            amount: "40.5",
            destination: 2,
        };

        telling.scene("A client asks for 25 USDT, sees no answer, and asks again");
        let inserted = [self.insert(first), self.insert_again(first)];

        telling.scene("Runner alpha sends it. The node takes it, and never answers");
        let silence = Rule::new(Fault::AcceptThenTimeout { how: Silence::Hold })
            .operation(first.operation_id)
            .times(1);
        self.network.add_fault(silence).expect("a fault");
        let mut alpha = self
            .runner("alpha")
            .set("FAILPOINTS", DEATH)
            .start(&["run"]);
        let first_txid = self.first_envelope(first);
        wait::until("the node has it", || {
            (self.accepts(first_txid) == 1).then_some(())
        });
        telling.happens(format!(
            "the node has {}, and says nothing",
            short(first_txid)
        ));
        wait::until("alpha gives up waiting", || {
            self.was_sent(first).then_some(())
        });
        telling.happens(format!(
            "no answer in 2 s proves nothing: the withdrawal stays {}",
            self.state(first)
        ));

        telling.scene(
            "40.5 USDT more. Alpha is killed between its commitment to send and the first byte",
        );
        self.insert(second);
        let death = alpha.wait();
        let second_txid = self.first_envelope(second);
        let state_at_death = self.state(second);
        let sent_before_death = self.senders(second_txid);
        telling.happens(format!("alpha: {death}"));
        telling.aside(format!(
            "the database says {state_at_death}; the node has been sent {} {} times",
            short(second_txid),
            sent_before_death.len()
        ));

        telling.scene("Runner beta inherits: it reads the chain, waits for alpha's lease to pass, sends the same bytes");
        let beta = self.runner("beta").start(&["run"]);
        for (withdrawal, txid) in [(first, first_txid), (second, second_txid)] {
            let block = wait::until("it is confirmed", || self.confirmed_in(withdrawal));
            telling.happens(format!(
                "{} USDT are paid: solid block {block} holds {}",
                withdrawal.amount,
                short(txid)
            ));
        }
        drop(beta);

        let third = Withdrawal {
            operation_id: Uuid::new_v4(),
            amount: "15",
            destination: OF_BOB,
        };
        telling.scene(
            "15 USDT to an address of bob's, who has an account with us: no runner, no chain",
        );
        self.insert(third);
        let state_at_once = self.state(third);
        telling.aside("side by side, in sluice.withdrawal:");
        for withdrawal in [first, third] {
            self.show_route(withdrawal);
        }

        for withdrawal in [first, second] {
            telling.scene(&format!(
                "sluice.timeline of the {} USDT",
                withdrawal.amount
            ));
            self.show_timeline(withdrawal);
        }

        telling.scene("The node's own log");
        for txid in [first_txid, second_txid] {
            self.show_sends(txid);
        }

        telling.scene("What must be so");
        let claims = [
            (
                "the client asked twice, and there is one row",
                inserted == [1, 0],
            ),
            (
                "alpha died by SIGKILL, committed to send and not having sent",
                death.signal() == Some(9)
                    && state_at_death == "broadcasting"
                    && sent_before_death.is_empty(),
            ),
            (
                "each withdrawal has one envelope, from before the crash to the end",
                self.envelopes(first) == [first_txid] && self.envelopes(second) == [second_txid],
            ),
            (
                "the node's own count: one accept for each txid, and no other txid",
                self.network.transactions().len() == 2
                    && self.accepts(first_txid) == 1
                    && self.accepts(second_txid) == 1,
            ),
            (
                "each is paid in the block that the database names, and that block is solid",
                self.agrees(first, first_txid) && self.agrees(second, second_txid),
            ),
            (
                "65.5 USDT have left the wallet, by the chain's sum and by the database's",
                self.paid() == ("65500000".to_owned(), "65500000".to_owned()),
            ),
            (
                "the third was confirmed by its INSERT, and no node has heard of it",
                state_at_once == "confirmed" && self.envelopes(third).is_empty(),
            ),
            (
                "of alice's 100 USDT 19.5 are left and none is held; bob has 15",
                self.balances() == ["alice 19500000 0", "bob 15000000 0"],
            ),
        ];
        for (what, holds) in claims {
            telling.claim(what, holds);
        }
        claims.iter().all(|(_, holds)| *holds)
    }

    /// Inserts it as any client would.
    fn insert(&self, withdrawal: Withdrawal) -> u64 {
        let statement = insert_statement(withdrawal);
        self.telling.statement(&statement);
        let inserted = self.execute(&statement);
        self.telling.happens(format!("INSERT 0 {inserted}"));
        inserted
    }

    /// Inserts it once more, in the same words.
    fn insert_again(&self, withdrawal: Withdrawal) -> u64 {
        let inserted = self.execute(&insert_statement(withdrawal));
        self.telling
            .happens(format!("INSERT 0 {inserted}, for the same statement"));
        inserted
    }

    fn execute(&self, statement: &str) -> u64 {
        self.database
            .as_role(Role::App)
            .execute(statement, &[])
            .expect("the withdrawal is taken")
    }

    fn show_timeline(&self, withdrawal: Withdrawal) {
        let query =
            "select coalesce(from_state::text, ''), to_state::text, coalesce(worker_id, ''), detail
                       from sluice.timeline($1)";
        for row in self.ask(query, withdrawal) {
            // What solid blocks decide is filed under the node that they came from.
            let by: String = row.get(2);
            let by = if !by.is_empty() && self.network.url(0).ends_with(&by) {
                "blocks"
            } else {
                by.as_str()
            };
            self.telling
                .row(row.get(0), row.get(1), by, &evidence(&row.get(3)));
        }
    }

    fn show_sends(&self, txid: Txid) {
        for sent in self.network.sends(&LogFilter {
            txid: Some(txid),
            ..LogFilter::default()
        }) {
            let by = sent.worker.unwrap_or_default();
            let accepted = if sent.accepted {
                "accepted"
            } else {
                "not taken"
            };
            self.telling.aside(format!(
                "{} sent by {by}: {accepted}, answered {}",
                short(txid),
                sent.answered
            ));
        }
    }

    fn show_route(&self, withdrawal: Withdrawal) {
        let query = "select rail::text, from_account, coalesce('to account ' || to_account, 'to ' || to_address), state::text,
                            coalesce('transaction ' || txid, 'posting ' || posting_id), reason
                       from sluice.withdrawal($1)";
        for row in self.ask(query, withdrawal) {
            let [rail, from, to, state, reference, reason] =
                [0, 1, 2, 3, 4, 5].map(|column| row.get::<_, String>(column));
            self.telling.happens(format!(
                "{rail}: {} USDT from {from} {to}, {state} by {}",
                withdrawal.amount,
                shortened(&reference)
            ));
            self.telling.aside(format!("because {reason}"));
        }
    }

    /// What accounts have, and what of it is held, in base units.
    fn balances(&self) -> Vec<String> {
        let query = "select a.account || ' ' || b.posted || ' ' || b.held
                       from sluice.accounts a cross join lateral sluice.balance(a.account) b order by 1";
        let rows = self.database.superuser().query(query, &[]);
        rows.expect("balances can be read")
            .iter()
            .map(|row| row.get(0))
            .collect()
    }

    fn ask(&self, query: &str, withdrawal: Withdrawal) -> Vec<Row> {
        self.database
            .superuser()
            .query(query, &[&withdrawal.operation_id])
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    fn state(&self, withdrawal: Withdrawal) -> String {
        self.ask("select state::text from sluice.withdrawal($1)", withdrawal)[0].get(0)
    }

    fn was_sent(&self, withdrawal: Withdrawal) -> bool {
        !self
            .ask(
                "select from sluice.withdrawals where operation_id = $1 and sent_ms is not null",
                withdrawal,
            )
            .is_empty()
    }

    fn confirmed_in(&self, withdrawal: Withdrawal) -> Option<i64> {
        let confirmed = self.ask(
            "select block_number from sluice.withdrawal($1) where state = 'confirmed'",
            withdrawal,
        );
        confirmed.first().map(|row| row.get(0))
    }

    fn envelopes(&self, withdrawal: Withdrawal) -> Vec<Txid> {
        let rows = self.ask(
            "select txid from sluice.envelopes where operation_id = $1 order by attempt",
            withdrawal,
        );
        rows.iter()
            .map(|row| Txid::from_bytes(row.get(0)).expect("a txid has 32 bytes"))
            .collect()
    }

    fn first_envelope(&self, withdrawal: Withdrawal) -> Txid {
        wait::until("an envelope is built", || {
            self.envelopes(withdrawal).first().copied()
        })
    }

    fn accepts(&self, txid: Txid) -> u64 {
        self.network
            .transaction(&txid)
            .map_or(0, |report| report.accepts)
    }

    fn senders(&self, txid: Txid) -> Vec<String> {
        let sends = self.network.sends(&LogFilter {
            txid: Some(txid),
            ..LogFilter::default()
        });
        sends
            .into_iter()
            .map(|sent| sent.worker.unwrap_or_default())
            .collect()
    }

    /// Whether the solid chain holds the transaction where the database says, with SUCCESS.
    fn agrees(&self, withdrawal: Withdrawal, txid: Txid) -> bool {
        self.network.transaction(&txid).is_some_and(|report| {
            report.solid
                && report.result.as_deref() == Some("SUCCESS")
                && report.block == self.confirmed_in(withdrawal)
        })
    }

    /// What has been paid: by the solid chain's own count, and by the database's, in base units.
    fn paid(&self) -> (String, String) {
        let by_the_chain = self
            .network
            .totals()
            .into_iter()
            .find(|total| total.owner == Wallets::local());
        let row = self.database.superuser().query_one(
            "select sum(units)::text from sluice.routed() where rail = 'external'",
            &[],
        );
        (
            by_the_chain.map_or_else(String::new, |total| total.solid_units),
            row.expect("the overview can be read").get(0),
        )
    }
}

fn insert_statement(withdrawal: Withdrawal) -> String {
    format!(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset, account)\n\
         values ('{}', '{}', '{}', 'USDT-TRC20', 'alice')\n\
         on conflict (operation_id) do nothing;",
        withdrawal.operation_id,
        destination(withdrawal.destination),
        withdrawal.amount
    )
}

/// The facts filed with a step, in a few words.
fn evidence(detail: &Value) -> String {
    let text = |name: &str| detail[name].as_str().map(str::to_owned);
    let number = |name: &str| detail[name].as_i64();
    if let (Some(receipt), Some(block), Some(id)) =
        (text("receipt"), number("block_number"), text("block_id"))
    {
        // A block's id begins with its number, in eight bytes.
        return format!(
            "{receipt} in solid block {block}, id …{}",
            shortened(&id[16..])
        );
    }
    if let (Some(attempt), Some(block), Some(txid)) =
        (number("attempt"), number("ref_block_number"), text("txid"))
    {
        return format!(
            "{}, attempt {attempt}, refers to block {block}",
            shortened(&txid)
        );
    }
    if let (Some(code), Some(node)) = (text("code"), text("node")) {
        return format!("{code} from {node}");
    }
    text("txid")
        .map(|txid| shortened(&txid))
        .or_else(|| text("reason"))
        .unwrap_or_default()
}

fn short(txid: Txid) -> String {
    shortened(&txid.to_string())
}

/// The text with every long run of hex digits cut short.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 8;
    let mut short = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let hex = rest
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len());
        let (run, after) = rest.split_at(hex.max(1));
        if hex > 4 * SHOWN {
            short.extend([&run[..SHOWN], "…"]);
        } else {
            short.push_str(run);
        }
        rest = after;
    }
    short
}
