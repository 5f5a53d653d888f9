//! What a node makes of a transaction that is handed to it: the checks in java-tron's order
//! (`Wallet.broadcastTransaction`, `Manager.pushTransaction`, `Manager.processTransaction`), the pool, and the peers.

use std::sync::Arc;

use crate::chain::Branch;
use crate::config::Connection;
use crate::log::Holder;
use crate::net::Net;
use crate::transaction::{Call, Tx};

/// Ids that clients offered are remembered for an hour (`Manager.transactionIdCache`).
const OFFERED_KEEP_MS: i64 = 3_600_000;
/// A node tells a peer of an id once an hour (`PeerConnection.advInvSpread`).
const ANNOUNCED_KEEP_MS: i64 = 3_600_000;
/// `Constant.TRANSACTION_MAX_BYTE_SIZE`.
const MAX_TRANSACTION_BYTES: usize = 500 * 1024;
/// Room for a result, `Constant.MAX_RESULT_SIZE_IN_TX` twice.
const RESULT_ROOM: usize = 128;
/// `getMaxFeeLimit` of the main network, in sun.
const MAX_FEE_LIMIT: i64 = 15_000_000_000;

/// A node's verdict: one of `GrpcAPI.Return.response_code`, and the text that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `SUCCESS`, `SIGERROR`, …
    pub code: &'static str,
    /// Empty for SUCCESS.
    pub message: String,
    /// By this call the transaction came into the node's pool.
    pub kept: bool,
    /// And the node never had it in its pool before.
    pub accepted: bool,
}

/// A refusal before the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of `GrpcAPI.Return.response_code`.
    pub code: &'static str,
    /// The text that goes with it.
    pub message: String,
}

fn refuse(code: &'static str, message: impl Into<String>) -> Result<(), Refusal> {
    Err(Refusal {
        code,
        message: message.into(),
    })
}

impl Net {
    /// Hands a transaction to a node. With `local_only` no peer learns of it.
    pub fn broadcast(&mut self, node: usize, tx: &Arc<Tx>, local_only: bool) -> Verdict {
        self.log.open(tx);
        if let Err(refusal) = self.admit(node, tx) {
            return Verdict {
                code: refusal.code,
                message: refusal.message,
                kept: false,
                accepted: false,
            };
        }
        let accepted = self.take_in(Holder::Node(node), Arc::clone(tx), "call");
        let announced = self.announce(node, tx, local_only);
        let (code, message) = if announced {
            ("SUCCESS", "")
        } else {
            ("NOT_ENOUGH_EFFECTIVE_CONNECTION", "P2P broadcast failed.")
        };
        Verdict {
            code,
            message: message.to_owned(),
            kept: true,
            accepted,
        }
    }

    fn admit(&mut self, index: usize, tx: &Tx) -> Result<(), Refusal> {
        let now = self.clock.now();
        let node = &mut self.nodes[index];
        let head = node.view.head();
        if node
            .settings
            .max_unsolidified
            .is_some_and(|limit| head.number - head.solid >= limit)
        {
            return refuse("BLOCK_UNSOLIDIFIED", "Block unsolidified.");
        }
        match node.settings.connection {
            Connection::Alone => return refuse("NO_CONNECTION", "No connection."),
            Connection::Unsynced => {
                return refuse(
                    "NOT_ENOUGH_EFFECTIVE_CONNECTION",
                    "Effective connection:0 lt minEffectiveConnection:1.",
                );
            }
            Connection::Synced => {}
        }
        if node.pool.len() > self.config.pool_limit {
            return refuse("SERVER_BUSY", "Server busy.");
        }
        if node.settings.trx_cache {
            if node.pool.offered.holds(&tx.txid, now, OFFERED_KEEP_MS) {
                return refuse("DUP_TRANSACTION_ERROR", "Transaction already exists.");
            }
            // Now, before any check, and for good: a refused transaction is a duplicate the next time.
            node.pool.offered.put(tx.txid, now);
        }
        if tx.raw.contract.is_empty() {
            return refuse(
                "CONTRACT_VALIDATE_ERROR",
                "Contract validate error : No contract!",
            );
        }
        let node = &self.nodes[index];
        if tx.raw.expiration < self.slot_after(&node.view) {
            return refuse("TRANSACTION_EXPIRATION_ERROR", "Transaction expired");
        }
        self.push(&node.view, tx, |txid| node.pool.contains(txid))
    }

    /// `Manager.pushTransaction` up to the point where the transaction is added.
    fn push(
        &self,
        view: &Branch,
        tx: &Tx,
        pending: impl Fn(&sluice_core::envelope::Txid) -> bool,
    ) -> Result<(), Refusal> {
        if let Err(why) = self.wallets.check(tx) {
            return refuse("SIGERROR", format!("Validate signature error: {why}"));
        }
        if tx.raw.contract.len() != 1 {
            return refuse(
                "CONTRACT_VALIDATE_ERROR",
                "Contract validate error : act size should be exactly 1, this is extend feature",
            );
        }
        self.check_against(view, tx)?;
        if pending(&tx.txid) {
            return refuse("DUP_TRANSACTION_ERROR", "Dup transaction.");
        }
        execute(tx)
    }

    /// What `Manager.processTransaction` checks of a transaction against a branch: whenever a node takes it, runs it again
    /// after a block, packs it, or applies a block that holds it.
    pub(crate) fn check_against(&self, view: &Branch, tx: &Tx) -> Result<(), Refusal> {
        if !view.knows_reference(tx) {
            return refuse("TAPOS_ERROR", "Tapos check error.");
        }
        let size = tx.encode(&tx.signatures, &[]).len();
        if size + RESULT_ROOM > MAX_TRANSACTION_BYTES {
            return refuse("TOO_BIG_TRANSACTION_ERROR", "Transaction size is too big.");
        }
        let strict = self
            .config
            .consensus_logic_optimization
            .then(|| self.slot_after(view));
        if !view.expiration_fits(tx, strict) {
            return refuse("TRANSACTION_EXPIRATION_ERROR", "Transaction expired");
        }
        if view.place(&tx.txid).is_some() {
            return refuse("DUP_TRANSACTION_ERROR", "Dup transaction.");
        }
        Ok(())
    }

    /// `ChainBaseManager.getNextBlockSlotTime`, for a branch.
    fn slot_after(&self, view: &Branch) -> i64 {
        view.head().timestamp + self.config.block_interval_ms
    }

    /// Tells the peers that have not heard of it; false where there is none of those (`AdvService.fastBroadcastTransaction`).
    /// Peers that have seen the id within the hour ignore it without a word, even if their pools have lost it since.
    fn announce(&mut self, from: usize, tx: &Arc<Tx>, local_only: bool) -> bool {
        let now = self.clock.now();
        let txid = tx.txid;
        let keep = self.config.seen_cache_ms;
        self.nodes[from].pool.seen.put(txid, now);
        if self.nodes[from]
            .pool
            .announced
            .holds(&txid, now, ANNOUNCED_KEEP_MS.min(keep))
        {
            return false;
        }
        self.nodes[from].pool.announced.put(txid, now);
        if local_only || !self.nodes[from].settings.gossip {
            // It has told peers; they never ask for the bytes.
            return true;
        }
        let mut told = false;
        for holder in self.holders() {
            let reached = match holder {
                Holder::Node(index) => index != from && self.nodes[index].settings.gossip,
                Holder::Producers => true,
            };
            if reached && !self.pool_mut(holder).seen.holds(&txid, now, keep) {
                told = true;
                self.deliver(holder, tx);
            }
        }
        told
    }

    /// A peer fetches the bytes and pushes them; a failure is silent (`TransactionsMsgHandler.handleTransaction`).
    fn deliver(&mut self, to: Holder, tx: &Arc<Tx>) {
        let now = self.clock.now();
        self.pool_mut(to).seen.put(tx.txid, now);
        let (view, pool) = match to {
            Holder::Node(index) => (&self.nodes[index].view, &self.nodes[index].pool),
            Holder::Producers => (&self.trunk, &self.producers.pool),
        };
        let in_time = tx.raw.expiration >= self.slot_after(view);
        if in_time && self.push(view, tx, |txid| pool.contains(txid)).is_ok() {
            self.take_in(to, Arc::clone(tx), "gossip");
        }
    }
}

/// Running the contract (`TransactionTrace.exec`). Results are faults here and balances are not kept, so only what the
/// message itself shows can be refused. A REVERT or OUT_OF_ENERGY would be no refusal: such a transaction is pooled.
fn execute(tx: &Tx) -> Result<(), Refusal> {
    let refuse = |why: &str| {
        refuse(
            "CONTRACT_VALIDATE_ERROR",
            format!("Contract validate error : {why}"),
        )
    };
    match &tx.call {
        Call::Trigger(trigger) => {
            if !(0..=MAX_FEE_LIMIT).contains(&tx.raw.fee_limit) {
                return refuse("feeLimit must be >= 0 and <= 15000000000");
            }
            if trigger.contract_address.len() != 21 {
                return refuse("No contract or not a valid smart contract");
            }
            Ok(())
        }
        Call::Transfer(transfer) => {
            if transfer.to_address.len() != 21 {
                return refuse("Invalid toAddress!");
            }
            if transfer.to_address == transfer.owner_address {
                return refuse("Cannot transfer TRX to yourself.");
            }
            if transfer.amount <= 0 {
                return refuse("Amount must be greater than 0.");
            }
            Ok(())
        }
        Call::Other(_) => {
            refuse("this network runs TransferContract and TriggerSmartContract alone")
        }
        Call::Unreadable => refuse("the contract's parameter is no such message"),
    }
}
