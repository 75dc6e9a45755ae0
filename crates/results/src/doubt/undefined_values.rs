//! Figures of what never happened.

use super::{Check, Doubt, Severity, found, some_of};

pub(super) static DOUBT: Doubt = Doubt {
    name: "undefined_values",
    severity: Severity::Note,
    meaning: "The summary has figures of what did not happen: NaN for checkpoints that were not written, 0 for evaluations without a step.",
    check: Check::OfRun(|loaded| {
        let reported = loaded.imported?.reported.as_ref()?;
        let is_undefined =
            |name: &str| reported.any_metric(name).is_some_and(|value| !value.is_finite());
        let of_checkpoints = reported
            .metrics()
            .map(|(name, _)| name)
            .filter(|name| name.contains("checkpoint") && is_undefined(name));
        let mut seen: Vec<String> =
            of_checkpoints.map(|name| format!("`{name}` is no number")).collect();
        let zero = |name: &str| reported.metric(name) == Some(0.0);
        if zero("eval_au_mean_percentage") && zero("eval_throughput_mean_samples_per_second") {
            seen.push("evaluation is reported with 0 % and 0 samples/s, of no step".into());
        }
        if seen.is_empty() {
            return None;
        }
        found(some_of(&seen, 4), "leave these figures out; they are not read as 0 here")
    }),
};
