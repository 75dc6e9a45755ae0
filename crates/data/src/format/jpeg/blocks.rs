//! Blocks of 64 samples: the cosine transform, and its coefficients divided into steps.
//!
//! Both give libjpeg's numbers to the last bit: its slow integer transform (Loeffler, Ligtenberg, Moschytz 1989), in
//! which products have 13 bits behind the point and what lies between the passes has 2.

use super::tables::{STEPS, ZIGZAG};

/// A row or a column of a block.
type Lanes = [i32; 8];

const PRODUCT_BITS: u32 = 13;
const PASS_BITS: u32 = 2;

/// Coefficients in the order of writing, and a bit for each that is not zero.
pub(super) struct Block {
    pub(super) coefficients: [i16; 64],
    pub(super) nonzero: u64,
}

/// Divides by the steps of one table; rounds to the nearest, halves away from zero.
pub(super) struct Divider {
    halves: [u16; 64],
    /// Of 16 bits: a dividend below 2^14 times this and a scale, the upper half of both products, is the quotient.
    reciprocals: [u16; 64],
    scales: [u16; 64],
}

impl Divider {
    pub(super) const fn new(table: usize) -> Self {
        let (mut halves, mut reciprocals, mut scales) = ([0; 64], [0; 64], [0; 64]);
        let mut i = 0;
        while i < 64 {
            // The transform leaves a factor of 8.
            let divisor = (STEPS[table][i] as u32) << 3;
            let bits = divisor.next_power_of_two().trailing_zeros() - 1;
            halves[i] = (divisor / 2) as u16;
            reciprocals[i] = ((1 << (16 + bits)) / divisor + 1) as u16;
            scales[i] = 1 << (16 - bits);
            i += 1;
        }
        Divider { halves, reciprocals, scales }
    }

    fn divide(&self, coefficients: &mut [i16; 64]) {
        for (i, coefficient) in coefficients.iter_mut().enumerate() {
            let rounded = coefficient.unsigned_abs().wrapping_add(self.halves[i]);
            let quotient = times(times(rounded, self.reciprocals[i]), self.scales[i]) as i16;
            let sign = *coefficient >> 15;
            *coefficient = (quotient ^ sign).wrapping_sub(sign);
        }
    }
}

/// The upper half of a product.
fn times(a: u16, b: u16) -> u16 {
    ((u32::from(a) * u32::from(b)) >> 16) as u16
}

/// The block whose first sample is at `at` of rows of `width` samples.
pub(super) fn block(samples: &[u8], at: usize, width: usize, divider: &Divider) -> Block {
    let mut rows = [[0; 8]; 8];
    for (y, row) in rows.iter_mut().enumerate() {
        let samples = &samples[at + y * width..][..8];
        row.iter_mut().zip(samples).for_each(|(out, sample)| *out = i32::from(*sample) - 128);
    }
    let columns = pass(&transposed(&rows), |sum| sum << PASS_BITS, PRODUCT_BITS - PASS_BITS);
    let rows = pass(&transposed(&columns), |sum| rounded(sum, PASS_BITS), PRODUCT_BITS + PASS_BITS);
    let mut natural = [0; 64];
    for (out, row) in natural.as_chunks_mut::<8>().0.iter_mut().zip(&rows) {
        *out = row.map(|coefficient| coefficient as i16);
    }
    divider.divide(&mut natural);
    let mut coefficients = [0; 64];
    let mut nonzero = 0;
    for (i, (out, from)) in coefficients.iter_mut().zip(ZIGZAG).enumerate() {
        *out = natural[usize::from(from & 63)];
        nonzero |= u64::from(*out != 0) << i;
    }
    Block { coefficients, nonzero }
}

fn transposed(rows: &[Lanes; 8]) -> [Lanes; 8] {
    std::array::from_fn(|x| std::array::from_fn(|y| rows[y][x]))
}

fn rounded(x: i32, bits: u32) -> i32 {
    (x + (1 << (bits - 1))) >> bits
}

/// Transform along the first index, lane by lane. `whole` scales sums that no product is in; of products `bits` bits
/// are dropped.
fn pass(input: &[Lanes; 8], whole: impl Fn(i32) -> i32, bits: u32) -> [Lanes; 8] {
    let mut output = [[0; 8]; 8];
    for lane in 0..8 {
        let x: [i32; 8] = std::array::from_fn(|i| input[i][lane]);
        let sum = [x[0] + x[7], x[1] + x[6], x[2] + x[5], x[3] + x[4]];
        let even = [sum[0] + sum[3], sum[1] + sum[2], sum[1] - sum[2], sum[0] - sum[3]];
        output[0][lane] = whole(even[0] + even[1]);
        output[4][lane] = whole(even[0] - even[1]);
        let turned = (even[2] + even[3]) * 4433;
        output[2][lane] = rounded(turned + even[3] * 6270, bits);
        output[6][lane] = rounded(turned - even[2] * 15_137, bits);

        let [d, c, b, a] = [x[0] - x[7], x[1] - x[6], x[2] - x[5], x[3] - x[4]];
        let all = (a + c + b + d) * 9633;
        let (outer, inner) = ((a + d) * -7373, (b + c) * -20_995);
        let (ac, bd) = ((a + c) * -16_069 + all, (b + d) * -3196 + all);
        output[7][lane] = rounded(a * 2446 + outer + ac, bits);
        output[5][lane] = rounded(b * 16_819 + inner + bd, bits);
        output[3][lane] = rounded(c * 25_172 + inner + ac, bits);
        output[1][lane] = rounded(d * 12_299 + outer + bd, bits);
    }
    output
}
