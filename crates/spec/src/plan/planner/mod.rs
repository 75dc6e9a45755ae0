//! The planner turns a workload into a plan: it decides all defaults, checks all combinations of settings, and reports all problems at
//! once. The plan depends only on its arguments.

mod checkpoint;
mod evaluation;
mod storage;
mod client;
mod requests;
mod loader;
mod library_requests;
mod compute;
mod dataset;
mod too_few_samples;
mod doubts;
mod mpio;
mod mlperf;

pub use self::doubts::FITS_PAGE_CACHE;

use self::mlperf::read_as_plain_bytes;
use super::layout::Layout;
use super::{
    Barrier, Cache, DatasetPlan, Expectations, FileAccess, LOG_FILE, LoaderPlan, MetricPlan, Plan,
    TrainPlan, is_log_name, schedule,
};
use crate::catalog::{Ability, Catalog, FormatEntry, Member};
use crate::problem::{Problem, ProblemSeverity, Problems};
use crate::units::{self, counted};
use crate::workload::{Content, KEYS, Node, Workload};

/// Maximum number of emulated accelerators.
const ACCELERATORS_MAX: u32 = 100_000;
/// Maximum number of epochs over all accelerators in a record. Each needs about a kilobyte, in addition to its steps.
pub const RECORDED_EPOCHS_MAX: u64 = 1 << 20;
/// Maximum number of steps over all accelerators in a record. Each needs 32 bytes.
pub const RECORDED_STEPS_MAX: u64 = 1 << 25;
/// Maximum number of threads of a process. Each needs two memory mappings in addition to its buffer, and Linux allows 65,530
/// mappings (`vm.max_map_count`).
pub const THREADS_MAX: u64 = 16_000;
/// Maximum compute time of a step, and maximum preprocessing time of a sample: a day.
pub(super) const WAIT_MAX_S: f64 = 86_400.0;
/// Maximum number of batches in flight over all accelerators. Each needs a slot in memory.
const BATCHES_IN_FLIGHT_MAX: u64 = 1 << 22;

/// Settings from the command line that are not part of the workload.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The workload's name.
    pub name: String,
    /// Number of accelerators (`-n`). The default is the workload's number, else 1.
    pub accelerators: Option<u32>,
    /// Share of the files and samples (`--scale`).
    pub scale: f64,
    /// Number of processes that share the accelerators; `None` if nothing is run now.
    pub processes: Option<u32>,
    /// Number of these processes on the machine with the most; `None` for all. The machines are taken to be alike.
    pub host_processes: Option<u32>,
    /// Factor on the size of records (`--shrink-records`).
    pub shrink_records: f64,
    /// Preparation of the page cache (`--cold`, `--warm`).
    pub cache: Cache,
    /// Whether to compare the data read with the generated content (`--verify`).
    pub verify: bool,
    /// Whether to generate only the dataset, without training.
    pub generate_only: bool,
    /// Whether the plan is for `dlio_benchmark`: refuses records that DLIO refuses, and `train.total_training_steps` limits each epoch.
    pub as_dlio: bool,
}

impl Default for PlanOptions {
    /// Returns options that do not change the workload.
    fn default() -> Self {
        PlanOptions {
            name: String::new(),
            accelerators: None,
            scale: 1.0,
            processes: None,
            host_processes: None,
            shrink_records: 1.0,
            cache: Cache::AsIs,
            verify: false,
            generate_only: false,
            as_dlio: false,
        }
    }
}

/// Facts about this machine. They are arguments, so that the planner itself reads nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'w> {
    /// Memory of this machine.
    pub memory_bytes: Option<u64>,
    /// Free space where checkpoints are written.
    pub checkpoint_free_bytes: Option<u64>,
    /// Number of devices that the configured compute can use, or the reason why it cannot use any; `None` if unknown.
    pub devices: Option<Result<u32, &'w str>>,
    /// Random seed for `random` orders. The plan contains it.
    pub entropy: u64,
}

/// Builds the plan of a workload. On success the problems are warnings.
///
/// # Errors
/// Returns all problems if one of them is an error.
pub fn build(
    workload: &Workload,
    options: &PlanOptions,
    catalog: &Catalog,
    context: Context,
) -> Result<(Plan, Problems), Problems> {
    let undecoded = read_as_plain_bytes(workload, options, catalog);
    let mut builder = Builder {
        w: undecoded.as_ref().unwrap_or(workload),
        encoded_format: undecoded.as_ref().and_then(|_| catalog.format(&workload.dataset_format)),
        options,
        catalog,
        problems: Problems::default(),
    };
    let plan = builder.plan(context);
    if builder.problems.has_errors() {
        return Err(builder.problems);
    }
    Ok((plan, builder.problems))
}

struct Builder<'a> {
    w: &'a Workload,
    /// Format of the workload whose samples are not decoded, so that `w` has plain bytes in its place.
    encoded_format: Option<&'a FormatEntry>,
    options: &'a PlanOptions,
    catalog: &'a Catalog,
    problems: Problems,
}

impl Builder<'_> {
    /// Returns the disks to report in `iostat.json`; `None` if it is not written.
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

    /// Returns the name of DLIO's log; `None` for `dlio.log`.
    fn log_file(&mut self) -> Option<String> {
        let name = &self.w.output_log_file;
        if name == LOG_FILE {
            return None;
        }
        if !is_log_name(name) {
            let hint =
                "give a name without folders, such as `dlio.log`, that is not the name of a result";
            self.error("output.log_file", format!("`{name}` is not a name for a log"), hint);
        }
        Some(name.clone())
    }

    fn plan(&mut self, context: Context) -> Plan {
        self.check_control_characters();
        let accelerators = self.accelerators();
        let mut dataset = self.dataset(accelerators);
        if self.is_checkpoint_only() {
            dataset.files_train = 0;
            dataset.files_eval = 0;
        }
        let storage = self.storage();
        let stage = self.stage(&storage);
        let mut loader = self.loader(context, accelerators, &storage);
        let train_without_compute = self.train(&dataset, &loader, accelerators);
        let train = self.compute(train_without_compute, context);
        let steps = train.steps().saturating_mul(accelerators.into());
        self.check_client_costs(&dataset, &loader, steps);
        self.plan_held_batches(&mut loader, &train);
        self.check_transfer_size(&dataset, &loader);
        if self.trains() {
            self.check_limits(&loader, accelerators);
        }
        self.check_task();
        let evaluation = self.evaluation(&dataset, &loader, &train, accelerators);
        let mut plan = Plan {
            workload: self.options.name.clone(),
            model: self.w.model_name.clone(),
            framework: self.w.framework.name().into(),
            core_config: self.core_config(),
            accelerators,
            dataset,
            storage,
            stage,
            loader,
            checkpoint: self.checkpoint(&train, accelerators),
            evaluation,
            train,
            metric: MetricPlan {
                au_target_percent: units::round_noise(self.w.metric_au * 100.0),
                exclude_start_steps: self.w.output_metric_exclude_start_steps,
                exclude_end_steps: self.w.output_metric_exclude_end_steps,
                expect: Expectations {
                    au_percent: self.w.expect_au,
                    bytes_per_second: self.w.expect_bytes_per_second,
                    samples_per_second: self.w.expect_samples_per_second,
                    read_latency_p99_s: self.w.expect_read_latency_p99_s,
                },
            },
            timeline: self.w.output_timeline,
            iostat_devices: self.iostat_devices(),
            log_file: self.log_file(),
            doubts: Vec::new(),
        };
        if self.reads_through_mpi() {
            self.apply_mpio(&mut plan);
        }
        if !self.problems.has_errors() && self.check_drawn_sizes(&plan.dataset) {
            let layout = Layout::new(&plan.dataset);
            self.check_sizes(&plan.dataset, &layout);
            self.set_library_requests(&mut plan, &layout);
            if !self.problems.has_errors() && !self.options.generate_only {
                self.check_memory(&plan, &layout, context);
                plan.doubts = self.doubts(&plan, &layout, context);
            }
        }
        plan
    }

    /// Refuses control characters: they would break output lines with names and folders.
    fn check_control_characters(&mut self) {
        let w = self.w;
        for key in KEYS {
            if let Some(Node { content: Content::Scalar { text, .. }, .. }) =
                w.tree().node_at(key.path)
                && text.trim_end().contains(char::is_control)
            {
                let message = format!("`{text}` contains control characters");
                self.error(key.path, message, "remove them");
            }
        }
    }

    fn error(&mut self, key: &str, message: String, hint: &str) {
        self.problem(Problem::error(key, message), hint);
    }

    fn warning(&mut self, key: &str, message: String, hint: &str) {
        self.problem(Problem::warning(key, message), hint);
    }

    /// Refuses a name that no member of a family has. `noun` is the word for a member of the family.
    fn refuse_unknown_member(
        &mut self,
        key: &str,
        noun: &str,
        name: &str,
        members: impl Iterator<Item = &'static Member>,
    ) {
        let names: Vec<&str> = members.map(|member| member.name).collect();
        let last_word = noun.rsplit(' ').next().unwrap_or(noun);
        let hint = format!("available {last_word}s: {}", names.join(", "));
        self.error(key, format!("there is no {noun} `{name}`"), &hint);
    }

    /// Whether the workload's format has `ability`.
    fn format_has(&self, ability: Ability) -> bool {
        let format = self.catalog.format(&self.w.dataset_format);
        format.is_some_and(|format| format.member.has(ability))
    }

    fn problem(&mut self, problem: Problem, hint: &str) {
        let location = self.w.location(&problem.key).cloned();
        let located = problem.with_location(location);
        self.problems.push(if hint.is_empty() { located } else { located.hint(hint) });
    }

    fn accelerators(&mut self) -> u32 {
        let count = self.options.accelerators.or(self.w.accelerators).unwrap_or(1);
        if !(1..=ACCELERATORS_MAX).contains(&count) {
            let hint = format!("give 1 to {ACCELERATORS_MAX}");
            self.error("accelerators", format!("`{count}` accelerators cannot be emulated"), &hint);
        }
        count.clamp(1, ACCELERATORS_MAX)
    }

    /// Refuses more threads or batches than a process can have, and times above the limit.
    fn check_limits(&mut self, loader: &LoaderPlan, accelerators: u32) {
        // Without a number of processes, nothing runs now, and the limit of threads does not apply.
        let process_accelerators =
            self.options.processes.map_or(0, |count| accelerators.div_ceil(count.max(1)));
        let readers = process_accelerators.div_ceil(loader.group_accelerators.max(1));
        let threads = u64::from(readers) * u64::from(loader.threads());
        if threads > THREADS_MAX {
            let message = format!(
                "{} with {} each need `{threads}` threads",
                counted(readers.into(), "reading accelerator"),
                counted(loader.threads().into(), "thread")
            );
            let fewer =
                if loader.in_flight() > 1 { ", or a smaller `reader.in_flight`" } else { "" };
            let hint = format!(
                "one process can start {THREADS_MAX}: use fewer accelerators or threads{fewer}"
            );
            self.error("reader.read_threads", message, &hint);
        }
        let batches = u64::from(accelerators) * u64::from(loader.batches_in_flight);
        if batches > BATCHES_IN_FLIGHT_MAX {
            let message = format!(
                "`{}` batches in flight for each of {}",
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
            self.error(key, message, &format!("use at most {BATCHES_IN_FLIGHT_MAX} in total"));
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
        let samples = dataset.samples_train();
        let steps = schedule::steps_of_training(dataset, loader, accelerators);
        self.check_shuffle_block(loader, samples);
        let rereads_fit = self.check_rereads(dataset, loader, accelerators);
        if rereads_fit && steps == 0 && samples > 0 && self.trains() {
            self.refuse_too_few_samples(
                dataset,
                loader,
                sharing_accelerators(loader, accelerators),
            );
            if let Some(problem) = self.problems.0.last_mut().filter(|_| self.options.as_dlio) {
                problem.severity = ProblemSeverity::Warning;
                problem.message.push_str("; as in DLIO, nothing is trained");
            }
        }
        let (steps_per_epoch, total_steps) = match w.train_total_training_steps {
            Some(epoch_steps_max) if self.options.as_dlio => {
                let total = epoch_steps_max.saturating_mul(w.train_epochs.into());
                (steps.min(epoch_steps_max), Some(total))
            }
            total => (steps, total),
        };
        let train = TrainPlan {
            epochs: if self.is_checkpoint_only() { 0 } else { w.train_epochs },
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
        let recorded_steps = train.steps().saturating_mul(u64::from(accelerators));
        if recorded_steps > RECORDED_STEPS_MAX && self.trains() {
            // Fewer epochs cannot help if a single epoch is too long.
            let is_epoch_too_long =
                train.steps_per_epoch.saturating_mul(accelerators.into()) > RECORDED_STEPS_MAX;
            let key = match (w.dataset_num_files_train, w.dataset_num_samples_per_file) {
                _ if !is_epoch_too_long => "train.epochs",
                (files, samples) if samples > files => "dataset.num_samples_per_file",
                _ => "dataset.num_files_train",
            };
            self.error(
                key,
                format!("a record of `{recorded_steps}` accelerator steps would not fit"),
                "use fewer samples or epochs, larger batches, `--scale`, or `train.total_training_steps`",
            );
        }
        train
    }

    /// Whether the run trains and thus reads samples.
    fn trains(&self) -> bool {
        !self.options.generate_only && self.w.workflow_train
    }

    /// Whether the run only writes and reads checkpoints.
    fn is_checkpoint_only(&self) -> bool {
        !self.options.generate_only && !self.w.workflow_train && self.w.workflow_checkpoint
    }

    /// Refuses a run without a task, and tasks that need generated files if the files are foreign.
    fn check_task(&mut self) {
        if self.options.generate_only && self.w.dataset_foreign {
            self.error(
                "dataset.foreign",
                "foreign files are neither generated nor verified".into(),
                "leave `--foreign` out, or read the files with `feedrate run`",
            );
        }
        if self.options.verify && self.w.dataset_foreign {
            self.error(
                "dataset.foreign",
                "`--verify` compares with generated content, but the files are foreign".into(),
                "leave one of them out",
            );
        }
        if self.options.generate_only || self.trains() || self.is_checkpoint_only() {
            return;
        }
        self.error(
            "workflow.train",
            "the run would neither train nor write checkpoints".into(),
            "use `feedrate generate` to only generate the data, or set `workflow.train=true`",
        );
    }
}

/// Returns the number of accelerators among which the samples of an epoch are divided.
fn sharing_accelerators(loader: &LoaderPlan, accelerators: u32) -> u32 {
    if loader.file_access == FileAccess::Same { 1 } else { accelerators }
}
