//! Dimensions of each file's samples, drawn as in DLIO with seed 10.
//!
//! The sequence can only be drawn in order, since the polar method rejects some draws. Therefore the dimensions of all files are stored; for
//! large datasets, only the state of the generator is stored every 4096 files.

use super::mt19937::LegacyRandom;

/// DLIO's `np.random.seed(10)` (`data_generator.py`).
const DLIO_SEED: u32 = 10;
/// Maximum number of files whose dimensions are all stored.
const STORED_FILES_MAX: u64 = 1 << 24;
/// Number of files between two stored generator states.
const SPACING: u64 = 4096;

/// The two dimensions of the samples of each file.
pub struct DrawnSizes {
    mean: f64,
    stdev: f64,
    stored: StoredSizes,
}

enum StoredSizes {
    All(Vec<[u32; 2]>),
    States(Vec<LegacyRandom>),
}

impl DrawnSizes {
    /// Draws `files` pairs from N(`mean`, `stdev`²), truncated to integers of at least 1.
    pub fn new(mean: f64, stdev: f64, files: u64) -> Self {
        let mut random = LegacyRandom::new(DLIO_SEED);
        let fits = mean + 40.0 * stdev < f64::from(u32::MAX);
        let stored = if files > STORED_FILES_MAX || !fits {
            StoredSizes::States(states(random, mean, stdev, files))
        } else {
            let draws = (0..files).map(|_| draw(&mut random, mean, stdev));
            StoredSizes::All(draws.map(|sides| sides.map(|side| side as u32)).collect())
        };
        DrawnSizes { mean, stdev, stored }
    }

    /// Returns the dimensions of the samples of file number `file`.
    pub fn dims_of(&self, file: u64) -> [u64; 2] {
        match &self.stored {
            StoredSizes::All(all) => all[file as usize].map(u64::from),
            StoredSizes::States(states) => {
                let mut random = states[(file / SPACING) as usize].clone();
                for _ in 0..file % SPACING {
                    draw(&mut random, self.mean, self.stdev);
                }
                draw(&mut random, self.mean, self.stdev)
            }
        }
    }

    /// Returns the dimensions of files `0..files` in order. This is faster than calling [`DrawnSizes::dims_of`] for each file.
    pub fn iter(&self, files: u64) -> impl Iterator<Item = [u64; 2]> {
        let stored = match &self.stored {
            StoredSizes::All(all) => &all[..files.min(all.len() as u64) as usize],
            StoredSizes::States(_) => &[],
        };
        let drawn_files = if stored.is_empty() { files } else { 0 };
        let mut random = LegacyRandom::new(DLIO_SEED);
        let drawn = (0..drawn_files).map(move |_| draw(&mut random, self.mean, self.stdev));
        stored.iter().map(|sides| sides.map(u64::from)).chain(drawn)
    }
}

fn draw(random: &mut LegacyRandom, mean: f64, stdev: f64) -> [u64; 2] {
    // Python's int() truncates towards zero, as does `as`.
    [(); 2].map(|()| ((mean + stdev * random.standard_normal()) as u64).max(1))
}

fn states(mut random: LegacyRandom, mean: f64, stdev: f64, files: u64) -> Vec<LegacyRandom> {
    let mut states = Vec::with_capacity(files.div_ceil(SPACING) as usize);
    for file in 0..files {
        if file.is_multiple_of(SPACING) {
            states.push(random.clone());
        }
        draw(&mut random, mean, stdev);
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_states_and_stored_dimensions_agree() {
        let (mean, stdev) = (1000.0, 300.0);
        let all = DrawnSizes::new(mean, stdev, 10_000);
        let stored = StoredSizes::States(states(LegacyRandom::new(DLIO_SEED), mean, stdev, 10_000));
        let spaced = DrawnSizes { mean, stdev, stored };
        for file in [0, 1, 4095, 4096, 4097, 8191, 9999] {
            assert_eq!(all.dims_of(file), spaced.dims_of(file), "file {file}");
        }
        for drawn in [&all, &spaced] {
            assert_eq!(drawn.iter(10_000).nth(4097), Some(all.dims_of(4097)));
            assert_eq!(drawn.iter(100).count(), 100);
        }
    }
}
