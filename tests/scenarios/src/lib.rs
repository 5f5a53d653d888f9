//! Scaffolding for the scenarios: a throwaway PostgreSQL with the extension, runners as real processes, and a node.
