//! A mean that its own list does not have.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Reported;
use feedrate_measure::stats::mean;

/// Share by which they may differ.
const DIFFERENCE_MAX: f64 = 1e-3;
/// Lists of epochs in `summary.json`, and their means.
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
        meaning: "A mean in `summary.json` is not that of the values of epochs beside it: one of them was changed, or is of another run.",
        evidence: "{means}",
        advice: "use neither before it is known which is right; the recomputed figures rest on neither mean",
    },
    check: Check::OfImport(|_, imported| {
        let reported = imported.reported.as_ref()?;
        let means = LISTS.iter().filter_map(|[list, mean]| other_mean(reported, list, mean));
        Facts::listed("means", means.collect())
    }),
    #[cfg(test)]
    fires: |root| {
        let (from, to) = ("au_mean_percentage\": ", "au_mean_percentage\": 9.9, \"x\": ");
        tests::edit_good(root, "summary.json", from, to);
    },
};

fn other_mean(reported: &Reported, list: &str, name: &str) -> Option<String> {
    let told = reported.metric(name)?;
    let of_list = mean(&reported.list(list)?).filter(|mean| mean.is_finite())?;
    let is_other = DIFFERENCE_MAX * told.abs().max(of_list.abs()) < (told - of_list).abs();
    is_other.then(|| format!("`{name}` is {told:.2}, the mean of `{list}` {of_list:.2}"))
}
