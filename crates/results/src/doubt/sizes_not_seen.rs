//! Sizes that waits do not show: first batches of different size that took as long, or two runs of different sizes, of which it cannot be told which read the wrong files.
//!
//! DLIO draws file sizes from a fixed seed, and with the loader `pytorch` each rank's first batch is its first files in the order of their names. One worker reads it,
//! file after file, so that the wait for it follows the bytes: in published results of unet3d to 1 %.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity, with_like, with_third};
use crate::relations::{Relations, Unsure, mostly_waited};
use crate::run::Run;
use feedrate_measure::metric::stdev;
use feedrate_measure::stats::{mean, slope};

/// Fewer ranks tell nothing.
const RANKS_MIN: usize = 4;
/// Deviation of the batches' bytes, of their mean, from which waits must show it.
const SPREAD_MIN: f64 = 0.03;
/// How far waits follow bytes: 1 is proportional.
const FOLLOWS_MIN: f64 = 0.4;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "sizes_not_seen",
        severity: Severity::Warning,
        meaning: "Samples differ in bytes by what configs say, among the ranks' first batches or from another run's, and the waits for them hardly do: the run may have read another dataset, or something else than reading took the time.",
        evidence: "[an epoch's waiting for data, step by step, is that of `{same_as}` to {apart_percent} ({waited_s} and {like_waited_s})|an epoch's waiting for data, step by step, misses that of `{near}` by {apart_percent} ({waited_s} and {like_waited_s})][, though a sample should have {sample_bytes} and has {like_sample_bytes} there; ][`{third}` waited {third_waited_s} for samples of {third_sample_bytes}|`{third}` waited {third_waited_s} for samples|one of the two, it or `{same_as}`, may have read the files of the other, and it cannot be told which|it may have read those of `{near}`][the first batches of {first_ranks:.0} ranks deviate by {bytes_deviation_percent} in bytes, the waits for them by {waits_deviation_percent}]",
        advice: "look whether the dataset was made anew before each of the runs, and repeat the run",
    },
    check: Check::AmongRuns(|relations, index| {
        let unsure =
            relations.unsure(index).and_then(|unsure| among_runs(relations, index, unsure));
        unsure.or_else(|| among_ranks(relations, index))
    }),
    #[cfg(test)]
    fires: |root| {
        let of_row = |start_s, record_length| tests::Fake {
            start_s,
            record_length,
            slower: 4.0,
            ..tests::Fake::default()
        };
        of_row(1800.0, 400_000_000).write(root, "w/4_record_length_bytes_400000000/a");
        of_row(900.0, 100_000_000).write(root, "w/4/a");
    },
};

fn among_runs(relations: &Relations, index: usize, unsure: &Unsure) -> Option<Facts> {
    let [own, other] = [index, unsure.like.of].map(|index| relations.runs[index].sample_bytes());
    let facts = with_like(Facts::new(), relations, index, &unsure.like);
    let facts = facts.with("sample_bytes", own?).with("like_sample_bytes", other?);
    Some(with_third(facts, relations, unsure.unlike))
}

/// Upper limit of runs of the same workload that are looked at.
const OTHERS_MAX: usize = 50;

/// Where its own dataset was made last, or no other run of the workload shows its sizes, or fewer than show none, something else explains it: start-up of the workers, or a storage
/// that serves all ranks at one rate.
fn among_ranks(relations: &Relations, index: usize) -> Option<Facts> {
    let run = &relations.runs[index];
    let (spread, of_waits) = unseen(run)??;
    if relations.has_own_dataset(index) || relations.stale(index).is_some() {
        return None;
    }
    let others = relations.study(index).into_iter().flat_map(|study| &study.members);
    let others: Vec<bool> = others
        .take(OTHERS_MAX)
        .filter_map(|other| Some(unseen(&relations.runs[*other])?.is_some()))
        .collect();
    let alike = others.iter().filter(|is_unseen| **is_unseen).count();
    if alike == others.len() || others.len() < 2 * alike {
        return None;
    }
    let facts = Facts::new().with("first_ranks", run.dataset_use.first_batch_bytes.len());
    let facts = facts.with("bytes_deviation_percent", spread * 100.0);
    Some(facts.with("waits_deviation_percent", of_waits * 100.0))
}

/// Deviations of bytes and of waits, where waits do not follow bytes. `None` where nothing can be said.
fn unseen(run: &Run) -> Option<Option<(f64, f64)>> {
    let (bytes, waits) = (&run.dataset_use.first_batch_bytes, &run.dataset_use.first_waits_s);
    // The first epoch starts the workers, too.
    if run.epochs < 2 || bytes.len() < RANKS_MIN || bytes.len() != waits.len() {
        return None;
    }
    let (spread, follows) = (deviation(bytes)?, follows(bytes, waits)?);
    let of_waits = deviation(waits)?;
    if spread < SPREAD_MIN || !mostly_waited(run) {
        return None;
    }
    // Waits that differ more have another reason, such as a slow rank.
    let is_seen = FOLLOWS_MIN <= follows || spread < of_waits;
    Some((!is_seen).then_some((spread, of_waits)))
}

/// Share of the mean.
fn deviation(values: &[f64]) -> Option<f64> {
    Some(stdev(values)? / mean(values)?)
}

/// Slope of relative waits over relative bytes.
fn follows(bytes: &[f64], waits: &[f64]) -> Option<f64> {
    let follows = slope(bytes, waits)?.estimate * mean(bytes)? / mean(waits)?;
    follows.is_finite().then_some(follows)
}
