//! Reading of all processes together, through MPI-IO. Each call waits for that of every other process, and cannot be
//! interrupted: here it is seen to that all make the same calls in the same order, whatever each of them reads.

use super::super::explain::{file_bytes_max, whole_read_bytes};
use super::Builder;
use crate::catalog::{Ability, FormatEntry};
use crate::plan::layout::Layout;
use crate::plan::{DatasetPlan, Plan, Shuffle};
use crate::shape::Compression;
use crate::units;

/// MPI counts bytes by a C int.
const READ_BYTES_MAX: u64 = i32::MAX as u64;
const KEY: &str = "reader.file_access";

impl Builder<'_> {
    pub(super) fn reads_through_mpi(&self) -> bool {
        self.trains() && self.w.reader_file_access == "mpio"
    }

    /// Refuses whatever would let processes make different calls, or none. A sample is one read.
    pub(super) fn mpio(&mut self, plan: &mut Plan) {
        self.one_reader_a_process(plan.accelerators);
        self.same_files(plan);
        self.same_reads(plan);
        self.in_vain("reader.transfer_size", "with `file_access: mpio` a sample is one read");
        if self.catalog.storage(&plan.storage.kind).is_some_and(|s| !s.has(Ability::InFolder)) {
            let message =
                format!("storage `{}` has no files that MPI could open", plan.storage.kind);
            self.error(
                "storage.storage_type",
                message,
                "with `file_access: mpio`, use `local_fs`, on a folder that all hosts share",
            );
        }
        // A piece that a file lies in as a whole is cut by nothing.
        let longest = file_bytes_max(plan, self.catalog, &Layout::new(&plan.dataset));
        plan.loader.piece_bytes = longest.max(1).next_power_of_two();
        if let Some(evaluation) = &mut plan.evaluation {
            evaluation.loader.piece_bytes = plan.loader.piece_bytes;
        }
    }

    fn one_reader_a_process(&mut self, accelerators: u32) {
        let processes = self.options.processes.unwrap_or(accelerators);
        if processes < 2 {
            let message = "`mpio` is read by several processes of MPI together, and this is one";
            let hint = "start it with `mpirun -np N`, or use `reader.file_access=collective`";
            self.error(KEY, message.into(), hint);
        } else if processes != accelerators {
            let message =
                format!("`mpio` with `{accelerators}` accelerators in {processes} processes");
            self.error(KEY, message, "give each process one accelerator");
        }
        let threads = self.w.reader_read_threads;
        if threads > 1 {
            let message = format!("`{threads}` threads would read files together out of order");
            self.error("reader.read_threads", message, "give 1, or 0, with `file_access: mpio`");
        }
        if self.w.reader_read_type_memory {
            let message = "`memory` keeps accelerators from reading together: each would find other samples there";
            self.error(
                "reader.read_type",
                message.into(),
                "use `on_demand` with `file_access: mpio`",
            );
        }
    }

    /// All are in the same file at the same time.
    fn same_files(&mut self, plan: &Plan) {
        let DatasetPlan { files_train, samples_per_file, .. } = plan.dataset;
        let batch = ("reader.batch_size", plan.loader.batch_size);
        let eval = plan.evaluation.as_ref();
        let eval = eval.map(|eval| ("reader.batch_size_eval", eval.loader.batch_size));
        let sets = [Some((batch, files_train)), eval.map(|eval| (eval, plan.dataset.files_eval))];
        let sets = sets.into_iter().flatten();
        let several: Vec<_> = sets.filter(|(_, files)| *files > 1).collect();
        for &((key, batch_size), _) in &several {
            let step = u64::from(plan.accelerators).saturating_mul(batch_size);
            if !samples_per_file.is_multiple_of(step.max(1)) {
                let message = format!(
                    "a step of `{step}` samples of all accelerators ends within files of {samples_per_file}: they would open different ones"
                );
                let hint = "with `file_access: mpio`, use one file, or files of a multiple of accelerators × batch size samples";
                self.error(key, message, hint);
            }
        }
        let loader = &plan.loader;
        let shuffled = loader.sample_shuffle != Shuffle::Off && !loader.shuffles_in_buffer;
        if !several.is_empty() && shuffled {
            let message =
                "samples in an order of all files are in a different one for each accelerator";
            let hint = "with `file_access: mpio`, use `reader.file_shuffle`, or one file";
            self.error("reader.sample_shuffle", message.into(), hint);
        }
    }

    /// Each sample takes as many reads as any other.
    fn same_reads(&mut self, plan: &Plan) {
        let Some(format) = self.catalog.format(&plan.dataset.format).copied() else { return };
        if let Some((key, message, hint)) = self.uneven(&format, &plan.dataset) {
            self.error(key, message, &hint);
            return;
        }
        let longest = whole_read_bytes(plan, self.catalog, &Layout::new(&plan.dataset));
        if longest > READ_BYTES_MAX {
            let message =
                format!("a read of `{}` is more than MPI can count", units::bytes(longest));
            let hint = "with `file_access: mpio`, use samples below 2 GiB, in a format that reads them by themselves";
            self.error("dataset.record_length_bytes", message, hint);
        }
    }

    /// The key, and what to say of it, for which samples of a file may take different numbers of reads.
    fn uneven(
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
            let subject = format!("samples compressed by `{}`", encoding.compression.name());
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
        Some((key, format!("{subject} take reads of different numbers"), hint))
    }
}
