//! Whether two runs waited alike, where they would have waited alike only for the same files. Says how far apart, judges nothing else.

use super::asked::{Asked, default};
use crate::import::first_batch_bytes_of;
use crate::run::Run;
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

pub(super) fn shape<'a>(run: &Run, asked: &'a Asked) -> Shape<'a> {
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
pub(super) fn differs(a: &Asked, b: &Asked) -> Vec<(String, String, String)> {
    let keys: BTreeSet<&String> = a.files.keys().chain(b.files.keys()).collect();
    let value = |of: &Asked, key: &str| {
        let given = of.files.get(key).map(String::as_str);
        given.or_else(|| default("dataset", key)).unwrap_or("not given").to_string()
    };
    let both = keys.into_iter().map(|key| (key.clone(), value(a, key), value(b, key)));
    both.filter(|(_, a, b)| a != b).collect()
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
pub(super) fn waits(run: &Run) -> bool {
    run.step_times.load_percent.is_some_and(|percent| WAITED_MIN_PERCENT <= percent)
}

/// Whether two runs would have waited differently for samples of their own sizes: both mostly waited, and for bytes, not for files to be found.
pub(super) fn would_show(a: &Run, b: &Run) -> bool {
    let (Some(a_bytes), Some(b_bytes)) = (a.sample_bytes(), b.sample_bytes()) else { return false };
    let samples = a.batch_size.unwrap_or(0) as f64 * a.steps as f64;
    let more = (a_bytes - b_bytes).abs() * samples / a.dataset_use.waited_s();
    let is_apart = SIZES_APART <= (a_bytes / b_bytes).max(b_bytes / a_bytes);
    waits(a) && waits(b) && is_apart && MORE_MIN_BYTES_PER_SECOND <= more
}

/// Whether a run waited as the other did, but for the bytes of a sample: at the first step, or over an epoch, of which computing hides a part.
pub(super) fn is_as_by_bytes(run: &Run, other: &Run) -> bool {
    let (Some(own), Some(others)) = (run.sample_bytes(), other.sample_bytes()) else {
        return false;
    };
    let is = |waited: fn(&Run) -> f64| {
        (waited(run) / waited(other) * others / own - 1.0).abs() <= EXPECTED_MAX
    };
    is(|run| run.dataset_use.waits_s.first().copied().unwrap_or(0.0))
        || is(|run| run.dataset_use.waited_s())
}

/// How far waits for the first batches are from being proportional to the bytes of these batches in the run's own dataset, and in the other's: deviation over ranks, of the mean.
pub(super) fn fits(run: &Run, other: &Run) -> Option<(f64, f64)> {
    let waits = &run.dataset_use.first_waits_s;
    let miss = |bytes: &[f64]| {
        let is_told = FIT_RANKS_MIN <= bytes.len() && bytes.len() == waits.len() && run.epochs > 1;
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            bytes.iter().zip(waits).map(|(bytes, wait)| of(*bytes, *wait)).sum()
        };
        let slope = sum(&|bytes, wait| bytes * wait) / sum(&|bytes, _| bytes * bytes);
        let squares = sum(&|bytes, wait| (wait - slope * bytes).powi(2)) / waits.len() as f64;
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        Some(squares.sqrt() / mean).filter(|miss| is_told && miss.is_finite())
    };
    let own = miss(&run.dataset_use.first_batch_bytes)?;
    // The other's files, as this run shares them among its ranks and batches.
    let files = other.dataset_use.files.as_ref().filter(|files| files.samples_per_file == 1)?;
    let files = DatasetPlan { files_train: run.files?, ..files.clone() };
    Some((own, miss(&first_batch_bytes_of(&files, run.batch_size?, run.accelerators?))?))
}

/// Whether the first of two misses is clearly less.
pub(super) fn is_better(one: f64, than: f64) -> bool {
    2.0 * one < than
}
