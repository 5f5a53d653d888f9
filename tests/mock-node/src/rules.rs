//! When a fault strikes, and how often. Rules are tried in the order they were added, and of those that would decide the
//! same thing about one call the first wins, so that a list of rules with a count each is a script.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sluice_core::address::Address;
use sluice_core::envelope::{self, Txid};
use uuid::Uuid;

use crate::block::sha256;
use crate::endpoint::{Endpoint, Scope};
use crate::faults::{Fault, Slot};
use crate::outcome::Outcome;
use crate::text::{self, Tag};

/// What a rule must meet. What is not given matches all; what is given and a call does not have, does not match.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// `broadcasthex`, `walletsolidity/getnowblock`, `broadcast` (both), `blocks` (all that answer blocks), `any`.
    #[serde(with = "text::option")]
    pub endpoint: Option<Scope>,
    /// From 0.
    pub node: Option<usize>,
    /// Who pays.
    #[serde(with = "text::option")]
    pub owner: Option<Address>,
    /// The transaction.
    #[serde(with = "text::option")]
    pub txid: Option<Txid>,
    /// The operation's tag.
    #[serde(with = "text::option")]
    pub tag: Option<Tag>,
    /// The operation; its tag is computed.
    pub operation_id: Option<Uuid>,
    /// The worker in the User-Agent.
    pub worker: Option<String>,
    /// The height of the block shown.
    pub block: Option<i64>,
}

/// A fault, when it strikes, and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// For people.
    #[serde(default)]
    pub label: String,
    /// What it must meet.
    #[serde(default)]
    pub when: When,
    /// What goes wrong.
    #[serde(rename = "do", deserialize_with = "fault_or_its_name")]
    pub fault: Fault,
    /// So many meetings pass first.
    #[serde(default)]
    pub skip: u64,
    /// It strikes so often; default: always.
    #[serde(default)]
    pub count: Option<u64>,
    /// Of each meeting, from the network's seed and the operation, not from the order of calls.
    #[serde(default)]
    pub probability: Option<f64>,
}

/// A fault whose fields all have defaults may be given by its name alone.
fn fault_or_its_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fault, D::Error> {
    let value = match Value::deserialize(deserializer)? {
        Value::String(name) => Value::Object(
            [(name, Value::Object(Default::default()))]
                .into_iter()
                .collect(),
        ),
        other => other,
    };
    serde_json::from_value(value).map_err(serde::de::Error::custom)
}

impl Rule {
    /// A fault that strikes always; narrow it with the methods below.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        Self {
            label: String::new(),
            when: When::default(),
            fault,
            skip: 0,
            count: None,
            probability: None,
        }
    }

    /// It strikes so often.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// So many meetings pass first.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// It strikes with this probability.
    #[must_use]
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }

    /// On these calls.
    #[must_use]
    pub fn at(mut self, scope: Scope) -> Self {
        self.when.endpoint = Some(scope);
        self
    }

    /// On this node.
    #[must_use]
    pub fn node(mut self, node: usize) -> Self {
        self.when.node = Some(node);
        self
    }

    /// For this payer.
    #[must_use]
    pub fn owner(mut self, owner: Address) -> Self {
        self.when.owner = Some(owner);
        self
    }

    /// For this transaction.
    #[must_use]
    pub fn txid(mut self, txid: Txid) -> Self {
        self.when.txid = Some(txid);
        self
    }

    /// For this operation.
    #[must_use]
    pub fn operation(mut self, operation_id: Uuid) -> Self {
        self.when.operation_id = Some(operation_id);
        self
    }

    /// For this worker.
    #[must_use]
    pub fn worker(mut self, worker: &str) -> Self {
        self.when.worker = Some(worker.to_owned());
        self
    }

    /// For this height.
    #[must_use]
    pub fn block(mut self, number: i64) -> Self {
        self.when.block = Some(number);
        self
    }

    /// What is wrong with it, in words.
    fn check(&self) -> Result<(), String> {
        if let Some(probability) = self.probability
            && !(0.0..=1.0).contains(&probability)
        {
            return Err(format!("probability {probability} is not from 0 to 1"));
        }
        if matches!(self.fault, Fault::Answer { .. })
            && let Some(Scope::Named(endpoint) | Scope::Full(endpoint) | Scope::Solid(endpoint)) =
                self.when.endpoint
            && !endpoint.is_broadcast()
        {
            return Err(format!("{} answers no broadcast code", endpoint.name()));
        }
        if let Fault::Receipt { result } | Fault::AlterRet { result } = &self.fault
            && Outcome::parse(result).is_none()
        {
            return Err(format!("{result:?} is no result of a transaction"));
        }
        if let Fault::Behind { blocks } = self.fault
            && blocks < 0
        {
            return Err(format!("{blocks} blocks behind is ahead"));
        }
        if let Fault::Body { status, .. } | Fault::Status { status, .. } = &self.fault
            && !(200..=599).contains(status)
        {
            return Err(format!("{status} is no HTTP status to answer with"));
        }
        Ok(())
    }

    fn meets(&self, subject: &Subject) -> bool {
        let when = &self.when;
        let scope = when.endpoint.unwrap_or_else(|| self.fault.default_scope());
        let tag = when.tag.or_else(|| {
            when.operation_id
                .map(|operation_id| Tag(envelope::tag(operation_id.into_bytes())))
        });
        subject
            .endpoint
            .is_none_or(|(endpoint, solid)| scope.holds(endpoint, solid))
            && wanted(when.node.as_ref(), subject.node.as_ref())
            && wanted(when.owner.as_ref(), subject.owner.as_ref())
            && wanted(when.txid.as_ref(), subject.txid.as_ref())
            && wanted(tag.as_ref(), subject.tag.as_ref())
            && wanted(when.worker.as_ref(), subject.worker.as_ref())
            && wanted(when.block.as_ref(), subject.block.as_ref())
    }
}

fn wanted<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
    wanted.is_none_or(|wanted| found == Some(wanted))
}

/// What a rule is held against: a call, or a transaction that a producer looks at (which has no endpoint and no node).
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The endpoint, and whether it is the solid one.
    pub endpoint: Option<(Endpoint, bool)>,
    /// From 0.
    pub node: Option<usize>,
    /// Who pays.
    pub owner: Option<Address>,
    /// The transaction.
    pub txid: Option<Txid>,
    /// The operation's tag.
    pub tag: Option<Tag>,
    /// The worker.
    pub worker: Option<String>,
    /// The height of the block shown.
    pub block: Option<i64>,
}

/// A fault that strikes now.
#[derive(Debug, Clone, PartialEq)]
pub struct Struck {
    /// Of its rule.
    pub rule: u64,
    /// What goes wrong.
    pub fault: Fault,
}

/// A rule and what it has done.
#[derive(Debug, Clone, Serialize)]
pub struct RuleStatus {
    /// For taking it away.
    pub id: u64,
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// How often it met what it asks for.
    pub met: u64,
    /// How often it struck.
    pub struck: u64,
}

/// The rules in force.
#[derive(Debug, Default)]
pub struct Faults {
    seed: u64,
    next_id: u64,
    rules: Vec<RuleStatus>,
    draws: HashMap<(u64, Vec<u8>), u64>,
    struck: BTreeMap<String, u64>,
}

impl Faults {
    /// No rules.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Adds a rule behind the others and answers its id.
    pub fn add(&mut self, rule: Rule) -> Result<u64, String> {
        rule.check()?;
        self.next_id += 1;
        self.rules.push(RuleStatus {
            id: self.next_id,
            rule,
            met: 0,
            struck: 0,
        });
        Ok(self.next_id)
    }

    /// Takes a rule away; false where there is none.
    pub fn remove(&mut self, id: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|status| status.id != id);
        self.rules.len() < before
    }

    /// Takes all rules away. What they did stays counted.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> &[RuleStatus] {
        &self.rules
    }

    /// How often each kind of fault has struck, rules gone since included.
    #[must_use]
    pub fn struck(&self) -> &BTreeMap<String, u64> {
        &self.struck
    }

    /// The faults that strike this subject in these slots: at most one in each.
    pub fn strike(&mut self, slots: &[Slot], subject: &Subject) -> Vec<Struck> {
        let mut struck: Vec<Struck> = Vec::new();
        for index in 0..self.rules.len() {
            let slot = self.rules[index].rule.fault.slot();
            let taken = struck.iter().any(|other| other.fault.slot() == slot);
            if taken || !slots.contains(&slot) || !self.strikes(index, subject) {
                continue;
            }
            let status = &mut self.rules[index];
            status.struck += 1;
            struck.push(Struck {
                rule: status.id,
                fault: status.rule.fault.clone(),
            });
            *self.struck.entry(status.rule.fault.name()).or_default() += 1;
        }
        struck
    }

    fn strikes(&mut self, index: usize, subject: &Subject) -> bool {
        let status = &mut self.rules[index];
        if !status.rule.meets(subject) {
            return false;
        }
        status.met += 1;
        if status.met <= status.rule.skip {
            return false;
        }
        if status
            .rule
            .count
            .is_some_and(|count| status.struck >= count)
        {
            return false;
        }
        let (id, probability) = (status.id, status.rule.probability);
        probability.is_none_or(|probability| self.draw(id, subject) < probability)
    }

    /// A number from 0 to 1 that depends on the seed, the rule, the operation, and how often these two have met: the order
    /// in which calls of other operations come does not change it.
    fn draw(&mut self, rule: u64, subject: &Subject) -> f64 {
        let key = match (subject.tag, subject.txid) {
            (Some(tag), _) => tag.0.to_vec(),
            (None, Some(txid)) => txid.as_bytes().to_vec(),
            (None, None) => Vec::new(),
        };
        let draws = self.draws.entry((rule, key.clone())).or_default();
        *draws += 1;
        let mut seed = Vec::with_capacity(56);
        for part in [self.seed, rule, *draws] {
            seed.extend_from_slice(&part.to_be_bytes());
        }
        seed.extend_from_slice(&key);
        let digest = sha256(&seed);
        let bits = u64::from_be_bytes(digest[..8].try_into().expect("8 of 32 bytes"));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{CALL_SLOTS, Silence};

    fn busy() -> Fault {
        Fault::Answer {
            code: "SERVER_BUSY".to_owned(),
            message: String::new(),
            keep: false,
            result: None,
        }
    }

    fn broadcast() -> Subject {
        Subject {
            endpoint: Some((Endpoint::BroadcastHex, false)),
            node: Some(0),
            ..Subject::default()
        }
    }

    #[test]
    fn rules_with_a_count_are_a_script() {
        let mut faults = Faults::new(1);
        faults.add(Rule::new(busy()).times(2)).unwrap();
        faults
            .add(Rule::new(Fault::Empty { keep: true }).times(1))
            .unwrap();
        let mut names = Vec::new();
        for _ in 0..4 {
            let struck = faults.strike(&CALL_SLOTS, &broadcast());
            names.push(struck.first().map(|struck| struck.fault.name()));
        }
        let wanted = [Some("answer"), Some("answer"), Some("empty"), None];
        assert_eq!(names, wanted.map(|name| name.map(str::to_owned)));
        assert_eq!(faults.struck()["answer"], 2);
    }

    #[test]
    fn the_nth_call_is_skip_and_count() {
        let mut faults = Faults::new(1);
        faults.add(Rule::new(busy()).after(2).times(1)).unwrap();
        let struck: Vec<_> = (0..5)
            .map(|_| faults.strike(&CALL_SLOTS, &broadcast()).len())
            .collect();
        assert_eq!(struck, [0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_probability_is_drawn_from_the_seed_and_repeats() {
        let run = |seed| {
            let mut faults = Faults::new(seed);
            faults.add(Rule::new(busy()).with_probability(0.5)).unwrap();
            (0..64)
                .map(|_| faults.strike(&CALL_SLOTS, &broadcast()).len())
                .collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let struck: usize = run(7).iter().sum();
        assert!((16..=48).contains(&struck), "{struck} of 64 at one half");
    }

    #[test]
    fn a_fault_may_be_given_by_its_name_alone() {
        let rule: Rule = serde_json::from_str(r#"{"do":"accept_then_timeout","count":1}"#).unwrap();
        assert_eq!(rule.fault, Fault::AcceptThenTimeout { how: Silence::Hold });
        let rule: Rule =
            serde_json::from_str(r#"{"do":{"accept_then_timeout":{"how":"reset"}}}"#).unwrap();
        assert_eq!(
            rule.fault,
            Fault::AcceptThenTimeout {
                how: Silence::Reset
            }
        );
        assert!(serde_json::from_str::<Rule>(r#"{"do":"no_such_fault"}"#).is_err());
        assert!(serde_json::from_str::<Rule>(r#"{"do":"empty","whem":{}}"#).is_err());
    }
}
