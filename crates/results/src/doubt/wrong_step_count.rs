//! DLIO's throughput counts two steps too few, whatever its window leaves out.

use super::{Check, Doubt, Severity, found};
use crate::run::Loaded;
use feedrate_measure::metric::{SAMPLES_WHOLE, SAMPLES_WINDOWED};
use feedrate_spec::units;

/// Share by which a block's rate may miss DLIO's formula.
const TOLERANCE: f64 = 0.02;
/// Share of the rate that a wrong count must make.
const SEEN_MIN: f64 = 0.002;

pub(super) static DOUBT: Doubt = Doubt {
    name: "wrong_step_count",
    severity: Severity::Warning,
    meaning: "The reported throughput is (steps − 2) × batch ÷ the time of its window, which has more steps than that: too low, zero at two steps, negative at one.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        loaded.run.reported_samples_per_second()?;
        // The summary may say something else, which is a doubt of its own.
        let of_blocks = imported.samples_per_second_of_blocks?;
        let steps = loaded.run.steps;
        if !follows(loaded) {
            return None;
        }
        let excluded = loaded.record.plan.metric.exclude_start_steps
            + loaded.record.plan.metric.exclude_end_steps;
        let is_whole = imported.ranks_missing().is_empty();
        let inside = steps.saturating_sub(excluded);
        let right = match loaded.run.metric(&SAMPLES_WINDOWED) {
            Some(right) => format!("with them it is {right:.2} samples/s"),
            None if is_whole => "there is none to count".into(),
            None => "that of all ranks is not known".into(),
        };
        let whole = loaded.run.metric(&SAMPLES_WHOLE);
        let whole = whole.map_or(String::new(), |whole| format!("; {whole:.2} over whole epochs"));
        let counted = i128::from(steps) - 2;
        let of_ranks = match is_whole {
            true => String::new(),
            false => format!(" of {}", units::counted(imported.ranks.len() as u64, "rank")),
        };
        found(
            format!(
                "{of_blocks:.2} samples/s{of_ranks} are of {counted} steps in the time of {}; {right}{whole}",
                units::counted(inside, "step")
            ),
            "use the recomputed rates: windowed for DLIO's definition, whole for what happened",
        )
    }),
};

/// Whether blocks have rates by that formula, and not by the right one.
fn follows(loaded: &Loaded) -> bool {
    let Some(imported) = &loaded.imported else { return false };
    let metric = &loaded.record.plan.metric;
    let excluded = (metric.exclude_start_steps + metric.exclude_end_steps) as f64;
    let batch = loaded.record.plan.loader.batch_size as f64;
    let judged: Vec<bool> = imported
        .blocks
        .iter()
        .filter(|block| block.steps > 0 && block.samples_per_second.is_finite() && batch > 0.0)
        .map(|block| {
            let steps = block.steps as f64;
            let miss = |counted: f64| {
                let rate = counted / block.window_s * batch;
                (block.samples_per_second - rate).abs() / rate.abs()
            };
            // One step has no window: its rate is whatever two calls of the clock were apart.
            let is_of_one = block.steps == 1 && block.samples_per_second < 0.0;
            let is_of_two = block.steps == 2 && block.samples_per_second == 0.0;
            let is_seen = (steps - excluded) * SEEN_MIN < (excluded - 2.0).abs();
            is_of_one
                || is_of_two
                || (is_seen
                    && miss(steps - 2.0) <= TOLERANCE
                    && miss(steps - 2.0) < miss(steps - excluded))
        })
        .collect();
    let wrong = judged.iter().filter(|wrong| **wrong).count();
    !judged.is_empty() && judged.len() < 2 * wrong
}
