//! Nothing is where DLIO's figures look.

use super::{Check, Doubt, Severity, found};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};
use feedrate_spec::units;

pub(super) static DOUBT: Doubt = Doubt {
    name: "empty_window",
    severity: Severity::Invalid,
    meaning: "No step is inside the window: AU and throughput that DLIO reports are of none, and cannot be recomputed either.",
    check: Check::OfRun(|loaded| {
        let run = loaded.run;
        let reported = loaded.imported?.reported.as_ref()?;
        if run.steps == 0 || run.metric(&AU_WINDOWED).is_some() {
            return None;
        }
        let metric = &loaded.record.plan.metric;
        let excluded = metric.exclude_start_steps + metric.exclude_end_steps;
        if excluded < run.steps {
            return None;
        }
        let told = |name: &str, unit: &str| {
            let value = reported.any_metric(name);
            value.map_or(String::new(), |value| format!("; {value:.2} {unit} is reported"))
        };
        let all_steps = run.metric(&AU_ALL_STEPS);
        let all_steps =
            all_steps.map_or(String::new(), |au| format!("; over all steps AU is {au:.1} %"));
        found(
            format!(
                "an epoch has {}, and the window leaves out {excluded}{}{}{all_steps}",
                units::counted(run.steps, "step"),
                told("train_au_mean_percentage", "% AU"),
                told("train_throughput_mean_samples_per_second", "samples/s"),
            ),
            "run more steps: more files, or a smaller batch",
        )
    }),
};
