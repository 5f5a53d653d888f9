//! Intake: the ways in, what a repeat and a conflict are, what an application's role may touch.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::{Value, json};

/// 21 bytes of THEIRS, in hex.
const THEIRS_HEX: &str = "4138f7477a811f3c6a45dfa690769a8fa0c6229c7b";
/// Another destination that is nobody of ours.
const ANOTHER: &str = "TBuEjd8JnPL7azKYVGuVrCV3aRQLHAdfEi";

/// One row of a query as JSON, or null.
fn row(sql: &str) -> Value {
    let text = one(&format!("select to_jsonb(t) from ({sql}) t"));
    text.map_or(Value::Null, |text| {
        serde_json::from_str(&text).expect("jsonb is JSON")
    })
}

/// What a withdrawal asks for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub id: &'a str,
    pub to: &'a str,
    pub amount: &'a str,
    pub asset: &'a str,
    pub account: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// 1.5 to somebody, under this id.
    pub fn of(id: &'a str) -> Self {
        Self {
            id,
            to: THEIRS,
            amount: "1.5",
            asset: "USDT-TRC20",
            account: None,
        }
    }

    fn account(&self) -> String {
        self.account.map_or("null".to_owned(), quoted)
    }

    /// By `submit` with arguments.
    pub fn by_arguments(&self) -> String {
        format!(
            "select * from sluice.submit('{}', {}, {}, {}, {})",
            self.id,
            quoted(self.to),
            quoted(self.amount),
            quoted(self.asset),
            self.account()
        )
    }

    /// By `submit` with a payload.
    pub fn by_payload(&self) -> String {
        let payload = json!({
            "operation_id": self.id, "to_address": self.to, "amount": self.amount, "asset": self.asset,
            "account": self.account,
        });
        format!(
            "select * from sluice.submit({}::jsonb)",
            quoted(&payload.to_string())
        )
    }

    /// By INSERT.
    pub fn by_insert(&self, then: &str) -> String {
        format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount, asset, account) values ('{}', {}, {}, {}, {}) {then}",
            self.id,
            quoted(self.to),
            quoted(self.amount),
            quoted(self.asset),
            self.account()
        )
    }

    /// All the ways in that take repeats.
    pub fn all_ways(&self) -> [String; 4] {
        [
            self.by_arguments(),
            self.by_payload(),
            self.by_insert("on conflict (operation_id) do nothing"),
            self.by_insert("on conflict do nothing returning operation_id"),
        ]
    }
}

/// The one text that a statement returns, or None where it returns no row.
fn returning(statement: &str) -> Option<String> {
    Spi::connect_mut(|client| {
        let rows = client.update(statement, None, &[])?;
        rows.into_iter().next().map_or(Ok(None), |row| row.get(1))
    })
    .expect("the statement runs")
}

fn rows_of(table: &str) -> i64 {
    count(&format!("select count(*) from sluice.{table}"))
}

/// An asset whose limits let anything pass that numeric(38,0) holds.
pub fn wide_asset(name: &str, decimals: usize) {
    let maximum = match decimals {
        0 => "9".repeat(38),
        38 => format!("0.{}", "9".repeat(38)),
        _ => format!("{}.{}", "9".repeat(38 - decimals), "9".repeat(decimals)),
    };
    let minimum = match decimals {
        0 => "1".to_owned(),
        _ => format!("0.{}1", "0".repeat(decimals - 1)),
    };
    run(&format!(
        "select sluice.set_asset('{name}', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', {decimals}, '{minimum}', '{maximum}', 100000000, 0, true)"
    ));
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn submit_answers_with_what_it_took_in() {
        alone();
        let by_arguments = row(&format!(
            "select * from sluice.submit('{}', ' {THEIRS_HEX}', '0012.50', 'USDT-TRC20', 'user-7', 'desk')",
            id(1)
        ));
        assert_eq!(
            by_arguments,
            json!({
                "operation_id": id(1), "state": "requested", "created": true, "to_address": THEIRS,
                "destination": format!(" {THEIRS_HEX}"), "amount": "12.5", "asset": "USDT-TRC20", "amount_units": 12_500_000,
                "account": "user-7", "txid": null,
            })
        );
        let by_payload = row(&format!(
            r#"select * from sluice.submit('{{"operation_id": "{}", "to_address": "{THEIRS}", "amount": "12.5"}}')"#,
            id(2)
        ));
        assert_eq!(
            by_payload,
            json!({
                "operation_id": id(2), "state": "requested", "created": true, "to_address": THEIRS,
                "destination": THEIRS, "amount": "12.5", "asset": "USDT-TRC20", "amount_units": 12_500_000,
                "account": null, "txid": null,
            })
        );
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (2, 2));
    }

    #[pg_test]
    fn each_way_in_files_the_same_row_and_the_same_entry() {
        alone();
        let ids: Vec<String> = (1..=5).map(id).collect();
        let asked = |number: usize| Asked {
            account: Some("user-7"),
            ..Asked::of(&ids[number])
        };
        run(&asked(0).by_arguments());
        run(&asked(1).by_payload());
        run(&asked(2).by_insert(""));
        run(&asked(3).by_insert("on conflict (operation_id) do nothing"));
        let returned =
            returning(&asked(4).by_insert("on conflict do nothing returning state::text"));
        assert_eq!(returned.as_deref(), Some("requested"));

        let filed = |id: &str| {
            let mut filed = row(&format!(
                "select w.*, e.detail as entry, e.from_state, e.to_state, e.seq as entry_seq, e.worker_id,
                        e.hash = w.hash as hash_agrees,
                        w.request_hash = sluice.request_hash(w.to_address, w.amount_units, w.asset, w.account) as request_agrees
                   from sluice.withdrawals w join sluice.events e using (operation_id) where operation_id = '{id}'"
            ));
            let fields = filed.as_object_mut().expect("the row is there");
            // What differs between two rows: the id, the moment, and what is hashed over both.
            for key in ["operation_id", "created_at", "changed_at", "due_at", "hash"] {
                fields.remove(key);
            }
            filed
        };
        let first = filed(&ids[0]);
        assert_eq!(first["state"], "requested");
        assert_eq!((&first["seq"], &first["entry_seq"]), (&json!(1), &json!(1)));
        assert_eq!(
            (&first["hash_agrees"], &first["request_agrees"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(
            (&first["from_state"], &first["to_state"]),
            (&Value::Null, &json!("requested"))
        );
        assert_eq!(first["entry"]["amount_units"], "1500000");
        assert_eq!(first["entry"]["account"], "user-7");
        for id in &ids[1..] {
            assert_eq!(filed(id), first);
        }
    }

    #[pg_test]
    fn a_repeat_is_answered_with_the_first_values_and_the_present_state() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let before = contents();
        for way in Asked::of(&id).all_ways() {
            run(&way);
            assert_eq!(contents(), before, "{way}");
        }
        assert_eq!(row(&Asked::of(&id).by_arguments())["created"], false);
        assert_eq!(row(&Asked::of(&id).by_payload())["created"], false);
        let repeat = Asked::of(&id).by_insert("on conflict do nothing returning state::text");
        assert_eq!(returning(&repeat), None, "RETURNING shows new rows");

        let task = scene.claim("w").remove(0);
        let answer = row(&Asked {
            amount: "1.50",
            to: THEIRS_HEX,
            ..Asked::of(&id)
        }
        .by_arguments());
        assert_eq!(answer["state"], "signing");
        assert_eq!(answer["txid"], hex::encode(task.txid));
        assert_eq!(
            (&answer["destination"], &answer["amount"]),
            (&json!(THEIRS), &json!("1.5"))
        );
    }

    #[pg_test]
    fn a_repeat_without_on_conflict_is_postgresqls_own_duplicate_key_and_changes_nothing() {
        alone();
        let id = id(1);
        run(&Asked::of(&id).by_insert(""));
        let before = contents();
        assert_eq!(sqlstate(&Asked::of(&id).by_insert("")), "23505");
        let other = Asked {
            amount: "2",
            ..Asked::of(&id)
        };
        assert_eq!(sqlstate(&other.by_insert("")), "23505");
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn a_repeat_in_other_words_is_the_same_request() {
        alone();
        let id = id(1);
        run(&Asked::of(&id).by_arguments());
        let upper = THEIRS_HEX.to_uppercase();
        let prefixed = format!("0x{THEIRS_HEX}");
        let padded = format!(" \t{THEIRS}\r\n");
        let before = contents();
        let mut asked = vec![];
        for amount in ["1.50", "01.5", "0001.500000", "1.5000000000000000000"] {
            asked.push(Asked {
                amount,
                ..Asked::of(&id)
            });
        }
        for to in [THEIRS_HEX, &upper, &prefixed, &padded] {
            asked.push(Asked {
                to,
                ..Asked::of(&id)
            });
        }
        for asked in asked {
            for way in asked.all_ways() {
                run(&way);
            }
            assert_eq!(row(&asked.by_arguments())["created"], false);
        }
        assert_eq!(contents(), before);
        let desk = format!(
            "select created from sluice.submit('{id}', '{THEIRS}', '1.5', requested_by => 'another desk')"
        );
        assert_eq!(
            one(&desk).as_deref(),
            Some("false"),
            "who asks is no part of what is asked"
        );
    }

    #[pg_test]
    fn another_meaning_under_the_same_id_is_a_conflict_and_writes_nothing() {
        alone();
        wide_asset("OTHER", 6);
        let (plain, with_account) = (id(1), id(2));
        run(&Asked::of(&plain).by_arguments());
        run(&Asked {
            account: Some("user-7"),
            ..Asked::of(&with_account)
        }
        .by_arguments());
        let before = contents();
        let one_unit_more = "1.500001";
        for other in [
            Asked {
                amount: one_unit_more,
                ..Asked::of(&plain)
            },
            Asked {
                amount: "15",
                ..Asked::of(&plain)
            },
            // Beyond the asset's decimals and limits: still first of all another meaning.
            Asked {
                amount: "1.5000001",
                ..Asked::of(&plain)
            },
            Asked {
                amount: "99999999999",
                ..Asked::of(&plain)
            },
            Asked {
                to: ANOTHER,
                ..Asked::of(&plain)
            },
            Asked {
                asset: "OTHER",
                ..Asked::of(&plain)
            },
            Asked {
                account: Some("user-7"),
                ..Asked::of(&plain)
            },
            Asked {
                account: None,
                ..Asked::of(&with_account)
            },
            Asked {
                account: Some("user-8"),
                ..Asked::of(&with_account)
            },
            Asked {
                account: Some("user-7 "),
                ..Asked::of(&with_account)
            },
        ] {
            for way in other.all_ways() {
                let (state, message) = refused(&way);
                assert_eq!(state, "SL001", "{way}: {message}");
                assert!(
                    message.starts_with("operation_id: ") && message.contains(other.id),
                    "{way}: {message}"
                );
            }
        }
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn one_statement_with_an_id_twice_makes_one_row_or_a_conflict() {
        alone();
        let insert = |values: &[(u32, &str)]| {
            let values: Vec<String> = values
                .iter()
                .map(|(number, amount)| format!("('{}', '{THEIRS}', '{amount}')", id(*number)))
                .collect();
            format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount) values {} on conflict (operation_id) do nothing",
                values.join(", ")
            )
        };
        run(&insert(&[(1, "1.5"), (2, "7"), (1, "1.50"), (1, "01.5")]));
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (2, 2));
        let before = contents();
        for (values, state) in [
            (&[(3, "1.5"), (3, "2")][..], "SL001"),
            (&[(3, "1.5"), (3, "99999999999")], "SL001"),
            (&[(3, "1.5"), (3, "1.5"), (3, "1.4")], "SL001"),
            // Against what stood before, beside a row that is new.
            (&[(3, "1.5"), (1, "1.6")], "SL001"),
            (&[(1, "1.6"), (3, "1.5")], "SL001"),
            // The first of two, which is the one stored, is out of bounds.
            (&[(3, "99999999999"), (3, "99999999999")], "SL007"),
            (&[(1, "1.5"), (3, "0")], "SL007"),
        ] {
            assert_eq!(sqlstate(&insert(values)), state, "{values:?}");
            assert_eq!(contents(), before, "{values:?}");
        }
        run(&insert(&[(1, "1.50"), (3, "1.5"), (2, "7.0"), (3, "1.5")]));
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (3, 3));
    }

    #[pg_test]
    fn an_id_once_accepted_is_answered_whatever_limits_assets_and_wallets_have_become() {
        alone();
        let contract = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
        for (number, change, refusal) in [
            (
                1,
                format!("select sluice.set_asset('A1', '{contract}', 6, '0.1', '1', 1, 0, true)"),
                "SL007",
            ),
            (
                2,
                format!("select sluice.set_asset('A2', '{contract}', 6, '2', '10', 1, 0, true)"),
                "SL007",
            ),
            (
                3,
                format!("select sluice.set_asset('A3', '{contract}', 0, '1', '10', 1, 0, true)"),
                "SL003",
            ),
            (
                4,
                format!("select sluice.set_asset('A4', '{contract}', 18, '1', '10', 1, 0, true)"),
                "",
            ),
            (
                5,
                format!("select sluice.set_asset('A5', '{THEIRS}', 6, '1', '10', 1, 0, true)"),
                "SL008",
            ),
            (
                6,
                format!("select sluice.add_wallet('{ANOTHER}', 'hmac')"),
                "SL008",
            ),
        ] {
            let (accepted, fresh, asset) = (id(number), id(number + 100), format!("A{number}"));
            run(&format!(
                "select sluice.set_asset('{asset}', '{contract}', 6, '0.1', '10', 1, 0, true)"
            ));
            let asked = Asked {
                asset: &asset,
                to: if number == 6 { ANOTHER } else { THEIRS },
                ..Asked::of(&accepted)
            };
            let first = row(&asked.by_arguments());
            assert_eq!(first["created"], true, "{change}");
            run(&change);
            let before = contents();
            for way in asked.all_ways() {
                run(&way);
                assert_eq!(contents(), before, "{change}; {way}");
            }
            let mut expected = first;
            expected["created"] = json!(false);
            assert_eq!(row(&asked.by_arguments()), expected, "{change}");
            assert_eq!(row(&asked.by_payload()), expected, "{change}");
            // The same under a new id is judged by what stands now.
            let anew = Asked {
                id: &fresh,
                ..asked
            };
            for way in anew.all_ways() {
                if refusal.is_empty() {
                    run(&way);
                } else {
                    assert_eq!(sqlstate(&way), refusal, "{change}; {way}");
                }
            }
        }
    }

    #[pg_test]
    fn statements_within_statements_are_judged_each_by_itself() {
        alone();
        run(&format!(
            "create function pg_temp.another(id uuid, amount text) returns text language plpgsql as $$
             begin
               insert into sluice.withdrawals (operation_id, to_address, amount) values (id, '{THEIRS}', amount);
               return '8';
             exception when others then
               return '9';
             end $$"
        ));
        // Each row of the outer INSERT runs one of its own before it is stored; those with 0 are refused inside.
        for (inner, filed) in [("7", "7,7,7,8,8,8"), ("0", "7,7,7,8,8,8,9,9,9")] {
            run(&format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount)
                 select gen_random_uuid(), '{THEIRS}', pg_temp.another(gen_random_uuid(), '{inner}') from generate_series(1, 3)"
            ));
            assert_eq!(
                one("select string_agg(amount::text, ',' order by amount::text) from sluice.withdrawals").as_deref(),
                Some(filed)
            );
        }
        assert_eq!(rows_of("events"), 9);

        let both = |first: &str, second: &str| {
            let insert = |number: u32, amount: &str| {
                format!(
                    "insert into sluice.withdrawals (operation_id, to_address, amount) values ('{}', '{THEIRS}', '{amount}') on conflict do nothing",
                    id(number)
                )
            };
            format!(
                "with a as ({} returning 1), b as ({} returning 1) select * from a, b",
                insert(1, first),
                insert(if first == second { 1 } else { 2 }, second)
            )
        };
        assert_eq!(sqlstate(&both("1", "0")), "SL007");
        assert_eq!(sqlstate(&both("0", "1")), "SL007");
        assert_eq!(rows_of("withdrawals"), 9);
        run(&both("1", "1"));
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (10, 10));
        assert_eq!(
            sqlstate(&both("2", "3")),
            "SL001",
            "the first id stands, with another amount"
        );

        run(&format!(
            "merge into sluice.withdrawals w using (values ('{}'::uuid, '4'), ('{}', '1')) v (id, amount) on w.operation_id = v.id
             when not matched then insert (operation_id, to_address, amount) values (v.id, '{THEIRS}', v.amount)",
            id(3),
            id(1)
        ));
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (11, 11));
    }

    #[pg_test]
    fn a_refused_statement_leaves_nothing_behind_for_the_next() {
        alone();
        let id = id(1);
        for amount in ["0", "1.0000001", "nonsense", "99999999999"] {
            let asked = Asked {
                amount,
                ..Asked::of(&id)
            };
            for way in asked.all_ways() {
                assert_ne!(sqlstate(&way), "", "{way}");
            }
        }
        run(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount) select '{id}', '{THEIRS}', '1' where false"
        ));
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (0, 0));
        assert_eq!(row(&Asked::of(&id).by_arguments())["created"], true);
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (1, 1));
    }

    #[pg_test]
    fn an_application_may_insert_what_it_asks_for_and_nothing_else() {
        alone();
        let asked = [
            "operation_id",
            "to_address",
            "amount",
            "asset",
            "account",
            "requested_by",
        ];
        let columns = one("select string_agg(attname, ',') from pg_attribute where attrelid = 'sluice.withdrawals'::regclass and attnum > 0 and not attisdropped")
            .expect("there are columns");
        run("set local role sluice_app");
        run(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount, asset, account, requested_by)
             values ('{}', '{THEIRS}', '1.5', 'USDT-TRC20', 'user-7', 'desk') on conflict (operation_id) do nothing",
            id(1)
        ));
        for way in Asked::of(&id(2)).all_ways() {
            run(&way);
        }
        assert_eq!(
            sqlstate(
                &Asked {
                    amount: "2",
                    ..Asked::of(&id(2))
                }
                .by_insert("on conflict do nothing")
            ),
            "SL001"
        );
        assert_eq!(
            one(
                "select string_agg(operation_id || ' ' || state, ',' order by operation_id) from sluice.withdrawals"
            ),
            Some(format!("{} requested,{} requested", id(1), id(2)))
        );
        assert_eq!(
            one(&format!(
                "select account from sluice.withdrawal('{}')",
                id(1)
            ))
            .as_deref(),
            Some("user-7")
        );

        let mut refused_columns = 0;
        for column in columns.split(',') {
            if !["operation_id", "state"].contains(&column) {
                let read = format!("select {column} from sluice.withdrawals");
                assert_eq!(sqlstate(&read), "42501", "{read}");
            }
            let change = format!("update sluice.withdrawals set {column} = null");
            assert_eq!(sqlstate(&change), "42501", "{change}");
            if asked.contains(&column) {
                continue;
            }
            refused_columns += 1;
            let write = format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount, {column}) values ('{}', '{THEIRS}', '1', null)",
                id(3)
            );
            assert_eq!(sqlstate(&write), "42501", "{write}");
        }
        assert!(refused_columns > 25, "{refused_columns} of {columns}");
        for statement in [
            "delete from sluice.withdrawals".to_owned(),
            "truncate sluice.withdrawals".to_owned(),
            Asked::of(&id(3)).by_insert("on conflict (operation_id) do update set amount = '2'"),
            Asked::of(&id(3)).by_insert("returning *"),
            "select * from sluice.events".to_owned(),
            "select * from sluice.claim_batch('w')".to_owned(),
            format!("select sluice.cancel('{}', 'r')", id(1)),
            format!("select sluice.add_wallet('{ANOTHER}', 'hmac')"),
            "select sluice.intake_begin('[]', '{}')".to_owned(),
            "select sluice.intake_end('{}')".to_owned(),
        ] {
            assert_eq!(sqlstate(&statement), "42501", "{statement}");
        }
        run("reset role");
        assert_eq!((rows_of("withdrawals"), rows_of("events")), (2, 2));
    }

    #[pg_test]
    fn one_insert_takes_fifty_thousand_rows_and_logs_each() {
        alone();
        run(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount)
             select ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, '{THEIRS}', (i % 1000 + 1)::text
               from generate_series(1, 50000) i
             on conflict (operation_id) do nothing"
        ));
        assert_eq!(
            (rows_of("withdrawals"), rows_of("events")),
            (50_000, 50_000)
        );
        assert_eq!(
            one("select sum(amount_units) from sluice.withdrawals").as_deref(),
            Some("25025000000000")
        );
        // Again with one that means something else: nothing of it stays.
        let again = |amount: &str| {
            format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount)
                 select ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, '{THEIRS}',
                        case when i = 50001 then '{amount}' else (least(i, 50000) % 1000 + 1)::text end
                   from generate_series(49000, 50001) i
                 on conflict (operation_id) do nothing"
            )
        };
        assert_eq!(sqlstate(&again("0")), "SL007");
        assert_eq!(rows_of("withdrawals"), 50_000);
        run(&again("1"));
        assert_eq!(
            (rows_of("withdrawals"), rows_of("events")),
            (50_001, 50_001)
        );
    }
}
