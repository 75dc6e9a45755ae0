//! DLIO's loaders that do not read what they should.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "not_all_data_read",
    severity: Severity::Warning,
    meaning: "With this loader and format DLIO reads some files several times and others never, or no data at all: caches are hit more often than in training.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let plan = &loaded.record.plan;
        let (loader, format) = (plan.loader.kind.as_str(), plan.dataset.format.as_str());
        let (ranks, files) = (imported.ranks_expected?, plan.dataset.files_train);
        if !loaded.run.is_result() || !imported.config.is_known() {
            return None;
        }
        let said = match (loader, format) {
            (_, "mmap_indexed_binary") => {
                "`mmap_indexed_binary` is mapped and never touched: no byte is read".to_string()
            }
            ("tensorflow", format) if format != "tfrecord" && ranks > 1 => format!(
                "with the loader `tensorflow` and {format}, all {ranks} ranks read the same {} of {files} files",
                files / u64::from(ranks)
            ),
            ("native_dali", _) if ranks > 1 => {
                format!(
                    "with the loader `native_dali` all {ranks} ranks read the first {ranks}th of {files} files"
                )
            }
            _ => return None,
        };
        found(
            said,
            "use the loader `pytorch`, or tfrecord with `tensorflow`; feedrate reads each sample once an epoch",
        )
    }),
};
