//! The window is so short that it may live off the batches stocked up while step 1 waited.

use super::{Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "window_shorter_than_stock",
    severity: Severity::Warning,
    meaning: "The steps in the window are no more than the batches the loader may have stocked by then: au_windowed can be near 100 % where accelerators mostly idled.",
    check: |facts| {
        let plan = &facts.record.plan;
        let excluded =
            plan.metric.exclude_start_steps.saturating_add(plan.metric.exclude_end_steps);
        let window = facts.steps.saturating_sub(excluded);
        let stock = u64::from(plan.loader.batches_in_flight);
        if facts.steps == 0 || stock < window {
            return None;
        }
        found(
            format!("{window} steps are judged, and the loader may hold {stock} batches by then"),
            "use more files, fewer accelerators, or fewer reading threads; believe au_all_steps",
        )
    },
};
