//! The steps of all ranks of a DLIO run, from their files. A rank counts where all its epochs can be used, so that every epoch is of the same ranks;
//! what cannot be used is told.

use super::json;
use super::log::{self, LOG};
use super::rank::{OUTPUT, Output, OutputEpoch, STATS, STATS_OF_ALL, Span, Stats, rank_of};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::{AcceleratorEpoch, Block, EpochRecord, HostEpoch};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Ranks that are looked at; what names more is told.
pub(super) const RANKS_MAX: usize = 65_536;

/// Steps of all ranks, by epoch.
#[derive(Default)]
pub(super) struct Steps {
    /// Those whose steps are there.
    pub(super) ranks: BTreeSet<u32>,
    /// Those that have files, whatever is in them.
    pub(super) named: BTreeSet<u32>,
    pub(super) epochs: BTreeMap<u32, EpochRecord>,
    pub(super) machine: Machine,
    pub(super) backwards: Vec<String>,
    /// The file that has rank 0's times, where other ranks are taken to have the same.
    pub(super) times_of_rank_0: Option<&'static str>,
    /// DLIO's rates, in the order of epochs' accelerators and their blocks.
    pub(super) rates: BTreeMap<(u32, usize), Vec<f64>>,
    /// The earliest time that was seen.
    start_us: Option<i64>,
    /// Time of all blocks together.
    all_ns: u64,
}

/// The machine, as ranks tell of it.
#[derive(Default)]
pub(super) struct Machine {
    /// Hosts of all ranks, in the order of the first of each.
    pub(super) hostnames: Vec<String>,
    pub(super) memory_gib: Option<f64>,
    pub(super) cpus: Option<u64>,
    pub(super) processor: Option<String>,
}

/// The blocks of one epoch of one rank.
struct RankEpoch {
    blocks: Vec<Block>,
    rates: Vec<f64>,
    started: String,
    ended: String,
}

/// One rank: its epochs that can be used.
type OfRank = (u32, BTreeMap<u32, RankEpoch>);

impl Steps {
    /// Read from a folder with files of these `names`.
    pub(super) fn read(folder: &Path, names: &[String], unreadable: &mut Vec<String>) -> Self {
        let mut steps = Steps::default();
        let rank = |name: &String| rank_of(name, OUTPUT).or_else(|| rank_of(name, STATS));
        steps.named = names.iter().filter_map(rank).collect();
        if RANKS_MAX < steps.named.len() {
            unreadable.push(format!("of {} ranks only {RANKS_MAX} are read", steps.named.len()));
        }
        let of_all: Option<Stats> =
            told(json::read(&folder.join(STATS_OF_ALL)), STATS_OF_ALL, unreadable);
        let has_own = names.iter().any(|name| rank_of(name, STATS).is_some());
        let mut of_log: Option<Option<Stats>> = None;
        let (mut all, mut failed) = (Vec::new(), BTreeSet::new());
        for rank in steps.named.iter().copied().take(RANKS_MAX).collect::<Vec<u32>>() {
            let name = format!("{rank}{OUTPUT}");
            let output: Option<Output> = told(json::read(&folder.join(&name)), &name, unreadable);
            let Some(output) = output else { continue };
            let name = format!("{rank}{STATS}");
            let own: Option<Stats> = told(json::read(&folder.join(&name)), &name, unreadable);
            let (stats, file) = match (&own, &of_all) {
                (Some(own), _) => (Some(own), None),
                (None, Some(of_all)) => (Some(of_all), Some(STATS_OF_ALL)),
                // The log is rank 0's, and all ranks leave a step together.
                (None, None) if rank == 0 || !has_own => {
                    let of_log = of_log.get_or_insert_with(|| log::spans(&folder.join(LOG)));
                    (of_log.as_ref(), of_log.as_ref().map(|_| LOG))
                }
                (None, None) => (None, None),
            };
            if rank > 0 {
                steps.times_of_rank_0 = file.or(steps.times_of_rank_0);
            }
            let mut epochs = BTreeMap::new();
            for (number, epoch) in &output.epochs {
                match steps.epoch(rank, *number, epoch, stats, unreadable) {
                    Some(epoch) if epoch.blocks.is_empty() => {}
                    Some(epoch) => drop(epochs.insert(*number, epoch)),
                    None => drop(failed.insert(rank)),
                }
            }
            steps.machine.add(output);
            all.push((rank, epochs));
        }
        steps.put_together(all, &failed, unreadable);
        steps
    }

    /// Every epoch is of the same ranks. As long as fewer than half of the ranks have all epochs, the epoch that the fewest have is left out; then the ranks that have
    /// not all that are left.
    fn put_together(
        &mut self,
        all: Vec<OfRank>,
        failed: &BTreeSet<u32>,
        unreadable: &mut Vec<String>,
    ) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        all.iter().flat_map(|(_, epochs)| epochs.keys()).for_each(|number| {
            *counts.entry(*number).or_default() += 1;
        });
        let mut rarest: Vec<(usize, Reverse<u32>)> =
            counts.iter().map(|(number, count)| (*count, Reverse(*number))).collect();
        rarest.sort_unstable();
        let mut lacking: Vec<usize> =
            all.iter().map(|(_, epochs)| counts.len() - epochs.len()).collect();
        for (count, Reverse(number)) in rarest {
            let whole = lacking.iter().filter(|lacking| **lacking == 0).count();
            if all.len() <= 2 * whole {
                break;
            }
            counts.remove(&number);
            for ((_, epochs), lacking) in all.iter().zip(&mut lacking) {
                *lacking -= usize::from(!epochs.contains_key(&number));
            }
            unreadable.push(format!(
                "epoch {number} is left out: {count} of {} ranks have steps of it that can be used",
                all.len()
            ));
        }
        for (rank, mut epochs) in all {
            if let Some(number) = counts.keys().find(|number| !epochs.contains_key(number)) {
                unreadable.push(format!(
                    "rank {rank} is left out: it has no steps of epoch {number} that can be used"
                ));
            } else if !counts.is_empty() || !failed.contains(&rank) {
                self.ranks.insert(rank);
                epochs.retain(|number, _| counts.contains_key(number));
                epochs.into_iter().for_each(|(number, epoch)| self.add(number, epoch));
            }
        }
    }

    fn add(&mut self, number: u32, of_rank: RankEpoch) {
        let epoch = self.epochs.entry(number).or_insert_with(|| empty_epoch(number));
        let (Some(first), Some(last)) = (of_rank.blocks.first(), of_rank.blocks.last()) else {
            return;
        };
        if epoch.accelerators.is_empty() {
            epoch.start_ns = first.start_ns;
            (epoch.started, epoch.ended) = (of_rank.started, of_rank.ended);
        }
        epoch.start_ns = epoch.start_ns.min(first.start_ns);
        epoch.end_ns = epoch.end_ns.max(last.end_ns);
        self.rates.insert((number, epoch.accelerators.len()), of_rank.rates);
        let blocks = of_rank.blocks;
        epoch.accelerators.push(AcceleratorEpoch { blocks, ..AcceleratorEpoch::default() });
    }

    /// `None` where a block cannot be used, which is told. An epoch may have no block.
    fn epoch(
        &mut self,
        rank: u32,
        number: u32,
        output: &OutputEpoch,
        stats: Option<&Stats>,
        unreadable: &mut Vec<String>,
    ) -> Option<RankEpoch> {
        let spans = stats.and_then(|stats| stats.0.get(&number));
        let mut names: Vec<(u32, &String)> = output
            .load
            .keys()
            .filter_map(|name| Some((name.strip_prefix("block")?.parse().ok()?, name)))
            .collect();
        names.sort_unstable();
        let at = |of: fn(&Span) -> &Option<String>| {
            spans.and_then(|epoch| of(&epoch.span).clone()).unwrap_or_default()
        };
        let mut found = RankEpoch {
            blocks: Vec::new(),
            rates: Vec::new(),
            started: at(|span| &span.start),
            ended: at(|span| &span.end),
        };
        for (_, name) in names {
            let span = spans.and_then(|epoch| epoch.parts.get(name));
            match self.block(output, name, span) {
                Ok(block) => {
                    found.blocks.push(block);
                    let rate = output.throughput.get(name);
                    found.rates.push(rate.map_or(f64::NAN, |rate| rate.0));
                }
                Err(why) => {
                    let told = format!("epoch {number}, `{name}` of rank {rank}: {why}");
                    let list = if why.is_backwards { &mut self.backwards } else { unreadable };
                    list.push(told);
                    return None;
                }
            }
        }
        Some(found)
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
            return Err(NoBlock::new(format!(
                "{} times of loading and {} of computing",
                load_ns.len(),
                compute_ns.len()
            )));
        }
        let (start_us, end_us) = self.span(span)?;
        let (start_ns, end_ns) = (nanos(start_us), nanos(end_us));
        self.add_time(&load_ns, &compute_ns, end_ns.saturating_sub(start_ns))?;
        let count = load_ns.len();
        Ok(Block {
            start_ns,
            end_ns,
            load_ns,
            compute_ns,
            // Neither is in DLIO's files.
            barrier_ns: vec![0; count],
            read_bytes: vec![0; count],
        })
    }

    /// All times together are few enough for every sum of them.
    fn add_time(&mut self, load: &[u64], compute: &[u64], length_ns: u64) -> Result<(), NoBlock> {
        let steps_ns: u128 = load.iter().chain(compute).map(|&ns| u128::from(ns)).sum();
        let all_ns = u128::from(self.all_ns) + steps_ns.max(length_ns.into());
        let all_ns = u64::try_from(all_ns).ok().filter(|all_ns| *all_ns <= ALL_MAX_NS);
        self.all_ns = all_ns.ok_or_else(|| {
            NoBlock::new("its times and those before it come to more than 290 years")
        })?;
        Ok(())
    }

    /// Start and end of a block, in microseconds from the earliest time of all.
    fn span(&mut self, span: Option<&Span>) -> Result<(i64, i64), NoBlock> {
        let unknown = || NoBlock::new("it is not known when it began and ended");
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
            (_, None) => Err(NoBlock::new("it is years away from another")),
            _ => backwards("it began more than a day before the first block that was read".into()),
        }
    }
}

/// The reason for which a block's figures cannot be used.
struct NoBlock {
    message: String,
    is_backwards: bool,
}

impl NoBlock {
    fn new(message: impl Into<String>) -> Self {
        NoBlock { message: message.into(), is_backwards: false }
    }
}

impl std::fmt::Display for NoBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Machine {
    fn add(&mut self, output: Output) {
        self.hostnames.extend(output.hostname.filter(|name| !self.hostnames.contains(name)));
        self.memory_gib = self.memory_gib.or(output.memory_gib.map(|gib| gib.0));
        self.cpus = self.cpus.or(output.cpus);
        self.processor = self.processor.take().or(output.processor);
    }
}

/// The value that was read; an error is told.
pub(super) fn told<T>(
    read: Option<Result<T, String>>,
    name: &str,
    unreadable: &mut Vec<String>,
) -> Option<T> {
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
/// 290 years, half of what 64 bits hold.
const ALL_MAX_NS: u64 = u64::MAX / 2;

fn times(list: Option<&Vec<json::Number>>) -> Result<Vec<u64>, NoBlock> {
    let list = list.ok_or_else(|| NoBlock::new("its steps are not there"))?;
    let time = |number: &json::Number| match number.0 {
        s if (0.0..TIME_MAX_S).contains(&s) => Ok((s * 1e9).round() as u64),
        s => Err(NoBlock::new(format!("`{s}` is no time of a step"))),
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
