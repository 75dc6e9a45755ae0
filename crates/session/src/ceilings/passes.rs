//! Short runs for measurements: each computes nothing, ends when its time is over, and is not kept.

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

/// Interval between two looks at a run that is waited for.
const LOOK: Duration = Duration::from_millis(2);

/// Runs of one kind, together.
#[derive(Debug, Default)]
pub(super) struct Passes {
    pub(super) samples: u64,
    pub(super) ns: u64,
    /// Counters of runs that came to their end, if any did: where time cuts a run short, some reads are of samples that are none.
    pub(super) io: IoCounters,
    /// Batches that the training took of these.
    pub(super) batches: u64,
    device_bytes: u64,
    has_whole: bool,
}

/// Cost of a sample in operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerSample {
    /// Bytes.
    pub(super) bytes: f64,
    /// Fewer, where the page cache gives some of them again.
    pub(super) device_bytes: f64,
    /// Opens.
    pub(super) opens: f64,
    /// Bytes of a read, on average.
    pub(super) request_bytes: f64,
}

impl Passes {
    /// Take in a run that was `elapsed` on its way. Returns how long it counts: its whole epochs, else what there is of the first.
    pub(super) fn add(&mut self, record: &Record, elapsed: Duration) -> u64 {
        let io = counters_of_run(record);
        let is_whole = |scope: &Scope<'_>| scope.steps() == record.plan.train.steps_per_epoch;
        let whole: Vec<Scope<'_>> = Scope::all(record).filter(is_whole).collect();
        let ns: u64 = whole.iter().map(|scope| scope.epoch.end_ns - scope.epoch.start_ns).sum();
        let steps = whole.into_iter().map(Scope::steps).sum::<u64>();
        let batches = steps * u64::from(record.plan.accelerators);
        let (samples, ns) = if steps > 0 {
            (batches * record.plan.loader.batch_size, ns)
        } else {
            (io.samples, elapsed.as_nanos() as u64)
        };
        (self.samples, self.ns) = (self.samples + samples, self.ns + ns);
        if record.complete && !self.has_whole {
            (self.io, self.batches, self.device_bytes) = (IoCounters::default(), 0, 0);
            self.has_whole = true;
        }
        if record.complete || !self.has_whole {
            self.io.add(&io);
            let steps: u64 = Scope::each(record).map(Scope::steps).sum();
            self.batches += steps * u64::from(record.plan.accelerators);
            let hosts = record.epochs.iter().map(|epoch| &epoch.host);
            let device_bytes = hosts.filter_map(|host| host.process_device_read_bytes);
            self.device_bytes += device_bytes.sum::<u64>();
        }
        ns
    }

    pub(super) fn per_sample(&self) -> Option<PerSample> {
        let IoCounters { opens, reads, read_bytes, samples, .. } = self.io;
        // Some file systems do not report the bytes of their device.
        let device_bytes = Some(self.device_bytes).filter(|bytes| *bytes > 0).unwrap_or(read_bytes);
        let device_bytes = device_bytes.min(read_bytes);
        let is_known = samples > 0 && reads > 0 && read_bytes > 0;
        is_known.then(|| PerSample {
            bytes: read_bytes as f64 / samples as f64,
            device_bytes: device_bytes as f64 / samples as f64,
            opens: opens as f64 / samples as f64,
            request_bytes: read_bytes as f64 / reads as f64,
        })
    }
}

/// A run that ends after `limit`, without a step yet after `patience`, and how long it was on the way.
pub(super) fn run(
    plan: &Plan,
    dataset: &OpenDataset,
    [limit, patience]: [Duration; 2],
    signals: &Signals,
    listener: &dyn Listener,
) -> anyhow::Result<(Record, Duration)> {
    let run_signals = Signals { leave: Arc::clone(&signals.leave), ..Signals::default() };
    let ranks = Ranks::alone(plan.accelerators);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            let mut begun = None;
            // Until the last sample that counts is there: workers go on until they are stopped.
            while !is_over.load(Relaxed) {
                std::thread::sleep(LOOK);
                if run_signals.live.steps.load(Relaxed) == 0 {
                    continue;
                }
                let elapsed = begun.get_or_insert_with(Instant::now).elapsed();
                let most = if run_signals.live.step.load(Relaxed) > 0 { limit } else { patience };
                let is_late = most <= elapsed;
                let wanted = is_late || signals.interrupted.load(Relaxed);
                run_signals.interrupted.fetch_or(wanted, Relaxed);
            }
            begun.map_or(Duration::ZERO, |begun: Instant| begun.elapsed())
        };
        let watching = std::thread::Builder::new().spawn_scoped(scope, watch);
        let watching = watching.context("cannot start the thread that ends a run")?;
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
        let elapsed = watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.map(|()| (execution.record, elapsed))
    })
}

/// Ignores what happens in a run.
struct NoObserver;

impl RunObserver for NoObserver {
    fn epoch(&mut self, _: &Record) {}
    fn checkpoint(&mut self, _: &Record) {}
}
