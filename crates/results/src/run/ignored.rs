//! Settings that have no effect in DLIO. Source: its `torch_data_loader.py` and `tf_reader.py`.

use super::Run;
use crate::import::DlioAbility::{HasOwnReader, KeepsOrder};
use crate::import::dlio_has;

impl Run {
    /// Returns the reason why DLIO ignores a setting, given by its key or the key's last component, in this run. `None` if the setting has an effect or
    /// the run is not of DLIO.
    pub fn ignored_reason(&self, key: &str) -> Option<String> {
        if self.is_from_feedrate() {
            return None;
        }
        let text = |key: &str| self.settings.get(key).map_or("", String::as_str);
        let count = |key: &str, default: u32| text(key).parse().unwrap_or(default);
        let loader =
            [text("loader.kind"), text("framework")].into_iter().find(|name| !name.is_empty());
        let is_in_order = loader.is_some_and(|loader| dlio_has(loader, KeepsOrder));
        let threads = count("loader.workers", 1);
        let prefetch = count("loader.prefetch_size", 2);
        let per_thread = prefetch.div_ceil(threads.max(1));
        let has_default_effect = threads > 0 && per_thread == 2_u32.div_ceil(threads);
        let reason = match key.rsplit('.').next().unwrap_or(key) {
            "file_shuffle" | "sample_shuffle" if is_in_order => {
                "with the loader `pytorch` every epoch reads the files in the order of their names regardless of this setting"
            }
            "prefetch_size" if is_in_order && has_default_effect => {
                return Some(format!(
                    "{prefetch} for {threads} reading threads is {per_thread} per thread, rounded up, the same as with the default of 2"
                ));
            }
            "transfer_size" | "shuffle_size" | "computation_threads"
                if !dlio_has(text("dataset.format"), HasOwnReader) =>
            {
                "used for tfrecord files only"
            }
            "file_access"
            | "enable_chunking"
            | "chunk_size"
            | "fsync"
            | "recovery_rank_shift"
            | "model_size" => "read but not used",
            _ => return None,
        };
        Some(reason.into())
    }
}
