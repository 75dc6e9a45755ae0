//! Seeded random numbers, equal on all machines, so that a design can be reproduced. Takes no entropy from the system.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A uniformly distributed number in `0..n` (Lemire, "Fast random integer generation in an interval", 2019). `n` is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.0.next_u64()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Shuffles items; all orders are equally likely (Fisher and Yates; Knuth's Algorithm P).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_depends_on_the_seed_only() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..10).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        // Expected order computed in Python from the published algorithms: xoshiro256++ of Blackman and Vigna, seeded by SplitMix64.
        assert_eq!(shuffled(7), [3, 8, 9, 4, 6, 7, 2, 5, 1, 0]);
        assert_ne!(shuffled(8), shuffled(7));
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 3];
        (0..30_000).for_each(|_| seen[random.below(3) as usize] += 1);
        assert!(seen.iter().all(|&n| (9_700..10_300).contains(&n)), "{seen:?}");
    }
}
