//! The work on withdrawals, with the real database and a real network: what ends a task early, and that nothing is sent then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sluice_core::signature::hmac_sign;
use sluice_runner::config::{DatabaseConfig, WorkConfig};
use sluice_runner::cycle::Cycle;
use sluice_runner::database_url::DatabaseUrl;
use sluice_runner::db::{CallError, Database};
use sluice_runner::nodes::Nodes;
use sluice_runner::signer::{Digest, Signer, SignerError, Signers};
use sluice_scenarios::{Role, Scene, Wallets};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::{node, run};

/// A signer that does whatever a test wants while it is asked.
struct Tame<F>(F);

#[async_trait]
impl<F, W> Signer for Tame<F>
where
    F: Fn() -> W + Send + Sync,
    W: Future<Output = Result<(), SignerError>> + Send,
{
    fn name(&self) -> String {
        "tame".to_owned()
    }

    async fn sign(&self, digest: Digest<'_>) -> Result<Vec<u8>, SignerError> {
        (self.0)().await?;
        Ok(hmac_sign(Wallets::HMAC_KEY.as_bytes(), digest.txid).to_vec())
    }
}

fn config(lease: Duration) -> WorkConfig {
    WorkConfig {
        worker_id: "tame".to_owned(),
        batch: 100,
        lease: Some(lease),
        concurrency: 4,
        sign_timeout: Duration::from_secs(20),
        send_timeout: Duration::from_secs(5),
        poll_min: Duration::from_millis(20),
        poll_max: Duration::from_millis(50),
        stop_grace: Duration::from_millis(200),
    }
}

fn database(scene: &Scene) -> Database {
    let url = DatabaseUrl::read(
        &scene.database.url(Role::Runner),
        None,
        Duration::from_secs(5),
        &|_| None,
    );
    let config = DatabaseConfig {
        url: url.expect("a URL"),
        statement_timeout: Duration::from_secs(20),
    };
    Database::new(config, "cycle".to_owned())
}

/// A worker of this scene whose wallets are all signed for by `signer`.
fn worker(
    scene: &Scene,
    config: WorkConfig,
    stop: &CancellationToken,
    signer: impl Signer + 'static,
) -> Cycle {
    let nodes = scene
        .network
        .urls()
        .iter()
        .map(|url| node(url, url))
        .collect();
    Cycle::new(
        config,
        database(scene),
        Signers::one(Arc::new(signer)),
        Arc::new(Nodes::new(nodes).expect("a node")),
        stop.clone(),
    )
}

/// A scene whose only wallet is the mock's.
fn scene() -> Scene {
    let scene = Scene::start();
    let mut operator = scene.database.as_role(Role::Operator);
    operator
        .execute(
            "select from sluice.pause('only the mock here', $1)",
            &[&Wallets::local().to_string()],
        )
        .expect("a wallet can be paused");
    scene
}

fn sent(scene: &Scene) -> usize {
    scene.network.transactions().len()
}

fn text_of(scene: &Scene, operation_id: Uuid, column: &str) -> Option<String> {
    let query = format!("select ({column})::text from sluice.withdrawals where operation_id = $1");
    scene
        .database
        .superuser()
        .query_one(&query, &[&operation_id])
        .expect("it is there")
        .get(0)
}

/// A trigger that strikes at the COMMIT of whoever commits to sending.
fn strike_at_commit(scene: &Scene, how: &str) {
    scene
        .database
        .superuser()
        .batch_execute(&format!(
            "create function public.strike() returns trigger language plpgsql as $$ begin {how}; return null; end $$;
             create constraint trigger zz_strike after update on sluice.withdrawals deferrable initially deferred
                 for each row when (new.state = 'broadcasting') execute function public.strike();"
        ))
        .expect("a trigger can be made");
}

#[test]
fn what_is_due_is_signed_recorded_sent_and_filed_in_one_go() {
    let scene = scene();
    let withdrawals: Vec<Uuid> = (0..25).map(|n| scene.submit(n, "3.5")).collect();
    let mut worker = worker(
        &scene,
        config(Duration::from_secs(30)),
        &CancellationToken::new(),
        Tame(async || Ok(())),
    );
    assert_eq!(run(worker.work_off()).expect("it works"), withdrawals.len());
    assert_eq!(sent(&scene), withdrawals.len());
    for operation_id in withdrawals {
        assert_eq!(scene.state(operation_id), "broadcast");
    }
}

#[test]
fn no_more_than_so_many_digests_are_with_signers_at_once() {
    let scene = scene();
    for n in 0..20 {
        scene.submit(n, "1");
    }
    let busy = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let signer = Tame({
        let (busy, most) = (Arc::clone(&busy), Arc::clone(&most));
        move || {
            let (busy, most) = (Arc::clone(&busy), Arc::clone(&most));
            async move {
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                busy.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        }
    });
    let mut worker = worker(
        &scene,
        config(Duration::from_secs(30)),
        &CancellationToken::new(),
        signer,
    );
    run(worker.work_off()).expect("it works");
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

#[test]
fn a_signature_that_comes_after_the_lease_is_dropped_and_nothing_is_sent() {
    let scene = scene();
    let operation_id = scene.submit(1, "3.5");
    let slow = Tame(async || {
        // Longer than the lease, and deaf to time-outs, as a stopped process would be.
        std::thread::sleep(Duration::from_millis(1300));
        Ok(())
    });
    let mut worker = worker(
        &scene,
        config(Duration::from_secs(1)),
        &CancellationToken::new(),
        slow,
    );
    run(worker.work_off()).expect("it works");
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (0, "signing")
    );
}

#[test]
fn a_claim_that_is_anothers_by_now_is_fenced_out_before_a_byte_leaves() {
    let scene = Arc::new(scene());
    let operation_id = scene.submit(1, "3.5");
    let thief = Tame({
        let scene = Arc::clone(&scene);
        move || {
            let scene = Arc::clone(&scene);
            async move {
                // The database's clock says that the lease is over; ours does not.
                let stolen = tokio::task::spawn_blocking(move || {
                    scene.advance(60);
                    scene.follow();
                    sluice_scenarios::worker::Worker::new("thief", &scene.database)
                        .claim(10)
                        .len()
                });
                assert_eq!(stolen.await.expect("it steals"), 1);
                Ok(())
            }
        }
    });
    // No room for a second claim: it must not steal its withdrawal back.
    let mut config = config(Duration::from_secs(30));
    config.batch = 1;
    let mut worker = worker(&scene, config, &CancellationToken::new(), thief);
    run(worker.work_off()).expect("it works");
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (0, "signing")
    );
    assert_eq!(
        text_of(&scene, operation_id, "leased_by").as_deref(),
        Some("thief")
    );
}

#[test]
fn a_withdrawal_that_cannot_be_signed_is_put_off_with_the_reason_and_stops_no_other() {
    let scene = scene();
    let withdrawals = [
        scene.submit(1, "1"),
        scene.submit(2, "2"),
        scene.submit(3, "3"),
    ];
    let count = Arc::new(AtomicUsize::new(0));
    let moody = Tame(move || {
        let fails = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if fails {
                Err(SignerError::Late)
            } else {
                Ok(())
            }
        }
    });
    let mut worker = worker(
        &scene,
        config(Duration::from_secs(30)),
        &CancellationToken::new(),
        moody,
    );
    run(worker.work_off()).expect("it works");
    let mut states: Vec<String> = withdrawals.iter().map(|id| scene.state(*id)).collect();
    states.sort();
    assert_eq!(states, ["broadcast", "broadcast", "signing"]);
    let failed = withdrawals
        .into_iter()
        .find(|id| scene.state(*id) == "signing")
        .expect("one failed");
    let told = text_of(&scene, failed, "last_error").expect("the reason is on file");
    assert!(
        told.contains("signer: the signer did not answer in time"),
        "{told}"
    );
    assert_eq!(
        text_of(&scene, failed, "due_at - sluice.now()").as_deref(),
        Some("00:00:05")
    );
}

#[test]
fn a_commit_to_sending_that_fails_sends_nothing() {
    let scene = scene();
    let operation_id = scene.submit(1, "3.5");
    strike_at_commit(&scene, "raise exception 'not now' using errcode = '40001'");
    let mut worker = worker(
        &scene,
        config(Duration::from_secs(30)),
        &CancellationToken::new(),
        Tame(async || Ok(())),
    );
    let error = run(worker.work_off()).expect_err("the commit fails");
    assert!(matches!(error, CallError::NotCommitted { .. }), "{error}");
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (0, "signing")
    );
}

#[test]
fn a_commit_to_sending_that_comes_with_a_warning_sends_nothing_though_it_was_made() {
    let scene = scene();
    let operation_id = scene.submit(1, "3.5");
    strike_at_commit(&scene, "raise warning 'perhaps not everywhere'");
    let mut worker = worker(
        &scene,
        config(Duration::from_secs(30)),
        &CancellationToken::new(),
        Tame(async || Ok(())),
    );
    let error = run(worker.work_off()).expect_err("the commit is not clean");
    assert!(matches!(error, CallError::NotCommitted { .. }), "{error}");
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (0, "broadcasting")
    );

    // What is on file comes back with its lease and is sent then.
    scene
        .database
        .superuser()
        .batch_execute("drop trigger zz_strike on sluice.withdrawals")
        .expect("it can be dropped");
    scene.advance(60);
    scene.follow();
    assert_eq!(run(worker.work_off()).expect("it works"), 1);
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (1, "broadcast")
    );
}

#[test]
fn what_is_held_when_told_to_stop_is_given_back_at_once() {
    let scene = scene();
    let operation_id = scene.submit(1, "3.5");
    let stop = CancellationToken::new();
    let told = stop.clone();
    let endless = Tame(move || {
        told.cancel();
        std::future::pending()
    });
    let mut worker = worker(&scene, config(Duration::from_secs(30)), &stop, endless);
    run(async {
        worker.work_off().await.expect("it works");
        worker.wind_down().await;
    });
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (0, "signing")
    );
    assert_eq!(
        text_of(
            &scene,
            operation_id,
            "due_at <= sluice.now() and leased_by is null"
        )
        .as_deref(),
        Some("true")
    );
}

#[test]
fn what_can_be_finished_when_told_to_stop_is_finished() {
    let scene = scene();
    let operation_id = scene.submit(1, "3.5");
    let stop = CancellationToken::new();
    let told = stop.clone();
    let nearly_done = Tame(move || {
        told.cancel();
        async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(())
        }
    });
    let mut config = config(Duration::from_secs(30));
    config.stop_grace = Duration::from_secs(10);
    let mut worker = worker(&scene, config, &stop, nearly_done);
    run(async {
        worker.work_off().await.expect("it works");
        worker.wind_down().await;
    });
    assert_eq!(
        (sent(&scene), scene.state(operation_id).as_str()),
        (1, "broadcast")
    );
}
