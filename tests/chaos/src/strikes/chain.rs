//! Faults of the chain and of a node's place in it: reorganisations below the solid head, missed slots, stalled solidity,
//! nodes that are cut off.

use std::collections::{HashMap, HashSet};

use sluice_mock_node::{Connection, ForkPlan, NodeSettings, Outcome};

use crate::draw::Draw;
use crate::kind::Kind;
use crate::stage::{Stage, Undo};

/// The deepest that the chain is reorganised; java-tron's depth to solidity is 19.
const DEEPEST: i64 = 12;

/// Strikes the chain, or a node.
pub fn strike(stage: &mut Stage, step: u64, kind: Kind, mut draw: Draw) {
    match kind {
        Kind::Reorganised => reorganise(stage, draw),
        Kind::MissedSlots => {
            let slots = u32::try_from(draw.between(1, 3)).expect("a small number");
            stage.network.miss(slots);
            stage.count(kind, 1);
        }
        Kind::Stalled => {
            stage.network.stall_solidity(true);
            stage.count(kind, 1);
            stage.later(step + draw.between(5, 12), Undo::Solidity);
        }
        Kind::CutOff => {
            let node = draw.index(stage.network.urls().len());
            let how = draw.below(5);
            let changed = stage.network.change_node(node, |settings| match how {
                0 => settings.connection = Connection::Alone,
                1 => settings.connection = Connection::Unsynced,
                2 => settings.gossip = false,
                3 => settings.frozen = true,
                _ => settings.trx_cache = true,
            });
            changed.expect("the node is there");
            stage.count(kind, 1);
            stage.later(step + draw.between(4, 12), Undo::Node(node));
        }
        other => unreachable!("{other} strikes no chain"),
    }
}

fn reorganise(stage: &mut Stage, mut draw: Draw) {
    let status = stage.network.status();
    let deepest = (status.head - status.solid).min(DEEPEST);
    if deepest < 1 {
        return;
    }
    let depth = draw.between(1, deepest.unsigned_abs());
    let depth = u32::try_from(depth).expect("a small number");
    let blocks = depth + u32::try_from(draw.between(0, 2)).expect("a small number");
    let missed = u32::try_from(draw.below(3)).expect("a small number");
    let above = status.head - i64::from(depth);
    let mut plan = ForkPlan {
        drop: HashSet::new(),
        place: HashMap::new(),
        results: HashMap::new(),
    };
    // Of the transactions that lose their block, some are lost, some move, some end otherwise.
    for moved in stage.network.transactions() {
        if moved.block.is_none_or(|block| block <= above) {
            continue;
        }
        match draw.below(6) {
            0 => {
                plan.drop.insert(moved.txid);
            }
            1 => {
                let place = draw.below(u64::from(blocks));
                plan.place
                    .insert(moved.txid, i64::try_from(place).expect("a small number"));
            }
            2 => {
                plan.results.insert(moved.txid, Outcome::SUCCESS);
            }
            3 if draw.below(4) == 0 => {
                let ends = Outcome::parse("OUT_OF_ENERGY").expect("a result");
                plan.results.insert(moved.txid, ends);
            }
            _ => {}
        }
    }
    let done = stage.network.fork(depth, blocks, missed, plan, &[]);
    done.expect("a fork below the solid head can be made");
    stage.count(Kind::Reorganised, 1);
}

/// Puts back what is of the chain's.
pub fn put_back(stage: &mut Stage, undo: &Undo) {
    match undo {
        Undo::Solidity => stage.network.stall_solidity(false),
        Undo::Node(node) => stage
            .network
            .change_node(*node, |settings| *settings = NodeSettings::default())
            .expect("the node is there"),
        other => unreachable!("{other:?} is not the chain's"),
    }
}
