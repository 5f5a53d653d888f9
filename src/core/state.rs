//! The states of a withdrawal and the one table of the steps between them. The guard, the SQL functions, the diagram in
//! the README and the tests all read this table; there is no second copy.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// Where a withdrawal stands. The order is the order of the chart and of the SQL enum `sluice.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Taken in; nothing is decided yet.
    Requested,
    /// Checked and routed; nothing is built yet.
    Validated,
    /// An envelope is, or is to be, built; its digest may be with a signer.
    Signing,
    /// The envelope's signature is on file; no byte has left.
    Signed,
    /// Somebody committed to sending; bytes may have left.
    Broadcasting,
    /// A node said that it took the bytes.
    Broadcast,
    /// A solid block paid it. Terminal.
    Confirmed,
    /// It can no longer be paid by anything that was built. Terminal.
    Failed,
    /// It was refused before anything was built. Terminal.
    Rejected,
}

/// A name that is no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a state of a withdrawal")]
pub struct UnknownState(String);

/// What must be on file before a step may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Nothing beyond the step itself.
    None,
    /// Every envelope of the withdrawal is dead, or included with a failed result (`*` in the chart).
    AllSpent,
    /// One of its envelopes is included with SUCCESS, at the asset's depth (`**` in the chart).
    Paid,
}

impl Proof {
    /// The mark that the chart gives the step.
    #[must_use]
    pub const fn stars(self) -> &'static str {
        match self {
            Self::None => "",
            Self::AllSpent => "*",
            Self::Paid => "**",
        }
    }
}

/// One row of the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The state left.
    pub from: State,
    /// The state reached.
    pub to: State,
    /// What must be on file.
    pub proof: Proof,
}

const fn step(from: State, to: State, proof: Proof) -> Transition {
    Transition { from, to, proof }
}

/// The chart.
pub const TRANSITIONS: [Transition; 15] = {
    use Proof::{AllSpent, None, Paid};
    use State::{
        Broadcast, Broadcasting, Confirmed, Failed, Rejected, Requested, Signed, Signing, Validated,
    };
    [
        step(Requested, Validated, None),
        step(Requested, Rejected, None),
        step(Validated, Signing, None),
        step(Validated, Rejected, None),
        step(Signing, Signed, None),
        step(Signing, Signing, AllSpent),
        step(Signing, Failed, AllSpent),
        step(Signed, Broadcasting, None),
        step(Signed, Signing, AllSpent),
        step(Broadcasting, Broadcast, None),
        step(Broadcasting, Signing, AllSpent),
        step(Broadcasting, Failed, AllSpent),
        step(Broadcast, Confirmed, Paid),
        step(Broadcast, Signing, AllSpent),
        step(Broadcast, Failed, AllSpent),
    ]
};

/// The chart as a Mermaid state diagram: the picture in the README is this text.
#[must_use]
pub fn diagram() -> String {
    let mut lines = vec![
        "stateDiagram-v2".to_owned(),
        "    [*] --> requested".to_owned(),
    ];
    for row in TRANSITIONS {
        let stars = row.proof.stars();
        let label = if stars.is_empty() {
            String::new()
        } else {
            format!(": {stars}")
        };
        lines.push(format!("    {} --> {}{label}", row.from, row.to));
    }
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        lines.push(format!("    {state} --> [*]"));
    }
    lines.join("\n")
}

impl State {
    /// Every state, in the chart's order.
    pub const ALL: [Self; 9] = [
        Self::Requested,
        Self::Validated,
        Self::Signing,
        Self::Signed,
        Self::Broadcasting,
        Self::Broadcast,
        Self::Confirmed,
        Self::Failed,
        Self::Rejected,
    ];

    /// The label that SQL, logs and documents use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Validated => "validated",
            Self::Signing => "signing",
            Self::Signed => "signed",
            Self::Broadcasting => "broadcasting",
            Self::Broadcast => "broadcast",
            Self::Confirmed => "confirmed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }

    /// Whether the withdrawal is over: such a row never changes again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Confirmed | Self::Failed | Self::Rejected => true,
            Self::Requested
            | Self::Validated
            | Self::Signing
            | Self::Signed
            | Self::Broadcasting
            | Self::Broadcast => false,
        }
    }

    /// The chart's row for this step, if there is one.
    #[must_use]
    pub fn transition_to(self, to: Self) -> Option<Transition> {
        TRANSITIONS
            .into_iter()
            .find(|row| row.from == self && row.to == to)
    }

    /// The shortest legal path from here to `to`, without the state left and with the one reached; `None` where the chart
    /// has no way. A block that pays a withdrawal still in `signing` walks it through all the states between.
    #[must_use]
    pub fn path_to(self, to: Self) -> Option<Vec<Self>> {
        let mut queue = VecDeque::from([vec![self]]);
        let mut seen = vec![];
        while let Some(walked) = queue.pop_front() {
            let here = walked[walked.len() - 1];
            for row in TRANSITIONS.into_iter().filter(|row| row.from == here) {
                let mut longer = walked.clone();
                longer.push(row.to);
                if row.to == to {
                    return Some(longer.split_off(1));
                }
                if !seen.contains(&row.to) {
                    seen.push(row.to);
                    queue.push_back(longer);
                }
            }
        }
        None
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.name() == text)
            .ok_or_else(|| UnknownState(text.chars().take(40).collect()))
    }
}

/// Why a walk through the chart was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The row was terminal already.
    #[error("a withdrawal that is {0} never changes again")]
    Terminal(State),
    /// Two neighbours in the path are no step of the chart.
    #[error("{from} -> {to} is no step of the chart")]
    NoSuchStep {
        /// The state left.
        from: State,
        /// The state that cannot be reached from it.
        to: State,
    },
    /// The path does not end where the row is to stand.
    #[error("the path ends in {named}, but the row is to be {reached}")]
    EndsElsewhere {
        /// Where the path ends.
        named: State,
        /// What the row says.
        reached: State,
    },
}

/// What one write to a withdrawal's row does to its log: the entries it adds, in order. An entry whose two states are
/// equal and live is a remark (the first differing answer of a node), except `signing -> signing`, which is a rebuild.
///
/// `path` is what the writer named; without one, a change of state is one step and anything else adds nothing.
pub fn judge_path(
    from: State,
    to: State,
    path: Option<&[State]>,
) -> Result<Vec<Transition>, PathError> {
    if from.is_terminal() {
        return Err(PathError::Terminal(from));
    }
    let named: Vec<State> = match path {
        Some(path) => path.to_vec(),
        None if from == to => vec![],
        None => vec![to],
    };
    let mut here = from;
    let mut steps = Vec::with_capacity(named.len());
    for next in named {
        let row = match here.transition_to(next) {
            Some(row) => row,
            None if here == next && !here.is_terminal() => step(here, next, Proof::None),
            None => {
                return Err(PathError::NoSuchStep {
                    from: here,
                    to: next,
                });
            }
        };
        steps.push(row);
        here = next;
    }
    if here != to {
        return Err(PathError::EndsElsewhere {
            named: here,
            reached: to,
        });
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_in_the_readme_is_the_chart() {
        let readme = include_str!("../../README.md");
        assert!(
            readme.contains(&diagram()),
            "put this into README.md:\n{}",
            diagram()
        );
    }

    #[test]
    fn every_state_has_a_name_that_leads_back_to_it() {
        for state in State::ALL {
            assert_eq!(state.name().parse(), Ok(state));
        }
        assert!("Requested".parse::<State>().is_err());
    }

    #[test]
    fn no_step_leaves_a_terminal_state_and_every_live_state_has_a_way_to_one() {
        for state in State::ALL {
            let leaves = TRANSITIONS.iter().any(|row| row.from == state);
            assert_eq!(leaves, !state.is_terminal(), "{state}");
            if !state.is_terminal() {
                assert!(state.path_to(State::Confirmed).is_some(), "{state}");
            }
        }
    }

    #[test]
    fn every_step_back_and_every_failure_asks_for_a_proof() {
        for row in TRANSITIONS {
            let may_have_been_sent = !matches!(row.from, State::Requested | State::Validated);
            let ends_or_rebuilds = matches!(row.to, State::Signing | State::Failed);
            if may_have_been_sent && ends_or_rebuilds {
                assert_eq!(row.proof, Proof::AllSpent, "{row:?}");
            }
            assert_eq!(
                row.to == State::Confirmed,
                row.proof == Proof::Paid,
                "{row:?}"
            );
        }
    }

    #[test]
    fn a_block_walks_an_unsigned_withdrawal_through_every_state_between() {
        use State::{Broadcast, Broadcasting, Confirmed, Failed, Signed, Signing};
        assert_eq!(
            Signing.path_to(Confirmed),
            Some(vec![Signed, Broadcasting, Broadcast, Confirmed])
        );
        assert_eq!(
            Broadcasting.path_to(Confirmed),
            Some(vec![Broadcast, Confirmed])
        );
        assert_eq!(Signed.path_to(Failed), Some(vec![Broadcasting, Failed]));
        assert_eq!(Signing.path_to(Signing), Some(vec![Signing]));
        assert_eq!(Confirmed.path_to(Failed), None);
    }

    #[test]
    fn a_path_is_judged_step_by_step_and_must_end_where_the_row_stands() {
        use State::{
            Broadcast, Broadcasting, Confirmed, Rejected, Requested, Signed, Signing, Validated,
        };
        assert!(judge_path(Requested, Signing, None).is_err());
        assert_eq!(
            judge_path(Requested, Signing, Some(&[Validated, Signing])).map(|s| s.len()),
            Ok(2)
        );
        assert!(judge_path(Requested, Signing, Some(&[Validated])).is_err());
        assert_eq!(judge_path(Broadcasting, Broadcasting, None), Ok(vec![]));
        assert_eq!(
            judge_path(Broadcasting, Broadcasting, Some(&[Broadcasting])).map(|s| s.len()),
            Ok(1)
        );
        assert_eq!(
            judge_path(Signing, Signing, Some(&[Signing])).map(|s| s[0].proof),
            Ok(Proof::AllSpent),
            "a rebuild is no remark"
        );
        assert_eq!(
            judge_path(Rejected, Rejected, None),
            Err(PathError::Terminal(Rejected))
        );
        assert!(
            judge_path(
                Signed,
                Confirmed,
                Some(&[Broadcasting, Broadcast, Confirmed])
            )
            .is_ok()
        );
    }
}
