//! A scene for tests inside the database: a chain that the test makes block by block, a clock that stands where the chain is, two
//! wallets, and the calls of a worker in a test's words. Blocks are written by hand here, byte by byte, so that what the database
//! reads is not what it wrote itself.

use pgrx::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// A destination that is nobody of ours.
pub const THEIRS: &str = "TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ";
/// A wallet that signs as a mock.
pub const MOCK_WALLET: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";
/// Block 0 of a chain of no value.
pub const GENESIS: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
/// Where the chain begins: 2026-01-01 00:00:00 UTC, the beginning of a slot.
pub const START_MS: i64 = 1_767_225_600_000;
/// The first followed block.
pub const FIRST: i64 = 1_000;

/// Protobuf, as far as blocks need it.
pub mod wire {
    pub fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = vec![];
        while value >= 0x80 {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    pub fn number(field: u64, value: i64) -> Vec<u8> {
        if value == 0 {
            return vec![];
        }
        [varint(field << 3), varint(value as u64)].concat()
    }

    pub fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
        [
            varint(field << 3 | 2),
            varint(value.len() as u64),
            value.to_vec(),
        ]
        .concat()
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// A block as the test made it.
#[derive(Clone)]
pub struct Block {
    pub number: i64,
    pub id: [u8; 32],
    pub time: i64,
    pub bytes: Vec<u8>,
}

/// Makes a block over these whole transactions.
pub fn block(number: i64, parent: &[u8; 32], time: i64, transactions: &[Vec<u8>]) -> Block {
    let mut level: Vec<[u8; 32]> = transactions.iter().map(|bytes| sha256(bytes)).collect();
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| {
                if pair.len() == 2 {
                    sha256(&pair.concat())
                } else {
                    pair[0]
                }
            })
            .collect();
    }
    let root = level.first().copied().unwrap_or_default();
    let header = [
        wire::number(1, time),
        wire::bytes(2, &root),
        wire::bytes(3, parent),
        wire::number(7, number),
        wire::bytes(9, &[0x41; 21]),
        wire::number(10, 32),
    ]
    .concat();
    let mut id = sha256(&header);
    id[..8].copy_from_slice(&number.to_be_bytes());
    let mut bytes: Vec<u8> = transactions
        .iter()
        .flat_map(|transaction| wire::bytes(1, transaction))
        .collect();
    bytes.extend(wire::bytes(
        2,
        &[wire::bytes(1, &header), wire::bytes(2, &[7; 65])].concat(),
    ));
    Block {
        number,
        id,
        time,
        bytes,
    }
}

/// A transaction as a block holds it: `result` is the number of its contractRet.
pub fn in_block(raw_data: &[u8], result: i64) -> Vec<u8> {
    [
        wire::bytes(1, raw_data),
        wire::bytes(2, &[9; 65]),
        wire::bytes(5, &wire::number(3, result)),
    ]
    .concat()
}

/// contractRet SUCCESS.
pub const SUCCESS: i64 = 1;
/// contractRet REVERT.
pub const REVERT: i64 = 2;
/// contractRet OUT_OF_ENERGY.
pub const OUT_OF_ENERGY: i64 = 10;

/// The chain and the database that follows it.
pub struct Scene {
    pub tip: Block,
}

/// Runs a statement and returns its one value as text.
pub fn one(sql: &str) -> Option<String> {
    Spi::get_one::<String>(&format!("select ({sql})::text")).expect("the statement runs")
}

/// Runs a statement.
pub fn run(sql: &str) {
    Spi::run(sql).expect("the statement runs");
}

/// Runs a statement that must be refused, in a subtransaction, and returns its SQLSTATE and message. An empty SQLSTATE says that
/// it was not refused.
pub fn refused(sql: &str) -> (String, String) {
    run("create or replace function pg_temp.attempt(statement text) returns text language plpgsql as $$
         declare v_state text; v_message text;
         begin
           execute statement;
           return '|';
         exception when others then
           get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
           return v_state || '|' || v_message;
         end $$");
    let answer = Spi::get_one_with_args::<String>("select pg_temp.attempt($1)", &[sql.into()])
        .expect("the attempt returns")
        .unwrap_or_default();
    let (state, message) = answer.split_once('|').expect("both parts are there");
    (state.to_owned(), message.to_owned())
}

/// The SQLSTATE with which a statement is refused.
pub fn sqlstate(sql: &str) -> String {
    refused(sql).0
}

/// Asserts that a statement is refused with this SQLSTATE by a message that begins with what is at fault, and writes nothing.
pub fn refuses(statement: &str, state: &str, fault: &str) {
    let before = contents();
    let (found, message) = refused(statement);
    let shown: String = statement.chars().take(300).collect();
    assert_eq!(found, state, "{shown}: {message}");
    let named = message
        .strip_prefix(fault)
        .is_some_and(|rest| rest.starts_with(": ") || rest.starts_with(" is "));
    assert!(named, "{shown}: {message}");
    assert!(
        message.len() < 600,
        "{shown}: a message of {} bytes",
        message.len()
    );
    assert_eq!(contents(), before, "{shown}");
}

/// Bytes as a literal.
pub fn literal(bytes: &[u8]) -> String {
    format!("'\\x{}'::bytea", hex::encode(bytes))
}

/// A text as a literal.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What every table of the schema holds: a statement that writes nothing leaves it as it was.
pub fn contents() -> String {
    run(
        "create or replace function pg_temp.contents() returns text language plpgsql as $$
         declare v_table regclass; v_part text; v_all text := '';
         begin
           for v_table in select oid from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r' order by relname loop
             execute format('select count(*) || '' '' || coalesce(md5(string_agg(t::text, '','' order by t::text)), '''') from %s t', v_table)
               into v_part;
             v_all := v_all || v_table || ' ' || v_part || chr(10);
           end loop;
           return v_all;
         end $$",
    );
    one("pg_temp.contents()").expect("there are tables")
}

/// A task as claim_batch and record_signatures return it.
#[derive(Debug, Clone)]
pub struct Task {
    pub operation_id: String,
    pub fencing_token: i64,
    pub state: String,
    pub action: String,
    pub wallet: String,
    pub txid: Vec<u8>,
    pub raw_data: Vec<u8>,
    pub attempt: i64,
}

pub fn tasks_of(sql: &str) -> Vec<Task> {
    let text = one(&format!(
        "select coalesce(jsonb_agg(t), '[]') from ({sql}) t"
    ))
    .unwrap_or_default();
    let rows: Vec<Value> = serde_json::from_str(&text).expect("jsonb is JSON");
    let bytes = |row: &Value, key: &str| {
        hex::decode(row[key].as_str().unwrap_or("\\x").trim_start_matches("\\x"))
            .expect("bytea prints as hex")
    };
    rows.iter()
        .map(|row| Task {
            operation_id: row["operation_id"].as_str().unwrap_or_default().to_owned(),
            fencing_token: row["fencing_token"].as_i64().unwrap_or_default(),
            state: row["state"].as_str().unwrap_or_default().to_owned(),
            action: row["action"].as_str().unwrap_or_default().to_owned(),
            wallet: row["wallet"].as_str().unwrap_or_default().to_owned(),
            txid: bytes(row, "txid"),
            raw_data: bytes(row, "raw_data"),
            attempt: row["attempt"].as_i64().unwrap_or_default(),
        })
        .collect()
}

/// Waits for the tests that play in other sessions of this server: they set up the same rows, in other orders, and would wait for
/// each other in a ring.
pub fn alone() {
    run("select pg_advisory_xact_lock(7361)");
}

impl Scene {
    /// A database that follows a chain from its first block, with one mock wallet, at the chain's time.
    pub fn open() -> Self {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"
        ));
        run(&format!(
            "select sluice.follow_from({}, '\\x{GENESIS}')",
            literal(&first.bytes)
        ));
        let scene = Self { tip: first };
        scene.clock(0);
        scene
    }

    /// Sets the database's clock to the chain's time, and so many seconds more.
    pub fn clock(&self, seconds: i64) {
        let ms = self.tip.time + seconds * 1000;
        run(&format!(
            "select set_config('sluice.now', (to_timestamp({}) + interval '{} milliseconds')::text, false)",
            ms / 1000,
            ms % 1000
        ));
    }

    /// A block on the tip, so many milliseconds later, that the database does not know yet.
    pub fn next(&self, later_ms: i64, transactions: &[Vec<u8>]) -> Block {
        block(
            self.tip.number + 1,
            &self.tip.id,
            self.tip.time + later_ms,
            transactions,
        )
    }

    /// Makes that block and has it followed. Returns what it moved.
    pub fn follow(&mut self, later_ms: i64, transactions: &[Vec<u8>]) -> Vec<Task> {
        self.tip = self.next(later_ms, transactions);
        self.clock(0);
        tasks_of(&format!(
            "select * from sluice.observe_blocks('node', array[{}])",
            literal(&self.tip.bytes)
        ))
    }

    /// Follows empty blocks, three seconds apart, for so many seconds of chain time.
    pub fn pass(&mut self, seconds: i64) {
        let until = self.tip.time + seconds * 1000;
        let mut batch = vec![];
        while self.tip.time < until {
            self.tip = self.next(3000.min(until - self.tip.time), &[]);
            batch.push(literal(&self.tip.bytes));
        }
        self.clock(0);
        for part in batch.chunks(500) {
            run(&format!(
                "select sluice.observe_blocks('node', array[{}])",
                part.join(",")
            ));
        }
    }

    /// Submits a withdrawal of 1.5 with this number as its id, and returns the id.
    pub fn submit(&self, number: u32) -> String {
        let id = id(number);
        run(&format!("select sluice.submit('{id}', '{THEIRS}', '1.5')"));
        id
    }

    /// Claims what is due.
    pub fn claim(&self, worker: &str) -> Vec<Task> {
        tasks_of(&format!("select * from sluice.claim_batch('{worker}')"))
    }

    /// Hands a mock's signatures in for these tasks.
    pub fn sign(&self, worker: &str, given: &[Task]) -> Vec<Task> {
        let results: Vec<Value> = given
            .iter()
            .map(|task| {
                json!({
                    "operation_id": task.operation_id,
                    "fencing_token": task.fencing_token,
                    "txid": hex::encode(&task.txid),
                    "signature": "01".repeat(65),
                })
            })
            .collect();
        tasks_of(&format!(
            "select * from sluice.record_signatures('{worker}', '{}')",
            json!(results)
        ))
    }

    /// Reports one answer for these tasks.
    pub fn answer(&self, worker: &str, given: &[Task], code: &str) -> Vec<Task> {
        let results: Vec<Value> = given
            .iter()
            .map(|task| {
                json!({
                    "operation_id": task.operation_id,
                    "fencing_token": task.fencing_token,
                    "txid": hex::encode(&task.txid),
                    "node": "node",
                    "code": code,
                })
            })
            .collect();
        tasks_of(&format!(
            "select * from sluice.record_broadcasts('{worker}', '{}')",
            json!(results)
        ))
    }

    /// Takes a fresh withdrawal to `broadcast`. Returns its task.
    pub fn broadcast(&self, number: u32) -> Task {
        self.submit(number);
        let signed = self.sign("w", &self.claim("w"));
        self.answer("w", &signed, "SUCCESS");
        signed.into_iter().next().expect("one withdrawal was due")
    }

    /// The state of a withdrawal.
    pub fn state(&self, id: &str) -> String {
        one(&format!(
            "select state from sluice.withdrawals where operation_id = '{id}'"
        ))
        .unwrap_or_default()
    }

    /// A withdrawal's log, as `from>to` entries.
    pub fn log(&self, id: &str) -> String {
        let text = one(&format!(
            "select string_agg(coalesce(from_state::text, '') || '>' || to_state, ' ' order by seq) from sluice.timeline('{id}')"
        ));
        let mut log = String::new();
        write!(log, "{}", text.unwrap_or_default()).expect("a String takes what is written");
        log
    }
}

/// The expression that names the invariants which do not hold.
pub const BROKEN: &str = "select coalesce(string_agg(v.invariant, ' ' order by v.invariant), '') from sluice.verify() v where not v.holds";

/// The invariants that do not hold, by name.
pub fn broken() -> String {
    one(&format!("({BROKEN})")).expect("verify answers")
}

/// An operation_id that holds a number.
pub fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Another mock wallet, whose address sorts after `MOCK_WALLET`'s.
pub const SECOND_WALLET: &str = "TMhzXhj5o7aG14eMHn2htGe7ek39hiriPN";
/// A wallet that signs for real, and its published key.
pub const KEYED_WALLET: &str = "TUovF8AbwuqEmqehCPUSAFu3wfUAqsp2Fg";
/// See [`KEYED_WALLET`].
pub const KEY: &str = "9061f7e850505422760b8e73b946f5ab4b61d6e485cff0ef10ae40f9decbcd6c";

/// Who runs the tests: a superuser, whatever the name.
pub fn superuser() -> String {
    one("session_user").expect("a session has a user")
}

/// Tries a statement in a role, and takes back whatever it did: the SQLSTATE and message of its refusal, or two empty texts.
pub fn tried_as(role: &str, sql: &str) -> (String, String) {
    run("create or replace function pg_temp.trial(role text, statement text) returns text language plpgsql as $$
         declare v_state text; v_message text;
         begin
           execute format('set local role %I', role);
           execute statement;
           raise exception using errcode = 'TAKEN';
         exception when others then
           get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
           return v_state || '|' || v_message;
         end $$");
    let answer = Spi::get_one_with_args::<String>(
        "select pg_temp.trial($1, $2)",
        &[role.into(), sql.into()],
    )
    .expect("the trial returns")
    .unwrap_or_default();
    match answer.split_once('|').expect("both parts are there") {
        ("TAKEN", _) => (String::new(), String::new()),
        (state, message) => (state.to_owned(), message.to_owned()),
    }
}

/// The SQLSTATE with which the owner of the tables is refused a statement; empty where it would be taken.
pub fn as_owner(sql: &str) -> String {
    tried_as("sluice_owner", sql).0
}

/// Runs a statement as the owner of the tables, who passes every check of a privilege and none of the guard.
pub fn run_as_owner(sql: &str) {
    run("set local role sluice_owner");
    run(sql);
    run("reset role");
}

/// The value of an expression, and everything that it did taken back: what a database knew that has forgotten since.
pub fn forgotten(expression: &str) -> String {
    run("create or replace function pg_temp.forgotten(expression text) returns text language plpgsql as $$
         declare v_value text; v_state text; v_message text;
         begin
           execute 'select (' || expression || ')::text' into v_value;
           raise exception '%', v_value using errcode = 'TAKEN';
         exception when others then
           get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
           if v_state <> 'TAKEN' then
             raise;
           end if;
           return v_message;
         end $$");
    Spi::get_one_with_args::<String>("select pg_temp.forgotten($1)", &[expression.into()])
        .expect("the expression has a value")
        .unwrap_or_default()
}

/// A number that a statement returns.
pub fn count(sql: &str) -> i64 {
    one(sql)
        .and_then(|text| text.parse().ok())
        .expect("the statement returns a number")
}

impl Scene {
    /// A database that follows a chain, at the chain's time, and has no wallet yet.
    pub fn without_wallet() -> Self {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        run(&format!(
            "select sluice.follow_from({}, '\\x{GENESIS}')",
            literal(&first.bytes)
        ));
        let scene = Self { tip: first };
        scene.clock(0);
        scene
    }

    /// Has these blocks followed in one call, the last being the tip from now on. Returns what they moved.
    pub fn observe(&mut self, blocks: &[Block]) -> Vec<Task> {
        self.tip = blocks.last().expect("there is a block").clone();
        self.clock(0);
        let bytes: Vec<String> = blocks.iter().map(|block| literal(&block.bytes)).collect();
        tasks_of(&format!(
            "select * from sluice.observe_blocks('node', array[{}])",
            bytes.join(",")
        ))
    }

    /// The statement that writes a block down, past `observe_blocks`: nothing is settled by it.
    pub fn by_hand(block: &Block) -> String {
        format!(
            "insert into sluice.blocks (number, id, parent_id, timestamp_ms, root, transactions)
             select (d ->> 'number')::bigint, decode(d ->> 'id', 'hex'), decode(d ->> 'parent_id', 'hex'),
                    (d ->> 'timestamp_ms')::bigint, decode(d ->> 'root', 'hex'), 0
               from sluice.decode_block({}) d",
            literal(&block.bytes)
        )
    }

    /// Writes the next empty block down by hand.
    pub fn follow_by_hand(&mut self, later_ms: i64) {
        self.tip = self.next(later_ms, &[]);
        self.clock(0);
        run_as_owner(&Self::by_hand(&self.tip));
    }

    /// Writes empty blocks down by hand until this many seconds of chain time have passed.
    pub fn pass_by_hand(&mut self, seconds: i64) {
        let until = self.tip.time + seconds * 1000;
        while self.tip.time < until {
            self.follow_by_hand(30_000.min(until - self.tip.time));
        }
    }

    /// One column of a withdrawal, as text; empty where it is NULL.
    pub fn column(&self, id: &str, column: &str) -> String {
        one(&format!(
            "select {column} from sluice.withdrawals where operation_id = '{id}'"
        ))
        .unwrap_or_default()
    }

    /// In how many seconds a withdrawal is next due.
    pub fn due_in(&self, id: &str) -> i64 {
        count(&format!(
            "select extract(epoch from due_at - sluice.now())::bigint from sluice.withdrawals where operation_id = '{id}'"
        ))
    }

    /// Submits a withdrawal, claims it, and returns its task: to be signed.
    pub fn signing(&self, number: u32) -> Task {
        let id = self.submit(number);
        self.claim("w")
            .into_iter()
            .find(|task| task.operation_id == id)
            .expect("a fresh withdrawal is due")
    }

    /// Takes a fresh withdrawal to `signed`, by a pause that holds its first send.
    pub fn signed(&self, number: u32) -> Task {
        let task = self.signing(number);
        run("select sluice.pause('held in signed')");
        self.sign("w", std::slice::from_ref(&task));
        run("select sluice.resume('held in signed')");
        task
    }

    /// Takes a fresh withdrawal to `broadcasting`. Returns what is to be sent.
    pub fn broadcasting(&self, number: u32) -> Task {
        let task = self.signing(number);
        self.sign("w", &[task]).remove(0)
    }
}
