//! Numbers that cannot be.

use super::{Check, Doubt, Severity, found, some_of};
use crate::import::Reported;
use feedrate_measure::metric::{AU_ALL_STEPS, SAMPLES_WHOLE};
use feedrate_spec::units;
use serde_json::Value;

/// In percent, above this no rounding reaches.
const AU_MAX: f64 = 100.5;

pub(super) static DOUBT: Doubt = Doubt {
    name: "impossible_values",
    severity: Severity::Warning,
    meaning: "Reported figures of training or evaluation are negative, infinite, no number, or a utilisation above 100 %: nothing that rests on them is right. What is recomputed from the ranks' steps does not.",
    check: Check::OfRun(|loaded| {
        let seen = impossible(loaded.imported?.reported.as_ref()?);
        if seen.is_empty() {
            return None;
        }
        let run = loaded.run;
        let whole = run.metric(&SAMPLES_WHOLE);
        let recomputed = match (whole, run.metric(&AU_ALL_STEPS)) {
            (Some(rate), Some(au)) => {
                format!("over all steps it is {rate:.2} samples/s and AU {au:.1} %")
            }
            _ => "there are no steps to recompute them from".into(),
        };
        found(
            format!(
                "{}; an epoch has {}; {recomputed}",
                some_of(&seen, 4),
                units::counted(run.steps, "step")
            ),
            "use no figure of this summary: the recomputed ones stand beside them; run more steps, as DLIO's throughput counts two too few",
        )
    }),
};

fn impossible(reported: &Reported) -> Vec<String> {
    let of_training = |name: &str| name.starts_with("train_") || name.starts_with("eval_");
    let is_percent = |name: &str| name.contains("_au_") && name.ends_with("percentage");
    let wrong = |name: &str, value: f64| {
        !value.is_finite() || value < 0.0 || (is_percent(name) && AU_MAX < value)
    };
    let mut seen = Vec::new();
    for (name, value) in reported.metrics().filter(|(name, _)| of_training(name)) {
        match value {
            Value::Array(_) => {
                let items = reported.list(name).unwrap_or_default();
                let bad: Vec<f64> =
                    items.iter().copied().filter(|item| wrong(name, *item)).collect();
                if let Some(first) = bad.first() {
                    seen.push(format!(
                        "`{name}` is {first:.2} in {} of {} entries",
                        bad.len(),
                        items.len()
                    ));
                }
            }
            // A verdict in words.
            Value::String(text) if text.parse::<f64>().is_err() => {}
            _ => {
                let value = reported.any_metric(name).unwrap_or(f64::NAN);
                if wrong(name, value) {
                    seen.push(format!("`{name}` is {value:.2}"));
                }
            }
        }
    }
    seen
}
