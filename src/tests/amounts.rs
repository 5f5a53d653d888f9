//! Amounts on their way in: exact to the unit up to 38 digits, from every exact type, and from no float.

use super::intake::{Asked, wide_asset};
use super::scene::*;
use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn an_amount_goes_through_to_the_unit_up_to_38_digits() {
        let scene = Scene::open();
        for (number, decimals, amount, units) in [
            (
                1,
                6,
                format!("1{}", "0".repeat(24)),
                format!("1{}", "0".repeat(30)),
            ),
            (
                2,
                6,
                format!("1{}.000001", "0".repeat(24)),
                format!("1{}1", "0".repeat(29)),
            ),
            (3, 0, "9".repeat(38), "9".repeat(38)),
            (4, 38, format!("0.{}", "9".repeat(38)), "9".repeat(38)),
            (5, 38, format!("0.{}1", "0".repeat(37)), "1".to_owned()),
            (
                6,
                18,
                format!("{}.{}", "9".repeat(20), "9".repeat(18)),
                "9".repeat(38),
            ),
        ] {
            let (asset, id) = (format!("WIDE{decimals}"), id(number));
            wide_asset(&asset, decimals);
            let asked = Asked {
                amount: &amount,
                asset: &asset,
                ..Asked::of(&id)
            };
            let taken = one(&format!(
                "select amount_units from ({}) s",
                asked.by_arguments()
            ));
            assert_eq!(taken.as_ref(), Some(&units), "{amount}");
            for way in asked.all_ways() {
                run(&way);
            }
            let filed = |what: &str| {
                one(&format!(
                    "select {what} from sluice.withdrawals w where operation_id = '{id}'"
                ))
            };
            assert_eq!(filed("amount_units").as_ref(), Some(&units));
            assert_eq!(filed("amount").as_ref(), Some(&amount));
            assert_eq!(
                filed(&format!("sluice.format_amount(amount_units, {decimals})")).as_ref(),
                Some(&amount)
            );
            let task = scene.claim("w").remove(0);
            let paid = one(&format!(
                "sluice.decode_raw_data({}) ->> 'amount_units'",
                literal(&task.raw_data)
            ));
            assert_eq!(paid, Some(units), "what the envelope pays");
        }
        let beyond = format!("1{}", "0".repeat(38));
        let id = id(7);
        let asked = Asked {
            amount: &beyond,
            asset: "WIDE0",
            ..Asked::of(&id)
        };
        for way in asked.all_ways() {
            assert_eq!(sqlstate(&way), "SL007");
        }
    }

    #[pg_test]
    fn exact_types_can_be_assigned_to_an_amount_by_their_value() {
        alone();
        run("create temp table numbers (n numeric(38, 6), i int, b bigint, s smallint, t text, v varchar(20));
             insert into numbers values (1.5, 7, 9000, 3, '2.50', '1')");
        for (number, expression, amount) in [
            (1, "'1.50'", "1.5"),
            (2, "1.50", "1.5"),
            (3, "1e3", "1000"),
            (4, "0.000001", "0.000001"),
            (5, "7", "7"),
            (6, "7::smallint", "7"),
            (7, "900000::bigint", "900000"),
            (8, "'2.50'::text", "2.5"),
            (9, "'2.50'::varchar(10)", "2.5"),
            (
                10,
                "1.500000000000000000000000000000000000000000000::numeric",
                "1.5",
            ),
            (11, "(select n from numbers)", "1.5"),
            (12, "(select i from numbers)", "7"),
            (13, "(select b from numbers)", "9000"),
            (14, "(select s from numbers)", "3"),
            (15, "(select t from numbers)", "2.5"),
            (16, "(select v from numbers)", "1"),
            (17, "(select n * 2 from numbers)", "3"),
            (18, "case when true then 1.5 else 2 end", "1.5"),
            (19, "'1.50'::sluice.amount", "1.5"),
            (20, "('{\"a\": \"1.50\"}'::jsonb ->> 'a')", "1.5"),
        ] {
            let id = id(number);
            run(&format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount) values ('{id}', '{THEIRS}', {expression})"
            ));
            let filed = one(&format!(
                "select amount from sluice.withdrawals where operation_id = '{id}'"
            ));
            assert_eq!(filed.as_deref(), Some(amount), "{expression}");
        }
        run(&format!(
            "prepare typed (uuid, text, text) as insert into sluice.withdrawals (operation_id, to_address, amount) values ($1, $2, $3);
             prepare untyped as insert into sluice.withdrawals (operation_id, to_address, amount) values ($1, $2, $3);
             execute typed ('{}', '{THEIRS}', '2.50');
             execute untyped ('{}', '{THEIRS}', '2.50')",
            id(30),
            id(31)
        ));
        assert_eq!(
            one("select count(*) from sluice.withdrawals where amount::text = '2.5' and operation_id >= '00000000-0000-4000-8000-000000000030'").as_deref(),
            Some("2")
        );
    }

    #[pg_test]
    fn no_float_can_be_assigned_to_an_amount() {
        alone();
        run(
            "create temp table floats (f float8, r real); insert into floats values (1.5, 1.5);
             create domain pg_temp.price as float8",
        );
        let before = contents();
        for expression in [
            "1.5::float8",
            "1.5::float4",
            "1.5::real",
            "1.5::double precision",
            "'NaN'::float8",
            "'Infinity'::float8",
            "1::float8",
            "sqrt(2.25::float8)",
            "1.5::float8 + 1",
            "1.5::numeric * 1::float8",
            "extract(epoch from now())::float8",
            "random()",
            "(select f from floats)",
            "(select r from floats)",
            "1.5::pg_temp.price",
            "case when true then 1.5 else 2::float8 end",
        ] {
            let id = id(1);
            for insert in [
                format!("values ('{id}', '{THEIRS}', {expression})"),
                format!("values ('{id}', '{THEIRS}', 2), ('{id}', '{THEIRS}', {expression})"),
                format!("select '{id}'::uuid, '{THEIRS}', {expression}"),
                format!("select '{id}'::uuid, '{THEIRS}', x from (select {expression} as x) s"),
            ] {
                let (state, message) = refused(&format!(
                    "insert into sluice.withdrawals (operation_id, to_address, amount) {insert}"
                ));
                assert_eq!(state, "42804", "{insert}: {message}");
                assert!(message.contains("\"amount\""), "{insert}: {message}");
            }
        }
        for kind in ["float8", "float4"] {
            let prepared = format!(
                "prepare floating (uuid, text, {kind}) as insert into sluice.withdrawals (operation_id, to_address, amount) values ($1, $2, $3)"
            );
            assert_eq!(sqlstate(&prepared), "42804", "{kind}");
            let cast = format!("select 1.5::{kind}::sluice.amount");
            assert_eq!(
                sqlstate(&cast),
                "42846",
                "{kind}: no cast, explicit ones included"
            );
            let argument = format!("select sluice.submit('{}', '{THEIRS}', 1.5::{kind})", id(1));
            assert_eq!(sqlstate(&argument), "42883", "{kind}: submit takes text");
        }
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn copy_takes_what_an_insert_takes_and_logs_it() {
        alone();
        let path = format!("/tmp/sluice-copy-{}", std::process::id());
        let copy = |lines: &[(u32, &str)]| {
            let text: String = lines
                .iter()
                .map(|(number, amount)| format!("{}\t{THEIRS}\t{amount}\n", id(*number)))
                .collect();
            std::fs::write(&path, text).expect("/tmp can be written");
            let statement =
                format!("copy sluice.withdrawals (operation_id, to_address, amount) from '{path}'");
            let outcome = sqlstate(&statement);
            std::fs::remove_file(&path).expect("it was written");
            outcome
        };
        assert_eq!(copy(&[(1, "1.50"), (2, "7"), (3, "1000000")]), "");
        assert_eq!(
            (
                count("select count(*) from sluice.withdrawals"),
                count("select count(*) from sluice.events")
            ),
            (3, 3)
        );
        let before = contents();
        for (amount, state) in [
            ("1e3", "SL003"),
            ("NaN", "SL003"),
            ("Infinity", "SL003"),
            ("1.5 ", "SL003"),
            ("-1", "SL003"),
            ("0", "SL007"),
            ("1000000.000001", "SL007"),
            ("1.0000001", "SL003"),
            ("\\N", "SL005"),
        ] {
            assert_eq!(copy(&[(4, "2"), (5, amount)]), state, "{amount}");
            assert_eq!(contents(), before, "{amount}");
        }
        assert_eq!(
            copy(&[(4, "2"), (1, "1.5")]),
            "23505",
            "COPY has no ON CONFLICT"
        );
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn an_amount_in_binary_is_its_text_and_judged_as_such() {
        alone();
        let path = format!("/tmp/sluice-binary-{}", std::process::id());
        run(&format!(
            "create temp table given (operation_id uuid, to_address text, amount sluice.amount);
             insert into given values ('{}', '{THEIRS}', '7.25');
             copy given to '{path}' (format binary)",
            id(1)
        ));
        let good = std::fs::read(&path).expect("it was written");
        let at = good.windows(4).position(|part| part == b"7.25");
        let at = at.expect("the amount is in the file as its text");
        let copy = format!(
            "copy sluice.withdrawals (operation_id, to_address, amount) from '{path}' (format binary)"
        );
        for (amount, state) in [
            (*b"7e25", "SL003"),
            (*b" 7.2", "SL003"),
            (*b"-7.2", "SL003"),
            (*b"NaN.", "SL003"),
            (*b"0.00", "SL007"),
            (*b"7.2\xff", "22021"),
            (*b"7.2\0", "22021"),
        ] {
            let mut changed = good.clone();
            changed[at..at + 4].copy_from_slice(&amount);
            std::fs::write(&path, changed).expect("it is written again");
            assert_eq!(sqlstate(&copy), state, "{amount:?}");
        }
        std::fs::write(&path, good).expect("it is written again");
        run(&copy);
        std::fs::remove_file(&path).expect("it was written");
        assert_eq!(
            one("select amount || ' ' || amount_units from sluice.withdrawals").as_deref(),
            Some("7.25 7250000")
        );
    }
}
