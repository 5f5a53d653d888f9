//! The calls that the runner makes, and their answers as types. The database decides; each of these only carries.

use std::time::Duration;

use serde_json::json;
use sluice_core::address::Address;
use sluice_core::broadcast::BroadcastCode;
use sluice_core::envelope::Txid;
use sluice_core::state::State;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

use crate::crash::Point;
use crate::db::{Call, CallError, Database};

const CLAIM: Call = Call {
    name: "sluice.claim_batch",
    sql: "select operation_id, fencing_token, state::text, action::text, wallet, txid, raw_data, signature \
          from sluice.claim_batch($1, $2, make_interval(secs => $3))",
    points: Some((Point::ClaimBeforeCommit, Point::ClaimAfterCommit)),
};

const SIGNATURES: Call = Call {
    name: "sluice.record_signatures",
    sql: "select operation_id, fencing_token, state::text, action::text, wallet, txid, raw_data, signature \
          from sluice.record_signatures($1, $2)",
    points: Some((Point::SignaturesBeforeCommit, Point::SignaturesAfterCommit)),
};

const ANSWERS: Call = Call {
    name: "sluice.record_broadcasts",
    sql: "select operation_id, state::text from sluice.record_broadcasts($1, $2)",
    points: Some((Point::AnswersBeforeCommit, Point::AnswersAfterCommit)),
};

const POSTPONE: Call = Call {
    name: "sluice.fenced_cas",
    sql: "select put_off.operation_id, put_off.state::text \
          from unnest($1, $2, $3) as held(operation_id, fencing_token, last_error) \
          cross join lateral sluice.fenced_cas(held.operation_id, held.fencing_token, 'signing', 'signing', $4, \
              jsonb_build_object('last_error', held.last_error, 'due_in', $5)) as put_off",
    points: Some((Point::PostponeBeforeCommit, Point::PostponeAfterCommit)),
};

const RELEASE: Call = Call {
    name: "sluice.release",
    sql: "select sluice.release($1, $2, $3)::bigint",
    points: Some((Point::ReleaseBeforeCommit, Point::ReleaseAfterCommit)),
};

const OBSERVE: Call = Call {
    name: "sluice.observe_blocks",
    sql: "select operation_id, state::text, txid, block_number from sluice.observe_blocks($1, $2)",
    points: Some((Point::ObserveBeforeCommit, Point::ObserveAfterCommit)),
};

const STATE: Call = Call {
    name: "sluice.runner_state",
    sql: "select followed_number, followed_id, chain_genesis, extract(epoch from lease)::float8 as lease from sluice.runner_state()",
    points: None,
};

const WORKLOAD: Call = Call {
    name: "sluice.workload",
    sql: "select due, waiting, parked from sluice.workload()",
    points: None,
};

/// What is to be done with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Have its digest signed.
    Sign,
    /// Send its bytes.
    Broadcast,
}

/// A piece of work: a digest to sign, or bytes to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Which withdrawal.
    pub operation_id: Uuid,
    /// Which claim of it.
    pub fencing_token: i64,
    /// What to do.
    pub action: Action,
    /// The wallet that pays.
    pub wallet: Address,
    /// The digest.
    pub txid: Txid,
    /// What it is the digest of.
    pub raw_data: Vec<u8>,
    /// What is on file, for bytes to send.
    pub signature: Option<Vec<u8>>,
}

/// One row that brings work: a task, or a row that makes none, which stops itself alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Work.
    Task(Task),
    /// A row that holds no task.
    Unusable {
        /// Which withdrawal.
        operation_id: Uuid,
        /// Which claim of it.
        fencing_token: i64,
        /// What is wrong with it.
        reason: String,
    },
}

/// A signature to file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureResult {
    /// Which withdrawal.
    pub operation_id: Uuid,
    /// Which claim of it.
    pub fencing_token: i64,
    /// What was signed.
    pub txid: Txid,
    /// As the signer gave it.
    pub signature: Vec<u8>,
}

/// An answer to file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroadcastResult {
    /// Which withdrawal.
    pub operation_id: Uuid,
    /// Which claim of it.
    pub fencing_token: i64,
    /// What was sent.
    pub txid: Txid,
    /// Who answered.
    pub node: String,
    /// What.
    pub code: BroadcastCode,
    /// In which words.
    pub message: String,
}

/// What became of one result handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Which withdrawal.
    pub operation_id: Uuid,
    /// Where it stands now; `None`: the claim is no longer ours, and nothing was written.
    pub state: Option<State>,
    /// What is now to be sent, if anything.
    pub next: Option<Claimed>,
}

/// A task that nobody could sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsigned {
    /// Which withdrawal.
    pub operation_id: Uuid,
    /// Which claim of it.
    pub fencing_token: i64,
    /// Why.
    pub reason: String,
}

/// What blocks settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which withdrawal.
    pub operation_id: Uuid,
    /// Where it stands now.
    pub state: State,
    /// By which transaction; `None` where it was the passing of blocks.
    pub txid: Option<Txid>,
    /// In which block.
    pub block_number: Option<i64>,
}

/// The last block on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// Its number.
    pub number: i64,
    /// Its id.
    pub id: [u8; 32],
}

/// What the runner asks the database about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerState {
    /// The last block on file; `None` before `sluice.follow_from`.
    pub followed: Option<Followed>,
    /// The id of the chain's block 0.
    pub chain_genesis: Option<[u8; 32]>,
    /// How long a claim lasts that names no length.
    pub lease: Duration,
}

/// How much there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Live withdrawals that are due now.
    pub due: i64,
    /// Live ones that are not, and need nobody.
    pub waiting: i64,
    /// Live ones that need a person.
    pub parked: i64,
}

impl Database {
    /// Claims up to `most` withdrawals and answers with what is to be done.
    pub async fn claim(
        &mut self,
        worker_id: &str,
        most: usize,
        lease: Duration,
    ) -> Result<Vec<Claimed>, CallError> {
        let most = i32::try_from(most).expect("configuration bounds the batch");
        let lease = lease.as_secs_f64();
        let rows = self
            .call(
                CLAIM,
                &[
                    (&worker_id, Type::TEXT),
                    (&most, Type::INT4),
                    (&lease, Type::FLOAT8),
                ],
            )
            .await?;
        rows.iter()
            .filter_map(|row| claimed(CLAIM.name, row).transpose())
            .collect()
    }

    /// Files signatures and commits the intent to send; answers in the order given, with what is now to be sent.
    pub async fn record_signatures(
        &mut self,
        worker_id: &str,
        results: &[SignatureResult],
    ) -> Result<Vec<Recorded>, CallError> {
        let json: Vec<_> = results
            .iter()
            .map(|result| {
                json!({
                    "operation_id": result.operation_id,
                    "fencing_token": result.fencing_token,
                    "txid": result.txid.to_string(),
                    "signature": hex::encode(&result.signature),
                })
            })
            .collect();
        let rows = self
            .call(
                SIGNATURES,
                &[(&worker_id, Type::TEXT), (&json!(json), Type::JSONB)],
            )
            .await?;
        rows.iter()
            .map(|row| recorded_with_next(SIGNATURES.name, row))
            .collect()
    }

    /// Files what nodes answered, in the order given.
    pub async fn record_broadcasts(
        &mut self,
        worker_id: &str,
        results: &[BroadcastResult],
    ) -> Result<Vec<Recorded>, CallError> {
        let json: Vec<_> = results
            .iter()
            .map(|result| {
                json!({
                    "operation_id": result.operation_id,
                    "fencing_token": result.fencing_token,
                    "txid": result.txid.to_string(),
                    "node": result.node,
                    "code": result.code.name(),
                    "message": Some(&result.message).filter(|message| !message.is_empty()),
                })
            })
            .collect();
        let rows = self
            .call(
                ANSWERS,
                &[(&worker_id, Type::TEXT), (&json!(json), Type::JSONB)],
            )
            .await?;
        rows.iter().map(|row| recorded(ANSWERS.name, row)).collect()
    }

    /// Puts off what nobody could sign; answers with those that were still ours.
    pub async fn postpone(
        &mut self,
        worker_id: &str,
        unsigned: &[Unsigned],
        due_in: Duration,
    ) -> Result<Vec<Recorded>, CallError> {
        let ids: Vec<Uuid> = unsigned.iter().map(|one| one.operation_id).collect();
        let tokens: Vec<i64> = unsigned.iter().map(|one| one.fencing_token).collect();
        let reasons: Vec<&str> = unsigned.iter().map(|one| one.reason.as_str()).collect();
        let due_in = format!("{} milliseconds", due_in.as_millis());
        let rows = self
            .call(
                POSTPONE,
                &[
                    (&ids, Type::UUID_ARRAY),
                    (&tokens, Type::INT8_ARRAY),
                    (&reasons, Type::TEXT_ARRAY),
                    (&worker_id, Type::TEXT),
                    (&due_in, Type::TEXT),
                ],
            )
            .await?;
        rows.iter()
            .map(|row| recorded(POSTPONE.name, row))
            .collect()
    }

    /// Gives back what is held; answers how many were still ours.
    pub async fn release(
        &mut self,
        worker_id: &str,
        held: &[(Uuid, i64)],
    ) -> Result<i64, CallError> {
        let ids: Vec<Uuid> = held.iter().map(|(id, _)| *id).collect();
        let tokens: Vec<i64> = held.iter().map(|(_, token)| *token).collect();
        let rows = self
            .call(
                RELEASE,
                &[
                    (&worker_id, Type::TEXT),
                    (&ids, Type::UUID_ARRAY),
                    (&tokens, Type::INT8_ARRAY),
                ],
            )
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| foreign(RELEASE.name, "no row"))?;
        column(RELEASE.name, row, 0)
    }

    /// Hands in consecutive solid blocks; answers with what they settled.
    pub async fn observe(
        &mut self,
        node: &str,
        blocks: &[&[u8]],
    ) -> Result<Vec<Settled>, CallError> {
        let rows = self
            .call(
                OBSERVE,
                &[(&node, Type::TEXT), (&blocks, Type::BYTEA_ARRAY)],
            )
            .await?;
        rows.iter().map(|row| settled(OBSERVE.name, row)).collect()
    }

    /// Where the database stands.
    pub async fn runner_state(&mut self) -> Result<RunnerState, CallError> {
        let call = STATE.name;
        let rows = self.call(STATE, &[]).await?;
        let row = rows.first().ok_or_else(|| foreign(call, "no row"))?;
        let number: Option<i64> = column(call, row, 0)?;
        let id: Option<Vec<u8>> = column(call, row, 1)?;
        let followed = match (number, id) {
            (Some(number), Some(id)) => Some(Followed {
                number,
                id: digest(call, &id)?,
            }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(foreign(call, "half of a followed block"));
            }
        };
        let genesis: Option<Vec<u8>> = column(call, row, 2)?;
        let seconds: f64 = column(call, row, 3)?;
        Ok(RunnerState {
            followed,
            chain_genesis: genesis.map(|id| digest(call, &id)).transpose()?,
            lease: Duration::try_from_secs_f64(seconds)
                .map_err(|error| foreign(call, &format!("lease: {error}")))?,
        })
    }

    /// How much there is to do.
    pub async fn workload(&mut self) -> Result<Workload, CallError> {
        let call = WORKLOAD.name;
        let rows = self.call(WORKLOAD, &[]).await?;
        let row = rows.first().ok_or_else(|| foreign(call, "no row"))?;
        Ok(Workload {
            due: column(call, row, 0)?,
            waiting: column(call, row, 1)?,
            parked: column(call, row, 2)?,
        })
    }
}

fn foreign(call: &'static str, reason: &str) -> CallError {
    CallError::Foreign {
        call,
        reason: reason.to_owned(),
    }
}

fn column<'a, T: FromSql<'a>>(
    call: &'static str,
    row: &'a Row,
    index: usize,
) -> Result<T, CallError> {
    row.try_get(index).map_err(|error| {
        let cause = std::error::Error::source(&error)
            .map(ToString::to_string)
            .unwrap_or_default();
        foreign(call, &format!("{error}: {cause}"))
    })
}

fn digest(call: &'static str, bytes: &[u8]) -> Result<[u8; 32], CallError> {
    bytes
        .try_into()
        .map_err(|_| foreign(call, &format!("{} bytes where an id has 32", bytes.len())))
}

fn state(call: &'static str, name: &str) -> Result<State, CallError> {
    name.parse()
        .map_err(|error| foreign(call, &format!("{error}")))
}

/// The work in a row; `None` where it names no action.
fn claimed(call: &'static str, row: &Row) -> Result<Option<Claimed>, CallError> {
    let action: Option<&str> = column(call, row, 3)?;
    let Some(action) = action else {
        return Ok(None);
    };
    task(call, row, action)
        .map(Claimed::Task)
        .map(Some)
        .or_else(|error| {
            Ok(Some(Claimed::Unusable {
                operation_id: column(call, row, 0)?,
                fencing_token: column(call, row, 1)?,
                reason: error.to_string(),
            }))
        })
}

/// The task in a row of the columns `operation_id, fencing_token, state, action, wallet, txid, raw_data, signature`.
fn task(call: &'static str, row: &Row, action: &str) -> Result<Task, CallError> {
    let action = match action {
        "sign" => Action::Sign,
        "broadcast" => Action::Broadcast,
        other => return Err(foreign(call, &format!("action {other}"))),
    };
    let wallet: &str = column(call, row, 4)?;
    let txid: &[u8] = column(call, row, 5)?;
    let task = Task {
        operation_id: column(call, row, 0)?,
        fencing_token: column(call, row, 1)?,
        action,
        wallet: Address::parse(wallet)
            .map_err(|error| foreign(call, &format!("wallet: {error}")))?,
        txid: Txid::from_bytes(txid).map_err(|error| foreign(call, &error.to_string()))?,
        raw_data: column(call, row, 6)?,
        signature: column(call, row, 7)?,
    };
    match (action, &task.signature) {
        (Action::Broadcast, None) => Err(foreign(call, "bytes to send without a signature")),
        (Action::Broadcast, Some(_)) | (Action::Sign, _) => Ok(task),
    }
}

fn recorded_with_next(call: &'static str, row: &Row) -> Result<Recorded, CallError> {
    let name: Option<&str> = column(call, row, 2)?;
    Ok(Recorded {
        operation_id: column(call, row, 0)?,
        state: name.map(|name| state(call, name)).transpose()?,
        next: claimed(call, row)?,
    })
}

fn recorded(call: &'static str, row: &Row) -> Result<Recorded, CallError> {
    let name: Option<&str> = column(call, row, 1)?;
    Ok(Recorded {
        operation_id: column(call, row, 0)?,
        state: name.map(|name| state(call, name)).transpose()?,
        next: None,
    })
}

fn settled(call: &'static str, row: &Row) -> Result<Settled, CallError> {
    let name: &str = column(call, row, 1)?;
    let txid: Option<&[u8]> = column(call, row, 2)?;
    Ok(Settled {
        operation_id: column(call, row, 0)?,
        state: state(call, name)?,
        txid: txid
            .map(Txid::from_bytes)
            .transpose()
            .map_err(|error| foreign(call, &error.to_string()))?,
        block_number: column(call, row, 3)?,
    })
}
