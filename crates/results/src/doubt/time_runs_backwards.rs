//! Times contradict each other: the wall clock, from which DLIO computes durations, was set during the run, or files were changed.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_spec::units;

/// Share by which steps may take longer than their block, since both are measured by different clock calls.
const TOLERANCE_SHARE: f64 = 1e-3;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "time_runs_backwards",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "Blocks end before they begin, are shorter than the sum of their steps, begin before their epoch, or last longer or shorter than stated: the wall clock, from which DLIO computes durations, was set during the run, or files were changed.",
        evidence: "{backwards:.3}",
        advice: "prevent time services from stepping the clock during runs, and run again, or copy the folder again from where it was written",
    },
    check: Check::Import(|_, imported| {
        let mut backwards = imported.backwards.clone();
        for epoch in imported.epochs() {
            let ranks = imported.ranks.iter().zip(&epoch.accelerators);
            let has_own_times = |rank: u32| imported.shared_times_file.is_none() || rank == 0;
            for (rank, accelerator) in ranks.filter(|(rank, _)| has_own_times(**rank)) {
                for block in &accelerator.blocks {
                    let steps_ns = block.busy_ns();
                    let length_ns = block.end_ns.saturating_sub(block.start_ns);
                    if length_ns as f64 * (1.0 + TOLERANCE_SHARE) + 1e6 < steps_ns as f64 {
                        backwards.push(format!(
                            "a block of rank {rank} in epoch {} lasted {}, but its steps {}",
                            epoch.number,
                            units::seconds(length_ns as f64 / 1e9),
                            units::seconds(steps_ns as f64 / 1e9)
                        ));
                    }
                }
            }
        }
        Facts::from_list("backwards", backwards)
    }),
    #[cfg(test)]
    fires: |root| {
        let end = "\"end\": \"2025-11-30T10";
        let earlier_end = "\"end\": \"2025-11-30T08";
        tests::edit_good_run(root, "2_per_epoch_stats.json", end, earlier_end);
    },
};
