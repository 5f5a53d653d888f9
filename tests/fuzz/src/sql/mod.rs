//! Databases.
