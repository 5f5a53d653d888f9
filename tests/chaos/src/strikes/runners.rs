//! Faults of runners: signals to living processes, and crash points.

use crate::draw::Draw;
use crate::kind::Kind;
use crate::stage::{Stage, Undo};
use crate::workers::Ended;

/// Where a runner can kill itself in ordinary work, in the words of the runner's `crash-points`.
const CRASH_POINTS: [&str; 13] = [
    "claim.before_commit",
    "claim.after_commit",
    "sign.before",
    "sign.after",
    "signatures.before_commit",
    "signatures.after_commit",
    "send.before",
    "send.after",
    "answers.before_commit",
    "answers.after_commit",
    "observe.before",
    "observe.before_commit",
    "observe.after_commit",
];

/// Strikes a runner.
pub fn strike(stage: &mut Stage, step: u64, kind: Kind, mut draw: Draw) {
    let victim = draw.index(stage.config.workers);
    match kind {
        Kind::Killed => {
            if stage.workers[victim].kill() {
                stage.count(kind, 1);
            }
            stage.later(step + draw.between(1, 4), Undo::Start(victim));
        }
        Kind::Terminated => {
            if stage.workers[victim].terminate() {
                stage.count(kind, 1);
            }
            stage.later(step + 1, Undo::Start(victim));
        }
        Kind::Frozen => {
            if stage.workers[victim].freeze() {
                stage.count(kind, 1);
            }
            // A lease is over after some steps; one freeze in four outlasts its envelopes.
            let length = if draw.below(4) == 0 {
                draw.between(40, 60)
            } else {
                draw.between(2, 12)
            };
            stage.later(step + length, Undo::Thaw(victim));
        }
        Kind::CrashPoint => {
            // A new process that will die by its own hand, at the nth time that it comes there.
            let point = draw.pick(&CRASH_POINTS);
            let passes = draw.below(4);
            stage.workers[victim].kill();
            let failpoints = format!("{point}={passes}*off->return(kill)");
            stage.workers[victim].start(&stage.database, Some(&failpoints));
        }
        other => unreachable!("{other} strikes no runner"),
    }
}

/// Replaces those who have ended by themselves.
pub fn look(stage: &mut Stage, step: u64) {
    for index in 0..stage.workers.len() {
        match stage.workers[index].ended() {
            None => {}
            Some(Ended::AtCrashPoint) => {
                stage.count(Kind::CrashPoint, 1);
                stage.later(step + 1, Undo::Start(index));
            }
            Some(Ended::Alarmed) => {
                // As its alarm says: another node.
                stage.count(Kind::FollowerAlarmed, 1);
                stage.workers[index].turn_to_the_next_node();
                stage.later(step + 1, Undo::Start(index));
            }
            Some(Ended::Unasked) => {
                let who = stage.workers[index].worker_id();
                stage
                    .remarks
                    .push(format!("{who} ended and nobody asked it to"));
                stage.later(step + 1, Undo::Start(index));
            }
        }
    }
}
