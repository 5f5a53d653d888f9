//! What a node answers to questions: blocks, transactions, receipts, its pool, itself. Each answer is of one node's view,
//! the full one under /wallet or the solid one under /walletsolidity.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_core::envelope::Txid;

use crate::block::{Block, Included, sha256};
use crate::chain::Branch;
use crate::config::Connection;
use crate::endpoint::Endpoint;
use crate::faults::{Fault, Slot};
use crate::info::transaction_info;
use crate::json::{self, Fields};
use crate::net::{Net, Node};
use crate::outcome::Outcome;
use crate::params::{Params, ServletError};
use crate::rules::Subject;

/// `GetBlockByLimitNextServlet.BLOCK_LIMIT_NUM`.
const LIST_LIMIT: i64 = 100;

/// Which part of which node's view answers.
#[derive(Debug, Clone)]
pub struct Lens {
    /// The node whose view it is.
    pub node: usize,
    /// The solid view.
    pub solid: bool,
    /// The highest block in sight.
    pub top: i64,
    /// The highest block that a list may show.
    pub list_top: i64,
    /// What the rules for shown blocks are held against.
    pub subject: Subject,
}

impl Net {
    /// The answer to a question, before any fault but those of the blocks that it shows.
    pub fn query(
        &mut self,
        lens: &Lens,
        endpoint: Endpoint,
        params: &Params,
    ) -> Result<Value, ServletError> {
        let visible = params.visible();
        match endpoint {
            Endpoint::TransactionById => {
                Ok(self.transaction_by_id(lens, &params.bytes("value")?, visible))
            }
            Endpoint::TransactionInfoById => {
                Ok(self.info_by_id(lens, &params.bytes("value")?, visible))
            }
            Endpoint::TransactionInfoByBlockNum => {
                Ok(self.info_by_number(lens, params.integer("num")?, visible))
            }
            Endpoint::TransactionFromPending => {
                self.pending_by_id(lens, &params.bytes("value")?, visible)
            }
            Endpoint::TransactionListFromPending => Ok(self.pending_list(lens)),
            Endpoint::PendingSize => Ok(json!({ "pendingSize": self.nodes[lens.node].pool.len() })),
            Endpoint::NowBlock => Ok(self.show_block(lens, lens.top, visible, true)),
            Endpoint::BlockByNum => {
                Ok(self.show_block(lens, params.integer("num")?, visible, true))
            }
            Endpoint::Block => self.block_by_id_or_number(lens, params),
            Endpoint::BlockByLimitNext => self.block_list(lens, params),
            Endpoint::NodeInfo => Ok(self.node_info(lens)),
            Endpoint::ChainParameters => Ok(self.chain_parameters()),
            Endpoint::BroadcastTransaction | Endpoint::BroadcastHex => Err(ServletError::of(
                "java.lang.IllegalStateException",
                "a broadcast is no question",
            )),
        }
    }

    fn node(&self, lens: &Lens) -> &Node {
        &self.nodes[lens.node]
    }

    // Transactions

    fn transaction_by_id(&self, lens: &Lens, value: &[u8], visible: bool) -> Value {
        let Ok(txid) = Txid::from_bytes(value) else {
            return json!({});
        };
        // What is pending lies in the node's store with the result of its trial run, and /wallet reads it there.
        if !lens.solid && self.node(lens).pool.contains(&txid) {
            return self.pending_transaction(lens, &txid, visible);
        }
        match self.find(lens, &txid) {
            Some((_, found)) => {
                json::transaction(&found.tx, &found.signatures, &found.ret, visible)
            }
            None => json!({}),
        }
    }

    fn pending_transaction(&self, lens: &Lens, txid: &Txid, visible: bool) -> Value {
        match self.node(lens).pool.get(txid) {
            Some(pending) => {
                let ret = Outcome::SUCCESS.ret();
                json::transaction(&pending.tx, &pending.tx.signatures, &ret, visible)
            }
            None => json!({}),
        }
    }

    fn find<'a>(&'a self, lens: &Lens, txid: &Txid) -> Option<(&'a Arc<Block>, &'a Included)> {
        self.node(lens)
            .view
            .find(txid)
            .filter(|(block, _)| block.number <= lens.top)
    }

    fn info_by_id(&self, lens: &Lens, value: &[u8], visible: bool) -> Value {
        let found = Txid::from_bytes(value)
            .ok()
            .and_then(|txid| self.find(lens, &txid));
        match found {
            Some((block, included)) if self.node(lens).settings.history_switch => {
                transaction_info(block, included, visible)
            }
            Some(_) | None => json!({}),
        }
    }

    fn info_by_number(&self, lens: &Lens, number: i64, visible: bool) -> Value {
        if number <= 0 {
            return json!({});
        }
        let node = self.node(lens);
        let block = node
            .view
            .at(number)
            .filter(|block| block.number <= lens.top);
        match block {
            Some(block) if node.settings.history_switch => block
                .transactions
                .iter()
                .map(|included| transaction_info(block, included, visible))
                .collect(),
            Some(_) | None => json!([]),
        }
    }

    fn pending_by_id(
        &self,
        lens: &Lens,
        value: &[u8],
        visible: bool,
    ) -> Result<Value, ServletError> {
        let txid = Txid::from_bytes(value).map_err(|_| {
            ServletError::of(
                "java.lang.IllegalArgumentException",
                "txid must be 32 bytes",
            )
        })?;
        Ok(self.pending_transaction(lens, &txid, visible))
    }

    fn pending_list(&self, lens: &Lens) -> Value {
        let ids = self
            .node(lens)
            .pool
            .iter()
            .map(|p| p.tx.txid.to_string().into())
            .collect();
        Fields::default().list("txId", ids).build()
    }

    // Blocks

    fn block_by_id_or_number(
        &mut self,
        lens: &Lens,
        params: &Params,
    ) -> Result<Value, ServletError> {
        let wanted = params.text("id_or_num").unwrap_or_default();
        let visible = params.visible();
        let detail = params.flag("detail");
        let no_hash = || ServletError("id must be legal block hash.".to_owned());
        if wanted.is_empty() {
            return Ok(self.show_block(lens, lens.top, visible, detail));
        }
        if let Ok(number) = wanted.parse::<i64>() {
            if number < 0 {
                return Err(ServletError("num must be non-positive number.".to_owned()));
            }
            return Ok(self.show_block(lens, number, visible, detail));
        }
        let mut id = [0; 32];
        hex::decode_to_slice(&wanted, &mut id).map_err(|_| no_hash())?;
        let number = i64::from_be_bytes(id[..8].try_into().expect("8 of 32 bytes"));
        if !(0..=lens.top).contains(&number) {
            return Err(no_hash());
        }
        match self.node(lens).view.at(number) {
            Some(block) if block.id == id => Ok(self.show_block(lens, number, visible, detail)),
            Some(_) | None => Ok(json!({})),
        }
    }

    fn block_list(&mut self, lens: &Lens, params: &Params) -> Result<Value, ServletError> {
        let (start, end) = (params.integer("startNum")?, params.integer("endNum")?);
        let fits = end > 0 && end > start && end.saturating_sub(start) <= LIST_LIMIT;
        if !fits {
            return Ok(json!({}));
        }
        let visible = params.visible();
        let mut shown = Vec::new();
        for number in start.max(0)..end.min(lens.list_top + 1) {
            let Some(block) = self.node(lens).view.at(number).cloned() else {
                break;
            };
            let fault = self.block_fault(lens, number);
            if fault != Some(Fault::Gap {}) {
                shown.push(garbled(&block, fault.as_ref(), visible));
            }
        }
        Ok(json!({ "block": shown }))
    }

    /// The block of this height if it is in sight.
    fn show_block(&mut self, lens: &Lens, number: i64, visible: bool, detail: bool) -> Value {
        let in_sight = |view: &Branch, number| {
            view.at(number)
                .filter(|block| block.number <= lens.top)
                .cloned()
        };
        let Some(block) = in_sight(&self.node(lens).view, number) else {
            return json!({});
        };
        let fault = self.block_fault(lens, number);
        if fault == Some(Fault::Gap {}) {
            let next = in_sight(&self.node(lens).view, number + 1);
            return next.map_or(json!({}), |next| json::block(&next, visible, detail));
        }
        if detail {
            garbled(&block, fault.as_ref(), visible)
        } else {
            json::block(&block, visible, false)
        }
    }

    fn block_fault(&mut self, lens: &Lens, number: i64) -> Option<Fault> {
        let subject = Subject {
            block: Some(number),
            ..lens.subject.clone()
        };
        self.faults
            .strike(&[Slot::Block], &subject)
            .into_iter()
            .next()
            .map(|struck| struck.fault)
    }

    // The node

    fn node_info(&self, lens: &Lens) -> Value {
        let node = self.node(lens);
        let peers = match node.settings.connection {
            Connection::Alone => 0,
            Connection::Synced | Connection::Unsynced => self.nodes.len(),
        };
        let syncing = node.settings.connection == Connection::Unsynced;
        let name = |number: i64| {
            let id = node
                .view
                .at(number)
                .map(|block| hex::encode(block.id))
                .unwrap_or_default();
            format!("Num:{number},ID:{id}")
        };
        let head = node.view.head().number;
        let peer_list: Vec<_> = (0..peers)
            .map(|peer| {
                json!({
                    "host": format!("10.0.0.{peer}"),
                    "port": 18888,
                    "active": true,
                    "headBlockWeBothHave": name(head),
                    "needSyncFromPeer": syncing,
                    "needSyncFromUs": false,
                    "syncFlag": syncing,
                })
            })
            .collect();
        json!({
            "activeConnectCount": peers,
            "beginSyncNum": (head - 19).max(0),
            "block": name(head),
            "cheatWitnessInfoMap": {},
            "configNodeInfo": {
                "activeNodeSize": 0,
                "allowAdaptiveEnergy": 1,
                "allowCreationOfContracts": 1,
                "codeVersion": "4.8.0",
                "dbVersion": 2,
                "discoverEnable": true,
                "listenPort": 18888,
                "p2pVersion": "11111",
                "supportConstant": true,
            },
            "currentConnectCount": peers,
            "machineInfo": { "cpuCount": 8, "threadCount": 200, "javaVersion": "1.8.0_161" },
            "passiveConnectCount": 0,
            "peerList": peer_list,
            "solidityBlock": name(node.view.solid()),
            "totalFlow": 0,
        })
    }

    fn chain_parameters(&self) -> Value {
        // A value of 0 is left out.
        let parameter = |key: &str, value: i64| {
            Fields::default()
                .text("key", key)
                .integer("value", value)
                .build()
        };
        json!({
            "chainParameter": [
                parameter("getMaintenanceTimeInterval", 21_600_000),
                parameter("getTransactionFee", 1_000),
                parameter("getEnergyFee", 100),
                parameter("getMemoFee", 1_000_000),
                parameter("getMultiSignFee", 1_000_000),
                parameter("getMaxFeeLimit", 15_000_000_000),
                parameter(
                    "getConsensusLogicOptimization",
                    i64::from(self.config.consensus_logic_optimization),
                ),
            ]
        })
    }
}

/// A block as a fault shows it.
fn garbled(block: &Block, fault: Option<&Fault>, visible: bool) -> Value {
    match fault {
        Some(Fault::StripTransactions {}) => json::shown_block(block, &[], visible),
        Some(Fault::AlterRet { result }) => {
            let mut transactions = block.transactions.clone();
            if let (Some(first), Some(outcome)) = (transactions.first_mut(), Outcome::parse(result))
            {
                first.ret = outcome.ret();
            }
            json::shown_block(block, &transactions, visible)
        }
        Some(Fault::ForeignParent {}) => {
            json::block(&block.with_parent(sha256(&block.parent)), visible, true)
        }
        Some(_) | None => json::block(block, visible, true),
    }
}
