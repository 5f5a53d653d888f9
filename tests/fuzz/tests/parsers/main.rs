//! All that parses bytes from outside, and needs no database: whatever the bytes, it reads or refuses them; what it reads, it
//! reads as others do.

mod addresses;
mod blocks;
mod config;
mod database_url;
mod messages;
mod mock_node;
mod node_answers;
mod texts;
