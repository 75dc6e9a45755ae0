//! Orders without a list: a permutation of a range as a function of an index, of numbers or of blocks of them.

use super::seeds::scatter;
use std::ops::Range;

/// Shuffled blocks of samples that stay in a row. The last block may be shorter: its place is drawn too.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    len: u64,
    whole: Permutation,
    /// Positions of the short block.
    short: Range<u64>,
    /// The sample it begins with.
    short_start: u64,
}

impl Blocks {
    pub(super) fn new(samples: u64, len: u64, seed: u64) -> Self {
        let len = len.max(1);
        let whole = samples / len;
        let short_start = whole * len;
        let start = mix(seed, 1) % (whole + 1) * len;
        let short = start..start + (samples - short_start);
        Blocks { len, whole: Permutation::new(whole, seed), short, short_start }
    }

    pub(super) fn at(&self, position: u64) -> u64 {
        if self.short.contains(&position) {
            return self.short_start + (position - self.short.start);
        }
        let before =
            if position < self.short.start { 0 } else { self.short.end - self.short.start };
        let position = position - before;
        self.whole.at(position / self.len) * self.len + position % self.len
    }
}

/// A permutation of `0..n` without a table: a Feistel network over the next power of four, walked until
/// it lands inside (Black and Rogaway 2002).
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 6;

impl Permutation {
    /// The permutation of `0..n` that belongs to `seed`.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|round| mix(seed, 0x5eed + round as u64));
        Permutation { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Where `i` goes.
    pub fn at(&self, i: u64) -> u64 {
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
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(key, right) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// A seed that belongs to a seed and a value: SplitMix64's finaliser over both.
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
                let j = permutation.at(i) as usize;
                prop_assert!(!seen[j]);
                seen[j] = true;
            }
        }
    }

    #[test]
    fn blocks_stay_in_a_row() {
        let blocks = Blocks::new(11, 4, 7);
        let order: Vec<u64> = (0..11).map(|position| blocks.at(position)).collect();
        let begin: Vec<u64> = order.iter().copied().filter(|sample| sample % 4 == 0).collect();
        assert_eq!(begin.len(), 3, "{order:?}");
        assert!(order.windows(2).all(|two| two[1] % 4 == 0 || two[1] == two[0] + 1), "{order:?}");
    }

    #[test]
    fn seeds_matter_and_repeat() {
        let order = |seed| (0..100).map(|i| Permutation::new(100, seed).at(i)).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..100).collect::<Vec<_>>());
    }
}
