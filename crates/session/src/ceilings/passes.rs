//! Short runs for measurements, without compute. Each ends after a time limit, and is not saved.

use crate::dataset::OpenDataset;
use crate::execute::{self, Execution, RunObserver};
use anyhow::Context;
use feedrate_measure::metric::counters_of_run;
use feedrate_measure::record::{IoCounters, Record};
use feedrate_measure::window::Scope;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::listener::{Listener, WithoutProgress};
use feedrate_spec::plan::Plan;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Interval between checks of a run's progress.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// The sum of several runs with the same plan.
#[derive(Debug, Default)]
pub(super) struct Passes {
    pub(super) samples: u64,
    pub(super) ns: u64,
    /// Counters of complete runs, or of all runs if none is complete. In an interrupted run, some reads belong to unfinished samples.
    pub(super) io: IoCounters,
    /// Number of batches that training received in the runs of `io`.
    pub(super) batches: u64,
    /// Bytes that came from the device in the runs of `io`; `None` if unknown for one of them.
    device_bytes: Option<u64>,
    has_complete: bool,
}

/// Mean costs of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerSample {
    /// Bytes read.
    pub(super) bytes: f64,
    /// Bytes read from the device, which are fewer if the page cache serves some; `None` if unknown.
    pub(super) device_bytes: Option<f64>,
    /// Number of opens.
    pub(super) opens: f64,
    /// Mean bytes of a read.
    pub(super) request_bytes: f64,
}

impl Passes {
    /// Returns the sum of no runs.
    pub(super) fn new() -> Self {
        Passes { device_bytes: Some(0), ..Passes::default() }
    }

    /// Adds a run that took `elapsed`. Returns the time that counts: the time of its complete epochs, or
    /// `elapsed` if it has no complete epoch.
    pub(super) fn add(&mut self, record: &Record, elapsed: Duration) -> u64 {
        let io = counters_of_run(record);
        let is_complete = |scope: &Scope<'_>| scope.steps() == record.plan.train.steps_per_epoch;
        let complete: Vec<Scope<'_>> = Scope::whole_epochs(record).filter(is_complete).collect();
        let complete_ns: u64 =
            complete.iter().map(|scope| scope.epoch.end_ns - scope.epoch.start_ns).sum();
        let steps = complete.into_iter().map(Scope::steps).sum::<u64>();
        let batches = steps * u64::from(record.plan.accelerators);
        let (samples, ns) = if steps > 0 {
            (batches * record.plan.loader.batch_size, complete_ns)
        } else {
            (io.samples, elapsed.as_nanos() as u64)
        };
        self.samples += samples;
        self.ns += ns;
        if record.complete && !self.has_complete {
            self.io = IoCounters::default();
            self.batches = 0;
            self.device_bytes = Some(0);
            self.has_complete = true;
        }
        if record.complete || !self.has_complete {
            self.io.add(&io);
            let all_steps: u64 = Scope::all_epochs(record).map(Scope::steps).sum();
            self.batches += all_steps * u64::from(record.plan.accelerators);
            let hosts = record.epochs.iter().map(|epoch| &epoch.host);
            let device_bytes: Option<u64> = hosts.map(|host| host.process_device_read_bytes).sum();
            self.device_bytes = self.device_bytes.zip(device_bytes).map(|(sum, bytes)| sum + bytes);
        }
        ns
    }

    /// Returns the mean costs of a sample; `None` if nothing was read.
    pub(super) fn per_sample(&self) -> Option<PerSample> {
        let IoCounters { opens, reads, read_bytes, samples, .. } = self.io;
        let device_bytes = self.device_bytes.map(|bytes| bytes.min(read_bytes));
        let is_known = samples > 0 && reads > 0 && read_bytes > 0;
        is_known.then(|| PerSample {
            bytes: read_bytes as f64 / samples as f64,
            device_bytes: device_bytes.map(|bytes| bytes as f64 / samples as f64),
            opens: opens as f64 / samples as f64,
            request_bytes: read_bytes as f64 / reads as f64,
        })
    }
}

/// Runs `plan` for `limit` from the start of its first step, or for `first_step_timeout` if no step finishes. Returns the record
/// and the duration.
pub(super) fn run(
    plan: &Plan,
    dataset: &OpenDataset,
    [limit, first_step_timeout]: [Duration; 2],
    signals: &Signals,
    listener: &dyn Listener,
) -> anyhow::Result<(Record, Duration)> {
    let run_signals = Signals { abandon: Arc::clone(&signals.abandon), ..Signals::default() };
    let ranks = Ranks::single_process(plan.accelerators);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            let mut first_start = None;
            // Workers continue until they are stopped, also after the last sample that counts.
            while !is_over.load(Relaxed) {
                std::thread::sleep(CHECK_INTERVAL);
                if run_signals.live.steps.load(Relaxed) == 0 {
                    continue;
                }
                let elapsed = first_start.get_or_insert_with(Instant::now).elapsed();
                let has_steps = run_signals.live.step.load(Relaxed) > 0;
                let elapsed_max = if has_steps { limit } else { first_step_timeout };
                let is_due = elapsed_max <= elapsed || signals.interrupted.load(Relaxed);
                run_signals.interrupted.fetch_or(is_due, Relaxed);
            }
            first_start.map_or(Duration::ZERO, |first_start: Instant| first_start.elapsed())
        };
        let watcher = std::thread::Builder::new()
            .spawn_scoped(scope, watch)
            .context("cannot start the thread that ends a run")?;
        let mut execution = Execution {
            ranks: &ranks,
            record: execute::new_record(plan, Some(dataset), None),
            results: None,
            observer: &mut NoObserver,
            listener: &WithoutProgress(listener),
            signals: &run_signals,
            trace: None,
            unsaved: None,
        };
        let outcome = execution.run(plan, Some(dataset));
        is_over.store(true, Relaxed);
        let elapsed = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.map(|()| (execution.record, elapsed))
    })
}

/// Ignores all events of a run.
struct NoObserver;

impl RunObserver for NoObserver {
    fn after_epoch(&mut self, _: &Record) {}
    fn after_checkpoint(&mut self, _: &Record) {}
}
