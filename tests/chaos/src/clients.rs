//! The clients: threads that submit, each its own way, and that ask again with the same id until they are answered. What the
//! database acknowledged is written down here, and is what the judge holds it to.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use postgres::{Client, Config, NoTls, Row};
use sluice_scenarios::{Database, Role};
use uuid::Uuid;

use crate::link::Link;

/// Between two tries of a client whose call was not answered.
const RETRY: Duration = Duration::from_millis(20);

/// What a client means by an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Base58.
    pub to_address: String,
    /// In its shortest form.
    pub amount: String,
    /// The asset's name.
    pub asset: String,
    /// The sub-account, where one is named.
    pub account: Option<String>,
}

/// The three ways in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `submit` with arguments.
    Arguments,
    /// `submit` with JSON.
    Json,
    /// INSERT … ON CONFLICT DO NOTHING.
    Insert,
}

/// Something to submit.
#[derive(Debug, Clone)]
pub struct Order {
    /// The id.
    pub operation_id: Uuid,
    /// What is meant.
    pub meaning: Meaning,
    /// How it is said.
    pub way: Way,
}

/// What clients were told.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// Every id that a client ever used, with what was first acknowledged for it.
    pub ids: BTreeMap<Uuid, Option<Meaning>>,
    /// Answers that contradict an earlier one.
    pub contradictions: Vec<(Uuid, String)>,
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    waiting: AtomicU64,
    duplicates: AtomicU64,
    conflicts: AtomicU64,
    unanswered: AtomicU64,
    stop: AtomicBool,
}

/// The clients.
pub struct Clients {
    shared: Arc<Shared>,
    orders: Vec<Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
    links: Vec<Link>,
}

impl Clients {
    /// So many, each with a link of its own to the database.
    #[must_use]
    pub fn start(count: usize, database: &Database) -> Self {
        let shared = Arc::new(Shared::default());
        let mut new = Self {
            shared: Arc::clone(&shared),
            orders: vec![],
            threads: vec![],
            links: vec![],
        };
        for _ in 0..count {
            let link = Link::to(database);
            let url = link.url(&database.url(Role::App));
            let (sender, receiver) = channel();
            let shared = Arc::clone(&shared);
            new.orders.push(sender);
            new.threads.push(thread::spawn(move || {
                work(&url, &receiver, &shared);
            }));
            new.links.push(link);
        }
        new
    }

    /// Their ways to the database.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Gives an order to one of them.
    pub fn give(&self, client: usize, order: Order) {
        self.shared
            .ledger
            .lock()
            .expect("no client panics")
            .ids
            .entry(order.operation_id)
            .or_default();
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        self.orders[client % self.orders.len()]
            .send(order)
            .expect("a client works until it is told to stop");
    }

    /// How many orders have no answer yet.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Ordering::SeqCst)
    }

    /// How often one was told that its id stands already, with the same meaning.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.shared.duplicates.load(Ordering::SeqCst)
    }

    /// How often one was told that its id stands already, with another meaning.
    #[must_use]
    pub fn conflicts(&self) -> u64 {
        self.shared.conflicts.load(Ordering::SeqCst)
    }

    /// How often one had to ask again.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.shared.unanswered.load(Ordering::SeqCst)
    }

    /// What they were told.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.shared.ledger.lock().expect("no client panics").clone()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.orders.clear();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                eprintln!("a client panicked");
            }
        }
    }
}

fn work(url: &str, orders: &Receiver<Order>, shared: &Shared) {
    let config: Config = url.parse().expect("a URL of this scaffold");
    let mut session = None;
    for order in orders {
        while !shared.stop.load(Ordering::SeqCst) {
            match ask(&mut session, &config, &order) {
                Ok(answer) => {
                    shared.file(&order, answer);
                    break;
                }
                Err(error)
                    if error
                        .code()
                        .is_some_and(|code| code.code().starts_with("SL")) =>
                {
                    shared.refused(&order, &error);
                    break;
                }
                // Not answered: it may stand or not. Asked again, on a new connection.
                Err(_) => {
                    session = None;
                    shared.unanswered.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(RETRY);
                }
            }
        }
        shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a client was told: the meaning that stands, and whether it was the first to say so, where the way in tells.
struct Answer {
    stands: Meaning,
    created: Option<bool>,
}

fn ask(
    session: &mut Option<Client>,
    config: &Config,
    order: &Order,
) -> Result<Answer, postgres::Error> {
    let client = match session {
        Some(client) => client,
        none => none.insert(config.connect(NoTls)?),
    };
    let Order {
        operation_id,
        meaning,
        way,
    } = order;
    let mut transaction = client.transaction()?;
    let answer = match way {
        Way::Arguments => answer_of(&transaction.query_one(
            "select to_address, amount, asset, account, created from sluice.submit($1, $2, $3, $4, $5)",
            &[operation_id, &meaning.to_address, &meaning.amount, &meaning.asset, &meaning.account],
        )?),
        Way::Json => {
            let payload = serde_json::json!({
                "operation_id": operation_id, "to_address": meaning.to_address,
                "amount": meaning.amount, "asset": meaning.asset, "account": meaning.account,
            });
            answer_of(&transaction.query_one(
                "select to_address, amount, asset, account, created from sluice.submit($1)",
                &[&payload],
            )?)
        }
        Way::Insert => {
            let inserted = transaction.execute(
                "insert into sluice.withdrawals (operation_id, to_address, amount, asset, account)
                 values ($1, $2, ($3::text)::sluice.amount, $4, $5)
                 on conflict (operation_id) do nothing",
                &[operation_id, &meaning.to_address, &meaning.amount, &meaning.asset, &meaning.account],
            )?;
            Answer {
                stands: meaning.clone(),
                created: Some(inserted == 1),
            }
        }
    };
    transaction.commit()?;
    Ok(answer)
}

fn answer_of(row: &Row) -> Answer {
    Answer {
        stands: Meaning {
            to_address: row.get(0),
            amount: row.get(1),
            asset: row.get(2),
            account: row.get(3),
        },
        created: row.get(4),
    }
}

impl Shared {
    fn file(&self, order: &Order, answer: Answer) {
        if answer.created == Some(false) {
            self.duplicates.fetch_add(1, Ordering::SeqCst);
        }
        let id = order.operation_id;
        let mut ledger = self.ledger.lock().expect("no client panics");
        if answer.stands != order.meaning {
            let told = format!("asked for {:?}, told {:?}", order.meaning, answer.stands);
            ledger.contradictions.push((id, told));
        }
        match ledger.ids.get(&id).cloned().flatten() {
            Some(first) if first != answer.stands => {
                let told = format!("first {first:?}, then {:?}", answer.stands);
                ledger.contradictions.push((id, told));
            }
            Some(_) => {}
            None => {
                ledger.ids.insert(id, Some(answer.stands));
            }
        }
    }

    fn refused(&self, order: &Order, error: &postgres::Error) {
        let code = error.code().map_or("", |code| code.code());
        if code == "SL001" {
            self.conflicts.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let told = format!("{:?} was refused: {error}", order.meaning);
        let mut ledger = self.ledger.lock().expect("no client panics");
        ledger.contradictions.push((order.operation_id, told));
    }
}
