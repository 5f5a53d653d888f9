//! Somebody writes to the tables by hand, as a superuser may: an envelope, an end, a fate or a block that is not what the followed
//! chain shows is refused, and what is on file is not written over. Each refusal stands beside a statement that is taken.

use postgres::Client;
use postgres::error::SqlState;
use sluice_core::envelope::Txid;
use sluice_scenarios::{Role, Scene, Wallets, Worker};
use uuid::Uuid;

/// Longer than an envelope lives and its last block needs to be solid.
const PAST_ITS_END_S: u64 = 400;

/// A superuser's psql on a scene. What it writes is taken back, unless it is to stay.
struct Desk {
    client: Client,
    scene: Scene,
}

impl Desk {
    fn open() -> Self {
        let scene = Scene::start();
        Self {
            client: scene.database.superuser(),
            scene,
        }
    }

    /// The SQLSTATE of each statement's refusal, with nothing where it would be taken.
    fn refusals(&mut self, statements: &[String]) -> Vec<(String, String)> {
        statements
            .iter()
            .map(|statement| (statement.clone(), self.refusal(statement)))
            .collect()
    }

    fn refusal(&mut self, statement: &str) -> String {
        let mut transaction = self.client.transaction().expect("a transaction begins");
        match transaction.batch_execute(statement) {
            Ok(()) => String::new(),
            Err(error) => {
                let refused = error.as_db_error().expect("the database refuses");
                refused.code().code().to_owned()
            }
        }
    }

    /// All of them are refused so.
    fn assert_refused(&mut self, code: &str, statements: &[String]) {
        let others: Vec<_> = self
            .refusals(statements)
            .into_iter()
            .filter(|(_, refusal)| refusal != code)
            .collect();
        assert!(others.is_empty(), "{code} was to refuse these: {others:#?}");
    }

    fn assert_taken(&mut self, statement: &str) {
        assert_eq!(self.refusal(statement), "", "{statement}");
    }

    fn write(&mut self, statement: &str) {
        self.client
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// A withdrawal with a live envelope that nobody has signed.
    fn signing(&self) -> (Uuid, Txid) {
        let operation_id = self.scene.submit(1, "25");
        let tasks = Worker::new("by hand", &self.scene.database).claim(1);
        (operation_id, tasks[0].txid)
    }

    /// One whose bytes may be out.
    fn broadcast(&self) -> (Uuid, Txid) {
        let operation_id = self.scene.submit(2, "25");
        let mut worker = Worker::new("by hand", &self.scene.database);
        let tasks = worker.claim(1);
        let to_send = worker.sign(&tasks);
        worker.answer(&to_send, "SUCCESS");
        (operation_id, tasks[0].txid)
    }

    /// One that was paid.
    fn confirmed(&self) -> (Uuid, Txid) {
        let operation_id = self.scene.submit(3, "25");
        let mut worker = Worker::new("by hand", &self.scene.database);
        let tasks = worker.claim(1);
        for task in worker.sign(&tasks) {
            let sent = self.scene.network.inject(&task.transaction());
            sent.expect("the network takes it");
        }
        self.scene.advance(66);
        self.scene.follow();
        assert_eq!(self.scene.state(operation_id), "confirmed");
        (operation_id, tasks[0].txid)
    }

    /// Lets it die, so that a second one is to be built.
    fn let_die(&self, operation_id: Uuid) {
        self.scene.advance(PAST_ITS_END_S);
        self.scene.follow();
        assert_eq!(self.scene.state(operation_id), "signing");
    }
}

fn of_row(operation_id: Uuid, assignment: &str) -> String {
    format!("update sluice.withdrawals set {assignment} where operation_id = '{operation_id}'")
}

fn of_envelope(txid: Txid, assignment: &str) -> String {
    format!("update sluice.envelopes set {assignment} where txid = '\\x{txid}'")
}

/// The statement that files the right second envelope; `changes` replaces expressions in it.
fn second_envelope(operation_id: Uuid, changes: &[(&str, &str)]) -> String {
    let mut statement = format!(
        "insert into sluice.envelopes (
           txid, operation_id, attempt, wallet, slot, ref_block_number, time_to_live_ms, fee_limit_sun, permission_id,
           expiration_ms, raw_data)
         select sluice.txid(v.bytes), v.operation_id, 2, v.wallet, sluice.slot_of(v.stamp), v.number, v.life, 100000000, 0,
                v.stamp + v.life, v.bytes
           from (select w.operation_id, w.wallet, b.number, b.timestamp_ms as stamp, l.life,
                        sluice.raw_data(
                          w.wallet, a.contract, w.to_address, w.amount_units, b.number, b.id, b.timestamp_ms + l.life,
                          b.timestamp_ms, 100000000, w.operation_id, 0) as bytes
                   from sluice.withdrawals w
                   join sluice.assets a on a.asset = w.asset
                  cross join (select 300000 as life) l
                  cross join lateral (
                    select * from sluice.blocks
                     where timestamp_ms >= sluice.slot_begins_ms(sluice.slot_of((select max(timestamp_ms) from sluice.blocks)))
                     order by number limit 1) b
                  where w.operation_id = '{operation_id}') v"
    );
    for (from, to) in changes {
        assert_eq!(statement.matches(from).count(), 1, "{from}");
        statement = statement.replacen(from, to, 1);
    }
    format!(
        "update sluice.withdrawals set attempt = 2 where operation_id = '{operation_id}'; {statement}"
    )
}

/// Writes down that this block held the envelope.
fn payment(txid: Txid, block: &str, receipt: &str) -> String {
    format!(
        "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units)
         select v.txid, v.operation_id, {block}, 0, '{receipt}', v.wallet, a.contract, w.to_address, w.amount_units
           from sluice.envelopes v
           join sluice.withdrawals w on w.operation_id = v.operation_id
           join sluice.assets a on a.asset = w.asset
          where v.txid = '\\x{txid}'"
    )
}

const TIP: &str = "(select max(number) from sluice.blocks)";

fn included(txid: Txid, receipt: &str) -> String {
    of_envelope(
        txid,
        &format!("fate = 'included', receipt = '{receipt}', block_number = {TIP}"),
    )
}

#[test]
fn nothing_that_is_on_file_is_removed_by_hand_and_no_log_is_rewritten() {
    let mut desk = Desk::open();
    let (_, txid) = desk.confirmed();
    desk.write("insert into sluice.pauses (reason) values ('lunch')");
    for table in [
        "withdrawals",
        "events",
        "envelopes",
        "blocks",
        "payments",
        "wallets",
        "chain",
        "changes",
        "pauses",
    ] {
        desk.assert_refused(
            "SL013",
            &[
                format!("delete from sluice.{table}"),
                format!("truncate sluice.{table}"),
            ],
        );
    }
    desk.assert_refused(
        "SL013",
        &[
            "update sluice.events set detail = '{}'".to_owned(),
            "update sluice.blocks set transactions = 0".to_owned(),
            format!("update sluice.payments set receipt = 'REVERT' where txid = '\\x{txid}'"),
            "update sluice.wallets set live_window = 1".to_owned(),
            "update sluice.chain set first_number = 0".to_owned(),
            "update sluice.changes set reason = 'another'".to_owned(),
        ],
    );
    desk.assert_taken("update sluice.pauses set resumed_at = sluice.now()");
}

#[test]
fn a_withdrawal_that_is_over_is_not_written_over_by_hand() {
    let mut desk = Desk::open();
    let (paid, _) = desk.confirmed();
    let rejected = desk.scene.submit(4, "25");
    desk.write(&format!(
        "select sluice.cancel('{rejected}', 'asked for twice')"
    ));
    for over in [paid, rejected] {
        let assignments = [
            "state = 'signing'",
            "state = state",
            "due_at = sluice.now()",
            "attempt = attempt + 1",
            "fencing_token = fencing_token + 1",
            "failure_reason = 'another'",
        ];
        desk.assert_refused("SL011", &assignments.map(|set| of_row(over, set)));
    }
}

#[test]
fn what_was_asked_for_and_what_is_decided_once_stays_as_it_is_by_hand() {
    let mut desk = Desk::open();
    let (operation_id, _) = desk.signing();
    let assignments = [
        "operation_id = gen_random_uuid()",
        "to_address = (select contract from sluice.assets)",
        "destination = destination || ' '",
        "amount = '26'",
        "amount_units = amount_units + 1",
        "asset = 'OTHER'",
        "asset_version = asset_version + 1",
        "account = 'somebody'",
        "requested_by = 'somebody'",
        "request_hash = '\\x00'",
        "created_at = created_at - interval '1 day'",
        "wallet = (select max(address) from sluice.wallets l where l.address <> wallet)",
        "wallet = null",
        "rail = 'internal'",
        "reason_code = 'other'",
        "reason = 'other'",
        "fencing_token = fencing_token - 1",
    ];
    desk.assert_refused("SL011", &assignments.map(|set| of_row(operation_id, set)));
    desk.assert_taken(&of_row(operation_id, "last_error = 'a note'"));
    desk.assert_taken(&of_row(operation_id, "fencing_token = fencing_token + 1"));
}

#[test]
fn no_step_is_taken_by_hand_that_the_chart_or_the_chain_does_not_allow() {
    let mut desk = Desk::open();
    desk.write("update sluice.assets set depth = 2");
    let (signing, unsigned) = desk.signing();
    let (broadcast, sent) = desk.broadcast();
    let requested = desk.scene.submit(5, "25");
    desk.assert_refused(
        "SL010",
        &[
            of_row(requested, "state = 'signing'"),
            of_row(requested, "state = 'confirmed'"),
            of_row(signing, "state = 'broadcasting'"),
            of_row(broadcast, "state = 'signed'"),
        ],
    );
    let failed = "state = 'failed', failure_reason = 'enough of it'";
    let rebuilt = "step_seq = seq, step_path = '{signing}', state = 'signing'";
    let confirmed =
        format!("state = 'confirmed', confirmed_at = sluice.now(), block_number = {TIP}");
    desk.assert_refused(
        "SL012",
        &[
            of_row(signing, "state = 'signed'"),
            of_row(signing, failed),
            of_row(signing, rebuilt),
            of_row(broadcast, failed),
            of_row(broadcast, rebuilt),
            of_row(broadcast, &confirmed),
        ],
    );
    // A block holds it, and is not deep enough, or is.
    desk.scene.advance(30);
    desk.scene.follow();
    let paid = [payment(sent, TIP, "SUCCESS"), included(sent, "SUCCESS")].join(";");
    let confirm = format!("{paid}; {}", of_row(broadcast, &confirmed));
    desk.assert_refused("SL012", std::slice::from_ref(&confirm));
    desk.assert_taken(&confirm.replace(TIP, &TIP.replace("max(number)", "max(number) - 2")));
    // What failed on chain is spent, and what succeeded, or says nothing, is not.
    for (receipt, refusal) in [
        ("REVERT", ""),
        ("OUT_OF_ENERGY", ""),
        ("SUCCESS", "SL012"),
        ("UNKNOWN", "SL012"),
    ] {
        let ends = [
            payment(unsigned, TIP, receipt),
            included(unsigned, receipt),
            of_row(signing, failed),
        ];
        assert_eq!(desk.refusal(&ends.join(";")), refusal, "{receipt}");
    }
}

#[test]
fn an_envelope_by_hand_pays_what_its_withdrawal_says_or_is_refused() {
    let mut desk = Desk::open();
    let (operation_id, _) = desk.signing();
    desk.let_die(operation_id);
    desk.assert_taken(&second_envelope(operation_id, &[]));
    let other = "(select max(address) from sluice.wallets l where l.address <> w.wallet)";
    let changes = [
        ("a.contract, w.to_address", "a.contract, w.wallet"),
        ("w.amount_units,", "w.amount_units * 2,"),
        ("a.contract, w", "w.wallet, w"),
        ("w.operation_id, 0)", "null, 0)"),
        ("100000000, w.operation_id", "200000000, w.operation_id"),
        (
            "w.operation_id, w.wallet, b",
            &format!("w.operation_id, {other} as wallet, b"),
        ),
        ("v.operation_id, 2,", "v.operation_id, 3,"),
        (
            "order by number limit 1",
            "order by number limit 1 offset 1",
        ),
    ];
    let statements = changes.map(|change| second_envelope(operation_id, &[change]));
    desk.assert_refused("SL014", &statements);
}

#[test]
fn a_second_envelope_by_hand_is_refused_as_long_as_the_first_can_pay_and_in_its_slot() {
    let mut desk = Desk::open();
    let (operation_id, first) = desk.signing();
    // Other bytes, so that it is not the same transaction once more.
    let another = second_envelope(
        operation_id,
        &[("select 300000 as life", "select 299000 as life")],
    );
    desk.scene.advance(6);
    desk.scene.follow();
    let spent = [payment(first, TIP, "REVERT"), included(first, "REVERT")].join(";");
    desk.assert_refused("SL014", &[format!("{spent}; {another}")]);

    desk.scene.advance(60);
    desk.scene.follow();
    // Either the index or the guard says it first.
    let refused = desk.refusal(&another);
    assert!(
        ["23505", "SL014"].contains(&refused.as_str()),
        "a live twin: {refused:?}"
    );
    for (receipt, refusal) in [
        ("SUCCESS", "SL014"),
        ("UNKNOWN", "SL014"),
        ("ABSENT", "SL014"),
        ("REVERT", ""),
    ] {
        let first = [payment(first, TIP, receipt), included(first, receipt)];
        let statement = format!("{}; {another}", first.join(";"));
        assert_eq!(desk.refusal(&statement), refusal, "{receipt}");
    }
}

#[test]
fn a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once() {
    let mut desk = Desk::open();
    // The other one signs as a mock: of its signatures only the length is checked.
    let mock = Wallets::hmac();
    desk.write(&format!(
        "insert into sluice.pauses (wallet, reason) values ('{mock}', 'lunch')"
    ));
    let (operation_id, txid) = desk.signing();
    desk.assert_refused(
        "SL015",
        &["\\x00", &format!("\\x{}", "11".repeat(65)), "\\x"]
            .map(|bytes| of_envelope(txid, &format!("signature = '{bytes}'"))),
    );
    desk.assert_refused(
        "SL011",
        &[
            "wallet = (select max(address) from sluice.wallets l where l.address <> wallet)",
            "expiration_ms = expiration_ms - 1",
            "slot = slot - 1",
        ]
        .map(|set| of_envelope(txid, set)),
    );
    let (_, signed) = desk.broadcast();
    desk.assert_refused(
        "SL011",
        &[
            "signature = null",
            "signature = signature || '\\x00'::bytea",
        ]
        .map(|set| of_envelope(signed, set)),
    );

    let dead = format!("fate = 'dead', first_block = ref_block_number, last_block = {TIP}");
    desk.scene.advance(60);
    desk.scene.follow();
    desk.assert_refused(
        "SL012",
        &[of_envelope(txid, &dead), included(txid, "SUCCESS")],
    );
    let paid = payment(txid, TIP, "SUCCESS");
    desk.assert_taken(&format!("{paid}; {}", included(txid, "SUCCESS")));
    desk.assert_refused("SL012", &[format!("{paid}; {}", included(txid, "REVERT"))]);

    desk.let_die(operation_id);
    desk.assert_refused(
        "SL011",
        &[
            of_envelope(txid, "fate = null, first_block = null, last_block = null"),
            of_envelope(txid, "last_block = last_block + 1"),
        ],
    );
}

#[test]
fn a_payment_or_a_block_by_hand_is_one_of_the_followed_chain() {
    let mut desk = Desk::open();
    let (_, txid) = desk.signing();
    desk.scene.advance(60);
    desk.scene.follow();
    desk.assert_taken(&payment(txid, TIP, "SUCCESS"));
    let foreign =
        payment(txid, TIP, "SUCCESS").replacen("select v.txid", "select sha256(v.txid)", 1);
    desk.assert_refused(
        "SL012",
        &[
            payment(txid, &format!("{TIP} + 1"), "SUCCESS"),
            payment(txid, "v.ref_block_number", "SUCCESS"),
            foreign,
        ],
    );
    let next = "insert into sluice.blocks (number, id, parent_id, timestamp_ms, root, transactions)
                select number + 1, sha256(id), id, timestamp_ms + 3000, root, 0
                  from sluice.blocks order by number desc limit 1";
    desk.assert_taken(next);
    desk.assert_refused(
        "SL021",
        &[
            next.replacen("number + 1", "number + 2", 1),
            next.replacen("sha256(id), id", "sha256(id), parent_id", 1),
            next.replacen("timestamp_ms + 3000", "timestamp_ms", 1),
        ],
    );
}

#[test]
fn no_login_of_a_role_writes_a_table_by_itself() {
    let desk = Desk::open();
    desk.confirmed();
    for role in [Role::App, Role::Runner, Role::Operator, Role::Auditor] {
        let mut client = desk.scene.database.as_role(role);
        for (table, column) in [
            ("withdrawals", "state"),
            ("events", "detail"),
            ("envelopes", "fate"),
            ("payments", "receipt"),
            ("blocks", "id"),
            ("assets", "depth"),
            ("wallets", "signer"),
            ("settings", "margin_blocks"),
        ] {
            for statement in [
                format!("delete from sluice.{table}"),
                format!("insert into sluice.{table} select * from sluice.{table}"),
                format!("update sluice.{table} set {column} = default"),
            ] {
                let refused = client.batch_execute(&statement).expect_err("no privilege");
                let code = refused.code().map(SqlState::code);
                assert_eq!(code, Some("42501"), "{role:?}: {statement}");
            }
        }
    }
}
