//! Faults of single sessions: a COMMIT whose answer never comes, a backend terminated; and what follows from dead and
//! standing runners, leases that run out.

use sluice_scenarios::proxy::Strike;

use crate::draw::Draw;
use crate::kind::Kind;
use crate::stage::Stage;

/// The runner's calls whose commits matter.
const COMMITTING_CALLS: [&str; 4] = [
    "claim_batch",
    "record_signatures",
    "record_broadcasts",
    "observe_blocks",
];

/// Strikes a session.
pub fn strike(stage: &mut Stage, kind: Kind, mut draw: Draw) {
    match kind {
        Kind::CutCommit => {
            let strike = draw.pick(&[Strike::CutAfter, Strike::CutAfter, Strike::CutBefore]);
            // One in three is a client's.
            if draw.below(3) == 0 {
                let client = draw.index(stage.clients.links().len());
                stage.clients.links()[client].strike_next_commit(strike, "sluice.");
                return;
            }
            // A runner may be left without a word, too: it gives up by itself.
            let strike = if draw.below(6) == 0 {
                Strike::HoldAnswer
            } else {
                strike
            };
            let victim = draw.index(stage.config.workers);
            let call = draw.pick(&COMMITTING_CALLS);
            stage.workers[victim]
                .link()
                .strike_next_commit(strike, call);
        }
        Kind::BackendTerminated => {
            let terminated = stage.ask(|client| {
                client.query(
                    "select pg_terminate_backend(s.pid)
                       from (select pid from pg_stat_activity
                              where usename in ('test_runner', 'test_app', 'chaos_runner')
                              order by backend_start, pid offset $1 limit $2) s",
                    &[
                        &i64::try_from(draw.below(6)).expect("a small number"),
                        &i64::try_from(draw.between(1, 3)).expect("a small number"),
                    ],
                )
            });
            let ended = terminated
                .unwrap_or_default()
                .iter()
                .filter(|row| row.get::<_, bool>(0))
                .count();
            stage.count(kind, ended as u64);
        }
        other => unreachable!("{other} strikes no session"),
    }
}

/// Counts the leases that have run out and that nobody has taken up yet: asked right after the clock has moved.
pub fn count_expired_leases(stage: &mut Stage) {
    let expired = stage.ask(|client| {
        client.query_one(
            "select count(*) from sluice.withdrawals where leased_by is not null and due_at < sluice.now()",
            &[],
        )
    });
    if let Some(row) = expired {
        let expired: i64 = row.get(0);
        stage.count(Kind::LeaseExpired, expired.unsigned_abs());
    }
}
