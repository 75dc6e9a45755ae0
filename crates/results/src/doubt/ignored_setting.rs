//! A setting that was varied and has no effect in DLIO.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

/// Name that others know it by.
pub const NAME: &str = "ignored_setting";

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        meaning: "The run differs from its baseline only in what DLIO ignores with this loader and format: a difference between them is noise, and no difference says nothing about the setting.",
        evidence: "{ignored}",
        advice: "do not read an effect of this setting out of these runs; feedrate's loaders obey it",
    },
    check: Check::OfImport(|run, _| {
        let keys = run.parameter.split(',');
        let told = keys.filter_map(|key| Some(format!("{key}: {}", run.ignores(key)?)));
        Facts::listed("ignored", told.collect())
    }),
    #[cfg(test)]
    fires: |root| {
        let overrides = vec!["reader.file_shuffle=off"];
        tests::Fake { overrides, ..tests::good() }.write(root, "w/4_file_shuffle_off/a");
    },
};
