//! The folder of a DLIO run, of any age, whole or not: what its files tell as a [`Record`], so that every metric and doubt of one can be had of it. Only
//! I/O counters are not in there, as no file has them. What cannot be read is told and left out.

use super::clocks;
use super::config::{self, Config};
use super::json;
use super::log::{self, LOG, Log};
use super::machine;
use super::plan::{self, Asked, Counts};
use super::reported::Reported;
use super::steps::{RANKS_MAX, Steps, told};
use feedrate_measure::record::{EpochRecord, Record, System};
use feedrate_measure::window::seconds;
use feedrate_spec::workload::TimeSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The program's name in records and comparisons.
pub const DLIO: &str = "DLIO";

/// The contents of a folder.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Plan, machine and steps.
    pub record: Record,
    /// The settings that were asked for.
    pub config: Config,
    /// Hydra's folder, by its name.
    pub hydra: Option<&'static str>,
    /// `summary.json`; `None` where there is none that can be read.
    pub reported: Option<Reported>,
    /// `dlio.log`.
    pub log: Log,
    /// Ranks of which all epochs can be used, in the order of the record's accelerators.
    pub ranks: BTreeSet<u32>,
    /// Ranks that there were, as summary, log or files say.
    pub ranks_expected: Option<u32>,
    /// Machines.
    pub hosts: Option<u64>,
    /// Blocks with DLIO's own figures.
    pub blocks: Vec<ReportedBlock>,
    /// Samples a second that DLIO's summary makes of the rates of blocks; `None` where a block has none.
    pub samples_per_second_of_blocks: Option<f64>,
    /// Files and parts of files that cannot be read, a sentence each.
    pub unreadable: Vec<String>,
    /// Times that run backwards, a sentence each.
    pub backwards: Vec<String>,
    /// The file that has when blocks began and ended, where that is of rank 0 and taken for all ranks.
    pub times_of_rank_0: Option<&'static str>,
    /// Missing parts of the run, a sentence each.
    pub missing: Vec<String>,
    /// By accelerator of the record, how far its clock was ahead of that of the first; its blocks are on that. Empty where clocks agree.
    pub clock_offsets_ns: Vec<i64>,
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

/// Share by which a sleep may seem shorter than it was.
const COMPUTE_LESS_MAX: f64 = 0.05;
/// A machine without an idle core wakes no sleeper so late in all steps.
const COMPUTE_TIMES_MAX: f64 = 1.5;
const COMPUTE_LATE_MAX_S: f64 = 0.05;

/// Name of a file in a run's folder.
pub(super) const SUMMARY: &str = "summary.json";

/// Read a folder, of which `names` are the files.
pub(super) fn read(folder: &Path, names: &[String]) -> Imported {
    let mut unreadable = Vec::new();
    let hydra = config::subfolder(folder);
    let config = match &hydra {
        Some((_, path)) => Config::read(path, &mut unreadable),
        None => Config::default(),
    };
    let reported = told(json::read(&folder.join(SUMMARY)), SUMMARY, &mut unreadable);
    let reported = reported.map(Reported::new);
    let mut steps = Steps::read(folder, names, &mut unreadable);
    let log = log::read(&folder.join(LOG)).unwrap_or_else(|| {
        unreadable.extend(
            names.iter().any(|name| name == LOG).then(|| format!("`{LOG}`: it cannot be read")),
        );
        Log::default()
    });
    // Ranks write their files after the log's last line.
    if log.is_cut_short(!steps.named.is_empty()) {
        unreadable.push(format!("`{LOG}`: it is cut short"));
    }
    let ranks_expected = expected(reported.as_ref(), &log, &steps.named);
    let counts = counts(&config, reported.as_ref(), &log, &steps);
    let plan = plan::plan(&config, counts);
    let (missing, epochs) = (Vec::new(), std::mem::take(&mut steps.epochs));
    let mut imported = Imported {
        record: record(plan, reported.as_ref(), &log, epochs.into_values().collect()),
        hosts: machine::hosts(reported.as_ref(), &steps.machine),
        config,
        hydra: hydra.map(|(name, _)| name),
        reported,
        log,
        ranks: steps.ranks,
        ranks_expected,
        blocks: Vec::new(),
        samples_per_second_of_blocks: None,
        unreadable,
        backwards: steps.backwards,
        times_of_rank_0: steps.times_of_rank_0,
        missing,
        clock_offsets_ns: Vec::new(),
    };
    imported.record.system = machine::system(imported.reported.as_ref(), &steps.machine);
    imported.blocks = blocks_with_window(&imported.record, &steps.rates);
    imported.samples_per_second_of_blocks = sum_of_blocks(&imported.record, &steps.rates);
    imported.know_from_rates();
    if imported.other_compute_s().is_some() {
        imported.record.plan.train.compute = TimeSpec::None;
    }
    imported.find_missing();
    imported.clock_offsets_ns = clocks::align(&mut imported.record);
    imported
}

fn expected(reported: Option<&Reported>, log: &Log, ranks: &BTreeSet<u32>) -> Option<u32> {
    let told = reported.and_then(|reported| reported.count("num_accelerators"));
    let told = told.or(log.processes).and_then(|count| u32::try_from(count).ok());
    told.or_else(|| ranks.last().map(|last| last.saturating_add(1)))
}

/// As the run had them, by its log and summary; what neither tells is what was asked for.
fn counts(config: &Config, reported: Option<&Reported>, log: &Log, steps: &Steps) -> Counts {
    let of_log = |index: usize| log.steps_of.map(|numbers| numbers[index]);
    let told = |key: &str| reported.and_then(|reported| reported.count(key));
    let asked = Asked::new(config);
    let seen = steps.epochs.values().flat_map(|epoch| &epoch.accelerators).map(|a| a.steps()).max();
    let accelerators = steps.ranks.len() as u32;
    let whole = expected(reported, log, &steps.named).unwrap_or(accelerators);
    let epochs = asked.epochs.unwrap_or(steps.epochs.len() as u64);
    Counts {
        accelerators,
        files: of_log(1).or_else(|| told("num_files_train")).or(asked.files).unwrap_or(0),
        samples_per_file: of_log(0)
            .or_else(|| told("num_samples_per_file"))
            .or(asked.samples_per_file)
            .unwrap_or(0),
        batch_size: of_log(2).or(asked.batch_size).unwrap_or(0),
        epochs: u32::try_from(epochs).unwrap_or(u32::MAX),
        steps: seen.or_else(|| asked.steps(config, whole)).unwrap_or(0),
    }
}

fn record(
    plan: feedrate_spec::plan::Plan,
    reported: Option<&Reported>,
    log: &Log,
    epochs: Vec<EpochRecord>,
) -> Record {
    let text = |key: &str| reported.and_then(|reported| reported.text(key));
    Record {
        started: text("start").or_else(|| log.started.clone()).unwrap_or_default(),
        ended: text("end").unwrap_or_default(),
        complete: true,
        epochs,
        ..Record::new(DLIO, plan, System::default())
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

/// Blocks are weighted by their steps, ranks summed; the mean over epochs.
fn sum_of_blocks(record: &Record, rates: &BTreeMap<(u32, usize), Vec<f64>>) -> Option<f64> {
    let of_rank = |epoch: &EpochRecord, rank: usize| {
        let steps = epoch.accelerators[rank].blocks.iter().map(|block| block.steps() as f64);
        let rates = rates.get(&(epoch.number, rank)).into_iter().flatten();
        let (sum, steps) = steps
            .zip(rates)
            .filter(|(steps, _)| 0.0 < *steps)
            .fold((0.0, 0.0), |(sum, all), (steps, rate)| (sum + steps * rate, all + steps));
        sum / steps
    };
    let of_epoch = |epoch: &EpochRecord| -> f64 {
        (0..epoch.accelerators.len()).map(|rank| of_rank(epoch, rank)).sum()
    };
    let epochs: Vec<f64> = record.epochs.iter().map(of_epoch).collect();
    feedrate_measure::stats::mean(&epochs).filter(|rate| rate.is_finite())
}

impl Imported {
    /// Whether it was to train, as far as is known.
    pub fn trains(&self) -> bool {
        if self.config.is_known() {
            return self.config.truth("workflow.train", true);
        }
        let reported = self.reported.iter();
        let mut reported =
            reported.filter_map(|reported| reported.any_metric("train_au_mean_percentage"));
        self.log.trains || !self.record.epochs.is_empty() || reported.next().is_some()
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
        if found == 0 && self.record.plan.train.steps_per_epoch == 0 && self.config.is_known() {
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

    /// Compute of a step as configured and as it lasted in the middle, in seconds, where both cannot be of one run. DLIO sleeps: never less than it was asked, and not in
    /// every step much more.
    pub fn other_compute_s(&self) -> Option<(f64, f64)> {
        let asked_s = self.config.compute_s()?;
        let blocks = self.record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
        let blocks = blocks.flat_map(|accelerator| &accelerator.blocks);
        let mut all_ns: Vec<u64> = blocks.flat_map(|block| &block.compute_ns).copied().collect();
        all_ns.sort_unstable();
        let least_s = seconds(*all_ns.first()?);
        let middle_s = seconds(all_ns[all_ns.len() / 2]);
        let is_less = middle_s < asked_s * (1.0 - COMPUTE_LESS_MAX);
        let is_more = asked_s * COMPUTE_TIMES_MAX + COMPUTE_LATE_MAX_S < least_s;
        (is_less || is_more).then_some((asked_s, middle_s))
    }

    /// Ranks whose steps are not there.
    pub fn ranks_missing(&self) -> Vec<u32> {
        let expected = self.ranks_expected.unwrap_or(0).min(RANKS_MAX as u32);
        (0..expected).filter(|rank| !self.ranks.contains(rank)).collect()
    }
}
