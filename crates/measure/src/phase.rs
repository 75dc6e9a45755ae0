//! How a run fared by phase: in each epoch and evaluation, and before, during and after each checkpoint. From the record alone.

use crate::metric::{AU_ALL_STEPS, SAMPLES_WHOLE};
use crate::record::timeline::{Column, Timeline, samples_in};
use crate::record::{
    AcceleratorEpoch, CheckpointKind, CheckpointRecord, EpochRecord, Record, StagingSpan,
};
use crate::window::{Scope, per_second, seconds, share};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// Before and after a checkpoint are as long as it took times this, at most.
pub const AROUND_CHECKPOINT: u64 = 10;

names! {
    /// Kind of a phase.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PhaseKind {
        /// While the dataset was copied before training.
        Staging = "staging",
        /// From the first step's start to the last one's end, checkpoints between its steps included.
        Epoch = "epoch",
        /// The same of an evaluation.
        Evaluation = "evaluation",
        /// The end of the block, of training or evaluation, that had begun last when the checkpoint began: up to the block's end or the
        /// checkpoint's start, and no longer than [`AROUND_CHECKPOINT`] times the checkpoint, nor back into the checkpoint before.
        BeforeCheckpoint = "before_checkpoint",
        /// While it was written or read.
        Checkpoint = "checkpoint",
        /// The beginning of the next block, or of what is left of one that goes on meanwhile: as long as the phase before, at most
        /// until the block's end or the next checkpoint.
        AfterCheckpoint = "after_checkpoint",
    }
}

/// One row. A figure is `None` where it cannot be known: what needs samples, where the timeline has none in the phase.
///
/// A sample of the timeline belongs to the phase in which its middle lies; rates are over the time of the phase's samples. Of
/// epochs and evaluations delivered and device bytes and processors are the record's own exact ones.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// Its kind.
    pub phase: PhaseKind,
    /// Number of the epoch, or the one before the evaluation or after the staging, or the checkpoint's.
    pub epoch: u32,
    /// Whether the checkpoint was saved or loaded; `None` of others.
    pub checkpoint: Option<CheckpointKind>,
    /// Steps of the epoch that were done when the checkpoint was written; `None` of others.
    pub after_step: Option<u64>,
    /// From the start of the run.
    pub start_s: f64,
    /// How long.
    pub duration_s: f64,
    /// Steps that lie in it, of the accelerator that has fewest.
    pub steps: u64,
    /// Samples of the steps that lie in it ÷ time of these steps, summed over accelerators; of an epoch, `samples_per_second`. `None` where an
    /// accelerator has no such step.
    pub samples_per_second: Option<f64>,
    /// Bytes that read calls returned.
    pub delivered_bytes_per_second: Option<f64>,
    /// Bytes that came from storage for this process.
    pub device_bytes_per_second: Option<f64>,
    /// Bytes given to write calls.
    pub written_bytes: Option<u64>,
    /// The same by time.
    pub written_bytes_per_second: Option<f64>,
    /// Bytes written to the device under the dataset.
    pub device_written_bytes_per_second: Option<f64>,
    /// Compute time ÷ all time of the steps that lie in it, mean over accelerators; of an epoch, `au_all_steps`.
    pub au_percent: Option<f64>,
    /// Share of the time in blocks that accelerators waited for data; `None` where no block is.
    pub stall_share: Option<f64>,
    /// Busy share of all cores.
    pub cpu_busy_share: Option<f64>,
    /// Each GPU; `None` where there is none, or none that tells.
    pub gpus: Option<Vec<GpuPhase>>,
}

/// One GPU in a phase: means over the time of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `GpuTimeline`")]
pub struct GpuPhase {
    pub utilisation_percent: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub power_w: Option<f64>,
}

/// Nanoseconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeRange {
    start_ns: u64,
    end_ns: u64,
}

/// Every phase of a record: staging, then epoch by epoch the epoch, its checkpoints, its evaluation.
pub fn phases(record: &Record) -> Vec<Phase> {
    let view = View::new(record);
    let mut rows: Vec<Phase> = view.staging().into_iter().collect();
    for epoch in &record.epochs {
        rows.push(view.whole(PhaseKind::Epoch, epoch));
        for checkpoint in &epoch.checkpoints {
            view.around(epoch.number, checkpoint, &mut rows);
        }
        let after = record.evaluations.iter().filter(|after| after.number == epoch.number);
        rows.extend(after.map(|evaluation| view.whole(PhaseKind::Evaluation, evaluation)));
    }
    rows
}

/// The phases of one checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointPhases<'a> {
    /// The end of the block before it, where there is one.
    pub before: Option<&'a Phase>,
    /// While it was written or read.
    pub during: &'a Phase,
    /// The beginning of the block after it, where there is one.
    pub after: Option<&'a Phase>,
}

/// Each checkpoint of a kind among phases as [`phases`] makes them.
pub fn of_checkpoints(
    phases: &[Phase],
    kind: CheckpointKind,
) -> impl Iterator<Item = CheckpointPhases<'_>> {
    let all = phases.iter().enumerate();
    let during =
        all.filter(move |(_, of)| of.phase == PhaseKind::Checkpoint && of.checkpoint == Some(kind));
    during.map(|(at, during)| CheckpointPhases {
        before: phases[..at].last().filter(|of| of.phase == PhaseKind::BeforeCheckpoint),
        during,
        after: phases.get(at + 1).filter(|of| of.phase == PhaseKind::AfterCheckpoint),
    })
}

/// For each sample of a timeline the share of the time in blocks that accelerators waited for data; `None` where no block is.
pub fn stall_shares(record: &Record, timeline: &Timeline) -> Vec<Option<f64>> {
    let ends_ns = timeline.ends_ns();
    let durations = ends_ns.iter().zip(&timeline.duration_ns);
    let samples: Vec<TimeRange> = durations
        .map(|(&end_ns, duration_ns)| TimeRange { start_ns: end_ns - duration_ns, end_ns })
        .collect();
    let (mut load_ns, mut block_ns) = (vec![0; samples.len()], vec![0; samples.len()]);
    let always = TimeRange { start_ns: 0, end_ns: u64::MAX };
    for accelerator in both(record).flat_map(|epoch| &epoch.accelerators) {
        for step in steps_around(accelerator, always) {
            spread(step.whole(), &samples, &mut block_ns);
            spread(step.load(), &samples, &mut load_ns);
        }
    }
    load_ns.into_iter().zip(block_ns).map(|(load_ns, block_ns)| share(load_ns, block_ns)).collect()
}

/// Add a time to the sums of the samples that it lies in.
fn spread(span: TimeRange, samples: &[TimeRange], sums: &mut [u64]) {
    let first = samples.partition_point(|sample| sample.end_ns <= span.start_ns);
    for (sample, sum) in samples.iter().zip(sums).skip(first) {
        if span.end_ns <= sample.start_ns {
            break;
        }
        *sum += overlap_ns(span, *sample);
    }
}

/// A record, with what several phases look for.
struct View<'a> {
    record: &'a Record,
    /// Middle of each sample of the timeline.
    middles_ns: Vec<u64>,
    /// By their start.
    blocks: Vec<TimeRange>,
    /// By their start.
    checkpoints: Vec<TimeRange>,
}

impl<'a> View<'a> {
    fn new(record: &'a Record) -> Self {
        let mut blocks: Vec<TimeRange> = both(record).flat_map(blocks_of).collect();
        let written = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints);
        let mut checkpoints: Vec<TimeRange> = written.map(span_of).collect();
        blocks.sort_by_key(|span| span.start_ns);
        checkpoints.sort_by_key(|span| span.start_ns);
        let middles_ns = record.timeline.as_ref().map(Timeline::middles_ns);
        View { record, middles_ns: middles_ns.unwrap_or_default(), blocks, checkpoints }
    }

    fn staging(&self) -> Option<Phase> {
        let staging = self.record.staging.as_ref()?;
        let StagingSpan { start_ns, end_ns } = staging.before_training?;
        let span = TimeRange { start_ns, end_ns };
        Some(Phase {
            delivered_bytes_per_second: per_second(staging.bytes, span.ns()),
            ..self.phase(PhaseKind::Staging, 1, None, span)
        })
    }

    fn whole(&self, kind: PhaseKind, epoch: &EpochRecord) -> Phase {
        let span = TimeRange { start_ns: epoch.start_ns, end_ns: epoch.end_ns };
        let read_bytes =
            epoch.accelerators.iter().map(|accelerator| accelerator.io.read_bytes).sum();
        let scope = Scope::new(self.record, epoch);
        // Of an epoch that not all have told of, nothing is known in all.
        let told_ns = if scope.is_whole() { span.ns() } else { 0 };
        let device_bytes = epoch.host.process_device_read_bytes;
        Phase {
            steps: scope.steps(),
            samples_per_second: match kind {
                // A rate of nothing is one of a batch that is not known.
                PhaseKind::Epoch => SAMPLES_WHOLE.of_epoch(scope).filter(|rate| *rate > 0.0),
                _ => None,
            },
            delivered_bytes_per_second: match self.record.watched {
                Some(_) => None,
                None => per_second(read_bytes, told_ns),
            },
            device_bytes_per_second: device_bytes.and_then(|bytes| per_second(bytes, told_ns)),
            au_percent: AU_ALL_STEPS.of_epoch(scope),
            cpu_busy_share: if scope.is_whole() { epoch.host.cpu_busy_share } else { None },
            ..self.phase(kind, epoch.number, None, span)
        }
    }

    /// The rows of a checkpoint.
    fn around(&self, epoch: u32, checkpoint: &CheckpointRecord, rows: &mut Vec<Phase>) {
        let during = span_of(checkpoint);
        let before = self.before(during);
        let length_ns = before.map_or(AROUND_CHECKPOINT * during.ns(), TimeRange::ns);
        for (kind, span) in [
            (PhaseKind::BeforeCheckpoint, before),
            (PhaseKind::Checkpoint, Some(during)),
            (PhaseKind::AfterCheckpoint, self.after(during, length_ns)),
        ] {
            rows.extend(span.map(|span| self.phase(kind, epoch, Some(checkpoint), span)));
        }
    }

    fn before(&self, checkpoint: TimeRange) -> Option<TimeRange> {
        let begun = self.blocks.partition_point(|block| block.start_ns < checkpoint.start_ns);
        let block = self.blocks[..begun].last()?;
        let end_ns = block.end_ns.min(checkpoint.start_ns);
        let earlier =
            self.checkpoints.partition_point(|other| other.start_ns < checkpoint.start_ns);
        let free_ns = self.checkpoints[..earlier].last().map_or(0, |other| other.end_ns);
        let longest_ns = AROUND_CHECKPOINT * checkpoint.ns();
        let start_ns = block.start_ns.max(free_ns).max(end_ns.saturating_sub(longest_ns));
        TimeRange { start_ns, end_ns }.unless_empty()
    }

    fn after(&self, checkpoint: TimeRange, length_ns: u64) -> Option<TimeRange> {
        let over = self.blocks.partition_point(|block| block.end_ns <= checkpoint.end_ns);
        let block = self.blocks.get(over)?;
        let start_ns = block.start_ns.max(checkpoint.end_ns);
        let begun = self.checkpoints.partition_point(|other| other.start_ns <= checkpoint.start_ns);
        let next_ns = self.checkpoints.get(begun).map_or(u64::MAX, |other| other.start_ns);
        let end_ns = block.end_ns.min(next_ns).min(start_ns + length_ns);
        TimeRange { start_ns, end_ns }.unless_empty()
    }

    fn phase(
        &self,
        kind: PhaseKind,
        epoch: u32,
        checkpoint: Option<&CheckpointRecord>,
        span: TimeRange,
    ) -> Phase {
        let sampled = Sampled {
            timeline: self.record.timeline.as_ref(),
            samples: samples_in(&self.middles_ns, span.start_ns..span.end_ns),
        };
        let steps = StepsIn::new(self.record, span);
        Phase {
            phase: kind,
            epoch,
            checkpoint: checkpoint.map(|checkpoint| checkpoint.kind),
            after_step: checkpoint.map(|checkpoint| checkpoint.after_step),
            start_s: seconds(span.start_ns),
            duration_s: seconds(span.ns()),
            steps: steps.count,
            samples_per_second: steps
                .per_second
                .map(|rate| rate * self.record.plan.loader.batch_size as f64)
                .filter(|rate| *rate > 0.0),
            delivered_bytes_per_second: sampled.per_second(|timeline| &timeline.read_bytes),
            device_bytes_per_second: sampled
                .per_second(|timeline| &timeline.process_device_read_bytes),
            written_bytes: sampled.sum(|timeline| &timeline.written_bytes),
            written_bytes_per_second: sampled.per_second(|timeline| &timeline.written_bytes),
            device_written_bytes_per_second: sampled
                .per_second(|timeline| &timeline.device_written_bytes),
            au_percent: steps.au_percent,
            stall_share: steps.stall_share,
            cpu_busy_share: sampled.cpu_busy_share(),
            gpus: sampled.gpus(),
        }
    }
}

/// Steps that lie in a phase.
struct StepsIn {
    count: u64,
    /// Steps of all accelerators together; `None` where one has no step.
    per_second: Option<f64>,
    au_percent: Option<f64>,
    stall_share: Option<f64>,
}

impl StepsIn {
    fn new(record: &Record, span: TimeRange) -> Self {
        let (mut load_ns, mut block_ns) = (0, 0);
        let (mut counts, mut rates) = (Vec::new(), Vec::new());
        let mut utilisations = Vec::new();
        let is_touched =
            |epoch: &&EpochRecord| epoch.start_ns < span.end_ns && span.start_ns < epoch.end_ns;
        // Batches of evaluations have another size.
        let evaluates = record.evaluations.iter().any(|one| is_touched(&one));
        let touched = both(record).filter(is_touched);
        for accelerator in touched.flat_map(|epoch| &epoch.accelerators) {
            let (mut count, mut compute_ns, mut all_ns) = (0, 0, 0);
            for step in steps_around(accelerator, span) {
                load_ns += overlap_ns(step.load(), span);
                block_ns += overlap_ns(step.whole(), span);
                if span.start_ns <= step.start_ns && step.whole().end_ns <= span.end_ns {
                    count += 1;
                    compute_ns += step.compute_ns;
                    all_ns += step.whole().ns();
                }
            }
            counts.push(count);
            rates.push(per_second(count, all_ns));
            utilisations.extend(share(compute_ns, all_ns));
        }
        let au = utilisations.iter().sum::<f64>() / utilisations.len() as f64 * 100.0;
        StepsIn {
            count: counts.into_iter().min().unwrap_or(0),
            per_second: rates
                .into_iter()
                .sum::<Option<f64>>()
                .filter(|rate| *rate > 0.0 && !evaluates),
            au_percent: (!utilisations.is_empty()).then_some(au),
            stall_share: share(load_ns, block_ns),
        }
    }
}

/// One step of one accelerator.
#[derive(Clone, Copy)]
struct TimedStep {
    start_ns: u64,
    load_ns: u64,
    compute_ns: u64,
    barrier_ns: u64,
}

impl TimedStep {
    fn whole(self) -> TimeRange {
        let ns = self.load_ns + self.compute_ns + self.barrier_ns;
        TimeRange { start_ns: self.start_ns, end_ns: self.start_ns + ns }
    }

    fn load(self) -> TimeRange {
        TimeRange { start_ns: self.start_ns, end_ns: self.start_ns + self.load_ns }
    }
}

/// Those of blocks that share some time with `span`, up to its end.
fn steps_around(
    accelerator: &AcceleratorEpoch,
    span: TimeRange,
) -> impl Iterator<Item = TimedStep> {
    let blocks = accelerator.blocks.iter();
    let touched =
        blocks.filter(move |block| block.start_ns < span.end_ns && span.start_ns < block.end_ns);
    touched.flat_map(move |block| {
        let mut start_ns = block.start_ns;
        let steps = (0..block.steps()).map(move |i| {
            let step = TimedStep {
                start_ns,
                load_ns: block.load_ns[i],
                compute_ns: block.compute_ns[i],
                barrier_ns: block.barrier_ns[i],
            };
            start_ns = step.whole().end_ns;
            step
        });
        steps.take_while(move |step| step.start_ns < span.end_ns)
    })
}

impl TimeRange {
    fn ns(self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn unless_empty(self) -> Option<TimeRange> {
        (self.ns() > 0).then_some(self)
    }
}

fn span_of(checkpoint: &CheckpointRecord) -> TimeRange {
    TimeRange { start_ns: checkpoint.start_ns, end_ns: checkpoint.end_ns }
}

fn both(record: &Record) -> impl Iterator<Item = &EpochRecord> {
    record.epochs.iter().chain(&record.evaluations)
}

/// From the first accelerator's start to the last one's end.
fn blocks_of(epoch: &EpochRecord) -> impl Iterator<Item = TimeRange> {
    let count = epoch.accelerators.iter().map(|a| a.blocks.len()).max().unwrap_or(0);
    (0..count).filter_map(|i| {
        let blocks = epoch.accelerators.iter().filter_map(|a| a.blocks.get(i));
        let start_ns = blocks.clone().map(|block| block.start_ns).min()?;
        let end_ns = blocks.map(|block| block.end_ns).max()?;
        TimeRange { start_ns, end_ns }.unless_empty()
    })
}

fn overlap_ns(a: TimeRange, b: TimeRange) -> u64 {
    a.end_ns.min(b.end_ns).saturating_sub(a.start_ns.max(b.start_ns))
}

/// The samples of a timeline that lie in a phase.
struct Sampled<'a> {
    timeline: Option<&'a Timeline>,
    samples: Range<usize>,
}

impl<'a> Sampled<'a> {
    fn sum(&self, column: fn(&Timeline) -> &Column) -> Option<u64> {
        let values = &column(self.timeline?).as_ref()?[self.samples.clone()];
        (!values.is_empty()).then(|| values.iter().sum())
    }

    fn durations_ns(&self) -> &'a [u64] {
        self.timeline.map_or(&[], |timeline| &timeline.duration_ns[self.samples.clone()])
    }

    fn per_second(&self, column: fn(&Timeline) -> &Column) -> Option<f64> {
        per_second(self.sum(column)?, self.durations_ns().iter().sum())
    }

    fn cpu_busy_share(&self) -> Option<f64> {
        let busy = self.sum(|timeline| &timeline.cpu_busy_ticks)?;
        share(busy, self.sum(|timeline| &timeline.cpu_ticks)?)
    }

    fn gpus(&self) -> Option<Vec<GpuPhase>> {
        let timeline = self.timeline?;
        let mean = |values: &[Option<u64>]| timeline.mean(values, self.samples.clone());
        let phases = timeline.gpus.as_ref()?.iter().map(|gpu| GpuPhase {
            utilisation_percent: mean(&gpu.utilisation_percent),
            memory_bytes: mean(&gpu.memory_bytes),
            power_w: mean(&gpu.power_mw).map(|mw| mw / 1000.0),
        });
        Some(phases.collect())
    }
}

#[cfg(test)]
mod tests;
