//! Reads the steps of all ranks of a DLIO run. Only ranks whose epochs are all usable are kept, so that every epoch has the same ranks. Everything
//! that is left out is reported.

use super::json::{self, Fields, text};
use super::log;
use super::names::{OUTPUT, SHARED_STATS, STATS, rank_of};
use super::spans::{self, CheckpointSpan};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::{
    AcceleratorEpoch, Block, CheckpointKind, CheckpointRecord, EpochRecord,
};
use feedrate_spec::plan::LOG_FILE;
use serde_json::Value;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of ranks that are read.
pub(super) const RANKS_MAX: usize = 65_536;

/// DLIO's throughputs of blocks in samples per second, by epoch and accelerator.
pub(super) type Rates = BTreeMap<(u32, usize), Vec<f64>>;

/// The steps of all ranks, by epoch, and the problems of their files.
#[derive(Default)]
pub(super) struct Steps {
    /// Ranks whose steps are in `epochs`.
    pub(super) ranks: BTreeSet<u32>,
    /// Ranks that have any file, readable or not.
    pub(super) ranks_with_files: BTreeSet<u32>,
    /// Ranks that have a file of steps, readable or not.
    pub(super) ranks_with_steps: BTreeSet<u32>,
    pub(super) epochs: BTreeMap<u32, EpochRecord>,
    pub(super) machine: RankMachine,
    /// Files, and parts of files, that cannot be used.
    pub(super) unreadable: Vec<String>,
    /// Blocks whose times run backwards.
    pub(super) backwards: Vec<String>,
    /// The file with rank 0's block times, if other ranks have none and use them too.
    pub(super) shared_times_file: Option<&'static str>,
    pub(super) rates: Rates,
    /// Durations of checkpoints on each rank.
    pub(super) checkpoint_spans: Vec<CheckpointSpan>,
    /// Origin of all times: a day before the first block that was read.
    origin_us: Option<i64>,
    /// Sum of the times of all blocks.
    total_ns: u64,
    /// Start and end of a checkpoint on the rank that took longest, by epoch and checkpoint.
    checkpoints: BTreeMap<(u32, CheckpointKey), [i64; 2]>,
}

/// Whether a checkpoint is loaded, and its number within the epoch.
type CheckpointKey = (bool, u32);

/// Facts about machines in the files of ranks.
#[derive(Default)]
pub(super) struct RankMachine {
    /// Names of the hosts of all ranks, in order of first occurrence.
    pub(super) hostnames: Vec<String>,
    pub(super) memory_gib: Option<f64>,
    pub(super) cpus: Option<u64>,
    pub(super) processor: Option<String>,
    /// Host and memory of each rank.
    pub(super) rank_hosts: Vec<RankHost>,
}

/// The host of a rank, and its memory from two fields of the rank's file.
pub(super) struct RankHost {
    pub(super) rank: u32,
    pub(super) hostname: Option<String>,
    /// `host_memory_GB`.
    pub(super) memory_gib: Option<f64>,
    /// `MemTotal` of `host_meminfo`.
    pub(super) memory_total_gib: Option<f64>,
}

/// The blocks of one epoch of one rank.
#[derive(Default)]
struct RankEpoch {
    blocks: Vec<Block>,
    rates: Vec<f64>,
    started: String,
    ended: String,
}

/// A rank and its usable epochs.
type RankEpochs = (u32, BTreeMap<u32, RankEpoch>);

impl Steps {
    /// Reads the steps in a folder that contains files of these `names`.
    pub(super) fn read(folder: &Path, names: &[String]) -> Self {
        let ranks_with_files = names.iter().filter_map(|name| rank_of(name)).collect();
        let step_files = names.iter().filter(|name| name.ends_with(OUTPUT));
        let ranks_with_steps = step_files.filter_map(|name| rank_of(name)).collect();
        let mut steps = Steps { ranks_with_files, ranks_with_steps, ..Steps::default() };
        let rank_count = steps.ranks_with_files.len();
        if RANKS_MAX < rank_count {
            steps.unreadable.push(format!("only {RANKS_MAX} of {rank_count} ranks are read"));
        }
        let shared_stats = json::read(folder, SHARED_STATS, &mut steps.unreadable);
        let has_rank_stats =
            names.iter().any(|name| name.ends_with(STATS) && rank_of(name).is_some());
        if let Some(shared_stats) = &shared_stats {
            steps.backwards.extend(spans::contradictions(SHARED_STATS, shared_stats));
        }
        let logged_spans = LazyCell::new(|| log::spans(&folder.join(LOG_FILE)));
        let mut rank_epochs = Vec::new();
        let mut failed_ranks = BTreeSet::new();
        for rank in steps.ranks_with_files.clone().into_iter().take(RANKS_MAX) {
            let output = json::read(folder, &format!("{rank}{OUTPUT}"), &mut steps.unreadable);
            let stats_name = format!("{rank}{STATS}");
            let rank_stats = json::read(folder, &stats_name, &mut steps.unreadable);
            if let Some(rank_stats) = &rank_stats {
                steps.backwards.extend(spans::contradictions(&stats_name, rank_stats));
                steps.checkpoint_spans.extend(spans::checkpoints(rank, rank_stats));
            }
            let Some(output) = output else { continue };
            let (stats, shared_file) = match (&rank_stats, &shared_stats) {
                (Some(rank_stats), _) => (Some(rank_stats), None),
                (None, Some(shared_stats)) => (Some(shared_stats), Some(SHARED_STATS)),
                // Rank 0 writes the log. Its times hold for all ranks, which leave a step together.
                (None, None) if rank == 0 || !has_rank_stats => {
                    (logged_spans.as_ref(), logged_spans.as_ref().map(|_| LOG_FILE))
                }
                (None, None) => (None, None),
            };
            if rank > 0 {
                steps.shared_times_file = shared_file.or(steps.shared_times_file);
            }
            let mut epochs = BTreeMap::new();
            for (key, epoch) in &output {
                let Ok(number) = key.parse() else { continue };
                let spans = stats.and_then(|stats| stats.get(key));
                steps.collect_checkpoints(number, spans);
                match steps.read_epoch(rank, number, epoch, spans) {
                    Some(epoch) if epoch.blocks.is_empty() => {}
                    Some(epoch) => drop(epochs.insert(number, epoch)),
                    None => drop(failed_ranks.insert(rank)),
                }
            }
            steps.machine.add(rank, &output);
            rank_epochs.push((rank, epochs));
        }
        steps.join_ranks(rank_epochs, &failed_ranks);
        steps.add_checkpoints();
        steps
    }

    /// Selects epochs and ranks so that every epoch has the same ranks. While fewer than half of the ranks have all epochs, the epoch that the
    /// fewest ranks have is dropped. Then ranks that lack one of the remaining epochs are dropped.
    fn join_ranks(&mut self, all: Vec<RankEpochs>, failed_ranks: &BTreeSet<u32>) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for number in all.iter().flat_map(|(_, epochs)| epochs.keys()) {
            *counts.entry(*number).or_default() += 1;
        }
        while all.len() > 2 * complete_ranks(&all, &counts) {
            let rarest = counts.iter().min_by_key(|(number, count)| (**count, Reverse(**number)));
            let Some((&number, &count)) = rarest else { break };
            counts.remove(&number);
            self.unreadable.push(format!(
                "epoch {number} is left out: only {count} of {} ranks have usable steps of it",
                all.len()
            ));
        }
        for (rank, mut epochs) in all {
            if let Some(number) = counts.keys().find(|number| !epochs.contains_key(number)) {
                self.unreadable.push(format!(
                    "rank {rank} is left out: it has no usable steps of epoch {number}"
                ));
            } else if !counts.is_empty() || !failed_ranks.contains(&rank) {
                self.ranks.insert(rank);
                epochs.retain(|number, _| counts.contains_key(number));
                epochs.into_iter().for_each(|(number, epoch)| self.add_epoch(number, epoch));
            }
        }
    }

    fn add_epoch(&mut self, number: u32, rank_epoch: RankEpoch) {
        let blocks = rank_epoch.blocks;
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return };
        let epoch = self.epochs.entry(number).or_insert_with(|| EpochRecord {
            number,
            start_ns: first.start_ns,
            started: rank_epoch.started,
            ended: rank_epoch.ended,
            ..EpochRecord::default()
        });
        epoch.start_ns = epoch.start_ns.min(first.start_ns);
        epoch.end_ns = epoch.end_ns.max(last.end_ns);
        self.rates.insert((number, epoch.accelerators.len()), rank_epoch.rates);
        epoch.accelerators.push(AcceleratorEpoch { blocks, ..AcceleratorEpoch::default() });
    }

    /// Reads the times of checkpoints: `save_ckpt1`, `load_ckpt1`, and `ckpt1` in older DLIO. Checkpoints without an end are left out.
    fn collect_checkpoints(&mut self, epoch: u32, spans: Option<&Value>) {
        for (name, span) in spans.and_then(Value::as_object).into_iter().flatten() {
            let Some((kind, number)) = name.split_once("ckpt") else { continue };
            let Ok(number) = number.parse() else { continue };
            let time_us = |key: &str| micros(span.get(key)?.as_str()?);
            let span_us = time_us("start").zip(time_us("end"));
            let Some((start, end)) = span_us.filter(|(start, end)| start <= end) else { continue };
            let longest = self.checkpoints.entry((epoch, (kind == "load_", number)));
            let longest = longest.or_insert([start, end]);
            if longest[1] - longest[0] < end - start {
                *longest = [start, end];
            }
        }
    }

    /// Adds the collected checkpoints to their epochs, in the order of their starts.
    fn add_checkpoints(&mut self) {
        let Some(origin_us) = self.origin_us else { return };
        let since_origin_ns = |time_us: i64| {
            time_us.checked_sub(origin_us).filter(|elapsed_us| 0 <= *elapsed_us).map(nanos)
        };
        for (&(number, (is_load, _)), &[start_us, end_us]) in &self.checkpoints {
            let Some(epoch) = self.epochs.get_mut(&number) else { continue };
            let Some(start_ns) = since_origin_ns(start_us) else { continue };
            let Some(end_ns) = since_origin_ns(end_us) else { continue };
            let blocks = epoch.accelerators.iter().take(1).flat_map(|first| &first.blocks);
            let done = blocks.filter(|block| block.end_ns <= start_ns);
            epoch.checkpoints.push(CheckpointRecord {
                kind: if is_load { CheckpointKind::Load } else { CheckpointKind::Save },
                start_ns,
                end_ns,
                after_step: done.map(|block| block.steps() as u64).sum(),
                ..CheckpointRecord::default()
            });
            epoch.checkpoints.sort_by_key(|checkpoint| checkpoint.start_ns);
        }
    }

    /// Reads one epoch of one rank, which may have no blocks. `None` if a block cannot be used; the reason is reported.
    fn read_epoch(
        &mut self,
        rank: u32,
        number: u32,
        output: &Value,
        spans: Option<&Value>,
    ) -> Option<RankEpoch> {
        for kind in ["load", "compute", "proc", "throughput"] {
            let values = [Some(output), output.get(kind)].into_iter().flatten();
            if !values.clone().all(|value| value.is_null() || value.is_object()) {
                self.unreadable.push(format!(
                    "epoch {number} of rank {rank}: `{kind}` is not a map of blocks"
                ));
                return None;
            }
        }
        let blocks = output.get("load").and_then(Value::as_object).into_iter().flatten();
        let mut names: Vec<(u32, &String)> = blocks
            .filter_map(|(name, _)| Some((name.strip_prefix("block")?.parse().ok()?, name)))
            .collect();
        names.sort_unstable();
        let time = |key: &str| spans.and_then(|spans| text(spans.get(key)?)).unwrap_or_default();
        let mut epoch =
            RankEpoch { started: time("start"), ended: time("end"), ..RankEpoch::default() };
        for (_, name) in names {
            let span = spans.and_then(|spans| spans.get(name));
            let (problems, reason) = match self.read_block(output, name, span) {
                Ok(block) => {
                    let rate = output.get("throughput").and_then(|rates| rates.get(name));
                    epoch.rates.push(rate.map_or(f64::NAN, json::number));
                    epoch.blocks.push(block);
                    continue;
                }
                Err(BlockError::Unusable(reason)) => (&mut self.unreadable, reason),
                Err(BlockError::Backwards(reason)) => (&mut self.backwards, reason),
            };
            problems.push(format!("epoch {number}, `{name}` of rank {rank}: {reason}"));
            return None;
        }
        Some(epoch)
    }

    fn read_block(
        &mut self,
        output: &Value,
        name: &str,
        span: Option<&Value>,
    ) -> Result<Block, BlockError> {
        let list = |kind: &str| output.get(kind).and_then(|blocks| blocks.get(name));
        let load_ns = parse_times(list("load"))?;
        let compute_ns = match list("compute") {
            Some(compute) => parse_times(Some(compute))?,
            // Older DLIO writes only the sum of both times.
            None => {
                let sums_ns = parse_times(list("proc"))?;
                sums_ns.iter().zip(&load_ns).map(|(sum, load)| sum.saturating_sub(*load)).collect()
            }
        };
        let count = load_ns.len();
        if count != compute_ns.len() {
            return Err(BlockError::Unusable(format!(
                "it has {count} load times and {} compute times",
                compute_ns.len()
            )));
        }
        let (start_ns, end_ns) = self.span(span)?;
        self.add_time(&load_ns, &compute_ns, end_ns.saturating_sub(start_ns))?;
        // DLIO's files contain neither barrier waits nor bytes.
        let barrier_ns = vec![0; count];
        let read_bytes = vec![0; count];
        Ok(Block { start_ns, end_ns, load_ns, compute_ns, barrier_ns, read_bytes })
    }

    /// Adds the times of a block to the total. Fails if the total grows so large that sums of times could overflow.
    fn add_time(
        &mut self,
        load_ns: &[u64],
        compute_ns: &[u64],
        length_ns: u64,
    ) -> Result<(), BlockError> {
        let steps_ns: u128 = load_ns.iter().chain(compute_ns).map(|&ns| u128::from(ns)).sum();
        let sum_ns = u128::from(self.total_ns) + steps_ns.max(length_ns.into());
        let total_ns = u64::try_from(sum_ns).ok().filter(|sum_ns| *sum_ns <= TOTAL_MAX_NS);
        self.total_ns =
            total_ns.ok_or("the sum of all times up to this block exceeds 290 years")?;
        Ok(())
    }

    /// Parses the start and end of a block, in nanoseconds since the origin.
    fn span(&mut self, span: Option<&Value>) -> Result<(u64, u64), BlockError> {
        let time_us = |key: &str| micros(span?.get(key)?.as_str()?);
        let duration = span.and_then(|span| span.get("duration")).map(json::number);
        let duration_s = duration.filter(|seconds| (0.0..1e9).contains(seconds));
        let start_us = time_us("start").ok_or(TIME_UNKNOWN)?;
        let computed_end = duration_s.map(|duration_s| start_us + (duration_s * 1e6) as i64);
        let end_us = time_us("end").or(computed_end).ok_or(TIME_UNKNOWN)?;
        if end_us < start_us {
            let difference_s = (start_us - end_us) as f64 / 1e6;
            return Err(BlockError::Backwards(format!(
                "it ended {difference_s} s before it began"
            )));
        }
        // Blocks of other ranks may start up to a day before the first block. A distance of ten years means a broken clock.
        let origin_us = *self.origin_us.get_or_insert(start_us.saturating_sub(86_400_000_000));
        let since_origin = |time_us: i64| {
            time_us.checked_sub(origin_us).filter(|elapsed_us| *elapsed_us < 315_360_000_000_000)
        };
        match (since_origin(start_us), since_origin(end_us)) {
            (Some(from @ 0..), Some(to)) => Ok((nanos(from), nanos(to))),
            (_, None) => Err("its times are years away from those of other blocks".into()),
            _ => Err(BlockError::Backwards(
                "it began more than a day before the first block that was read".into(),
            )),
        }
    }
}

/// Start and end times of the blocks of one rank, and the kind of file that has them.
pub(super) struct BlockSpans {
    pub(super) spans: Fields,
    pub(super) source: SpanSource,
}

/// A source of [`BlockSpans`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SpanSource {
    /// The file of one rank.
    RankFile,
    /// The file for all ranks, which only older DLIO writes.
    SharedFile,
    /// The log, which all versions of DLIO write.
    Log,
}

/// Reads block times from the file of the first rank that has one, otherwise from the file for all ranks, otherwise from the log.
pub(super) fn first_spans(folder: &Path, names: &[String]) -> Option<BlockSpans> {
    let rank_files = names.iter().filter(|name| name.ends_with(STATS));
    let first_rank = rank_files.filter_map(|name| rank_of(name)).min();
    // `Steps::read` has already reported unreadable files.
    let read = |name: &str| json::read(folder, name, &mut Vec::new());
    let from_rank = || Some((read(&format!("{}{STATS}", first_rank?))?, SpanSource::RankFile));
    let from_shared = || Some((read(SHARED_STATS)?, SpanSource::SharedFile));
    let from_log = || Some((log::spans(&folder.join(LOG_FILE))?, SpanSource::Log));
    let (spans, source) = from_rank().or_else(from_shared).or_else(from_log)?;
    Some(BlockSpans { spans, source })
}

/// Counts the ranks that have all of these epochs.
fn complete_ranks(all: &[RankEpochs], numbers: &BTreeMap<u32, usize>) -> usize {
    let is_complete = |epochs: &BTreeMap<u32, RankEpoch>| {
        numbers.keys().all(|number| epochs.contains_key(number))
    };
    all.iter().filter(|(_, epochs)| is_complete(epochs)).count()
}

/// The reason why a block cannot be used.
enum BlockError {
    Unusable(String),
    Backwards(String),
}

impl From<&str> for BlockError {
    fn from(reason: &str) -> Self {
        BlockError::Unusable(reason.into())
    }
}

const TIME_UNKNOWN: &str = "its start or end time is unknown";

impl RankMachine {
    fn add(&mut self, rank: u32, output: &Fields) {
        let hostname = output.get("hostname").and_then(text);
        let processor = output.get("host_processor_name").and_then(text);
        let memory_gib = output.get("host_memory_GB").map(json::number);
        self.hostnames.extend(hostname.clone().filter(|name| !self.hostnames.contains(name)));
        self.memory_gib = self.memory_gib.or(memory_gib);
        self.cpus = self.cpus.or(output.get("host_cpu_count").and_then(Value::as_u64));
        self.processor = self.processor.take().or(processor);
        let memory_total_gib = json::memory_total_gib(output);
        self.rank_hosts.push(RankHost { rank, hostname, memory_gib, memory_total_gib });
    }
}

/// Maximum time of a step, about a year.
const TIME_MAX_S: f64 = 3.2e7;
/// Maximum sum of all times, about 290 years: half the range of 64 bits.
const TOTAL_MAX_NS: u64 = u64::MAX / 2;

fn parse_times(list: Option<&Value>) -> Result<Vec<u64>, BlockError> {
    let list = list.and_then(Value::as_array).ok_or("its steps are missing")?;
    let times = list.iter().map(|value| match json::number(value) {
        s if (0.0..TIME_MAX_S).contains(&s) => Ok((s * 1e9).round() as u64),
        s => Err(BlockError::Unusable(format!("`{s}` is not a valid step time"))),
    });
    times.collect()
}

fn nanos(us: i64) -> u64 {
    u64::try_from(us).unwrap_or(0).saturating_mul(1000)
}
