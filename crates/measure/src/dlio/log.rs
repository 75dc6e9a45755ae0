//! `dlio.log`: the lines that rank 0 of DLIO writes, created from the record. Lines with unknown numbers are omitted.

use super::epoch_stats::{duration, epoch_end, wall_clock_at};
use super::host::{gib, potential_caching};
use super::summary::{self, meets_expectation};
use super::{Evaluations, Invocation};
use crate::checkpoints::dlio_figures;
use crate::derived::Derived;
use crate::metric::{
    AU_WINDOWED, Metric, NOMINAL_WHOLE, NOMINAL_WINDOWED, SAMPLES_WHOLE, SAMPLES_WINDOWED,
    block_au_percent, block_samples_per_second, mean, stdev,
};
use crate::record::{Block, CheckpointKind, CheckpointRecord, EpochRecord, Record};
use crate::window::{Scope, Window, seconds};
use feedrate_spec::plan::{CheckpointPlan, Plan, schedule};
use feedrate_spec::units::MIB;
use feedrate_spec::workload::TimeSpec;
use std::path::Path;

const RULE: &str = "[METRIC] ==========================================================";

/// Returns the text of `dlio.log` for the epochs in `record`, with the closing lines if the `folder` of the results is given.
pub fn log(record: &Record, invocation: &Invocation, folder: Option<&Path>) -> String {
    let evaluations = Evaluations::new(record, invocation.empty_evaluations);
    let mut log = LogText(String::new());
    opening_lines(&mut log, record, invocation);
    for scope in Scope::all_epochs(record) {
        if record.plan.is_checkpoint_only() {
            all_checkpoint_lines(&mut log, scope, CheckpointKind::Save);
            all_checkpoint_lines(&mut log, scope, CheckpointKind::Load);
            continue;
        }
        epoch_lines(&mut log, scope);
        if let Some(evaluation) = evaluations.after(scope.epoch.number) {
            evaluation_lines(&mut log, evaluation);
        }
        if evaluations.is_empty_after(scope.epoch.number) {
            empty_evaluation_lines(&mut log, scope.epoch);
        }
    }
    if let Some(folder) = folder {
        closing_lines(&mut log, record, &evaluations, folder);
        if !invocation.omits_rank_files {
            log.output(&record.ended, "outputs saved in RANKID_output.json");
        }
    }
    log.0
}

/// Returns the text of `dlio.log` for a run that only generates data.
pub fn generation_log(processes: u32, invocation: &Invocation) -> String {
    let mut log = LogText(String::new());
    if let Some((started, _)) = &invocation.generation {
        running_line(&mut log, started, &invocation.workflow, processes);
    }
    warning_and_generation_lines(&mut log, invocation);
    log.0
}

fn running_line(log: &mut LogText, stamp: &str, workflow: &[String], processes: u32) {
    let workflow = workflow.join(" & ");
    log.output(stamp, &format!("Running DLIO [{workflow}] with {processes} process(es)"));
}

fn warning_and_generation_lines(log: &mut LogText, invocation: &Invocation) {
    for warning in &invocation.warnings {
        log.line(&format!("[WARNING] {warning}"));
    }
    if let Some((started, ended)) = &invocation.generation {
        log.output(started, "Starting data generation");
        if !ended.is_empty() {
            log.output(ended, "Generation done");
        }
    }
}

struct LogText(String);

impl LogText {
    fn output(&mut self, stamp: &str, text: &str) {
        let separator = if stamp.is_empty() { "" } else { " " };
        self.line(&format!("[OUTPUT] {stamp}{separator}{text}"));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Appends lines with utilisation and rate, if known. `subject` names the epoch, with its block or evaluation.
    fn rate_lines(&mut self, stamp: &str, subject: &str, au: Option<f64>, rate: Option<f64>) {
        if let Some(au) = au {
            self.output(stamp, &format!("{subject} Accelerator Utilization [AU] (%): {au:.4}"));
        }
        if let Some(rate) = rate {
            self.output(stamp, &format!("{subject} Throughput (samples/second): {rate:.4}"));
        }
    }
}

/// Lines before the first epoch.
fn opening_lines(log: &mut LogText, record: &Record, invocation: &Invocation) {
    let plan = &record.plan;
    let stamp = &record.started;
    let first_stamp = invocation.generation.as_ref().map_or(stamp, |(started, _)| started);
    let plan_workflow: Vec<String> = [
        (!plan.is_checkpoint_only()).then_some("Training"),
        plan.evaluation.as_ref().map(|_| "Evaluation"),
        plan.checkpoint.as_ref().map(|_| "Checkpointing"),
    ]
    .into_iter()
    .flatten()
    .map(str::to_string)
    .collect();
    let workflow =
        if invocation.workflow.is_empty() { &plan_workflow } else { &invocation.workflow };
    running_line(log, first_stamp, workflow, plan.accelerators);
    warning_and_generation_lines(log, invocation);
    if let Some(checkpoint) = &plan.checkpoint {
        checkpoint_size_lines(log, stamp, checkpoint);
    }
    if plan.is_checkpoint_only() {
        return;
    }
    if potential_caching(&Derived::new(record), &record.system) == Some(1) {
        log.line("[WARNING] The amount of dataset is smaller than the host memory; data might be cached after the first epoch. Increase the size of dataset to eliminate the caching effect!!!");
    }
    log.output(
        stamp,
        &format!(
            "Max steps per epoch: {} = {} * {} / {} / {} (samples per file * num files / batch size / comm size)",
            full_epoch_steps(plan),
            plan.dataset.samples_per_file,
            plan.dataset.files_train,
            plan.loader.batch_size,
            plan.accelerators
        ),
    );
    if let Some(total) = plan.train.total_steps {
        let steps = plan.train.steps();
        log.output(
            stamp,
            &format!("Total training steps is set to be {total}. Will only run up to {steps}"),
        );
    }
    if let Some(evaluation) = &plan.evaluation {
        let text = format!(
            "Steps per eval: {} = {} * {} / {} / {} (samples per file * num files / batch size eval / comm size)",
            evaluation.train.steps_per_epoch,
            plan.dataset.samples_per_file,
            plan.dataset.files_eval,
            evaluation.loader.batch_size,
            plan.accelerators
        );
        log.output(stamp, &text);
    }
}

/// Steps of an epoch without a configured limit.
fn full_epoch_steps(plan: &Plan) -> u64 {
    schedule::steps_of_training(&plan.dataset, &plan.loader, plan.accelerators)
}

fn checkpoint_size_lines(log: &mut LogText, stamp: &str, checkpoint: &CheckpointPlan) {
    let total = checkpoint.total_bytes;
    let optimizer = checkpoint.state.optimizer_bytes();
    let subset = if checkpoint.state.is_subset() { " (subset)" } else { "" };
    for (label, bytes) in [
        ("Model size", total.saturating_sub(optimizer)),
        ("Optimizer state size", optimizer),
        ("Total checkpoint size", total),
    ] {
        log.output(stamp, &format!("{label}: {:.6} GB {subset}", gib(bytes)));
    }
}

fn epoch_lines(log: &mut LogText, scope: Scope) {
    let epoch = scope.epoch;
    let number = epoch.number;
    let planned = scope.plan.train.steps_in_epoch(number.max(1));
    let steps = if planned < full_epoch_steps(scope.plan) {
        format!("Overriding number of steps to {planned}.")
    } else {
        format!("{planned} steps expected")
    };
    log.output(&epoch.started, &format!("Starting epoch {number}: {steps}"));
    let mut saves = epoch.checkpoints_of(CheckpointKind::Save).zip(1..).peekable();
    if let Some(first) = epoch.accelerators.first() {
        for (i, (block, window)) in first.blocks.iter().zip(scope.windows(first)).enumerate() {
            while let Some((save, number)) =
                saves.next_if(|(save, _)| save.start_ns < block.start_ns)
            {
                checkpoint_lines(log, scope, number, save);
            }
            log.output(&stamp_at(epoch, block.start_ns), &format!("Starting block {}", i + 1));
            block_lines(log, scope, i + 1, block, window);
        }
    }
    for (save, number) in saves {
        checkpoint_lines(log, scope, number, save);
    }
    let end = epoch_end(epoch);
    let length_s = duration(epoch.start_ns, end.ns);
    let ending =
        format!("Ending epoch {number} - {} steps completed in {length_s} s", scope.steps());
    log.output(&end.stamp, &ending);
}

fn evaluation_lines(log: &mut LogText, scope: Scope) {
    let epoch = scope.epoch;
    let planned = scope.plan.train.steps_per_epoch;
    log.output(&epoch.started, &format!("Starting eval - {planned} steps expected"));
    let length_s = duration(epoch.start_ns, epoch.end_ns);
    let ending = format!("Ending eval - {} steps completed in {length_s} s", scope.steps());
    log.output(&epoch.ended, &ending);
    let subject = format!("Epoch {} [Eval]", epoch.number);
    let first = epoch.accelerators.first();
    let window = first.and_then(|accelerator| scope.windows(accelerator).next());
    let au = window.and_then(block_au_percent);
    log.rate_lines(&epoch.ended, &subject, au, SAMPLES_WHOLE.epoch_value(scope));
}

fn empty_evaluation_lines(log: &mut LogText, epoch: &EpochRecord) {
    let stamp = epoch_end(epoch).stamp;
    log.output(&stamp, "Starting eval - 0 steps expected");
    log.output(&stamp, &format!("Ending eval - 0 steps completed in {} s", duration(0, 0)));
    log.rate_lines(&stamp, &format!("Epoch {} [Eval]", epoch.number), Some(0.0), Some(0.0));
}

fn all_checkpoint_lines(log: &mut LogText, scope: Scope, kind: CheckpointKind) {
    for (i, checkpoint) in scope.epoch.checkpoints_of(kind).enumerate() {
        checkpoint_lines(log, scope, i + 1, checkpoint);
    }
}

fn checkpoint_lines(log: &mut LogText, scope: Scope, number: usize, checkpoint: &CheckpointRecord) {
    let epoch = scope.epoch.number;
    let step = checkpoint.after_step;
    let [doing, done] = match checkpoint.kind {
        CheckpointKind::Save => ["saving", "Saved"],
        CheckpointKind::Load => ["loading", "Loaded"],
    };
    let started =
        format!("Starting {doing} checkpoint {number} after total step {step} for epoch {epoch}");
    log.output(&stamp_at(scope.epoch, checkpoint.start_ns), &started);
    let first_rank = checkpoint.ranks.iter().find(|rank| rank.rank == 0);
    if let Some((rank, optimizer_ns)) = first_rank.zip(checkpoint.optimizer_ns) {
        // DLIO writes the model first, so the log puts it first even if feedrate used another order.
        let model_ns = rank.duration_ns().saturating_sub(optimizer_ns);
        let states = [
            ("model", rank.start_ns + model_ns, model_ns),
            ("optimizer", rank.end_ns, optimizer_ns),
        ];
        for (state, end_ns, duration_ns) in states {
            let length_s = seconds(duration_ns);
            let line = format!("{done} {state} checkpoint in {length_s:.4} seconds");
            if duration_ns > 0 {
                log.output(&stamp_at(scope.epoch, end_ns), &line);
            }
        }
    }
    let rate = checkpoint
        .gib_per_second()
        .map_or(String::new(), |rate| format!("; Throughput: {rate:.4} GB/s"));
    let length_s = checkpoint.duration_s();
    let ended =
        format!("Finished {doing} checkpoint {number} for epoch {epoch} in {length_s:.4} s{rate}");
    log.output(&stamp_at(scope.epoch, checkpoint.end_ns), &ended);
}

/// Lines at the end of a block. As in DLIO, they show the utilisation of the first accelerator, and its throughput multiplied by the
/// number of accelerators.
fn block_lines(log: &mut LogText, scope: Scope, number: usize, block: &Block, window: Window) {
    let ended = stamp_at(scope.epoch, block.end_ns);
    let length_s = duration(block.start_ns, block.end_ns);
    log.output(
        &ended,
        &format!("Ending block {number} - {} steps completed in {length_s} s", block.steps()),
    );
    let subject = format!("Epoch {} - Block {number} [Training]", scope.epoch.number);
    let rate = block_samples_per_second(scope, window);
    let total_rate = rate.map(|rate| rate * f64::from(scope.plan.accelerators));
    log.rate_lines(&ended, &subject, block_au_percent(window), total_rate);
    let computes_s: Vec<f64> = window.computes_ns().iter().map(|&ns| seconds(ns)).collect();
    if let (Some(mean), Some(stdev)) = (mean(&computes_s), stdev(&computes_s)) {
        let configured = python_dict(&scope.plan.train.compute);
        log.output(
            &ended,
            &format!("{subject} Computation time per step (second): {mean:.4}+/-{stdev:.4} (set value: {configured})"),
        );
    }
}

/// Local wall-clock time at `ns` after the start of the run; empty if unknown.
fn stamp_at(epoch: &EpochRecord, ns: u64) -> String {
    wall_clock_at(epoch, ns).unwrap_or_default()
}

/// Lines after the last epoch.
fn closing_lines(log: &mut LogText, record: &Record, evaluations: &Evaluations, folder: &Path) {
    let train = Averages::new(record, &SAMPLES_WINDOWED, &NOMINAL_WINDOWED);
    let mut numbers = Scope::whole_epochs(record).map(|scope| scope.epoch.number);
    let is_empty = numbers.any(|number| evaluations.is_empty_after(number));
    let eval = match &evaluations.record {
        // DLIO's throughput of an evaluation includes all of its steps.
        Some(evaluations) => Averages::new(evaluations, &SAMPLES_WHOLE, &NOMINAL_WHOLE),
        None if is_empty => Averages::for_empty_evaluations(record.plan.metric.au_target_percent),
        None => Averages::default(),
    };
    let save = CheckpointAverages::new(record, CheckpointKind::Save);
    let load = CheckpointAverages::new(record, CheckpointKind::Load);
    log.output(&record.ended, &format!("Saved outputs in {}", folder.display()));
    log.output("", "Averaged metric over all steps/epochs");
    log.line(RULE);
    log.line(&format!("[METRIC] Number of Simulated Accelerators: {} ", record.plan.accelerators));
    for (label, value) in [
        ("Training Accelerator Utilization [AU] (%)", train.au),
        ("Training Throughput (samples/second)", train.samples_per_second),
        ("Training I/O Throughput (MB/second)", train.mib_per_second),
        ("train_au_meet_expectation", train.meets_expectation),
        ("Checkpoint save duration (seconds)", save.duration_s),
        ("Checkpoint save I/O Throughput (GB/second)", save.gib_per_second),
        ("Checkpoint load duration (seconds)", load.duration_s),
        ("Checkpoint load I/O Throughput (GB/second)", load.gib_per_second),
        ("Eval Accelerator Utilization [AU] (%)", eval.au),
        ("Eval Throughput (samples/second)", eval.samples_per_second),
        ("Eval Throughput (MB/second)", eval.mib_per_second),
        ("eval_au_meet_expectation", eval.meets_expectation),
    ] {
        if let Some(value) = value {
            log.line(&format!("[METRIC] {label}: {value}"));
        }
    }
    log.line(RULE);
    log.line("");
}

/// Averages of training or evaluation, as text. `None` if unknown.
#[derive(Default)]
struct Averages {
    au: Option<String>,
    samples_per_second: Option<String>,
    mib_per_second: Option<String>,
    meets_expectation: Option<String>,
}

impl Averages {
    fn new(record: &Record, samples: &Metric, bytes: &Metric) -> Self {
        Averages {
            au: average_over_epochs(record, &AU_WINDOWED, 1.0),
            samples_per_second: average_over_epochs(record, samples, 1.0),
            mib_per_second: average_over_epochs(record, bytes, MIB),
            meets_expectation: meets_expectation(&Derived::new(record)).map(str::to_string),
        }
    }

    /// Averages of evaluations without files, which are 0 as in DLIO.
    fn for_empty_evaluations(au_target_percent: f64) -> Self {
        let zero = || Some("0.0000 (0.0000)".to_string());
        Averages {
            au: zero(),
            samples_per_second: zero(),
            mib_per_second: zero(),
            meets_expectation: Some(summary::expectation_text(au_target_percent, 0.0).to_string()),
        }
    }
}

/// Mean over the run and standard deviation over epochs, both divided by `unit`.
fn average_over_epochs(record: &Record, metric: &Metric, unit: f64) -> Option<String> {
    let mean = metric.run_value(record)? / unit;
    let stdev = metric.stdev_over_epochs(record)? / unit;
    Some(mean_and_stdev(mean, stdev))
}

fn mean_and_stdev(mean: f64, stdev: f64) -> String {
    format!("{mean:.4} ({stdev:.4})")
}

/// Averages of checkpoints, as text. `None` if unknown.
#[derive(Default)]
struct CheckpointAverages {
    duration_s: Option<String>,
    gib_per_second: Option<String>,
}

impl CheckpointAverages {
    fn new(record: &Record, kind: CheckpointKind) -> Self {
        // DLIO writes these lines only if the number of checkpoints is configured; in feedrate, only checkpoint-only runs configure it.
        if !record.plan.is_checkpoint_only() {
            return CheckpointAverages::default();
        }
        let figures = dlio_figures(record, kind);
        let duration = figures.duration_s.zip(figures.duration_stdev_s);
        let rate = figures.gib_per_second.zip(figures.gib_per_second_stdev);
        CheckpointAverages {
            duration_s: duration.map(|(mean, stdev)| mean_and_stdev(mean, stdev)),
            gib_per_second: rate.map(|(mean, stdev)| mean_and_stdev(mean, stdev)),
        }
    }
}

/// Python's representation of DLIO's `computation_time`.
fn python_dict(time: &TimeSpec) -> String {
    match time {
        TimeSpec::None => "{}".into(),
        TimeSpec::Constant { mean } => format!("{{'mean': {mean:?}}}"),
        TimeSpec::Normal { mean, stdev } => format!("{{'mean': {mean:?}, 'stdev': {stdev:?}}}"),
        TimeSpec::Uniform { min, max } => {
            format!("{{'type': 'uniform', 'min': {min:?}, 'max': {max:?}}}")
        }
        TimeSpec::Gamma { shape, scale } => {
            format!("{{'type': 'gamma', 'shape': {shape:?}, 'scale': {scale:?}}}")
        }
        TimeSpec::Exponential { scale } => format!("{{'type': 'exponential', 'scale': {scale:?}}}"),
        TimeSpec::Poisson { lam } => format!("{{'type': 'poisson', 'lam': {lam:?}}}"),
    }
}
