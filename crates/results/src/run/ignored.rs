//! Settings that have no effect in DLIO.

use super::Run;
use crate::import::DlioAbility::{HasOwnReader, KeepsOrder};
use crate::import::dlio_has;

impl Run {
    /// The reason for which DLIO does not act on a setting, by its key or the last word of it, in this run of DLIO: see its `torch_data_loader.py`, `tf_reader.py`.
    pub fn ignores(&self, key: &str) -> Option<String> {
        if self.is_own() {
            return None;
        }
        let text = |key: &str| self.settings.get(key).map_or("", String::as_str);
        let loader =
            [text("loader.kind"), text("framework")].into_iter().find(|one| !one.is_empty());
        let is_in_order = loader.is_some_and(|loader| dlio_has(loader, KeepsOrder));
        let [threads, prefetch] = [("loader.workers", 1_u32), ("loader.prefetch_size", 2)]
            .map(|(key, default)| text(key).parse().unwrap_or(default));
        let each = prefetch.div_ceil(threads.max(1));
        let why = match key.rsplit('.').next().unwrap_or(key) {
            "file_shuffle" | "sample_shuffle" if is_in_order => {
                "with the loader `pytorch` every epoch reads the files in the order of their names, whatever is set"
            }
            "prefetch_size" if is_in_order && threads > 0 && each == 2_u32.div_ceil(threads) => {
                return Some(format!(
                    "{prefetch} over {threads} reading threads is {each} a thread, rounded up, as with the default of 2"
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
            | "model_size" => "read and not used",
            _ => return None,
        };
        Some(why.into())
    }
}
