//! A database under fire: every function of the schema with anything in its arguments, and anything that SQL can do to a table, by
//! everybody. Whatever it is, it is done or refused by name, no backend ends or grows without bound, and what is on file still holds.

mod calls;
mod found;
mod memory;
mod statements;
