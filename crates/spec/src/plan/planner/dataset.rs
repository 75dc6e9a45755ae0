//! Plans the dataset: format, number and sizes of files, and encoding.

use super::{Builder, Context};
use crate::catalog::{Ability, UnsupportedSetting};
use crate::plan::explain::estimate_with;
use crate::plan::layout::Layout;
use crate::plan::{DRAWN_FILES_MAX, DatasetPlan, FILES_MAX, Plan};
use crate::shape::{ColumnType, Compression, DIMS_MAX, Element, Encoding, Redundancy, TableColumn};
use crate::units;
use std::collections::BTreeSet;

/// Maximum number of samples. Up to this number, `f64` represents every integer exactly.
const SAMPLES_MAX: u64 = 1 << 53;

impl Builder<'_> {
    /// Returns the dataset of the plan.
    pub(super) fn dataset(&mut self, accelerators: u32) -> DatasetPlan {
        let w = self.w;
        self.check_format();
        self.check_share("--scale", self.options.scale);
        self.check_share("--shrink-records", self.options.shrink_records);
        if !w.dataset_keep_files {
            let message = "deleting the dataset after the run is not supported yet";
            self.error(
                "dataset.keep_files",
                message.into(),
                "set it to true, and delete the folder after the run",
            );
        }
        let (scaled_files_train, samples_per_file) =
            self.scale_counts(w.dataset_num_files_train, w.dataset_num_samples_per_file);
        let (scaled_files_eval, _) =
            self.scale_counts(w.dataset_num_files_eval, w.dataset_num_samples_per_file);
        let file_factor = if w.dataset_scaling == "weak" { u64::from(accelerators) } else { 1 };
        let files_train = scaled_files_train.saturating_mul(file_factor);
        let files_eval = scaled_files_eval.saturating_mul(file_factor);
        self.check_counts(files_train, files_eval, samples_per_file);
        self.check_file_samples();
        let columns = self.columns();
        let element = columns_element(&columns).unwrap_or_else(|| self.element());
        let row_bytes =
            columns.iter().fold(0, |sum: u64, column| sum.saturating_add(column.row_bytes()));
        let mut record_bytes = self.record_bytes(element);
        let mut record_stdev_bytes =
            w.dataset_record_length_bytes_stdev * self.options.shrink_records;
        let mut record_dims = self.record_dims(record_bytes, element);
        if !columns.is_empty() {
            // As in DLIO, the columns replace the length of a record.
            record_bytes = row_bytes as f64;
            record_stdev_bytes = 0.0;
            record_dims = vec![row_bytes / element.bytes()];
        }
        DatasetPlan {
            format: w.dataset_format.clone(),
            extension: self
                .encoded_format
                .or(self.catalog.format(&w.dataset_format))
                .map_or("", |format| format.extension)
                .to_string(),
            files_train: files_train.min(FILES_MAX),
            files_eval: files_eval.min(FILES_MAX),
            named_train: None,
            named_eval: None,
            samples_per_file,
            file_samples: w.dataset_samples_in_files.clone(),
            stored_sample_bytes: w.dataset_stored_sample_bytes.filter(|_| w.dataset_foreign),
            subfolders_train: w.dataset_num_subfolders_train,
            subfolders_eval: w.dataset_num_subfolders_eval,
            prefix: self.prefix(),
            record_bytes,
            record_stdev_bytes,
            record_dims,
            element,
            encoding: self.encoding(columns),
            content_seed: w.dataset_content_seed,
            redundancy: Redundancy {
                compressible_percent: w.dataset_compressible_percent,
                duplicate_percent: w.dataset_duplicate_percent,
            },
            members: self.members(),
        }
    }

    /// Returns the names of the members that are read in foreign files.
    fn members(&mut self) -> Vec<String> {
        if self.w.dataset_foreign {
            let columns = self.w.dataset_parquet_columns.iter().map(|column| column.name.clone());
            let members = self.w.dataset_members.clone();
            return if members.is_empty() { columns.collect() } else { members };
        }
        self.warn_unused("dataset.members", "generated files are read completely");
        Vec::new()
    }

    /// Refuses datasets without training files, and datasets with too many files or samples.
    fn check_counts(&mut self, files_train: u64, files_eval: u64, samples_per_file: u64) {
        if files_train == 0 && self.trains() {
            self.error(
                "dataset.num_files_train",
                "`0` training files".into(),
                "give at least one file",
            );
        }
        let samples = files_train.saturating_add(files_eval).saturating_mul(samples_per_file);
        if samples > SAMPLES_MAX && files_train <= FILES_MAX {
            self.error(
                "dataset.num_samples_per_file",
                format!("`{samples_per_file}` samples in each of {files_train} files are too many"),
                &format!("a dataset can have up to {SAMPLES_MAX} samples"),
            );
        }
        if files_train.saturating_add(files_eval) > FILES_MAX {
            self.error(
                "dataset.num_files_train",
                format!(
                    "`{}` files are more than a file system can store",
                    files_train.saturating_add(files_eval)
                ),
                &format!("give at most {FILES_MAX}, or put more samples in each file"),
            );
        }
    }

    /// Refuses numbers of samples that do not belong to the training files.
    fn check_file_samples(&mut self) {
        let numbers = self.w.dataset_samples_in_files.len() as u64;
        let files = self.w.dataset_num_files_train;
        let sum = self
            .w
            .dataset_samples_in_files
            .iter()
            .map(|samples| u128::from(*samples))
            .sum::<u128>();
        let key = "dataset.samples_in_files";
        if numbers == 0 {
            return;
        }
        if !self.w.dataset_foreign {
            let message = "generated files all have the same number of samples".to_string();
            self.error(key, message, "set `dataset.num_samples_per_file`");
        } else if numbers != files {
            let message = format!("`{numbers}` numbers for {files} training files");
            self.error(key, message, "leave it out, or give the number of samples in each file");
        } else if sum > u128::from(SAMPLES_MAX) {
            let message = format!("`{sum}` samples are too many");
            self.error(key, message, &format!("a dataset can have up to {SAMPLES_MAX} samples"));
        } else if self.w.reader_reread_share > 0.0 {
            let message = "accelerators cannot reread files of different numbers of samples";
            self.error("reader.reread_share", message.into(), "leave it out");
        }
    }

    /// Refuses loaders that need more memory on a machine than this one has. Without a number of processes, nothing runs on this machine.
    pub(super) fn check_memory(&mut self, plan: &Plan, layout: &Layout, context: Context) {
        let Some(processes) = self.options.processes else { return };
        let host_processes = self.options.host_processes.unwrap_or(processes);
        let host_share = f64::from(host_processes) / f64::from(processes.max(1));
        let needed = estimate_with(plan, self.catalog, layout).loader_memory_bytes * host_share;
        let Some(memory) = context.memory_bytes.filter(|&memory| needed > memory as f64) else {
            return;
        };
        let (key, remedy) = if plan.loader.in_memory {
            ("reader.read_type", "`reader.read_type=on_demand`")
        } else if plan.loader.materialize {
            ("reader.materialize", "`reader.materialize=false`")
        } else {
            ("reader.in_flight", "a smaller `reader.in_flight`")
        };
        self.error(
            key,
            format!(
                "the loaders on a machine need {} of memory, and it has {}",
                units::bytes(needed as u64),
                units::bytes(memory)
            ),
            &format!("use fewer accelerators, threads or samples in a batch, or {remedy}"),
        );
    }

    /// Returns the prefix of file names. Refuses separators, because files would be placed in other folders.
    fn prefix(&mut self) -> String {
        let prefix = self.w.dataset_file_prefix.clone();
        if prefix.contains(['/', '\\', '\0']) {
            let message = format!("`{prefix}` cannot be the prefix of a file name");
            self.error("dataset.file_prefix", message, "set folders with `dataset.data_folder`");
        }
        prefix
    }

    /// Returns the configured element type. As in DLIO, the format's default is used if its files cannot store the configured type.
    fn element(&mut self) -> Element {
        let configured = self.w.dataset_record_element_type;
        let format = self.catalog.format(&self.w.dataset_format);
        let elements = format.map_or(&[][..], |format| format.elements);
        let Some(&default) = elements.first() else { return configured };
        if elements.contains(&configured) {
            return configured;
        }
        let message = format!(
            "files of format `{}` cannot store `{}`: their elements become {}",
            self.w.dataset_format,
            configured.name(),
            default.name()
        );
        self.warning("dataset.record_element_type", message, "");
        default
    }

    /// Returns the nominal bytes of a sample.
    fn record_bytes(&mut self, element: Element) -> f64 {
        let w = self.w;
        let shrink = self.options.shrink_records;
        let dims = &w.dataset_record_dims;
        self.check_record_dims(dims);
        let record_bytes = if dims.is_empty() {
            let bytes = w.dataset_record_length_bytes * shrink;
            if shrink == 1.0 { bytes.max(1.0) } else { bytes.round().max(1.0) }
        } else {
            dims.iter().map(|&extent| extent as f64).product::<f64>() * element.bytes() as f64
        };
        if record_bytes < element.bytes() as f64 {
            self.error(
                "dataset.record_length_bytes",
                format!(
                    "a record of `{record_bytes}` bytes is smaller than an element of {}",
                    element.name()
                ),
                "use a larger record",
            );
        }
        record_bytes
    }

    /// Returns the dimensions of samples. Plain bytes in place of encoded samples have the exact length of a record, which a square has not.
    fn record_dims(&self, record_bytes: f64, element: Element) -> Vec<u64> {
        let w = self.w;
        let is_exact = self.encoded_format.is_some() && w.dataset_record_length_bytes_stdev == 0.0;
        if is_exact && w.dataset_record_dims.is_empty() {
            return vec![record_bytes as u64 / element.bytes()];
        }
        w.dataset_record_dims.clone()
    }

    /// Refuses an unknown format.
    fn check_format(&mut self) {
        let name = self.w.dataset_format.clone();
        let format = self.catalog.format(&name);
        if format.is_some_and(|format| format.member.has(Ability::ReadOnly))
            && !self.w.dataset_foreign
        {
            self.error(
                "dataset.format",
                format!("files of format `{name}` are read, but not generated"),
                "read your own files with `feedrate run --data DIR`, or generate another format",
            );
        }
        if format.is_none() {
            let members = self.catalog.formats.iter().map(|format| format.member);
            self.refuse_unknown_member("dataset.format", "format", &name, members);
        }
    }

    /// Returns the columns that determine the size of a row.
    fn columns(&mut self) -> Vec<TableColumn> {
        const KEY: &str = "dataset.parquet.columns";
        // Dimensions of existing files come from a scan of their folder.
        let is_known = self.w.dataset_foreign && !self.w.dataset_record_dims.is_empty();
        if !self.supports_key(KEY) || is_known {
            return Vec::new();
        }
        let columns = self.w.dataset_parquet_columns.clone();
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        if names.len() < columns.len() {
            self.error(
                KEY,
                "two columns have the same name".into(),
                "give each column its own name",
            );
        }
        columns
    }

    /// Returns the encoding, with the settings that the format supports.
    fn encoding(&mut self, columns: Vec<TableColumn>) -> Encoding {
        let w = self.w;
        let compression = w.dataset_compression;
        if let Some(format) = self.catalog.format(&w.dataset_format)
            && compression != Compression::None
            && !format.compressions.contains(&compression)
        {
            let supported: Vec<&str> =
                format.compressions.iter().map(|compression| compression.name()).collect();
            let hint = if supported.is_empty() {
                "leave it out, or use `none`".to_string()
            } else {
                format!("use `none` or one of: {}", supported.join(", "))
            };
            let message = format!(
                "format `{}` does not support compression `{}`",
                w.dataset_format,
                compression.name()
            );
            self.error("dataset.compression", message, &hint);
        }
        let mut encoding = Encoding { compression, ..Encoding::default() };
        if self.supports_key("dataset.compression_level") && compression != Compression::None {
            encoding.compression_level = w.dataset_compression_level;
        }
        if self.supports_key("dataset.hdf5.chunk_dims") {
            encoding.chunk_dims.clone_from(&w.dataset_hdf5_chunk_dims);
        }
        if self.supports_key("dataset.hdf5.max_shape") {
            encoding.max_shape.clone_from(&w.dataset_hdf5_max_shape);
        }
        if self.supports_key("dataset.hdf5.num_dset_per_record") {
            encoding.datasets_per_record = w.dataset_hdf5_num_dset_per_record;
        }
        if self.supports_key("dataset.row_group_samples") {
            encoding.row_group_samples = w.dataset_row_group_samples;
        }
        const GROUP_KEY: &str = "dataset.parquet.row_group_size";
        if self.supports_key(GROUP_KEY) && (w.is_given(GROUP_KEY) || !columns.is_empty()) {
            encoding.row_group_samples = w.dataset_parquet_row_group_size;
        }
        if self.supports_key("dataset.parquet.generation_batch_size")
            && w.dataset_parquet_generation_batch_size > 0
        {
            let batch = w.dataset_parquet_generation_batch_size;
            encoding.row_group_samples = encoding.row_group_samples.min(batch);
        }
        encoding.columns = columns;
        encoding
    }

    /// Whether the format supports a key of the encoding. Warns if an unsupported key is given.
    fn supports_key(&mut self, key: &str) -> bool {
        let Some(format) = self.catalog.format(&self.w.dataset_format) else { return false };
        let is_supported = format.encoding_keys.contains(&key);
        if !is_supported && self.w.is_given(key) {
            let message = format!("format `{}` does not use it", format.member.name);
            self.warning(key, message, "");
        }
        is_supported
    }

    /// Refuses file shapes that the format does not support.
    fn check_shapes(&mut self, dataset: &DatasetPlan, layout: &Layout) {
        let Some(format) = self.catalog.format(&dataset.format).copied() else { return };
        let dims = &dataset.record_dims;
        if let Some(dims_max) = format.dlio_dims_max
            && self.options.as_dlio
            && dims.len() > dims_max
        {
            let message = format!(
                "{} format does not support more than {dims_max} dimensions, but got {} dimensions",
                dataset.format,
                dims.len()
            );
            self.error("dataset.record_dims", message, "give height and width");
            return;
        }
        let mut shapes = layout.shapes(layout.files());
        let unsupported =
            shapes.find_map(|(shape, _)| (format.unsupported_setting)(&shape, &dataset.encoding));
        if let Some(UnsupportedSetting { key, message, hint }) = unsupported {
            self.error(key, format!("format `{}`: {message}", dataset.format), &hint);
        }
    }

    /// Refuses invalid dimensions, and settings that contradict fixed dimensions.
    fn check_record_dims(&mut self, dims: &[u64]) {
        if dims.is_empty() {
            return;
        }
        if dims.len() > DIMS_MAX || dims.contains(&0) {
            self.error(
                "dataset.record_dims",
                format!("`{dims:?}` are not valid dimensions of a sample"),
                &format!("give 1 to {DIMS_MAX} numbers above 0"),
            );
        }
        if self.w.dataset_record_length_bytes_stdev > 0.0 {
            self.error(
                "dataset.record_dims",
                "`record_dims` and `record_length_bytes_stdev` cannot be combined".into(),
                "set `dataset.record_length_bytes_stdev` to 0: fixed dimensions do not vary",
            );
        }
        if self.options.shrink_records != 1.0 {
            self.error(
                "dataset.record_dims",
                "`--shrink-records` cannot shrink fixed dimensions".into(),
                "override `dataset.record_dims` instead",
            );
        }
    }

    /// Refuses shares outside the range from 0 (exclusive) to 1 (inclusive).
    fn check_share(&mut self, flag: &str, share: f64) {
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("`{flag} {share}` is out of range");
            self.error("", message, "give a number above 0 and at most 1");
        }
    }

    /// Applies `--scale` to the number of files and of samples per file.
    fn scale_counts(&self, files: u64, samples_per_file: u64) -> (u64, u64) {
        scale_by(self.options.scale, files, samples_per_file)
    }

    /// Refuses datasets with varying file sizes if there are too many files to draw each size. Returns false if it refused the dataset.
    pub(super) fn check_drawn_sizes(&mut self, dataset: &DatasetPlan) -> bool {
        if dataset.record_stdev_bytes > 0.0
            && dataset.files_train + dataset.files_eval > DRAWN_FILES_MAX
        {
            self.error(
                "dataset.record_length_bytes_stdev",
                "there are too many files to draw their sizes one by one".into(),
                &format!("set it to 0, or use at most {DRAWN_FILES_MAX} files"),
            );
            return false;
        }
        true
    }

    /// Checks the sizes of files against the limits of the format and of a dataset.
    pub(super) fn check_sizes(&mut self, dataset: &DatasetPlan, layout: &Layout) {
        self.check_shapes(dataset, layout);
        let Some(format) = self.catalog.format(&dataset.format) else { return };
        let total = layout.sum(layout.files(), |shape| {
            (format.file_bytes)(shape, &dataset.encoding).max(shape.payload_bytes())
        });
        if total >= 1 << 62 {
            self.error(
                "dataset.num_files_train",
                format!("the dataset would be {} bytes", total),
                "use fewer files, or smaller records",
            );
        }
        if dataset.record_stdev_bytes > dataset.record_bytes {
            let mean = layout.sum(layout.files(), |shape| shape.payload_bytes()) as f64
                / (layout.files().max(1) * dataset.samples_per_file.max(1)) as f64;
            self.warning(
                "dataset.record_length_bytes_stdev",
                format!(
                    "the deviation `{}` is larger than the record: sizes have a minimum of one element, and a mean of {} instead of {}",
                    dataset.record_stdev_bytes,
                    units::bytes(mean as u64),
                    units::bytes(dataset.record_bytes as u64)
                ),
                "scale the deviation with the record",
            );
        }
    }
}

/// Element type of a row of columns: that of all columns if they are floats, else bytes. `None` without columns.
fn columns_element(columns: &[TableColumn]) -> Option<Element> {
    let is_float =
        |column: &TableColumn| matches!(column.column_type, ColumnType::Float32 | ColumnType::List);
    if columns.is_empty() {
        return None;
    }
    Some(if columns.iter().all(is_float) { Element::Float32 } else { Element::Uint8 })
}

/// Scales the number of files. If less than one file would remain, keeps one file and scales its number of samples. Returns the numbers
/// of files and of samples per file.
pub(super) fn scale_by(scale: f64, files: u64, samples_per_file: u64) -> (u64, u64) {
    if files == 0 || !(scale > 0.0 && scale < 1.0) {
        return (files, samples_per_file);
    }
    let scaled_files = files as f64 * scale;
    if scaled_files >= 1.0 {
        (scaled_files.round() as u64, samples_per_file)
    } else {
        (1, ((samples_per_file as f64 * scaled_files).round() as u64).max(1))
    }
}
