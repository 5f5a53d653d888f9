//! A route: which way a withdrawal's money goes, why, and what settled means there. It is decided once, stored with the
//! withdrawal, and read by every later stage. It cannot exist in a shape that makes no sense: a ledger credits an account,
//! and a chain has a depth, and neither has the other's.

/// When a withdrawal is settled, as its rail counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// Once the credit is booked.
    Ledger,
    /// Once so many followed blocks stand on the solid one that holds it; 0: once it is solid.
    Chain {
        /// In blocks.
        depth: i32,
    },
}

impl Settlement {
    /// The name that SQL shows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Chain { .. } => "chain",
        }
    }
}

/// Which way the money goes, with what only that way has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rail {
    Internal { account: String },
    External { depth: i32 },
}

/// The decision for one withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    destination: String,
    rail: Rail,
}

/// Why there is no such route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// Nothing, or white space.
    #[error("a route has a destination")]
    NoDestination,
    /// A custodian that is nothing, or white space.
    #[error(
        "custody names a blank account for this address: it must be an account's name, or NULL"
    )]
    BlankAccount,
    /// A depth below zero.
    #[error("a depth of {0} blocks")]
    Depth(i32),
}

impl Route {
    /// Decides: `account` is whose address custody says the destination is, if it is anybody's of ours; `depth` is the asset's.
    /// The destination is kept exactly as asked for.
    pub fn decide(
        destination: &str,
        account: Option<&str>,
        depth: i32,
    ) -> Result<Self, RouteError> {
        if destination.trim().is_empty() {
            return Err(RouteError::NoDestination);
        }
        let rail = match account {
            Some(account) if account.trim().is_empty() => return Err(RouteError::BlankAccount),
            Some(account) => Rail::Internal {
                account: account.to_owned(),
            },
            None if depth < 0 => return Err(RouteError::Depth(depth)),
            None => Rail::External { depth },
        };
        Ok(Self {
            destination: destination.to_owned(),
            rail,
        })
    }

    /// Exactly as asked for.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// The label of `sluice.rail`.
    #[must_use]
    pub const fn rail(&self) -> &'static str {
        match self.rail {
            Rail::Internal { .. } => "internal",
            Rail::External { .. } => "external",
        }
    }

    /// The reason, to be grouped by.
    #[must_use]
    pub const fn reason_code(&self) -> &'static str {
        match self.rail {
            Rail::Internal { .. } => "custodied",
            Rail::External { .. } => "not_custodied",
        }
    }

    /// The reason, for a person.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.rail {
            Rail::Internal { account } => {
                format!("destination is an address in custody for account {account}")
            }
            Rail::External { .. } => "destination is not an address in custody".to_owned(),
        }
    }

    /// The account that is credited; none on the chain.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        match &self.rail {
            Rail::Internal { account } => Some(account),
            Rail::External { .. } => None,
        }
    }

    /// When it is settled.
    #[must_use]
    pub const fn settlement(&self) -> Settlement {
        match self.rail {
            Rail::Internal { .. } => Settlement::Ledger,
            Rail::External { depth } => Settlement::Chain { depth },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_custody_goes_over_the_ledger_and_all_else_over_the_chain() {
        let ours = Route::decide(" TOurs ", Some("acct-77"), 20).expect("an account");
        assert_eq!(
            (ours.rail(), ours.account(), ours.settlement()),
            ("internal", Some("acct-77"), Settlement::Ledger)
        );
        assert_eq!(ours.destination(), " TOurs ");
        assert!(ours.reason().contains("acct-77"));
        let theirs = Route::decide("TTheirs", None, 20).expect("no account");
        assert_eq!(
            (theirs.rail(), theirs.account(), theirs.settlement()),
            ("external", None, Settlement::Chain { depth: 20 })
        );
        assert_ne!(ours.reason_code(), theirs.reason_code());
    }

    #[test]
    fn a_route_that_makes_no_sense_is_none() {
        assert_eq!(Route::decide(" ", None, 0), Err(RouteError::NoDestination));
        assert_eq!(
            Route::decide("T", Some(" "), 0),
            Err(RouteError::BlankAccount)
        );
        assert_eq!(Route::decide("T", None, -1), Err(RouteError::Depth(-1)));
    }
}
