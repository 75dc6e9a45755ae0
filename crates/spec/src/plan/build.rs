//! From a workload to a plan: every default decided, every combination checked, all problems at once.

use super::layout::Layout;
use super::{
    DatasetPlan, LoaderPlan, MetricPlan, Plan, PlanDoubt, ShufflePlan, StoragePlan, TrainPlan, schedule,
};
use crate::catalog::{Ability, Catalog};
use crate::problem::{Problem, Problems};
use crate::shape::DIMS_MAX;
use crate::units;
use crate::workload::{Shuffle, TimeSpec, Workload};

/// No file system holds more.
const FILES_MAX: u64 = 1 << 40;
/// Drawn sizes are walked one by one.
const DRAWN_FILES_MAX: u64 = 100_000_000;
const ACCELERATORS_MAX: u32 = 100_000;
const EPOCHS_MAX: u32 = 1_000_000;
/// Steps of all accelerators whose times a record keeps: 32 bytes each.
const RECORDED_STEPS_MAX: u64 = 1 << 28;

/// What the command line says beside the workload.
#[derive(Clone, Debug)]
pub struct Request {
    /// The workload's name.
    pub name: String,
    /// `-n`; else the workload's own number, else 1.
    pub accelerators: Option<u32>,
    /// `--scale`: share of the files and samples.
    pub scale: f64,
    /// `--shrink-records`: share of each record.
    pub shrink_records: f64,
    /// `--cold`.
    pub cold: bool,
    /// Only data is wanted: nothing is trained.
    pub generate_only: bool,
}

/// What the planner may know of the world, passed in so that it stays pure.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Memory of this machine, for the page-cache doubt.
    pub memory_bytes: Option<u64>,
    /// Drawn once for `random` orders; kept in the plan.
    pub entropy: u64,
}

/// Decide everything. On success the problems are warnings.
///
/// # Errors
/// All problems, where one stops the plan.
pub fn build(
    workload: &Workload,
    request: &Request,
    catalog: &Catalog,
    context: Context,
) -> Result<(Plan, Problems), Problems> {
    let mut builder = Builder { w: workload, request, catalog, problems: Problems::default() };
    let plan = builder.plan(context);
    if builder.problems.has_errors() {
        return Err(builder.problems);
    }
    Ok((plan, builder.problems))
}

struct Builder<'a> {
    w: &'a Workload,
    request: &'a Request,
    catalog: &'a Catalog,
    problems: Problems,
}

impl Builder<'_> {
    fn plan(&mut self, context: Context) -> Plan {
        let accelerators = self.accelerators();
        let dataset = self.dataset();
        let storage = self.storage();
        let loader = self.loader(context);
        let train = self.train(&dataset, &loader, accelerators);
        self.unbuilt_features(&dataset, &train);
        let mut plan = Plan {
            workload: self.request.name.clone(),
            model: self.w.model_name.clone(),
            framework: self.w.framework.clone(),
            accelerators,
            dataset,
            storage,
            loader,
            train,
            metric: MetricPlan {
                au_target_percent: self.w.metric_au * 100.0,
                exclude_start_steps: self.w.output_metric_exclude_start_steps,
                exclude_end_steps: self.w.output_metric_exclude_end_steps,
            },
            doubts: Vec::new(),
        };
        if !self.problems.has_errors() {
            self.sizes(&plan);
        }
        if !self.problems.has_errors() {
            plan.doubts = self.doubts(&plan, context);
        }
        plan
    }

    fn error(&mut self, key: &str, message: String, hint: &str) {
        let place = self.w.place(key).cloned();
        let problem = Problem::error(key, message).at(place);
        self.problems.push(if hint.is_empty() { problem } else { problem.hint(hint) });
    }

    fn accelerators(&mut self) -> u32 {
        let n = self.request.accelerators.or(self.w.accelerators).unwrap_or(1);
        if n == 0 || n > ACCELERATORS_MAX {
            self.error(
                "accelerators",
                format!("`{n}` accelerators cannot be emulated"),
                &format!("give a number from 1 to {ACCELERATORS_MAX}"),
            );
        }
        n.clamp(1, ACCELERATORS_MAX)
    }

    fn dataset(&mut self) -> DatasetPlan {
        let w = self.w;
        self.format();
        if !w.dataset_keep_files {
            let message = "deleting the dataset after the run is not supported yet";
            self.error("dataset.keep_files", message.into(), "set it to true, and delete the folder yourself");
        }
        let (files_train, samples_per_file) = self.scaled(w.dataset_num_files_train, w.dataset_num_samples_per_file);
        let (files_eval, _) = self.scaled(w.dataset_num_files_eval, w.dataset_num_samples_per_file);
        if files_train == 0 && self.trains() {
            self.error(
                "dataset.num_files_train",
                "there is nothing to train on: `0` files".into(),
                "give at least one file",
            );
        }
        if samples_per_file == 0 {
            self.error("dataset.num_samples_per_file", "`0` samples in a file".into(), "give at least one");
        }
        if files_train.saturating_add(files_eval) > FILES_MAX {
            self.error(
                "dataset.num_files_train",
                format!("`{}` files are more than any file system holds", files_train.saturating_add(files_eval)),
                &format!("give at most {FILES_MAX}, or put more samples in each file"),
            );
        }
        let shrink = self.request.shrink_records;
        if !(shrink > 0.0 && shrink <= 1.0) {
            self.error("", format!("`--shrink-records {shrink}` is no share"), "give a number above 0, at most 1");
        }
        let dims = w.dataset_record_dims.clone();
        self.record_dims(&dims);
        let record_bytes = if dims.is_empty() {
            (w.dataset_record_length_bytes * shrink).max(1.0)
        } else {
            dims.iter().map(|&d| d as f64).product::<f64>() * w.dataset_record_element_type.bytes() as f64
        };
        if record_bytes < w.dataset_record_element_type.bytes() as f64 {
            self.error(
                "dataset.record_length_bytes",
                format!("a record of `{record_bytes}` bytes holds no element of {}", w.dataset_record_element_type.name()),
                "give a longer record",
            );
        }
        DatasetPlan {
            format: w.dataset_format.clone(),
            files_train: files_train.min(FILES_MAX),
            files_eval: files_eval.min(FILES_MAX),
            samples_per_file,
            subfolders_train: w.dataset_num_subfolders_train,
            subfolders_eval: w.dataset_num_subfolders_eval,
            prefix: w.dataset_file_prefix.clone(),
            record_bytes,
            record_stdev_bytes: w.dataset_record_length_bytes_stdev * shrink,
            record_dims: dims,
            element: w.dataset_record_element_type,
            compression: self.compression(),
            content_seed: w.dataset_content_seed,
        }
    }

    fn format(&mut self) {
        let name = self.w.dataset_format.clone();
        if self.catalog.format(&name).is_none() {
            let built: Vec<&str> = self.catalog.formats.iter().map(|f| f.member.name).collect();
            self.error(
                "dataset.format",
                format!("needs format `{name}`, which is not built yet"),
                &format!("formats there are: {}", built.join(", ")),
            );
        }
    }

    fn compression(&mut self) -> String {
        let compression = self.w.dataset_compression.clone();
        if compression != "none" {
            self.error(
                "dataset.compression",
                format!("writing with compression `{compression}` is not supported yet"),
                "leave it out, or use `none`; compressed npz files of others are read with `--foreign`",
            );
        }
        compression
    }

    fn record_dims(&mut self, dims: &[u64]) {
        if dims.is_empty() {
            return;
        }
        if dims.len() > DIMS_MAX || dims.contains(&0) {
            self.error(
                "dataset.record_dims",
                format!("`{dims:?}` are no dimensions of a sample"),
                &format!("give 1 to {DIMS_MAX} numbers above 0"),
            );
        }
        if self.w.dataset_record_length_bytes_stdev > 0.0 {
            self.error(
                "dataset.record_dims",
                "`record_dims` and `record_length_bytes_stdev` exclude each other".into(),
                "fixed dimensions have no deviation: set `dataset.record_length_bytes_stdev` to 0",
            );
        }
        if self.request.shrink_records != 1.0 {
            self.error(
                "dataset.record_dims",
                "`--shrink-records` cannot shrink fixed dimensions".into(),
                "override `dataset.record_dims` instead",
            );
        }
    }

    /// Files first; below one file, the samples of it.
    fn scaled(&mut self, files: u64, samples_per_file: u64) -> (u64, u64) {
        let scale = self.request.scale;
        if !(scale > 0.0 && scale <= 1.0) {
            if !self.problems.0.iter().any(|p| p.message.contains("--scale")) {
                self.error("", format!("`--scale {scale}` is no share"), "give a number above 0, at most 1");
            }
            return (files, samples_per_file);
        }
        if files == 0 || scale == 1.0 {
            return (files, samples_per_file);
        }
        let wanted = files as f64 * scale;
        if wanted >= 1.0 {
            (wanted.round() as u64, samples_per_file)
        } else {
            (1, ((samples_per_file as f64 * wanted).round() as u64).max(1))
        }
    }

    fn storage(&mut self) -> StoragePlan {
        let kind = match self.w.storage_storage_type.as_str() {
            "local_fs" => "file",
            other => other,
        }
        .to_string();
        if self.catalog.storage(&kind).is_none() {
            self.error(
                "storage.storage_type",
                format!("needs storage `{kind}`, which is not built yet"),
                "a mounted file system of any kind is `local_fs`",
            );
        }
        if self.w.reader_odirect {
            self.error(
                "reader.odirect",
                "reading with O_DIRECT is not supported yet".into(),
                "leave it out; `--cold` reads past the page cache for the first time in each epoch",
            );
        }
        StoragePlan {
            kind,
            throttle_bytes_per_second: self.w.storage_throttle_bytes_per_second,
            throttle_latency_s: self.w.storage_throttle_latency_seconds,
            delay_s: self.w.storage_delay_seconds,
        }
    }

    fn loader(&mut self, context: Context) -> LoaderPlan {
        let w = self.w;
        let kind = w.reader_data_loader.clone().unwrap_or_else(|| w.framework.clone());
        let workers = w.reader_read_threads;
        let prefetch_size = w.reader_prefetch_size;
        let stock_batches = match self.catalog.loader(&kind) {
            Some(loader) => (loader.stock_batches)(workers, prefetch_size),
            None => {
                let built: Vec<&str> = self.catalog.loaders.iter().map(|l| l.member.name).collect();
                self.error(
                    "reader.data_loader",
                    format!("needs loader `{kind}`, which is not built yet"),
                    &format!("loaders there are: {}", built.join(", ")),
                );
                1
            }
        };
        if w.reader_batch_size == 0 {
            self.error("reader.batch_size", "a batch of `0` samples".into(), "give at least one");
        }
        if workers > 4096 {
            self.error("reader.read_threads", format!("`{workers}` threads for one accelerator"), "give at most 4096");
        }
        if w.reader_preprocess_time != TimeSpec::None {
            self.error("reader.preprocess_time", "preprocessing is not supported yet".into(), "set it to 0");
        }
        if w.workflow_profiling {
            self.error("workflow.profiling", "profilers are not supported yet".into(), "set it to false");
        }
        if w.reader_read_type_memory {
            self.error("reader.read_type", "reading into memory is not supported yet".into(), "use `on_demand`");
        }
        let random = [w.reader_file_shuffle, w.reader_sample_shuffle].contains(&Shuffle::Random);
        LoaderPlan {
            kind,
            batch_size: w.reader_batch_size.max(1),
            workers,
            prefetch_size,
            stock_batches,
            file_shuffle: shuffle(w.reader_file_shuffle),
            sample_shuffle: shuffle(w.reader_sample_shuffle),
            order_seed: if random { context.entropy } else { w.train_seed },
            seed_change_epoch: w.train_seed_change_epoch,
            transfer_bytes: w.reader_transfer_size,
            materialize: w.reader_materialize,
            verify: w.reader_verify,
            check_crc: w.reader_check_crc,
        }
    }

    fn train(&mut self, dataset: &DatasetPlan, loader: &LoaderPlan, accelerators: u32) -> TrainPlan {
        let w = self.w;
        let samples = dataset.files_train.saturating_mul(dataset.samples_per_file);
        let steps = schedule::steps_per_epoch(samples, loader.batch_size, accelerators);
        if steps == 0 && samples > 0 && self.trains() {
            self.too_few_samples(samples, loader.batch_size, accelerators);
        }
        if w.train_epochs == 0 || w.train_epochs > EPOCHS_MAX {
            self.error("train.epochs", format!("`{}` epochs", w.train_epochs), &format!("give 1 to {EPOCHS_MAX}"));
        }
        let train = TrainPlan {
            epochs: w.train_epochs.clamp(1, EPOCHS_MAX),
            steps_per_epoch: steps,
            total_steps: w.train_total_training_steps,
            compute: w.train_computation_time,
            compute_seed: w.train_seed,
            cold: self.request.cold,
        };
        let recorded = train.steps().saturating_mul(u64::from(accelerators));
        if recorded > RECORDED_STEPS_MAX && self.trains() {
            self.error(
                "train.epochs",
                format!("a record of `{recorded}` accelerator steps would not fit"),
                "use fewer epochs, `--scale`, or `train.total_training_steps`",
            );
        }
        train
    }

    fn too_few_samples(&mut self, samples: u64, batch_size: u64, accelerators: u32) {
        if u64::from(accelerators) > samples {
            self.error(
                "accelerators",
                format!("`{accelerators}` accelerators share {samples} samples: some would get none"),
                "use fewer accelerators or more files",
            );
        } else {
            self.error(
                "reader.batch_size",
                format!(
                    "{accelerators} accelerators with batches of `{batch_size}` need {} samples for one step, the dataset has {samples}",
                    u128::from(batch_size) * u128::from(accelerators)
                ),
                "use a smaller batch, fewer accelerators or more files",
            );
        }
    }

    fn trains(&self) -> bool {
        !self.request.generate_only
    }

    /// What this plan would reach and cannot do yet.
    fn unbuilt_features(&mut self, dataset: &DatasetPlan, train: &TrainPlan) {
        if !self.trains() {
            return;
        }
        let w = self.w;
        if !w.workflow_train {
            let (what, hint) = if w.workflow_checkpoint {
                ("a run of checkpoints only is not supported yet", "set `workflow.train=true`")
            } else {
                ("nothing is trained", "use `feedrate generate` to make the data only, or set `workflow.train=true`")
            };
            self.error("workflow.train", what.into(), hint);
            return;
        }
        if w.workflow_evaluation && dataset.files_eval > 0 && w.evaluation_eval_after_epoch <= train.epochs_run() {
            self.error(
                "workflow.evaluation",
                format!("evaluation after epoch `{}` is not supported yet", w.evaluation_eval_after_epoch),
                "set `workflow.evaluation=false`",
            );
        }
        if let Some(at) = self.first_checkpoint(train) {
            self.error(
                "workflow.checkpoint",
                format!("this plan reaches its first checkpoint {at}; checkpoints are not supported yet"),
                "set `workflow.checkpoint=false`, or use fewer epochs",
            );
        }
    }

    /// Where the first checkpoint falls, if this plan reaches it.
    fn first_checkpoint(&self, train: &TrainPlan) -> Option<String> {
        let w = self.w;
        if !w.workflow_checkpoint {
            return None;
        }
        match w.checkpoint_steps_between_checkpoints {
            Some(steps) => {
                let longest = train.steps_in_epoch(1);
                (steps > 0 && steps <= longest).then(|| format!("after step {steps}"))
            }
            None => {
                let after = w.checkpoint_checkpoint_after_epoch;
                (after <= train.epochs_run()).then(|| format!("after epoch {after}"))
            }
        }
    }

    fn sizes(&mut self, plan: &Plan) {
        let dataset = &plan.dataset;
        if dataset.record_stdev_bytes > 0.0 && dataset.files_train + dataset.files_eval > DRAWN_FILES_MAX {
            self.error(
                "dataset.record_length_bytes_stdev",
                "sizes of so many files cannot be drawn one by one".into(),
                &format!("set it to 0, or use at most {DRAWN_FILES_MAX} files"),
            );
            return;
        }
        let layout = Layout::new(dataset);
        let Some(format) = self.catalog.format(&dataset.format) else { return };
        let total = layout.sum(layout.files(), |shape| (format.file_bytes)(shape));
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
            let key = "dataset.record_length_bytes_stdev";
            self.problems.push(
                Problem::warning(
                    key,
                    format!(
                        "the deviation `{}` is larger than the record: sizes are cut off at one element, their mean is {} instead of {}",
                        dataset.record_stdev_bytes,
                        units::bytes(mean as u64),
                        units::bytes(dataset.record_bytes as u64)
                    ),
                )
                .at(self.w.place(key).cloned())
                .hint("scale the deviation with the record"),
            );
        }
    }

    fn doubts(&self, plan: &Plan, context: Context) -> Vec<PlanDoubt> {
        let mut doubts = Vec::new();
        let mut doubt = |name: &str, evidence: String, advice: &str| {
            doubts.push(PlanDoubt { name: name.into(), evidence, advice: advice.into() });
        };
        let steps = plan.train.steps_in_epoch(1);
        let stock = u64::from(plan.loader.stock_batches);
        let window = steps.saturating_sub(plan.metric.exclude_start_steps + plan.metric.exclude_end_steps);
        if window <= stock {
            doubt(
                "window_shorter_than_stock",
                format!("{window} steps are judged, and the loader may hold {stock} batches by then"),
                "use more files, fewer accelerators, or fewer reading threads; believe au_all_steps",
            );
        }
        let layout = Layout::new(&plan.dataset);
        let bytes = layout.sum(layout.files_train(), |shape| shape.payload_bytes()) as u64;
        let keeps = self.catalog.storage(&plan.storage.kind).is_some_and(|m| m.has(Ability::PageCache));
        if let Some(memory) = context.memory_bytes.filter(|&memory| keeps && bytes < memory) {
            doubt(
                "dataset_fits_page_cache",
                format!("the dataset is {}, the memory {}", units::bytes(bytes), units::bytes(memory)),
                "use a dataset of at least five times the memory, or `--cold`",
            );
        }
        if self.request.scale != 1.0 {
            doubt(
                "scaled",
                format!("`--scale {}`: {} files instead of {}", self.request.scale, plan.dataset.files_train, self.w.dataset_num_files_train),
                "shorter epochs: compare only with runs of the same scale",
            );
        }
        if self.request.shrink_records != 1.0 {
            doubt(
                "records_shrunk",
                format!("`--shrink-records {}`: records of {} instead of {}", self.request.shrink_records, units::bytes(plan.dataset.record_bytes as u64), units::bytes(self.w.dataset_record_length_bytes as u64)),
                "this is another workload: do not compare it with the full one",
            );
        }
        if self.w.workflow_checkpoint {
            doubt(
                "checkpoint_not_reached",
                "checkpoints are asked for, and this plan ends before the first".into(),
                "use more epochs to see what they cost",
            );
        }
        doubts
    }
}

fn shuffle(shuffle: Shuffle) -> ShufflePlan {
    match shuffle {
        Shuffle::Off => ShufflePlan::Off,
        Shuffle::Seed => ShufflePlan::Seed,
        Shuffle::Random => ShufflePlan::Random,
    }
}
