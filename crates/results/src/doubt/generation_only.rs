//! No training, no figures of it.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::run::Activity;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "generation_only",
        severity: Severity::Note,
        meaning: "The run trained nothing: it made a dataset or checkpoints, and has no utilisation or throughput of training.",
        evidence: "{activity}[, {format}][ of {record_length_bytes:.0} bytes a sample]",
        advice: "leave it out of comparisons; it says which dataset the runs after it read",
    },
    check: Check::OfRun(|run| {
        let activity = match run.activity {
            Activity::Training | Activity::Unknown => return None,
            Activity::Generation => "it made a dataset",
            Activity::Checkpoints => "it wrote or read checkpoints",
        };
        let facts = Facts::new().with("activity", activity);
        let facts = facts.with_known("format", run.format.clone());
        Some(facts.with_known("record_length_bytes", run.record_length_bytes))
    }),
    #[cfg(test)]
    fires: |root| {
        drop(tests::Fake { generate: true, train: false, ..tests::good() }.write(root, "w/4/a"))
    },
};
