//! The model, checked: the rules as shipped keep every promise in every state, each broken one breaks what it must, and the
//! model itself is no looser and no narrower than it says.

mod abstraction;
mod broken;
mod shipped;
