//! DLIO's loaders that do not read what they should.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::DlioAbility::{HasOwnReader, IsNeverRead, SharesFiles, SharesFirstFiles};
use crate::import::dlio_has;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "not_all_data_read",
        severity: Severity::Warning,
        meaning: "With this loader and format DLIO reads some files several times and others never, or no data at all: caches are hit more often than in training.",
        evidence: "[`{mapped_format}` is mapped and never touched: no byte is read|with the loader `tensorflow` and {format}, all {ranks} read the same {files_read} of {files} files|with the loader `native_dali` all {ranks} read the first {ranks:.0}th of {files} files]",
        advice: "use the loader `pytorch`, or tfrecord with `tensorflow`; feedrate reads each sample once an epoch",
    },
    check: Check::OfImport(|run, imported| {
        let (plan, ranks) = (&imported.plan, imported.ranks_expected?);
        let (files, format) = (plan.dataset.files_train, plan.dataset.format.as_str());
        if !run.is_result() || !imported.config.is_known() {
            return None;
        }
        let facts = Facts::new().with("ranks", ranks).with("files", files as f64);
        let [shares_all, shares_first] = [SharesFiles, SharesFirstFiles]
            .map(|ability| ranks > 1 && dlio_has(&plan.loader.kind, ability));
        if dlio_has(format, IsNeverRead) {
            return Some(facts.with("mapped_format", format));
        }
        if shares_all && !dlio_has(format, HasOwnReader) {
            let files_read = (files / u64::from(ranks)) as f64;
            return Some(facts.with("format", format).with("files_read", files_read));
        }
        shares_first.then_some(facts)
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
