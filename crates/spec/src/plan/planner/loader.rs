//! The loader of a plan: who reads what, how much is kept ready, in which order.

use super::{Builder, Context};
use crate::catalog::{Ability, LoaderEntry};
use crate::plan::{
    DatasetPlan, FileAccess, HeadReads, LoaderPlan, PIECE_BYTES, Shuffle, StoragePlan, TrainPlan,
    WorkerSplit,
};
use crate::units;

/// Reads past the page cache are of whole pages.
const PAGE_BYTES: u64 = 4096;
/// A share of files that are read again this far from what was asked for is told.
const REREAD_SHARE_OFF: f64 = 0.05;
/// Upper limit of one read.
const PIECE_BYTES_MAX: u64 = 64 << 20;

/// DLIO's names of loaders that are called otherwise here, and whether DLIO's reads.
const LOADERS_OF_DLIO: &[(&str, &str, bool)] =
    &[("native_dali", "dali", true), ("synthetic", "native", false)];

impl Builder<'_> {
    pub(super) fn loader(
        &mut self,
        context: Context,
        accelerators: u32,
        storage: &StoragePlan,
    ) -> LoaderPlan {
        let w = self.w;
        let entry = self.loader_entry();
        let member = entry.map(|entry| entry.member);
        let [shuffles_in_buffer, interleaves, decodes] =
            [Ability::ShuffleBuffer, Ability::Interleaves, Ability::DecodeThreads]
                .map(|ability| member.is_some_and(|member| member.has(ability)));
        let workers = w.reader_read_threads;
        let batch_size = w.reader_batch_size;
        let file_access = self.file_access();
        let split = self.split(file_access, interleaves);
        let keeps_files = shuffles_in_buffer || split == WorkerSplit::Shards;
        // Shuffled samples are in no file order, so that the order of files is asked for in vain then.
        let order = match w.reader_sample_shuffle {
            Shuffle::Off => w.reader_file_shuffle,
            _ if keeps_files => w.reader_file_shuffle,
            samples => samples,
        };
        let interleaves =
            interleaves && file_access == FileAccess::Multi && split == WorkerSplit::Samples;
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
            decode_threads: self.decode_threads(decodes),
            in_memory: w.reader_read_type_memory,
            preprocess: w.reader_preprocess_time,
            preprocess_seed: w.train_seed,
            client: self.client(),
            file_shuffle: w.reader_file_shuffle,
            sample_shuffle: w.reader_sample_shuffle,
            shuffles_in_buffer,
            order_seed: if order == Shuffle::Random { context.entropy } else { w.train_seed },
            seed_change_epoch: w.train_seed_change_epoch,
            shuffle_block: None,
            reread_share: self.reread_share(file_access, split, accelerators),
            head: self.head(storage),
            piece_bytes: self.piece_bytes(storage),
            materialize: w.reader_materialize,
            verify: self.verifies(),
            check_crc: w.reader_check_crc,
            decodes_members: self.decodes_members(),
        };
        loader.shuffle_block = self.shuffle_block(&loader);
        loader
    }

    fn shuffle_block(&mut self, loader: &LoaderPlan) -> Option<u64> {
        let key = "reader.shuffle_block";
        let samples = self.w.reader_shuffle_block;
        if !loader.shuffles_samples() {
            self.in_vain(key, "only `reader.sample_shuffle` has blocks, where it changes the order in which samples are read");
            return None;
        }
        (samples > 1).then_some(samples)
    }

    /// A block that holds all samples leaves them in their order.
    pub(super) fn blocks(&mut self, loader: &LoaderPlan, samples: u64) {
        if loader.shuffle_block.is_some_and(|block| samples <= block) && samples > 0 {
            let why = format!("a block holds all {samples} samples, so that they are not shuffled");
            self.in_vain("reader.shuffle_block", &why);
        }
    }

    /// Whether the files can be read again as is asked for: by whole files, as many on each accelerator.
    pub(super) fn rereads(
        &mut self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        accelerators: u32,
    ) -> bool {
        let (key, asked, files) = ("reader.reread_share", loader.reread_share, dataset.files_train);
        let Some(each) = loader.files_each(files, accelerators) else { return true };
        if files == 0 {
            return true;
        }
        let hint = "use fewer accelerators or more files";
        if files < accelerators.into() {
            let message = format!(
                "`{accelerators}` accelerators have {files} files: each needs one of its own that another reads too"
            );
            self.error(key, message, hint);
            return false;
        }
        let read = each.saturating_mul(accelerators.into());
        if read == files {
            let message = format!(
                "`{asked}` of {files} files on {accelerators} accelerators is less than half a file each: none would be read again"
            );
            self.error(key, message, &format!("{hint}, or a larger share"));
            return false;
        }
        let reached = read as f64 / files as f64 - 1.0;
        if (reached - asked).abs() > REREAD_SHARE_OFF {
            let message = format!(
                "`{asked}` becomes {reached:.2}: each accelerator reads {each} files, of {files} in all"
            );
            self.warning(key, message, &format!("{hint} to come nearer"));
        }
        true
    }

    /// Share of the files that a second accelerator reads too.
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
            let why = "only several accelerators with files of their own (`reader.file_access=multi`) read those of others too";
            self.in_vain(key, why);
            return 0.0;
        }
        if split == WorkerSplit::Shards {
            let message = "workers who read whole files share out those of one accelerator alone";
            self.error(key, message.into(), "use `dataset.split=samples`, or leave it out");
        }
        share
    }

    /// Reads of the head of each file.
    fn head(&mut self, storage: &StoragePlan) -> Option<HeadReads> {
        let key = "reader.head.reads";
        let (reads, bytes) = (self.w.reader_head_reads, self.w.reader_head_bytes);
        if (reads, bytes) == (0, 0) || !self.trains() {
            return None;
        }
        if reads == 0 || bytes == 0 || bytes > PIECE_BYTES_MAX {
            let most = units::bytes(PIECE_BYTES_MAX);
            let hint = format!("give `reads` and `bytes`, the latter at most {most}, or neither");
            self.error(key, format!("`{reads}` reads of `{bytes}` bytes"), &hint);
        }
        let engine = storage.engine.as_deref().and_then(|name| self.catalog.engine(name));
        if engine.is_some_and(|engine| engine.has(Ability::ServesSamples)) {
            self.in_vain(key, "the library of this engine alone decides what is read of a file");
            return None;
        }
        if self.reads_through_mpi() {
            self.in_vain(key, "with `file_access: mpio` a sample is one read, and nothing else is");
            return None;
        }
        if self.format_has(Ability::NoFiles) {
            self.in_vain(key, "this format has no files");
            return None;
        }
        Some(HeadReads { reads, bytes })
    }

    /// Batches that wait in a shuffle buffer, or for the whole epoch to be there.
    pub(super) fn hold_batches(&mut self, loader: &mut LoaderPlan, train: &TrainPlan) {
        if !has_buffer(loader) {
            self.in_vain(
                "reader.shuffle_size",
                "only loader `tensorflow` has a shuffle buffer, and only with `reader.sample_shuffle`",
            );
        }
        self.hold(loader, train);
    }

    pub(super) fn hold(&self, loader: &mut LoaderPlan, train: &TrainPlan) {
        let w = self.w;
        let has_buffer = has_buffer(loader);
        let buffered =
            if has_buffer { w.reader_shuffle_size.div_ceil(loader.batch_size) } else { 0 };
        let all_others = u32::try_from(train.steps_per_epoch.saturating_sub(1)).unwrap_or(u32::MAX);
        loader.held_batches = u32::try_from(buffered).unwrap_or(u32::MAX).min(all_others);
        loader.held_at_start =
            if w.reader_read_at_start { all_others } else { loader.held_batches };
        // Beside those held there is the one asked for.
        let held = loader.held_batches.max(loader.held_at_start);
        if held > 0 {
            loader.batches_in_flight = loader.batches_in_flight.max(1).saturating_add(held);
        }
    }

    /// The loader asked for, else the framework's own. DLIO's other names of loaders are understood.
    fn loader_entry(&mut self) -> Option<LoaderEntry> {
        let w = self.w;
        let asked = w.reader_data_loader.as_deref().unwrap_or(w.framework.name());
        let of_dlio = LOADERS_OF_DLIO.iter().find(|(name, ..)| *name == asked);
        let (name, reads) = of_dlio.map_or((asked, true), |(_, own, reads)| (*own, *reads));
        if !reads && !self.format_has(Ability::NoFiles) && self.trains() {
            self.error(
                "reader.data_loader",
                format!("loader `{asked}` reads nothing, whatever the format"),
                "set `dataset.format=synthetic`, which every loader takes",
            );
        }
        let entry = self.catalog.loader(name).copied();
        if entry.is_none() && self.trains() {
            let members = self.catalog.loaders.iter().map(|loader| loader.member);
            self.no_member("reader.data_loader", "loader", asked, members);
        }
        entry
    }

    fn file_access(&mut self) -> FileAccess {
        match self.w.reader_file_access.as_str() {
            "shared" | "collective" => FileAccess::Shared,
            "same" | "broadcast" => FileAccess::Same,
            "posix" => {
                self.in_vain("reader.file_access", "`posix` is read as `multi`");
                FileAccess::Multi
            }
            "mpio" => FileAccess::Mpio,
            _ => FileAccess::Multi,
        }
    }

    /// Whether workers share out files or samples.
    fn split(&mut self, file_access: FileAccess, interleaves: bool) -> WorkerSplit {
        let asked = self.w.dataset_split.as_str();
        let has_own = file_access == FileAccess::Multi;
        if asked == "shards" && !has_own && self.trains() {
            self.error(
                "dataset.split",
                format!(
                    "`shards` gives each worker files of its own, `reader.file_access={}` does not",
                    self.w.reader_file_access
                ),
                "use `samples`, or `reader.file_access=multi`",
            );
        }
        let is_sequential = self.w.dataset_foreign && self.format_has(Ability::Sequential);
        let by_default = asked == "auto" && is_sequential && has_own && !interleaves;
        if asked != "shards" && !by_default {
            return WorkerSplit::Samples;
        }
        if self.w.reader_sample_shuffle != Shuffle::Off {
            let why = "with `dataset.split=shards` samples are read in the order of their files";
            self.in_vain("reader.sample_shuffle", why);
        }
        WorkerSplit::Shards
    }

    fn group_accelerators(&mut self, accelerators: u32) -> u32 {
        let key = "reader.collective_size";
        let access = self.w.reader_file_access.as_str();
        if !["collective", "broadcast"].contains(&access) {
            self.in_vain(key, "only `reader.file_access=collective` and `broadcast` have groups");
            return 1;
        }
        if access == "broadcast" && self.w.reader_read_type_memory {
            self.error(
                "reader.read_type",
                "`memory` keeps accelerators from asking for the same samples".into(),
                "use `on_demand` with `file_access: broadcast`",
            );
        }
        match self.w.reader_collective_size {
            0 => accelerators,
            size => size.min(accelerators),
        }
    }

    fn decode_threads(&mut self, limited: bool) -> Option<u32> {
        let key = "reader.computation_threads";
        let (threads, workers) = (self.w.reader_computation_threads, self.w.reader_read_threads);
        if !limited {
            self.in_vain(key, "in this loader, who reads decodes");
            return None;
        }
        if !self.trains() {
            return None;
        }
        if threads == 0 {
            self.error(key, "`0` threads that decode".into(), "give at least one");
        }
        if threads > workers {
            self.in_vain(
                key,
                "who reads decodes: there are no more of them than `reader.read_threads`",
            );
        }
        // DLIO's default of one decoder is for the records of tf.data; other formats its readers decode.
        let heeded = self.w.is_given(key) || self.format_has(Ability::DecodedByLoader);
        (heeded && threads < workers).then_some(threads)
    }

    /// Whether what is read is compared with what was generated.
    fn verifies(&mut self) -> bool {
        let wanted = self.w.reader_verify || self.options.verify;
        let format = self.catalog.format(&self.w.dataset_format);
        for (ability, why, hint) in [
            (
                Ability::NoFiles,
                "nothing was generated that could be compared",
                "leave `--verify` out",
            ),
            (
                Ability::Lossy,
                "what is decoded is not what was encoded",
                "leave `--verify` out; `feedrate generate --verify` compares whole files",
            ),
        ] {
            if wanted && self.trains() && format.is_some_and(|format| format.member.has(ability)) {
                self.error(
                    "reader.verify",
                    format!(
                        "format `{}` cannot be verified as it is read: {why}",
                        self.w.dataset_format
                    ),
                    hint,
                );
            }
        }
        wanted
    }

    /// Whether files in containers of others are decoded.
    fn decodes_members(&mut self) -> bool {
        let holds_files = self.format_has(Ability::HoldsFiles);
        if !holds_files {
            self.in_vain("reader.decode", "files of this format hold no files");
        }
        holds_files && self.w.reader_decode
    }

    /// A warning where a key was given that this plan takes no notice of.
    pub(super) fn in_vain(&mut self, key: &str, why: &str) {
        if self.w.is_given(key) && self.trains() {
            self.warning(key, why.into(), "");
        }
    }

    /// Samples that are read one by one are the longest reads.
    pub(super) fn transfers(&mut self, dataset: &DatasetPlan, loader: &LoaderPlan) {
        let format = self.catalog.format(&dataset.format);
        let one_by_one = format.is_some_and(|format| {
            format.member.has(Ability::RandomAccess) && format.piece_bytes.is_none()
        });
        let dims = dataset.record_dims.iter().map(|dim| *dim as f64).product::<f64>();
        let bytes = match &dataset.record_dims[..] {
            [] => dataset.record_bytes,
            _ => dims * dataset.element.bytes() as f64,
        };
        if one_by_one && bytes + PAGE_BYTES as f64 <= loader.piece_bytes as f64 {
            let why = "samples of this format are read one by one, and are shorter";
            self.in_vain("reader.transfer_size", why);
        }
    }

    /// Bytes a worker reads at once.
    fn piece_bytes(&mut self, storage: &StoragePlan) -> u64 {
        let format = self.catalog.format(&self.w.dataset_format);
        let own = format.and_then(|format| format.piece_bytes).unwrap_or(PIECE_BYTES);
        let Some(asked) = self.w.reader_transfer_size else { return own };
        if !self.trains() {
            return own;
        }
        let key = "reader.transfer_size";
        if asked == 0 || asked > PIECE_BYTES_MAX {
            let hint = format!("give at most {}", units::bytes(PIECE_BYTES_MAX));
            self.error(key, format!("reads of `{asked}` bytes"), &hint);
            return own;
        }
        if !storage.passes_page_cache {
            return asked;
        }
        let whole_pages = asked.next_multiple_of(PAGE_BYTES);
        if whole_pages != asked {
            let message = format!(
                "reads of `{asked}` bytes past the page cache become {whole_pages}: whole pages"
            );
            self.warning(key, message, "");
        }
        whole_pages
    }
}

/// Samples are shuffled as they come.
fn has_buffer(loader: &LoaderPlan) -> bool {
    loader.shuffles_in_buffer && loader.sample_shuffle != Shuffle::Off
}
