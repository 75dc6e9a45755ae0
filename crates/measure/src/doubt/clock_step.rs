//! The wall clock was set during the run.

use super::{Doubt, Severity, found};
use feedrate_spec::units;

/// Time services slew by at most 500 parts in a million; twice that is a step.
const SLEW_MAX: f64 = 1e-3;
const STEP_MIN_NS: u64 = 10_000_000;

pub(super) static DOUBT: Doubt = Doubt {
    name: "clock_step",
    severity: Severity::Note,
    meaning: "The wall clock was set during an epoch: timestamps are off, durations are not, as they come from the monotonic clock.",
    check: |facts| {
        let (epoch, step_ns) = facts.record.epochs.iter().find_map(|epoch| {
            let step_ns = epoch.host.clock_step_ns?;
            let slewed_ns = epoch.end_ns.saturating_sub(epoch.start_ns) as f64 * SLEW_MAX;
            let is_step =
                STEP_MIN_NS < step_ns.unsigned_abs() && slewed_ns < step_ns.unsigned_abs() as f64;
            is_step.then_some((epoch.number, step_ns))
        })?;
        found(
            format!("it moved by {} in epoch {epoch}", units::seconds(step_ns as f64 / 1e9)),
            "trust the durations; do not compare timestamps with other machines' logs",
        )
    },
};
