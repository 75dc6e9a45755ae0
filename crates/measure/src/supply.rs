//! What a record shows about how its accelerators were supplied: facts that an answer rests on and that need every step. No judgement but the verdict's.

use crate::derived::Derived;
use crate::doubt::Doubt;
use crate::metric::{
    self, AU_ALL_STEPS, AU_SUSTAINED, COMPUTE_S, Metric, SteadyReads, read_in_window,
};
use crate::record::{AcceleratorEpoch, Record};
use crate::stats;
use crate::verdict::{self, Verdict};
use crate::waits::{WaitPart, Waits};
use crate::window::{Scope, seconds};
use schemars::JsonSchema;
use serde::Serialize;
use std::iter;

/// Chance that the interval of a utilisation holds the true one.
const CONFIDENCE: f64 = 0.95;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It did all that was planned.
    Complete,
    /// A signal or a limit stopped it.
    Interrupted,
    /// It failed, was killed, or is still going on.
    Incomplete,
}

/// How the accelerators of a run were supplied with data. What is not known is `None`.
#[derive(Clone, Debug)]
pub struct Supply {
    /// How the run ended.
    pub end: RunEnd,
    /// Whether it was to train, and not to write or read checkpoints alone.
    pub trains: bool,
    /// What bound the run, by the doubts of the record.
    pub verdict: Verdict,
    /// The utilisation that decides: the sustained one, or that over all steps where it cannot be measured. `None` if no accelerator
    /// computed, or none is known to have.
    pub deciding: Option<&'static Metric>,
    /// Whether memory served more than half of the bytes, or may have.
    pub is_memory_served: bool,
    /// The 95 % interval of `au_all_steps` where that decides, as if its steps were independent; `None` for fewer than two steps.
    pub interval: Option<[f64; 2]>,
    /// The rate at which no accelerator would wait.
    pub needed_bytes_per_second: Option<f64>,
    /// The rate of reads in the window.
    pub delivered_bytes_per_second: Option<f64>,
    /// The largest part of the wait.
    pub wait: Option<WaitPart>,
    /// Where rates were measured.
    pub window: Option<AnswerWindow>,
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnswerWindow {
    /// Epochs that were measured.
    pub epochs: u64,
    /// Steps of an accelerator in all of them.
    pub steps: u64,
    /// How long they took, in the mean over accelerators.
    pub seconds: f64,
}

impl Supply {
    /// Supply of a record with its doubts.
    pub fn new(derived: &Derived, doubts: &[Doubt]) -> Self {
        let record = derived.record;
        let deciding = deciding(derived);
        let is_deciding = |metric: &Metric| deciding.is_some_and(|au| au.id == metric.id);
        let rates = Rates::new(record, is_deciding(&AU_SUSTAINED));
        Supply {
            end: match record.stopped_because.as_deref() {
                _ if record.complete => RunEnd::Complete,
                Some("interrupted") => RunEnd::Interrupted,
                _ => RunEnd::Incomplete,
            },
            trains: !record.plan.is_checkpoint_only(),
            verdict: verdict::judge(derived, doubts),
            is_memory_served: derived.is_memory_served(),
            deciding,
            interval: if is_deciding(&AU_ALL_STEPS) { interval(record) } else { None },
            needed_bytes_per_second: rates.and_then(Rates::needed),
            delivered_bytes_per_second: rates.and_then(Rates::delivered),
            wait: Waits::new(derived).and_then(|waits| waits.main_part()),
            window: rates.map(|rates| rates.window),
        }
    }
}

fn deciding(derived: &Derived) -> Option<&'static Metric> {
    let computed = derived.value(&COMPUTE_S).is_some_and(|compute_s| compute_s > 0.0);
    let known = |metric: &&Metric| computed && derived.value(metric).is_some();
    [&AU_SUSTAINED, &AU_ALL_STEPS].into_iter().find(known)
}

/// Interval of the utilisation over all steps. Each step is summed over accelerators.
fn interval(record: &Record) -> Option<[f64; 2]> {
    let (mut computes, mut lengths) = (Vec::new(), Vec::new());
    for scope in Scope::all(record) {
        let begin = computes.len();
        for accelerator in &scope.epoch.accelerators {
            let steps = accelerator.blocks.iter().flat_map(|block| {
                let barriers = block.barrier_ns.iter().chain(iter::repeat(&0));
                let times = block.load_ns.iter().zip(&block.compute_ns).zip(barriers);
                times.map(|((load, compute), barrier)| (*compute, load + compute + barrier))
            });
            for (index, (compute, length)) in (begin..).zip(steps) {
                if computes.len() == index {
                    computes.push(0.0);
                    lengths.push(0.0);
                }
                computes[index] += compute as f64;
                lengths[index] += length as f64;
            }
        }
    }
    let interval = stats::share_interval(&computes, &lengths, CONFIDENCE)?;
    Some([interval.low, interval.high])
}

/// Sums over the epochs that decide. Times are means over accelerators.
#[derive(Clone, Copy)]
struct Rates {
    window: AnswerWindow,
    /// Read by all accelerators in the window.
    bytes: u64,
    /// Read by all accelerators in these epochs.
    epochs_bytes: u64,
    compute_s: f64,
}

impl Rates {
    /// Over the windows of the sustained utilisation, or over all steps. `None` where no step was finished.
    fn new(record: &Record, is_sustained: bool) -> Option<Self> {
        let window = AnswerWindow { epochs: 0, steps: 0, seconds: 0.0 };
        let mut sums = Rates { window, bytes: 0, epochs_bytes: 0, compute_s: 0.0 };
        for scope in Scope::all(record) {
            let accelerators = &scope.epoch.accelerators;
            if scope.steps() == 0 || is_sustained && metric::sustained(scope).is_err() {
                continue;
            }
            let reads = |accelerator| {
                if is_sustained {
                    read_in_window(scope, accelerator)
                } else {
                    read_in_blocks(accelerator)
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
            let planned_s = record.plan.train.constant_compute_s(record.plan.accelerators);
            let blocks = accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
            let computes = blocks.flat_map(|block| &block.compute_ns);
            let measured_s = mean_s(computes.clone().sum());
            sums.compute_s += match planned_s {
                Some(planned_s) if measured_s > 0.0 => {
                    planned_s * computes.count() as f64 / accelerators.len() as f64
                }
                _ => measured_s,
            };
        }
        (sums.window.epochs > 0).then_some(sums)
    }

    fn delivered(self) -> Option<f64> {
        per_second(self.bytes, self.window.seconds)
    }

    /// The rate at which reading takes no longer than computing.
    fn needed(self) -> Option<f64> {
        per_second(self.epochs_bytes, self.compute_s)
    }
}

/// All that an accelerator read, over its blocks.
fn read_in_blocks(accelerator: &AcceleratorEpoch) -> Option<SteadyReads> {
    let blocks = accelerator.blocks.iter();
    let ns = blocks.map(|block| block.end_ns.checked_sub(block.start_ns)).sum::<Option<u64>>()?;
    Some(SteadyReads { steps: accelerator.steps(), bytes: accelerator.io.read_bytes, ns })
}

/// `None` if nothing was read, or in no time.
fn per_second(bytes: u64, seconds: f64) -> Option<f64> {
    (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds)
}
