//! numpy's legacy generator: MT19937 seeded by an integer, with normals by Marsaglia's polar method.
//!
//! DLIO draws sample dimensions after `np.random.seed(10)`. With the same generator, file sizes are identical to DLIO's.
//! Sources: Matsumoto and Nishimura 1998; numpy `random/src/legacy/legacy-distributions.c`.

const N: usize = 624;
const M: usize = 397;

/// The state of `np.random.RandomState(seed)`.
#[derive(Clone)]
pub struct LegacyRandom {
    words: [u32; N],
    next: usize,
    spare_normal: Option<f64>,
}

impl LegacyRandom {
    /// Creates the state after `np.random.seed(seed)`.
    pub fn new(seed: u32) -> Self {
        let mut words = [0u32; N];
        words[0] = seed;
        for i in 1..N {
            let last = words[i - 1];
            words[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        LegacyRandom { words, next: N, spare_normal: None }
    }

    /// Draws a standard normal, as numpy's `legacy_gauss` does.
    pub fn standard_normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        loop {
            let x1 = 2.0 * self.double() - 1.0;
            let x2 = 2.0 * self.double() - 1.0;
            let r2 = x1 * x1 + x2 * x2;
            if r2 < 1.0 && r2 != 0.0 {
                let f = (-2.0 * r2.ln() / r2).sqrt();
                self.spare_normal = Some(f * x1);
                return f * x2;
            }
        }
    }

    /// Draws a uniform number in [0, 1) with 53 bits.
    fn double(&mut self) -> f64 {
        let a = f64::from(self.word() >> 5);
        let b = f64::from(self.word() >> 6);
        (a * 67_108_864.0 + b) / 9_007_199_254_740_992.0
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.words[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn refill(&mut self) {
        for i in 0..N {
            let y = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[i] = self.words[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the output of `np.random.seed(10); np.random.normal(size=4)`.
    #[test]
    fn normals_match_numpy() {
        let mut random = LegacyRandom::new(10);
        let expected =
            [1.331586504129518, 0.7152789743984055, -1.5454002921112682, -0.008383849928522256];
        for value in expected {
            assert_eq!(random.standard_normal(), value);
        }
    }
}
