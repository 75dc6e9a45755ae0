//! Figures of what never happened.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "undefined_values",
        severity: Severity::Note,
        meaning: "The summary has figures of what did not happen: NaN for checkpoints that were not written, 0 for evaluations without a step.",
        evidence: "{undefined:.4}",
        advice: "leave these figures out; they are not read as 0 here",
    },
    check: Check::OfImport(|_, imported| {
        let reported = imported.reported.as_ref()?;
        let undefined = reported.metrics().map(|(name, _)| name).filter(|name| {
            name.contains("checkpoint")
                && reported.any_metric(name).is_some_and(|value| !value.is_finite())
        });
        let mut undefined: Vec<String> =
            undefined.map(|name| format!("`{name}` is no number")).collect();
        let of_evaluation = ["eval_au_mean_percentage", "eval_throughput_mean_samples_per_second"];
        if of_evaluation.iter().all(|name| reported.metric(name) == Some(0.0)) {
            undefined.push("evaluation is reported with 0 % and 0 samples/s, of no step".into());
        }
        Facts::listed("undefined", undefined)
    }),
    #[cfg(test)]
    fires: |root| drop(tests::good().write(root, "w/4/a")),
};
