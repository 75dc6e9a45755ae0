//! Runs as plots need them: of records, and of the steps that others' results tell. Draws nothing.

use super::data::{
    Blocks, Details, FolderRun, FolderState, Latencies, Moments, PhasePoint, RunPoint, Stretch,
    StretchKind, TimeParts, Wait,
};
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::histogram::Histogram;
use feedrate_measure::metric;
use feedrate_measure::phase::{Phase, PhaseKind, phases};
use feedrate_measure::record::timeline::{Column, GpuTimeline};
use feedrate_measure::record::{Block, CheckpointKind, EpochRecord, IoCounters, Record};
use feedrate_measure::summary::Summary;
use feedrate_results::case::{Activity, Case, Names};
use feedrate_results::place::INCOMPLETE;
use feedrate_results::response::RESPONSES;
use feedrate_results::runs::Run;
use feedrate_spec::units::MIB;
use std::collections::BTreeMap;
use std::path::Path;

/// How much of a run is kept for plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Its numbers.
    Summary,
    /// Also [`Details`], which take the whole record.
    Whole,
}

impl RunPoint {
    /// Of a record, with what is doubted of it among others.
    pub fn of_record(run: &Run, case: &Case, record: &Record, depth: Depth) -> Self {
        let summary = &run.summary;
        let responses = RESPONSES
            .iter()
            .filter_map(|response| Some((response.id.name(), summary.figures.value(response)?)));
        let requests = summary
            .figures
            .access
            .iter()
            .flat_map(|access| &access.request_bytes)
            .flat_map(|sizes| &sizes.histogram);
        RunPoint {
            path: run.path.display().to_string(),
            responses: responses.collect(),
            time: TimeParts::of(summary),
            phases: summary.phases.iter().map(PhasePoint::of).collect(),
            requests: requests.map(|(name, count)| (name.to_string(), *count)).collect(),
            details: (depth == Depth::Whole).then(|| Details::of(record)),
            doubts: warnings(&case.doubts),
            ..RunPoint::default()
        }
    }

    /// Of results that others wrote: what their steps tell. `record` is made of them.
    pub fn of_case(case: &Case, record: &Record, depth: Depth) -> Self {
        let rates = &case.throughput;
        let bytes = |mib: Option<f64>| mib.map(|mib| mib * MIB);
        let responses = [
            ("au_all_steps_percent", case.au.all_steps_percent),
            ("au_windowed_percent", case.au.windowed_percent),
            ("au_sustained_percent", case.au.sustained_percent),
            ("samples_per_second", rates.whole_samples_per_second),
            ("delivered_bytes_per_second", bytes(rates.whole_read_mib_per_second)),
            ("nominal_bytes_per_second", bytes(rates.whole_mib_per_second)),
            ("stall_percent", case.stall.load_percent),
        ];
        let known = responses
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.filter(|value| value.is_finite())?)));
        RunPoint {
            path: case.path.display().to_string(),
            responses: known.collect(),
            time: TimeParts::of_steps(record),
            phases: of_steps(case, record),
            details: (depth == Depth::Whole).then(|| Details::of_steps(case, record)),
            doubts: warnings(&case.doubts),
            ..RunPoint::default()
        }
    }
}

impl FolderRun {
    /// Of a folder; `None` of one that a later run has replaced.
    pub fn of(case: &Case) -> Option<Self> {
        let has = |name: &str| case.doubts.iter().any(|doubt| doubt.name == name);
        let is_partial = ["incomplete_run", "missing_ranks", "unreadable_files"].map(has);
        let state = match (case.activity, case.put_aside.as_deref()) {
            (_, Some(INCOMPLETE)) if case.steps > 0 => FolderState::Partial,
            (_, Some(INCOMPLETE)) => FolderState::Failed,
            (_, Some(_)) => return None,
            (Activity::Generation | Activity::Checkpoints, None) => FolderState::NoTraining,
            _ if case.steps == 0 => FolderState::Failed,
            _ if is_partial.contains(&true) => FolderState::Partial,
            _ => FolderState::Done,
        };
        let (workload, processes) = (case.workload.clone(), processes(case));
        Some(FolderRun { path: case.path.clone(), workload, processes, state })
    }

    /// Of a folder that cannot be read, by its names; `None` of one that these do not call a run.
    pub fn of_unread(path: &Path) -> Option<Self> {
        let names = Names::of(path);
        let workload = names.workload()?;
        let processes = names.processes().filter(|count| *count <= PROCESSES_MAX);
        Some(FolderRun { path: path.into(), workload, processes, state: FolderState::Failed })
    }
}

/// More than any machine has: where a folder says so, the name of a file in it does, or a broken number.
const PROCESSES_MAX: u32 = 1 << 20;

/// How many processes a run had, where that can be.
pub fn processes(case: &Case) -> Option<u32> {
    case.accelerators.filter(|count| (1..=PROCESSES_MAX).contains(count))
}

/// Those that a reader of the picture should know of.
fn warnings(doubts: &[Doubt]) -> Vec<String> {
    let told = doubts.iter().filter(|doubt| doubt.severity != Severity::Note);
    told.map(|doubt| doubt.name.to_string()).collect()
}

impl TimeParts {
    fn of(summary: &Summary) -> Option<Self> {
        let figures = &summary.figures;
        Some(TimeParts {
            compute_s: figures.value(&metric::COMPUTE_S)?,
            wait: Wait::Split {
                open_s: figures.value(&metric::STALL_OPEN)?,
                read_s: figures.value(&metric::STALL_READ)?,
                decode_s: figures.value(&metric::STALL_DECODE)?,
                queue_s: figures.value(&metric::STALL_QUEUE)?,
            },
            barrier_s: figures.value(&metric::BARRIER_S)?,
        })
    }

    /// What of a block is neither computing nor waiting for data is the barrier, and DLIO's own work between steps. `None` where steps are
    /// longer than their blocks.
    fn of_steps(record: &Record) -> Option<Self> {
        let blocks = || blocks(&record.epochs);
        let sum = |of: fn(&Block) -> u64| blocks().map(of).sum::<u64>();
        let compute_ns = sum(|block| block.compute_ns.iter().sum());
        let load_ns = sum(|block| block.load_ns.iter().sum());
        let all_ns = sum(|block| block.end_ns.saturating_sub(block.start_ns));
        let barrier_ns = all_ns.checked_sub(compute_ns + load_ns).filter(|_| all_ns > 0)?;
        let accelerators = record.epochs.iter().map(|epoch| epoch.accelerators.len()).max()?;
        let mean = |ns: u64| seconds(ns) / accelerators as f64;
        let wait = Wait::Whole { load_s: mean(load_ns) };
        Some(TimeParts { compute_s: mean(compute_ns), wait, barrier_s: mean(barrier_ns) })
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
fn samples(case: &Case, steps: u64) -> Option<f64> {
    case.throughput.whole_samples_per_second?;
    Some(steps as f64 * case.batch_size? as f64 * f64::from(case.accelerators?))
}

/// Each epoch, and in it the first step of each block and all others: without the barrier, whose place in time DLIO does not tell.
fn of_steps(case: &Case, record: &Record) -> Vec<PhasePoint> {
    let is_whole = |phase: &Phase| matches!(phase.phase, PhaseKind::Epoch | PhaseKind::Evaluation);
    let mut points = Vec::new();
    for phase in phases(record).iter().filter(|phase| is_whole(phase)) {
        let bytes = case.mean_sample_bytes.zip(samples(case, phase.steps));
        let bytes = bytes.filter(|_| phase.phase == PhaseKind::Epoch && phase.duration_s > 0.0);
        points.push(PhasePoint {
            name: phase.phase.name().into(),
            au_percent: phase.au_percent,
            delivered_bytes_per_second: bytes
                .map(|(size, samples)| size * samples / phase.duration_s),
            ..PhasePoint::default()
        });
    }
    for epoch in &record.epochs {
        let mut part = |name: &str, steps: fn(&[u64]) -> &[u64]| {
            let of = |of: fn(&Block) -> &Vec<u64>| {
                let all = blocks(std::slice::from_ref(epoch));
                all.flat_map(|block| steps(of(block))).sum::<u64>() as f64
            };
            let (load, compute) = (of(|block| &block.load_ns), of(|block| &block.compute_ns));
            let au = (load + compute > 0.0).then(|| 100.0 * compute / (load + compute));
            let name = name.into();
            points.extend(au.map(|au| PhasePoint {
                name,
                au_percent: Some(au),
                ..PhasePoint::default()
            }));
        };
        part("first steps", |steps| &steps[..steps.len().min(1)]);
        part("later steps", |steps| &steps[steps.len().min(1)..]);
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

    fn of_steps(case: &Case, record: &Record) -> Self {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for ns in blocks(&record.epochs).flat_map(|block| &block.load_ns) {
            *counts.entry(*ns).or_default() += 1;
        }
        let counts = counts.into_iter().map(|(ns, count)| (seconds(ns), count)).collect();
        Details {
            timeline: None,
            blocks: Blocks::of(case, record),
            latencies: vec![Latencies { name: "wait", counts }],
        }
    }
}

impl Blocks {
    fn of(case: &Case, record: &Record) -> Option<Self> {
        let mut found = Blocks::default();
        for epoch in &record.epochs {
            found.stretches.push(stretch(epoch, "epoch", StretchKind::Epoch));
            let count = epoch.accelerators.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
            for number in 0..count {
                let of: Vec<&Block> =
                    epoch.accelerators.iter().map(|one| &one.blocks[number]).collect();
                found.add(case, &of);
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
    fn add(&mut self, case: &Case, of: &[&Block]) {
        let start_ns = of.iter().map(|block| block.start_ns).min().unwrap_or(0);
        let end_ns = of.iter().map(|block| block.end_ns).max().unwrap_or(0);
        let steps = of.iter().map(|block| block.load_ns.len()).min().unwrap_or(0);
        let length_s = seconds(end_ns.saturating_sub(start_ns));
        let rate = samples(case, steps as u64).filter(|_| length_s > 0.0).map(|n| n / length_s);
        self.spans_s.push((seconds(start_ns), seconds(end_ns)));
        self.samples_per_second.push(rate);
        self.bytes_per_second
            .push(rate.zip(case.mean_sample_bytes).map(|(rate, size)| rate * size));
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
