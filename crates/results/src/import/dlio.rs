//! The folder of a DLIO run, of any age, whole or not: the steps that its files tell as a [`Record`], so that every metric and doubt of one can be had of it. Only
//! I/O counters are not in there, as no file has them. Where no rank tells of its steps, there are totals at most. What cannot be read is told and left out.

use super::clocks;
use super::config::{self, Config};
use super::json;
use super::log::{self, Log};
use super::machine;
use super::names::{LOG, OUTPUT, SUMMARY, rank_of};
use super::plan::{self, AskedCounts};
use super::reported::Reported;
use super::steps::{self, RANKS_MAX, Rates, Steps};
use super::totals::{TotalFacts, Totals};
use feedrate_measure::record::{Block, EpochRecord, RECORD_VERSION, Record, System};
use feedrate_measure::stats::mean;
use feedrate_measure::window::seconds;
use feedrate_spec::plan::Plan;
use feedrate_spec::workload::TimeSpec;
use std::collections::BTreeSet;
use std::path::Path;

/// The program's name in records and comparisons.
pub const DLIO: &str = "DLIO";

/// The contents of a folder.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The plan it followed, as far as that is known.
    pub plan: Plan,
    /// Its machines.
    pub system: System,
    /// Local wall-clock start and end, as DLIO writes them; empty where they are not known.
    pub started: String,
    #[expect(missing_docs, reason = "see above")]
    pub ended: String,
    /// Its steps; `None` where no rank tells of one.
    pub record: Option<Record>,
    /// Totals of its epochs, where ranks that left no file leave steps unknown.
    pub totals: Option<Totals>,
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
    /// DLIO's own rates of blocks.
    rates: Rates,
    /// Files and parts of files that cannot be read, a sentence each.
    pub unreadable: Vec<String>,
    /// Times that run backwards, a sentence each.
    pub backwards: Vec<String>,
    /// The file that has when blocks began and ended, where that is of rank 0 and taken for all ranks.
    pub times_of_rank_0: Option<&'static str>,
    /// Missing parts of the run, a sentence each.
    pub missing: Vec<String>,
}

/// A block as its rank reported it.
pub(crate) struct ReportedBlock {
    pub(crate) steps: u64,
    /// DLIO's figure.
    pub(crate) samples_per_second: f64,
    /// Time in DLIO's window.
    pub(crate) window_s: f64,
    /// Time of all of it.
    pub(crate) length_s: f64,
}

impl ReportedBlock {
    /// Samples in a batch, if the rate is (steps − 2) × batch ÷ time of the window.
    fn batch_size(&self) -> Option<u64> {
        let steps = self.steps.checked_sub(2).filter(|steps| *steps > 0)?;
        let batch = self.samples_per_second * self.window_s / steps as f64;
        let whole = batch.round();
        let is_whole = (1.0..1e9).contains(&whole) && (batch / whole - 1.0).abs() < 0.01;
        is_whole.then_some(whole as u64)
    }
}

/// Share by which a sleep may seem shorter than it was.
const COMPUTE_LESS_MAX: f64 = 0.05;
/// A machine without an idle core wakes no sleeper so late in all steps.
const COMPUTE_TIMES_MAX: f64 = 1.5;
const COMPUTE_LATE_MAX_S: f64 = 0.05;

/// Read a folder, of which `names` are the files and `placeholders` what says that others were left out, and its subfolder `settings` instead of the one that is looked for.
pub(super) fn read(
    folder: &Path,
    names: &[String],
    placeholders: &[String],
    settings: Option<&Path>,
) -> Imported {
    let mut unreadable = Vec::new();
    let hydra = config::subfolder(folder);
    let asked = settings.map(|name| folder.join(name));
    let asked = asked.or(hydra.as_ref().map(|(_, path)| path.clone()));
    let config = asked.map(|path| Config::read(&path, &mut unreadable)).unwrap_or_default();
    let config = config.or_of_metadata(folder, names);
    let reported = json::read(folder, SUMMARY, &mut unreadable).map(Reported::new);
    let mut steps = Steps::read(folder, names);
    unreadable.append(&mut steps.unreadable);
    let has_log = names.iter().any(|name| name == LOG);
    let log = has_log.then(|| log::read(&folder.join(LOG))).flatten();
    if log.is_none() && has_log {
        unreadable.push(format!("`{LOG}`: it cannot be read"));
    }
    let log = log.unwrap_or_default();
    // Ranks write their files after the log's last line.
    if log.is_cut_short(!steps.named.is_empty()) {
        unreadable.push(format!("`{LOG}`: it is cut short"));
    }
    let [started, ended] =
        ["start", "end"].map(|key| reported.as_ref().and_then(|all| all.text(key)));
    let [ranks, told_files, told_samples] =
        ["num_accelerators", "num_files_train", "num_samples_per_file"]
            .map(|key| reported.as_ref().and_then(|all| all.count(key)));
    let told = ranks.or(log.processes).and_then(|n| u32::try_from(n).ok());
    let ranks_expected = told.or_else(|| steps.named.last().map(|last| last.saturating_add(1)));
    // As the run had them, by its log and summary; what neither tells is what was asked for.
    let asked = AskedCounts::new(&config);
    let [samples, files, batch] = log.steps_of.map_or([None; 3], |all| all.map(Some));
    let counts = AskedCounts {
        files: files.or(told_files).or(asked.files),
        samples_per_file: samples.or(told_samples).or(asked.samples_per_file),
        batch_size: batch.or(asked.batch_size),
        epochs: asked.epochs.or(Some(steps.epochs.len() as u64)),
    };
    let accelerators = steps.ranks.len() as u32;
    let seen = steps.epochs.values().flat_map(|epoch| &epoch.accelerators).map(|a| a.steps()).max();
    let steps_per_epoch = seen
        .or(log.steps)
        .or_else(|| counts.steps(&config, ranks_expected.unwrap_or(accelerators)));
    let mut imported = Imported {
        plan: plan::plan(&config, counts, accelerators, steps_per_epoch.unwrap_or(0)),
        system: machine::system(reported.as_ref(), &steps.machine),
        started: started.or_else(|| log.started.clone()).unwrap_or_default(),
        ended: ended.unwrap_or_default(),
        record: None,
        totals: None,
        hosts: machine::hosts(reported.as_ref(), &steps.machine),
        config,
        hydra: hydra.map(|(name, _)| name),
        reported,
        log,
        ranks: steps.ranks,
        ranks_expected,
        rates: steps.rates,
        unreadable,
        backwards: steps.backwards,
        times_of_rank_0: steps.times_of_rank_0,
        missing: Vec::new(),
    };
    imported.add_steps(steps.epochs.into_values().collect());
    if imported.is_published_part(&steps.with_steps, &(&steps.named - &left_out(placeholders))) {
        imported.add_totals(folder, names);
    }
    imported.find_missing();
    imported
}

/// Ranks whose steps are known to lie elsewhere: they are not lost.
fn left_out(placeholders: &[String]) -> BTreeSet<u32> {
    let steps = placeholders.iter().filter(|name| name.ends_with(OUTPUT));
    steps.filter_map(|name| rank_of(name)).collect()
}

impl Imported {
    /// Whether it was to train, as far as is known.
    pub fn trains(&self) -> bool {
        if self.config.is_known() {
            return self.config.truth("workflow.train", true);
        }
        let reported = self.reported.as_ref();
        self.log.trains
            || self.record.is_some()
            || reported.is_some_and(|all| all.any_metric("train_au_mean_percentage").is_some())
    }

    /// Whether it was to make its dataset.
    pub fn generates(&self) -> bool {
        self.config.truth("workflow.generate_data", false) || self.log.generates
    }

    /// Its epochs with steps that can be used.
    pub fn epochs(&self) -> &[EpochRecord] {
        self.record.as_ref().map_or(&[], |record| &record.epochs)
    }

    fn add_steps(&mut self, epochs: Vec<EpochRecord>) {
        if epochs.is_empty() {
            self.know_from_rates();
            return;
        }
        self.record = Some(Record {
            version: RECORD_VERSION,
            program: DLIO.into(),
            system: self.system.clone(),
            started: self.started.clone(),
            ended: self.ended.clone(),
            complete: true,
            epochs,
            ..Record::default()
        });
        self.know_from_rates();
        if self.other_compute_s().is_some() {
            self.plan.train.compute = TimeSpec::None;
        }
        if let Some(record) = &mut self.record {
            record.plan = self.plan.clone();
            clocks::align(record);
        }
    }

    /// Whether ranks without a file of steps are so by what submitters of MLPerf Storage publish, and nothing is lost: the files of no rank, of rank 0, or of one of several hosts.
    fn is_published_part(&self, with_steps: &BTreeSet<u32>, named: &BTreeSet<u32>) -> bool {
        let is_of_mlperf = self.hydra.is_some_and(|name| name != ".hydra");
        let is_part = *with_steps == self.ranks
            && named == with_steps
            && self.ranks_expected.is_some_and(|ranks| (with_steps.len() as u32) < ranks)
            && (is_of_mlperf || with_steps.len() == 1);
        self.reported.is_some() && self.trains() && (with_steps.is_empty() || is_part)
    }

    /// A summary alone leaves them empty: what it reports is all that is known.
    fn add_totals(&mut self, folder: &Path, names: &[String]) {
        self.totals = self.record.is_none().then(Totals::default);
        let Some((spans, is_older)) = steps::spans_of_first(folder, names) else { return };
        // A log that has the times of blocks has their compute too, since it is measured.
        let is_older = is_older.unwrap_or(self.log.compute_s.is_empty());
        let list = |key: &str| self.reported.as_ref()?.list(key);
        let measured = self.record.as_ref().and_then(|record| {
            let all = record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
            let all = all.flat_map(|one| &one.blocks).flat_map(|block| &block.compute_ns);
            mean(&all.map(|ns| seconds(*ns)).collect::<Vec<f64>>())
        });
        let metric = &self.plan.metric;
        let facts = TotalFacts {
            spans: &spans,
            is_older,
            ranks: self.ranks_expected.unwrap_or(0),
            batch_size: self.plan.loader.batch_size,
            steps: self.plan.train.steps_per_epoch,
            is_asked: self.record.is_none()
                && self.log.steps.is_none()
                && self.log.steps_of.is_none(),
            excluded: [metric.exclude_start_steps, metric.exclude_end_steps],
            compute_s: self.config.mean_compute_s(),
            is_drawn: self.config.mean_compute_s().is_some() && self.config.compute_s().is_none(),
            logged_compute_s: &self.log.compute_s,
            measured_compute_s: measured,
            au_percent: list("train_au_percentage").unwrap_or_default(),
            samples_per_second: list("train_throughput_samples_per_second").unwrap_or_default(),
        };
        self.totals = Totals::new(&facts).or(self.totals.take());
    }

    /// Without a config: DLIO's rate of a block is (steps − 2) × batch ÷ time of its window, and its two rates are a record length apart.
    fn know_from_rates(&mut self) {
        if self.config.is_known() {
            return;
        }
        if self.plan.loader.batch_size == 0 {
            let batches: BTreeSet<Option<u64>> =
                self.blocks().iter().map(ReportedBlock::batch_size).collect();
            if let (1, Some(Some(batch))) = (batches.len(), batches.first()) {
                self.plan.loader.batch_size = *batch;
            }
        }
        if let Some(bytes) = self.reported.as_ref().and_then(Reported::sample_bytes) {
            self.plan.dataset.record_bytes = bytes.max(0.0);
        }
    }

    /// DLIO's rates beside the time of its window.
    pub(crate) fn blocks(&self) -> Vec<ReportedBlock> {
        let excluded = self.plan.metric.exclude_start_steps as usize;
        let mut found = Vec::new();
        for epoch in self.epochs() {
            for (rank, accelerator) in epoch.accelerators.iter().enumerate() {
                let rates = self.rates.get(&(epoch.number, rank)).into_iter().flatten();
                for (block, &samples_per_second) in accelerator.blocks.iter().zip(rates) {
                    let outside = block.load_ns.iter().zip(&block.compute_ns).take(excluded);
                    let outside_ns: u64 = outside.map(|(load, compute)| load + compute).sum();
                    let length_ns = block.end_ns.saturating_sub(block.start_ns);
                    found.push(ReportedBlock {
                        steps: block.steps() as u64,
                        samples_per_second,
                        window_s: seconds(length_ns.saturating_sub(outside_ns)),
                        length_s: seconds(length_ns),
                    });
                }
            }
        }
        found
    }

    /// Samples a second that DLIO's summary makes of the rates of blocks: weighted by their steps, ranks summed; the mean over epochs. `None` where a block has none.
    pub(crate) fn samples_per_second_of_blocks(&self) -> Option<f64> {
        self.folded(|epoch, rank, block, _| self.rates.get(&(epoch, rank))?.get(block).copied())
    }

    /// The same of the steps, as each release of DLIO counts them; without those that cannot be known, or make nothing.
    pub(crate) fn samples_per_second_of_steps(&self) -> Vec<f64> {
        let batch = self.plan.loader.batch_size as f64;
        let excluded = self.plan.metric.exclude_start_steps as usize;
        let outside_ns = |block: &Block, steps: usize| {
            let times = block.load_ns.iter().zip(&block.compute_ns).take(steps);
            times.map(|(load_ns, compute_ns)| load_ns + compute_ns).sum::<u64>()
        };
        let ways = [(0, 0), (excluded, 2), (excluded, excluded)].map(|way| {
            let (outside, uncounted) = way;
            self.folded(|_, _, _, block| {
                let steps = block.steps().checked_sub(uncounted)? as f64;
                let length_ns = block.end_ns.checked_sub(block.start_ns)?;
                Some(steps * batch / seconds(length_ns.checked_sub(outside_ns(block, outside))?))
            })
        });
        ways.into_iter().flatten().filter(|rate| 0.0 < *rate).collect()
    }

    /// Rates of blocks as the summary folds them. By epoch, rank and number of the block.
    fn folded(&self, rate: impl Fn(u32, usize, usize, &Block) -> Option<f64>) -> Option<f64> {
        let epochs = self.epochs().iter().map(|epoch| {
            let ranks = epoch.accelerators.iter().enumerate().map(|(rank, one)| {
                // What no step was run of may have any rate.
                let blocks = one.blocks.iter().enumerate().filter(|(_, block)| 0 < block.steps());
                let (mut sum, mut steps) = (0.0, 0.0);
                for (number, block) in blocks {
                    let own = block.steps() as f64;
                    sum += own * rate(epoch.number, rank, number, block)?;
                    steps += own;
                }
                Some(sum / steps)
            });
            ranks.sum::<Option<f64>>()
        });
        mean(&epochs.collect::<Option<Vec<f64>>>()?).filter(|rate| rate.is_finite())
    }

    /// Epochs that the summary has a utilisation of.
    pub(crate) fn reported_epochs(&self) -> usize {
        let list = self.reported.as_ref().and_then(|all| all.list("train_au_percentage"));
        list.map_or(0, |list| list.len())
    }

    fn find_missing(&mut self) {
        if !self.trains() {
            return;
        }
        if self.reported.is_none() {
            self.missing.push(format!("there is no `{SUMMARY}` that can be read"));
        }
        let expected = u64::from(self.plan.train.epochs);
        let epochs = self.epochs().iter().map(|epoch| epoch.accelerators.iter());
        let found = epochs.filter_map(|mut all| all.find(|one| one.steps() > 0)).count();
        let found = found.max(self.totals.as_ref().map_or(0, |totals| match totals.epochs.len() {
            0 => self.reported_epochs(),
            count => count,
        })) as u64;
        if found == 0 && self.plan.train.steps_per_epoch == 0 && self.config.is_known() {
            self.missing
                .push("no step was run: files × samples are fewer than batch × ranks".into());
        } else if found < expected {
            self.missing.push(format!("{found} of {expected} epochs have steps"));
        }
        if let Some(record) = &mut self.record
            && !self.missing.is_empty()
        {
            record.complete = false;
            record.stopped_because = Some(self.missing.join("; "));
        }
    }

    /// Compute of a step as configured and as it lasted in the middle, in seconds, where both cannot be of one run. DLIO sleeps: never less than it was asked, and not in
    /// every step much more.
    pub fn other_compute_s(&self) -> Option<(f64, f64)> {
        let asked_s = self.config.compute_s()?;
        let blocks = self.epochs().iter().flat_map(|epoch| &epoch.accelerators);
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
