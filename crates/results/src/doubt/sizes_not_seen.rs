//! Sizes that waits do not show: first batches of different size that took as long, or two runs of different sizes, of which it cannot be told which read the wrong files.
//!
//! DLIO draws file sizes from a fixed seed, and with the loader `pytorch` each rank's first batch is its first files in the order of their names. One worker reads it,
//! file after file, so that the wait for it follows the bytes: in published results of unet3d to 1 %.

use super::{Check, Doubt, Finding, Severity, alike, found, unlike};
use crate::case::Case;
use crate::set::{Set, Unsure};
use feedrate_spec::units;

/// Fewer ranks tell nothing.
const RANKS_MIN: usize = 4;
/// Deviation of the batches' bytes, of their mean, from which waits must show it.
const SPREAD_MIN: f64 = 0.03;
/// How far waits follow bytes: 1 is proportional.
const FOLLOWS_MIN: f64 = 0.4;
/// A wait that is mostly start-up tells nothing.
const WAITED_MIN_PERCENT: f64 = 20.0;

pub(super) static DOUBT: Doubt = Doubt {
    name: "sizes_not_seen",
    severity: Severity::Warning,
    meaning: "Samples differ in bytes by what configs say, among the ranks' first batches or from another run's, and the waits for them hardly do: the run may have read another dataset, or something else than reading took the time.",
    check: Check::OfSet(|set, index| {
        let unsure = set.unsure(index).and_then(|unsure| among_runs(set, index, unsure));
        unsure.or_else(|| among_ranks(set, index))
    }),
};

fn among_runs(set: &Set, index: usize, unsure: &Unsure) -> Option<Finding> {
    let bytes = |index: usize| {
        let case: &Case = &set.cases[index];
        let mean = case.mean_sample_bytes.or(case.record_length_bytes)?;
        Some(units::bytes(mean as u64))
    };
    let which = match unsure.unlike {
        Some(third) => unlike(set, third),
        None if unsure.like.is_same() => {
            "one of the two may have read the files of the other, and it cannot be told which"
                .into()
        }
        None => "it may have read those".into(),
    };
    found(
        format!(
            "{}, though a sample should have {} and has {} there; {which}",
            alike(set, index, &unsure.like),
            bytes(index)?,
            bytes(unsure.like.of)?
        ),
        "look whether the dataset was made anew before each of them, and run this one again",
    )
}

/// Runs of the same workload that are looked at, at most.
const OTHERS_MAX: usize = 50;

/// Where its own dataset was made last, or most runs of the workload show the same, something else than the sizes explains it: start-up of the workers, say.
fn among_ranks(set: &Set, index: usize) -> Option<Finding> {
    let case = &set.cases[index];
    let unseen = unseen(case)?.filter(|_| !set.has_own_dataset(index))?;
    let others = set.study(index).iter().take(OTHERS_MAX);
    let others: Vec<bool> =
        others.filter_map(|other| Some(self::unseen(&set.cases[*other])?.is_some())).collect();
    let alike = others.iter().filter(|is_unseen| **is_unseen).count();
    if 1 < alike && others.len() < 2 * alike {
        return None;
    }
    let (spread, of_waits) = unseen;
    found(
        format!(
            "the first batches of {} ranks deviate by {:.1} % in bytes, the waits for them by {:.1} %",
            case.origin.first_batch_bytes.len(),
            spread * 100.0,
            of_waits * 100.0
        ),
        "look whether the dataset was made anew for this run's settings",
    )
}

/// Deviations of bytes and of waits, where waits do not follow bytes. `None` where nothing can be said.
fn unseen(case: &Case) -> Option<Option<(f64, f64)>> {
    let (bytes, waits) = (&case.origin.first_batch_bytes, &case.origin.first_waits_s);
    // The first epoch starts the workers, too.
    if case.epochs < 2 || bytes.len() < RANKS_MIN || bytes.len() != waits.len() {
        return None;
    }
    let (spread, follows) = (deviation(bytes)?, follows(bytes, waits)?);
    let of_waits = deviation(waits)?;
    if spread < SPREAD_MIN || case.stall.load_percent? < WAITED_MIN_PERCENT {
        return None;
    }
    // Waits that differ more have another reason, such as a slow rank.
    let is_seen = FOLLOWS_MIN <= follows || spread < of_waits;
    Some((!is_seen).then_some((spread, of_waits)))
}

/// Of the mean.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = feedrate_measure::stats::mean(values)?;
    Some(feedrate_measure::metric::stdev(values)? / mean)
}

/// Slope of relative waits over relative bytes, by least squares.
fn follows(bytes: &[f64], waits: &[f64]) -> Option<f64> {
    let (mean_bytes, mean_wait) =
        (feedrate_measure::stats::mean(bytes)?, feedrate_measure::stats::mean(waits)?);
    let pairs =
        || bytes.iter().zip(waits).map(|(b, w)| (b / mean_bytes - 1.0, w / mean_wait - 1.0));
    let squares: f64 = pairs().map(|(b, _)| b * b).sum();
    let slope = pairs().map(|(b, w)| b * w).sum::<f64>() / squares;
    slope.is_finite().then_some(slope)
}
