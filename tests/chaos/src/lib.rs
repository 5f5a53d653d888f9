//! Chaos: many withdrawals under a seeded schedule of every fault.
