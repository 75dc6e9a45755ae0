//! Figures by phase of a run: staging, each epoch and evaluation, and the times before, during and after each checkpoint.
//! All figures are computed from the record.

mod steps;
mod samples;

use self::samples::{PhaseSamples, SampleEdges};
use self::steps::{PhaseSteps, first_steps_end_ns, last_steps_start_ns, overlapping_steps};
use crate::metric::{AU_ALL_STEPS, SAMPLES_WHOLE};
use crate::record::timeline::Timeline;
use crate::record::{CheckpointKind, CheckpointRecord, EpochRecord, Record, StagingSpan};
use crate::stats;
use crate::window::{Scope, per_second, seconds, share};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

/// Duration of the phases before and after a checkpoint, as a multiple of the checkpoint's duration, if that includes enough steps.
pub const CHECKPOINT_MULTIPLE: u64 = 10;

/// Number of steps that a rate around a checkpoint needs at least, whatever the number of workers.
const PHASE_STEPS_MIN: u64 = 4;

names! {
    /// Kind of a phase.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PhaseKind {
        /// The dataset was copied before training.
        Staging = "staging",
        /// From the start of the first step to the end of the last one, including checkpoints between steps.
        Epoch = "epoch",
        /// An evaluation, from the start of its first step to the end of its last one.
        Evaluation = "evaluation",
        /// The last part of the block before or around the checkpoint. It ends with the block or at the start of the checkpoint. It lasts 10
        /// times as long as the checkpoint, and longer if that includes fewer than 4 steps, or fewer than a batch of each worker. It starts
        /// no earlier than the block and the end of the previous checkpoint.
        BeforeCheckpoint = "before_checkpoint",
        /// The checkpoint was written or read.
        Checkpoint = "checkpoint",
        /// The first part of the next block, or of the rest of a block that continued during the checkpoint. It lasts as long as the phase
        /// before the checkpoint, and longer for as many steps. It ends no later than the block and the start of the next checkpoint.
        AfterCheckpoint = "after_checkpoint",
    }
}

/// Figures of one phase. A figure is `None` if it is unknown, for example because the timeline has no sample in the phase.
///
/// Steps and samples of the timeline that reach beyond the phase count by the share of their time within it. For epochs and evaluations,
/// delivered bytes, device bytes and processor shares are exact values from the record.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// Kind of the phase.
    pub phase: PhaseKind,
    /// Number of the epoch. An evaluation has the number of the epoch before it, staging that of the epoch after it, and a checkpoint that
    /// of the epoch that contains it.
    pub epoch: u32,
    /// Whether the checkpoint was saved or loaded; `None` if the phase does not belong to a checkpoint.
    pub checkpoint: Option<CheckpointKind>,
    /// Steps of the epoch that were done before the checkpoint; `None` if the phase does not belong to a checkpoint.
    pub after_step: Option<u64>,
    /// Start, in seconds from the start of the run.
    pub start_s: f64,
    /// Duration in seconds.
    pub duration_s: f64,
    /// Steps entirely within the phase, of the accelerator with the fewest.
    pub steps: u64,
    /// Number of steps before or after a checkpoint that a rate needs: 4, or a batch of each worker. `None` for other phases.
    pub steps_needed: Option<u64>,
    /// Steps within the phase, mean over accelerators. A step that reaches beyond the phase counts by the share of its time.
    pub shared_steps: f64,
    /// Samples of the steps within the phase ÷ time of these steps, summed over accelerators; for an epoch, `samples_per_second`. `None` if
    /// an accelerator has no step in the phase.
    pub samples_per_second: Option<f64>,
    /// Bytes per second that read calls returned.
    pub delivered_bytes_per_second: Option<f64>,
    /// Bytes per second that this process read from the storage device.
    pub device_bytes_per_second: Option<f64>,
    /// Bytes passed to write calls.
    pub written_bytes: Option<u64>,
    /// Bytes passed to write calls, per second.
    pub written_bytes_per_second: Option<f64>,
    /// Bytes per second written to the device that holds the dataset.
    pub device_written_bytes_per_second: Option<f64>,
    /// Compute time ÷ total time of the steps within the phase, mean over accelerators; for an epoch, `au_all_steps`.
    pub au_percent: Option<f64>,
    /// Time that accelerators waited for data ÷ time that they spent in blocks; `None` if no block overlaps the phase.
    pub stall_share: Option<f64>,
    /// Busy share of all cores.
    pub cpu_busy_share: Option<f64>,
    /// Figures of each GPU; `None` if no GPU could be sampled.
    pub gpus: Option<Vec<GpuPhase>>,
}

/// One GPU in a phase: means over samples, weighted by their durations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `GpuTimeline`")]
pub struct GpuPhase {
    pub utilisation_percent: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub power_w: Option<f64>,
}

/// A time span, in nanoseconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeRange {
    start_ns: u64,
    end_ns: u64,
}

/// Returns all phases of a record: staging first, then for each epoch the epoch itself, its checkpoints and its evaluation.
pub fn phases(record: &Record) -> Vec<Phase> {
    let builder = PhaseBuilder::new(record);
    let mut rows: Vec<Phase> = builder.staging().into_iter().collect();
    for epoch in &record.epochs {
        rows.push(builder.epoch_phase(PhaseKind::Epoch, epoch));
        for checkpoint in &epoch.checkpoints {
            builder.add_checkpoint_phases(epoch.number, checkpoint, &mut rows);
        }
        let evaluations = record.evaluations.iter().filter(|row| row.number == epoch.number);
        rows.extend(evaluations.map(|row| builder.epoch_phase(PhaseKind::Evaluation, row)));
    }
    rows
}

/// The phases of one checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointPhases<'a> {
    /// The phase before the checkpoint; `None` if no block precedes it.
    pub before: Option<&'a Phase>,
    /// The checkpoint itself.
    pub during: &'a Phase,
    /// The phase after the checkpoint; `None` if no block follows it.
    pub after: Option<&'a Phase>,
}

impl Phase {
    /// The number of steps, if it is too small for a rate before or after a checkpoint.
    pub fn too_few_steps(&self) -> Option<u64> {
        self.steps_needed.filter(|needed| self.steps < *needed).map(|_| self.steps)
    }

    /// Utilisation of GPUs, mean over the GPUs with a known one.
    pub fn gpu_percent(&self) -> Option<f64> {
        let gpus = self.gpus.iter().flatten().filter_map(|gpu| gpu.utilisation_percent);
        stats::mean(&gpus.collect::<Vec<f64>>())
    }
}

impl CheckpointPhases<'_> {
    /// Time that the run lost to the checkpoint, in seconds: the time from its start to the end of the phase after it, less the time that
    /// the steps in this time take at the rate of the phase before. It is negative if the run was faster than before. `None` if it was not
    /// measured from enough steps before and after.
    pub fn net_cost_s(self) -> Option<f64> {
        let before = self.before.filter(|phase| phase.too_few_steps().is_none())?;
        let after = self.after.filter(|phase| phase.too_few_steps().is_none())?;
        let step_s = before.duration_s / before.shared_steps;
        let steps = self.during.shared_steps + after.shared_steps;
        let lost_s = after.start_s + after.duration_s - self.during.start_s - steps * step_s;
        // Times are known to the nanosecond.
        Some((lost_s * 1e9).round() / 1e9)
    }
}

/// Groups the phases of each checkpoint of a kind. `phases` must be in the order of [`phases`].
pub fn checkpoint_phases(
    phases: &[Phase],
    kind: CheckpointKind,
) -> impl Iterator<Item = CheckpointPhases<'_>> {
    let is_checkpoint =
        move |row: &Phase| row.phase == PhaseKind::Checkpoint && row.checkpoint == Some(kind);
    let checkpoints = phases.iter().enumerate().filter(move |(_, row)| is_checkpoint(row));
    checkpoints.map(|(index, during)| CheckpointPhases {
        before: phases[..index].last().filter(|row| row.phase == PhaseKind::BeforeCheckpoint),
        during,
        after: phases.get(index + 1).filter(|row| row.phase == PhaseKind::AfterCheckpoint),
    })
}

/// Computes the stall share in each sample of a timeline: time that accelerators waited for data ÷ time that they spent in blocks. `None` if no block
/// overlaps the sample.
pub fn stall_shares(record: &Record, timeline: &Timeline) -> Vec<Option<f64>> {
    let ends_ns = timeline.ends_ns();
    let durations = ends_ns.iter().zip(&timeline.duration_ns);
    let samples: Vec<TimeRange> = durations
        .map(|(&end_ns, duration_ns)| TimeRange { start_ns: end_ns - duration_ns, end_ns })
        .collect();
    let mut load_ns = vec![0; samples.len()];
    let mut block_ns = vec![0; samples.len()];
    let always = TimeRange { start_ns: 0, end_ns: u64::MAX };
    for accelerator in epochs_and_evaluations(record).flat_map(|epoch| &epoch.accelerators) {
        for step in overlapping_steps(accelerator, always) {
            add_overlaps(step.time_range(), &samples, &mut block_ns);
            add_overlaps(step.load_range(), &samples, &mut load_ns);
        }
    }
    load_ns.into_iter().zip(block_ns).map(|(load_ns, block_ns)| share(load_ns, block_ns)).collect()
}

/// Adds the time that `span` overlaps each sample to the sum of the sample.
fn add_overlaps(span: TimeRange, samples: &[TimeRange], sums: &mut [u64]) {
    let first = samples.partition_point(|sample| sample.end_ns <= span.start_ns);
    for (sample, sum) in samples.iter().zip(sums).skip(first) {
        if span.end_ns <= sample.start_ns {
            break;
        }
        *sum += overlap_ns(span, *sample);
    }
}

/// Builds phases from a record and its sorted time spans.
struct PhaseBuilder<'a> {
    record: &'a Record,
    samples: Option<SampleEdges<'a>>,
    /// Sorted by start.
    blocks: Vec<TimeRange>,
    /// Sorted by start.
    checkpoints: Vec<TimeRange>,
}

impl<'a> PhaseBuilder<'a> {
    fn new(record: &'a Record) -> Self {
        let mut blocks: Vec<TimeRange> =
            epochs_and_evaluations(record).flat_map(block_spans).collect();
        let all_checkpoints = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints);
        let mut checkpoints: Vec<TimeRange> = all_checkpoints.map(checkpoint_span).collect();
        blocks.sort_by_key(|span| span.start_ns);
        checkpoints.sort_by_key(|span| span.start_ns);
        let samples = record.timeline.as_ref().map(SampleEdges::new);
        PhaseBuilder { record, samples, blocks, checkpoints }
    }

    fn staging(&self) -> Option<Phase> {
        let staging = self.record.staging.as_ref()?;
        let StagingSpan { start_ns, end_ns } = staging.before_training?;
        let span = TimeRange { start_ns, end_ns };
        Some(Phase {
            delivered_bytes_per_second: per_second(staging.bytes, span.duration_ns()),
            ..self.phase(PhaseKind::Staging, 1, None, span)
        })
    }

    /// The phase of an epoch or evaluation.
    fn epoch_phase(&self, kind: PhaseKind, epoch: &EpochRecord) -> Phase {
        let span = TimeRange { start_ns: epoch.start_ns, end_ns: epoch.end_ns };
        let read_bytes =
            epoch.accelerators.iter().map(|accelerator| accelerator.io.read_bytes).sum();
        let scope = Scope::new(self.record, epoch);
        // Totals are unknown if accelerators are missing from the record.
        let known_ns = if scope.is_whole() { span.duration_ns() } else { 0 };
        let device_bytes = epoch.host.process_device_read_bytes;
        Phase {
            steps: scope.steps(),
            samples_per_second: match kind {
                // The rate is 0 if the batch size is unknown.
                PhaseKind::Epoch => SAMPLES_WHOLE.epoch_value(scope).filter(|rate| *rate > 0.0),
                _ => None,
            },
            delivered_bytes_per_second: match self.record.watched {
                Some(_) => None,
                None => per_second(read_bytes, known_ns),
            },
            device_bytes_per_second: device_bytes.and_then(|bytes| per_second(bytes, known_ns)),
            au_percent: AU_ALL_STEPS.epoch_value(scope),
            cpu_busy_share: if scope.is_whole() { epoch.host.cpu_busy_share } else { None },
            ..self.phase(kind, epoch.number, None, span)
        }
    }

    /// Appends the phases before, during and after a checkpoint.
    fn add_checkpoint_phases(
        &self,
        epoch: u32,
        checkpoint: &CheckpointRecord,
        rows: &mut Vec<Phase>,
    ) {
        let during = checkpoint_span(checkpoint);
        let before = self.span_before(during);
        let length_ns =
            before.map_or(CHECKPOINT_MULTIPLE * during.duration_ns(), TimeRange::duration_ns);
        for (kind, span) in [
            (PhaseKind::BeforeCheckpoint, before),
            (PhaseKind::Checkpoint, Some(during)),
            (PhaseKind::AfterCheckpoint, self.span_after(during, length_ns)),
        ] {
            rows.extend(span.map(|span| self.phase(kind, epoch, Some(checkpoint), span)));
        }
    }

    fn span_before(&self, checkpoint: TimeRange) -> Option<TimeRange> {
        let blocks_started =
            self.blocks.partition_point(|block| block.start_ns < checkpoint.start_ns);
        let block = self.blocks[..blocks_started].last()?;
        let count_before =
            self.checkpoints.partition_point(|other| other.start_ns < checkpoint.start_ns);
        let previous_end_ns =
            self.checkpoints[..count_before].last().map_or(0, |other| other.end_ns);
        let interval = TimeRange {
            start_ns: block.start_ns.max(previous_end_ns),
            end_ns: block.end_ns.min(checkpoint.start_ns),
        };
        let length_ns = CHECKPOINT_MULTIPLE * checkpoint.duration_ns();
        let steps_start_ns = last_steps_start_ns(self.record, interval, self.steps_min());
        let start_ns = interval.end_ns.saturating_sub(length_ns).min(steps_start_ns);
        TimeRange { start_ns: start_ns.max(interval.start_ns), ..interval }.non_empty()
    }

    fn span_after(&self, checkpoint: TimeRange, length_ns: u64) -> Option<TimeRange> {
        let blocks_ended = self.blocks.partition_point(|block| block.end_ns <= checkpoint.end_ns);
        let block = self.blocks.get(blocks_ended)?;
        let count_up_to_this =
            self.checkpoints.partition_point(|other| other.start_ns <= checkpoint.start_ns);
        let next_start_ns =
            self.checkpoints.get(count_up_to_this).map_or(u64::MAX, |next| next.start_ns);
        let interval = TimeRange {
            start_ns: block.start_ns.max(checkpoint.end_ns),
            end_ns: block.end_ns.min(next_start_ns),
        };
        let steps_end_ns = first_steps_end_ns(self.record, interval, self.steps_min());
        let end_ns = (interval.start_ns + length_ns).max(steps_end_ns);
        TimeRange { end_ns: end_ns.min(interval.end_ns), ..interval }.non_empty()
    }

    /// Number of steps around a checkpoint whose rate is not distorted by the order of batches. Workers that start together also deliver
    /// together, so each of them contributes a batch.
    fn steps_min(&self) -> u64 {
        PHASE_STEPS_MIN.max(u64::from(self.record.plan.loader.workers))
    }

    fn phase(
        &self,
        kind: PhaseKind,
        epoch: u32,
        checkpoint: Option<&CheckpointRecord>,
        span: TimeRange,
    ) -> Phase {
        let samples = PhaseSamples::new(self.samples.as_ref(), span);
        let steps = PhaseSteps::new(self.record, span);
        let is_around = matches!(kind, PhaseKind::BeforeCheckpoint | PhaseKind::AfterCheckpoint);
        Phase {
            phase: kind,
            epoch,
            checkpoint: checkpoint.map(|checkpoint| checkpoint.kind),
            after_step: checkpoint.map(|checkpoint| checkpoint.after_step),
            start_s: seconds(span.start_ns),
            duration_s: seconds(span.duration_ns()),
            steps: steps.count,
            steps_needed: is_around.then(|| self.steps_min()),
            shared_steps: steps.shared_count,
            samples_per_second: steps
                .per_second
                .map(|rate| rate * self.record.plan.loader.batch_size as f64)
                .filter(|rate| *rate > 0.0),
            delivered_bytes_per_second: samples.per_second(|timeline| &timeline.read_bytes),
            device_bytes_per_second: samples
                .per_second(|timeline| &timeline.process_device_read_bytes),
            written_bytes: samples
                .sum(|timeline| &timeline.written_bytes)
                .map(|bytes| bytes.round() as u64),
            written_bytes_per_second: samples.per_second(|timeline| &timeline.written_bytes),
            device_written_bytes_per_second: samples
                .per_second(|timeline| &timeline.device_written_bytes),
            au_percent: steps.au_percent,
            stall_share: steps.stall_share,
            cpu_busy_share: samples.cpu_busy_share(),
            gpus: samples.gpus(),
        }
    }
}

impl TimeRange {
    fn duration_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn non_empty(self) -> Option<TimeRange> {
        (self.duration_ns() > 0).then_some(self)
    }
}

fn checkpoint_span(checkpoint: &CheckpointRecord) -> TimeRange {
    TimeRange { start_ns: checkpoint.start_ns, end_ns: checkpoint.end_ns }
}

fn epochs_and_evaluations(record: &Record) -> impl Iterator<Item = &EpochRecord> {
    record.epochs.iter().chain(&record.evaluations)
}

/// Time spans of an epoch's blocks, each from the first accelerator's start to the last one's end.
fn block_spans(epoch: &EpochRecord) -> impl Iterator<Item = TimeRange> {
    let count = epoch.accelerators.iter().map(|a| a.blocks.len()).max().unwrap_or(0);
    (0..count).filter_map(|i| {
        let blocks = epoch.accelerators.iter().filter_map(|a| a.blocks.get(i));
        let start_ns = blocks.clone().map(|block| block.start_ns).min()?;
        let end_ns = blocks.map(|block| block.end_ns).max()?;
        TimeRange { start_ns, end_ns }.non_empty()
    })
}

fn overlap_ns(a: TimeRange, b: TimeRange) -> u64 {
    a.end_ns.min(b.end_ns).saturating_sub(a.start_ns.max(b.start_ns))
}

#[cfg(test)]
mod tests;
