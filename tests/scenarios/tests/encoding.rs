//! The encoding of the database: the extension asks for UTF-8, since its Rust half reads texts as nothing else.

use sluice_scenarios::Postgres;

#[test]
fn a_database_of_another_encoding_is_refused_before_anything_is_made() {
    let postgres = Postgres::start();
    let mut superuser = postgres.database("postgres").superuser();
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let name = encoding.to_lowercase();
        superuser
            .batch_execute(&format!(
                "create database {name} encoding '{encoding}' locale 'C' template template0"
            ))
            .expect("a database is made");
        let mut client = postgres.database(&name).superuser();
        let refusal = client
            .batch_execute("create extension sluice")
            .expect_err("the encoding is refused");
        let error = refusal.as_db_error().expect("by the database");
        assert_eq!(error.code().code(), "0A000");
        assert!(error.message().contains(encoding), "{}", error.message());
        let left: i64 = client
            .query_one(
                "select count(*) from pg_namespace where nspname = 'sluice'",
                &[],
            )
            .expect("the session goes on")
            .get(0);
        assert_eq!(left, 0);
    }
}
