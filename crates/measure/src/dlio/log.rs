//! `dlio.log`: the lines DLIO's rank 0 writes, made from the record once the run is over. Lines whose numbers cannot be known are
//! left out.

use super::epoch_stats::{duration, end_of, wall_at};
use super::host::{gib, potential_caching};
use super::summary::{self, meets_expectation};
use super::{Evaluations, Invocation};
use crate::checkpoints::dlio_four;
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

/// `dlio.log` as far as `record` goes; with the `folder` of the results, to its end.
pub fn log(record: &Record, invocation: &Invocation, folder: Option<&Path>) -> String {
    let evaluations = Evaluations::new(record, invocation.empty_evaluations);
    let mut log = LogText(String::new());
    start(&mut log, record, invocation);
    for scope in Scope::each(record) {
        if record.plan.is_checkpoint_only() {
            checkpoints(&mut log, scope, CheckpointKind::Save);
            checkpoints(&mut log, scope, CheckpointKind::Load);
            continue;
        }
        epoch(&mut log, scope);
        if let Some(evaluation) = evaluations.after(scope.epoch.number) {
            evaluation_lines(&mut log, evaluation);
        }
        if evaluations.is_empty_after(scope.epoch.number) {
            empty_evaluation_lines(&mut log, scope.epoch);
        }
    }
    if let Some(folder) = folder {
        end(&mut log, record, &evaluations, folder);
        if !invocation.omits_rank_files {
            log.output(&record.ended, "outputs saved in RANKID_output.json");
        }
    }
    log.0
}

/// `dlio.log` of a run that only makes data.
pub fn generation_log(processes: u32, invocation: &Invocation) -> String {
    let mut log = LogText(String::new());
    if let Some((began, _)) = &invocation.generation {
        running(&mut log, began, &invocation.doing, processes);
    }
    before(&mut log, invocation);
    log.0
}

fn running(log: &mut LogText, at: &str, doing: &[String], processes: u32) {
    let doing = doing.join(" & ");
    log.output(at, &format!("Running DLIO [{doing}] with {processes} process(es)"));
}

/// Lines before the first epoch.
fn before(log: &mut LogText, invocation: &Invocation) {
    for warning in &invocation.warnings {
        log.line(&format!("[WARNING] {warning}"));
    }
    if let Some((began, ended)) = &invocation.generation {
        log.output(began, "Starting data generation");
        if !ended.is_empty() {
            log.output(ended, "Generation done");
        }
    }
}

struct LogText(String);

impl LogText {
    fn output(&mut self, stamp: &str, text: &str) {
        let between = if stamp.is_empty() { "" } else { " " };
        self.line(&format!("[OUTPUT] {stamp}{between}{text}"));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Utilisation and rate, where they are known.
    fn rates(&mut self, stamp: &str, what: &str, au: Option<f64>, rate: Option<f64>) {
        if let Some(au) = au {
            self.output(stamp, &format!("{what} Accelerator Utilization [AU] (%): {au:.4}"));
        }
        if let Some(rate) = rate {
            self.output(stamp, &format!("{what} Throughput (samples/second): {rate:.4}"));
        }
    }
}

fn start(log: &mut LogText, record: &Record, invocation: &Invocation) {
    let (plan, at) = (&record.plan, &record.started);
    let began = invocation.generation.as_ref().map_or(at, |(began, _)| began);
    let doing = [
        (!plan.is_checkpoint_only()).then_some("Training"),
        plan.evaluation.as_ref().map(|_| "Evaluation"),
        plan.checkpoint.as_ref().map(|_| "Checkpointing"),
    ];
    let doing: Vec<_> = doing.into_iter().flatten().map(str::to_string).collect();
    let doing = if invocation.doing.is_empty() { &doing } else { &invocation.doing };
    running(log, began, doing, plan.accelerators);
    before(log, invocation);
    if let Some(checkpoint) = &plan.checkpoint {
        checkpoint_sizes(log, at, checkpoint);
    }
    if plan.is_checkpoint_only() {
        return;
    }
    if potential_caching(&Derived::new(record), &record.system) == Some(1) {
        log.line("[WARNING] The amount of dataset is smaller than the host memory; data might be cached after the first epoch. Increase the size of dataset to eliminate the caching effect!!!");
    }
    log.output(
        at,
        &format!(
            "Max steps per epoch: {} = {} * {} / {} / {} (samples per file * num files / batch size / comm size)",
            whole_steps(plan),
            plan.dataset.samples_per_file,
            plan.dataset.files_train,
            plan.loader.batch_size,
            plan.accelerators
        ),
    );
    if let Some(total) = plan.train.total_steps {
        let steps = plan.train.steps();
        log.output(
            at,
            &format!("Total training steps is set to be {total}. Will only run up to {steps}"),
        );
    }
    if let Some(evaluation) = &plan.evaluation {
        let (samples, files) = (plan.dataset.samples_per_file, plan.dataset.files_eval);
        let (steps, batch_size) = (evaluation.train.steps_per_epoch, evaluation.loader.batch_size);
        let text = format!(
            "Steps per eval: {steps} = {samples} * {files} / {batch_size} / {} (samples per file * num files / batch size eval / comm size)",
            plan.accelerators
        );
        log.output(at, &text);
    }
}

/// Steps of an epoch that nothing cuts short.
fn whole_steps(plan: &Plan) -> u64 {
    schedule::steps_of_training(&plan.dataset, &plan.loader, plan.accelerators)
}

fn checkpoint_sizes(log: &mut LogText, at: &str, checkpoint: &CheckpointPlan) {
    let (state, total) = (&checkpoint.state, checkpoint.total_bytes);
    let optimizer = state.optimizer_bytes();
    let subset = if state.is_subset() { " (subset)" } else { "" };
    for (what, bytes) in [
        ("Model size", total.saturating_sub(optimizer)),
        ("Optimizer state size", optimizer),
        ("Total checkpoint size", total),
    ] {
        log.output(at, &format!("{what}: {:.6} GB {subset}", gib(bytes)));
    }
}

fn epoch(log: &mut LogText, scope: Scope) {
    let (epoch, train) = (scope.epoch, &scope.plan.train);
    let number = epoch.number;
    let planned = train.steps_in_epoch(number.max(1));
    let steps = if planned < whole_steps(scope.plan) {
        format!("Overriding number of steps to {planned}.")
    } else {
        format!("{planned} steps expected")
    };
    log.output(&epoch.started, &format!("Starting epoch {number}: {steps}"));
    if let Some(first) = epoch.accelerators.first() {
        for (i, (block, window)) in first.blocks.iter().zip(scope.windows(first)).enumerate() {
            log.output(&stamp(epoch, block.start_ns), &format!("Starting block {}", i + 1));
            block_lines(log, scope, i + 1, block, window);
        }
    }
    checkpoints(log, scope, CheckpointKind::Save);
    let (end_ns, ended) = end_of(epoch);
    let length_s = duration(epoch.start_ns, end_ns);
    let ending =
        format!("Ending epoch {number} - {} steps completed in {length_s} s", scope.steps());
    log.output(&ended, &ending);
}

fn evaluation_lines(log: &mut LogText, scope: Scope) {
    let epoch = scope.epoch;
    let planned = scope.plan.train.steps_per_epoch;
    log.output(&epoch.started, &format!("Starting eval - {planned} steps expected"));
    let length_s = duration(epoch.start_ns, epoch.end_ns);
    let ending = format!("Ending eval - {} steps completed in {length_s} s", scope.steps());
    log.output(&epoch.ended, &ending);
    let what = format!("Epoch {} [Eval]", epoch.number);
    let first = epoch.accelerators.first();
    let window = first.and_then(|accelerator| scope.windows(accelerator).next());
    let au = window.and_then(block_au_percent);
    log.rates(&epoch.ended, &what, au, SAMPLES_WHOLE.of_epoch(scope));
}

fn empty_evaluation_lines(log: &mut LogText, epoch: &EpochRecord) {
    let (_, at) = end_of(epoch);
    log.output(&at, "Starting eval - 0 steps expected");
    log.output(&at, &format!("Ending eval - 0 steps completed in {} s", duration(0, 0)));
    log.rates(&at, &format!("Epoch {} [Eval]", epoch.number), Some(0.0), Some(0.0));
}

fn checkpoints(log: &mut LogText, scope: Scope, kind: CheckpointKind) {
    for (i, checkpoint) in scope.epoch.checkpoints_of(kind).enumerate() {
        checkpoint_lines(log, scope, i + 1, checkpoint);
    }
}

fn checkpoint_lines(log: &mut LogText, scope: Scope, number: usize, checkpoint: &CheckpointRecord) {
    let (epoch, step) = (scope.epoch.number, checkpoint.after_step);
    let [doing, done] = match checkpoint.kind {
        CheckpointKind::Save => ["saving", "Saved"],
        CheckpointKind::Load => ["loading", "Loaded"],
    };
    let started =
        format!("Starting {doing} checkpoint {number} after total step {step} for epoch {epoch}");
    log.output(&stamp(scope.epoch, checkpoint.start_ns), &started);
    let own = checkpoint.ranks.iter().find(|own| own.rank == 0);
    if let Some((own, optimizer_ns)) = own.zip(checkpoint.optimizer_ns) {
        // In DLIO's order, whatever ours.
        let model_ns = own.duration_ns().saturating_sub(optimizer_ns);
        for (part, end_ns, ns) in
            [("model", own.start_ns + model_ns, model_ns), ("optimizer", own.end_ns, optimizer_ns)]
        {
            let length_s = ns as f64 / 1e9;
            let line = format!("{done} {part} checkpoint in {length_s:.4} seconds");
            if ns > 0 {
                log.output(&stamp(scope.epoch, end_ns), &line);
            }
        }
    }
    let rate = checkpoint
        .gib_per_second()
        .map_or(String::new(), |rate| format!("; Throughput: {rate:.4} GB/s"));
    let length_s = checkpoint.duration_s();
    let ended =
        format!("Finished {doing} checkpoint {number} for epoch {epoch} in {length_s:.4} s{rate}");
    log.output(&stamp(scope.epoch, checkpoint.end_ns), &ended);
}

/// Utilisation of the first accelerator, and its throughput times the number of accelerators, as in DLIO.
fn block_lines(log: &mut LogText, scope: Scope, number: usize, block: &Block, window: Window) {
    let ended = stamp(scope.epoch, block.end_ns);
    let length_s = duration(block.start_ns, block.end_ns);
    log.output(
        &ended,
        &format!("Ending block {number} - {} steps completed in {length_s} s", block.steps()),
    );
    let what = format!("Epoch {} - Block {number} [Training]", scope.epoch.number);
    let rate = block_samples_per_second(scope, window);
    let rate_of_all = rate.map(|rate| rate * f64::from(scope.plan.accelerators));
    log.rates(&ended, &what, block_au_percent(window), rate_of_all);
    let computes_s: Vec<f64> = window.computes_ns().iter().map(|&ns| seconds(ns)).collect();
    if let (Some(mean), Some(stdev)) = (mean(&computes_s), stdev(&computes_s)) {
        let set = python_dict(&scope.plan.train.compute);
        log.output(
            &ended,
            &format!("{what} Computation time per step (second): {mean:.4}+/-{stdev:.4} (set value: {set})"),
        );
    }
}

/// Local wall-clock time of a moment of an epoch; empty where it is not known.
fn stamp(epoch: &EpochRecord, ns: u64) -> String {
    wall_at(epoch, ns).unwrap_or_default()
}

fn end(log: &mut LogText, record: &Record, evaluations: &Evaluations, folder: &Path) {
    let [au, samples, bytes, meets] = averages(record, [&SAMPLES_WINDOWED, &NOMINAL_WINDOWED]);
    let evaluation = evaluations.record.as_ref();
    // DLIO leaves no step of an evaluation out of its throughput.
    let evaluation = evaluation.map(|record| averages(record, [&SAMPLES_WHOLE, &NOMINAL_WHOLE]));
    let mut numbers = Scope::all(record).map(|scope| scope.epoch.number);
    let is_empty = numbers.any(|number| evaluations.is_empty_after(number));
    let empty = is_empty.then(|| {
        let meets = summary::meets(record.plan.metric.au_target_percent, 0.0);
        ["0.0000 (0.0000)", "0.0000 (0.0000)", "0.0000 (0.0000)", meets]
            .map(|text| Some(text.to_string()))
    });
    let [eval_au, eval_samples, eval_bytes, eval_meets] = evaluation.or(empty).unwrap_or_default();
    let [save_s, save_rate] = checkpoint_averages(record, CheckpointKind::Save);
    let [load_s, load_rate] = checkpoint_averages(record, CheckpointKind::Load);
    log.output(&record.ended, &format!("Saved outputs in {}", folder.display()));
    log.output("", "Averaged metric over all steps/epochs");
    log.line(RULE);
    log.line(&format!("[METRIC] Number of Simulated Accelerators: {} ", record.plan.accelerators));
    for (what, value) in [
        ("Training Accelerator Utilization [AU] (%)", au),
        ("Training Throughput (samples/second)", samples),
        ("Training I/O Throughput (MB/second)", bytes),
        ("train_au_meet_expectation", meets),
        ("Checkpoint save duration (seconds)", save_s),
        ("Checkpoint save I/O Throughput (GB/second)", save_rate),
        ("Checkpoint load duration (seconds)", load_s),
        ("Checkpoint load I/O Throughput (GB/second)", load_rate),
        ("Eval Accelerator Utilization [AU] (%)", eval_au),
        ("Eval Throughput (samples/second)", eval_samples),
        ("Eval Throughput (MB/second)", eval_bytes),
        ("eval_au_meet_expectation", eval_meets),
    ] {
        if let Some(value) = value {
            log.line(&format!("[METRIC] {what}: {value}"));
        }
    }
    log.line(RULE);
    log.line("");
}

/// Utilisation, samples and MB per second, and whether the first is enough.
fn averages(record: &Record, [samples, bytes]: [&Metric; 2]) -> [Option<String>; 4] {
    [
        over_epochs(record, &AU_WINDOWED, 1.0),
        over_epochs(record, samples, 1.0),
        over_epochs(record, bytes, MIB),
        meets_expectation(&Derived::new(record)).map(str::to_string),
    ]
}

fn over_epochs(record: &Record, metric: &Metric, unit: f64) -> Option<String> {
    let (mean, stdev) = (metric.of_run(record)?, metric.stdev_over_epochs(record)?);
    Some(format!("{:.4} ({:.4})", mean / unit, stdev / unit))
}

/// Duration and rate. DLIO has these lines where the number of checkpoints is given, as in runs of nothing else.
fn checkpoint_averages(record: &Record, kind: CheckpointKind) -> [Option<String>; 2] {
    if !record.plan.is_checkpoint_only() {
        return [None, None];
    }
    let [rate, rate_stdev, duration_s, stdev_s] = dlio_four(record, kind);
    [duration_s.zip(stdev_s), rate.zip(rate_stdev)]
        .map(|pair| pair.map(|(mean, stdev)| format!("{mean:.4} ({stdev:.4})")))
}

/// As Python prints DLIO's `computation_time`.
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
