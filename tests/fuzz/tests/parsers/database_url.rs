//! Where the database is, in all that people write for it. Whatever comes of it, the password is in no log.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sluice_fuzz::fuzz;
use sluice_fuzz::text::{any_text, touched, touches};
use sluice_runner::database_url::DatabaseUrl;
use zeroize::Zeroizing;

/// Nothing else in these tests has the letters of these two: the one in the text, and the one from a source of its own.
const PASSWORD: &str = "Hq7Zw3Xk";
const ELSEWHERE: &str = "Vb9Lm4Tc";

fn url() -> impl Strategy<Value = String> {
    let good = prop::sample::select(&[
        "postgresql://ann:Hq7Zw3Xk@db.example:6543/pay?sslmode=require&target_session_attrs=read-write",
        "postgres://ann:Hq7Zw3Xk@[::1]:5432,10.0.0.2/pay?sslrootcert=system&sslmode=verify-full",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/pay?user=ann&password=Hq7Zw3Xk",
        r"host = db.example port=6543 user=ann password='Hq7Zw3Xk' dbname=pay sslmode=require",
        "host=/run/pg dbname=pay password=Hq7Zw3Xk connect_timeout=10 keepalives=1 options='-c x=y'",
        "hostaddr=10.0.0.1 port=1,2 load_balance_hosts=random channel_binding=require passfile=/nowhere",
    ]);
    prop_oneof![
        4 => (good, touches()).prop_map(|(good, touches)| touched(good, &touches)),
        1 => any_text(),
        1 => any_text().prop_map(|text| format!("postgresql://{text}")),
        1 => vec(("[a-z_]{1,12}", any_text()), 0..5).prop_map(|pairs| {
            pairs.iter().map(|(key, value)| format!("{key}='{value}' ")).collect()
        }),
    ]
}

#[test]
fn no_way_to_write_where_the_database_is_brings_the_runner_down_or_shows_the_password() {
    let variables = vec(
        (
            prop::sample::select(&["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGSSLMODE"]),
            prop_oneof![
                any_text(),
                Just("1,2".to_owned()),
                Just("disable".to_owned())
            ],
        ),
        0..3,
    );
    fuzz(
        "database_urls",
        700,
        (url(), variables),
        |(text, variables)| {
            let variables: HashMap<_, _> = variables.into_iter().collect();
            let environment = |name: &str| variables.get(name).cloned();
            for password in [None, Some(Zeroizing::new(ELSEWHERE.to_owned()))] {
                match DatabaseUrl::read(&text, password, Duration::from_secs(5), &environment) {
                    Ok(url) => {
                        // A password that stands, or stands again, where a host or a name belongs is shown as such.
                        let meant = url.postgres.get_password() == Some(PASSWORD.as_bytes())
                            && text.matches(PASSWORD).count() == 1;
                        let shown = url.to_string();
                        prop_assert!(!meant || !shown.contains(PASSWORD), "{}", shown);
                        prop_assert!(!shown.contains(ELSEWHERE), "{}", shown);
                    }
                    Err(complaint) => prop_assert!(!complaint.contains(PASSWORD), "{}", complaint),
                }
            }
            let _ = DatabaseUrl::text_holds_password(&text);
            Ok(())
        },
    );
}

#[test]
fn no_password_file_brings_the_runner_down() {
    let line = prop_oneof![
        3 => ("(\\*|db|\\\\:)", "(\\*|5432|)", "(\\*|pay)", "(\\*|ann)", any_text())
            .prop_map(|(host, port, name, user, password)| format!("{host}:{port}:{name}:{user}:{password}").into_bytes()),
        1 => any_text().prop_map(String::into_bytes),
        1 => sluice_fuzz::bytes::noise(200),
    ];
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("pgpass");
    fuzz("password_files", 300, vec(line, 0..5), |lines| {
        let content = lines.join(&b'\n');
        fs::write(&file, &content).expect("it can be written");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode can be set");
        let environment = |name: &str| (name == "PGPASSFILE").then(|| file.display().to_string());
        let read = DatabaseUrl::read(
            "host=db user=ann dbname=pay",
            None,
            Duration::from_secs(5),
            &environment,
        );
        if let Err(complaint) = &read {
            // What is no text, or more than a secret.
            prop_assert!(
                std::str::from_utf8(&content).is_err() || content.len() > 8192,
                "{}",
                complaint
            );
        }
        Ok(())
    });
}
