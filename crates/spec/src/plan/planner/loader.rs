//! Plans the loader: division of samples, order, prefetching and the size of reads. Warns of settings that the loader does not use.

use super::{Builder, Context};
use crate::catalog::{Ability, LoaderEntry};
use crate::plan::{
    DatasetPlan, FileAccess, HeadReads, LoaderPlan, PIECE_BYTES, RequestUnit, Shuffle, StoragePlan,
    TrainPlan, WorkerSplit,
};
use crate::units;

/// Page size. Reads that bypass the page cache have a multiple of this size.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Difference between configured and actual `reader.reread_share` above which a warning is given.
const REREAD_SHARE_TOLERANCE: f64 = 0.05;
/// Maximum bytes of a read.
const PIECE_BYTES_MAX: u64 = 64 << 20;

/// Loaders with different names in DLIO and feedrate: DLIO's name, feedrate's name, and whether DLIO's loader reads files.
const DLIO_LOADERS: &[(&str, &str, bool)] =
    &[("native_dali", "dali", true), ("synthetic", "native", false)];

impl Builder<'_> {
    /// Returns the loader of training.
    pub(super) fn loader(
        &mut self,
        context: Context,
        accelerators: u32,
        storage: &StoragePlan,
    ) -> LoaderPlan {
        let w = self.w;
        let entry = self.loader_entry();
        let member = entry.map(|entry| entry.member);
        let has = |ability| member.is_some_and(|member| member.has(ability));
        let shuffles_in_buffer = has(Ability::ShuffleBuffer);
        // Files of different lengths do not keep the turns of an interleave.
        let can_interleave =
            has(Ability::Interleaves) && self.w.dataset_samples_in_files.is_empty();
        let has_decode_threads = has(Ability::DecodeThreads);
        let workers = w.reader_read_threads;
        let batch_size = w.reader_batch_size;
        let file_access = self.file_access();
        let split = self.split(file_access, can_interleave);
        let keeps_file_order = shuffles_in_buffer || split == WorkerSplit::Shards;
        // Shuffling samples over all files makes the order of files irrelevant.
        let effective_shuffle = match w.reader_sample_shuffle {
            Shuffle::Off => w.reader_file_shuffle,
            _ if keeps_file_order => w.reader_file_shuffle,
            sample_shuffle => sample_shuffle,
        };
        let interleaves =
            can_interleave && file_access == FileAccess::Multi && split == WorkerSplit::Samples;
        let mut loader = LoaderPlan {
            kind: entry.map_or_else(String::new, |entry| entry.member.name.to_string()),
            batch_size,
            workers,
            prefetch_size: w.reader_prefetch_size,
            batches_in_flight: entry.map_or(1, |entry| {
                (entry.batches_in_flight)(workers, w.reader_prefetch_size, batch_size)
            }),
            file_access,
            split,
            group_accelerators: self.group_accelerators(accelerators),
            interleaved_files: if interleaves { workers.max(1) } else { 1 },
            held_batches: 0,
            held_at_start: 0,
            decode_threads: self.decode_threads(has_decode_threads),
            in_memory: w.reader_read_type_memory,
            preprocess: w.reader_preprocess_time,
            preprocess_seed: w.train_seed,
            client: self.client(),
            file_shuffle: w.reader_file_shuffle,
            sample_shuffle: w.reader_sample_shuffle,
            shuffles_in_buffer,
            order_seed: if effective_shuffle == Shuffle::Random {
                context.entropy
            } else {
                w.train_seed
            },
            seed_change_epoch: w.train_seed_change_epoch,
            shuffle_block: None,
            reread_share: self.reread_share(file_access, split, accelerators),
            head: self.head(storage),
            requests: None,
            library: None,
            piece_bytes: self.piece_bytes(storage),
            materialize: w.reader_materialize,
            verify: self.verifies(),
            check_crc: w.reader_check_crc,
            decodes_members: self.decodes_members(),
        };
        loader.shuffle_block = self.shuffle_block(&loader);
        loader.requests = self.requests(&loader, entry);
        if loader.requests.is_some_and(|requests| requests.unit == RequestUnit::RowGroup) {
            loader.split = WorkerSplit::Shards;
        }
        loader
    }

    /// Returns the number of consecutive samples that shuffling keeps together.
    fn shuffle_block(&mut self, loader: &LoaderPlan) -> Option<u64> {
        let key = "reader.shuffle_block";
        let samples = self.w.reader_shuffle_block;
        if !loader.shuffles_samples() {
            self.warn_unused(key, "blocks need `reader.sample_shuffle` and a loader that reads samples in shuffled order");
            return None;
        }
        (samples > 1).then_some(samples)
    }

    /// Warns of a block that contains all samples: they are then not shuffled.
    pub(super) fn check_shuffle_block(&mut self, loader: &LoaderPlan, samples: u64) {
        if loader.shuffle_block.is_some_and(|block| samples <= block) && samples > 0 {
            let reason =
                format!("a block holds all {samples} samples, so that they are not shuffled");
            self.warn_unused("reader.shuffle_block", &reason);
        }
    }

    /// Checks that accelerators can reread about the configured share of files if all read the same number of whole files. Returns false if
    /// not.
    pub(super) fn check_rereads(
        &mut self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        accelerators: u32,
    ) -> bool {
        let key = "reader.reread_share";
        let configured = loader.reread_share;
        let files = dataset.files_train;
        let Some(files_per_accelerator) = loader.files_per_accelerator(files, accelerators) else {
            return true;
        };
        if files == 0 {
            return true;
        }
        let hint = "use fewer accelerators or more files";
        if files < accelerators.into() {
            let message = format!(
                "`{accelerators}` accelerators share {files} files, but each needs at least one of its own"
            );
            self.error(key, message, hint);
            return false;
        }
        let read_files = files_per_accelerator.saturating_mul(accelerators.into());
        if read_files == files {
            let message = format!(
                "`{configured}` of {files} files is less than half a file for each of {accelerators} accelerators, so no file would be read twice"
            );
            self.error(key, message, &format!("{hint}, or a larger share"));
            return false;
        }
        let actual = read_files as f64 / files as f64 - 1.0;
        if (actual - configured).abs() > REREAD_SHARE_TOLERANCE {
            let message = format!(
                "`{configured}` becomes {actual:.2}, since each accelerator reads {files_per_accelerator} of {files} files"
            );
            self.warning(key, message, &format!("{hint} for a closer share"));
        }
        true
    }

    /// Returns the share of the files that a second accelerator also reads.
    fn reread_share(
        &mut self,
        file_access: FileAccess,
        split: WorkerSplit,
        accelerators: u32,
    ) -> f64 {
        let key = "reader.reread_share";
        let share = self.w.reader_reread_share;
        if share == 0.0 || !self.trains() {
            return 0.0;
        }
        if accelerators == 1 || file_access != FileAccess::Multi {
            let reason = "rereading needs several accelerators with separate files (`reader.file_access=multi`)";
            self.warn_unused(key, reason);
            return 0.0;
        }
        if split == WorkerSplit::Shards {
            let message =
                "workers that read whole files can only read files of their own accelerator";
            self.error(key, message.into(), "use `dataset.split=samples`, or leave it out");
        }
        share
    }

    /// Returns the additional reads from the start of each file.
    fn head(&mut self, storage: &StoragePlan) -> Option<HeadReads> {
        let key = "reader.head.reads";
        let reads = self.w.reader_head_reads;
        let bytes = self.w.reader_head_bytes;
        if (reads, bytes) == (0, 0) || !self.trains() {
            return None;
        }
        if reads == 0 || bytes == 0 || bytes > PIECE_BYTES_MAX {
            let bytes_max = units::bytes(PIECE_BYTES_MAX);
            let hint = format!("give both `reads` and `bytes` (at most {bytes_max}), or neither");
            self.error(key, format!("`{reads}` reads of `{bytes}` bytes"), &hint);
        }
        let engine = storage.engine.as_deref().and_then(|name| self.catalog.engine(name));
        if engine.is_some_and(|engine| engine.has(Ability::ServesSamples)) {
            self.warn_unused(
                key,
                "this engine reads through a library, which determines all reads",
            );
            return None;
        }
        if self.reads_through_mpi() {
            self.warn_unused(key, "with `file_access: mpio` only samples are read");
            return None;
        }
        if self.format_has(Ability::NoFiles) {
            self.warn_unused(key, "this format has no files");
            return None;
        }
        Some(HeadReads { reads, bytes })
    }

    /// Like [`Self::set_held_batches`], and warns of an unused buffer size.
    pub(super) fn plan_held_batches(&mut self, loader: &mut LoaderPlan, train: &TrainPlan) {
        if !has_buffer(loader) {
            self.warn_unused(
                "reader.shuffle_size",
                "only loader `tensorflow` with `reader.sample_shuffle` has a shuffle buffer",
            );
        }
        self.set_held_batches(loader, train);
    }

    /// Sets the number of batches that a shuffle buffer holds, or that are read before the first step.
    pub(super) fn set_held_batches(&self, loader: &mut LoaderPlan, train: &TrainPlan) {
        let w = self.w;
        let has_buffer = has_buffer(loader);
        let buffered =
            if has_buffer { w.reader_shuffle_size.div_ceil(loader.batch_size) } else { 0 };
        let epoch_others =
            u32::try_from(train.steps_per_epoch.saturating_sub(1)).unwrap_or(u32::MAX);
        loader.held_batches = u32::try_from(buffered).unwrap_or(u32::MAX).min(epoch_others);
        loader.held_at_start =
            if w.reader_read_at_start { epoch_others } else { loader.held_batches };
        // One further batch is in flight: the batch that training waits for.
        let held = loader.held_batches.max(loader.held_at_start);
        if held > 0 {
            loader.batches_in_flight = loader.batches_in_flight.max(1).saturating_add(held);
        }
    }

    /// Returns the configured loader, by its name in feedrate or in DLIO; by default the loader of the framework.
    fn loader_entry(&mut self) -> Option<LoaderEntry> {
        let w = self.w;
        let configured = w.reader_data_loader.as_deref().unwrap_or(w.framework.name());
        let dlio_loader = DLIO_LOADERS.iter().find(|(dlio_name, ..)| *dlio_name == configured);
        let (name, reads_files) =
            dlio_loader.map_or((configured, true), |(_, name, reads_files)| (*name, *reads_files));
        if !reads_files && !self.format_has(Ability::NoFiles) && self.trains() {
            self.error(
                "reader.data_loader",
                format!("loader `{configured}` reads no files of any format"),
                "set `dataset.format=synthetic`, which works with every loader",
            );
        }
        let entry = self.catalog.loader(name).copied();
        if entry.is_none() && self.trains() {
            let members = self.catalog.loaders.iter().map(|loader| loader.member);
            self.refuse_unknown_member("reader.data_loader", "loader", configured, members);
        }
        entry
    }

    fn file_access(&mut self) -> FileAccess {
        match self.w.reader_file_access.as_str() {
            "shared" | "collective" => FileAccess::Shared,
            "same" | "broadcast" => FileAccess::Same,
            "posix" => {
                self.warn_unused("reader.file_access", "`posix` means the same as `multi`");
                FileAccess::Multi
            }
            "mpio" => FileAccess::Mpio,
            _ => FileAccess::Multi,
        }
    }

    /// Whether workers divide files or samples.
    fn split(&mut self, file_access: FileAccess, can_interleave: bool) -> WorkerSplit {
        let configured = self.w.dataset_split.as_str();
        let has_own_files = file_access == FileAccess::Multi;
        if configured == "shards" && !has_own_files && self.trains() {
            self.error(
                "dataset.split",
                format!(
                    "`shards` needs separate files for each accelerator, unlike `reader.file_access={}`",
                    self.w.reader_file_access
                ),
                "use `samples`, or `reader.file_access=multi`",
            );
        }
        let is_sequential = self.w.dataset_foreign && self.format_has(Ability::Sequential);
        let is_default = configured == "auto" && is_sequential && has_own_files && !can_interleave;
        if configured != "shards" && !is_default {
            return WorkerSplit::Samples;
        }
        if self.w.reader_sample_shuffle != Shuffle::Off {
            let reason = "with `dataset.split=shards` samples are read in the order of their files";
            self.warn_unused("reader.sample_shuffle", reason);
        }
        WorkerSplit::Shards
    }

    /// Returns the size of the groups in which one accelerator reads for all accelerators.
    fn group_accelerators(&mut self, accelerators: u32) -> u32 {
        let key = "reader.collective_size";
        let access = self.w.reader_file_access.as_str();
        if !["collective", "broadcast"].contains(&access) {
            self.warn_unused(
                key,
                "only `reader.file_access=collective` and `broadcast` have groups",
            );
            return 1;
        }
        if access == "broadcast" && self.w.reader_read_type_memory {
            self.error(
                "reader.read_type",
                "with `memory` accelerators do not read the same samples at the same time".into(),
                "use `on_demand` with `file_access: broadcast`",
            );
        }
        match self.w.reader_collective_size {
            0 => accelerators,
            size => size.min(accelerators),
        }
    }

    /// Returns the maximum number of workers that decode at the same time; `None` for all.
    fn decode_threads(&mut self, has_decode_threads: bool) -> Option<u32> {
        let key = "reader.computation_threads";
        let threads = self.w.reader_computation_threads;
        let workers = self.w.reader_read_threads;
        if !has_decode_threads {
            self.warn_unused(key, "with this loader, each reading worker also decodes");
            return None;
        }
        if !self.trains() {
            return None;
        }
        if threads == 0 {
            self.error(key, "`0` decoding threads".into(), "give at least one");
        }
        if threads > workers {
            self.warn_unused(
                key,
                "reading workers also decode, so there are at most `reader.read_threads`",
            );
        }
        // In DLIO the default of one decoder applies only to formats that tf.data decodes. The readers of other formats decode themselves.
        let is_limited = self.w.is_given(key) || self.format_has(Ability::DecodedByLoader);
        (is_limited && threads < workers).then_some(threads)
    }

    /// Whether the data read is compared with the generated content.
    fn verifies(&mut self) -> bool {
        let verifies = self.w.reader_verify || self.options.verify;
        let format = self.catalog.format(&self.w.dataset_format);
        for (ability, reason, hint) in [
            (Ability::NoFiles, "it has no generated content", "leave `--verify` out"),
            (
                Ability::Lossy,
                "decoding does not restore the exact content",
                "leave `--verify` out; `feedrate generate --verify` compares whole files",
            ),
        ] {
            if verifies && self.trains() && format.is_some_and(|format| format.member.has(ability))
            {
                self.error(
                    "reader.verify",
                    format!(
                        "format `{}` cannot be verified while reading: {reason}",
                        self.w.dataset_format
                    ),
                    hint,
                );
            }
        }
        verifies
    }

    /// Whether samples that are encoded in foreign files are decoded.
    fn decodes_members(&mut self) -> bool {
        let decodes =
            self.format_has(Ability::HoldsFiles) || self.format_has(Ability::EncodesSamples);
        if !decodes && self.encoded_format.is_none() && self.w.reader_decode {
            self.warn_unused("reader.decode", "samples of this format are not encoded");
        }
        decodes && self.w.reader_decode
    }

    /// Warns that a given key has no effect in this plan.
    pub(super) fn warn_unused(&mut self, key: &str, reason: &str) {
        if self.w.is_given(key) && self.trains() {
            self.warning(key, reason.into(), "");
        }
    }

    /// Warns of a transfer size above the size of samples, if samples are read one by one.
    pub(super) fn check_transfer_size(&mut self, dataset: &DatasetPlan, loader: &LoaderPlan) {
        let format = self.catalog.format(&dataset.format);
        let reads_single_samples = format.is_some_and(|format| {
            format.member.has(Ability::RandomAccess) && format.piece_bytes.is_none()
        });
        let dims = dataset.record_dims.iter().map(|dim| *dim as f64).product::<f64>();
        let bytes = match &dataset.record_dims[..] {
            [] => dataset.record_bytes,
            _ => dims * dataset.element.bytes() as f64,
        };
        if reads_single_samples && bytes + PAGE_BYTES as f64 <= loader.piece_bytes as f64 {
            let reason = "samples of this format are read one by one and are smaller";
            self.warn_unused("reader.transfer_size", reason);
        }
    }

    /// Returns the maximum bytes of a read.
    fn piece_bytes(&mut self, storage: &StoragePlan) -> u64 {
        let format = self.catalog.format(&self.w.dataset_format);
        let default = format.and_then(|format| format.piece_bytes).unwrap_or(PIECE_BYTES);
        let Some(configured) = self.w.reader_transfer_size else { return default };
        if !self.trains() {
            return default;
        }
        let key = "reader.transfer_size";
        if configured == 0 || configured > PIECE_BYTES_MAX {
            let hint = format!("give at most {}", units::bytes(PIECE_BYTES_MAX));
            self.error(key, format!("reads of `{configured}` bytes"), &hint);
            return default;
        }
        if !storage.passes_page_cache {
            return configured;
        }
        let whole_pages = configured.next_multiple_of(PAGE_BYTES);
        if whole_pages != configured {
            let message = format!(
                "reads of `{configured}` bytes become {whole_pages}: without the page cache they are whole pages"
            );
            self.warning(key, message, "");
        }
        whole_pages
    }
}

/// Whether samples are shuffled on arrival.
fn has_buffer(loader: &LoaderPlan) -> bool {
    loader.shuffles_in_buffer && loader.sample_shuffle != Shuffle::Off
}
