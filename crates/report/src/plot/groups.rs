//! Runs by what they set: replicates, factors and their levels, and the commonest settings that all else is compared with. And the
//! axes of responses. Draws nothing.

use super::data::RunPoint;
use crate::draw::figure::{Axis, Point, Range, Scale};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::stats;
use feedrate_results::response::{Response, Unit};
use feedrate_spec::units;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) const ACCELERATORS: &str = "accelerators";
pub(super) const PROCESSES: &str = "Processes (emulated accelerators)";

/// What runs differ in.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    /// As in [`RunPoint::settings`].
    key: String,
    /// As findings call it.
    pub(super) name: String,
    /// Ascending where they are numbers.
    pub(super) levels: Vec<String>,
}

/// Runs of the same settings.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    /// For each factor, which of its levels.
    pub(super) levels: Vec<usize>,
    pub(super) runs: Vec<&'a RunPoint>,
}

/// Runs of one workload, of one source where there are several.
#[derive(Clone, Debug)]
pub(super) struct Block<'a> {
    /// What sets it apart from the other blocks; empty where there is one.
    pub(super) name: String,
    pub(super) factors: Vec<Factor>,
    /// Settings that changed only together with a factor: each, and the factor.
    pub(super) followers: Vec<(String, String)>,
    /// By their levels, the first factor's first.
    pub(super) groups: Vec<Group<'a>>,
    /// The commonest level of each factor.
    commonest: Vec<usize>,
}

/// Runs by source and workload.
pub(super) fn blocks(runs: &[RunPoint]) -> Vec<Block<'_>> {
    let mut parts: BTreeMap<Vec<&str>, Vec<&RunPoint>> = BTreeMap::new();
    for run in runs {
        let key =
            ["workload", "source"].map(|key| run.settings.get(key).map_or("", String::as_str));
        parts.entry(key.to_vec()).or_default().push(run);
    }
    let differ: Vec<bool> =
        (0..2).map(|i| parts.keys().map(|key| key[i]).collect::<BTreeSet<_>>().len() > 1).collect();
    let mut blocks = Vec::new();
    for (key, runs) in parts {
        let names = key.into_iter().zip(&differ).filter(|(_, differs)| **differs);
        let names: Vec<&str> = names.map(|(name, _)| name).collect();
        blocks.push(Block::of(names.join(", "), runs));
    }
    blocks
}

impl<'a> Block<'a> {
    fn of(name: String, runs: Vec<&'a RunPoint>) -> Self {
        let (factors, followers) = factors(&runs);
        let mut groups: BTreeMap<Vec<usize>, Vec<&RunPoint>> = BTreeMap::new();
        for run in runs {
            let level = |factor: &Factor| {
                let level = level(run, &factor.key);
                factor.levels.iter().position(|known| known == level).unwrap_or(0)
            };
            groups.entry(factors.iter().map(level).collect()).or_default().push(run);
        }
        let groups: Vec<Group<'_>> =
            groups.into_iter().map(|(levels, runs)| Group { levels, runs }).collect();
        let commonest = |i: usize| {
            let count =
                |level: usize| groups.iter().filter(|group| group.levels[i] == level).count();
            let levels = 0..factors[i].levels.len();
            levels.max_by_key(|&level| (count(level), usize::MAX - level)).unwrap_or(0)
        };
        let commonest = (0..factors.len()).map(commonest).collect();
        Block { name, factors, followers, groups, commonest }
    }

    /// The factor of processes, where they differ.
    pub(super) fn processes(&self) -> Option<usize> {
        self.factors.iter().position(|factor| factor.key == ACCELERATORS)
    }

    /// All factors but processes.
    pub(super) fn others(&self) -> Vec<usize> {
        (0..self.factors.len()).filter(|i| Some(*i) != self.processes()).collect()
    }

    /// Groups that share the levels of every factor but these: of all such, those where most were run, then at the commonest levels.
    pub(super) fn slice(&self, but: &[usize]) -> impl Iterator<Item = &Group<'a>> {
        let held = self.shared(but);
        self.groups.iter().filter(move |group| self.context(group, but) == held)
    }

    /// The levels that [`Block::slice`] holds.
    fn shared(&self, but: &[usize]) -> Vec<usize> {
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for group in &self.groups {
            *counts.entry(self.context(group, but)).or_default() += 1;
        }
        let commonest = without(&self.commonest, but);
        let common =
            |levels: &[usize]| levels.iter().zip(&commonest).filter(|(a, b)| a == b).count();
        let best = counts.into_iter().rev().max_by_key(|(levels, count)| (*count, common(levels)));
        best.map(|(levels, _)| levels).unwrap_or_default()
    }

    /// Levels of all factors but these.
    pub(super) fn context(&self, group: &Group<'_>, but: &[usize]) -> Vec<usize> {
        without(&group.levels, but)
    }

    /// What several groups have in common and not all of the block do, of many factors what is not common elsewhere; how many they are where
    /// that is nothing.
    pub(super) fn common(&self, groups: &[&Group<'_>]) -> Option<String> {
        if groups.len() == self.groups.len() {
            return self.title();
        }
        let first = groups.first()?;
        let few = self.factors.len() <= 3;
        let is_common = |i: &usize| {
            let is_told = few || first.levels[*i] != self.commonest[*i];
            is_told && groups.iter().all(|group| group.levels[*i] == first.levels[*i])
        };
        let common = (0..self.factors.len()).filter(is_common);
        let mut parts: Vec<String> =
            common.map(|i| self.factors[i].named(first.levels[i])).collect();
        if parts.is_empty() {
            let s = if groups.len() == 1 { "" } else { "s" };
            parts.push(format!("{} experiment{s}", groups.len()));
        }
        if !self.name.is_empty() {
            parts.insert(0, self.name.clone());
        }
        Some(parts.join(", "))
    }

    /// What [`Block::slice`] holds, in words; empty where that is nothing.
    pub(super) fn held(&self, but: &[usize]) -> String {
        let factors = (0..self.factors.len()).filter(|i| !but.contains(i));
        let held = factors.zip(self.shared(but)).map(|(i, level)| self.factors[i].named(level));
        held.collect::<Vec<_>>().join(", ")
    }

    /// What sets a group apart from all others.
    pub(super) fn label(&self, group: &Group<'_>) -> String {
        let parts = [self.name.clone(), self.label_within(group)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// What sets a group apart from others of its block: processes, and all of three factors, of more those that are not as commonly.
    pub(super) fn label_within(&self, group: &Group<'_>) -> String {
        let is_told = |i: &usize| {
            let is_uncommon = group.levels[*i] != self.commonest[*i];
            self.factors.len() <= 3 || Some(*i) == self.processes() || is_uncommon
        };
        let told = (0..self.factors.len()).filter(is_told);
        let parts: Vec<String> = told.map(|i| self.factors[i].named(group.levels[i])).collect();
        match parts.is_empty() && !self.factors.is_empty() {
            true => "commonest settings".into(),
            false => parts.join(", "),
        }
    }

    /// The same in a list of its own: never empty.
    pub(super) fn label_in_list(&self, group: &Group<'_>) -> String {
        let workload = || group.runs.first().and_then(|run| run.settings.get("workload")).cloned();
        Some(self.label_within(group))
            .filter(|name| !name.is_empty())
            .or_else(workload)
            .unwrap_or_default()
    }

    /// Over a panel of its own; nothing where it is alone.
    pub(super) fn title(&self) -> Option<String> {
        Some(self.name.clone()).filter(|name| !name.is_empty())
    }
}

fn without(levels: &[usize], but: &[usize]) -> Vec<usize> {
    let kept = levels.iter().enumerate().filter(|(i, _)| !but.contains(i));
    kept.map(|(_, level)| *level).collect()
}

impl Factor {
    /// `4 processes`, `format npz`.
    pub(super) fn named(&self, level: usize) -> String {
        let shown = self.shown(level);
        match self.key.as_str() {
            ACCELERATORS if shown == "1" => "1 process".into(),
            ACCELERATORS => format!("{shown} processes"),
            _ => format!("{} {shown}", self.name),
        }
    }

    /// A level as people write it.
    pub(super) fn shown(&self, level: usize) -> String {
        let text = &self.levels[level];
        match text.parse::<f64>() {
            Ok(value) if self.key.ends_with("bytes_per_second") => units::bytes_per_second(value),
            Ok(value) if self.key.ends_with("bytes") => units::bytes(value as u64),
            Ok(value) => value.to_string(),
            Err(_) => text.clone(),
        }
    }

    /// An axis of its levels, and where each lies: see [`Factor::axis_of`].
    pub(super) fn axis(&self) -> (Axis, Vec<f64>) {
        self.axis_of(&(0..self.levels.len()).collect::<Vec<_>>())
    }

    /// An axis of some of its levels, and where each lies: numbers that span octaves by their logarithm, all else side by side.
    pub(super) fn axis_of(&self, levels: &[usize]) -> (Axis, Vec<f64>) {
        let is_bytes = self.key.contains("bytes");
        let number =
            |level: &usize| self.levels[*level].parse().ok().filter(|value: &f64| *value > 0.0);
        let numbers: Option<Vec<f64>> = levels.iter().map(number).collect();
        let spans_octaves = |numbers: &Vec<f64>| {
            numbers.len() > 2 && 4.0 * numbers[0] <= numbers[numbers.len() - 1] && !is_bytes
        };
        let (scale, places) = match numbers.filter(spans_octaves) {
            Some(numbers) => (Scale::LogAt(numbers.clone()), numbers),
            None => {
                let names = levels.iter().map(|level| self.shown(*level)).collect();
                (Scale::Categories(names), (0..levels.len()).map(|i| i as f64).collect())
            }
        };
        let label = if self.key == ACCELERATORS { PROCESSES.into() } else { self.name.clone() };
        (Axis { label, scale, range: Range::Tight }, places)
    }
}

fn level<'a>(run: &'a RunPoint, key: &str) -> &'a str {
    run.settings.get(key).map_or("unset", String::as_str)
}

/// What runs differ in, processes first, and what follows from a factor of more levels, which is none of its own.
fn factors(runs: &[&RunPoint]) -> (Vec<Factor>, Vec<(String, String)>) {
    let keys: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.settings.keys().map(String::as_str)).collect();
    let is_place = |key: &str| ["workload", "source"].contains(&key);
    let mut keys: Vec<(&str, BTreeSet<&str>)> = keys
        .into_iter()
        .filter(|key| !is_place(key))
        .map(|key| (key, runs.iter().map(|run| level(run, key)).collect::<BTreeSet<_>>()))
        .filter(|(_, levels)| levels.len() > 1)
        .collect();
    keys.sort_by_key(|(key, levels)| (*key != ACCELERATORS, Reverse(levels.len()), *key));
    let (mut factors, mut followers) = (Vec::<Factor>::new(), Vec::new());
    for (key, levels) in keys {
        if let Some(factor) = factors.iter().find(|factor| follows(runs, key, &factor.key)) {
            followers.push((key.into(), factor.name.clone()));
            continue;
        }
        let mut levels: Vec<String> = levels.into_iter().map(String::from).collect();
        levels.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            (a, b) => a.is_err().cmp(&b.is_err()),
        });
        let name = if key == ACCELERATORS { "processes" } else { key };
        factors.push(Factor { key: key.into(), name: name.into(), levels });
    }
    factors.sort_by(|a, b| (a.key != ACCELERATORS, &a.name).cmp(&(b.key != ACCELERATORS, &b.name)));
    (factors, followers)
}

/// Whether each level of `of` has one level of `key`.
fn follows(runs: &[&RunPoint], key: &str, of: &str) -> bool {
    let mut levels: HashMap<&str, &str> = HashMap::new();
    runs.iter().all(|run| {
        let own = level(run, key);
        *levels.entry(level(run, of)).or_insert(own) == own
    })
}

/// The middle of runs at a place, with its interval where there are several. `None` where none has the response.
pub(super) fn point(x: f64, runs: &[&RunPoint], response: &Response, unit: f64) -> Option<Point> {
    let known =
        || runs.iter().filter_map(|run| Some((run, *run.responses.get(response.id.name())?)));
    let values: Vec<f64> = known().map(|(_, value)| value).collect();
    let interval = response.middle(&values, CONFIDENCE);
    let y = interval.map_or_else(|| stats::mean(&values), |interval| Some(interval.estimate))?;
    let end = |end: f64| Some(end / unit).filter(|end| end.is_finite());
    Some(Point {
        x,
        y: y / unit,
        low: interval.and_then(|interval| end(interval.low)),
        high: interval.and_then(|interval| end(interval.high)),
        runs: Some(values.len()),
        folders: known().map(|(run, _)| run.path.clone()).collect(),
    })
}

/// The same of values, as percent or anything else that varies evenly.
pub(super) fn mean_point(x: f64, values: &[f64]) -> Option<Point> {
    let interval = stats::mean_interval(values, CONFIDENCE);
    Some(Point {
        x,
        y: stats::mean(values)?,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        runs: Some(values.len()),
        folders: Vec::new(),
    })
}

/// The axis of a response, and what values are divided by.
pub(super) fn axis_of(response: &Response, runs: &[RunPoint]) -> (Axis, f64) {
    let values = runs.iter().filter_map(|run| run.responses.get(response.id.name()));
    let largest = values.copied().fold(0.0, f64::max);
    let is_au = response.id.name().starts_with("au_");
    let (label, unit) = match response.unit {
        Unit::Percent => (format!("{} (%)", title(response)), 1.0),
        Unit::SamplesPerSecond => (format!("{} (samples/s)", title(response)), 1.0),
        Unit::Seconds => (format!("{} (s)", title(response)), 1.0),
        Unit::BytesPerSecond => {
            let (unit, name) = bytes_unit(largest);
            (format!("{} ({name}/s)", title(response)), unit)
        }
        Unit::Bytes => {
            let (unit, name) = bytes_unit(largest);
            (format!("{} ({name})", title(response)), unit)
        }
        Unit::Files | Unit::Share | Unit::Ratio => (title(response).to_string(), 1.0),
    };
    let range = if is_au { Range::AtLeast(0.0, 100.0) } else { Range::FromZero };
    (Axis { label, scale: Scale::Linear, range }, unit)
}

/// What a response is called on an axis.
pub(super) fn title(response: &Response) -> &'static str {
    match response.id.name() {
        "au_all_steps_percent" => "AU, all steps",
        "au_windowed_percent" => "AU, windowed",
        "au_sustained_percent" => "AU, sustained",
        "samples_per_second" | "delivered_bytes_per_second" => "Throughput",
        "nominal_bytes_per_second" => "Nominal throughput",
        "stall_percent" => "Stall",
        "duration_s" => "Duration",
        _ => response.title,
    }
}

/// A unit in which the largest value has few digits: (bytes, name).
pub(super) fn bytes_unit(largest: f64) -> (f64, &'static str) {
    match largest {
        _ if largest >= 2e9 => (1e9, "GB"),
        _ if largest >= 2e6 => (1e6, "MB"),
        _ if largest >= 2e3 => (1e3, "kB"),
        _ => (1.0, "B"),
    }
}

/// An axis of the numbers of processes that runs had: even where the closest two are a sixteenth of it apart, so that their names have room.
pub(super) fn processes_axis(runs: &[RunPoint]) -> Axis {
    let numbers = numbers_of_processes(runs);
    let closest = numbers.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let range = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
    let scale = if range <= 16.0 * closest { Scale::LinearAt } else { Scale::LogAt };
    Axis { label: PROCESSES.into(), scale: scale(numbers), range: Range::Tight }
}

/// Ascending.
pub(super) fn numbers_of_processes(runs: &[RunPoint]) -> Vec<f64> {
    let mut numbers: Vec<f64> = runs.iter().filter_map(processes).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

/// How many a run had.
pub(super) fn processes(run: &RunPoint) -> Option<f64> {
    run.settings.get(ACCELERATORS)?.parse().ok().filter(|number: &f64| *number > 0.0)
}

/// What kind of means the marks of a response are: see [`Response::middle`].
pub(super) fn means_of(response: &Response) -> &'static str {
    if response.unit == Unit::Percent { "means" } else { "geometric means" }
}
