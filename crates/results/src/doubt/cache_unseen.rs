//! The dataset is smaller than memory, and nothing tells what memory served.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::run::Activity;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "cache_unseen",
        severity: Severity::Warning,
        meaning: "The dataset is smaller than the memory of the hosts, and DLIO does not tell what came from there: its rates may be those of the page cache and not of the storage, from the first epoch on if the dataset was just made.",
        evidence: "the dataset has {dataset_bytes}, the memory {memory_bytes}: {memory_share:.1} times as much",
        advice: "use at least five times the memory, as MLPerf Storage asks, or empty the page cache before each epoch",
    },
    check: Check::OfRun(|run| {
        let dataset_bytes = run.dataset_bytes()?;
        let memory_bytes = run.dataset_use.memory_bytes?;
        if run.activity != Activity::Training || memory_bytes as f64 <= dataset_bytes {
            return None;
        }
        let share = memory_bytes as f64 / dataset_bytes;
        let facts = Facts::new().with("dataset_bytes", dataset_bytes);
        Some(facts.with("memory_bytes", memory_bytes).with("memory_share", share))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::cold(root)),
};
