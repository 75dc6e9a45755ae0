//! One accelerator holds up all others.

use super::{Doubt, Severity, found};
use crate::window::{Scope, seconds};
use feedrate_spec::units;

/// Of the median.
const SLOWER_MAX: f64 = 1.2;

pub(super) static DOUBT: Doubt = Doubt {
    name: "straggler_accelerator",
    severity: Severity::Warning,
    meaning: "One accelerator took much longer to load and compute than the others, which waited for it at the barrier.",
    check: |facts| {
        let mut own_s: Vec<(f64, usize)> = own_times_s(facts.record).into_iter().zip(0..).collect();
        own_s.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (slowest_s, slowest) = *own_s.last()?;
        let (median_s, _) = own_s[(own_s.len() - 1) / 2];
        if slowest_s <= SLOWER_MAX * median_s {
            return None;
        }
        found(
            format!(
                "accelerator {slowest} loaded and computed for {}, the median one for {}",
                units::seconds(slowest_s),
                units::seconds(median_s)
            ),
            "look at the files it reads and the workers it has; with drawn record sizes, use more steps",
        )
    },
};

/// Load and compute of each accelerator over the run.
fn own_times_s(record: &crate::record::Record) -> Vec<f64> {
    let epochs = || Scope::all(record).map(|scope| scope.epoch);
    let count = epochs().map(|epoch| epoch.accelerators.len()).max().unwrap_or(0);
    let mut own_s = vec![0.0; count];
    for epoch in epochs() {
        for (own_s, accelerator) in own_s.iter_mut().zip(&epoch.accelerators) {
            let times =
                accelerator.blocks.iter().flat_map(|b| b.load_ns.iter().chain(&b.compute_ns));
            *own_s += seconds(times.sum());
        }
    }
    own_s
}
