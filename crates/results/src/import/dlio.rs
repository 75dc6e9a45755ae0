//! Reads the folder of a DLIO run of any version, complete or not. The steps in its files become a [`Record`], so that all metrics and doubts of
//! records apply; only I/O counters are missing, since DLIO has none. If no rank has steps, the result has totals at most. Unreadable parts are
//! left out and reported.

use super::clocks;
use super::config::{self, Config};
use super::json;
use super::log::{self, Log};
use super::machine;
use super::names::{OUTPUT, PROVENANCE, SUMMARY, rank_of};
use super::plan::{self, ConfiguredCounts};
use super::reported::Reported;
use super::spans::CheckpointSpan;
use super::steps::{self, BlockSpans, RANKS_MAX, Rates, SpanSource, Steps};
use super::totals::{TotalFacts, Totals};
use feedrate_measure::record::{Block, EpochRecord, RECORD_VERSION, Record, System};
use feedrate_measure::stats::mean;
use feedrate_measure::window::seconds;
use feedrate_spec::mlperf::rules::Edition;
use feedrate_spec::plan::{LOG_FILE, Plan};
use feedrate_spec::workload::TimeSpec;
use std::collections::BTreeSet;
use std::path::Path;

/// Name of the program in records and comparisons.
pub const DLIO: &str = "DLIO";

/// Contents of the folder of a DLIO run.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The reconstructed plan. Unknown values are 0 or empty.
    pub plan: Plan,
    /// Machines of the run.
    pub system: System,
    /// Local wall-clock time of the start, in DLIO's notation; empty if unknown.
    pub started: String,
    /// Local wall-clock time of the end, likewise.
    pub ended: String,
    /// Steps of the run; `None` if no rank has usable steps.
    pub record: Option<Record>,
    /// Totals of epochs, if the steps of some or all ranks were not published.
    pub totals: Option<Totals>,
    /// Settings in Hydra's files.
    pub config: Config,
    /// Name of Hydra's folder.
    pub hydra: Option<&'static str>,
    /// Edition of MLPerf Storage's rules in `provenance.json`.
    pub stamped_edition: Option<Edition>,
    /// Contents of `summary.json`; `None` if it is missing or unreadable.
    pub reported: Option<Reported>,
    /// Facts from `dlio.log`.
    pub log: Log,
    /// Ranks whose epochs are all usable, in the order of the record's accelerators.
    pub ranks: BTreeSet<u32>,
    /// Number of ranks of the run, according to summary, log or files.
    pub ranks_expected: Option<u32>,
    /// Number of machines.
    pub hosts: Option<u64>,
    /// Most memory that all hosts can have, even if their memory is unknown.
    pub memory_bytes_max: Option<u64>,
    /// Throughputs of blocks as DLIO reported them.
    rates: Rates,
    /// Files and parts of files that cannot be read, as one sentence each.
    pub unreadable: Vec<String>,
    /// Times that run backwards, as one sentence each.
    pub backwards: Vec<String>,
    /// The file with rank 0's block times, if they are used for other ranks too.
    pub shared_times_file: Option<&'static str>,
    /// Missing parts of the run, as one sentence each.
    pub missing: Vec<String>,
    /// Facts about machines that contradict each other, as one sentence each.
    pub machine_contradictions: Vec<String>,
    /// Durations of checkpoints on the ranks with block times.
    pub(crate) checkpoint_spans: Vec<CheckpointSpan>,
}

/// Compute time of a step as configured, and the median of the measured times.
#[derive(Clone, Copy, Debug)]
pub struct ComputeTimes {
    pub configured_s: f64,
    pub median_s: f64,
}

/// A block of steps as its rank reported it.
pub(crate) struct ReportedBlock {
    pub(crate) steps: u64,
    /// Throughput that DLIO reported.
    pub(crate) samples_per_second: f64,
    /// Duration of DLIO's measurement window within the block.
    pub(crate) window_s: f64,
    /// Duration of the whole block.
    pub(crate) length_s: f64,
}

impl ReportedBlock {
    /// Infers the batch size under the assumption that the throughput is (steps − 2) × batch ÷ duration of the window. `None` if that does
    /// not give an integer.
    fn batch_size(&self) -> Option<u64> {
        let steps = self.steps.checked_sub(2).filter(|steps| *steps > 0)?;
        let batch = self.samples_per_second * self.window_s / steps as f64;
        let rounded = batch.round();
        let is_integer = (1.0..1e9).contains(&rounded) && (batch / rounded - 1.0).abs() < 0.01;
        is_integer.then_some(rounded as u64)
    }
}

/// Share by which a measured sleep may be shorter than configured.
const COMPUTE_LESS_MAX: f64 = 0.05;
/// Factor and additional time by which the shortest measured sleep may exceed the configured time. Even on a busy machine, some sleeps end on time.
const COMPUTE_FACTOR_MAX: f64 = 1.5;
const COMPUTE_LATE_MAX_S: f64 = 0.05;

/// Reads a folder with the files `names`. `placeholders` are the names of files whose contents were omitted from the publication. The subfolder
/// `settings`, if given, is used instead of the detected one.
pub(super) fn read(
    folder: &Path,
    names: &[String],
    placeholders: &[String],
    settings: Option<&Path>,
) -> Imported {
    let mut unreadable = Vec::new();
    let hydra = config::subfolder(folder);
    let settings = settings.map(|name| folder.join(name));
    let hydra_path = settings.or(hydra.as_ref().map(|(_, path)| path.clone()));
    let config = hydra_path
        .map(|path| Config::read(&path, &mut unreadable))
        .unwrap_or_default()
        .or_mlpstorage_metadata(folder, names);
    let reported = json::read(folder, SUMMARY, &mut unreadable).map(Reported::new);
    let mut steps = Steps::read(folder, names);
    unreadable.append(&mut steps.unreadable);
    let has_log = names.iter().any(|name| name == LOG_FILE);
    let readable_log = has_log.then(|| log::read(&folder.join(LOG_FILE))).flatten();
    if readable_log.is_none() && has_log {
        unreadable.push(format!("`{LOG_FILE}`: it cannot be read"));
    }
    let log = readable_log.unwrap_or_default();
    // Ranks write their files after the log's last line.
    if log.is_cut_short(!steps.ranks_with_files.is_empty()) {
        unreadable.push(format!("`{LOG_FILE}`: it is cut short"));
    }
    let reported_text = |key| reported.as_ref().and_then(|summary: &Reported| summary.text(key));
    let reported_count = |key| reported.as_ref().and_then(|summary: &Reported| summary.count(key));
    let started = reported_text("start");
    let ended = reported_text("end");
    let ranks = reported_count("num_accelerators")
        .or(log.processes)
        .and_then(|count| u32::try_from(count).ok());
    let last_rank = steps.ranks_with_files.last();
    let ranks_expected = ranks.or_else(|| last_rank.map(|rank| rank.saturating_add(1)));
    // The log and the summary have the actual counts; the config may have been changed later.
    let configured = ConfiguredCounts::new(&config);
    let logged = log.step_counts;
    let counts = ConfiguredCounts {
        files: logged
            .map(|logged| logged.files)
            .or(reported_count("num_files_train"))
            .or(configured.files),
        samples_per_file: logged
            .map(|logged| logged.samples_per_file)
            .or(reported_count("num_samples_per_file"))
            .or(configured.samples_per_file),
        batch_size: logged.map(|logged| logged.batch_size).or(configured.batch_size),
        epochs: configured.epochs.or(Some(steps.epochs.len() as u64)),
    };
    let accelerators = steps.ranks.len() as u32;
    let all_accelerators = steps.epochs.values().flat_map(|epoch| &epoch.accelerators);
    let steps_per_epoch = all_accelerators
        .map(|accelerator| accelerator.steps())
        .max()
        .or(log.steps)
        .or_else(|| counts.steps(&config, ranks_expected.unwrap_or(accelerators)));
    let machine_contradictions = machine::contradictions(reported.as_ref(), &steps.machine);
    let mut imported = Imported {
        plan: plan::plan(&config, counts, accelerators, steps_per_epoch.unwrap_or(0)),
        system: machine::system(reported.as_ref(), &steps.machine),
        started: started.or_else(|| log.started.clone()).unwrap_or_default(),
        ended: ended.unwrap_or_default(),
        record: None,
        totals: None,
        hosts: machine::hosts(reported.as_ref(), &steps.machine),
        memory_bytes_max: machine::memory_bytes_max(reported.as_ref(), &steps.machine),
        config,
        hydra: hydra.map(|(name, _)| name),
        stamped_edition: stamped_edition(folder),
        reported,
        log,
        ranks: steps.ranks,
        ranks_expected,
        rates: steps.rates,
        unreadable,
        backwards: steps.backwards,
        shared_times_file: steps.shared_times_file,
        missing: Vec::new(),
        machine_contradictions,
        checkpoint_spans: steps.checkpoint_spans,
    };
    imported.add_steps(steps.epochs.into_values().collect());
    let unpublished = ranks_with_placeholders(placeholders);
    let ranks_with_files = &steps.ranks_with_files - &unpublished;
    if imported.has_partial_publication(&steps.ranks_with_steps, &ranks_with_files) {
        imported.add_totals(folder, names);
    }
    imported.find_missing();
    imported
}

/// Reads the edition of the rules that `mlpstorage` stamps on its runs.
fn stamped_edition(folder: &Path) -> Option<Edition> {
    let stamp = json::read(folder, PROVENANCE, &mut Vec::new())?;
    Edition::from_name(&format!("v{}", stamp.get("rules_edition")?.as_str()?))
}

/// Returns the ranks whose files of steps were replaced by placeholders; these steps are not lost.
fn ranks_with_placeholders(placeholders: &[String]) -> BTreeSet<u32> {
    let steps = placeholders.iter().filter(|name| name.ends_with(OUTPUT));
    steps.filter_map(|name| rank_of(name)).collect()
}

impl Imported {
    /// Returns whether the run was configured to train, or shows signs of training if there is no config.
    pub fn trains(&self) -> bool {
        if self.config.is_known() {
            return self.config.boolean("workflow.train", true);
        }
        let reported = self.reported.as_ref();
        self.log.trains
            || self.record.is_some()
            || reported.is_some_and(|summary| {
                summary.metrics().any(|(name, _)| name.starts_with("train_"))
            })
    }

    /// Returns the edition of MLPerf Storage's rules, as stamped or as the name of Hydra's folder shows it.
    pub fn rules_edition(&self) -> Option<Edition> {
        let is_first = self.hydra == Some(config::MLPERF_1_FOLDER);
        self.stamped_edition.or(is_first.then_some(Edition::V1_0))
    }

    /// Returns whether the run was configured to generate its dataset, or did.
    pub fn generates(&self) -> bool {
        self.config.boolean("workflow.generate_data", false) || self.log.generates
    }

    /// Returns the epochs with usable steps.
    pub fn epochs(&self) -> &[EpochRecord] {
        self.record.as_ref().map_or(&[], |record| &record.epochs)
    }

    fn add_steps(&mut self, epochs: Vec<EpochRecord>) {
        if epochs.is_empty() {
            self.infer_from_rates();
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
        self.infer_from_rates();
        if self.mismatched_compute().is_some() {
            self.plan.train.compute = TimeSpec::None;
        }
        if let Some(record) = &mut self.record {
            record.plan = self.plan.clone();
            clocks::align(record);
        }
    }

    /// Returns whether files of steps are absent because they were not published, instead of lost. Submitters to MLPerf Storage publish the
    /// files of no rank, of rank 0, or of one of several hosts.
    fn has_partial_publication(
        &self,
        ranks_with_steps: &BTreeSet<u32>,
        ranks_with_files: &BTreeSet<u32>,
    ) -> bool {
        let is_from_mlperf = self.hydra.is_some_and(|name| name != ".hydra");
        let count = ranks_with_steps.len() as u32;
        let is_part = *ranks_with_steps == self.ranks
            && ranks_with_files == ranks_with_steps
            && self.ranks_expected.is_some_and(|ranks| count < ranks)
            && (is_from_mlperf || count == 1);
        self.reported.is_some() && self.trains() && (ranks_with_steps.is_empty() || is_part)
    }

    /// Computes totals of epochs from block times and the summary. Without block times the totals are empty, and only reported values remain.
    fn add_totals(&mut self, folder: &Path, names: &[String]) {
        self.totals = self.record.is_none().then(Totals::default);
        let Some(BlockSpans { spans, source }) = steps::first_spans(folder, names) else { return };
        let is_older = match source {
            SpanSource::RankFile => false,
            SpanSource::SharedFile => true,
            // Newer versions of DLIO also log the measured compute time.
            SpanSource::Log => self.log.compute_s.is_empty(),
        };
        let list = |key: &str| self.reported.as_ref()?.list(key);
        let measured_compute_s = self.record.as_ref().and_then(|record| {
            let accelerators = record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
            let blocks = accelerators.flat_map(|accelerator| &accelerator.blocks);
            let times_ns = blocks.flat_map(|block| &block.compute_ns);
            mean(&times_ns.map(|ns| seconds(*ns)).collect::<Vec<f64>>())
        });
        let metric = &self.plan.metric;
        let facts = TotalFacts {
            spans: &spans,
            is_older,
            ranks: self.ranks_expected.unwrap_or(0),
            batch_size: self.plan.loader.batch_size,
            steps: self.plan.train.steps_per_epoch,
            are_steps_configured: self.record.is_none()
                && self.log.steps.is_none()
                && self.log.step_counts.is_none(),
            excluded: [metric.exclude_start_steps, metric.exclude_end_steps],
            compute_s: self.config.mean_compute_s(),
            is_drawn: self.config.mean_compute_s().is_some() && self.config.compute_s().is_none(),
            logged_compute_s: &self.log.compute_s,
            measured_compute_s,
            au_percent: list("train_au_percentage").unwrap_or_default(),
            samples_per_second: list("train_throughput_samples_per_second").unwrap_or_default(),
        };
        self.totals = Totals::new(&facts).or(self.totals.take());
    }

    /// Infers the batch size and the record length from DLIO's throughputs if there is no config. The throughput of a block is (steps − 2) × batch ÷
    /// duration of its window, and the ratio of the throughputs in bytes and in samples is the record length.
    fn infer_from_rates(&mut self) {
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
            self.plan.dataset.record_bytes = bytes;
        }
    }

    /// Returns all blocks with DLIO's throughput and the duration of its measurement window.
    pub(crate) fn blocks(&self) -> Vec<ReportedBlock> {
        self.blocks_by_rank().into_iter().flatten().collect()
    }

    /// Returns these blocks for each rank with steps.
    pub(crate) fn blocks_by_rank(&self) -> Vec<Vec<ReportedBlock>> {
        let excluded = self.plan.metric.exclude_start_steps as usize;
        let mut by_rank: Vec<Vec<ReportedBlock>> = self.ranks.iter().map(|_| Vec::new()).collect();
        for epoch in self.epochs() {
            for (rank, accelerator) in epoch.accelerators.iter().enumerate() {
                let rates = self.rates.get(&(epoch.number, rank)).into_iter().flatten();
                for (block, &samples_per_second) in accelerator.blocks.iter().zip(rates) {
                    let outside = block.load_ns.iter().zip(&block.compute_ns).take(excluded);
                    let outside_ns: u64 = outside.map(|(load, compute)| load + compute).sum();
                    let length_ns = block.end_ns.saturating_sub(block.start_ns);
                    by_rank[rank].push(ReportedBlock {
                        steps: block.steps() as u64,
                        samples_per_second,
                        window_s: seconds(length_ns.saturating_sub(outside_ns)),
                        length_s: seconds(length_ns),
                    });
                }
            }
        }
        by_rank
    }

    /// Computes the throughput that DLIO's summary should have, from DLIO's throughputs of blocks. `None` if a block has none.
    pub(crate) fn samples_per_second_of_blocks(&self) -> Option<f64> {
        self.summarize(|epoch, rank, block, _| self.rates.get(&(epoch, rank))?.get(block).copied())
    }

    /// Computes the throughputs that DLIO's summary should have, from the steps, with the formula of each release of DLIO. Formulas that give no
    /// positive number are left out.
    pub(crate) fn samples_per_second_of_steps(&self) -> Vec<f64> {
        let batch = self.plan.loader.batch_size as f64;
        let excluded = self.plan.metric.exclude_start_steps as usize;
        let outside_ns = |block: &Block, steps: usize| {
            let times = block.load_ns.iter().zip(&block.compute_ns).take(steps);
            times.map(|(load_ns, compute_ns)| load_ns + compute_ns).sum::<u64>()
        };
        // Steps outside the window, and steps that the release does not count.
        let releases = [(0, 0), (excluded, 2), (excluded, excluded)];
        let rates = releases.map(|(outside, uncounted)| {
            self.summarize(|_, _, _, block| {
                let steps = block.steps().checked_sub(uncounted)? as f64;
                let length_ns = block.end_ns.checked_sub(block.start_ns)?;
                Some(steps * batch / seconds(length_ns.checked_sub(outside_ns(block, outside))?))
            })
        });
        rates.into_iter().flatten().filter(|rate| 0.0 < *rate).collect()
    }

    /// Aggregates throughputs of blocks as DLIO's summary does: the mean of blocks weighted by steps, summed over ranks, and the mean over epochs.
    /// `rate` receives the epoch, the rank, the index of the block and the block.
    fn summarize(&self, rate: impl Fn(u32, usize, usize, &Block) -> Option<f64>) -> Option<f64> {
        let epochs = self.epochs().iter().map(|epoch| {
            let ranks = epoch.accelerators.iter().enumerate().map(|(rank, accelerator)| {
                let blocks = accelerator.blocks.iter().enumerate();
                let mut sum = 0.0;
                let mut steps = 0.0;
                // DLIO's throughput of a block without steps is meaningless.
                for (index, block) in blocks.filter(|(_, block)| 0 < block.steps()) {
                    let block_steps = block.steps() as f64;
                    sum += block_steps * rate(epoch.number, rank, index, block)?;
                    steps += block_steps;
                }
                Some(sum / steps)
            });
            ranks.sum::<Option<f64>>()
        });
        mean(&epochs.collect::<Option<Vec<f64>>>()?).filter(|rate| rate.is_finite())
    }

    /// Returns the number of epochs with a utilisation in the summary.
    pub(crate) fn reported_epochs(&self) -> usize {
        let summary = self.reported.as_ref();
        let list = summary.and_then(|summary| summary.list("train_au_percentage"));
        list.map_or(0, |list| list.len())
    }

    fn find_missing(&mut self) {
        if !self.trains() {
            return;
        }
        if self.reported.is_none() {
            self.missing.push(format!("there is no readable `{SUMMARY}`"));
        }
        let expected = u64::from(self.plan.train.epochs);
        let has_steps = |epoch: &&EpochRecord| {
            epoch.accelerators.iter().any(|accelerator| accelerator.steps() > 0)
        };
        let with_steps = self.epochs().iter().filter(has_steps).count();
        let with_totals = self.totals.as_ref().map_or(0, |totals| match totals.epochs.len() {
            0 => self.reported_epochs(),
            count => count,
        });
        let found = with_steps.max(with_totals) as u64;
        if found == 0 && self.plan.train.steps_per_epoch == 0 && self.config.is_known() {
            self.missing.push("no step was run: files × samples is less than batch × ranks".into());
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

    /// Returns the configured and the measured compute time of a step if they cannot belong to the same run. DLIO emulates compute by sleeping,
    /// which never takes less than configured, and not much more in every step.
    pub fn mismatched_compute(&self) -> Option<ComputeTimes> {
        let configured_s = self.config.compute_s()?;
        let accelerators = self.epochs().iter().flat_map(|epoch| &epoch.accelerators);
        let blocks = accelerators.flat_map(|accelerator| &accelerator.blocks);
        let mut times_ns: Vec<u64> = blocks.flat_map(|block| &block.compute_ns).copied().collect();
        times_ns.sort_unstable();
        let shortest_s = seconds(*times_ns.first()?);
        let median_s = seconds(times_ns[times_ns.len() / 2]);
        let is_shorter = median_s < configured_s * (1.0 - COMPUTE_LESS_MAX);
        let is_longer = configured_s * COMPUTE_FACTOR_MAX + COMPUTE_LATE_MAX_S < shortest_s;
        (is_shorter || is_longer).then_some(ComputeTimes { configured_s, median_s })
    }

    /// Returns the ranks without usable steps.
    pub fn ranks_missing(&self) -> Vec<u32> {
        let expected = self.ranks_expected.unwrap_or(0).min(RANKS_MAX as u32);
        (0..expected).filter(|rank| !self.ranks.contains(rank)).collect()
    }
}
