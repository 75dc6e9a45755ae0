//! A mean in the summary is not the mean of its list.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Reported;
use feedrate_measure::stats::mean;

/// Maximum relative difference between the reported and the recomputed mean.
const DIFFERENCE_MAX: f64 = 1e-3;
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
        meaning: "A mean in `summary.json` is not the mean of the epochs listed next to it: one of them was changed or belongs to another run.",
        evidence: "{means}",
        advice: "use neither until it is clear which is right; recomputed values depend on neither",
    },
    check: Check::Import(|_, imported| {
        let reported = imported.reported.as_ref()?;
        let means = LISTS.iter().filter_map(|[list, mean]| wrong_mean(reported, list, mean));
        Facts::from_list("means", means.collect())
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
