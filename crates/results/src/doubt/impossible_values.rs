//! Numbers that cannot be.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Reported;
use feedrate_measure::metric::{AU_ALL_STEPS, SAMPLES_WHOLE};
use serde_json::Value;

/// No rounding reaches above this.
const AU_MAX_PERCENT: f64 = 100.5;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "impossible_values",
        severity: Severity::Warning,
        meaning: "Reported figures of training or evaluation are negative, infinite, no number, or a utilisation above 100 %: nothing that rests on them is right. What is recomputed from the ranks' steps does not.",
        evidence: "{impossible:.4}; an epoch has {epoch_steps}; [over all steps it is {whole_samples_per_second:.2} samples/s and AU {au_all_steps_percent}|there are no steps to recompute them from]",
        advice: "use no figure of this summary: the recomputed ones stand beside them; run more steps, as DLIO's throughput counts two too few",
    },
    check: Check::OfImport(|run, imported| {
        let seen = impossible(imported.reported.as_ref()?);
        if seen.is_empty() {
            return None;
        }
        let facts = Facts::new().with("impossible", seen).with("epoch_steps", run.steps);
        let facts = facts.with_known("whole_samples_per_second", run.metric(&SAMPLES_WHOLE));
        Some(facts.with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS)))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::Fake { files: 28, ..tests::Fake::default() }.write(root, "w/4/a")),
};

fn impossible(reported: &Reported) -> Vec<String> {
    let mut seen = Vec::new();
    for (name, value) in reported.metrics() {
        if !name.starts_with("train_") && !name.starts_with("eval_") {
            continue;
        }
        match value {
            Value::Array(_) => {
                let items = reported.list(name).unwrap_or_default();
                let mut bad = items.iter().filter(|item| is_impossible(name, **item)).peekable();
                if let Some(first) = bad.peek().copied() {
                    let (bad, all) = (bad.count(), items.len());
                    seen.push(format!("`{name}` is {first:.2} in {bad} of {all} entries"));
                }
            }
            // A verdict in words.
            Value::String(text) if text.parse::<f64>().is_err() => {}
            _ => {
                let value = reported.any_metric(name).unwrap_or(f64::NAN);
                if is_impossible(name, value) {
                    seen.push(format!("`{name}` is {value:.2}"));
                }
            }
        }
    }
    seen
}

fn is_impossible(name: &str, value: f64) -> bool {
    let is_percent = name.contains("_au_") && name.ends_with("percentage");
    !value.is_finite() || value < 0.0 || (is_percent && AU_MAX_PERCENT < value)
}
