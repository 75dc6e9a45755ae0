//! Runs as plots need them: of records, and of the steps that others' results tell. Draws nothing.

use super::data::{
    Blocks, Details, FolderRun, FolderState, Latencies, Moments, PhasePoint, RunPoint, Stretch,
    StretchKind, TimeParts, Wait,
};
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::histogram::Histogram;
use feedrate_measure::metric::{
    BARRIER_S, COMPUTE_S, LOAD_S, SAMPLES_WHOLE, STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ,
};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::timeline::{Column, GpuTimeline};
use feedrate_measure::record::{Block, CheckpointKind, EpochRecord, IoCounters, Record};
use feedrate_results::import::Origin;
use feedrate_results::place::INCOMPLETE;
use feedrate_results::response::RESPONSES;
use feedrate_results::run::{Activity, FolderNames, Run};
use std::collections::BTreeMap;
use std::path::Path;

impl RunPoint {
    /// From a run, with what takes every step where it was read.
    pub fn new(run: &Run) -> Self {
        let responses = RESPONSES.iter();
        let is_own = run.origin == Origin::Feedrate;
        let requests = run.request_sizes.iter();
        RunPoint {
            path: run.path.display().to_string(),
            responses: responses
                .filter_map(|one| Some((one.id.name(), run.metric(one)?)))
                .collect(),
            time: TimeParts::of(run),
            phases: if is_own {
                run.phases.iter().map(PhasePoint::of).collect()
            } else {
                of_steps(run)
            },
            requests: requests.map(|(name, count)| (name.to_string(), *count)).collect(),
            details: run.record.as_ref().map(|record| match is_own {
                true => Details::of(record),
                false => Details::of_steps(run, record),
            }),
            doubts: warnings(&run.doubts),
            ..RunPoint::default()
        }
    }
}

impl FolderRun {
    /// Of a folder; `None` of one that a later run has replaced.
    pub fn of(run: &Run) -> Option<Self> {
        let has = |name: &str| run.doubts.iter().any(|doubt| doubt.name == name);
        let is_partial = ["incomplete_run", "missing_ranks", "unreadable_files"].map(has);
        let state = match (run.activity, run.put_aside.as_deref()) {
            (_, Some(INCOMPLETE)) if run.steps > 0 => FolderState::Partial,
            (_, Some(INCOMPLETE)) => FolderState::Failed,
            (_, Some(_)) => return None,
            (Activity::Generation | Activity::Checkpoints, None) => FolderState::NoTraining,
            _ if run.steps == 0 => FolderState::Failed,
            _ if is_partial.contains(&true) => FolderState::Partial,
            _ => FolderState::Done,
        };
        let (workload, processes) = (run.workload.clone(), processes(run));
        Some(FolderRun { path: run.path.clone(), workload, processes, state })
    }

    /// Of a folder that cannot be read, by its names; `None` of one that these do not call a run.
    pub fn of_unread(path: &Path) -> Option<Self> {
        let names = FolderNames::new(path);
        let workload = names.workload()?;
        let processes = names.processes().filter(|count| *count <= PROCESSES_MAX);
        Some(FolderRun { path: path.into(), workload, processes, state: FolderState::Failed })
    }
}

/// More than any machine has: where a folder says so, the name of a file in it does, or a broken number.
const PROCESSES_MAX: u32 = 1 << 20;

/// How many processes a run had, where that can be.
pub fn processes(run: &Run) -> Option<u32> {
    run.accelerators.filter(|count| (1..=PROCESSES_MAX).contains(count))
}

/// Those that a reader of the picture should know of.
fn warnings(doubts: &[Doubt]) -> Vec<String> {
    let told = doubts.iter().filter(|doubt| doubt.severity != Severity::Note);
    told.map(|doubt| doubt.name.to_string()).collect()
}

impl TimeParts {
    /// Of others' runs the parts of waiting are not known.
    fn of(run: &Run) -> Option<Self> {
        let stall = [&STALL_OPEN, &STALL_READ, &STALL_DECODE, &STALL_QUEUE];
        let wait = match stall.map(|metric| run.metric(metric)) {
            [Some(open_s), Some(read_s), Some(decode_s), Some(queue_s)] => {
                Wait::Split { open_s, read_s, decode_s, queue_s }
            }
            _ => Wait::Whole { load_s: run.metric(&LOAD_S)? },
        };
        let barrier_s = run.metric(&BARRIER_S)?;
        Some(TimeParts { compute_s: run.metric(&COMPUTE_S)?, wait, barrier_s })
    }
}

fn blocks(epochs: &[EpochRecord]) -> impl Iterator<Item = &Block> {
    epochs.iter().flat_map(|epoch| &epoch.accelerators).flat_map(|one| &one.blocks)
}

/// Where nothing was computed, read or written, there is no rate of that.
fn some_of(rate: Option<f64>) -> Option<f64> {
    rate.filter(|rate| *rate > 0.0)
}

impl PhasePoint {
    fn of(phase: &Phase) -> Self {
        let kind = phase.phase.name();
        let name = match phase.checkpoint.map(CheckpointKind::name) {
            Some(done) => kind.replace("checkpoint", done).replace('_', " "),
            None => kind.into(),
        };
        let known = phase.gpus.iter().flatten().filter_map(|gpu| gpu.utilisation_percent);
        PhasePoint {
            name,
            au_percent: some_of(phase.au_percent),
            delivered_bytes_per_second: some_of(phase.delivered_bytes_per_second),
            written_bytes_per_second: some_of(phase.written_bytes_per_second),
            gpu_percent: mean(known),
        }
    }
}

/// Samples of so many steps of all accelerators; `None` where batch or ranks are not known.
fn samples(run: &Run, steps: u64) -> Option<f64> {
    run.metric(&SAMPLES_WHOLE)?;
    Some(steps as f64 * run.batch_size? as f64 * f64::from(run.accelerators?))
}

/// Each epoch, and in it the first step of each block and all others: without the barrier, whose place in time DLIO does not tell.
fn of_steps(run: &Run) -> Vec<PhasePoint> {
    let is_whole = |phase: &&Phase| matches!(phase.phase, PhaseKind::Epoch | PhaseKind::Evaluation);
    let mut points = Vec::new();
    for phase in run.phases.iter().filter(is_whole) {
        let bytes = run.mean_sample_bytes.zip(samples(run, phase.steps));
        let bytes = bytes.filter(|_| phase.phase == PhaseKind::Epoch && phase.duration_s > 0.0);
        points.push(PhasePoint {
            name: phase.phase.name().into(),
            au_percent: phase.au_percent,
            delivered_bytes_per_second: bytes
                .map(|(size, samples)| size * samples / phase.duration_s),
            ..PhasePoint::default()
        });
    }
    let times = &run.step_times;
    for (first, later) in times.first_au_percent.iter().zip(&times.later_au_percent) {
        for (name, au_percent) in [("first steps", first), ("later steps", later)] {
            let point =
                PhasePoint { name: name.into(), au_percent: *au_percent, ..PhasePoint::default() };
            points.extend(au_percent.map(|_| point));
        }
    }
    points
}

impl Details {
    fn of(record: &Record) -> Self {
        let calls: [(&str, Call); 3] = [
            ("open", |io| &io.open_latency),
            ("read", |io| &io.read_latency),
            ("sample", |io| &io.sample_latency),
        ];
        let latencies = calls.into_iter().map(|(name, of)| {
            let mut all = Histogram::default();
            let accelerators = record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
            accelerators.for_each(|accelerator| all.merge(of(&accelerator.io)));
            let counts = all.counts().into_iter().map(|(ns, count)| (ns as f64 / 1e9, count));
            Latencies { name, counts: counts.collect() }
        });
        Details { timeline: Moments::of(record), blocks: None, latencies: latencies.collect() }
    }

    fn of_steps(run: &Run, record: &Record) -> Self {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for ns in blocks(&record.epochs).flat_map(|block| &block.load_ns) {
            *counts.entry(*ns).or_default() += 1;
        }
        let counts = counts.into_iter().map(|(ns, count)| (seconds(ns), count)).collect();
        Details {
            timeline: None,
            blocks: Blocks::of(run, record),
            latencies: vec![Latencies { name: "wait", counts }],
        }
    }
}

impl Blocks {
    fn of(run: &Run, record: &Record) -> Option<Self> {
        let mut found = Blocks::default();
        for epoch in &record.epochs {
            found.stretches.push(stretch(epoch, "epoch", StretchKind::Epoch));
            let count = epoch.accelerators.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
            for number in 0..count {
                let of: Vec<&Block> =
                    epoch.accelerators.iter().map(|one| &one.blocks[number]).collect();
                found.add(run, &of);
            }
        }
        // DLIO's files have wall-clock times: the run begins with its first block.
        let start_s = found.spans_s.iter().map(|span| span.0).reduce(f64::min)?;
        found.spans_s.iter_mut().for_each(|(from_s, to_s)| {
            *from_s -= start_s;
            *to_s -= start_s;
        });
        for stretch in &mut found.stretches {
            stretch.from_s = (stretch.from_s - start_s).max(0.0);
            stretch.to_s -= start_s;
        }
        Some(found)
    }

    /// One block, as each accelerator had it.
    fn add(&mut self, run: &Run, of: &[&Block]) {
        let start_ns = of.iter().map(|block| block.start_ns).min().unwrap_or(0);
        let end_ns = of.iter().map(|block| block.end_ns).max().unwrap_or(0);
        let steps = of.iter().map(|block| block.load_ns.len()).min().unwrap_or(0);
        let length_s = seconds(end_ns.saturating_sub(start_ns));
        let rate = samples(run, steps as u64).filter(|_| length_s > 0.0).map(|n| n / length_s);
        self.spans_s.push((seconds(start_ns), seconds(end_ns)));
        self.samples_per_second.push(rate);
        self.bytes_per_second.push(rate.zip(run.mean_sample_bytes).map(|(rate, size)| rate * size));
        for step in 0..steps {
            let waits = || of.iter().map(|block| seconds(block.load_ns[step]));
            let longest = waits().fold(0.0, f64::max);
            self.step_waits_s.push((mean(waits()).unwrap_or(longest), longest));
        }
    }
}

fn stretch(epoch: &EpochRecord, name: &str, kind: StretchKind) -> Stretch {
    let name = format!("{name} {}", epoch.number);
    Stretch { name, kind, from_s: seconds(epoch.start_ns), to_s: seconds(epoch.end_ns) }
}

impl Moments {
    fn of(record: &Record) -> Option<Self> {
        let timeline = record.timeline.as_ref().filter(|timeline| !timeline.is_empty())?;
        let column = |column: &Column| {
            column.as_ref().map(|values| values.iter().map(|value| *value as f64).collect())
        };
        let mut stretches = Vec::new();
        for epoch in &record.epochs {
            stretches.push(stretch(epoch, "epoch", StretchKind::Epoch));
            let checkpoints = epoch.checkpoints.iter().map(|one| Stretch {
                name: one.kind.name().into(),
                kind: StretchKind::Checkpoint,
                from_s: seconds(one.start_ns),
                to_s: seconds(one.end_ns),
            });
            stretches.extend(checkpoints);
        }
        let evaluations = record.evaluations.iter();
        stretches
            .extend(evaluations.map(|one| stretch(one, "evaluation", StretchKind::Evaluation)));
        Some(Moments {
            ends_s: timeline.ends_ns().into_iter().map(seconds).collect(),
            start_s: seconds(timeline.start_ns),
            read_bytes: column(&timeline.read_bytes),
            written_bytes: column(&timeline.written_bytes),
            gpu_percent: timeline.gpus.as_ref().and_then(|gpus| of_gpus(gpus, timeline.len())),
            stretches,
        })
    }
}

type Call = fn(&IoCounters) -> &Histogram;

/// Mean utilisation at each sample; `None` where no GPU ever tells.
fn of_gpus(gpus: &[GpuTimeline], samples: usize) -> Option<Vec<Option<f64>>> {
    let at = |i: usize| {
        mean(gpus.iter().filter_map(|gpu| Some(*gpu.utilisation_percent.get(i)?.as_ref()? as f64)))
    };
    let all: Vec<Option<f64>> = (0..samples).map(at).collect();
    all.iter().any(Option::is_some).then_some(all)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    feedrate_measure::stats::mean(&values.collect::<Vec<_>>())
}
