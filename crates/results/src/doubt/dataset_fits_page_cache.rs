//! The dataset is smaller than memory.

use super::{Check, Doubt, Severity, found};
use crate::run::Activity;
use feedrate_spec::units;

pub(super) static DOUBT: Doubt = Doubt {
    name: "dataset_fits_page_cache",
    severity: Severity::Note,
    meaning: "The dataset is smaller than the memory of the hosts, so that it may have been read from the page cache and not from the storage, from the first epoch on if it was just made.",
    check: Check::OfSet(|relations, index| {
        let run = &relations.runs[index];
        // A stale run read as many files of another.
        let files = relations.stale(index).map_or(run, |stale| &relations.runs[stale.of]);
        let sample = files.mean_sample_bytes.or(files.record_length_bytes)?;
        let bytes = sample * run.files? as f64 * files.samples_per_file? as f64;
        let memory = run.dataset_use.memory_bytes?;
        if run.activity != Activity::Training || memory as f64 <= bytes {
            return None;
        }
        found(
            format!(
                "the dataset has {}, the memory {}: {:.1} times as much",
                units::bytes(bytes as u64),
                units::bytes(memory),
                memory as f64 / bytes
            ),
            "use at least five times the memory, as MLPerf Storage asks, or empty the page cache before each epoch",
        )
    }),
};
