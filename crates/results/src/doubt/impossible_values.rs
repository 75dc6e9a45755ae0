//! The summary contains impossible numbers.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Reported;
use feedrate_measure::metric::{AU_ALL_STEPS, SAMPLES_WHOLE};
use serde_json::Value;

/// Highest utilisation that rounding can explain.
const AU_MAX_PERCENT: f64 = 100.5;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "impossible_values",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "Reported values of training or evaluation are negative, infinite, not a number, or a utilisation above 100 %. Values recomputed from the ranks' steps are not affected.",
        evidence: "{impossible:.4}; an epoch has {epoch_steps}; [over all steps it is {whole_samples_per_second:.2} samples/s and AU {au_all_steps_percent}|there are no steps to recompute them from]",
        advice: "use the recomputed values instead of those in the summary; run more steps, because DLIO's throughput counts two steps too few",
    },
    check: Check::Import(|run, imported| {
        let impossible = impossible_entries(imported.reported.as_ref()?);
        if impossible.is_empty() {
            return None;
        }
        let facts = Facts::new().with("impossible", impossible).with("epoch_steps", run.steps);
        let facts = facts.with_known("whole_samples_per_second", run.metric(&SAMPLES_WHOLE));
        Some(facts.with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS)))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::Fake { files: 28, ..tests::Fake::default() }.write(root, "w/4/a")),
};

/// Lists impossible entries of a summary.
fn impossible_entries(reported: &Reported) -> Vec<String> {
    let mut entries = Vec::new();
    for (name, value) in reported.metrics() {
        if !name.starts_with("train_") && !name.starts_with("eval_") {
            continue;
        }
        match value {
            Value::Array(_) => {
                let items = reported.list(name).unwrap_or_default();
                let bad: Vec<&f64> =
                    items.iter().filter(|item| is_impossible(name, **item)).collect();
                if let Some(first) = bad.first() {
                    let count = bad.len();
                    let all = items.len();
                    entries.push(format!("`{name}` is {first:.2} in {count} of {all} entries"));
                }
            }
            // Some entries are verdicts, such as `success`.
            Value::String(text) if text.parse::<f64>().is_err() => {}
            _ => {
                let value = reported.metric_or_nan(name).unwrap_or(f64::NAN);
                if is_impossible(name, value) {
                    entries.push(format!("`{name}` is {value:.2}"));
                }
            }
        }
    }
    entries
}

fn is_impossible(name: &str, value: f64) -> bool {
    let is_percent = name.contains("_au_") && name.ends_with("percentage");
    !value.is_finite() || value < 0.0 || (is_percent && AU_MAX_PERCENT < value)
}
