//! Nobody knows what was run.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "no_config",
        severity: Severity::Note,
        meaning: "There is no readable `config.yaml`: dataset, batch size and loader are known only as far as other files tell, and what follows from them is missing.",
        evidence: "[`dlio.log` tells {files} files of {samples_per_file} samples, batch {batch_size}|no other file tells of dataset and loader]",
        advice: "copy Hydra's folder (`.hydra`, `dlio_config`) with the results",
    },
    check: Check::OfImport(|_, imported| {
        if imported.config.is_known() {
            return None;
        }
        let counts = imported.log.steps_of;
        let [samples, files, batch] =
            counts.map_or([None; 3], |counts| counts.map(|count| Some(count as f64)));
        let facts = Facts::new().with_known("files", files).with_known("batch_size", batch);
        Some(facts.with_known("samples_per_file", samples))
    }),
    #[cfg(test)]
    fires: |root| {
        std::fs::remove_dir_all(tests::good().write(root, "w/4/a").join(".hydra")).unwrap()
    },
};
