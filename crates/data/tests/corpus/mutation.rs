//! Deterministic changes of a file: flipped bits, truncation, extreme numbers, and moved or repeated bytes.

/// Numbers that may cause overflows of lengths and counts.
const EXTREME_NUMBERS: [u64; 8] = [0, 1, 255, 65_535, (1 << 32) - 1, 1 << 40, 1 << 62, u64::MAX];
/// Length of the headers and footers in which most changes are.
const HEAD_BYTES: u64 = 256;

/// Random numbers (SplitMix64), which depend only on the seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}

/// Makes one to three changes. The result may equal the original.
pub(crate) fn mutate(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let len = content.len() as u64;
        let position = match random.below(4) {
            0 => random.below(len.min(HEAD_BYTES)),
            1 => len.saturating_sub(1 + random.below(len.min(HEAD_BYTES))),
            _ => random.below(len),
        } as usize;
        let rest = &mut content[position..];
        let number = EXTREME_NUMBERS[random.below(8) as usize];
        match random.below(7) {
            0 | 1 => rest.iter_mut().take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            2 => content.truncate(position),
            3 => rest.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, new)| *byte = new),
            4 => rest
                .iter_mut()
                .zip((number as u32).to_be_bytes())
                .for_each(|(byte, new)| *byte = new),
            5 => rest.iter_mut().take(random.below(64) as usize).for_each(|byte| *byte = 0),
            _ => {
                let repeated: Vec<u8> =
                    rest.iter().take(random.below(512) as usize).copied().collect();
                content.splice(position..position, repeated);
            }
        }
    }
}
