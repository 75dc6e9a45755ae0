//! The dimensions of each file's samples, as DLIO draws them from seed 10.
//!
//! A drawn sequence is sequential by definition (the polar method rejects): small datasets keep all
//! of it, large ones keep the generator's state every 4096 files.

use super::mt19937::LegacyRandom;

/// DLIO's `np.random.seed(10)` (`data_generator.py`).
const DLIO_SEED: u32 = 10;
/// Up to this many files all dimensions are kept.
const KEPT_FILES_MAX: u64 = 1 << 24;
/// Files between two kept generator states.
const SPACING: u64 = 4096;

/// Two dimensions of each of a sequence of files.
pub struct DrawnSizes {
    mean: f64,
    stdev: f64,
    kept: KeptSizes,
}

enum KeptSizes {
    All(Vec<[u32; 2]>),
    States(Vec<LegacyRandom>),
}

impl DrawnSizes {
    /// `files` pairs from N(`mean`, `stdev`), cut to integers, at least 1.
    pub fn new(mean: f64, stdev: f64, files: u64) -> Self {
        let mut random = LegacyRandom::new(DLIO_SEED);
        let fits = mean + 40.0 * stdev < f64::from(u32::MAX);
        let kept = if files > KEPT_FILES_MAX || !fits {
            KeptSizes::States(states(random, mean, stdev, files))
        } else {
            let draws = (0..files).map(|_| draw(&mut random, mean, stdev));
            KeptSizes::All(draws.map(|sides| sides.map(|side| side as u32)).collect())
        };
        DrawnSizes { mean, stdev, kept }
    }

    /// Dimensions of the samples of file `file`.
    pub fn at(&self, file: u64) -> [u64; 2] {
        match &self.kept {
            KeptSizes::All(all) => all[file as usize].map(u64::from),
            KeptSizes::States(states) => {
                let mut random = states[(file / SPACING) as usize].clone();
                for _ in 0..file % SPACING {
                    draw(&mut random, self.mean, self.stdev);
                }
                draw(&mut random, self.mean, self.stdev)
            }
        }
    }

    /// All dimensions in order; cheaper than [`DrawnSizes::at`] one by one.
    pub fn iter(&self, files: u64) -> impl Iterator<Item = [u64; 2]> {
        let kept = match &self.kept {
            KeptSizes::All(all) => &all[..files.min(all.len() as u64) as usize],
            KeptSizes::States(_) => &[],
        };
        let drawn = if kept.is_empty() { files } else { 0 };
        let mut random = LegacyRandom::new(DLIO_SEED);
        let drawn = (0..drawn).map(move |_| draw(&mut random, self.mean, self.stdev));
        kept.iter().map(|sides| sides.map(u64::from)).chain(drawn)
    }
}

fn draw(random: &mut LegacyRandom, mean: f64, stdev: f64) -> [u64; 2] {
    // Python's int() cuts towards zero, and so does `as`.
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
    fn kept_states_and_kept_values_agree() {
        let (mean, stdev) = (1000.0, 300.0);
        let all = DrawnSizes::new(mean, stdev, 10_000);
        let kept = KeptSizes::States(states(LegacyRandom::new(DLIO_SEED), mean, stdev, 10_000));
        let spaced = DrawnSizes { mean, stdev, kept };
        for file in [0, 1, 4095, 4096, 4097, 8191, 9999] {
            assert_eq!(all.at(file), spaced.at(file), "file {file}");
        }
        for drawn in [&all, &spaced] {
            assert_eq!(drawn.iter(10_000).nth(4097), Some(all.at(4097)));
            assert_eq!(drawn.iter(100).count(), 100);
        }
    }
}
