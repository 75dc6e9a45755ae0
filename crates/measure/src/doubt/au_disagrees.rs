//! The window hides, or shows, what the whole run does not.

use super::{Doubt, Severity, found};

/// Percentage points.
const DIFFERENCE_MAX: f64 = 1.0;

pub(super) static DOUBT: Doubt = Doubt {
    name: "au_disagrees",
    severity: Severity::Warning,
    meaning: "au_windowed and au_all_steps differ by more than a point: leaving out the first steps changes the answer.",
    check: |facts| {
        let (windowed, all_steps) = (facts.au_windowed?, facts.au_all_steps?);
        if (windowed - all_steps).abs() <= DIFFERENCE_MAX {
            return None;
        }
        found(
            format!("{windowed:.1} % in the window, {all_steps:.1} % over all steps"),
            "run more steps until they agree; until then, au_all_steps is what happened and au_sustained what would go on",
        )
    },
};
