//! A lock-free bit set of the files that each accelerator read in the current epoch.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Upper limit of the bits: 32 MiB of memory.
const BITS_MAX: u64 = 1 << 28;

/// One bit for each file and accelerator. Empty if that would exceed [`BITS_MAX`].
pub(super) struct TouchedFiles {
    words_each: usize,
    words: Vec<AtomicU64>,
}

impl TouchedFiles {
    /// Creates a set for `files` files of each accelerator, without marks.
    pub(super) fn new(accelerators: u32, files: u64) -> Self {
        let words_each = files.div_ceil(64);
        let words = words_each.saturating_mul(u64::from(accelerators));
        let kept = if words <= BITS_MAX / 64 { words as usize } else { 0 };
        TouchedFiles {
            words_each: words_each as usize,
            words: std::iter::repeat_with(AtomicU64::default).take(kept).collect(),
        }
    }

    /// Marks `file` as read by `accelerator`.
    #[inline]
    pub(super) fn mark(&self, accelerator: u32, file: u64) {
        let index = accelerator as usize * self.words_each + (file / 64) as usize;
        let Some(word) = self.words.get(index) else { return };
        let bit = 1 << (file % 64);
        // The cache line is shared with other workers, so the word is only written at the first sample of a file.
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Returns the number of files `accelerator` read and clears its marks. `None` if the set would exceed [`BITS_MAX`].
    pub(super) fn take(&self, accelerator: usize) -> Option<u64> {
        let words = self.words.get(accelerator * self.words_each..)?.get(..self.words_each)?;
        Some(words.iter().map(|word| u64::from(word.swap(0, Relaxed).count_ones())).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_once_for_each_accelerator() {
        let touched = TouchedFiles::new(2, 65);
        for file in [0, 64, 64, 3] {
            touched.mark(1, file);
        }
        assert_eq!(
            (touched.take(0), touched.take(1), touched.take(1)),
            (Some(0), Some(3), Some(0))
        );
    }

    #[test]
    fn too_many_files_are_not_counted() {
        let touched = TouchedFiles::new(1024, 50_000_000);
        touched.mark(1023, 49_999_999);
        assert_eq!(touched.take(1023), None);
    }
}
