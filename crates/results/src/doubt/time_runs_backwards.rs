//! DLIO takes durations from the wall clock.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_spec::units;

/// Timestamps and step times come from different calls.
const TOLERANCE_SHARE: f64 = 1e-3;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "time_runs_backwards",
        severity: Severity::Invalid,
        meaning: "Blocks end before they begin, or last less long than their steps: the wall clock, which DLIO's durations are of, was set meanwhile.",
        evidence: "{backwards:.3}",
        advice: "keep time services from stepping the clock during runs, and run again",
    },
    check: Check::OfImport(|_, imported| {
        let mut seen = imported.backwards.clone();
        for epoch in imported.epochs() {
            let ranks = imported.ranks.iter().zip(&epoch.accelerators);
            let has_all = imported.times_of_rank_0.is_none();
            for (rank, accelerator) in ranks.filter(|(rank, _)| has_all || **rank == 0) {
                for block in &accelerator.blocks {
                    let steps_ns = block.busy_ns();
                    let length_ns = block.end_ns.saturating_sub(block.start_ns);
                    if length_ns as f64 * (1.0 + TOLERANCE_SHARE) + 1e6 < steps_ns as f64 {
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
        Facts::listed("backwards", seen)
    }),
    #[cfg(test)]
    fires: |root| {
        let (from, to) = ("\"end\": \"2025-11-30T10", "\"end\": \"2025-11-30T08");
        tests::edit_good(root, "2_per_epoch_stats.json", from, to);
    },
};
