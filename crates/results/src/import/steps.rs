//! The steps of all ranks of a DLIO run, from their files. A rank counts where all its epochs can be used, so that every epoch is of the same ranks;
//! what cannot be used is told.

use super::json::{self, Fields, text};
use super::log;
use super::names::{LOG, OUTPUT, STATS, STATS_OF_ALL, rank_of};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::{
    AcceleratorEpoch, Block, CheckpointKind, CheckpointRecord, EpochRecord,
};
use serde_json::Value;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Ranks that are looked at; what names more is told.
pub(super) const RANKS_MAX: usize = 65_536;

/// DLIO's rates of blocks, by epoch and accelerator.
pub(super) type Rates = BTreeMap<(u32, usize), Vec<f64>>;

/// Steps of all ranks, by epoch.
#[derive(Default)]
pub(super) struct Steps {
    /// Those whose steps are there.
    pub(super) ranks: BTreeSet<u32>,
    /// Those that have files, whatever is in them.
    pub(super) named: BTreeSet<u32>,
    /// Those that have a file of steps, whatever is in it.
    pub(super) with_steps: BTreeSet<u32>,
    pub(super) epochs: BTreeMap<u32, EpochRecord>,
    pub(super) machine: MachineOfRanks,
    pub(super) unreadable: Vec<String>,
    pub(super) backwards: Vec<String>,
    /// The file that has rank 0's times, where other ranks are taken to have the same.
    pub(super) times_of_rank_0: Option<&'static str>,
    pub(super) rates: Rates,
    /// The earliest time that was seen.
    start_us: Option<i64>,
    /// Time of all blocks together.
    all_ns: u64,
    /// The time of the rank that took longest, which wrote or read the most.
    checkpoints: BTreeMap<(u32, CheckpointName), [i64; 2]>,
}

/// Direction and number in its epoch.
type CheckpointName = (bool, u32);

/// The machine, as ranks tell of it.
#[derive(Default)]
pub(super) struct MachineOfRanks {
    /// Hosts of all ranks, in the order of the first of each.
    pub(super) hostnames: Vec<String>,
    pub(super) memory_gib: Option<f64>,
    pub(super) cpus: Option<u64>,
    pub(super) processor: Option<String>,
}

/// The blocks of one epoch of one rank.
#[derive(Default)]
struct RankEpoch {
    blocks: Vec<Block>,
    rates: Vec<f64>,
    started: String,
    ended: String,
}

/// One rank: its epochs that can be used.
type RankEpochs = (u32, BTreeMap<u32, RankEpoch>);

impl Steps {
    /// Read from a folder with files of these `names`.
    pub(super) fn read(folder: &Path, names: &[String]) -> Self {
        let named = names.iter().filter_map(|name| rank_of(name)).collect();
        let with_steps = names.iter().filter(|name| name.ends_with(OUTPUT));
        let with_steps = with_steps.filter_map(|name| rank_of(name)).collect();
        let mut steps = Steps { named, with_steps, ..Steps::default() };
        if RANKS_MAX < steps.named.len() {
            let told = format!("of {} ranks only {RANKS_MAX} are read", steps.named.len());
            steps.unreadable.push(told);
        }
        let of_all = json::read(folder, STATS_OF_ALL, &mut steps.unreadable);
        let has_own = names.iter().any(|name| name.ends_with(STATS) && rank_of(name).is_some());
        let of_log = LazyCell::new(|| log::spans(&folder.join(LOG)));
        let (mut all, mut failed) = (Vec::new(), BTreeSet::new());
        for rank in steps.named.clone().into_iter().take(RANKS_MAX) {
            let output = json::read(folder, &format!("{rank}{OUTPUT}"), &mut steps.unreadable);
            let Some(output) = output else { continue };
            let own = json::read(folder, &format!("{rank}{STATS}"), &mut steps.unreadable);
            let (stats, file) = match (&own, &of_all) {
                (Some(own), _) => (Some(own), None),
                (None, Some(of_all)) => (Some(of_all), Some(STATS_OF_ALL)),
                // The log is rank 0's, and all ranks leave a step together.
                (None, None) if rank == 0 || !has_own => {
                    (of_log.as_ref(), of_log.as_ref().map(|_| LOG))
                }
                (None, None) => (None, None),
            };
            if rank > 0 {
                steps.times_of_rank_0 = file.or(steps.times_of_rank_0);
            }
            let mut epochs = BTreeMap::new();
            for (key, epoch) in &output {
                let Ok(number) = key.parse() else { continue };
                let spans = stats.and_then(|stats| stats.get(key));
                steps.see_checkpoints(number, spans);
                match steps.epoch(rank, number, epoch, spans) {
                    Some(epoch) if epoch.blocks.is_empty() => {}
                    Some(epoch) => drop(epochs.insert(number, epoch)),
                    None => drop(failed.insert(rank)),
                }
            }
            steps.machine.add(&output);
            all.push((rank, epochs));
        }
        steps.put_together(all, &failed);
        steps.add_checkpoints();
        steps
    }

    /// Every epoch is of the same ranks. As long as fewer than half of the ranks have all epochs, the epoch that the fewest have is left out; then the ranks that have
    /// not all that are left.
    fn put_together(&mut self, all: Vec<RankEpochs>, failed: &BTreeSet<u32>) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for number in all.iter().flat_map(|(_, epochs)| epochs.keys()) {
            *counts.entry(*number).or_default() += 1;
        }
        while all.len() > 2 * whole_ranks(&all, &counts) {
            let rarest = counts.iter().min_by_key(|(number, count)| (**count, Reverse(**number)));
            let Some((&number, &count)) = rarest else { break };
            counts.remove(&number);
            self.unreadable.push(format!(
                "epoch {number} is left out: {count} of {} ranks have steps of it that can be used",
                all.len()
            ));
        }
        for (rank, mut epochs) in all {
            if let Some(number) = counts.keys().find(|number| !epochs.contains_key(number)) {
                self.unreadable.push(format!(
                    "rank {rank} is left out: it has no steps of epoch {number} that can be used"
                ));
            } else if !counts.is_empty() || !failed.contains(&rank) {
                self.ranks.insert(rank);
                epochs.retain(|number, _| counts.contains_key(number));
                epochs.into_iter().for_each(|(number, epoch)| self.add(number, epoch));
            }
        }
    }

    fn add(&mut self, number: u32, own: RankEpoch) {
        let (Some(first), Some(last)) = (own.blocks.first(), own.blocks.last()) else { return };
        let epoch = self.epochs.entry(number).or_insert_with(|| EpochRecord {
            number,
            start_ns: first.start_ns,
            started: own.started,
            ended: own.ended,
            ..EpochRecord::default()
        });
        epoch.start_ns = epoch.start_ns.min(first.start_ns);
        epoch.end_ns = epoch.end_ns.max(last.end_ns);
        self.rates.insert((number, epoch.accelerators.len()), own.rates);
        epoch
            .accelerators
            .push(AcceleratorEpoch { blocks: own.blocks, ..AcceleratorEpoch::default() });
    }

    /// `save_ckpt1`, `load_ckpt1`, and `ckpt1` of older DLIO. One without an end is left out.
    fn see_checkpoints(&mut self, epoch: u32, spans: Option<&Value>) {
        for (name, span) in spans.and_then(Value::as_object).into_iter().flatten() {
            let Some((kind, number)) = name.split_once("ckpt") else { continue };
            let Ok(number) = number.parse() else { continue };
            let [start, end] = ["start", "end"].map(|end| micros(span.get(end)?.as_str()?));
            let Some((start, end)) = start.zip(end).filter(|(start, end)| start <= end) else {
                continue;
            };
            let longest = self.checkpoints.entry((epoch, (kind == "load_", number)));
            let longest = longest.or_insert([start, end]);
            if longest[1] - longest[0] < end - start {
                *longest = [start, end];
            }
        }
    }

    /// Give the epochs that are left their checkpoints, in the order of their starts.
    fn add_checkpoints(&mut self) {
        let Some(zero) = self.start_us else { return };
        for ((number, (is_load, _)), [start, end]) in &self.checkpoints {
            let Some(epoch) = self.epochs.get_mut(number) else { continue };
            let [start, end] = [start, end].map(|at| at.checked_sub(zero).filter(|at| 0 <= *at));
            let Some((start, end)) = start.zip(end) else { continue };
            let (start_ns, end_ns) = (nanos(start), nanos(end));
            let blocks = epoch.accelerators.iter().take(1).flat_map(|first| &first.blocks);
            let done = blocks.filter(|block| block.end_ns <= start_ns);
            epoch.checkpoints.push(CheckpointRecord {
                kind: if *is_load { CheckpointKind::Load } else { CheckpointKind::Save },
                start_ns,
                end_ns,
                after_step: done.map(|block| block.steps() as u64).sum(),
                ..CheckpointRecord::default()
            });
            epoch.checkpoints.sort_by_key(|one| one.start_ns);
        }
    }

    /// `None` where a block cannot be used, which is told. An epoch may have no block.
    fn epoch(
        &mut self,
        rank: u32,
        number: u32,
        output: &Value,
        spans: Option<&Value>,
    ) -> Option<RankEpoch> {
        for kind in ["load", "compute", "proc", "throughput"] {
            let values = [Some(output), output.get(kind)].into_iter().flatten();
            if !values.clone().all(|value| value.is_null() || value.is_object()) {
                let told = format!("epoch {number} of rank {rank}: `{kind}` is no map of blocks");
                self.unreadable.push(told);
                return None;
            }
        }
        let blocks = output.get("load").and_then(Value::as_object).into_iter().flatten();
        let mut names: Vec<(u32, &String)> = blocks
            .filter_map(|(name, _)| Some((name.strip_prefix("block")?.parse().ok()?, name)))
            .collect();
        names.sort_unstable();
        let [started, ended] = ["start", "end"]
            .map(|end| spans.and_then(|spans| text(spans.get(end)?)).unwrap_or_default());
        let mut found = RankEpoch { started, ended, ..RankEpoch::default() };
        for (_, name) in names {
            let span = spans.and_then(|spans| spans.get(name));
            let (told, why) = match self.block(output, name, span) {
                Ok(block) => {
                    let rate = output.get("throughput").and_then(|rates| rates.get(name));
                    found.rates.push(rate.map_or(f64::NAN, json::number));
                    found.blocks.push(block);
                    continue;
                }
                Err(NoBlock::Unusable(why)) => (&mut self.unreadable, why),
                Err(NoBlock::Backwards(why)) => (&mut self.backwards, why),
            };
            told.push(format!("epoch {number}, `{name}` of rank {rank}: {why}"));
            return None;
        }
        Some(found)
    }

    fn block(
        &mut self,
        output: &Value,
        name: &str,
        span: Option<&Value>,
    ) -> Result<Block, NoBlock> {
        let [load, compute, both] = ["load", "compute", "proc"]
            .map(|kind| output.get(kind).and_then(|blocks| blocks.get(name)));
        let load_ns = times(load)?;
        // Older DLIO has only both together.
        let compute_ns = match compute {
            Some(_) => times(compute)?,
            None => {
                let both = times(both)?;
                both.iter().zip(&load_ns).map(|(both, load)| both.saturating_sub(*load)).collect()
            }
        };
        let (count, computed) = (load_ns.len(), compute_ns.len());
        if count != computed {
            return Err(NoBlock::Unusable(format!(
                "{count} times of loading and {computed} of computing"
            )));
        }
        let (start_ns, end_ns) = self.span(span)?;
        self.add_time(&load_ns, &compute_ns, end_ns.saturating_sub(start_ns))?;
        // Neither waits at barriers nor bytes are in DLIO's files.
        let (barrier_ns, read_bytes) = (vec![0; count], vec![0; count]);
        Ok(Block { start_ns, end_ns, load_ns, compute_ns, barrier_ns, read_bytes })
    }

    /// All times together are few enough for every sum of them.
    fn add_time(&mut self, load: &[u64], compute: &[u64], length_ns: u64) -> Result<(), NoBlock> {
        let steps_ns: u128 = load.iter().chain(compute).map(|&ns| u128::from(ns)).sum();
        let all_ns = u128::from(self.all_ns) + steps_ns.max(length_ns.into());
        let all_ns = u64::try_from(all_ns).ok().filter(|all_ns| *all_ns <= ALL_MAX_NS);
        self.all_ns = all_ns.ok_or("its times and those before it come to more than 290 years")?;
        Ok(())
    }

    /// Start and end of a block, in nanoseconds from the earliest time of all.
    fn span(&mut self, span: Option<&Value>) -> Result<(u64, u64), NoBlock> {
        let [start, end] = ["start", "end"].map(|end| micros(span?.get(end)?.as_str()?));
        let lasted = span.and_then(|span| span.get("duration")).map(json::number);
        let lasted_s = lasted.filter(|s| (0.0..1e9).contains(s));
        let start = start.ok_or(TIME_UNKNOWN)?;
        let end = end.or(lasted_s.map(|lasted_s| start + (lasted_s * 1e6) as i64));
        let end = end.ok_or(TIME_UNKNOWN)?;
        if end < start {
            let by_s = (start - end) as f64 / 1e6;
            return Err(NoBlock::Backwards(format!("it ended {by_s} s before it began")));
        }
        // A day before the first time that is seen is early enough for all ranks; ten years from it are a broken clock.
        let zero = *self.start_us.get_or_insert(start.saturating_sub(86_400_000_000));
        let [start, end] =
            [start, end].map(|at| at.checked_sub(zero).filter(|at| *at < 315_360_000_000_000));
        match (start, end) {
            (Some(from @ 0..), Some(to)) => Ok((nanos(from), nanos(to))),
            (_, None) => Err("it is years away from another".into()),
            _ => Err(NoBlock::Backwards(
                "it began more than a day before the first block that was read".into(),
            )),
        }
    }
}

/// When blocks began and ended, of the first rank that tells, else of the log; whether that is from the one file of older DLIO, which a log does not tell.
pub(super) fn spans_of_first(folder: &Path, names: &[String]) -> Option<(Fields, Option<bool>)> {
    let own = names.iter().filter(|name| name.ends_with(STATS));
    let first = own.filter_map(|name| rank_of(name)).min();
    // What cannot be read was told where the steps were.
    let read = |name: &str| json::read(folder, name, &mut Vec::new());
    let own = first.and_then(|rank| read(&format!("{rank}{STATS}"))).map(|all| (all, Some(false)));
    own.or_else(|| read(STATS_OF_ALL).map(|all| (all, Some(true))))
        .or_else(|| log::spans(&folder.join(LOG)).map(|all| (all, None)))
}

/// How many ranks have all of these epochs.
fn whole_ranks(all: &[RankEpochs], epochs: &BTreeMap<u32, usize>) -> usize {
    all.iter().filter(|(_, own)| epochs.keys().all(|one| own.contains_key(one))).count()
}

/// The reason for which a block's figures cannot be used.
enum NoBlock {
    Unusable(String),
    Backwards(String),
}

impl From<&str> for NoBlock {
    fn from(why: &str) -> Self {
        NoBlock::Unusable(why.into())
    }
}

const TIME_UNKNOWN: &str = "it is not known when it began and ended";

impl MachineOfRanks {
    fn add(&mut self, output: &Fields) {
        let [hostname, processor] =
            ["hostname", "host_processor_name"].map(|key| output.get(key).and_then(text));
        self.hostnames.extend(hostname.filter(|name| !self.hostnames.contains(name)));
        self.memory_gib = self.memory_gib.or(output.get("host_memory_GB").map(json::number));
        self.cpus = self.cpus.or(output.get("host_cpu_count").and_then(Value::as_u64));
        self.processor = self.processor.take().or(processor);
    }
}

/// No step of more than a year.
const TIME_MAX_S: f64 = 3.2e7;
/// 290 years, half of what 64 bits hold.
const ALL_MAX_NS: u64 = u64::MAX / 2;

fn times(list: Option<&Value>) -> Result<Vec<u64>, NoBlock> {
    let list = list.and_then(Value::as_array).ok_or("its steps are not there")?;
    let times = list.iter().map(|value| match json::number(value) {
        s if (0.0..TIME_MAX_S).contains(&s) => Ok((s * 1e9).round() as u64),
        s => Err(NoBlock::Unusable(format!("`{s}` is no time of a step"))),
    });
    times.collect()
}

fn nanos(us: i64) -> u64 {
    u64::try_from(us).unwrap_or(0).saturating_mul(1000)
}
