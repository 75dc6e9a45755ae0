//! Plans requests: whether workers read whole files or row groups, and how many at a time.

use super::Builder;
use crate::catalog::{Ability, LoaderEntry};
use crate::mlperf;
use crate::plan::{FileAccess, LoaderPlan, ReadAhead, RequestPlan, RequestUnit, Shuffle};

/// Requests that MLPerf Storage v3's client keeps outstanding for each worker.
const MLPERF_IN_FLIGHT: u32 = 64;
/// Files in a window of MLPerf Storage v3's client (`prefetch_window`).
const MLPERF_WINDOW_FILES: u32 = 256;
/// Maximum number of requests that are read ahead.
const AHEAD_MAX: u32 = 1 << 16;

const KEY: &str = "reader.in_flight";
const WINDOW_OPTION: &str = "prefetch_window";
/// Option by which MLPerf Storage v3's client chooses its library for objects.
const LIBRARY_OPTION: &str = "storage_library";

/// A setting that cannot be combined with whole requests.
struct Obstacle {
    message: String,
    hint: &'static str,
}

impl Builder<'_> {
    /// Returns the requests of workers; `None` if they read samples one by one.
    pub(super) fn requests(
        &mut self,
        loader: &LoaderPlan,
        entry: Option<LoaderEntry>,
    ) -> Option<RequestPlan> {
        let configured = self.w.reader_in_flight;
        if !self.trains() {
            return None;
        }
        let in_flight = configured.unwrap_or_else(|| self.default_in_flight());
        if in_flight == 1 && !self.reads_files_whole() {
            return None;
        }
        let unit = match self.request_unit(loader, entry, in_flight) {
            Ok(unit) => unit,
            Err(obstacle) => {
                if configured.is_some_and(|requests| requests > 1) {
                    let hint = format!("{}, or `{KEY}=1`", obstacle.hint);
                    self.error(KEY, obstacle.message, &hint);
                }
                return None;
            }
        };
        let ahead = self.read_ahead(unit, in_flight);
        Some(RequestPlan { in_flight, unit, ahead })
    }

    /// Whether files of one sample are read whole, without decoding: as configured, or where MLPerf Storage v3's client is replaced.
    fn reads_files_whole(&self) -> bool {
        let is_undecoded = if self.w.is_given("reader.decode") {
            !self.w.reader_decode
        } else {
            let is_v3 = self.options.as_dlio && mlperf::is_only_of_v3(&self.options.name);
            is_v3 && !self.w.reader_odirect
        };
        is_undecoded || self.encoded_format.is_some()
    }

    /// Returns the number of requests of MLPerf Storage v3's client if the workload is read as by that client, else 1. Existing parquet files
    /// are read by other clients too.
    fn default_in_flight(&self) -> u32 {
        let is_decoded = self.w.is_given("reader.decode") && self.w.reader_decode;
        let bypasses = self.direct_setting().is_some_and(|key| key != "reader.odirect")
            || self.reads_objects_as_mlperf();
        let is_mlperf = if self.format_has(Ability::RowGroups) {
            (bypasses || self.options.as_dlio) && !self.w.dataset_foreign
        } else {
            bypasses
        };
        if is_mlperf && !is_decoded { MLPERF_IN_FLIGHT } else { 1 }
    }

    /// Whether the dataset is in a store of objects, and an option of MLPerf Storage v3's client is given.
    fn reads_objects_as_mlperf(&self) -> bool {
        let storage = self.catalog.storage(&self.w.storage_storage_type);
        let mut options = self.w.storage_storage_options.iter();
        let has_library = self.w.storage_storage_library.is_some()
            || options.any(|(name, _)| name == LIBRARY_OPTION);
        has_library && storage.is_some_and(|storage| storage.has(Ability::Remote))
    }

    fn read_ahead(&mut self, unit: RequestUnit, in_flight: u32) -> ReadAhead {
        let option = self.w.storage_storage_options.iter().find(|(name, _)| name == WINDOW_OPTION);
        let configured = option.map(|(_, value)| value.parse());
        let window = match configured {
            None => None,
            Some(Ok(window)) if (1..=AHEAD_MAX).contains(&window) => Some(window),
            Some(_) => {
                let value = option.map_or("", |(_, value)| value.as_str());
                let message = format!("`{WINDOW_OPTION}` of `{value}` requests");
                self.error(
                    "storage.storage_options",
                    message,
                    &format!("give 1 to {AHEAD_MAX}, or leave it out"),
                );
                None
            }
        };
        match unit {
            _ if in_flight == 1 => ReadAhead::None,
            RequestUnit::File => ReadAhead::Windows(window.unwrap_or(MLPERF_WINDOW_FILES)),
            RequestUnit::RowGroup => ReadAhead::Sliding(window.unwrap_or(in_flight)),
        }
    }

    /// Returns what a request reads, or the setting that prevents whole requests.
    fn request_unit(
        &self,
        loader: &LoaderPlan,
        entry: Option<LoaderEntry>,
        in_flight: u32,
    ) -> Result<RequestUnit, Obstacle> {
        let w = self.w;
        let format = &w.dataset_format;
        let one_sample =
            w.dataset_num_samples_per_file == 1 && w.dataset_samples_in_files.is_empty();
        let unit = if in_flight > 1 && self.format_has(Ability::RowGroups) {
            RequestUnit::RowGroup
        } else {
            RequestUnit::File
        };
        let abilities = [Ability::NoFiles, Ability::HoldsFiles, Ability::Sidecars, Ability::Mapped];
        let reads_in_parts = abilities.into_iter().any(|ability| self.format_has(ability));
        let engine = self.w.storage_engine.as_deref().and_then(|name| self.catalog.engine(name));
        let is_file = unit == RequestUnit::File;
        let obstacles = [
            (
                is_file && (reads_in_parts || !one_sample),
                format!(
                    "several requests need files of one sample or row groups, unlike `{format}` here"
                ),
                "use `dataset.num_samples_per_file=1` with npz, npy, jpeg or png, or format `parquet`",
            ),
            (
                !entry.is_some_and(|entry| entry.member.has(Ability::OwnBatches)),
                format!("workers of loader `{}` do not know their batches in advance", loader.kind),
                "use `reader.data_loader=pytorch`",
            ),
            (
                in_flight > 1 && loader.workers == 0,
                "without reading workers, nothing is read ahead".into(),
                "use `reader.read_threads` of at least 1",
            ),
            (
                w.is_given("reader.decode") && w.reader_decode,
                "requests of whole files and row groups are not decoded".into(),
                "use `reader.decode=false`",
            ),
            (
                loader.verify || loader.materialize || loader.in_memory,
                "the bytes of whole requests are dropped".into(),
                "leave out `--verify`, `reader.verify`, `reader.materialize` and `reader.read_type=memory`",
            ),
            (
                loader.head.is_some() || w.reader_transfer_size.is_some(),
                "a request is one read, without a head and without a transfer size".into(),
                "leave out `reader.head` and `reader.transfer_size`",
            ),
            (
                loader.client.is_some() || loader.preprocess.mean_s() > 0.0,
                "requests that are read ahead take no work of the client".into(),
                "leave out `client` and `reader.preprocess_time`",
            ),
            (
                loader.group_accelerators > 1 || loader.file_access == FileAccess::Mpio,
                "accelerators that read for others read one sample at a time".into(),
                "use `reader.file_access=multi`",
            ),
            (
                engine.is_some_and(|engine| engine.has(Ability::ServesSamples)),
                "this engine reads through a library, which determines all reads".into(),
                "leave `storage.engine` out",
            ),
            (
                !is_file && loader.sample_shuffle != Shuffle::Off,
                "samples of row groups that are read whole are not shuffled".into(),
                "use `reader.sample_shuffle=off`",
            ),
            (
                !is_file
                    && (loader.file_access != FileAccess::Multi || w.dataset_split == "samples"),
                "each worker reads the row groups of its own files".into(),
                "use `reader.file_access=multi` and `dataset.split=shards`",
            ),
            (
                !is_file && loader.reread_share > 0.0,
                "each worker reads the row groups of its own files once".into(),
                "leave out `reader.reread_share`",
            ),
        ];
        let found = obstacles.into_iter().find(|(is_met, ..)| *is_met);
        found.map_or(Ok(unit), |(_, message, hint)| Err(Obstacle { message, hint }))
    }
}
