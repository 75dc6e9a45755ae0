//! Blocks as noise has them, without a pixel: the cosine transform of independent pixels leaves independent normal numbers,
//! as wide as the pixels are.
//!
//! The numbers' own bits make most of their size, and are as good as random. So they come from content, bit for bit;
//! the codes between them, which say how long they are, are those of one of many blocks that were drawn once.

use super::codes::{Word, by_symbol};
use super::tables::{FIRST, OTHERS, STEPS, ZIGZAG};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::sync::LazyLock;

/// Grey noise: bytes that are all as probable are 73.9 wide.
pub(super) static GREY: LazyLock<Noise> = LazyLock::new(|| Noise::new(0, 73.9));
/// Luma is the weighted sum of three such colours, and halved colours are means of four sums.
pub(super) static LUMA: LazyLock<Noise> = LazyLock::new(|| Noise::new(0, 49.4));
pub(super) static COLOUR: LazyLock<Noise> = LazyLock::new(|| Noise::new(1, 23.0));

/// Drawn blocks of a component: their codes do not come again in any order that a compressor finds.
const PATTERNS: usize = 1024;
/// Words of a block; of noise they are seldom more than five.
pub(super) const WORDS: usize = 7;
/// First coefficients are at most 127 steps, their distances twice that.
const DISTANCES: usize = 512;
/// Values of one size and sign, all as probable.
const DRAWS: usize = 128;
const SEED: u64 = 0x6a70_6567;

/// One component's blocks.
pub(super) struct Noise {
    first: [i16; 2 * DRAWS],
    distances: [Word; DISTANCES],
    patterns: Vec<Pattern>,
}

/// The coefficients of a block but the first one.
#[derive(Clone, Default)]
pub(super) struct Pattern {
    /// The highest bit comes first.
    codes: [u64; WORDS],
    /// Bits of coefficients.
    free: [u64; WORDS],
    bits: u32,
}

impl Noise {
    fn new(table: usize, width: f64) -> Self {
        let sizes = sizes();
        let draw = |place: usize, byte: u8| {
            let size = sizes[usize::from(byte >> 1)] * width;
            // 73.9 × 2.9 are at most 43 of the smallest steps.
            let steps = (size / f64::from(STEPS[table][usize::from(ZIGZAG[place])]) + 0.5) as i16;
            if byte & 1 == 1 { -steps } else { steps }
        };
        let first_codes = by_symbol(&FIRST[table]);
        let codes = by_symbol(&OTHERS[table]);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut patterns = Vec::with_capacity(PATTERNS);
        // Content that can be compressed is zeros: it makes flat blocks.
        patterns.extend(Pattern::of(&[0; 64], &codes));
        while patterns.len() < PATTERNS {
            let mut bytes = [0; 64];
            random.fill_bytes(&mut bytes);
            let values = std::array::from_fn(|place| draw(place, bytes[place]));
            patterns.extend(Pattern::of(&values, &codes));
        }
        Noise {
            first: std::array::from_fn(|byte| draw(0, byte as u8)),
            distances: std::array::from_fn(|i| {
                let distance = i as i32 - DISTANCES as i32 / 2;
                Word::of(&first_codes, 0, distance)
            }),
            patterns,
        }
    }

    /// The block that these words of content stand for: its first coefficient, and the others.
    #[inline(always)]
    pub(super) fn block(&self, content: u64) -> (i16, &Pattern) {
        let first = self.first[(content >> 56) as usize];
        (first, &self.patterns[content as usize % PATTERNS])
    }

    /// What is written of a first coefficient.
    #[inline(always)]
    pub(super) fn distance(&self, first: i16, last: i16) -> Word {
        self.distances[(DISTANCES as i16 / 2 + first - last) as usize % DISTANCES]
    }
}

impl Pattern {
    /// The block of these coefficients; `None` where they take too many bits.
    pub(super) fn of(values: &[i16; 64], codes: &[(u32, u32); 256]) -> Option<Self> {
        let mut pattern = Pattern::default();
        let mut zeros = 0;
        for &value in &values[1..] {
            if value == 0 {
                zeros += 1;
                continue;
            }
            while zeros > 15 {
                pattern.put(Word::of(codes, 15, 0), 0)?;
                zeros -= 16;
            }
            let free = u16::BITS - value.unsigned_abs().leading_zeros();
            pattern.put(Word::of(codes, zeros, value.into()), free)?;
            zeros = 0;
        }
        if zeros > 0 {
            pattern.put(Word::of(codes, 0, 0), 0)?;
        }
        Some(pattern)
    }

    /// Append a word, the last `free` bits of which are free.
    fn put(&mut self, word: Word, free: u32) -> Option<()> {
        for i in (0..word.bits).rev() {
            let at = self.bits as usize;
            let (codes, free_bits) = (self.codes.get_mut(at / 64)?, &mut self.free[at / 64]);
            let bit = 63 - at % 64;
            if i < free {
                *free_bits |= 1 << bit;
            } else {
                *codes |= (word.value >> i & 1) << bit;
            }
            self.bits += 1;
        }
        Some(())
    }

    /// Its words, and how many bits of each are of the block. `content` fills what is free.
    #[inline(always)]
    pub(super) fn words(&self, content: &[[u8; 8]; WORDS]) -> impl Iterator<Item = Word> {
        let words = self.codes.iter().zip(&self.free).zip(content).zip((0..).step_by(64));
        words.take_while(|(_, start)| *start < self.bits).map(
            |(((codes, free), content), start)| {
                let value = codes | free & u64::from_le_bytes(*content);
                Word { value, bits: (self.bits - start).min(64) }
            },
        )
    }
}

/// The middle of each of equally probable classes of sizes of normal numbers. By sums of the density: only additions and
/// multiplications, so that every machine finds the same.
fn sizes() -> [f64; DRAWS] {
    const STEP: f64 = 1.0 / 1024.0;
    let scale = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
    let (mut at, mut area) = (0.0, 0.0);
    std::array::from_fn(|draw| {
        while area < (draw as f64 + 0.5) / DRAWS as f64 {
            area += density(at + STEP / 2.0) * scale * STEP;
            at += STEP;
        }
        at
    })
}

/// e^(-x²/2): (1 - x²/2ⁿ⁺¹)^2ⁿ.
fn density(x: f64) -> f64 {
    (0..16).fold(1.0 - x * x / 2.0 / 65_536.0, |power, _| power * power)
}
