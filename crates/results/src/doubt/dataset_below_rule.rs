//! The dataset is larger than memory, and smaller than MLPerf Storage asks for.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::run::Activity;
use feedrate_spec::mlperf::is_large_enough;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "dataset_below_rule",
        severity: Severity::Note,
        meaning: "The dataset is less than five times the memory of the hosts, as MLPerf Storage asks for: up to the part that fits, each epoch after the first may have come from the page cache.",
        evidence: "the dataset has {dataset_bytes}, {dataset_share:.1} times the memory of {memory_bytes}",
        advice: "use at least five times the memory of all hosts together",
    },
    check: Check::OfRun(|run| {
        let dataset_bytes = run.dataset_bytes()?;
        let memory_bytes = run.dataset_use.memory_bytes?;
        let share = dataset_bytes / memory_bytes as f64;
        if run.activity != Activity::Training || share < 1.0 || is_large_enough(share) {
            return None;
        }
        let facts = Facts::new().with("dataset_bytes", dataset_bytes);
        Some(facts.with("memory_bytes", memory_bytes).with("dataset_share", share))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::good().write(root, "w/4/a")),
};
