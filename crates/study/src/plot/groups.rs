//! Runs by what they set: replicates, factors and their levels, and the commonest settings that all else is compared with. And the
//! axes of responses. Draws nothing.

use super::data::RunPoint;
use crate::draw::figure::{Axis, Content, Figure, Panel, Point, Range, Scale};
use crate::precision::CONFIDENCE;
use crate::response::{Response, Unit};
use feedrate_measure::stats::{self, Difference};
use feedrate_spec::units;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const ACCELERATORS: &str = "accelerators";
pub(super) const PROCESSES: &str = "Processes (emulated accelerators)";

/// Names of settings as workloads have them.
const NAMES: &[(&str, &str)] = &[
    (ACCELERATORS, "processes"),
    ("dataset.format", "format"),
    ("dataset.record_bytes", "record_length_bytes"),
    ("loader.batch_size", "batch_size"),
    ("loader.workers", "read_threads"),
    ("dataset.files_train", "num_files_train"),
    ("dataset.samples_per_file", "num_samples_per_file"),
    ("loader.prefetch_size", "prefetch_size"),
    ("loader.kind", "data_loader"),
    ("storage.engine", "engine"),
    ("storage.throttle_bytes_per_second", "throttle.bytes_per_second"),
    ("train.cold", "cold"),
];

/// What runs differ in.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    pub(super) key: String,
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
        let factors = factors(&runs);
        let mut groups: BTreeMap<Vec<usize>, Vec<&RunPoint>> = BTreeMap::new();
        for run in runs {
            let level = |factor: &Factor| {
                let level = level(run, &factor.key);
                factor.levels.iter().position(|known| *known == level).unwrap_or(0)
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
        Block { name, factors, groups, commonest }
    }

    /// The factor of processes, where they differ.
    pub(super) fn processes(&self) -> Option<usize> {
        self.factors.iter().position(|factor| factor.key == ACCELERATORS)
    }

    /// All factors but processes.
    pub(super) fn others(&self) -> Vec<usize> {
        (0..self.factors.len()).filter(|i| Some(*i) != self.processes()).collect()
    }

    /// Groups that have the commonest level of every factor but these.
    pub(super) fn slice(&self, but: &[usize]) -> impl Iterator<Item = &Group<'a>> {
        self.groups.iter().filter(move |group| {
            let same = |i: usize| group.levels[i] == self.commonest[i];
            (0..self.factors.len()).all(|i| but.contains(&i) || same(i))
        })
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

    /// The commonest level of each factor but these, in words; empty where there is none.
    pub(super) fn held(&self, but: &[usize]) -> String {
        let held = (0..self.factors.len()).filter(|i| !but.contains(i));
        let held: Vec<String> = held.map(|i| self.factors[i].named(self.commonest[i])).collect();
        held.join(", ")
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

    /// An axis of its levels, and where each lies: numbers that span octaves by their logarithm, all else side by side.
    pub(super) fn axis(&self) -> (Axis, Vec<f64>) {
        let is_bytes = self.key.contains("bytes");
        let number = |level: &String| level.parse().ok().filter(|value: &f64| *value > 0.0);
        let numbers: Option<Vec<f64>> = self.levels.iter().map(number).collect();
        let spans_octaves = |numbers: &Vec<f64>| {
            numbers.len() > 2 && 4.0 * numbers[0] <= numbers[numbers.len() - 1] && !is_bytes
        };
        let (scale, places) = match numbers.filter(spans_octaves) {
            Some(numbers) => (Scale::LogAt(numbers.clone()), numbers),
            None => {
                let names = (0..self.levels.len()).map(|level| self.shown(level)).collect();
                (Scale::Categories(names), (0..self.levels.len()).map(|i| i as f64).collect())
            }
        };
        let label = if self.key == ACCELERATORS { PROCESSES.into() } else { self.name.clone() };
        (Axis { label, scale, range: Range::Tight }, places)
    }
}

fn level(run: &RunPoint, key: &str) -> String {
    run.settings.get(key).cloned().unwrap_or("none".into())
}

/// What runs differ in, known names first. What follows from another factor is none of its own.
fn factors(runs: &[&RunPoint]) -> Vec<Factor> {
    let known = |key: &str| NAMES.iter().position(|(name, _)| *name == key);
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.settings.keys()).collect();
    let mut keys: Vec<&String> = keys.into_iter().collect();
    keys.sort_by_key(|key| (known(key).unwrap_or(NAMES.len()), key.len()));
    let mut factors: Vec<Factor> = Vec::new();
    for key in keys {
        let levels: BTreeSet<String> = runs.iter().map(|run| level(run, key)).collect();
        let is_none = levels.len() < 2
            || ["workload", "source"].contains(&key.as_str())
            || factors.iter().any(|factor| follows(runs, key, &factor.key));
        if is_none {
            continue;
        }
        let mut levels: Vec<String> = levels.into_iter().collect();
        levels.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            (a, b) => a.is_err().cmp(&b.is_err()),
        });
        let name = known(key).map_or(key.as_str(), |at| NAMES[at].1);
        factors.push(Factor { key: key.clone(), name: name.into(), levels });
    }
    factors
}

/// Whether each level of `of` has one level of `key`.
fn follows(runs: &[&RunPoint], key: &str, of: &str) -> bool {
    let mut levels: BTreeMap<String, String> = BTreeMap::new();
    runs.iter().all(|run| {
        let own = level(run, key);
        *levels.entry(level(run, of)).or_insert_with(|| own.clone()) == own
    })
}

/// The middle of runs at a place, with its interval where there are several. `None` where none has the response.
pub(super) fn point(x: f64, runs: &[&RunPoint], response: &Response, unit: f64) -> Option<Point> {
    let values: Vec<f64> =
        runs.iter().filter_map(|run| run.responses.get(response.name).copied()).collect();
    let interval = response.middle(&values, CONFIDENCE);
    let y = interval.map_or_else(|| stats::mean(&values), |interval| Some(interval.estimate))?;
    let end = |end: f64| Some(end / unit).filter(|end| end.is_finite());
    Some(Point {
        x,
        y: y / unit,
        low: interval.and_then(|interval| end(interval.low)),
        high: interval.and_then(|interval| end(interval.high)),
        runs: Some(values.len()),
    })
}

/// How replicates spread around the middle of their own experiment, pooled over all experiments (Montgomery, Design and Analysis of
/// Experiments, ch. 5.3: the mean square of error). On the scale of logarithms of what varies by factors.
pub(super) struct Pooled {
    variance: f64,
    freedom: f64,
    is_log: bool,
}

impl Pooled {
    /// Of a block; without degrees of freedom where nothing was repeated.
    pub(super) fn of(block: &Block<'_>, response: &Response) -> Self {
        let is_log = response.unit != Unit::Percent;
        let (mut squares, mut freedom) = (0.0, 0.0);
        for group in &block.groups {
            let values = scaled(&group.runs, response, is_log).unwrap_or_default();
            if let Some(stdev) = stats::stdev(&values) {
                let own = (values.len() - 1) as f64;
                squares += own * stdev * stdev;
                freedom += own;
            }
        }
        let variance = if freedom > 0.0 { squares / freedom } else { 0.0 };
        Pooled { variance, freedom, is_log }
    }

    /// The middle of runs of several experiments, with the interval that replicates leave open.
    pub(super) fn point(
        &self,
        x: f64,
        runs: &[&RunPoint],
        response: &Response,
        unit: f64,
    ) -> Option<Point> {
        let Some(values) = scaled(runs, response, self.is_log) else {
            let bare = point(x, runs, response, unit)?;
            return Some(Point { low: None, high: None, ..bare });
        };
        let estimate = stats::mean(&values)?;
        let standard_error = (self.variance / values.len() as f64).sqrt();
        let difference = Difference { estimate, standard_error, freedom: self.freedom };
        let interval = difference.interval(CONFIDENCE).filter(|_| self.freedom > 0.0);
        let back = |value: f64| if self.is_log { value.exp() / unit } else { value / unit };
        Some(Point {
            x,
            y: back(estimate),
            low: interval.map(|interval| back(interval.low)),
            high: interval.map(|interval| back(interval.high)),
            runs: Some(values.len()),
        })
    }
}

/// Values of runs, or their logarithms; `None` where one has none.
fn scaled(runs: &[&RunPoint], response: &Response, is_log: bool) -> Option<Vec<f64>> {
    let values = runs.iter().filter_map(|run| run.responses.get(response.name).copied());
    values
        .map(|value| if is_log { (value > 0.0).then(|| value.ln()) } else { Some(value) })
        .collect()
}

/// Effects are compared by their heights, so all panels have the same upright axis, which need not begin at 0.
pub(super) fn same_range(panels: &mut [Panel]) {
    let ends =
        |point: &Point| [point.y, point.low.unwrap_or(point.y), point.high.unwrap_or(point.y)];
    let all: Vec<f64> = panels.iter().flat_map(Panel::points).map(|point| point.y).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let beyond = if least < most { most - least } else { 0.1 * most.abs().max(1e-9) };
    let reach: Vec<f64> = panels.iter().flat_map(Panel::points).flat_map(ends).collect();
    let low = reach.iter().copied().fold(least, f64::min).max(least - beyond) - 0.08 * beyond;
    let high = reach.iter().copied().fold(most, f64::max).min(most + beyond) + 0.08 * beyond;
    for panel in panels {
        if let Content::Axes(axes) = &mut panel.content {
            axes.y.range = Range::AtLeast(low, high);
        }
    }
}

/// What the intervals of [`Pooled`] are, in the words of a caption.
pub(super) fn of_pooled(figure: &Figure, response: &Response) -> String {
    let means = means_of(response);
    match figure.panels.iter().flat_map(Panel::points).any(|point| point.low.is_some()) {
        true => {
            format!(
                "Marks are {means}; 95 % intervals are of the spread of replicates, pooled over all experiments."
            )
        }
        false => format!("Marks are {means}. Nothing was repeated, so there are no intervals."),
    }
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
    })
}

/// The axis of a response, and what values are divided by.
pub(super) fn axis_of(response: &Response, runs: &[RunPoint]) -> (Axis, f64) {
    let values = runs.iter().filter_map(|run| run.responses.get(response.name));
    let largest = values.copied().fold(0.0, f64::max);
    let is_au = response.name.starts_with("au_");
    let (label, unit) = match response.unit {
        Unit::Percent => (format!("{} (%)", title(response)), 1.0),
        Unit::SamplesPerSecond => (format!("{} (samples/s)", title(response)), 1.0),
        Unit::Seconds => (format!("{} (s)", title(response)), 1.0),
        Unit::BytesPerSecond => {
            let (unit, name) = bytes_unit(largest);
            (format!("{} ({name}/s)", title(response)), unit)
        }
    };
    let range = if is_au { Range::AtLeast(0.0, 100.0) } else { Range::FromZero };
    (Axis { label, scale: Scale::Linear, range }, unit)
}

/// What a response is called on an axis.
pub(super) fn title(response: &Response) -> &'static str {
    match response.name {
        "au_all_steps_percent" => "AU, all steps",
        "au_windowed_percent" => "AU, windowed",
        "au_sustained_percent" => "AU, sustained",
        "samples_per_second" | "delivered_bytes_per_second" => "Throughput",
        "nominal_bytes_per_second" => "Nominal throughput",
        "stall_percent" => "Stall",
        "duration_s" => "Duration",
        other => other,
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

/// An axis of the numbers of processes that runs had.
pub(super) fn processes_axis(runs: &[RunPoint]) -> Axis {
    let mut numbers: Vec<f64> = runs.iter().filter_map(processes).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    Axis { label: PROCESSES.into(), scale: Scale::LogAt(numbers), range: Range::Tight }
}

/// How many a run had.
pub(super) fn processes(run: &RunPoint) -> Option<f64> {
    run.settings.get(ACCELERATORS)?.parse().ok().filter(|number: &f64| *number > 0.0)
}

/// What kind of means the marks of a response are: see [`Response::middle`].
pub(super) fn means_of(response: &Response) -> &'static str {
    if response.unit == Unit::Percent { "means" } else { "geometric means" }
}

/// What marks and intervals in a figure are, in the words of a caption. `means`: of which kind.
pub(super) fn of_intervals(figure: &Figure, means: &str) -> String {
    let layers = figure.panels.iter().flat_map(Panel::points);
    let runs: BTreeSet<usize> =
        layers.filter(|point| point.low.is_some()).filter_map(|point| point.runs).collect();
    match (runs.first(), runs.last()) {
        (Some(least), Some(most)) if least == most => {
            format!("Marks are {means} with 95 % intervals of n = {least} runs.")
        }
        (Some(least), Some(most)) => {
            format!(
                "Marks are {means} with 95 % intervals of n = {least} to {most} runs; a mark without is one run."
            )
        }
        _ => "Each mark is one run, so there are no intervals.".into(),
    }
}
