//! Somebody who wants to be paid twice, against one database, for hundreds of moves: workers that stall, forget, report late or
//! never; a chain that takes any bytes that were ever handed out, as late as its own rules let it, and sometimes fails them; nodes
//! that answer whatever they like; operators that pause and cancel. After every move no withdrawal is paid more than once, and in
//! the end the database and the chain agree to the unit.

use super::scene::*;
use pgrx::prelude::*;
use std::collections::{BTreeMap, HashSet};

/// Numbers that look random and are the same for the same seed (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % limit
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// What the chain may still hold: bytes that a claim handed out.
#[derive(Clone)]
struct Handed {
    operation_id: String,
    raw_data: Vec<u8>,
    reference: i64,
    expiration: i64,
}

struct Game {
    seed: u64,
    scene: Scene,
    dice: Dice,
    submitted: u32,
    /// By txid: all that was ever handed out and is not in a block.
    handed: BTreeMap<Vec<u8>, Handed>,
    /// Tasks that somebody still holds, whatever has become of them.
    held: Vec<Task>,
    /// How often the chain paid each withdrawal.
    paid: BTreeMap<String, u32>,
    included: HashSet<Vec<u8>>,
}

impl Game {
    fn new(seed: u64) -> Self {
        let scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac', live_window => 3)"
        ));
        Self {
            seed,
            scene,
            dice: Dice(seed),
            submitted: 0,
            handed: BTreeMap::new(),
            held: vec![],
            paid: BTreeMap::new(),
            included: HashSet::new(),
        }
    }

    fn note(&mut self, tasks: &[Task]) {
        for task in tasks {
            let facts = one(&format!(
                "select ref_block_number || ' ' || expiration_ms from sluice.envelopes where txid = {}",
                literal(&task.txid)
            ))
            .expect("what is handed out is on file");
            let (reference, expiration) = facts.split_once(' ').expect("there are two");
            self.handed.insert(
                task.txid.clone(),
                Handed {
                    operation_id: task.operation_id.clone(),
                    raw_data: task.raw_data.clone(),
                    reference: reference.parse().expect("a number"),
                    expiration: expiration.parse().expect("a number"),
                },
            );
            self.held.push(task.clone());
        }
        self.handed.retain(|txid, _| !self.included.contains(txid));
    }

    fn claim(&mut self) {
        let size = 1 + self.dice.below(5);
        let worker = format!("w{}", self.dice.below(3));
        let tasks = tasks_of(&format!(
            "select * from sluice.claim_batch('{worker}', {size})"
        ));
        self.note(&tasks);
    }

    /// Somebody reports on what it once held.
    fn report(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let which = self.dice.below(self.held.len());
        let task = self.held[which].clone();
        let one_task = std::slice::from_ref(&task);
        match self.dice.below(6) {
            0..=2 if task.action == "sign" => {
                let to_send = self.scene.sign("w", one_task);
                let to_send: Vec<Task> = to_send
                    .into_iter()
                    .filter(|task| task.action == "broadcast")
                    .collect();
                self.held.extend(to_send);
            }
            0 | 1 => {
                self.scene.answer("w", one_task, "SUCCESS");
            }
            2 | 3 => {
                let codes = [
                    "SIGERROR",
                    "DUP_TRANSACTION_ERROR",
                    "TRANSACTION_EXPIRATION_ERROR",
                    "NO_ANSWER",
                    "CONTRACT_VALIDATE_ERROR",
                    "SERVER_BUSY",
                ];
                let code = codes[self.dice.below(codes.len())];
                self.scene.answer("w", one_task, code);
            }
            4 => {
                run(&format!(
                    "select sluice.release('w{}', array['{}']::uuid[], array[{}]::bigint[])",
                    self.dice.below(3),
                    task.operation_id,
                    task.fencing_token
                ));
            }
            _ => {
                // It forces its luck: any step of the chart, by hand. It is refused, or it lands on nothing, or it harms nobody.
                let steps = [
                    ("signing", "failed"),
                    ("broadcast", "failed"),
                    ("broadcasting", "signing"),
                    ("broadcasting", "broadcast"),
                    ("signing", "signing"),
                ];
                let (from, to) = steps[self.dice.below(steps.len())];
                let _ = sqlstate(&format!(
                    "select sluice.fenced_cas('{}', {}, '{from}', '{to}', 'w')",
                    task.operation_id, task.fencing_token
                ));
            }
        }
        if self.dice.one_in(3) {
            self.held.swap_remove(which);
        }
    }

    /// A block or several, and among them whatever the chain still may hold: a transaction whose reference lies before the block, and
    /// whose expiration lies after the block's parent.
    fn blocks(&mut self) {
        let mut batch = vec![];
        let mut tip = self.scene.tip.clone();
        for _ in 0..=self.dice.below(3) {
            let later = [3000, 3000, 6000, 30_000, 75_000, 240_000][self.dice.below(6)];
            let mut transactions = vec![];
            let may: Vec<Vec<u8>> = self
                .handed
                .iter()
                .filter(|(_, handed)| {
                    handed.reference < tip.number + 1 && tip.time < handed.expiration
                })
                .map(|(txid, _)| txid.clone())
                .collect();
            for txid in may {
                let handed = self.handed[&txid].clone();
                // Best of all at the last moment, when the block itself is past the expiration.
                let last_chance = tip.time + later >= handed.expiration;
                if !self.dice.one_in(if last_chance { 2 } else { 12 }) {
                    continue;
                }
                let result =
                    [SUCCESS, SUCCESS, SUCCESS, OUT_OF_ENERGY, 11, REVERT][self.dice.below(6)];
                transactions.push(in_block(&handed.raw_data, result));
                if result == SUCCESS {
                    *self.paid.entry(handed.operation_id.clone()).or_default() += 1;
                }
                self.handed.remove(&txid);
                self.included.insert(txid);
            }
            tip = block(tip.number + 1, &tip.id, tip.time + later, &transactions);
            batch.push(tip.clone());
        }
        self.scene.observe(&batch);
    }

    fn people(&mut self) {
        match self.dice.below(4) {
            0 => run("select sluice.pause('somebody is nervous')"),
            1 => run(
                "update sluice.pauses set resumed_at = sluice.now(), resumed_tip = (select max(number) from sluice.blocks) where resumed_at is null",
            ),
            _ if self.submitted > 0 => {
                let number = 1 + self.dice.below(self.submitted as usize);
                let _ = sqlstate(&format!(
                    "select sluice.cancel('{}', 'somebody is nervous')",
                    id(number as u32)
                ));
            }
            _ => {}
        }
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0 if self.submitted < 25 => {
                self.submitted += 1;
                self.scene.submit(self.submitted);
            }
            0..=3 => self.claim(),
            4..=7 => self.report(),
            8 | 9 => self.blocks(),
            10 => {
                let seconds = [0, 5, 31, 80][self.dice.below(4)];
                self.scene.clock(seconds);
            }
            _ => self.people(),
        }
    }

    fn nobody_is_paid_twice(&self, moves: u32) {
        for (operation_id, times) in &self.paid {
            assert!(
                *times <= 1,
                "seed {}, move {moves}: {operation_id} was paid {times} times",
                self.seed
            );
        }
    }

    /// Lets everything come to its end: nobody cheats any more, and what can still land lands or dies.
    fn settle(&mut self) {
        run(
            "update sluice.pauses set resumed_at = sluice.now(), resumed_tip = (select max(number) from sluice.blocks) where resumed_at is null",
        );
        for _ in 0..200 {
            let live = count(
                "select count(*) from sluice.withdrawals where state not in ('confirmed', 'failed', 'rejected')",
            );
            if live == 0 {
                return;
            }
            let tasks = self.scene.claim("w");
            self.note(&tasks);
            let (to_sign, mut to_send): (Vec<Task>, Vec<Task>) =
                tasks.into_iter().partition(|task| task.action == "sign");
            to_send.extend(
                self.scene
                    .sign("w", &to_sign)
                    .into_iter()
                    .filter(|task| task.action == "broadcast"),
            );
            self.scene.answer("w", &to_send, "SUCCESS");
            let transactions: Vec<_> = to_send
                .iter()
                .filter(|task| self.handed.contains_key(&task.txid))
                .map(|task| {
                    *self.paid.entry(task.operation_id.clone()).or_default() += 1;
                    in_block(&task.raw_data, SUCCESS)
                })
                .collect();
            for task in &to_send {
                self.handed.remove(&task.txid);
                self.included.insert(task.txid.clone());
            }
            self.scene.follow(3000, &transactions);
            self.scene.pass(120);
        }
        let rest = one(
            "select string_agg(concat_ws(' ', operation_id, state, due_at, held_by, last_error), '; ') from sluice.withdrawals where state not in ('confirmed', 'failed', 'rejected')",
        );
        unreachable!("seed {}: these never end: {rest:?}", self.seed);
    }

    fn database_and_chain_agree(&self) {
        let confirmed = one("select string_agg(operation_id::text, ' ' order by operation_id) from sluice.withdrawals where state = 'confirmed'").unwrap_or_default();
        let paid: Vec<&str> = self.paid.keys().map(String::as_str).collect();
        assert_eq!(confirmed, paid.join(" "), "seed {}", self.seed);
        assert_eq!(
            count(
                "select coalesce(sum(amount_units), 0) from sluice.withdrawals where state = 'confirmed'"
            ),
            count(
                "select coalesce(sum(amount_units), 0) from sluice.payments where receipt = 'SUCCESS'"
            ),
            "seed {}",
            self.seed
        );
        assert_eq!(
            count("select count(*) from sluice.unsettled"),
            0,
            "seed {}",
            self.seed
        );
        let shown = one(
            "select string_agg(state || ' ' || withdrawals, ' ' order by state) from sluice.overview where asset is not null",
        );
        let stands = one(
            "select string_agg(w.state || ' ' || w.n, ' ' order by w.state) from (select state, count(*) n from sluice.withdrawals group by state) w",
        );
        assert_eq!(shown, stands, "seed {}", self.seed);
        assert_eq!(broken(), "", "seed {}", self.seed);
    }
}

fn play(seed: u64, moves: u32) {
    play_with(seed, moves, 0, 0);
}

/// The same, where a success asks for a depth and a death for a margin.
fn play_with(seed: u64, moves: u32, depth: u32, margin: u32) {
    let mut game = Game::new(seed);
    run(&format!("update sluice.assets set depth = {depth}"));
    run(&format!(
        "select sluice.set_setting('margin_blocks', '{margin}', 'as the test has it')"
    ));
    for number in 1..=moves {
        game.step();
        game.nobody_is_paid_twice(number);
        if number % 50 == 0 {
            assert_eq!(broken(), "", "seed {seed}, move {number}");
        }
    }
    game.settle();
    game.nobody_is_paid_twice(moves + 1);
    game.database_and_chain_agree();
    // Whoever cheated, cheated in vain: something was paid, and something was spent and rebuilt.
    assert!(!game.paid.is_empty(), "seed {seed}");
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn nobody_is_paid_twice_by_any_of_600_moves_of_seed_1() {
        play(1, 600);
    }

    #[pg_test]
    fn nobody_is_paid_twice_by_any_of_600_moves_of_seed_2() {
        play(2, 600);
    }

    #[pg_test]
    fn nobody_is_paid_twice_by_any_of_600_moves_of_seed_3() {
        play(3, 600);
    }

    #[pg_test]
    fn nobody_is_paid_twice_by_any_of_600_moves_of_seed_4() {
        play(4, 600);
    }

    #[pg_test]
    fn nobody_is_paid_twice_where_a_success_asks_for_depth() {
        play_with(5, 600, 4, 0);
    }

    #[pg_test]
    fn nobody_is_paid_twice_where_a_death_asks_for_a_margin() {
        play_with(6, 600, 0, 3);
    }

    #[pg_test]
    fn nobody_is_paid_twice_where_both_ask_for_more() {
        play_with(7, 600, 7, 2);
    }
}
