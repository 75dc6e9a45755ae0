//! DLIO's measurement window contains no steps.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "empty_window",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "No step is inside the measurement window, so windowed AU and throughput have no basis, even if DLIO reports values. Values over all steps describe only the start of training. The run is not used.",
        evidence: "an epoch has {epoch_steps}, and the window leaves out {excluded_steps:.0}[; {reported_percent:.2} % AU is reported][; {reported_samples_per_second:.2} samples/s is reported][; over all steps AU is {au_all_steps_percent}]",
        advice: "run more steps, with more files or a smaller batch",
    },
    check: Check::Import(|run, imported| {
        let reported = imported.reported.as_ref()?;
        let metric = &imported.plan.metric;
        let excluded = metric.exclude_start_steps + metric.exclude_end_steps;
        if run.steps == 0 || run.metric(&AU_WINDOWED).is_some() || excluded < run.steps {
            return None;
        }
        let rate = reported.metric_or_nan("train_throughput_mean_samples_per_second");
        let au = reported.metric_or_nan("train_au_mean_percentage");
        let facts = Facts::new()
            .with("epoch_steps", run.steps)
            .with("excluded_steps", excluded)
            .with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS))
            .with_known("reported_samples_per_second", rate)
            .with_known("reported_percent", au);
        Some(facts)
    }),
    #[cfg(test)]
    fires: |root| drop(tests::Fake { files: 28, ..tests::Fake::default() }.write(root, "w/4/a")),
};
