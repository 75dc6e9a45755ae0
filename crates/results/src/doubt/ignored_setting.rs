//! The varied setting has no effect in DLIO.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

/// Name of the doubt.
pub const NAME: &str = "ignored_setting";

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The run differs from its baseline only in a setting that DLIO ignores with this loader and format. A difference between the results is noise, and equal results do not show that the setting has no effect.",
        evidence: "{ignored}",
        advice: "do not infer an effect of this setting from these runs; feedrate's loaders obey it",
    },
    check: Check::Import(|run, _| {
        let keys = run.parameter.split(',');
        let ignored = keys.filter_map(|key| Some(format!("{key}: {}", run.ignored_reason(key)?)));
        Facts::from_list("ignored", ignored.collect())
    }),
    #[cfg(test)]
    fires: |root| {
        let overrides = vec!["reader.file_shuffle=off"];
        tests::Fake { overrides, ..tests::good_run() }.write(root, "w/4_file_shuffle_off/a");
    },
};
