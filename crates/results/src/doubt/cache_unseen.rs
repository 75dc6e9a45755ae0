//! The dataset is smaller than memory, and the share of reads that the page cache served is unknown.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::run::Activity;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "cache_unseen",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "The dataset is smaller than the memory of the hosts, and DLIO does not report how much the page cache served. Its rates may be those of the page cache instead of the storage, even in the first epoch if the dataset was generated shortly before.",
        evidence: "the dataset has {dataset_bytes}, and the memory of the hosts is {memory_bytes}, {memory_share:.1} times as much",
        advice: "use a dataset of at least five times the memory, as MLPerf Storage requires, or empty the page cache before each epoch",
    },
    check: Check::Run(|run| {
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
    fires: |root| drop(tests::write_cold_run(root)),
};
