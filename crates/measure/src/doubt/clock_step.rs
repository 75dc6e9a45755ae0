//! The wall clock was set during the run.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

/// Largest drift of the wall clock that is not a step, as a share of elapsed time: twice the 500 ppm by which time services slew.
const SLEW_MAX: f64 = 1e-3;
/// Smallest change of the wall clock that can be a step.
const STEP_MIN_NS: u64 = 10_000_000;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "clock_step",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "The wall clock was set during an epoch: timestamps are off, durations are not, as they come from the monotonic clock.",
        evidence: "it moved by {moved_s} in epoch {epoch}",
        advice: "use the durations; do not compare timestamps with logs of other machines",
    },
    needs_loader: false,
    check: Some(|derived| {
        derived.record.epochs.iter().find_map(|epoch| {
            let step_ns = epoch.host.clock_step_ns?;
            let slewed_ns = epoch.end_ns.saturating_sub(epoch.start_ns) as f64 * SLEW_MAX;
            if step_ns.unsigned_abs() <= STEP_MIN_NS || step_ns.unsigned_abs() as f64 <= slewed_ns {
                return None;
            }
            let moved_s = step_ns as f64 / 1e9;
            Some(Facts::new().with("moved_s", moved_s).with("epoch", epoch.number))
        })
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("it moved by -2 s in epoch 2", |r| {
            r.epochs[1].host.clock_step_ns = Some(-2_000_000_000);
        }),
        super::tests::silent(|r| r.epochs[1].host.clock_step_ns = Some(15_000_000)),
        super::tests::silent(|r| r.epochs[1].host.clock_step_ns = None),
    ],
};
