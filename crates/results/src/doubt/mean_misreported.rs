//! A mean in the summary is not the mean of its list.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::{Imported, Reported};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::mean;
use feedrate_measure::window::seconds;
use feedrate_spec::units;

/// Maximum relative difference between the reported and the recomputed mean.
const DIFFERENCE_MAX: f64 = 1e-3;
/// Maximum relative difference between means of checkpoints, and time between two clock calls.
const CHECKPOINT_DIFFERENCE_MAX: f64 = 0.05;
const CLOCK_S: f64 = 0.001;
/// Names of the mean duration and the mean rate of checkpoints in `summary.json`.
const SAVE_S: &str = "save_checkpoint_duration_mean_seconds";
const SAVE_RATE: &str = "save_checkpoint_io_mean_GB_per_second";
/// Names of lists with one value per epoch in `summary.json`, and of their means.
const LISTS: [[&str; 2]; 4] = [
    ["train_au_percentage", "train_au_mean_percentage"],
    ["train_throughput_samples_per_second", "train_throughput_mean_samples_per_second"],
    ["eval_au_percentage", "eval_au_mean_percentage"],
    ["eval_throughput_samples_per_second", "eval_throughput_mean_samples_per_second"],
];

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "mean_misreported",
        severity: Severity::Warning,
        meaning: "A mean in `summary.json` is not the mean of the epochs listed next to it or of the checkpoints in the ranks' files: one of them was changed or belongs to another run.",
        evidence: "{means}",
        advice: "use neither until it is clear which is right; recomputed values depend on neither",
    },
    check: Check::Import(|_, imported| {
        let reported = imported.reported.as_ref()?;
        let means = LISTS.iter().filter_map(|[list, mean]| wrong_mean(reported, list, mean));
        let checkpoints = [long_checkpoints(reported, imported), slow_checkpoints(reported)];
        Facts::from_list("means", means.chain(checkpoints.into_iter().flatten()).collect())
    }),
    #[cfg(test)]
    fires: |root| {
        let wrong = "au_mean_percentage\": 9.9, \"x\": ";
        tests::edit_good_run(root, "summary.json", "au_mean_percentage\": ", wrong);
    },
};

fn wrong_mean(reported: &Reported, list: &str, name: &str) -> Option<String> {
    let stated = reported.metric(name)?;
    let recomputed = mean(&reported.list(list)?).filter(|mean| mean.is_finite())?;
    let difference_max = DIFFERENCE_MAX * stated.abs().max(recomputed.abs());
    (difference_max < (stated - recomputed).abs())
        .then(|| format!("`{name}` is {stated:.2}, but the mean of `{list}` is {recomputed:.2}"))
}

/// Compares the mean duration of checkpoints with the ranks' files. No rank takes longer than the slowest.
fn long_checkpoints(reported: &Reported, imported: &Imported) -> Option<String> {
    let stated_s = reported.metric(SAVE_S)?;
    let checkpoints = imported.epochs().iter().flat_map(|epoch| &epoch.checkpoints);
    let saves = checkpoints.filter(|checkpoint| checkpoint.kind == CheckpointKind::Save);
    let lengths_s: Vec<f64> =
        saves.map(|save| seconds(save.end_ns.saturating_sub(save.start_ns))).collect();
    let slowest_s = mean(&lengths_s)?;
    (slowest_s * (1.0 + CHECKPOINT_DIFFERENCE_MAX) + CLOCK_S < stated_s).then(|| {
        let [stated, slowest] = [stated_s, slowest_s].map(units::seconds);
        format!("`{SAVE_S}` is {stated}, but the slowest rank took {slowest} on average")
    })
}

/// Compares the mean rate of checkpoints with their mean duration. The mean of rates is at least the rate of the mean duration.
fn slow_checkpoints(reported: &Reported) -> Option<String> {
    let rate = reported.metric(SAVE_RATE)?;
    let lowest = reported.metric("checkpoint_size_GB")? / reported.metric(SAVE_S)?;
    (lowest.is_finite() && rate < lowest * (1.0 - CHECKPOINT_DIFFERENCE_MAX))
        .then(|| format!("`{SAVE_RATE}` is {rate:.3}, but size ÷ mean duration is {lowest:.3}"))
}
