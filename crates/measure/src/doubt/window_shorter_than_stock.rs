//! The window is so short that the batches loaded during step 1 may fill all of it.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

/// Name of this doubt.
pub const NAME: &str = "window_shorter_than_stock";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Unaffected,
        meaning: "The window has no more steps than the loader may have loaded in advance: au_windowed can be near 100 % although accelerators were mostly idle.",
        evidence: "the window has {window_steps}, and the loader may hold {in_flight_batches} by then",
        advice: "use more files, fewer accelerators, or fewer reading threads; believe au_all_steps",
    },
    needs_loader: true,
    check: Some(|derived| {
        let plan = &derived.record.plan;
        let excluded =
            plan.metric.exclude_start_steps.saturating_add(plan.metric.exclude_end_steps);
        let window_steps = derived.steps.saturating_sub(excluded);
        let in_flight_batches = plan.stock_batches();
        // The number of batches in flight may be unknown for a watched loop.
        let is_known = derived.record.watched.is_none() || in_flight_batches > 0;
        if derived.steps == 0 || !is_known || in_flight_batches < window_steps {
            return None;
        }
        Some(
            Facts::new()
                .with("window_steps", window_steps)
                .with("in_flight_batches", in_flight_batches),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("the window has 39 steps, and the loader may hold 39", |r| {
            r.plan.loader.batches_in_flight = 39;
        }),
        super::tests::silent(|r| r.plan.loader.batches_in_flight = 10),
    ],
};
