//! Permutations of single numbers and of blocks of consecutive numbers. They are computed from an index, without a table.

use super::seeds::scatter;
use std::ops::Range;

/// A permutation of blocks of consecutive samples. The last block may be shorter; its position is also random.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    len: u64,
    /// Order of the complete blocks.
    complete: Permutation,
    /// Positions of the short block.
    short: Range<u64>,
    /// First sample of the short block.
    short_start: u64,
}

impl Blocks {
    /// Creates the order for `seed` of `samples` samples in blocks of `block_samples`.
    pub(super) fn new(samples: u64, block_samples: u64, seed: u64) -> Self {
        let len = block_samples.max(1);
        let complete_blocks = samples / len;
        let short_start = complete_blocks * len;
        let start = mix(seed, 1) % (complete_blocks + 1) * len;
        let short = start..start + (samples - short_start);
        Blocks { len, complete: Permutation::new(complete_blocks, seed), short, short_start }
    }

    /// Returns the sample at `position`.
    pub(super) fn sample_at(&self, position: u64) -> u64 {
        if self.short.contains(&position) {
            return self.short_start + (position - self.short.start);
        }
        let short_before =
            if position < self.short.start { 0 } else { self.short.end - self.short.start };
        let index = position - short_before;
        self.complete.number_at(index / self.len) * self.len + index % self.len
    }
}

/// A permutation of `0..n`: a Feistel network over the next power of four, applied until the result is below `n` (cycle walking; Black
/// and Rogaway 2002).
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 6;

impl Permutation {
    /// Creates the permutation of `0..n` for `seed`.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|round| mix(seed, 0x5eed + round as u64));
        Permutation { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Returns the number at position `i`.
    pub fn number_at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut value = i;
        loop {
            value = self.scramble(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn scramble(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut left = value >> self.half_bits;
        let mut right = value & mask;
        for key in self.keys {
            (left, right) = (right, left ^ (mix(key, right) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// Derives a seed from another seed and a value, with the finaliser of SplitMix64.
pub fn mix(seed: u64, value: u64) -> u64 {
    scatter(seed.wrapping_add(value.wrapping_mul(0xd1b5_4a32_d192_ed03)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_order_is_a_permutation(n in 1u64..3000, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let j = permutation.number_at(i) as usize;
                prop_assert!(!seen[j]);
                seen[j] = true;
            }
        }
    }

    #[test]
    fn samples_of_a_block_stay_consecutive() {
        let blocks = Blocks::new(11, 4, 7);
        let order: Vec<u64> = (0..11).map(|position| blocks.sample_at(position)).collect();
        let starts: Vec<u64> = order.iter().copied().filter(|sample| sample % 4 == 0).collect();
        assert_eq!(starts.len(), 3, "{order:?}");
        assert!(order.windows(2).all(|two| two[1] % 4 == 0 || two[1] == two[0] + 1), "{order:?}");
    }

    #[test]
    fn each_seed_gives_a_reproducible_order_of_its_own() {
        let order =
            |seed| (0..100).map(|i| Permutation::new(100, seed).number_at(i)).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..100).collect::<Vec<_>>());
    }
}
