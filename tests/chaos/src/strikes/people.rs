//! What people do meanwhile: an operator pauses and resumes, changes the margin, cancels what may be cancelled, and resumes wallets that have
//! paused themselves.

use sluice_scenarios::Wallets;
use uuid::Uuid;

use crate::draw::Draw;
use crate::kind::Kind;
use crate::stage::{Stage, Undo};

/// How long a wallet that paused itself waits for its operator, in steps.
const OPERATOR_LOOKS_AFTER: u64 = 4;

/// Somebody does something.
pub fn strike(stage: &mut Stage, step: u64, kind: Kind, mut draw: Draw) {
    match kind {
        Kind::Paused => {
            let wallet = match draw.below(3) {
                0 => None,
                1 => Some(Wallets::hmac().to_string()),
                _ => Some(Wallets::local().to_string()),
            };
            let paused = operate(stage, "select from sluice.pause('chaos', $1)", &[&wallet]);
            if paused {
                stage.count(kind, 1);
            }
            stage.later(step + draw.between(3, 8), Undo::Resume { wallet });
        }
        Kind::MarginChanged => {
            let margin = draw.below(4).to_string();
            let changed = operate(
                stage,
                "select from sluice.set_setting('margin_blocks', $1, 'chaos')",
                &[&margin],
            );
            stage.count(kind, u64::from(changed));
        }
        Kind::Cancelled => {
            let newest = stage.newest_operations(12);
            if newest.is_empty() {
                return;
            }
            cancel(stage, newest[draw.index(newest.len())]);
        }
        other => unreachable!("{other} is nothing that people do"),
    }
}

/// Tries to cancel: at once where nothing built can pay, else a wish for when the chain has decided.
fn cancel(stage: &mut Stage, id: Uuid) {
    let Some(mut operator) = stage.operator() else {
        return;
    };
    let told = operator.query_one("select sluice.cancel($1, 'chaos')::text", &[&id]);
    match told {
        Ok(_) => {
            stage.cancelled.insert(id);
        }
        // Over already.
        Err(error) if code_of(&error) == "SL011" => {}
        // Not answered: it may have been.
        Err(_) => {
            stage.cancelled.insert(id);
            return;
        }
    }
    stage.count(Kind::Cancelled, 1);
}

fn code_of(error: &postgres::Error) -> String {
    error
        .code()
        .map_or_else(String::new, |code| code.code().to_owned())
}

fn operate(
    stage: &Stage,
    statement: &str,
    parameters: &[&(dyn postgres::types::ToSql + Sync)],
) -> bool {
    stage
        .operator()
        .is_some_and(|mut operator| operator.execute(statement, parameters).is_ok())
}

/// The operator resumes what was paused by hand; another step, where the server is away.
pub fn put_back(stage: &mut Stage, step: u64, undo: Undo) {
    let Undo::Resume { wallet } = undo else {
        unreachable!("{undo:?} is nothing that people do")
    };
    let in_force = stage.ask(|client| {
        client.query_one(
            "select exists (select from sluice.pauses where resumed_at is null and asset is null and wallet is not distinct from $1)",
            &[&wallet],
        )
    });
    if in_force.is_some_and(|row| !row.get::<_, bool>(0)) {
        return;
    }
    let resumed = operate(
        stage,
        "select from sluice.resume('chaos is over', $1)",
        &[&wallet],
    );
    if !resumed {
        stage.later(step.saturating_add(1), Undo::Resume { wallet });
    }
}

/// Wallets that paused themselves are resumed a little later: the network can pay again.
pub fn look(stage: &mut Stage, step: u64) {
    let paused = stage.ask(|client| {
        client.query(
            "select wallet from sluice.pauses where resumed_at is null and paused_by = 'sluice'",
            &[],
        )
    });
    for row in paused.unwrap_or_default() {
        let wallet: Option<String> = row.get(0);
        let undo = Undo::Resume { wallet };
        if !stage.undo.iter().any(|(_, waiting)| *waiting == undo) {
            stage.later(step.saturating_add(OPERATOR_LOOKS_AFTER), undo);
        }
    }
}

impl Stage {
    /// The withdrawals that were submitted last and are not over.
    pub fn newest_operations(&mut self, count: i64) -> Vec<Uuid> {
        let rows = self.ask(|client| {
            client.query(
                "select operation_id from sluice.withdrawals
                  where state not in ('confirmed', 'failed', 'rejected') order by created_at desc, operation_id limit $1",
                &[&count],
            )
        });
        rows.unwrap_or_default()
            .iter()
            .map(|row| row.get(0))
            .collect()
    }
}
