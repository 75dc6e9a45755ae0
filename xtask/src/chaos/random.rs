//! A deterministic random generator (SplitMix64). With it, a seed reproduces a case.

/// A random generator whose numbers depend only on the seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next random number.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    /// Returns one of `choices`.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns true with a probability of `percent`.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
