//! Whether two runs waited alike, where they would have waited alike only for the same files. Says how far apart, judges nothing else.

use super::asked::{AskedFiles, default};
use crate::import::first_batch_bytes_of;
use crate::run::Run;
use feedrate_measure::stats::mean;
use feedrate_spec::plan::DatasetPlan;
use std::collections::BTreeSet;

/// Ranks from which waits for first batches tell.
const FIT_RANKS_MIN: usize = 4;
/// Sample sizes further apart than this are told apart by waiting.
const SIZES_APART: f64 = 1.25;
/// Least share of the time that was waited for data.
const WAITED_MIN_PERCENT: f64 = 20.0;
/// Waiting by step differs by no more than this share where the same was read.
pub(super) const SAME_MAX: f64 = 0.05;
/// Waiting misses what is expected by no more than this share.
pub(super) const EXPECTED_MAX: f64 = 0.25;
/// An accelerator would wait visibly for so much more.
const MORE_MIN_BYTES_PER_SECOND: f64 = 1e8;

/// Key that runs must share for their waits to be compared: accelerators, batch, files, samples in each, steps, more than one epoch, and how they read.
pub(super) type Shape<'a> =
    (Option<u32>, Option<u64>, Option<u64>, Option<u64>, u64, bool, &'a str);

pub(super) fn shape<'a>(run: &Run, asked: &'a AskedFiles) -> Shape<'a> {
    (
        run.accelerators,
        run.batch_size,
        run.files,
        run.samples_per_file,
        run.steps,
        run.epochs > 1,
        &asked.reading,
    )
}

/// Settings of the files that differ, as both have them.
pub(super) fn differs(a: &AskedFiles, b: &AskedFiles) -> Vec<(String, String, String)> {
    let keys: BTreeSet<&String> = a.files.keys().chain(b.files.keys()).collect();
    let mut differs = Vec::new();
    for key in keys {
        let [a, b] = [a, b].map(|one| match one.files.get(key) {
            Some(given) => given.clone(),
            None => default("dataset", key).unwrap_or("not given").to_string(),
        });
        if a != b {
            differs.push((key.clone(), a, b));
        }
    }
    differs
}

/// By which share the waiting of two runs differs, summed over steps; `None` where steps differ.
pub(super) fn apart(a: &Run, b: &Run) -> Option<f64> {
    let (a, b) = (&a.dataset_use.waits_s, &b.dataset_use.waits_s);
    let most = a.iter().sum::<f64>().max(b.iter().sum());
    if a.len() != b.len() || most <= 0.0 {
        return None;
    }
    Some(a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / most)
}

/// Whether it waited for data long enough for what it read to show.
pub(crate) fn mostly_waited(run: &Run) -> bool {
    run.step_times.load_percent.is_some_and(|percent| WAITED_MIN_PERCENT <= percent)
}

/// Whether two runs would have waited differently for samples of their own sizes: both mostly waited, and for bytes, not for files to be found.
pub(super) fn would_show(a: &Run, b: &Run) -> bool {
    let (Some(a_bytes), Some(b_bytes)) = (a.sample_bytes(), b.sample_bytes()) else { return false };
    let samples = a.batch_size.unwrap_or(0) as f64 * a.steps as f64;
    let more = (a_bytes - b_bytes).abs() * samples / a.dataset_use.waited_s();
    let is_apart = SIZES_APART <= (a_bytes / b_bytes).max(b_bytes / a_bytes);
    mostly_waited(a) && mostly_waited(b) && is_apart && MORE_MIN_BYTES_PER_SECOND <= more
}

/// Whether a run waited as the other did, but for the bytes of a sample: at the first step, or over an epoch, of which computing hides a part.
pub(super) fn is_as_by_bytes(run: &Run, other: &Run) -> bool {
    let (Some(own), Some(others)) = (run.sample_bytes(), other.sample_bytes()) else {
        return false;
    };
    let [run, other] = [run, other].map(|run| {
        let waits = &run.dataset_use;
        [waits.waits_s.first().copied().unwrap_or(0.0), waits.waited_s()]
    });
    let mut ratios = run.iter().zip(other).map(|(run_s, other_s)| run_s / other_s * others / own);
    ratios.any(|ratio| (ratio - 1.0).abs() <= EXPECTED_MAX)
}

/// How far waits for the first batches are from being proportional to the bytes of these batches in the run's own dataset, and in the other's: deviation over ranks, of the mean.
pub(super) fn fits(run: &Run, other: &Run) -> Option<(f64, f64)> {
    if run.epochs < 2 {
        return None;
    }
    let waits_s = &run.dataset_use.first_waits_s;
    let own = miss(&run.dataset_use.first_batch_bytes, waits_s)?;
    // The other's files, as this run shares them among its ranks and batches.
    let files = other.dataset_use.files.as_ref().filter(|files| files.samples_per_file == 1)?;
    let files = DatasetPlan { files_train: run.files?, ..files.clone() };
    let bytes = first_batch_bytes_of(&files, run.batch_size?, run.accelerators?);
    Some((own, miss(&bytes, waits_s)?))
}

/// Deviation of waits from being proportional to bytes, by least squares; of their mean.
fn miss(bytes: &[f64], waits_s: &[f64]) -> Option<f64> {
    if bytes.len() < FIT_RANKS_MIN || bytes.len() != waits_s.len() {
        return None;
    }
    let pairs = bytes.iter().zip(waits_s);
    let slope = pairs.clone().map(|(bytes, wait)| bytes * wait).sum::<f64>()
        / bytes.iter().map(|bytes| bytes * bytes).sum::<f64>();
    let squares = pairs.map(|(bytes, wait)| (wait - slope * bytes).powi(2));
    let squares: Vec<f64> = squares.collect();
    Some(mean(&squares)?.sqrt() / mean(waits_s)?).filter(|miss| miss.is_finite())
}

/// Whether the first of two misses is clearly less.
pub(super) fn is_better(one: f64, than: f64) -> bool {
    2.0 * one < than
}
