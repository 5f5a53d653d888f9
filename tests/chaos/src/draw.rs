//! Chance that repeats: every number is a hash of the seed, of what it is for, and of a counter. What is drawn for one thing
//! never shifts what is drawn for another.

use sha2::{Digest, Sha256};

/// A sequence of numbers for one purpose.
#[derive(Debug, Clone)]
pub struct Draw {
    key: [u8; 32],
    count: u64,
}

impl Draw {
    /// The sequence of this seed for this purpose at this step.
    #[must_use]
    pub fn new(seed: u64, purpose: &str, step: u64) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(seed.to_be_bytes());
        hasher.update(step.to_be_bytes());
        hasher.update(purpose.as_bytes());
        Self {
            key: hasher.finalize().into(),
            count: 0,
        }
    }

    fn block(&mut self) -> [u8; 32] {
        self.count += 1;
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        hasher.update(self.count.to_be_bytes());
        hasher.finalize().into()
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        let block = self.block();
        u64::from_be_bytes(block[..8].try_into().expect("8 of 32 bytes"))
    }

    /// The next number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// The next number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// The next index of a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Sixteen bytes, as an operation_id has them.
    pub fn id(&mut self) -> [u8; 16] {
        let block = self.block();
        block[..16].try_into().expect("16 of 32 bytes")
    }
}
