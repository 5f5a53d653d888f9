//! The legs of the walk: what leads a runner to which of its crash points.

use sluice_runner::crash::Point;

/// What a runner does when it comes to a crash point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// It claims, signs, sends and records: a withdrawal is all it takes.
    Work,
    /// It puts off what it cannot sign: it must know no signer.
    Postpone,
    /// It reads blocks: there must be new ones, best those that hold what was sent.
    Observe,
    /// It gives back what it holds: it must be told to end while it holds something.
    Release,
}

/// The leg on which a point lies. A new point makes the compiler ask.
pub fn leg_of(point: Point) -> Leg {
    match point {
        Point::ClaimBeforeCommit
        | Point::ClaimAfterCommit
        | Point::SignBefore
        | Point::SignAfter
        | Point::SignaturesBeforeCommit
        | Point::SignaturesAfterCommit
        | Point::SendBefore
        | Point::SendAfter
        | Point::AnswersBeforeCommit
        | Point::AnswersAfterCommit => Leg::Work,
        Point::PostponeBeforeCommit | Point::PostponeAfterCommit => Leg::Postpone,
        Point::ObserveBefore | Point::ObserveBeforeCommit | Point::ObserveAfterCommit => {
            Leg::Observe
        }
        Point::ReleaseBeforeCommit | Point::ReleaseAfterCommit => Leg::Release,
    }
}

/// Whether a runner that stands still there holds a transaction open, and with it locks.
pub fn holds_a_transaction(point: Point) -> bool {
    match point {
        Point::ClaimBeforeCommit
        | Point::SignaturesBeforeCommit
        | Point::AnswersBeforeCommit
        | Point::PostponeBeforeCommit
        | Point::ObserveBeforeCommit
        | Point::ReleaseBeforeCommit => true,
        Point::ClaimAfterCommit
        | Point::SignBefore
        | Point::SignAfter
        | Point::SignaturesAfterCommit
        | Point::SendBefore
        | Point::SendAfter
        | Point::AnswersAfterCommit
        | Point::PostponeAfterCommit
        | Point::ObserveBefore
        | Point::ObserveAfterCommit
        | Point::ReleaseAfterCommit => false,
    }
}
