//! One run as analyses need it, whoever wrote its folder: what was run, what was reported, and what follows from its steps. Of a record the
//! numbers are `measure`'s; of DLIO's files too, as those become a record first. Doubts are made elsewhere.

mod clocks;
mod name;
mod origin;
mod figures;
mod settings;
mod size;
mod alike;

pub use alike::{number_replicates, tell_apart};
pub use name::Names;
pub use origin::Origin;
pub use settings::{ROWS, factor};
pub use size::{first_batch_bytes_of, mean_sample_bytes};

use crate::import::{Imported, Kind, Reported, load_dlio, load_run};
use crate::runs::{self, Settings};
use feedrate_measure::doubt::Doubt;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, NOMINAL_WHOLE, NOMINAL_WINDOWED,
    SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use feedrate_measure::record::Record;
use feedrate_measure::window::{Scope, seconds};
use feedrate_spec::units::MIB;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A name that is no UTF-8 is shown as far as it is.
fn as_shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It trained, or should have.
    Training,
    /// It made a dataset, and trained nothing.
    Generation,
    /// It wrote or read checkpoints, and trained nothing.
    Checkpoints,
    /// Its files do not tell.
    Unknown,
}

/// One run. What is not known is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Its folder.
    #[serde(serialize_with = "as_shown")]
    pub path: PathBuf,
    /// The argument it was found under.
    pub source: String,
    /// Who wrote it.
    pub kind: Kind,
    /// What it did.
    pub activity: Activity,
    /// `incomplete` or `superseded`, where a study put it aside: it is no replicate.
    pub put_aside: Option<String>,
    /// The workload's name.
    pub workload: String,
    /// Emulated accelerators; DLIO's ranks.
    pub accelerators: Option<u32>,
    /// What was varied: the last word of its key, several joined by commas; `processes` of a baseline.
    pub parameter: String,
    /// To what.
    pub value: String,
    /// Which of the runs of its experiment it is: the number its study gave it, else counted in the order they were started, those with results alone.
    pub replicate: Option<u32>,
    /// Overrides as they were given, but for the workload, the workflow and folders.
    pub overrides: Vec<String>,
    /// Local wall-clock start, as DLIO writes it.
    pub started: Option<String>,
    /// Local wall-clock end.
    pub ended: Option<String>,
    /// The machine of rank 0.
    pub hostname: Option<String>,
    /// Machines.
    pub hosts: Option<u64>,
    /// Epochs with steps.
    pub epochs: u64,
    /// Steps of the longest epoch.
    pub steps: u64,
    /// File format.
    pub format: Option<String>,
    /// As configured.
    pub record_length_bytes: Option<f64>,
    /// Bytes of a sample in the mean, as DLIO's generator draws them for these settings; of a stale run those of the data it read.
    pub mean_sample_bytes: Option<f64>,
    /// Training files.
    pub files: Option<u64>,
    /// Samples in each.
    pub samples_per_file: Option<u64>,
    /// Samples in a batch.
    pub batch_size: Option<u64>,
    /// Reading threads of each accelerator.
    pub read_threads: Option<u32>,
    /// Compute time of a step in the mean.
    pub compute_s_per_step: Option<f64>,
    /// Utilisation.
    pub au: AuFigures,
    /// Rates.
    pub throughput: ThroughputFigures,
    /// All that `metric` of `summary.json` has as one finite number, by DLIO's names, whose MB and GB are 2^20 and 2^30 bytes.
    pub reported: BTreeMap<String, f64>,
    /// Waiting for data.
    pub stall: StallFigures,
    /// How far accelerators differ.
    pub skew: SkewFigures,
    /// Reasons not to believe, the worst first.
    pub doubts: Vec<Doubt>,
    /// All that it was asked for, by the keys of plans; of a run whose config is not known, workload and accelerators.
    #[serde(skip)]
    pub settings: Settings,
    /// What doubts look at beside all this.
    #[serde(skip)]
    pub origin: Origin,
}

/// Utilisation in percent, mean over accelerators and epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AuFigures {
    /// `train_au_mean_percentage` of `summary.json`.
    pub reported_percent: Option<f64>,
    /// DLIO's definition, recomputed.
    pub windowed_percent: Option<f64>,
    /// Compute time of all steps ÷ length of their blocks, barriers inside.
    pub all_steps_percent: Option<f64>,
    /// Of records only: DLIO's files do not tell when was read.
    pub sustained_percent: Option<f64>,
}

/// Rates of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThroughputFigures {
    /// `train_throughput_mean_samples_per_second` of `summary.json`.
    pub reported_samples_per_second: Option<f64>,
    /// `train_io_mean_MB_per_second` of `summary.json`, which is in MiB.
    pub reported_mib_per_second: Option<f64>,
    /// DLIO's definition with the steps counted right.
    pub windowed_samples_per_second: Option<f64>,
    /// The same × configured record length.
    pub windowed_mib_per_second: Option<f64>,
    /// Samples of all steps ÷ length of the epochs.
    pub whole_samples_per_second: Option<f64>,
    /// The same × configured record length.
    pub whole_mib_per_second: Option<f64>,
    /// The same in bytes that were read: as counted by a record, else with the mean size of what the run read.
    pub whole_read_mib_per_second: Option<f64>,
}

/// Time that accelerators waited for data, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StallFigures {
    /// Of all steps.
    pub load_s_per_step: Option<f64>,
    /// Of the time of the blocks.
    pub load_percent: Option<f64>,
    /// Of the waiting, what lies in steps that au_windowed leaves out.
    pub excluded_percent: Option<f64>,
    /// Of the time of the blocks: neither loading nor computing, so barrier and bookkeeping.
    pub barrier_percent: Option<f64>,
}

/// How far accelerators differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SkewFigures {
    /// The lowest au_windowed of an accelerator, mean over epochs.
    pub windowed_lowest_percent: Option<f64>,
    /// The highest.
    pub windowed_highest_percent: Option<f64>,
    /// Longest ÷ shortest sum of loading and computing of an accelerator, less 1.
    pub own_time_percent: Option<f64>,
}

/// A run and what its folder held.
pub struct Loaded {
    /// The run, without doubts.
    pub case: Case,
    /// Its record, or the one made of DLIO's files.
    pub record: Record,
    /// What DLIO's folder held; `None` of a record.
    pub imported: Option<Imported>,
    /// By accelerator of the record, how far its clock was ahead of that of the first; its blocks are on that. Empty where clocks agree.
    pub clock_offsets_ns: Vec<i64>,
}

/// Read the folder of a run, found under `source`.
///
/// # Errors
/// Why its record cannot be used; DLIO's folders always come to something.
pub fn load(path: &Path, kind: Kind, source: &str) -> Result<Loaded, String> {
    let names = Names::of(path);
    match kind {
        Kind::Record => {
            let record = load_run(path).map_err(|error| error.to_string())?;
            let case = of_record(path, source, &names, &record);
            Ok(Loaded { case, record, imported: None, clock_offsets_ns: Vec::new() })
        }
        Kind::Dlio | Kind::MlperfStorage => {
            let mut imported = load_dlio(path);
            let clock_offsets_ns = clocks::align(&mut imported.record);
            let mut record = imported.record.clone();
            let mut case = of_imported(path, source, &names, &imported);
            case.kind = kind;
            record.plan.workload.clone_from(&case.workload);
            Ok(Loaded { case, record, imported: Some(imported), clock_offsets_ns })
        }
    }
}

fn of_record(path: &Path, source: &str, names: &Names, record: &Record) -> Case {
    let plan = &record.plan;
    let overrides = record.study.as_ref().map(|study| study.overrides.clone());
    let overrides = overrides.unwrap_or_default();
    let (parameter, value) = names.varied(&overrides, Some(plan.accelerators));
    let activity = match plan.is_checkpoints_alone() {
        true => Activity::Checkpoints,
        false => Activity::Training,
    };
    let mut case = Case {
        activity,
        workload: plan.workload.clone(),
        accelerators: Some(plan.accelerators),
        parameter,
        value,
        overrides,
        hosts: Some(record.machines().len() as u64),
        settings: runs::settings(plan),
        ..of_steps(
            path,
            source,
            names,
            record,
            Known { batch: true, threads: true, all_ranks: true },
        )
    };
    case.au.sustained_percent = (AU_SUSTAINED.of_run)(record);
    // It fills DLIO's fields, whatever became of the file.
    case.au.reported_percent = case.au.windowed_percent;
    let rates = &mut case.throughput;
    rates.reported_samples_per_second = rates.windowed_samples_per_second;
    rates.reported_mib_per_second = rates.windowed_mib_per_second;
    rates.whole_read_mib_per_second = (DELIVERED_WHOLE.of_run)(record).map(|rate| rate / MIB);
    case
}

fn of_imported(path: &Path, source: &str, names: &Names, imported: &Imported) -> Case {
    let record = &imported.record;
    let reported = imported.reported.as_ref();
    let plan = &record.plan;
    let given = imported.config.overrides.as_deref().unwrap_or_default();
    let accelerators = imported.ranks_expected.or(names.processes());
    let overrides = name::varied_overrides(given);
    let (parameter, value) = names.varied(&overrides, accelerators);
    let known = Known {
        batch: plan.loader.batch_size > 0,
        threads: imported.config.is_known(),
        all_ranks: imported.ranks_missing().is_empty(),
    };
    let mut case = Case {
        activity: activity(imported),
        workload: name::workload(given)
            .or_else(|| names.workload())
            .unwrap_or_else(|| plan.workload.clone()),
        accelerators,
        parameter,
        value,
        overrides,
        hosts: imported.hosts,
        ..of_steps(path, source, names, record, known)
    };
    let scalars = reported.into_iter().flat_map(Reported::scalars);
    case.reported = scalars.map(|(name, value)| (name.to_string(), value)).collect();
    let metric = |name: &str| reported?.metric(name);
    case.au.reported_percent = metric("train_au_mean_percentage");
    let rates = &mut case.throughput;
    rates.reported_samples_per_second = metric("train_throughput_mean_samples_per_second");
    rates.reported_mib_per_second = metric("train_io_mean_MB_per_second");
    let mean = mean_sample_bytes(&imported.config, &plan.dataset);
    case.mean_sample_bytes = mean.filter(|_| plan.dataset.record_bytes > 0.0);
    case.origin = Origin::of(path, imported, case.origin);
    case.settings = settings::of_dlio(&case, imported.config.is_known());
    if case.mean_sample_bytes.is_some() {
        case.origin.files = Some(plan.dataset.clone());
        case.origin.first_batch_bytes =
            size::first_batch_bytes(plan, imported.ranks_expected.unwrap_or(0));
    }
    case.read_bytes(case.mean_sample_bytes);
    case
}

fn activity(imported: &Imported) -> Activity {
    if imported.trains() {
        Activity::Training
    } else if imported.generates() {
        Activity::Generation
    } else if imported.config.truth("workflow.checkpoint", false) {
        Activity::Checkpoints
    } else {
        Activity::Unknown
    }
}

impl Case {
    /// Say how large the samples were that the run read.
    pub fn read_bytes(&mut self, mean_sample_bytes: Option<f64>) {
        self.mean_sample_bytes = mean_sample_bytes;
        let rates = &mut self.throughput;
        rates.whole_read_mib_per_second = match (rates.whole_samples_per_second, mean_sample_bytes)
        {
            (Some(rate), Some(bytes)) => Some(rate * bytes / MIB),
            _ => None,
        };
    }

    /// Whether it trained and counts as a run of its experiment.
    pub fn is_result(&self) -> bool {
        self.activity == Activity::Training && self.put_aside.is_none() && self.steps > 0
    }

    /// The last two folders of its path, which tell runs of a study apart; of MLPerf Storage, where these are called `run`, some more.
    pub fn short_path(&self) -> String {
        let names: Vec<_> = self.path.iter().map(|name| name.to_string_lossy()).collect();
        let mut from = names.len().saturating_sub(2);
        while 0 < from && ["run", "datagen"].iter().any(|word| names[from].starts_with(word)) {
            from -= 1;
        }
        names[from..].join("/")
    }

    /// What its replicates have in common, as people call it: `4_batch_size_1`.
    pub fn experiment(&self) -> String {
        let accelerators = self.accelerators.map_or("?".into(), |count| count.to_string());
        match self.parameter.as_str() {
            "processes" => accelerators,
            _ => format!("{accelerators}_{}_{}", self.parameter, self.value),
        }
    }
}

/// What a record made of DLIO's files may not tell.
#[derive(Clone, Copy)]
struct Known {
    batch: bool,
    threads: bool,
    all_ranks: bool,
}

/// What plan and steps say, whoever wrote them.
fn of_steps(path: &Path, source: &str, names: &Names, record: &Record, known: Known) -> Case {
    let dataset = &record.plan.dataset;
    let count = |count: u64| (count > 0).then_some(count);
    let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let run = |metric: &feedrate_measure::metric::Metric| (metric.of_run)(record);
    let rate = |metric| run(metric).filter(|_| known.batch && known.all_ranks);
    let mib = |metric| {
        let known = dataset.record_bytes > 0.0;
        rate(metric).filter(|_| known).map(|bytes: f64| bytes / MIB)
    };
    let sums = Sums::of(record);
    Case {
        path: path.into(),
        source: source.into(),
        kind: Kind::Record,
        activity: Activity::Unknown,
        put_aside: names.put_aside(),
        workload: String::new(),
        accelerators: None,
        parameter: String::new(),
        value: String::new(),
        replicate: record.study.as_ref().and_then(|study| study.replicate),
        overrides: Vec::new(),
        started: text(&record.started),
        ended: text(&record.ended),
        hostname: text(&record.system.hostname),
        hosts: None,
        epochs: Scope::all(record).filter(|scope| scope.steps() > 0).count() as u64,
        steps: Scope::each(record).map(Scope::steps).max().unwrap_or(0),
        format: text(&dataset.format),
        record_length_bytes: (dataset.record_bytes > 0.0).then_some(dataset.record_bytes),
        mean_sample_bytes: None,
        files: count(dataset.files_train),
        samples_per_file: count(dataset.samples_per_file),
        batch_size: count(record.plan.loader.batch_size),
        read_threads: known.threads.then_some(record.plan.loader.workers),
        compute_s_per_step: sums.per_step(sums.compute_ns),
        au: AuFigures {
            reported_percent: None,
            windowed_percent: run(&AU_WINDOWED),
            all_steps_percent: run(&AU_ALL_STEPS),
            sustained_percent: None,
        },
        throughput: ThroughputFigures {
            windowed_samples_per_second: rate(&SAMPLES_WINDOWED),
            windowed_mib_per_second: mib(&NOMINAL_WINDOWED),
            whole_samples_per_second: rate(&SAMPLES_WHOLE),
            whole_mib_per_second: mib(&NOMINAL_WHOLE),
            ..ThroughputFigures::default()
        },
        reported: BTreeMap::new(),
        stall: sums.stall(),
        skew: skew(record),
        doubts: Vec::new(),
        settings: Settings::new(),
        origin: Origin::of_record(record),
    }
}

/// Over all steps of all accelerators.
#[derive(Default)]
struct Sums {
    steps: u64,
    load_ns: u64,
    compute_ns: u64,
    excluded_ns: u64,
    length_ns: u64,
}

impl Sums {
    fn of(record: &Record) -> Self {
        let excluded = record.plan.metric.exclude_start_steps as usize;
        let mut sums = Sums::default();
        let accelerators = Scope::all(record).flat_map(|scope| &scope.epoch.accelerators);
        for block in accelerators.flat_map(|accelerator| &accelerator.blocks) {
            sums.steps += block.steps() as u64;
            sums.load_ns += block.load_ns.iter().sum::<u64>();
            sums.compute_ns += block.compute_ns.iter().sum::<u64>();
            sums.excluded_ns += block.load_ns.iter().take(excluded).sum::<u64>();
            sums.length_ns += block.end_ns.saturating_sub(block.start_ns);
        }
        sums
    }

    fn per_step(&self, ns: u64) -> Option<f64> {
        (self.steps > 0).then(|| seconds(ns) / self.steps as f64)
    }

    fn stall(&self) -> StallFigures {
        let percent = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64 * 100.0);
        let rest = self.length_ns.checked_sub(self.load_ns + self.compute_ns);
        StallFigures {
            load_s_per_step: self.per_step(self.load_ns),
            load_percent: percent(self.load_ns, self.length_ns),
            excluded_percent: percent(self.excluded_ns, self.load_ns),
            barrier_percent: rest.and_then(|rest| percent(rest, self.length_ns)),
        }
    }
}

fn skew(record: &Record) -> SkewFigures {
    let count = Scope::all(record).map(|scope| scope.epoch.accelerators.len()).min().unwrap_or(0);
    let (mut windowed, mut own): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for rank in 0..count {
        let epochs = || Scope::all(record).map(|scope| (scope, &scope.epoch.accelerators[rank]));
        let of_epochs: Vec<f64> =
            epochs().filter_map(|(scope, one)| (AU_WINDOWED.of_accelerator)(scope, one)).collect();
        windowed.extend(feedrate_measure::stats::mean(&of_epochs));
        let blocks = epochs().flat_map(|(_, one)| &one.blocks);
        own.push(
            blocks.flat_map(|b| b.load_ns.iter().chain(&b.compute_ns)).map(|&ns| seconds(ns)).sum(),
        );
    }
    let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
    let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
    let ratio = least(&own).zip(most(&own)).filter(|(least, _)| *least > 0.0);
    SkewFigures {
        windowed_lowest_percent: least(&windowed),
        windowed_highest_percent: most(&windowed),
        own_time_percent: ratio.map(|(least, most)| (most / least - 1.0) * 100.0),
    }
}
