//! Calls and statements: every function by itself and inside of each other, and what SQL can do to a table.

use crate::session::Draws;
use crate::sql::catalog::{Column, Function, Table};
use crate::sql::values::{Values, quoted};

/// Writes statements.
pub struct Statements<'a> {
    /// Writes their values.
    pub values: Values<'a>,
}

impl Statements<'_> {
    /// A call of this function.
    pub fn call(&self, draws: &mut Draws, function: &Function) -> String {
        let values = Values {
            polite: draws.one_in(2),
            ..self.values
        };
        let call = Statements { values }.expression(draws, function, 0);
        match draws.below(6) {
            0..3 => format!("select * from {call} called"),
            3 => format!("select {call}"),
            4 => format!("select count(*) from (select {call}) called"),
            _ => format!(
                "select called.* from generate_series(1, 2) n cross join lateral {call} called"
            ),
        }
    }

    fn expression(&self, draws: &mut Draws, function: &Function, depth: usize) -> String {
        let left_out = if draws.one_in(3) {
            draws.below(function.defaults + 1)
        } else {
            0
        };
        let given = function.arguments.len() - left_out;
        let by_name = draws.one_in(5)
            && function
                .arguments
                .iter()
                .all(|argument| !argument.name.is_empty());
        let arguments: Vec<String> = function.arguments[..given]
            .iter()
            .map(|argument| {
                let value = self.argument(draws, argument, depth);
                if by_name {
                    format!("{} => {value}", argument.name)
                } else {
                    value
                }
            })
            .collect();
        format!("sluice.{}({})", function.name, arguments.join(", "))
    }

    /// A value, or a call that gives one of its type.
    fn argument(&self, draws: &mut Draws, argument: &Column, depth: usize) -> String {
        if depth < 2 && draws.one_in(8) {
            let fitting: Vec<&Function> = self
                .values
                .catalog
                .functions
                .iter()
                .filter(|function| function.returns == argument.of)
                .collect();
            if !fitting.is_empty() {
                let inner = *draws.pick(&fitting);
                return self.expression(draws, inner, depth + 1);
            }
        }
        self.values.of(draws, argument)
    }

    fn table(&self, draws: &mut Draws) -> Table {
        // Withdrawals and envelopes have the most to break.
        let tables = &self.values.catalog.tables;
        if draws.one_in(3) {
            let wanted = *draws.pick(&["withdrawals", "withdrawals", "envelopes", "events"]);
            if let Some(table) = tables.iter().find(|table| table.name == wanted) {
                return table.clone();
            }
        }
        draws.pick(tables).clone()
    }

    fn columns(&self, draws: &mut Draws, table: &Table) -> Vec<Column> {
        match draws.below(4) {
            0 => table.columns.clone(),
            1 if table.name == "withdrawals" => {
                let intake = [
                    "operation_id",
                    "to_address",
                    "amount",
                    "asset",
                    "account",
                    "requested_by",
                ];
                let count = draws.below(3) + 4;
                table
                    .columns
                    .iter()
                    .filter(|column| intake[..count].contains(&column.name.as_str()))
                    .cloned()
                    .collect()
            }
            _ => {
                let some: Vec<Column> = table
                    .columns
                    .iter()
                    .filter(|column| table.key.contains(&column.name) || draws.one_in(2))
                    .cloned()
                    .collect();
                if some.is_empty() {
                    table.columns.clone()
                } else {
                    some
                }
            }
        }
    }

    fn names(columns: &[Column]) -> String {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    fn row(&self, draws: &mut Draws, columns: &[Column]) -> String {
        let values: Vec<String> = columns
            .iter()
            .map(|column| {
                if draws.one_in(12) {
                    "default".to_owned()
                } else {
                    self.values.of(draws, column)
                }
            })
            .collect();
        format!("({})", values.join(", "))
    }

    fn insert(&self, draws: &mut Draws, table: &Table) -> String {
        let columns = self.columns(draws, table);
        let names = Self::names(&columns);
        let source = if draws.one_in(4) {
            format!(
                "select {names} from sluice.{} limit {}",
                table.name,
                draws.below(5)
            )
        } else {
            let rows: Vec<String> = (0..=draws.below(3))
                .map(|_| self.row(draws, &columns))
                .collect();
            format!("values {}", rows.join(", "))
        };
        let conflict = match draws.below(4) {
            0 => " on conflict do nothing".to_owned(),
            1 if !table.key.is_empty() => {
                format!(" on conflict ({}) do nothing", table.key.join(", "))
            }
            2 if !table.key.is_empty() => format!(
                " on conflict ({}) do update set {}",
                table.key.join(", "),
                self.assignment(draws, table)
            ),
            _ => String::new(),
        };
        let returning = if draws.one_in(3) { " returning *" } else { "" };
        format!(
            "insert into sluice.{} ({names}) {source}{conflict}{returning}",
            table.name
        )
    }

    fn assignment(&self, draws: &mut Draws, table: &Table) -> String {
        let count = draws.below(3) + 1;
        let mut columns: Vec<Column> = (0..count)
            .map(|_| draws.pick(&table.columns).clone())
            .collect();
        columns.dedup_by(|a, b| a.name == b.name);
        let all: Vec<String> = columns
            .iter()
            .map(|column| match draws.below(4) {
                0 => format!("{0} = {1}.{0}", column.name, table.name),
                _ => format!("{} = {}", column.name, self.values.of(draws, column)),
            })
            .collect();
        all.join(", ")
    }

    fn condition(&self, draws: &mut Draws, table: &Table) -> String {
        match draws.below(4) {
            0 => "true".to_owned(),
            1 => "random() < 0.3".to_owned(),
            _ => {
                let column = draws.pick(&table.columns).clone();
                format!(
                    "{}.{} is not distinct from {}",
                    table.name,
                    column.name,
                    self.values.of(draws, &column)
                )
            }
        }
    }

    /// A step that a row may take, or not: what the guard is there to judge.
    fn step(&self, draws: &mut Draws) -> String {
        let states = [
            "requested",
            "validated",
            "signing",
            "signed",
            "broadcasting",
            "broadcast",
            "confirmed",
            "failed",
            "rejected",
        ];
        let to = *draws.pick(&states);
        let path = match draws.below(3) {
            0 => "null".to_owned(),
            1 => format!("'{{{}}}'", draws.pick(&states)),
            _ => format!("'{{{},{to}}}'", draws.pick(&states)),
        };
        let from = *draws.pick(&states);
        format!(
            "update sluice.withdrawals set state = '{to}', step_path = {path}::sluice.state[], step_seq = seq, step_by = 'x',
                step_detail = '[{{}}, {{}}]', failure_reason = coalesce(failure_reason, 'r')
              where state = '{from}'"
        )
    }

    /// What SQL can do.
    pub fn statement(&self, draws: &mut Draws) -> String {
        let table = self.table(draws);
        let name = &table.name;
        match draws.below(20) {
            0..4 => self.insert(draws, &table),
            4..7 => format!(
                "update sluice.{name} set {} where {}",
                self.assignment(draws, &table),
                self.condition(draws, &table)
            ),
            7 => format!(
                "delete from sluice.{name} where {} returning *",
                self.condition(draws, &table)
            ),
            8 => format!("truncate sluice.{name} cascade"),
            9 => format!(
                "merge into sluice.{name} using (select * from sluice.{name} limit 3) s on {}
                 when matched and random() < 0.5 then update set {} when matched then delete
                 when not matched then insert default values",
                self.condition(draws, &table),
                self.assignment(draws, &table)
            ),
            10 => format!(
                "with written as (update sluice.{name} set {} where {} returning *), more as ({} ) select count(*) from written",
                self.assignment(draws, &table),
                self.condition(draws, &table),
                self.insert(draws, &table).replace(" returning *", "") + " returning 1"
            ),
            11 => format!(
                "select * from sluice.{name} where {} for update skip locked",
                self.condition(draws, &table)
            ),
            12 => self.step(draws),
            13 => {
                let text = self.statement_text(draws, &table);
                format!(
                    "do $fuzz$ begin begin execute {}; exception when others then
                       if sqlstate like 'XX%' then raise; end if; end; {}; end $fuzz$",
                    quoted(&text),
                    self.step(draws)
                )
            }
            14 => format!(
                "declare c cursor for select * from sluice.{name} for update; fetch 1 from c;
                 update sluice.{name} set {} where current of c",
                self.assignment(draws, &table)
            ),
            15 => format!(
                "declare c scroll cursor with hold for {}; fetch 2 from c; move backward 1 in c; close c",
                self.any_call(draws)
            ),
            16 => format!(
                "prepare p as {}; execute p; execute p; deallocate p",
                self.statement_text(draws, &table)
            ),
            17 => format!(
                "explain (analyze, format json) {}",
                self.statement_text(draws, &table)
            ),
            18 => (*draws.pick(&[
                "set constraints all immediate",
                "set local synchronous_commit = off",
                "set local search_path = public, sluice",
                "set local row_security = off",
                "set local enable_nestloop = off",
                "set local \"sluice.now\" = 'yesterday'",
                "lock table sluice.withdrawals in exclusive mode",
                "set local timezone = 'Asia/Kathmandu'",
                "set local bytea_output = 'escape'",
                "set local intervalstyle = 'iso_8601'",
            ]))
            .to_owned(),
            _ => self.any_call(draws),
        }
    }

    fn statement_text(&self, draws: &mut Draws, table: &Table) -> String {
        match draws.below(3) {
            0 => self.insert(draws, table),
            1 => format!(
                "update sluice.{} set {} where {}",
                table.name,
                self.assignment(draws, table),
                self.condition(draws, table)
            ),
            _ => self.any_call(draws),
        }
    }

    fn any_call(&self, draws: &mut Draws) -> String {
        let function = draws.pick(&self.values.catalog.functions).clone();
        self.call(draws, &function)
    }

    /// A COPY, and what it is given: rows as a dump writes them, or something else.
    pub fn copy(&self, draws: &mut Draws) -> (String, Vec<u8>) {
        let table = self.table(draws);
        let columns = self.columns(draws, &table);
        let form = *draws.pick(&["text", "text", "csv", "binary"]);
        let statement = format!(
            "copy sluice.{} ({}) from stdin with (format {form})",
            table.name,
            Self::names(&columns)
        );
        let field = |draws: &mut Draws, column: &Column| {
            let literal = self.values.of(draws, column);
            let text = literal
                .split("::")
                .next()
                .unwrap_or_default()
                .trim_matches(['\'', '(', ')'])
                .to_owned();
            if text == "null" {
                "\\N".to_owned()
            } else {
                text.replace(['\t', '\n', '\r'], " ")
            }
        };
        let bytes = if form == "binary" {
            let noise = draws.next(&crate::bytes::noise(200));
            [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".as_slice(), &noise].concat()
        } else {
            let separator = if form == "csv" { "," } else { "\t" };
            let lines: Vec<String> = (0..=draws.below(3))
                .map(|_| {
                    let fields: Vec<String> =
                        columns.iter().map(|column| field(draws, column)).collect();
                    fields.join(separator) + "\n"
                })
                .collect();
            lines.concat().into_bytes()
        };
        let bytes = if draws.one_in(4) {
            let how = draws.next(&crate::bytes::damages());
            crate::bytes::damaged(bytes, &how)
        } else {
            bytes
        };
        (statement, bytes)
    }
}
