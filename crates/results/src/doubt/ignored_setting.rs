//! What was varied has no effect in DLIO.

use super::{Check, Doubt, Severity, found};
use feedrate_spec::plan::Plan;

pub(super) static DOUBT: Doubt = Doubt {
    name: "ignored_setting",
    severity: Severity::Warning,
    meaning: "The run differs from its baseline only in what DLIO ignores with this loader and format: a difference between them is noise, and no difference says nothing about the setting.",
    check: Check::OfRun(|loaded| {
        loaded.imported.as_ref()?;
        let told: Vec<String> = loaded
            .case
            .parameter
            .split(',')
            .filter_map(|key| Some(format!("{key}: {}", ignored(&loaded.record.plan, key)?)))
            .collect();
        if told.is_empty() {
            return None;
        }
        found(
            told.join("; "),
            "do not read an effect of this setting out of these runs; feedrate's loaders obey it",
        )
    }),
};

/// Why DLIO does not act on a setting, by its key or the last word of it: its `torch_data_loader.py`, `tf_reader.py`; reference of issue numbers is
/// docs/guide/analyze.md.
pub fn ignored(plan: &Plan, key: &str) -> Option<String> {
    let loader = &plan.loader;
    let is_torch = loader.kind == "pytorch";
    let is_tfrecord = plan.dataset.format == "tfrecord";
    let says = |text: &str| Some(text.to_string());
    match key.rsplit('.').next().unwrap_or(key) {
        "file_shuffle" | "sample_shuffle" if is_torch => says(
            "with the loader `pytorch` every epoch reads the files in the order of their names, whatever is set",
        ),
        "prefetch_size"
            if is_torch
                && loader.workers > 0
                && loader.prefetch_size.div_ceil(loader.workers)
                    == 2_u32.div_ceil(loader.workers) =>
        {
            Some(format!(
                "{} over {} reading threads is {} a thread, rounded up, as with the default of 2",
                loader.prefetch_size,
                loader.workers,
                loader.prefetch_size.div_ceil(loader.workers)
            ))
        }
        "transfer_size" | "shuffle_size" | "computation_threads" if !is_tfrecord => {
            says("used for tfrecord files only")
        }
        "file_access"
        | "enable_chunking"
        | "chunk_size"
        | "fsync"
        | "recovery_rank_shift"
        | "model_size" => says("read and not used"),
        _ => None,
    }
}
