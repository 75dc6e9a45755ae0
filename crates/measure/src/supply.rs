//! How well a run's accelerators were supplied with data. Answers are based on these facts, which need the times of every step. Apart from
//! the verdict, this module judges nothing.

use crate::budget::TimeBudget;
use crate::checkpoints::CheckpointSummary;
use crate::derived::Derived;
use crate::doubt::Doubt;
use crate::metric::{
    self, AU_ALL_STEPS, AU_SUSTAINED, COMPUTE_S, Metric, REQUESTS_IN_FLIGHT, SteadyReads,
    steady_reads,
};
use crate::noise::StepTimes;
use crate::record::{AcceleratorEpoch, Record};
use crate::slow_accelerators::SlowAccelerators;
use crate::stats::Interval;
use crate::transfers::Retries;
use crate::verdict::{self, Verdict};
use crate::waits::{WaitPart, Waits};
use crate::watched_io::WatchedIo;
use crate::window::{Scope, seconds};
use feedrate_spec::workload::TimeSpec;
use schemars::JsonSchema;
use serde::Serialize;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The run finished as planned.
    Complete,
    /// A signal or a limit stopped the run.
    Interrupted,
    /// The run failed, was killed, or is still going on.
    Incomplete,
}

/// How the accelerators of a run were supplied with data. `None` means unknown.
#[derive(Clone, Debug)]
pub struct Supply {
    /// How the run ended.
    pub end: RunEnd,
    /// Whether the run trained; `false` if it only wrote or read checkpoints.
    pub trains: bool,
    /// The bottleneck, with the doubts of the record taken into account.
    pub verdict: Verdict,
    /// The metric that decides whether accelerators were fed: sustained utilisation or, if that cannot be measured, utilisation over all
    /// steps. `None` if no accelerator is known to have computed.
    pub deciding_metric: Option<&'static Metric>,
    /// Whether memory served more than half of the bytes, or may have served them.
    pub is_memory_served: bool,
    /// The 95 % interval of `au_all_steps` if that is the deciding metric. It assumes independent steps; `None` for fewer than two steps.
    pub interval: Option<Interval>,
    /// The read rate at which no accelerator would wait.
    pub needed_bytes_per_second: Option<f64>,
    /// The read rate in the window.
    pub delivered_bytes_per_second: Option<f64>,
    /// The main cause of waiting, with its share.
    pub wait: Option<WaitPart>,
    /// Accelerators that finish last far more often than the others.
    pub slow_accelerators: Option<SlowAccelerators>,
    /// The parts of the run's time.
    pub time_budget: Option<TimeBudget>,
    /// The utilisation over all steps of all evaluations, in percent.
    pub evaluation_au_percent: Option<f64>,
    /// Checkpoints that were written and read; `None` if there were none.
    pub checkpoints: Option<CheckpointSummary>,
    /// The part of the run in which rates were measured.
    pub window: Option<AnswerWindow>,
    /// Whether the storage is the problem of a watched training loop; `None` for other runs.
    pub watched_io: Option<WatchedIo>,
    /// Requests that workers had in flight; `None` if each had one at a time.
    pub requests_in_flight: Option<RequestsInFlight>,
    /// Requests to an object store that were repeated; `None` if there were none.
    pub retries: Option<Retries>,
}

/// Requests that a worker had in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestsInFlight {
    /// The planned maximum: `reader.in_flight`.
    pub limit: u32,
    /// The measured mean over the workers and the time of the epochs; `null` if it is unknown.
    pub mean: Option<f64>,
}

/// The part of a run in which rates were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnswerWindow {
    /// Number of measured epochs.
    pub epochs: u64,
    /// Steps of one accelerator in all measured epochs.
    pub steps: u64,
    /// Duration of these steps, mean over accelerators.
    pub seconds: f64,
}

impl Supply {
    /// Analyses a record with its doubts.
    pub fn new(derived: &Derived, doubts: &[Doubt]) -> Self {
        let record = derived.record;
        let deciding_metric = deciding_metric(derived);
        let is_deciding = |metric: &Metric| deciding_metric.is_some_and(|au| au.id == metric.id);
        let rates = Rates::new(record, is_deciding(&AU_SUSTAINED));
        let interval =
            if is_deciding(&AU_ALL_STEPS) { StepTimes::new(record).interval() } else { None };
        Supply {
            end: match record.stopped_because.as_deref() {
                _ if record.complete => RunEnd::Complete,
                Some("interrupted") => RunEnd::Interrupted,
                _ => RunEnd::Incomplete,
            },
            trains: !record.plan.is_checkpoint_only(),
            verdict: verdict::judge(derived, doubts),
            is_memory_served: derived.is_memory_served(),
            deciding_metric,
            interval,
            needed_bytes_per_second: rates.and_then(Rates::needed_bytes_per_second),
            delivered_bytes_per_second: rates.and_then(Rates::delivered_bytes_per_second),
            wait: Waits::new(derived).and_then(|waits| waits.main_part()),
            slow_accelerators: SlowAccelerators::new(record),
            time_budget: TimeBudget::new(derived),
            evaluation_au_percent: record
                .evaluation_record()
                .and_then(|evaluations| AU_ALL_STEPS.run_value(&evaluations)),
            checkpoints: CheckpointSummary::new(record),
            window: rates.map(|rates| rates.window),
            watched_io: WatchedIo::new(derived, verdict::is_fed(derived)),
            requests_in_flight: match record.plan.loader.in_flight() {
                1 => None,
                limit => Some(RequestsInFlight { limit, mean: derived.value(&REQUESTS_IN_FLIGHT) }),
            },
            retries: Retries::new(derived),
        }
    }
}

/// The utilisation that decides an answer: what the storage can sustain, else all steps; `None` if nothing was computed.
pub fn deciding_metric(derived: &Derived) -> Option<&'static Metric> {
    let computed = derived.value(&COMPUTE_S).is_some_and(|compute_s| compute_s > 0.0);
    let known = |metric: &&Metric| computed && derived.value(metric).is_some();
    [&AU_SUSTAINED, &AU_ALL_STEPS].into_iter().find(known)
}

/// Sums over the measured epochs.
#[derive(Clone, Copy)]
struct Rates {
    window: AnswerWindow,
    /// Bytes that all accelerators read in the window.
    bytes: u64,
    /// Bytes that all accelerators read in the measured epochs.
    epochs_bytes: u64,
    /// Duration of the measured epochs if no accelerator waited for data.
    compute_s: f64,
}

impl Rates {
    /// Sums over the windows of the sustained utilisation if `is_sustained`, otherwise over all steps. `None` if no step was finished.
    fn new(record: &Record, is_sustained: bool) -> Option<Self> {
        let window = AnswerWindow { epochs: 0, steps: 0, seconds: 0.0 };
        let mut sums = Rates { window, bytes: 0, epochs_bytes: 0, compute_s: 0.0 };
        for scope in Scope::whole_epochs(record) {
            let accelerators = &scope.epoch.accelerators;
            if scope.steps() == 0 || is_sustained && metric::sustained_percent(scope).is_err() {
                continue;
            }
            let reads = |accelerator| {
                if is_sustained {
                    steady_reads(scope, accelerator)
                } else {
                    reads_of_blocks(accelerator)
                }
            };
            let reads: Vec<SteadyReads> = accelerators.iter().map(reads).collect::<Option<_>>()?;
            let mean_s = |sum_ns: u64| seconds(sum_ns) / accelerators.len() as f64;
            sums.window.epochs += 1;
            sums.window.steps += reads.iter().map(|read| read.steps).min()?;
            sums.window.seconds += mean_s(reads.iter().map(|read| read.ns).sum());
            sums.bytes += reads.iter().map(|read| read.bytes).sum::<u64>();
            sums.epochs_bytes +=
                accelerators.iter().map(|accelerator| accelerator.io.read_bytes).sum::<u64>();
            sums.compute_s += slowest_compute_s(scope);
        }
        (sums.window.epochs > 0).then_some(sums)
    }

    fn delivered_bytes_per_second(self) -> Option<f64> {
        per_second(self.bytes, self.window.seconds)
    }

    /// The rate at which reading takes as long as computing.
    fn needed_bytes_per_second(self) -> Option<f64> {
        per_second(self.epochs_bytes, self.compute_s)
    }
}

/// Duration of an epoch that never waits for data: in each step, all accelerators wait for the one that computes longest. It follows from the
/// workload if its compute time is constant, else from the measured times.
fn slowest_compute_s(scope: Scope) -> f64 {
    let mut slowest_ns: Vec<u64> = Vec::new();
    for accelerator in &scope.epoch.accelerators {
        let computes = accelerator.blocks.iter().flat_map(|block| &block.compute_ns);
        for (step, &compute_ns) in computes.enumerate() {
            match slowest_ns.get_mut(step) {
                Some(slowest_ns) => *slowest_ns = compute_ns.max(*slowest_ns),
                None => slowest_ns.push(compute_ns),
            }
        }
    }
    let measured_s = seconds(slowest_ns.iter().sum());
    let train = &scope.plan.train;
    match train.compute {
        TimeSpec::Constant { .. } if measured_s > 0.0 => {
            train.slowest_compute_s() * slowest_ns.len() as f64
        }
        _ => measured_s,
    }
}

/// Reads of an accelerator over all its blocks.
fn reads_of_blocks(accelerator: &AcceleratorEpoch) -> Option<SteadyReads> {
    let blocks = accelerator.blocks.iter();
    let ns = blocks.map(|block| block.end_ns.checked_sub(block.start_ns)).sum::<Option<u64>>()?;
    Some(SteadyReads { steps: accelerator.steps(), bytes: accelerator.io.read_bytes, ns })
}

/// Bytes per second; `None` if nothing was read or no time passed.
fn per_second(bytes: u64, seconds: f64) -> Option<f64> {
    (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds)
}
