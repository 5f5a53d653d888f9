//! The disk under the database is full: tables cannot grow, or the log cannot, for which the server falls. When there is room
//! again nothing is lost, and nothing was sent that is not on file.

use sluice_scenarios::disk::Disk;
use sluice_scenarios::place::scratch_in;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Postgres, Role, Scene, destination};

use crate::stage::Stage;
use crate::stops::assert_all_that_was_sent_is_on_file;

/// Room for a new cluster with its log, and soon filled.
const SIZE_MIB: u32 = 200;

const WITHDRAWALS: usize = 60;

/// A disk, and a stage whose server has nothing else. Dropped in the order written.
struct SmallPlace {
    stage: Stage,
    disk: Disk,
}

impl SmallPlace {
    /// None where no disk can be mounted; the output then says what is left out.
    fn new() -> Option<Self> {
        let Some(disk) = Disk::mount(SIZE_MIB) else {
            eprintln!(
                "left out: no tmpfs can be mounted here, neither as root nor in a namespace of one's own"
            );
            return None;
        };
        // A checkpoint leaves no more of the log than it must.
        let settings = [("max_wal_size", "32MB"), ("min_wal_size", "32MB")];
        let postgres = Postgres::start_in(scratch_in(disk.path(), "pg"), &settings);
        let stage = Stage::on(Scene::start_on(postgres, |_| {}));
        Some(Self { stage, disk })
    }

    fn wait_until_the_server_says(&self, words: &str) {
        until(words, || {
            self.stage
                .scene
                .postgres
                .log()
                .contains(words)
                .then_some(())
        });
    }
}

#[test]
fn a_disk_on_which_tables_cannot_grow_stops_work_and_loses_nothing() {
    let Some(mut place) = SmallPlace::new() else {
        return;
    };
    place.stage.submit_many(WITHDRAWALS);
    place.disk.fill();
    // Intake says no, and takes nothing in.
    let refused = place.stage.scene.database.as_role(Role::App).execute(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
         select gen_random_uuid(), $1, '1', 'USDT-TRC20' from generate_series(1, 2000)",
        &[&destination(1).to_string()],
    );
    let refused = refused.expect_err("there is no room for so many");
    assert_eq!(
        refused.code(),
        Some(&postgres::error::SqlState::DISK_FULL),
        "{refused}"
    );
    let runner = place.stage.run();
    until("the runner is told", || {
        runner.log().contains("[53100]").then_some(())
    });
    assert_all_that_was_sent_is_on_file(&place.stage);
    place.disk.empty();
    // The same runner goes on by itself.
    place.stage.finish();
}

#[test]
fn a_disk_on_which_the_log_cannot_grow_fells_the_server_and_loses_nothing() {
    let Some(mut place) = SmallPlace::new() else {
        return;
    };
    place.stage.submit_many(WITHDRAWALS);
    let _runner = place.stage.run();
    place.disk.fill();
    // Somebody else's work fills what is left of the log.
    let mut other = place.stage.scene.database.superuser();
    while other
        .batch_execute("select pg_logical_emit_message(true, '', repeat('x', 1000000))")
        .is_ok()
    {}
    place.wait_until_the_server_says("PANIC:");
    until("it cannot come back", || {
        place.stage.scene.postgres.has_ended().then_some(())
    });
    place.disk.empty();
    let Stage { proxy, scene, .. } = &mut place.stage;
    scene.restart_postgres(sluice_scenarios::postgres::Stop::Immediate, proxy);
    assert_all_that_was_sent_is_on_file(&place.stage);
    place.stage.finish();
}
