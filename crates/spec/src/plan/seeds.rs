//! Seeds for the content of files and checkpoints. Seeds for the order of samples are in `order.rs`.

const CHECKPOINT_SEED: u64 = 10;

/// Returns the seed for the content of file number `file` in a dataset with `content_seed`.
pub fn file_content_seed(content_seed: u64, file: u64) -> u64 {
    derive_seed(scatter(content_seed), file)
}

/// Returns the seed for the content of the files of a checkpoint.
pub fn checkpoint_content_seed(epoch: u32, step: u64) -> u64 {
    derive_seed(derive_seed(CHECKPOINT_SEED, epoch.into()), step)
}

/// Derives the seed for part number `part` of the content with the seed `seed`: a sample of a file, or a block of a sample.
#[inline]
pub fn derive_seed(seed: u64, part: u64) -> u64 {
    scatter(seed ^ part)
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): a bijection that maps neighbouring numbers to distant ones.
#[inline]
pub(super) fn scatter(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of Vigna's `splitmix64.c` from seed 1234567.
    #[test]
    fn numbers_match_splitmix64() {
        let mut state = 1_234_567u64;
        for expected in [6457827717110365317, 3203168211198807973, 9817491932198370423] {
            assert_eq!(scatter(state), expected);
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
    }

    #[test]
    fn content_differs_by_file_and_seed() {
        let files = [(10, 0), (10, 1), (11, 0), (0, 10), (10, u64::MAX)];
        let contents = files.map(|(seed, file)| file_content_seed(seed, file));
        let distinct: std::collections::HashSet<u64> = contents.into_iter().collect();
        assert_eq!(distinct.len(), 5);
    }
}
