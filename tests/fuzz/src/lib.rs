//! Fuzzing: generated input for all that parses bytes from outside.
