//! DLIO's loaders that do not read what they should.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, RunDoubt, Severity};
use feedrate_measure::facts::Facts;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "not_all_data_read",
        severity: Severity::Warning,
        meaning: "With this loader and format DLIO reads some files several times and others never, or no data at all: caches are hit more often than in training.",
        evidence: "[`{mapped_format}` is mapped and never touched: no byte is read|with the loader `tensorflow` and {format}, all {ranks} read the same {files_read} of {files} files|with the loader `native_dali` all {ranks} read the first {ranks:.0}th of {files} files]",
        advice: "use the loader `pytorch`, or tfrecord with `tensorflow`; feedrate reads each sample once an epoch",
    },
    check: Check::OfRun(|loaded| {
        let (imported, dataset) = (loaded.imported?, &loaded.record.plan.dataset);
        let (ranks, files) = (imported.ranks_expected?, dataset.files_train);
        if !loaded.run.is_result() || !imported.config.is_known() {
            return None;
        }
        let facts = Facts::new().with("ranks", ranks).with("files", files as f64);
        match (loaded.record.plan.loader.kind.as_str(), dataset.format.as_str()) {
            (_, format @ "mmap_indexed_binary") => Some(facts.with("mapped_format", format)),
            ("tensorflow", format) if format != "tfrecord" && ranks > 1 => {
                let files_read = (files / u64::from(ranks)) as f64;
                Some(facts.with("format", format).with("files_read", files_read))
            }
            ("native_dali", _) if ranks > 1 => Some(facts),
            _ => None,
        }
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_good(
            root,
            ".hydra/config.yaml",
            "data_loader: pytorch",
            "data_loader: tensorflow",
        )
    },
};
