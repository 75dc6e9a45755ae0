//! A mean in `summary.json` does not follow from the values next to it, or from the checkpoints in the ranks' files.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::{CheckpointSpan, Imported, Reported};
use crate::run::MEAN_MISREPORTED;
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::mean;
use feedrate_spec::units::{self, GIB};
use std::collections::BTreeMap;

/// Maximum relative difference between the reported and the recomputed mean.
const DIFFERENCE_MAX: f64 = 1e-3;
/// Maximum relative difference between means of checkpoints, and time between two clock calls.
const CHECKPOINT_DIFFERENCE_MAX: f64 = 0.05;
const CLOCK_S: f64 = 1e-4;
/// Names of lists with one value per epoch in `summary.json`, and of their means.
const LISTS: [[&str; 2]; 4] = [
    ["train_au_percentage", "train_au_mean_percentage"],
    ["train_throughput_samples_per_second", "train_throughput_mean_samples_per_second"],
    ["eval_au_percentage", "eval_au_mean_percentage"],
    ["eval_throughput_samples_per_second", "eval_throughput_mean_samples_per_second"],
];

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: MEAN_MISREPORTED,
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "A mean in `summary.json` is not the mean of the epochs listed next to it or of the checkpoints in the ranks' files: one of them was changed or belongs to another run.",
        evidence: "{means}",
        advice: "use neither until it is clear which is right; recomputed values depend on neither",
    },
    check: Check::Import(|_, imported| {
        let reported = imported.reported.as_ref()?;
        let lists = LISTS.iter().filter_map(|[list, mean]| wrong_mean(reported, list, mean));
        let mut means: Vec<String> = lists.collect();
        for kind in [CheckpointKind::Save, CheckpointKind::Load] {
            means.extend(wrong_duration(reported, imported, kind));
            means.extend(wrong_rate(reported, imported, kind));
        }
        Facts::from_list("means", means)
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

/// Compares the mean duration of checkpoints with those of the ranks.
fn wrong_duration(
    reported: &Reported,
    imported: &Imported,
    kind: CheckpointKind,
) -> Option<String> {
    let name = format!("{}_checkpoint_duration_mean_seconds", kind.name());
    let stated_s = reported.metric(&name)?;
    let means_s = means_of_ranks(imported, kind, |span| Some(span.length_s))?;
    (!is_aggregate(stated_s, &means_s, CLOCK_S)).then(|| {
        let [stated, first, slowest] =
            [stated_s, means_s[0], means_s.iter().copied().fold(0.0, f64::max)].map(units::seconds);
        format!(
            "`{name}` is {stated}, but the first rank took {first} on average, and the slowest {slowest}"
        )
    })
}

/// Compares the mean rate of checkpoints with those of the ranks, and with the mean duration.
fn wrong_rate(reported: &Reported, imported: &Imported, kind: CheckpointKind) -> Option<String> {
    let name = format!("{}_checkpoint_io_mean_GB_per_second", kind.name());
    let stated = reported.metric(&name)?;
    let from_ranks = means_of_ranks(imported, kind, |span| span.gib_per_second);
    if let Some(means) = from_ranks.filter(|means| !is_aggregate(stated, means, 0.0)) {
        let first = means[0];
        return Some(format!(
            "`{name}` is {stated:.3}, but the first rank has {first:.3} on average"
        ));
    }
    let duration = |statistic: &str| {
        reported.metric(&format!("{}_checkpoint_duration_{statistic}_seconds", kind.name()))
    };
    let mean_s = duration("mean")?;
    let expected = reported.metric("checkpoint_size_GB")? / mean_s;
    // A mean of rates is at least the rate of the mean duration, and about as large if durations vary little.
    let variation = duration("stdev").map_or(f64::INFINITY, |stdev_s| stdev_s / mean_s);
    let range = [expected, expected * (1.0 + 4.0 * variation.powi(2))];
    // A GB is 10^9 bytes since MLPerf Storage 3.0, while the size is in GiB.
    let is_plausible =
        [1.0, GIB / 1e9].iter().any(|gb| is_within(stated, range.map(|rate| rate * gb)));
    (0.0 < expected && expected.is_finite() && !is_plausible)
        .then(|| format!("`{name}` is {stated:.3}, but size ÷ mean duration is {expected:.3}"))
}

fn is_within(value: f64, [low, high]: [f64; 2]) -> bool {
    let low = low * (1.0 - CHECKPOINT_DIFFERENCE_MAX);
    (low..=high * (1.0 + CHECKPOINT_DIFFERENCE_MAX)).contains(&value)
}

/// Returns whether a value is that of the first rank, as in DLIO of 2025, or the mean, lowest or highest over the ranks.
fn is_aggregate(stated: f64, means: &[f64], difference_max: f64) -> bool {
    let lowest = means.iter().copied().reduce(f64::min);
    let highest = means.iter().copied().reduce(f64::max);
    let aggregates = [means.first().copied(), mean(means), lowest, highest];
    aggregates.into_iter().flatten().any(|aggregate| {
        let tolerance = CHECKPOINT_DIFFERENCE_MAX * aggregate + difference_max;
        (stated - aggregate).abs() <= tolerance
    })
}

/// Returns the mean of a value of checkpoints of each rank, in their order. `None` if it is unknown for a rank.
fn means_of_ranks(
    imported: &Imported,
    kind: CheckpointKind,
    value: impl Fn(&CheckpointSpan) -> Option<f64>,
) -> Option<Vec<f64>> {
    let mut by_rank: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for span in imported.checkpoint_spans.iter().filter(|span| span.kind == kind) {
        by_rank.entry(span.rank).or_default().push(value(span)?);
    }
    let means: Vec<f64> = by_rank.values().filter_map(|values| mean(values)).collect();
    // Some versions of DLIO have times of checkpoints only for the ranks that write.
    let has_all_block_times =
        imported.ranks_missing().is_empty() && imported.shared_times_file.is_none();
    let is_complete = has_all_block_times || imported.ranks_expected == Some(means.len() as u32);
    (is_complete && !means.is_empty()).then_some(means)
}
