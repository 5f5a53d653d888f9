//! The nodes together: which one to ask next. Sending goes round, so that bytes sent again reach another pool; a node that
//! was not there is left alone for a while. Reading stays with one node as long as it answers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sluice_core::broadcast::BroadcastCode;
use sluice_core::envelope::Txid;

use crate::node::{Answer, Node};

/// How long a node that could not be reached is left alone, if there is another.
const COOLING: Duration = Duration::from_secs(10);

/// All configured nodes; at least one.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    next: AtomicUsize,
    unreached: Mutex<Vec<Option<Instant>>>,
}

impl Nodes {
    /// These nodes, in the order given. `None` for none.
    #[must_use]
    pub fn new(nodes: Vec<Node>) -> Option<Self> {
        if nodes.is_empty() {
            return None;
        }
        let unreached = Mutex::new(vec![None; nodes.len()]);
        // Where to begin is left to chance, so that several runners do not all send to the first.
        let next = AtomicUsize::new(fastrand::usize(..nodes.len()));
        Some(Self {
            nodes,
            next,
            unreached,
        })
    }

    /// In the order given.
    #[must_use]
    pub fn all(&self) -> &[Node] {
        &self.nodes
    }

    /// Hands a signed transaction to the node whose turn it is, or, as long as none could even be reached, to the next. One
    /// node is asked once: the database says when the bytes are due again.
    pub async fn broadcast(&self, transaction: &[u8], txid: &Txid, time: Duration) -> Answer {
        let until = Instant::now() + time;
        let mut last = None;
        for index in self.turn() {
            // What one node used up of the time is gone for the next: nothing is sent after it.
            let left = until.saturating_duration_since(Instant::now());
            if last.is_some() && left.is_zero() {
                break;
            }
            match self.nodes[index].broadcast(transaction, txid, left).await {
                Ok(answer) => {
                    self.note(index, None);
                    return answer;
                }
                Err(not_connected) => {
                    self.note(index, Some(Instant::now()));
                    last = Some(not_connected);
                }
            }
        }
        let nobody = last.expect("there is at least one node, and each was tried");
        Answer {
            code: BroadcastCode::NoAnswer,
            message: nobody.reason.to_string(),
            node: nobody.node,
        }
    }

    /// Every node once, beginning with the one whose turn it is; those that cool down come last.
    fn turn(&self) -> Vec<usize> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let unreached = self
            .unreached
            .lock()
            .expect("nobody panics while holding this lock");
        let cooling =
            |index: usize| unreached[index].is_some_and(|since| since.elapsed() < COOLING);
        let mut order: Vec<usize> = (0..self.nodes.len())
            .map(|step| (first.wrapping_add(step)) % self.nodes.len())
            .collect();
        order.sort_by_key(|index| cooling(*index));
        order
    }

    fn note(&self, index: usize, unreached: Option<Instant>) {
        self.unreached
            .lock()
            .expect("nobody panics while holding this lock")[index] = unreached;
    }
}
