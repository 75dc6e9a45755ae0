//! DLIO's throughput counts two steps too few, whatever its window leaves out.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Imported;
use feedrate_measure::metric::{SAMPLES_WHOLE, SAMPLES_WINDOWED};

/// Share by which a block's rate may miss DLIO's formula.
const TOLERANCE: f64 = 0.02;
/// Share by which it may miss that of older releases, which is of all steps in the time of the whole block.
const OLDER_TOLERANCE: f64 = 2e-4;
/// Share of the rate that a wrong count must make.
const SEEN_MIN: f64 = 0.002;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "wrong_step_count",
        severity: Severity::Warning,
        meaning: "The reported throughput is (steps − 2) × batch ÷ the time of its window, which has more steps than that: too low, zero at two steps, negative at one.",
        evidence: "{reported_samples_per_second:.2} samples/s[ of {left_ranks}] are of {counted:.0} steps in the time of {window_steps}; [with them it is {windowed_samples_per_second:.2} samples/s|that of all ranks, not of {left_ranks:.0}, is not known|there is none to count][; {whole_samples_per_second:.2} over whole epochs]",
        advice: "use the recomputed rates: windowed for DLIO's definition, whole for what happened",
    },
    check: Check::OfImport(|run, imported| {
        run.reported_samples_per_second()?;
        // The summary may say something else, which is a doubt of its own.
        let of_blocks = imported.samples_per_second_of_blocks()?;
        if !follows(imported) {
            return None;
        }
        let metric = &imported.plan.metric;
        let excluded = metric.exclude_start_steps + metric.exclude_end_steps;
        let is_part = !imported.ranks_missing().is_empty();
        let windowed = run.metric(&SAMPLES_WINDOWED);
        let facts = Facts::new().with("reported_samples_per_second", of_blocks);
        let facts = facts.with("counted", run.steps as f64 - 2.0);
        let facts = facts.with("window_steps", run.steps.saturating_sub(excluded));
        let facts = facts.with_known("left_ranks", is_part.then_some(imported.ranks.len()));
        let facts = facts.with_known("windowed_samples_per_second", windowed);
        Some(facts.with_known("whole_samples_per_second", run.metric(&SAMPLES_WHOLE)))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::cold(root)),
};

/// Whether blocks have rates by that formula, and not by the right one.
fn follows(imported: &Imported) -> bool {
    let metric = &imported.plan.metric;
    let excluded = (metric.exclude_start_steps + metric.exclude_end_steps) as f64;
    let batch = imported.plan.loader.batch_size as f64;
    let judged: Vec<bool> = imported
        .blocks()
        .iter()
        .filter(|block| block.steps > 0 && block.samples_per_second.is_finite() && batch > 0.0)
        .map(|block| {
            let steps = block.steps as f64;
            let [miss, right_miss] = [2.0, excluded].map(|left_out| {
                let rate = (steps - left_out) / block.window_s * batch;
                (block.samples_per_second - rate).abs() / rate.abs()
            });
            let older = steps / block.length_s * batch;
            // Ranks of older releases begin and end their blocks apart.
            let older_miss = (block.samples_per_second / older - 1.0).abs();
            if older_miss <= OLDER_TOLERANCE || older_miss < miss {
                return false;
            }
            // One step has no window: its rate is whatever two calls of the clock were apart.
            let is_of_one = block.steps == 1 && block.samples_per_second < 0.0;
            let is_of_two = block.steps == 2 && block.samples_per_second == 0.0;
            let is_seen = (steps - excluded) * SEEN_MIN < (excluded - 2.0).abs();
            is_of_one || is_of_two || (is_seen && miss <= TOLERANCE && miss < right_miss)
        })
        .collect();
    let wrong = judged.iter().filter(|wrong| **wrong).count();
    !judged.is_empty() && judged.len() < 2 * wrong
}
