//! One accelerator holds up all the others.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::record::Record;
use crate::window::{Scope, seconds};

/// Largest load and compute time that causes no doubt, as a multiple of the median.
const SLOWER_MAX: f64 = 1.2;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "straggler_accelerator",
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "One accelerator took much longer to load and compute than the others, which waited for it at the barrier.",
        evidence: "accelerator {accelerator} loaded and computed for {busy_s}, the median one for {median_busy_s}",
        advice: "check the files it reads and its number of workers; with random record sizes, use more steps",
    },
    needs_loader: false,
    check: Some(|derived| {
        let mut sorted: Vec<(f64, usize)> = busy_s(derived.record).into_iter().zip(0..).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (slowest_s, slowest) = *sorted.last()?;
        let (median_s, _) = sorted[(sorted.len() - 1) / 2];
        if slowest_s <= SLOWER_MAX * median_s {
            return None;
        }
        let facts = Facts::new()
            .with("accelerator", slowest)
            .with("busy_s", slowest_s)
            .with("median_busy_s", median_s);
        Some(facts)
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "accelerator 1 loaded and computed for 3 min, the median one for 2 min",
            |r| slow_down(r, 500),
        ),
        super::tests::silent(|r| slow_down(r, 150)),
    ],
};

/// Load and compute time of each accelerator over the run, in seconds.
fn busy_s(record: &Record) -> Vec<f64> {
    let count =
        Scope::whole_epochs(record).map(|scope| scope.epoch.accelerators.len()).max().unwrap_or(0);
    let mut sums_s = vec![0.0; count];
    for scope in Scope::whole_epochs(record) {
        for (sum_s, accelerator) in sums_s.iter_mut().zip(&scope.epoch.accelerators) {
            *sum_s += seconds(accelerator.busy_ns());
        }
    }
    sums_s
}

/// Adds time to the load of accelerator 1 in each step, and to the barriers of the others.
#[cfg(test)]
fn slow_down(record: &mut Record, by_ms: u64) {
    for epoch in &mut record.epochs {
        for (i, accelerator) in epoch.accelerators.iter_mut().enumerate() {
            let block = &mut accelerator.blocks[0];
            let times = if i == 1 { &mut block.load_ns } else { &mut block.barrier_ns };
            times.iter_mut().for_each(|ns| *ns += by_ms * 1_000_000);
            block.end_ns += 40 * by_ms * 1_000_000;
        }
    }
}
