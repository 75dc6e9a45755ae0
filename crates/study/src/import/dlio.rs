//! The folder of a DLIO run, of any age, whole or not: what its files tell as a [`Record`], so that every metric and doubt of one can be had of it. Only
//! I/O counters are not in there, as no file has them. What cannot be read is told and left out.

use super::config::{self, Config};
use super::json;
use super::log::{self, Log};
use super::plan::{self, Counts};
use super::rank::{Output, OutputEpoch, Span, Stats};
use super::reported::Reported;
use feedrate_measure::dlio::micros;
use feedrate_measure::record::{
    AcceleratorEpoch, Block, EpochRecord, HostEpoch, RECORD_VERSION, Record, System,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Ranks that are looked at; what names more is told.
const RANKS_MAX: usize = 65_536;

/// What a folder holds.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Plan, machine and steps.
    pub record: Record,
    /// What was asked for.
    pub config: Config,
    /// Hydra's folder, by its name.
    pub hydra: Option<&'static str>,
    /// What `summary.json` says; `None` where there is none that can be read.
    pub reported: Option<Reported>,
    /// What `dlio.log` says.
    pub log: Log,
    /// Ranks whose steps are there.
    pub ranks: BTreeSet<u32>,
    /// Ranks that there were, as summary, log or files say.
    pub ranks_expected: Option<u32>,
    /// What DLIO reported of each block that has figures: steps, and its rate in samples a second.
    pub blocks: Vec<ReportedBlock>,
    /// What cannot be read, a sentence each.
    pub unreadable: Vec<String>,
    /// Times that run backwards, a sentence each.
    pub backwards: Vec<String>,
    /// Why the run is not whole.
    pub missing: Vec<String>,
}

/// A block as its rank reported it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedBlock {
    /// Steps.
    pub steps: u64,
    /// DLIO's figure.
    pub samples_per_second: f64,
    /// Time in DLIO's window.
    pub window_s: f64,
}

/// Names of files in a run's folder.
pub(super) const SUMMARY: &str = "summary.json";
pub(super) const LOG: &str = "dlio.log";
const OUTPUT: &str = "_output.json";
const STATS: &str = "_per_epoch_stats.json";
/// Of older DLIO: one for all ranks.
pub(super) const STATS_OF_ALL: &str = "per_epoch_stats.json";

/// Read a folder, of which `names` are the files.
pub(super) fn read(folder: &Path, names: &[String]) -> Imported {
    let mut unreadable = Vec::new();
    let hydra = config::subfolder(folder);
    let config = match &hydra {
        Some((_, path)) => Config::read(path, &mut unreadable),
        None => Config::default(),
    };
    let reported = match json::read(&folder.join(SUMMARY)) {
        Some(Ok(root)) => Some(Reported::new(root)),
        Some(Err(error)) => {
            unreadable.push(format!("`{SUMMARY}`: {error}"));
            None
        }
        None => None,
    };
    let mut steps = Steps::read(folder, names, &mut unreadable);
    let log = log::read(&folder.join(LOG)).unwrap_or_default();
    let ranks_expected = expected(reported.as_ref(), &log, &steps.ranks);
    let counts = counts(&config, reported.as_ref(), &log, &steps);
    let plan = plan::of(&config, counts);
    let (missing, epochs) = (Vec::new(), std::mem::take(&mut steps.epochs));
    let mut imported = Imported {
        record: record(plan, reported.as_ref(), &log, epochs.into_values().collect()),
        config,
        hydra: hydra.map(|(name, _)| name),
        reported,
        log,
        ranks: steps.ranks,
        ranks_expected,
        blocks: Vec::new(),
        unreadable,
        backwards: steps.backwards,
        missing,
    };
    imported.record.system.hostname = imported
        .reported
        .as_ref()
        .and_then(|reported| reported.text("hostname"))
        .or(steps.hostname)
        .unwrap_or_default();
    imported.blocks = blocks_with_window(&imported.record, &steps.rates);
    imported.know_from_rates();
    imported.find_missing();
    imported
}

/// The rank that a file's name begins with.
fn rank_of(name: &str, end: &str) -> Option<u32> {
    name.strip_suffix(end)?.parse().ok()
}

/// Whether a file of this name belongs to a rank.
pub(super) fn is_of_rank(name: &str) -> bool {
    rank_of(name, OUTPUT).or_else(|| rank_of(name, STATS)).is_some()
}

fn expected(reported: Option<&Reported>, log: &Log, ranks: &BTreeSet<u32>) -> Option<u32> {
    let told = reported.and_then(|reported| reported.count("num_accelerators"));
    let told = told.or(log.processes).and_then(|count| u32::try_from(count).ok());
    told.or_else(|| ranks.last().map(|last| last.saturating_add(1)))
}

/// Steps of all ranks, by epoch.
#[derive(Default)]
struct Steps {
    ranks: BTreeSet<u32>,
    epochs: BTreeMap<u32, EpochRecord>,
    hostname: Option<String>,
    backwards: Vec<String>,
    /// DLIO's rates, in the order of epochs' accelerators and their blocks.
    rates: BTreeMap<(u32, usize), Vec<f64>>,
    /// The earliest time that was seen.
    start_us: Option<i64>,
}

impl Steps {
    fn read(folder: &Path, names: &[String], unreadable: &mut Vec<String>) -> Self {
        let mut steps = Steps::default();
        let mut ranks: Vec<u32> = names.iter().filter_map(|name| rank_of(name, OUTPUT)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        if RANKS_MAX < ranks.len() {
            unreadable.push(format!("of {} ranks only {RANKS_MAX} are read", ranks.len()));
            ranks.truncate(RANKS_MAX);
        }
        let of_all: Option<Stats> =
            told(json::read(&folder.join(STATS_OF_ALL)), STATS_OF_ALL, unreadable);
        for rank in ranks {
            let name = format!("{rank}{OUTPUT}");
            let output: Option<Output> = told(json::read(&folder.join(&name)), &name, unreadable);
            let name = format!("{rank}{STATS}");
            let stats: Option<Stats> = told(json::read(&folder.join(&name)), &name, unreadable);
            if let Some(output) = output {
                steps.ranks.insert(rank);
                steps.hostname = steps.hostname.take().or(output.hostname);
                let stats = stats.as_ref().or(of_all.as_ref());
                for (number, epoch) in output.epochs {
                    steps.add(rank, number, &epoch, stats, unreadable);
                }
            }
        }
        steps
    }

    fn add(
        &mut self,
        rank: u32,
        number: u32,
        output: &OutputEpoch,
        stats: Option<&Stats>,
        unreadable: &mut Vec<String>,
    ) {
        let spans = stats.and_then(|stats| stats.0.get(&number));
        let mut names: Vec<(u32, &String)> = output
            .load
            .keys()
            .filter_map(|name| Some((name.strip_prefix("block")?.parse().ok()?, name)))
            .collect();
        names.sort_unstable();
        let (mut blocks, mut rates) = (Vec::new(), Vec::new());
        for (_, name) in names {
            let span = spans.and_then(|epoch| epoch.parts.get(name));
            match self.block(output, name, span) {
                Ok(block) => {
                    blocks.push(block);
                    rates.push(output.throughput.get(name).map_or(f64::NAN, |rate| rate.0));
                }
                Err(why) => {
                    let told = format!("epoch {number}, `{name}` of rank {rank}: {why}");
                    if why.is_backwards {
                        self.backwards.push(told)
                    } else {
                        unreadable.push(told)
                    }
                    return;
                }
            }
        }
        if blocks.is_empty() {
            return;
        }
        let epoch = self.epochs.entry(number).or_insert_with(|| empty_epoch(number));
        let (first, last) = (&blocks[0], &blocks[blocks.len() - 1]);
        let is_first = epoch.accelerators.is_empty();
        epoch.start_ns = if is_first { first.start_ns } else { epoch.start_ns.min(first.start_ns) };
        epoch.end_ns = epoch.end_ns.max(last.end_ns);
        if let (true, Some(span)) = (is_first, spans.map(|epoch| &epoch.span)) {
            epoch.started = span.start.clone().unwrap_or_default();
            epoch.ended = span.end.clone().unwrap_or_default();
        }
        self.rates.insert((number, epoch.accelerators.len()), rates);
        epoch.accelerators.push(AcceleratorEpoch { blocks, ..AcceleratorEpoch::default() });
    }

    fn block(
        &mut self,
        output: &OutputEpoch,
        name: &str,
        span: Option<&Span>,
    ) -> Result<Block, NoBlock> {
        let load_ns = times(output.load.get(name))?;
        let compute_ns = match output.compute.get(name) {
            Some(compute) => times(Some(compute))?,
            // Older DLIO has only both together.
            None => {
                let both = times(output.proc.get(name))?;
                both.iter().zip(&load_ns).map(|(both, load)| both.saturating_sub(*load)).collect()
            }
        };
        if load_ns.len() != compute_ns.len() {
            return Err(NoBlock::of(format!(
                "{} times of loading and {} of computing",
                load_ns.len(),
                compute_ns.len()
            )));
        }
        let (start_us, end_us) = self.span(span)?;
        let count = load_ns.len();
        Ok(Block {
            start_ns: nanos(start_us),
            end_ns: nanos(end_us),
            load_ns,
            compute_ns,
            // Neither is in DLIO's files.
            barrier_ns: vec![0; count],
            read_bytes: vec![0; count],
        })
    }

    /// Of a block, in microseconds from the earliest time of all.
    fn span(&mut self, span: Option<&Span>) -> Result<(i64, i64), NoBlock> {
        let unknown = || NoBlock::of("it is not known when it began and ended");
        let span = span.ok_or_else(unknown)?;
        let at = |stamp: &Option<String>| stamp.as_deref().and_then(micros);
        let lasted = span.duration.map(|lasted| lasted.0).filter(|s| (0.0..1e9).contains(s));
        let (start, end) = match (at(&span.start), at(&span.end), lasted) {
            (Some(start), Some(end), _) => (start, end),
            (Some(start), None, Some(lasted_s)) => (start, start + (lasted_s * 1e6) as i64),
            _ => return Err(unknown()),
        };
        let backwards = |message| Err(NoBlock { message, is_backwards: true });
        if end < start {
            return backwards(format!("it ended {} s before it began", (start - end) as f64 / 1e6));
        }
        // A day before the first time that is seen is early enough for all ranks; ten years from it are a broken clock.
        let zero = *self.start_us.get_or_insert(start.saturating_sub(86_400_000_000));
        let far = |at: i64| at.checked_sub(zero).filter(|at| *at < 315_360_000_000_000);
        match (far(start), far(end)) {
            (Some(from @ 0..), Some(to)) => Ok((from, to)),
            (_, None) => Err(NoBlock::of("it is years away from another")),
            _ => backwards("it began a day before another".into()),
        }
    }
}

/// Why a block's figures cannot be used.
struct NoBlock {
    message: String,
    is_backwards: bool,
}

impl NoBlock {
    fn of(message: impl Into<String>) -> Self {
        NoBlock { message: message.into(), is_backwards: false }
    }
}

impl std::fmt::Display for NoBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// What was read; what was not is told.
fn told<T>(read: Option<Result<T, String>>, name: &str, unreadable: &mut Vec<String>) -> Option<T> {
    match read? {
        Ok(value) => Some(value),
        Err(error) => {
            unreadable.push(format!("`{name}`: {error}"));
            None
        }
    }
}

/// No step of more than a year.
const TIME_MAX_S: f64 = 3.2e7;

fn times(list: Option<&Vec<json::Number>>) -> Result<Vec<u64>, NoBlock> {
    let list = list.ok_or_else(|| NoBlock::of("its steps are not there"))?;
    let time = |number: &json::Number| match number.0 {
        s if (0.0..TIME_MAX_S).contains(&s) => Ok((s * 1e9).round() as u64),
        s => Err(NoBlock::of(format!("`{s}` is no time of a step"))),
    };
    list.iter().map(time).collect()
}

fn nanos(us: i64) -> u64 {
    u64::try_from(us).unwrap_or(0).saturating_mul(1000)
}

fn empty_epoch(number: u32) -> EpochRecord {
    EpochRecord {
        number,
        start_ns: 0,
        end_ns: 0,
        started: String::new(),
        ended: String::new(),
        accelerators: Vec::new(),
        host: HostEpoch::default(),
        nodes: Vec::new(),
        checkpoints: Vec::new(),
    }
}

fn counts(config: &Config, reported: Option<&Reported>, log: &Log, steps: &Steps) -> Counts {
    let of_log = |index: usize| log.steps_of.map(|numbers| numbers[index]);
    let told = |key: &str| reported.and_then(|reported| reported.count(key));
    let files = config.count(&["dataset.num_files_train"], 8);
    let per_file = config.count(&["dataset.num_samples_per_file"], 1);
    let batch = config.count(&["data_reader.batch_size", "reader.batch_size"], 1);
    let files = files.or_else(|| told("num_files_train")).or_else(|| of_log(1)).unwrap_or(0);
    let per_file =
        per_file.or_else(|| told("num_samples_per_file")).or_else(|| of_log(0)).unwrap_or(0);
    let batch_size = batch.or_else(|| of_log(2)).unwrap_or(0);
    let accelerators = steps.ranks.len() as u32;
    let whole = expected(reported, log, &steps.ranks).unwrap_or(accelerators);
    let per_step = batch_size.saturating_mul(u64::from(whole));
    let made = files.saturating_mul(per_file).checked_div(per_step);
    let most = config.number(&["train.total_training_steps"]).filter(|most| 0.0 < *most);
    // DLIO counts them anew in each epoch.
    let made = made.map(|made| most.map_or(made, |most| made.min(most as u64)));
    let seen = steps.epochs.values().flat_map(|epoch| &epoch.accelerators).map(|a| a.steps()).max();
    let epochs = config.count(&["train.epochs"], 1).unwrap_or(steps.epochs.len() as u64);
    Counts {
        accelerators,
        files,
        samples_per_file: per_file,
        batch_size,
        epochs: u32::try_from(epochs).unwrap_or(u32::MAX),
        steps: made.or(seen).unwrap_or(0),
    }
}

fn record(
    plan: feedrate_spec::plan::Plan,
    reported: Option<&Reported>,
    log: &Log,
    epochs: Vec<EpochRecord>,
) -> Record {
    let text = |key: &str| reported.and_then(|reported| reported.text(key));
    let memory_gib = reported.and_then(|reported| reported.sum("host_memory_GB"));
    Record {
        version: RECORD_VERSION,
        program: "DLIO".into(),
        plan,
        system: System {
            memory_bytes: memory_gib
                .filter(|gib| 0.0 < *gib)
                .map(|gib| (gib * f64::from(1 << 30)) as u64),
            processor: text("host_processor_name").unwrap_or_default(),
            ..System::default()
        },
        nodes: Vec::new(),
        processes: Vec::new(),
        started: text("start").or_else(|| log.started.clone()).unwrap_or_default(),
        ended: text("end").unwrap_or_default(),
        complete: true,
        stopped_because: None,
        compute_spins: false,
        simulated: false,
        epochs,
        evaluations: Vec::new(),
        timeline: None,
        doubts: Vec::new(),
        study: None,
    }
}

/// DLIO's rates beside the time of its window.
fn blocks_with_window(
    record: &Record,
    rates: &BTreeMap<(u32, usize), Vec<f64>>,
) -> Vec<ReportedBlock> {
    let excluded = record.plan.metric.exclude_start_steps as usize;
    let mut found = Vec::new();
    for epoch in &record.epochs {
        for (rank, accelerator) in epoch.accelerators.iter().enumerate() {
            let rates = rates.get(&(epoch.number, rank)).into_iter().flatten();
            for (block, &samples_per_second) in accelerator.blocks.iter().zip(rates) {
                let outside = block.load_ns.iter().zip(&block.compute_ns).take(excluded);
                let outside_ns: u64 = outside.map(|(load, compute)| load + compute).sum();
                let length_ns = block.end_ns.saturating_sub(block.start_ns);
                found.push(ReportedBlock {
                    steps: block.steps() as u64,
                    samples_per_second,
                    window_s: length_ns.saturating_sub(outside_ns) as f64 / 1e9,
                });
            }
        }
    }
    found
}

impl Imported {
    /// Whether it was to train, as far as is known.
    pub fn trains(&self) -> bool {
        match self.config.is_known() {
            true => self.config.truth("workflow.train", true),
            false => !self.record.epochs.is_empty() || self.log.steps_of.is_some(),
        }
    }

    /// Whether it was to make its dataset.
    pub fn generates(&self) -> bool {
        self.config.truth("workflow.generate_data", false) || self.log.generates
    }

    /// Without a config: DLIO's rate of a block is (steps − 2) × batch ÷ time of its window, and its two rates are a record length apart.
    fn know_from_rates(&mut self) {
        if self.config.is_known() {
            return;
        }
        let plan = &mut self.record.plan;
        if plan.loader.batch_size == 0 {
            let of_block = |block: &ReportedBlock| {
                let steps = block.steps.checked_sub(2).filter(|steps| *steps > 0)?;
                let batch = block.samples_per_second * block.window_s / steps as f64;
                let whole = batch.round();
                let is_whole = (1.0..1e9).contains(&whole) && (batch / whole - 1.0).abs() < 0.01;
                is_whole.then_some(whole as u64)
            };
            let batches: BTreeSet<Option<u64>> = self.blocks.iter().map(of_block).collect();
            if let (1, Some(Some(batch))) = (batches.len(), batches.first()) {
                plan.loader.batch_size = *batch;
            }
        }
        let metric = |name: &str| self.reported.as_ref()?.metric(name);
        let samples =
            metric("train_throughput_mean_samples_per_second").filter(|rate| *rate != 0.0);
        let mib = metric("train_io_mean_MB_per_second");
        if let (Some(samples), Some(mib)) = (samples, mib) {
            plan.dataset.record_bytes = (mib * f64::from(1 << 20) / samples).max(0.0);
        }
    }

    fn find_missing(&mut self) {
        if !self.trains() {
            return;
        }
        if self.reported.is_none() {
            self.missing.push(format!("there is no `{SUMMARY}` that can be read"));
        }
        let expected = u64::from(self.record.plan.train.epochs);
        let has_steps = |epoch: &&EpochRecord| epoch.accelerators.iter().any(|one| one.steps() > 0);
        let found = self.record.epochs.iter().filter(has_steps).count() as u64;
        if self.record.plan.train.steps_per_epoch == 0 && self.config.is_known() {
            self.missing
                .push("no step was run: files × samples are fewer than batch × ranks".into());
        } else if found < expected {
            self.missing.push(format!("{found} of {expected} epochs have steps"));
        }
        if !self.missing.is_empty() {
            self.record.complete = false;
            self.record.stopped_because = Some(self.missing.join("; "));
        }
    }

    /// Ranks whose steps are not there.
    pub fn ranks_missing(&self) -> Vec<u32> {
        let expected = self.ranks_expected.unwrap_or(0).min(RANKS_MAX as u32);
        (0..expected).filter(|rank| !self.ranks.contains(rank)).collect()
    }
}
