//! Utilisation in the window differs from utilisation over all steps.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::metric::{AU_ALL_STEPS, AU_WINDOWED};

/// Largest difference that causes no doubt, in percentage points.
const DIFFERENCE_MAX: f64 = 1.0;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "au_disagrees",
        severity: Severity::Warning,
        bias: Bias::Unaffected,
        meaning: "au_windowed and au_all_steps differ by more than a point: leaving out the first steps changes the answer.",
        evidence: "{au_windowed_percent} in the window, {au_all_steps_percent} over all steps",
        advice: "run more steps, until AU in the window and over all steps agree; until then, au_all_steps describes the run and au_sustained a longer one",
    },
    needs_loader: false,
    check: Some(|derived| {
        let windowed = derived.value(&AU_WINDOWED)?;
        let all_steps = derived.value(&AU_ALL_STEPS)?;
        if (windowed - all_steps).abs() <= DIFFERENCE_MAX {
            return None;
        }
        let facts = Facts::new().with("au_windowed_percent", windowed);
        Some(facts.with("au_all_steps_percent", all_steps))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("50.0 % in the window, 48.2 % over all", |r| slow_start(r, 1500)),
        super::tests::silent(|r| slow_start(r, 500)),
    ],
};

#[cfg(test)]
fn slow_start(record: &mut crate::record::Record, ms: u64) {
    let accelerators = record.epochs.iter_mut().flat_map(|epoch| &mut epoch.accelerators);
    for block in accelerators.flat_map(|accelerator| &mut accelerator.blocks) {
        block.load_ns[0] += ms * 1_000_000;
        block.end_ns += ms * 1_000_000;
    }
}
