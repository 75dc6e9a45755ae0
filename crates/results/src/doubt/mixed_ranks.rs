//! Files of ranks are copies of each other, or belong to another rank or another run.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::{Imported, ReportedBlock};
use feedrate_measure::stats::{mean, median};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of different times. Fewer may be equal by chance.
const DIFFERENT_MIN: usize = 3;
/// Largest relative difference between a rank's rates and those that follow from its steps and block times. In sound folders it is 0.05 %.
const OWN_DIFFERENCE_MAX: f64 = 5e-4;
/// Factor by which the rates of a rank fit the block times of another rank better than its own, if the files of both were swapped.
const SWAPPED_FACTOR: f64 = 3.0;
/// Largest such difference of a rank if the other ranks have small differences.
const FOREIGN_DIFFERENCE: f64 = 0.02;
const FOREIGN_FACTOR: f64 = 10.0;
/// Largest number of ranks with differences among which pairs are searched. With more, the release of DLIO computes other rates.
const SEARCHED_MAX: usize = 64;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "mixed_ranks",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "Files of ranks do not belong together: two ranks have the same load times, or the rates of a rank do not follow from its steps and block times, but those of the other ranks do.",
        evidence: "{problems:.4}",
        advice: "copy the folder again from where it was written; files may have been swapped, or replaced by those of another run",
    },
    check: Check::Import(|_, imported| {
        let mut problems = equal_load_times(imported);
        if imported.shared_times_file.is_none() {
            problems.extend(unfitting_times(imported));
        }
        Facts::from_list("problems", problems)
    }),
    #[cfg(test)]
    fires: |root| {
        let run = tests::varied_run().write(root, "w/4/a");
        std::fs::copy(run.join("1_output.json"), run.join("2_output.json")).unwrap();
    },
};

/// Lists the ranks whose load times equal those of a lower rank to the nanosecond.
fn equal_load_times(imported: &Imported) -> Vec<String> {
    let mut originals: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
    let mut copies = Vec::new();
    for (position, &rank) in imported.ranks.iter().enumerate() {
        let epochs = imported.epochs().iter();
        let accelerators = epochs.filter_map(|epoch| epoch.accelerators.get(position));
        let blocks = accelerators.flat_map(|accelerator| &accelerator.blocks);
        let loads_ns: Vec<u64> = blocks.flat_map(|block| &block.load_ns).copied().collect();
        if loads_ns.iter().collect::<BTreeSet<_>>().len() < DIFFERENT_MIN {
            continue;
        }
        match originals.get(&loads_ns) {
            Some(original) => {
                copies.push(format!("all load times of ranks {original} and {rank} are equal"));
            }
            None => drop(originals.insert(loads_ns, rank)),
        }
    }
    copies
}

/// Lists ranks whose rates do not follow from their steps and block times: swapped pairs of ranks, and single ranks.
fn unfitting_times(imported: &Imported) -> Vec<String> {
    let by_rank = imported.blocks_by_rank();
    let ranks: Vec<u32> = imported.ranks.iter().copied().collect();
    let difference =
        |rank: usize, times: usize| mean_difference(imported, &by_rank[rank], &by_rank[times]);
    let deviations: Option<Vec<f64>> =
        (0..by_rank.len()).map(|rank| difference(rank, rank)).collect();
    let Some(deviations) = deviations else { return Vec::new() };
    let foreign_min = FOREIGN_DIFFERENCE.max(FOREIGN_FACTOR * median(&deviations).unwrap_or(0.0));
    let mut doubtful: Vec<usize> =
        (0..deviations.len()).filter(|rank| OWN_DIFFERENCE_MAX < deviations[*rank]).collect();
    if SEARCHED_MAX < doubtful.len() {
        return Vec::new();
    }
    let fits_better = |rank: usize, times: usize| {
        difference(rank, times).is_some_and(|other| other * SWAPPED_FACTOR < deviations[rank])
    };
    let mut problems = Vec::new();
    while let Some(rank) = doubtful.pop() {
        let swapped =
            doubtful.iter().position(|&other| fits_better(rank, other) && fits_better(other, rank));
        if let Some(position) = swapped {
            let other = doubtful.remove(position);
            problems.push(format!(
                "the steps of rank {} fit the block times of rank {}, and the reverse",
                ranks[other], ranks[rank]
            ));
        } else if foreign_min < deviations[rank] {
            problems.push(format!(
                "the rates of rank {} differ by {:.0} % from those of its steps and block times",
                ranks[rank],
                deviations[rank] * 100.0
            ));
        }
    }
    problems
}

/// Returns the mean relative difference between the rates in `blocks` and the rates that follow from their steps within the durations of the blocks
/// `times`. `None` if the blocks cannot be compared.
fn mean_difference(
    imported: &Imported,
    blocks: &[ReportedBlock],
    times: &[ReportedBlock],
) -> Option<f64> {
    if blocks.len() != times.len() {
        return None;
    }
    let batch = imported.plan.loader.batch_size as f64;
    let differences = blocks.iter().zip(times).filter_map(|(block, time)| {
        let outside_s = block.length_s - block.window_s;
        let steps = block.steps.checked_sub(2).filter(|steps| 0 < *steps)? as f64;
        let rate = steps * batch / (time.length_s - outside_s);
        let difference = (block.samples_per_second / rate - 1.0).abs();
        difference.is_finite().then_some(difference)
    });
    mean(&differences.collect::<Vec<f64>>())
}
