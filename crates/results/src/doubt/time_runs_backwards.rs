//! DLIO takes durations from the wall clock.

use super::{Check, Doubt, Severity, found, some_of};
use feedrate_spec::units;

/// Timestamps and step times come from different calls.
const TOLERANCE: f64 = 1e-3;

pub(super) static DOUBT: Doubt = Doubt {
    name: "time_runs_backwards",
    severity: Severity::Invalid,
    meaning: "Blocks end before they begin, or last less long than their steps: the wall clock, which DLIO's durations are of, was set meanwhile.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let mut seen = imported.backwards.clone();
        let is_timed = |rank: u32| rank == 0 || imported.times_of_rank_0.is_none();
        for epoch in &loaded.record.epochs {
            let ranks = imported.ranks.iter().zip(&epoch.accelerators);
            for (rank, accelerator) in ranks.filter(|(rank, _)| is_timed(**rank)) {
                for block in &accelerator.blocks {
                    let steps_ns: u64 = block.load_ns.iter().chain(&block.compute_ns).sum();
                    let length_ns = block.end_ns.saturating_sub(block.start_ns);
                    if length_ns as f64 * (1.0 + TOLERANCE) + 1e6 < steps_ns as f64 {
                        seen.push(format!(
                            "a block of rank {rank} in epoch {} lasted {}, and its steps {}",
                            epoch.number,
                            units::seconds(length_ns as f64 / 1e9),
                            units::seconds(steps_ns as f64 / 1e9)
                        ));
                    }
                }
            }
        }
        if seen.is_empty() {
            return None;
        }
        found(
            some_of(&seen, 3),
            "keep time services from stepping the clock during runs, and run again",
        )
    }),
};
