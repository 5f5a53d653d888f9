//! TLS to the database, against a real server with a certificate of a small authority of our own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sluice_runner::config::DatabaseConfig;
use sluice_runner::database_url::DatabaseUrl;
use sluice_runner::db::{Call, Database};
use sluice_scenarios::Postgres;

use crate::support::run;

const TLS_USED: Call = Call {
    name: "tls",
    sql: "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
    points: None,
};

/// Files that end with the test.
struct Files(PathBuf);

impl Files {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn authority() -> (CertificateParams, KeyPair, String) {
    let mut params = CertificateParams::new(vec![]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    (params, key, pem)
}

/// A key that PostgreSQL takes: readable by its own user alone.
fn give_to_postgres(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .expect("its mode can be set");
    if rustix::process::geteuid().is_root() {
        let given = Command::new("chown")
            .arg("postgres")
            .arg(path)
            .status()
            .expect("chown can be run");
        assert!(given.success());
    }
}

fn connects(text: &str) -> Result<bool, String> {
    let url = DatabaseUrl::read(text, None, Duration::from_secs(5), &|_| None)?;
    let config = DatabaseConfig {
        url,
        statement_timeout: Duration::from_secs(10),
    };
    let rows = run(Database::new(config, "tls".to_owned()).call(TLS_USED, &[]))
        .map_err(|error| error.to_string())?;
    Ok(rows[0].get(0))
}

#[test]
fn each_sslmode_checks_what_it_says_and_no_less() {
    let files = Files(std::env::temp_dir().join(format!("sluice-tls-{}", std::process::id())));
    std::fs::create_dir_all(&files.0).expect("a temporary directory can be made");
    std::fs::set_permissions(&files.0, std::fs::Permissions::from_mode(0o755))
        .expect("its mode can be set");
    let (params, key, authority_pem) = authority();
    let (_, _, stranger_pem) = authority();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(vec!["localhost".to_owned()])
        .expect("parameters")
        .signed_by(&server_key, &issuer);
    let certificate = files.write("server.crt", &server.expect("a certificate").pem());
    let key = files.write("server.key", &server_key.serialize_pem());
    give_to_postgres(&key);
    let ours = files.write("ours.crt", &authority_pem);
    let strangers = files.write("strangers.crt", &stranger_pem);

    let postgres = Postgres::start_with(&[
        ("ssl", "on"),
        ("ssl_cert_file", certificate.to_str().expect("UTF-8")),
        ("ssl_key_file", key.to_str().expect("UTF-8")),
    ]);
    let database = postgres.createdb("secure");
    database
        .superuser()
        .batch_execute("create role carrier login password 'secret'")
        .expect("a role");
    let port = database
        .program("psql")
        .get_envs()
        .find(|(key, _)| *key == "PGPORT")
        .and_then(|(_, value)| value)
        .expect("a port")
        .to_string_lossy()
        .into_owned();
    let at = |host: &str, more: &str| {
        connects(&format!(
            "postgresql://carrier:secret@{host}:{port}/secure?{more}"
        ))
    };
    let root = |path: &Path| format!("sslrootcert={}", path.display());

    assert_eq!(at("localhost", "sslmode=disable"), Ok(false));
    assert_eq!(
        at("localhost", ""),
        Ok(true),
        "prefer takes TLS where there is some"
    );
    assert_eq!(
        at("127.0.0.1", "sslmode=require"),
        Ok(true),
        "require checks nothing"
    );
    assert_eq!(
        at("localhost", &format!("sslmode=verify-full&{}", root(&ours))),
        Ok(true)
    );
    assert_eq!(
        at("127.0.0.1", &format!("sslmode=verify-ca&{}", root(&ours))),
        Ok(true),
        "verify-ca asks for no name"
    );
    assert_eq!(
        at("127.0.0.1", &format!("sslmode=require&{}", root(&ours))),
        Ok(true)
    );

    for (host, refused) in [
        ("127.0.0.1", format!("sslmode=verify-full&{}", root(&ours))),
        (
            "localhost",
            format!("sslmode=verify-full&{}", root(&strangers)),
        ),
        (
            "localhost",
            format!("sslmode=verify-ca&{}", root(&strangers)),
        ),
        ("localhost", format!("sslmode=require&{}", root(&strangers))),
        ("localhost", "sslmode=verify-full".to_owned()),
        ("localhost", format!("sslmode=verify-full&{}", root(&key))),
    ] {
        assert!(at(host, &refused).is_err(), "{host} {refused}");
    }
}
