//! What plots are drawn from: plain numbers of each run. Made of records here; other results become the same.

use crate::case::Case;
use crate::overview::Overview;
use crate::response::RESPONSES;
use crate::runs::{Run, Settings};
use crate::setting::Setting;
use feedrate_measure::doubt::{SeenDoubt, Severity};
use feedrate_measure::histogram::Histogram;
use feedrate_measure::phase::Phase;
use feedrate_measure::record::timeline::{Column, GpuTimeline};
use feedrate_measure::record::{CheckpointKind, EpochRecord, IoCounters, Record};
use feedrate_measure::summary::Summary;
use std::collections::BTreeMap;

/// All that a plot may show.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// In the order they were started.
    pub runs: Vec<RunPoint>,
    /// Of a study.
    pub overview: Option<Overview>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct RunPoint {
    /// Its folder.
    pub path: String,
    /// What makes it the experiment it is: `workload`, `accelerators`, `loader.workers`; `source` where there are several.
    pub settings: Settings,
    /// Values by the name of the response; what is not known is not there.
    pub responses: BTreeMap<&'static str, f64>,
    /// Where the time of an accelerator went.
    pub time: Option<TimeParts>,
    /// Epochs, and what is around checkpoints.
    pub phases: Vec<PhasePoint>,
    /// Read calls by the size that they returned, in order; none where it is not known.
    pub requests: Vec<(String, u64)>,
    /// What takes the whole record.
    pub details: Option<Details>,
    /// Names of warnings about it.
    pub doubts: Vec<String>,
}

/// Seconds of an accelerator in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in `docs/guide/numbers.md`")]
pub struct TimeParts {
    pub compute_s: f64,
    pub open_s: f64,
    pub read_s: f64,
    pub decode_s: f64,
    pub queue_s: f64,
    pub barrier_s: f64,
}

/// A phase of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhasePoint {
    /// What it is: `epoch`, `before save`.
    pub name: String,
    /// Utilisation.
    pub au_percent: Option<f64>,
    /// What read calls returned.
    pub delivered_bytes_per_second: Option<f64>,
    /// What write calls took.
    pub written_bytes_per_second: Option<f64>,
    /// Utilisation of the machine's GPUs in the mean.
    pub gpu_percent: Option<f64>,
}

/// What takes the whole record.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// What happened when; `None` where it was not kept.
    pub timeline: Option<Moments>,
    /// Calls by how long they took.
    pub latencies: Vec<Latencies>,
}

/// A run as columns, a row for each sample.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// When each sample ended; the first began at `start_s`.
    pub ends_s: Vec<f64>,
    /// When the first began.
    pub start_s: f64,
    /// What read calls returned.
    pub read_bytes: Option<Vec<f64>>,
    /// What write calls took.
    pub written_bytes: Option<Vec<f64>>,
    /// Mean over the machine's GPUs; `None` where none tells.
    pub gpu_percent: Option<Vec<Option<f64>>>,
    /// What went on when.
    pub stretches: Vec<Stretch>,
}

/// Something that began and ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// `epoch 1`, `save`.
    pub name: String,
    /// What it is.
    pub kind: StretchKind,
    /// From the start of the run.
    pub from_s: f64,
    /// From the start of the run.
    pub to_s: f64,
}

/// What a stretch of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StretchKind {
    Epoch,
    Evaluation,
    Checkpoint,
}

/// Calls of one kind by how long they took.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// `read`.
    pub name: &'static str,
    /// (seconds, calls that took about so long), ascending.
    pub counts: Vec<(f64, u64)>,
}

impl RunPoint {
    /// Of a run; `source` tells runs of several places apart. The record is for plots that need details.
    pub fn of(run: &Run, source: Option<&str>, record: Option<&Record>) -> Self {
        let summary = &run.summary;
        let mut settings = run.settings.clone();
        if let Some(source) = source {
            settings.insert("source".into(), source.into());
        }
        let responses = RESPONSES.iter().filter_map(|response| {
            Some((response.name, (response.of)(summary).filter(|value| value.is_finite())?))
        });
        let requests = summary.access.request_bytes.iter().flat_map(|sizes| &sizes.histogram);
        RunPoint {
            path: run.path.display().to_string(),
            settings,
            responses: responses.collect(),
            time: TimeParts::of(summary),
            phases: summary.phases.iter().map(PhasePoint::of).collect(),
            requests: requests.map(|(name, count)| (name.to_string(), *count)).collect(),
            details: record.map(Details::of),
            doubts: warnings(&summary.doubts),
        }
    }

    /// The same with what is doubted of it among others.
    pub fn doubted(self, case: &Case) -> Self {
        RunPoint { doubts: warnings(&case.doubts), ..self }
    }

    /// Of results that others wrote: without what only our records tell.
    pub fn of_case(case: &Case, source: Option<&str>) -> Self {
        let rates = &case.throughput;
        let bytes = |mib: Option<f64>| mib.map(|mib| mib * f64::from(1u32 << 20));
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
        let mut settings = settings_of(case);
        if let Some(source) = source {
            settings.insert("source".into(), source.into());
        }
        RunPoint {
            path: case.path.display().to_string(),
            settings,
            responses: known.collect(),
            doubts: warnings(&case.doubts),
            ..RunPoint::default()
        }
    }
}

/// Under the names that plans have, so that results of any kind stand side by side.
fn settings_of(case: &Case) -> Settings {
    fn text(value: Option<impl ToString>) -> Option<String> {
        value.map(|value| value.to_string())
    }
    let mut settings = Settings::new();
    for setting in case.overrides.iter().filter_map(|text| Setting::parse(text).ok()) {
        if let Some(value) = setting.value {
            settings.insert(setting.key, value);
        }
    }
    for (key, name, value) in [
        ("", "workload", Some(case.workload.clone())),
        ("", "accelerators", text(case.accelerators)),
        ("dataset.format", "dataset.format", case.format.clone()),
        ("dataset.record_length_bytes", "dataset.record_bytes", text(case.record_length_bytes)),
        ("dataset.num_files_train", "dataset.files_train", text(case.files)),
        ("dataset.num_samples_per_file", "dataset.samples_per_file", text(case.samples_per_file)),
        ("reader.batch_size", "loader.batch_size", text(case.batch_size)),
        ("reader.read_threads", "loader.workers", text(case.read_threads)),
    ] {
        if let Some(value) = value {
            settings.remove(key);
            settings.insert(name.into(), value);
        }
    }
    settings
}

/// Those that a reader of the picture should know of.
fn warnings(doubts: &[SeenDoubt]) -> Vec<String> {
    let told = doubts.iter().filter(|doubt| doubt.severity != Severity::Note);
    told.map(|doubt| doubt.name.to_string()).collect()
}

impl Data {
    /// Warnings about its runs, in the words of a caption; empty where there is none.
    pub fn doubts(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.runs.iter().flat_map(|run| &run.doubts) {
            *counts.entry(name).or_default() += 1;
        }
        let all = self.runs.len();
        let told: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{name} ({count} of {all} runs)"))
            .collect();
        if told.is_empty() { String::new() } else { format!(" Doubts: {}.", told.join(", ")) }
    }
}

impl TimeParts {
    fn of(summary: &Summary) -> Option<Self> {
        let (time, stall) = (&summary.time, &summary.stall);
        Some(TimeParts {
            compute_s: time.compute_s?,
            open_s: stall.open_s?,
            read_s: stall.read_s?,
            decode_s: stall.decode_s?,
            queue_s: stall.queue_s?,
            barrier_s: time.barrier_s?,
        })
    }
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
            au_percent: phase.au_percent,
            delivered_bytes_per_second: phase.delivered_bytes_per_second,
            written_bytes_per_second: phase.written_bytes_per_second,
            gpu_percent: mean(known),
        }
    }
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
        Details { timeline: Moments::of(record), latencies: latencies.collect() }
    }
}

impl Moments {
    fn of(record: &Record) -> Option<Self> {
        let timeline = record.timeline.as_ref().filter(|timeline| !timeline.is_empty())?;
        let column = |column: &Column| {
            column.as_ref().map(|values| values.iter().map(|value| *value as f64).collect())
        };
        let mut stretches = Vec::new();
        let stretch = |name: String, kind, start_ns: u64, end_ns: u64| Stretch {
            name,
            kind,
            from_s: seconds(start_ns),
            to_s: seconds(end_ns),
        };
        let whole = |epoch: &EpochRecord, name: &str, kind| {
            stretch(format!("{name} {}", epoch.number), kind, epoch.start_ns, epoch.end_ns)
        };
        for epoch in &record.epochs {
            stretches.push(whole(epoch, "epoch", StretchKind::Epoch));
            let checkpoints = epoch.checkpoints.iter().map(|one| {
                stretch(one.kind.name().into(), StretchKind::Checkpoint, one.start_ns, one.end_ns)
            });
            stretches.extend(checkpoints);
        }
        let evaluations = record.evaluations.iter();
        stretches.extend(evaluations.map(|one| whole(one, "evaluation", StretchKind::Evaluation)));
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
