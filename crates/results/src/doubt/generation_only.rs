//! No training, no figures of it.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::run::{Activity, Run};
use feedrate_spec::units::GIB;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "generation_only",
        severity: Severity::Note,
        meaning: "The run trained nothing: it made a dataset or checkpoints, and has no utilisation or throughput of training.",
        evidence: "{activity}[, {format}][ of {record_length_bytes:.0} bytes a sample][, of {checkpoint_bytes}][, written at {saved_bytes_per_second} (deviation {saved_deviation_percent})][, read at {loaded_bytes_per_second} (deviation {loaded_deviation_percent})]",
        advice: "leave it out of comparisons; it says which dataset the runs after it read",
    },
    check: Check::OfRun(|run| {
        let activity = match run.activity {
            Activity::Training | Activity::Unknown => return None,
            Activity::Generation => "it made a dataset",
            Activity::Checkpoints => return Some(of_checkpoints(run)),
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

/// As the summary has them.
fn of_checkpoints(run: &Run) -> Facts {
    let told = |name: &str| run.reported.get(name).copied().filter(|number| 0.0 < *number);
    let facts = Facts::new().with("activity", "it wrote or read checkpoints");
    let facts = facts.with_known("checkpoint_bytes", told("checkpoint_size_GB").map(|n| n * GIB));
    let rate = |which: &str| {
        let mean = told(&format!("{which}_checkpoint_io_mean_GB_per_second"))?;
        let deviation = told(&format!("{which}_checkpoint_io_stdev_GB_per_second")).unwrap_or(0.0);
        Some((mean * GIB, deviation / mean * 100.0))
    };
    let (saved, saved_deviation) = rate("save").unzip();
    let (loaded, loaded_deviation) = rate("load").unzip();
    facts
        .with_known("saved_bytes_per_second", saved)
        .with_known("saved_deviation_percent", saved_deviation)
        .with_known("loaded_bytes_per_second", loaded)
        .with_known("loaded_deviation_percent", loaded_deviation)
}
