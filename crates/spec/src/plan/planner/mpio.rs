//! Checks for collective reading through MPI-IO. Each call waits for the same call in every other process and cannot be interrupted.
//! Therefore plans are refused unless all processes make the same calls in the same order.

use super::super::explain::{file_bytes_max, whole_read_bytes};
use super::Builder;
use crate::catalog::{Ability, FormatEntry};
use crate::plan::layout::Layout;
use crate::plan::{DatasetPlan, Plan, Shuffle};
use crate::shape::Compression;
use crate::units;

/// Maximum bytes of a read: MPI counts them in a C int.
const READ_BYTES_MAX: u64 = i32::MAX as u64;
const KEY: &str = "reader.file_access";

impl Builder<'_> {
    /// Whether the run reads through MPI-IO.
    pub(super) fn reads_through_mpi(&self) -> bool {
        self.trains() && self.w.reader_file_access == "mpio"
    }

    /// Refuses settings that lead to different calls in different processes. Sets the read size so that each sample is one read.
    pub(super) fn apply_mpio(&mut self, plan: &mut Plan) {
        self.check_readers(plan.accelerators);
        self.check_same_files(plan);
        self.check_same_reads(plan);
        self.warn_unused("reader.transfer_size", "with `file_access: mpio` a sample is one read");
        if self
            .catalog
            .storage(&plan.storage.kind)
            .is_some_and(|storage| !storage.has(Ability::InFolder))
        {
            let message =
                format!("storage `{}` has no files that MPI could open", plan.storage.kind);
            self.error(
                "storage.storage_type",
                message,
                "with `file_access: mpio`, use `local_fs` with a folder that all hosts share",
            );
        }
        // Reads are as long as the largest file, so that no sample is split.
        let file_bytes = file_bytes_max(&plan.dataset, self.catalog, &Layout::new(&plan.dataset));
        plan.loader.piece_bytes = file_bytes.max(1).next_power_of_two();
        if let Some(evaluation) = &mut plan.evaluation {
            evaluation.loader.piece_bytes = plan.loader.piece_bytes;
        }
    }

    /// Requires several processes, each with one accelerator and at most one reading thread.
    fn check_readers(&mut self, accelerators: u32) {
        let processes = self.options.processes.unwrap_or(accelerators);
        if processes < 2 {
            let message = "`mpio` needs several processes, started by MPI, and this is one";
            let hint = "start it with `mpirun -np N`, or use `reader.file_access=collective`";
            self.error(KEY, message.into(), hint);
        } else if processes != accelerators {
            let message =
                format!("`mpio` with `{accelerators}` accelerators in {processes} processes");
            self.error(KEY, message, "give each process one accelerator");
        }
        let threads = self.w.reader_read_threads;
        if threads > 1 {
            let message =
                format!("`{threads}` threads would make collective reads in different orders");
            self.error("reader.read_threads", message, "give 1, or 0, with `file_access: mpio`");
        }
        if self.w.reader_read_type_memory {
            let message = "with `memory`, different samples are in the memory of each accelerator, so that accelerators would not read together";
            self.error(
                "reader.read_type",
                message.into(),
                "use `on_demand` with `file_access: mpio`",
            );
        }
    }

    /// Refuses orders in which processes would read different files at the same time.
    fn check_same_files(&mut self, plan: &Plan) {
        let DatasetPlan { files_train, samples_per_file, .. } = plan.dataset;
        let train = ("reader.batch_size", plan.loader.batch_size, files_train);
        let evaluation = plan.evaluation.as_ref().map(|evaluation| {
            ("reader.batch_size_eval", evaluation.loader.batch_size, plan.dataset.files_eval)
        });
        let datasets = [Some(train), evaluation].into_iter().flatten();
        let with_several_files: Vec<_> = datasets.filter(|(_, _, files)| *files > 1).collect();
        for &(key, batch_size, _) in &with_several_files {
            let step = u64::from(plan.accelerators).saturating_mul(batch_size);
            if !samples_per_file.is_multiple_of(step.max(1)) {
                let message = format!(
                    "a step of all accelerators has `{step}` samples and would cross the end of a file of {samples_per_file}"
                );
                let hint = "with `file_access: mpio`, use one file, or files of a multiple of accelerators × batch size samples";
                self.error(key, message, hint);
            }
        }
        let loader = &plan.loader;
        let shuffled = loader.sample_shuffle != Shuffle::Off && !loader.shuffles_in_buffer;
        if !with_several_files.is_empty() && shuffled {
            let message = "samples that are shuffled over all files are in a different file for each accelerator";
            let hint = "with `file_access: mpio`, use `reader.file_shuffle`, or one file";
            self.error("reader.sample_shuffle", message.into(), hint);
        }
    }

    /// Refuses formats and settings in which the number of reads varies between samples, and reads that are too long for MPI.
    fn check_same_reads(&mut self, plan: &Plan) {
        let Some(format) = self.catalog.format(&plan.dataset.format).copied() else { return };
        if let Some((key, message, hint)) = self.uneven_setting(&format, &plan.dataset) {
            self.error(key, message, &hint);
            return;
        }
        let read_bytes = whole_read_bytes(&plan.dataset, self.catalog, &Layout::new(&plan.dataset));
        if read_bytes > READ_BYTES_MAX {
            let message =
                format!("a read of `{}` is more than MPI can count", units::bytes(read_bytes));
            let hint = "with `file_access: mpio`, use samples below 2 GiB in a format that reads single samples";
            self.error("dataset.record_length_bytes", message, hint);
        }
    }

    /// Returns key, message and hint for a setting that lets the number of reads vary between the samples of a file.
    fn uneven_setting(
        &self,
        format: &FormatEntry,
        dataset: &DatasetPlan,
    ) -> Option<(&'static str, String, String)> {
        let encoding = &dataset.encoding;
        let (key, subject, hint) = if !format.member.has(Ability::EvenReads) {
            let formats = self.catalog.formats.iter().map(|entry| entry.member);
            let even = formats.filter(|member| member.has(Ability::EvenReads));
            let names: Vec<&str> = even.map(|member| member.name).collect();
            let subject = format!("samples of format `{}`", format.member.name);
            ("dataset.format", subject, format!("use one of: {}", names.join(", ")))
        } else if encoding.compression != Compression::None {
            let subject = format!("samples compressed with `{}`", encoding.compression.name());
            ("dataset.compression", subject, "use `none`".into())
        } else if !encoding.chunk_dims.is_empty() || !encoding.max_shape.is_empty() {
            let hint = "leave `chunk_dims` and `max_shape` out".to_string();
            ("dataset.hdf5.chunk_dims", "samples in chunks".into(), hint)
        } else if dataset.record_stdev_bytes > 0.0 {
            let key = "dataset.record_length_bytes_stdev";
            (key, "files of different sizes".into(), "set it to 0".into())
        } else {
            return None;
        };
        let hint = format!("with `file_access: mpio`, {hint}");
        Some((key, format!("{subject} take different numbers of reads"), hint))
    }
}
