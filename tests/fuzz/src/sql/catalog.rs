//! What there is in the schema `sluice`: functions with their arguments, tables with their columns, and the types of both.

use std::collections::HashMap;

use postgres::Client;

/// A type, as far as a value of it is to be written.
#[derive(Debug, Clone)]
pub struct Type {
    /// With its schema, where it needs one.
    pub name: String,
    /// What values are made of.
    pub kind: Kind,
}

/// What values of a type are made of.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Something of its own, known by the type's name.
    Base,
    /// One of these labels.
    Enum(Vec<String>),
    /// Elements of this type.
    Array(u32),
    /// Fields with these names and types.
    Composite(Vec<Column>),
}

/// A field of a composite type, or a column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: u32,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Without its schema.
    pub name: String,
    /// What it takes, in order; a name is empty where it has none.
    pub arguments: Vec<Column>,
    /// How many of the last arguments may be left out.
    pub defaults: usize,
    /// What it returns.
    pub returns: u32,
    /// Which logins may call it.
    pub callers: Vec<String>,
}

/// A table, or a view.
#[derive(Debug, Clone)]
pub struct Table {
    /// Without its schema.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The columns of its key; none for a view.
    pub key: Vec<String>,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// In the order of their names.
    pub functions: Vec<Function>,
    /// In the order of their names.
    pub tables: Vec<Table>,
    types: HashMap<u32, Type>,
}

impl Catalog {
    /// Reads it.
    ///
    /// # Panics
    /// Where it cannot be read.
    #[must_use]
    pub fn of(superuser: &mut Client) -> Self {
        superuser
            .batch_execute("set search_path = ''")
            .expect("a setting can be set");
        let columns = columns(superuser);
        let types = types(superuser, &columns);
        let functions = functions(superuser);
        let tables = tables(superuser, &columns);
        superuser
            .batch_execute("reset search_path")
            .expect("a setting can be reset");
        Self {
            functions,
            tables,
            types,
        }
    }

    /// The type with this number.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn type_of(&self, number: u32) -> &Type {
        self.types.get(&number).expect("every type was read")
    }
}

/// Of each relation and composite type of the schema, by the relation's number.
fn columns(client: &mut Client) -> HashMap<u32, Vec<Column>> {
    let rows = client
        .query(
            "select a.attrelid, a.attname::text, a.atttypid
               from pg_catalog.pg_attribute a
               join pg_catalog.pg_class c on c.oid = a.attrelid
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
              where n.nspname = 'sluice' and c.relkind in ('r', 'v', 'c') and a.attnum > 0 and not a.attisdropped
              order by a.attrelid, a.attnum",
            &[],
        )
        .expect("columns can be read");
    let mut columns: HashMap<u32, Vec<Column>> = HashMap::new();
    for row in rows {
        columns.entry(row.get(0)).or_default().push(Column {
            name: row.get(1),
            of: row.get(2),
        });
    }
    columns
}

fn types(client: &mut Client, columns: &HashMap<u32, Vec<Column>>) -> HashMap<u32, Type> {
    let rows = client
        .query(
            "select t.oid, pg_catalog.format_type(t.oid, null), t.typtype::text, t.typcategory::text, t.typelem, t.typrelid,
                    array(select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder)
               from pg_catalog.pg_type t",
            &[],
        )
        .expect("types can be read");
    rows.iter()
        .map(|row| {
            let (of_type, category): (String, String) = (row.get(2), row.get(3));
            let relation: u32 = row.get(5);
            let kind = match (of_type.as_str(), category.as_str()) {
                ("e", _) => Kind::Enum(row.get(6)),
                ("c", _) => Kind::Composite(columns.get(&relation).cloned().unwrap_or_default()),
                ("b", "A") => Kind::Array(row.get(4)),
                _ => Kind::Base,
            };
            let name = row.get(1);
            (row.get(0), Type { name, kind })
        })
        .collect()
}

fn functions(client: &mut Client) -> Vec<Function> {
    let rows = client
        .query(
            "select p.proname::text, p.proargtypes::oid[], coalesce(p.proargnames, '{}'), p.pronargdefaults, p.prorettype,
                    array(select r.rolname::text from pg_catalog.pg_roles r
                           where r.rolcanlogin and not r.rolsuper and pg_catalog.has_function_privilege(r.oid, p.oid, 'execute'))
               from pg_catalog.pg_proc p
               join pg_catalog.pg_namespace n on n.oid = p.pronamespace
              where n.nspname = 'sluice'
              order by p.proname, p.proargtypes::text",
            &[],
        )
        .expect("functions can be read");
    rows.iter()
        .map(|row| {
            let types: Vec<u32> = row.get(1);
            let names: Vec<String> = row.get(2);
            let defaults: i16 = row.get(3);
            let arguments = types
                .into_iter()
                .enumerate()
                .map(|(place, of)| Column {
                    name: names.get(place).cloned().unwrap_or_default(),
                    of,
                })
                .collect();
            Function {
                name: row.get(0),
                arguments,
                defaults: usize::try_from(defaults).expect("a count"),
                returns: row.get(4),
                callers: row.get(5),
            }
        })
        .collect()
}

fn tables(client: &mut Client, columns: &HashMap<u32, Vec<Column>>) -> Vec<Table> {
    let rows = client
        .query(
            "select c.oid, c.relname::text,
                    array(select a.attname::text
                            from pg_catalog.pg_index i
                            join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = any (i.indkey)
                           where i.indrelid = c.oid and i.indisprimary)
               from pg_catalog.pg_class c
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
              where n.nspname = 'sluice' and c.relkind in ('r', 'v')
              order by c.relname",
            &[],
        )
        .expect("tables can be read");
    rows.iter()
        .map(|row| {
            let number: u32 = row.get(0);
            Table {
                name: row.get(1),
                columns: columns.get(&number).cloned().unwrap_or_default(),
                key: row.get(2),
            }
        })
        .collect()
}
