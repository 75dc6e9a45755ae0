//! From a workload to a plan: every default decided, every combination checked, all problems at once.

mod checkpoint;
mod evaluation;
mod storage;
mod client;
mod loader;
mod compute;
mod dataset;
mod doubts;
mod mpio;

use self::dataset::scaled_by;
use super::layout::Layout;
use super::{
    Barrier, Cache, DatasetPlan, FileAccess, LoaderPlan, MetricPlan, Plan, TrainPlan, schedule,
};
use crate::catalog::{Ability, Catalog, Member};
use crate::problem::{Problem, Problems};
use crate::units::{self, counted};
use crate::workload::{Content, KEYS, Node, Workload};

const ACCELERATORS_MAX: u32 = 100_000;
/// Epochs of all accelerators that a record keeps: about a kilobyte each beside the steps.
const RECORDED_EPOCHS_MAX: u64 = 1 << 20;
/// Steps of all accelerators whose times a record keeps: 32 bytes each.
pub const RECORDED_STEPS_MAX: u64 = 1 << 25;
/// Threads of one process: each has two mappings beside its buffer, and Linux allows 65,530 (`vm.max_map_count`).
pub const THREADS_MAX: u64 = 16_000;
/// Upper limit of a step's compute and of the work on a sample: a day.
const WAIT_MAX_S: f64 = 86_400.0;
/// Batches in flight of all accelerators; each has its slot.
const STOCK_MAX: u64 = 1 << 22;

/// Settings of the command line beside the workload.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The workload's name.
    pub name: String,
    /// `-n`; else the workload's own number, else 1.
    pub accelerators: Option<u32>,
    /// `--scale`: share of the files and samples.
    pub scale: f64,
    /// Processes that share the accelerators; `None` where nothing is run now.
    pub processes: Option<u32>,
    /// `--shrink-records`: share of each record.
    pub shrink_records: f64,
    /// `--cold`, `--warm`.
    pub cache: Cache,
    /// `--verify`.
    pub verify: bool,
    /// Only data is wanted: nothing is trained.
    pub generate_only: bool,
    /// In DLIO's place: what it refuses of a record is refused, and `train.total_training_steps` is of each epoch.
    pub as_dlio: bool,
}

impl Default for PlanOptions {
    /// All that the workload says, and nothing else.
    fn default() -> Self {
        PlanOptions {
            name: String::new(),
            accelerators: None,
            scale: 1.0,
            processes: None,
            shrink_records: 1.0,
            cache: Cache::AsIs,
            verify: false,
            generate_only: false,
            as_dlio: false,
        }
    }
}

/// Facts about this machine, passed in so that the planner stays pure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'w> {
    /// Memory of this machine, for the page-cache doubt.
    pub memory_bytes: Option<u64>,
    /// Free space where checkpoints are written.
    pub checkpoint_free_bytes: Option<u64>,
    /// Devices that the compute asked for can use, or why it can use none; `None` where nobody looked.
    pub devices: Option<Result<u32, &'w str>>,
    /// Drawn once for `random` orders; kept in the plan.
    pub entropy: u64,
}

/// Decide everything. On success the problems are warnings.
///
/// # Errors
/// All problems, where one stops the plan.
pub fn build(
    workload: &Workload,
    options: &PlanOptions,
    catalog: &Catalog,
    context: Context,
) -> Result<(Plan, Problems), Problems> {
    let mut builder = Builder { w: workload, options, catalog, problems: Problems::default() };
    let plan = builder.plan(context);
    if builder.problems.has_errors() {
        return Err(builder.problems);
    }
    Ok((plan, builder.problems))
}

struct Builder<'a> {
    w: &'a Workload,
    options: &'a PlanOptions,
    catalog: &'a Catalog,
    problems: Problems,
}

impl Builder<'_> {
    fn iostat_devices(&mut self) -> Option<Vec<String>> {
        let w = self.w;
        match w.profiling_profiler.as_str() {
            _ if !w.workflow_profiling || self.options.generate_only => None,
            "iostat" => Some(w.profiling_iostat_devices.clone()),
            "none" => None,
            other => {
                let hint = "use `iostat`, or set `workflow.profiling` to false";
                self.error("profiling.profiler", format!("`{other}` is not supported"), hint);
                None
            }
        }
    }

    fn plan(&mut self, context: Context) -> Plan {
        self.names_are_plain();
        let accelerators = self.accelerators();
        let mut dataset = self.dataset(accelerators);
        if self.writes_checkpoints_alone() {
            (dataset.files_train, dataset.files_eval) = (0, 0);
        }
        let storage = self.storage();
        let stage = self.stage(&storage);
        let mut loader = self.loader(context, accelerators, &storage);
        let train = self.train(&dataset, &loader, accelerators);
        let train = self.compute(train, context);
        let steps = train.steps().saturating_mul(accelerators.into());
        self.client_costs(&dataset, &loader, steps);
        self.hold_batches(&mut loader, &train);
        self.transfers(&dataset, &loader);
        if self.trains() {
            self.limits(&loader, accelerators);
        }
        self.something_to_do();
        let evaluation = self.evaluation(&dataset, &loader, &train, accelerators);
        let mut plan = Plan {
            workload: self.options.name.clone(),
            model: self.w.model_name.clone(),
            framework: self.w.framework.name().into(),
            accelerators,
            dataset,
            storage,
            stage,
            loader,
            checkpoint: self.checkpoint(&train, accelerators),
            evaluation,
            train,
            metric: MetricPlan {
                au_target_percent: units::rounded(self.w.metric_au * 100.0),
                exclude_start_steps: self.w.output_metric_exclude_start_steps,
                exclude_end_steps: self.w.output_metric_exclude_end_steps,
            },
            timeline: self.w.output_timeline,
            iostat_devices: self.iostat_devices(),
            doubts: Vec::new(),
        };
        if self.reads_through_mpi() {
            self.mpio(&mut plan);
        }
        if !self.problems.has_errors() && self.can_draw_sizes(&plan.dataset) {
            let layout = Layout::new(&plan.dataset);
            self.sizes(&plan.dataset, &layout);
            if !self.problems.has_errors() && !self.options.generate_only {
                self.memory(&plan, &layout, context);
                plan.doubts = self.doubts(&plan, &layout, context);
            }
        }
        plan
    }

    /// Names and folders are shown, in lines of their own.
    fn names_are_plain(&mut self) {
        let w = self.w;
        for key in KEYS {
            if let Some(Node { content: Content::Scalar { text, .. }, .. }) = w.tree().at(key.path)
                && text.trim_end().contains(char::is_control)
            {
                let message = format!("`{text}` holds control characters");
                self.error(key.path, message, "take them out");
            }
        }
    }

    fn error(&mut self, key: &str, message: String, hint: &str) {
        self.problem(Problem::error(key, message), hint);
    }

    fn warning(&mut self, key: &str, message: String, hint: &str) {
        self.problem(Problem::warning(key, message), hint);
    }

    /// Refuses a name that no member of a family has.
    fn no_member(
        &mut self,
        key: &str,
        what: &str,
        name: &str,
        members: impl Iterator<Item = &'static Member>,
    ) {
        let names: Vec<&str> = members.map(|member| member.name).collect();
        let family = what.rsplit(' ').next().unwrap_or(what);
        let hint = format!("{family}s there are: {}", names.join(", "));
        self.error(key, format!("there is no {what} `{name}`"), &hint);
    }

    /// Whether the format can do, or needs, `ability`.
    fn format_has(&self, ability: Ability) -> bool {
        let format = self.catalog.format(&self.w.dataset_format);
        format.is_some_and(|format| format.member.has(ability))
    }

    fn problem(&mut self, problem: Problem, hint: &str) {
        let place = self.w.place(&problem.key).cloned();
        let problem = problem.at(place);
        self.problems.push(if hint.is_empty() { problem } else { problem.hint(hint) });
    }

    fn accelerators(&mut self) -> u32 {
        let n = self.options.accelerators.or(self.w.accelerators).unwrap_or(1);
        if !(1..=ACCELERATORS_MAX).contains(&n) {
            let hint = format!("give 1 to {ACCELERATORS_MAX}");
            self.error("accelerators", format!("`{n}` accelerators cannot be emulated"), &hint);
        }
        n.clamp(1, ACCELERATORS_MAX)
    }

    /// Refuses more threads, batches or time than one process can have.
    fn limits(&mut self, loader: &LoaderPlan, accelerators: u32) {
        // Where nothing is run now, the number of processes is unknown.
        let of_process =
            self.options.processes.map_or(0, |count| accelerators.div_ceil(count.max(1)));
        let readers = of_process.div_ceil(loader.group_accelerators.max(1));
        let threads = u64::from(readers) * u64::from(loader.workers.max(1));
        if threads > THREADS_MAX {
            let message = format!(
                "{} with {} each need `{threads}` threads",
                counted(readers.into(), "reading accelerator"),
                counted(loader.workers.into(), "thread")
            );
            self.error(
                "reader.read_threads",
                message,
                &format!("one process can start {THREADS_MAX}: use fewer accelerators or threads"),
            );
        }
        let stock = u64::from(accelerators) * u64::from(loader.batches_in_flight);
        if stock > STOCK_MAX {
            let message = format!(
                "`{}` batches in flight of each of {}",
                loader.batches_in_flight,
                counted(accelerators.into(), "accelerator")
            );
            let key = if self.w.reader_read_at_start {
                "reader.read_at_start"
            } else if loader.held_batches > 0 {
                "reader.shuffle_size"
            } else {
                "reader.prefetch_size"
            };
            self.error(key, message, &format!("use at most {STOCK_MAX} in all"));
        }
        for (key, time) in [
            ("train.computation_time", self.w.train_computation_time),
            ("evaluation.eval_time", self.w.evaluation_eval_time),
            ("reader.preprocess_time", self.w.reader_preprocess_time),
        ] {
            let mean_s = time.mean_s();
            if mean_s > WAIT_MAX_S {
                let hint = format!("give at most {WAIT_MAX_S}, in seconds");
                self.error(key, format!("`{mean_s}` seconds on average"), &hint);
            }
        }
    }

    fn train(
        &mut self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        accelerators: u32,
    ) -> TrainPlan {
        let w = self.w;
        let samples = dataset.files_train.saturating_mul(dataset.samples_per_file);
        let steps = schedule::steps_of_training(dataset, loader, accelerators);
        self.blocks(loader, samples);
        if self.rereads(dataset, loader, accelerators) && steps == 0 && samples > 0 && self.trains()
        {
            self.too_few_samples(samples, loader.batch_size, sharing(loader, accelerators));
        }
        let asked = w.train_total_training_steps;
        let (steps_per_epoch, total_steps) = match asked {
            Some(each) if self.options.as_dlio => {
                (steps.min(each), Some(each.saturating_mul(w.train_epochs.into())))
            }
            asked => (steps, asked),
        };
        let train = TrainPlan {
            epochs: if self.writes_checkpoints_alone() { 0 } else { w.train_epochs },
            steps_per_epoch,
            total_steps,
            compute: self.step_time(w.train_computation_time),
            compute_seed: w.train_seed,
            slow_accelerators: self.slow_accelerators(accelerators),
            on_devices: None,
            cache: self.options.cache,
            barrier: Barrier::EachStep,
        };
        let epochs = u64::from(train.epochs_run()).saturating_mul(u64::from(accelerators));
        if epochs > RECORDED_EPOCHS_MAX && self.trains() {
            self.error(
                "train.epochs",
                format!("a record of `{epochs}` accelerator epochs would not fit"),
                "use fewer epochs or accelerators",
            );
        }
        let recorded = train.steps().saturating_mul(u64::from(accelerators));
        if recorded > RECORDED_STEPS_MAX && self.trains() {
            // Where one epoch is too long, it is not their number.
            let is_one =
                train.steps_per_epoch.saturating_mul(accelerators.into()) > RECORDED_STEPS_MAX;
            let key = match (w.dataset_num_files_train, w.dataset_num_samples_per_file) {
                _ if !is_one => "train.epochs",
                (files, samples) if samples > files => "dataset.num_samples_per_file",
                _ => "dataset.num_files_train",
            };
            self.error(
                key,
                format!("a record of `{recorded}` accelerator steps would not fit"),
                "use fewer samples or epochs, larger batches, `--scale`, or `train.total_training_steps`",
            );
        }
        train
    }

    fn too_few_samples(&mut self, samples: u64, batch_size: u64, accelerators: u32) {
        let wanted = u128::from(batch_size) * u128::from(accelerators);
        let needs = format!(
            "{} with batches of `{batch_size}` need {wanted} samples for one step",
            units::counted(accelerators.into(), "accelerator")
        );
        if self.options.scale < 1.0 {
            // No line of the workload says so.
            let scale = self.options.scale;
            let samples = units::counted(samples, "sample");
            let hint = match self.least_scale(wanted) {
                Some(least) => format!("give `--scale {least}` or more"),
                None => "leave `--scale` out, use a smaller batch or fewer accelerators".into(),
            };
            self.error("", format!("`--scale {scale}` leaves {samples}, and {needs}"), &hint);
        } else if u64::from(accelerators) > samples {
            self.error(
                "accelerators",
                format!(
                    "`{accelerators}` accelerators share {}: some would get none",
                    counted(samples, "sample")
                ),
                &format!("use fewer accelerators or {}", self.more_files(wanted)),
            );
        } else {
            self.error(
                "reader.batch_size",
                format!("{needs}, the dataset has {samples}"),
                &format!("use a smaller batch, fewer accelerators or {}", self.more_files(wanted)),
            );
        }
    }

    /// Advice on the number of files that hold this many samples.
    fn more_files(&self, samples: u128) -> String {
        if self.w.dataset_foreign || self.w.dataset_scaling == "weak" {
            return "more files".into();
        }
        let files = samples.div_ceil(self.w.dataset_num_samples_per_file.max(1).into());
        format!("more files: `dataset.num_files_train={files}` or more")
    }

    /// The smallest `--scale` of two digits that leaves so many samples; `None` where not even the whole dataset has them.
    fn least_scale(&self, samples: u128) -> Option<f64> {
        let (files, of_file) =
            (self.w.dataset_num_files_train, self.w.dataset_num_samples_per_file);
        let share = samples as f64 / (files as f64 * of_file as f64);
        let digit = 10_f64.powf(share.log10().floor() - 1.0);
        let least = (share / digit).ceil() as u32;
        // Files are rounded, to fewer too: at twice the share none are too few.
        let scales = (least..=2 * least).map(|digits| format!("{:.9}", f64::from(digits) * digit));
        let mut scales = scales.filter_map(|text| text.parse().ok());
        scales.find(|&scale| {
            let (files, of_file) = scaled_by(scale, files, of_file);
            scale <= 1.0 && samples <= u128::from(files) * u128::from(of_file)
        })
    }

    /// Whether samples are read.
    fn trains(&self) -> bool {
        !self.options.generate_only && self.w.workflow_train
    }

    /// Whether the run does nothing but checkpoints.
    fn writes_checkpoints_alone(&self) -> bool {
        !self.options.generate_only && !self.w.workflow_train && self.w.workflow_checkpoint
    }

    fn something_to_do(&mut self) {
        if self.options.generate_only && self.w.dataset_foreign {
            self.error(
                "dataset.foreign",
                "files that others made are neither generated nor verified".into(),
                "leave `--foreign` out; `feedrate run` looks at them and reads them",
            );
        }
        if self.options.verify && self.w.dataset_foreign {
            self.error(
                "dataset.foreign",
                "`--verify` compares with what feedrate generates, and others made the files"
                    .into(),
                "leave one of them out",
            );
        }
        if self.options.generate_only || self.trains() || self.writes_checkpoints_alone() {
            return;
        }
        self.error(
            "workflow.train",
            "nothing is trained, and no checkpoint written".into(),
            "use `feedrate generate` to make the data only, or set `workflow.train=true`",
        );
    }
}

/// Accelerators among whom the samples of an epoch are shared out.
fn sharing(loader: &LoaderPlan, accelerators: u32) -> u32 {
    if loader.file_access == FileAccess::Same { 1 } else { accelerators }
}
