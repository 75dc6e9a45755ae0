//! DLIO's throughput always counts two steps too few, regardless of how many steps its window leaves out.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Imported;
use feedrate_measure::metric::{SAMPLES_WHOLE, SAMPLES_WINDOWED};

/// Maximum relative difference between a block's rate and the wrong formula.
const TOLERANCE: f64 = 0.02;
/// Maximum relative difference from the formula of older releases: all steps ÷ duration of the whole block.
const OLDER_TOLERANCE: f64 = 2e-4;
/// Minimum relative effect of the wrong count; a smaller effect cannot be detected.
const EFFECT_MIN: f64 = 0.002;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "wrong_step_count",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The reported throughput is (steps − 2) × batch ÷ duration of the window, but the window has more steps. The throughput is too low, zero for two steps, and negative for one.",
        evidence: "{reported_samples_per_second:.2} samples/s[ of {left_ranks}] count {counted:.0} steps over the time of {window_steps}; [with all steps of the window it is {windowed_samples_per_second:.2} samples/s|only {left_ranks:.0} ranks are known, so the rate of all ranks is unknown|the window has no steps][; {whole_samples_per_second:.2} over whole epochs]",
        advice: "use the recomputed rates: windowed ones follow DLIO's definition, whole ones cover entire epochs",
    },
    check: Check::Import(|run, imported| {
        run.reported_samples_per_second()?;
        // The rate from the ranks' files. `throughput_misreported` covers a summary with another rate.
        let rate = imported.samples_per_second_of_blocks()?;
        if !follows_wrong_formula(imported) {
            return None;
        }
        let metric = &imported.plan.metric;
        let excluded = metric.exclude_start_steps + metric.exclude_end_steps;
        let is_partial = !imported.ranks_missing().is_empty();
        let facts = Facts::new()
            .with("reported_samples_per_second", rate)
            .with("counted", run.steps as f64 - 2.0)
            .with("window_steps", run.steps.saturating_sub(excluded))
            .with_known("left_ranks", is_partial.then_some(imported.ranks.len()))
            .with_known("windowed_samples_per_second", run.metric(&SAMPLES_WINDOWED))
            .with_known("whole_samples_per_second", run.metric(&SAMPLES_WHOLE));
        Some(facts)
    }),
    #[cfg(test)]
    fires: |root| drop(tests::write_cold_run(root)),
};

/// Returns whether most blocks' rates match the wrong formula better than the right one.
fn follows_wrong_formula(imported: &Imported) -> bool {
    let metric = &imported.plan.metric;
    let excluded = (metric.exclude_start_steps + metric.exclude_end_steps) as f64;
    let batch = imported.plan.loader.batch_size as f64;
    let is_wrong: Vec<bool> = imported
        .blocks()
        .iter()
        .filter(|block| block.steps > 0 && block.samples_per_second.is_finite() && batch > 0.0)
        .map(|block| {
            let steps = block.steps as f64;
            let relative_error = |left_out: f64| {
                let rate = (steps - left_out) / block.window_s * batch;
                (block.samples_per_second - rate).abs() / rate.abs()
            };
            let wrong_error = relative_error(2.0);
            let right_error = relative_error(excluded);
            // Not exact: in older releases, the blocks of ranks begin and end at different times.
            let older_rate = steps / block.length_s * batch;
            let older_error = (block.samples_per_second / older_rate - 1.0).abs();
            if older_error <= OLDER_TOLERANCE || older_error < wrong_error {
                return false;
            }
            // A block of one step has no window, and its rate follows from the time between two clock calls.
            let is_negative_single = block.steps == 1 && block.samples_per_second < 0.0;
            let is_zero_pair = block.steps == 2 && block.samples_per_second == 0.0;
            let is_detectable = (steps - excluded) * EFFECT_MIN < (excluded - 2.0).abs();
            let fits_wrong = wrong_error <= TOLERANCE && wrong_error < right_error;
            is_negative_single || is_zero_pair || (is_detectable && fits_wrong)
        })
        .collect();
    let wrong = is_wrong.iter().filter(|is_wrong| **is_wrong).count();
    !is_wrong.is_empty() && is_wrong.len() < 2 * wrong
}
