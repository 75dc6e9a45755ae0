//! DLIO's loader skips parts of the dataset.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::DlioAbility::{HasOwnReader, IsNeverRead, SharesFiles, SharesFirstFiles};
use crate::import::dlio_has;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "not_all_data_read",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "With this loader and format DLIO reads some files several times and others never, or no data at all. Caches are hit more often than in real training.",
        evidence: "[`{mapped_format}` is memory-mapped and never accessed: no byte is read|with the loader `tensorflow` and {format}, all {ranks} read the same {files_read} of {files} files|with the loader `native_dali`, all {ranks} read the same first part, 1/{ranks:.0} of {files} files]",
        advice: "use the loader `pytorch`, or tfrecord with `tensorflow`; feedrate reads each sample once per epoch",
    },
    check: Check::Import(|run, imported| {
        let plan = &imported.plan;
        let ranks = imported.ranks_expected?;
        let files = plan.dataset.files_train;
        let format = plan.dataset.format.as_str();
        if !run.is_result() || !imported.config.is_known() {
            return None;
        }
        let facts = Facts::new().with("ranks", ranks).with("files", files as f64);
        let is_shared_by = |ability| ranks > 1 && dlio_has(&plan.loader.kind, ability);
        if dlio_has(format, IsNeverRead) {
            return Some(facts.with("mapped_format", format));
        }
        if is_shared_by(SharesFiles) && !dlio_has(format, HasOwnReader) {
            let files_read = (files / u64::from(ranks)) as f64;
            return Some(facts.with("format", format).with("files_read", files_read));
        }
        is_shared_by(SharesFirstFiles).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_good_run(
            root,
            ".hydra/config.yaml",
            "data_loader: pytorch",
            "data_loader: tensorflow",
        )
    },
};
