//! The model: the decisions of sluice-core, in every order within bounds.
