//! Bytes that nobody meant: random ones, and blocks and transactions with a bit flipped, a byte lost or their end cut off. Whatever
//! the bytes, a function answers or refuses by name, and no damaged block is followed whose transactions are not those that its
//! header stands for. The numbers come from a seed, which a failure shows.

use super::scene::*;
use pgrx::prelude::*;
use std::collections::BTreeMap;

const SEED: u64 = 0x5eed_0f51_u64;

/// xorshift64*: enough to be no pattern, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// The bytes with something wrong somewhere.
    fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        let at = self.below(bytes.len());
        match self.below(6) {
            0 => damaged[at] ^= 1 << self.below(8),
            1 => damaged[at] = self.next() as u8,
            2 => damaged.truncate(at),
            3 => {
                damaged.remove(at);
            }
            4 => damaged.insert(at, self.next() as u8),
            _ => damaged.extend_from_slice(&bytes[at..]),
        }
        damaged
    }
}

/// What a call with each of these inputs came to: how many succeeded, by the empty text, and how many met which SQLSTATE. Each is
/// taken back. `$1` is the input in the call.
fn outcomes(call: &str, inputs: &[Vec<u8>]) -> BTreeMap<String, usize> {
    run(
        "create or replace function pg_temp.outcome(call text, input bytea) returns text language plpgsql as $$
         declare v_state text;
         begin
           execute call using input;
           raise exception using errcode = 'TAKEN';
         exception when others then
           get stacked diagnostics v_state = returned_sqlstate;
           return case v_state when 'TAKEN' then '' else v_state end;
         end $$",
    );
    let mut outcomes = BTreeMap::new();
    for input in inputs {
        let state = Spi::get_one_with_args::<String>(
            "select pg_temp.outcome($1, $2)",
            &[call.into(), input.as_slice().into()],
        );
        let state = state.expect("the call is tried").unwrap_or_default();
        *outcomes.entry(state).or_default() += 1;
    }
    outcomes
}

fn only(outcomes: &BTreeMap<String, usize>, states: &[&str]) {
    for state in outcomes.keys() {
        assert!(
            states.contains(&state.as_str()),
            "{outcomes:?}, from seed {SEED:#x}"
        );
    }
}

/// Random bytes of all lengths up to a few hundred; every other one begins as a message would.
fn noise(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let length = random.below(300);
            let mut bytes = random.bytes(length);
            if number % 2 == 0 {
                let wrapped = wire::bytes(random.below(6) as u64, &bytes);
                bytes = [wrapped, wire::bytes(2, &random.bytes(40))].concat();
            }
            bytes
        })
        .collect()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn noise_is_no_block_and_no_transaction() {
        alone();
        let mut random = Random(SEED);
        let noise = noise(&mut random, 600);
        let id = format!("'\\x{GENESIS}'");
        only(
            &outcomes("select sluice.decode_block($1)", &noise),
            &["SL020"],
        );
        only(
            &outcomes("select sluice.decode_raw_data($1)", &noise),
            &["SL005"],
        );
        only(
            &outcomes("select sluice.address_text($1)", &noise),
            &["SL002"],
        );
        only(
            &outcomes(&format!("select sluice.follow_from($1, {id})"), &noise),
            &["SL020"],
        );
        // Whatever the bytes are, they have a txid and can be wrapped.
        only(
            &outcomes(
                "select sluice.txid($1), sluice.signed_transaction($1, $1)",
                &noise,
            ),
            &[""],
        );
        let _scene = Scene::open();
        only(
            &outcomes("select sluice.observe_blocks('n', array[$1])", &noise),
            &["SL020"],
        );
        only(
            &outcomes("select sluice.follow_from($1, $1)", &noise),
            &["SL005", "SL022"],
        );
        only(&outcomes("select sluice.fate($1)", &noise), &[""]);
    }

    #[pg_test]
    fn a_damaged_transaction_is_read_or_refused_by_name() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let mut random = Random(SEED);
        let mut damaged: Vec<Vec<u8>> =
            (0..2_000).map(|_| random.damaged(&task.raw_data)).collect();
        damaged.extend((0..task.raw_data.len()).map(|end| task.raw_data[..end].to_vec()));
        let named = b"type.googleapis.com";
        let at = task
            .raw_data
            .windows(named.len())
            .position(|part| part == named);
        damaged.push(task.raw_data.clone());
        let with_zero = damaged.last_mut().expect("it was pushed");
        with_zero[at.expect("a contract's type is named")] = 0;
        only(
            &outcomes(
                "select sluice.decode_raw_data($1)",
                &damaged[damaged.len() - 1..],
            ),
            &["SL005"],
        );
        let found = outcomes("select sluice.decode_raw_data($1)", &damaged);
        only(&found, &["", "SL005"]);
        assert_eq!(found.len(), 2, "some still say something: {found:?}");
    }

    #[pg_test]
    fn no_damage_to_a_blocks_transactions_is_followed() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(3);
        let transactions = [
            in_block(&[1, 2, 3], SUCCESS),
            in_block(&task.raw_data, SUCCESS),
            in_block(&task.raw_data[1..], REVERT),
        ];
        let paying = scene.next(3000, &transactions);
        let header = paying.bytes.len() - scene.next(3000, &[]).bytes.len();
        let mut random = Random(SEED);
        // What is followed files the payment, or the division fails.
        let observe = "select 1 / count(*) from sluice.observe_blocks('n', array[$1])";

        let (list, rest) = paying.bytes.split_at(header);
        let in_the_list: Vec<Vec<u8>> = (0..1_000)
            .map(|_| [random.damaged(list), rest.to_vec()].concat())
            .filter(|bytes| *bytes != paying.bytes)
            .collect();
        // Bytes after the list may make fields that no block has, and say nothing.
        let found = outcomes(observe, &in_the_list);
        only(&found, &["", "SL020"]);
        assert!(found["SL020"] > 950, "{found:?}");
        let cut: Vec<Vec<u8>> = (0..paying.bytes.len())
            .map(|end| paying.bytes[..end].to_vec())
            .collect();
        only(&outcomes(observe, &cut), &["SL020"]);

        // In the header a bit may be flipped that the database cannot judge, such as one of the witness's signature. The list still
        // stands.
        let in_the_header: Vec<Vec<u8>> = (0..1_000)
            .map(|_| [list.to_vec(), random.damaged(rest)].concat())
            .collect();
        let found = outcomes(observe, &in_the_header);
        only(&found, &["", "SL020", "SL021"]);
        assert_eq!(found.len(), 3, "each happens: {found:?}");

        assert_eq!(
            scene.state(&task.operation_id),
            "broadcast",
            "all of it was taken back"
        );
        run(&format!(
            "select sluice.observe_blocks('n', array[{}])",
            literal(&paying.bytes)
        ));
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }
}
