//! The config is missing or unreadable.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "no_config",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "There is no readable `config.yaml`: dataset, batch size and loader are unknown unless other files contain them, and values that depend on them are missing.",
        evidence: "[`dlio.log` has {files} files of {samples_per_file} samples, batch {batch_size}|no other file describes dataset and loader]",
        advice: "copy Hydra's folder (`.hydra`, `dlio_config`) with the results",
    },
    check: Check::Import(|_, imported| {
        if imported.config.is_known() {
            return None;
        }
        let Some(counts) = imported.log.step_counts else { return Some(Facts::new()) };
        let facts = Facts::new().with("files", counts.files as f64);
        let facts = facts.with("batch_size", counts.batch_size as f64);
        Some(facts.with("samples_per_file", counts.samples_per_file as f64))
    }),
    #[cfg(test)]
    fires: |root| {
        std::fs::remove_dir_all(tests::good_run().write(root, "w/4/a").join(".hydra")).unwrap()
    },
};
