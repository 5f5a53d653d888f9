//! The judge: seven invariants, from what the clients were told, what the tables hold, and the network's own record. It shares
//! no code with the product's SQL, asks none of its functions (but `sluice.verify()`, whose word is heard last), and
//! believes no answer of a node.

mod evidence;
mod ledger;
mod log;
pub mod materials;
mod money;
mod rows;

use std::fmt;

use uuid::Uuid;

pub use materials::Materials;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every withdrawal is over, or parked with a cause that the faults explain.
    Liveness,
    /// At most one success on chain for each.
    AtMostOnce,
    /// The chain's totals are the confirmed totals.
    Totals,
    /// One row for each id, with the meaning first acknowledged.
    OneRow,
    /// Each log is whole, legal, and ends where its row stands.
    LegalLog,
    /// Every rebuild and every failure of what was built carries evidence that holds.
    Evidence,
    /// Every account has what deposits and confirmed withdrawals leave it, and holds are of what is under way.
    Ledger,
    /// What `sluice.verify()` says of itself.
    Verify,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Liveness => "I1 liveness",
            Self::AtMostOnce => "I2 at most one success",
            Self::Totals => "I3 totals",
            Self::OneRow => "I4 one row per id",
            Self::LegalLog => "I5 legal log",
            Self::Evidence => "I6 evidence",
            Self::Ledger => "I7 ledger",
            Self::Verify => "sluice.verify()",
        })
    }
}

/// An invariant that does not hold.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// Of which withdrawal, where it is one's.
    pub operation_id: Option<Uuid>,
    /// What is so, and should not be.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.invariant)?;
        if let Some(id) = self.operation_id {
            write!(f, "{id}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// Results that decide nothing, and a number that nobody has named is another.
const SAYS_NOTHING: [&str; 3] = ["ABSENT", "DEFAULT", "UNKNOWN"];

/// Whether the chain's word for how a transaction ended says nothing.
fn says_nothing(result: &str) -> bool {
    SAYS_NOTHING.contains(&result) || result.parse::<i32>().is_ok()
}

/// The network writes a number without a name plainly, the database with a word before it.
fn in_the_networks_words(receipt: &str) -> &str {
    receipt.strip_prefix("CODE_").unwrap_or(receipt)
}

/// Collects what does not hold of one invariant.
struct Findings<'a> {
    invariant: Invariant,
    found: &'a mut Vec<Violation>,
}

impl Findings<'_> {
    fn of(&mut self, id: Uuid, what: impl Into<String>) {
        self.found.push(Violation {
            invariant: self.invariant,
            operation_id: Some(id),
            what: what.into(),
        });
    }

    fn whole(&mut self, what: impl Into<String>) {
        self.found.push(Violation {
            invariant: self.invariant,
            operation_id: None,
            what: what.into(),
        });
    }
}

type Check = fn(&Materials, &mut Findings);

/// What does not hold.
#[must_use]
pub fn judge(materials: &Materials) -> Vec<Violation> {
    let checks: [(Invariant, Check); 7] = [
        (Invariant::Liveness, money::liveness),
        (Invariant::AtMostOnce, money::at_most_once),
        (Invariant::Totals, money::totals),
        (Invariant::OneRow, rows::one_row),
        (Invariant::LegalLog, log::legal),
        (Invariant::Evidence, evidence::holds),
        (Invariant::Ledger, ledger::adds_up),
    ];
    let mut found = vec![];
    for (invariant, check) in checks {
        let mut findings = Findings {
            invariant,
            found: &mut found,
        };
        check(materials, &mut findings);
    }
    for (name, detail) in &materials.verify_says_no {
        Findings {
            invariant: Invariant::Verify,
            found: &mut found,
        }
        .whole(format!("{name}: {detail}"));
    }
    found
}
