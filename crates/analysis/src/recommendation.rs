//! The tested configurations that did best, what they take, and what was not tried. From the means of cells: it claims no more than these.

use crate::design::{Design, DesignCell, Factor, PROCESSES, Stratum};
use crate::estimate::{mean_of_cells, scaled};
use crate::precision::ALPHA;
use crate::throughput::throughput;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE, Unit};
use feedrate_measure::stats::{Interval, holm, welch_difference};
use feedrate_results::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// The best of the configurations of a workload that were run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The workload.
    pub workload: String,
    /// Those that no other beats in both throughput and utilisation, most throughput first.
    pub best: Vec<Configuration>,
    /// Unit of throughputs.
    pub unit: Unit,
    /// How many others are not told apart from the first in throughput: by Welch's test, corrected for all (Holm), or because either was run once.
    pub not_told_apart: usize,
    /// Configurations that were run, and are compared.
    pub tested: usize,
    /// Those that were run and are not compared, as they did other work: see `held`.
    pub of_other_work: usize,
    /// Settings that change the work, with the level that all compared configurations have.
    pub held: Vec<(String, String)>,
    /// Combinations of all levels of all factors; those that were not run are untested.
    pub combinations: u64,
    /// Factors with settings that always changed together with them, so that it may be these.
    pub followed: Vec<(String, Vec<String>)>,
    /// Whether the utilisation of all compared configurations is known.
    pub is_au_known: bool,
    /// Warnings about runs of `best`, by name.
    pub doubts: Vec<String>,
}

/// A cell of the design, with what it reached and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Levels by their factors.
    pub levels: BTreeMap<String, String>,
    /// Those that are not the baseline's.
    pub changes: Vec<ChangedLevel>,
    /// In the unit of the recommendation.
    pub throughput: ConfigurationMean,
    /// Samples per second.
    pub samples: ConfigurationMean,
    /// Utilisation over all steps, in percent.
    pub au_percent: Option<ConfigurationMean>,
    /// Throughput of an accelerator.
    pub throughput_each: Option<f64>,
    /// Runs.
    pub n: usize,
}

/// A level that is not that of the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ChangedLevel {
    pub factor: String,
    pub level: String,
    pub baseline: String,
}

/// The mean over the runs of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigurationMean {
    /// The mean; of rates the geometric one.
    pub middle: f64,
    /// `None` of one run.
    pub interval: Option<Interval>,
}

/// Recommend the best of each workload with at least two configurations, and of each part of it whose runs may be compared. `runs`: those that the designs name by
/// their places.
pub fn recommendations(designs: &[Design], runs: &[&Run]) -> Vec<Recommendation> {
    let strata = designs.iter().flat_map(|design| {
        design.restricted(|_| true, |run| runs[run].unusable.is_none()).strata(runs)
    });
    strata.map(Stratum::named_design).filter_map(|of| recommend(&of, runs)).collect()
}

fn recommend(whole: &Design, runs: &[&Run]) -> Option<Recommendation> {
    let response = throughput(runs.iter().copied());
    let is_work = |factor: &Factor| {
        let mut names = factor.followers.iter().chain([&factor.name]);
        names.any(|name| HELD.contains(&name.as_str()))
    };
    let held: Vec<usize> =
        (0..whole.factors.len()).filter(|&at| is_work(&whole.factors[at])).collect();
    let is_held =
        |cell: &&DesignCell| held.iter().all(|&at| cell.levels[at] == whole.factors[at].baseline);
    let of_cells = whole.cells.iter().filter(is_held).flat_map(|cell| &cell.runs);
    let comparable: BTreeSet<usize> = of_cells.copied().collect();
    let of_other_work = whole.cells.iter().filter(|cell| !is_held(cell)).count();
    let held = held.iter().map(|&at| &whole.factors[at]);
    let held = held.map(|of| (of.name.clone(), of.baseline_level().to_string())).collect();
    let design = whole.restricted(
        |factor| !is_work(factor),
        |run| {
            let rate = runs[run].metric(&SAMPLES_WHOLE).filter(|rate| 0.0 < *rate);
            comparable.contains(&run) && rate.is_some()
        },
    );
    if design.cells.len() < 2 {
        return None;
    }
    let mut all: Vec<(Configuration, &DesignCell)> = Vec::new();
    for cell in &design.cells {
        all.push((Configuration::new(&design, cell, runs, response)?, cell));
    }
    all.sort_by(|a, b| b.0.throughput.middle.total_cmp(&a.0.throughput.middle));
    let rates: Vec<_> = all.iter().map(|(_, cell)| values(cell, runs, response)).collect();
    let others: Vec<Option<f64>> =
        rates[1..].iter().map(|own| chance(response, &rates[0], own)).collect();
    let known: Vec<f64> = others.iter().copied().flatten().collect();
    let told_apart = holm(&known).into_iter().filter(|p| *p < ALPHA).count();
    let is_au_known = all.iter().all(|(one, _)| one.au_percent.is_some());
    let (mut best, mut cells): (Vec<Configuration>, Vec<&DesignCell>) = (Vec::new(), Vec::new());
    let mut highest: Option<f64> = None;
    for (configuration, cell) in all {
        let au = configuration.au_percent.map(|au| au.middle);
        if best.is_empty() || au.zip(highest).is_some_and(|(au, highest)| highest < au) {
            highest = au.or(highest);
            best.push(configuration);
            cells.push(cell);
        }
    }
    let doubts = cells.iter().flat_map(|cell| &cell.runs).flat_map(|&run| &runs[run].doubts);
    let doubts = doubts.filter(|doubt| doubt.severity == Severity::Warning);
    let doubts: BTreeSet<String> = doubts.map(|doubt| doubt.name.clone()).collect();
    let combinations = design.factors.iter().map(|factor| factor.levels.len() as u64);
    let followed = design.factors.iter().filter(|factor| !factor.followers.is_empty());
    Some(Recommendation {
        workload: design.workload.clone(),
        best,
        unit: response.unit,
        not_told_apart: others.len() - told_apart,
        tested: design.cells.len(),
        of_other_work,
        held,
        combinations: combinations.fold(1, u64::saturating_mul),
        followed: followed.map(|of| (of.name.clone(), of.followers.clone())).collect(),
        is_au_known,
        doubts: doubts.into_iter().collect(),
    })
}

/// Settings that change what a sample or a step is, or where it ran: of such there is no best. They stay at the baseline.
const HELD: [&str; 7] = [
    "hosts",
    "model",
    "computation_time",
    "batch_size",
    "num_samples_per_file",
    "record_length_bytes",
    "record_length_bytes_stdev",
];

fn values(cell: &DesignCell, runs: &[&Run], metric: &Metric) -> Vec<f64> {
    cell.runs.iter().filter_map(|&run| runs[run].metric(metric)).collect()
}

/// Chance of so different rates if there were no difference; `None` where either was run once.
fn chance(response: &Metric, a: &[f64], b: &[f64]) -> Option<f64> {
    let [a, b] = [a, b].map(|of| of.iter().filter_map(|&rate| scaled(response, rate)));
    welch_difference(&a.collect::<Vec<_>>(), &b.collect::<Vec<_>>())?.p()
}

impl Configuration {
    fn new(design: &Design, cell: &DesignCell, runs: &[&Run], response: &Metric) -> Option<Self> {
        let mean = |metric: &Metric| {
            let (middle, interval) = mean_of_cells(metric, &[values(cell, runs, metric)])?;
            Some(ConfigurationMean { middle, interval })
        };
        let throughput = mean(response)?;
        let named = design.factors.iter().zip(&cell.levels);
        let changed = named.filter(|(factor, level)| factor.baseline != **level);
        let changes = changed.map(|(factor, &level)| ChangedLevel {
            factor: factor.name.clone(),
            level: factor.levels[level].clone(),
            baseline: factor.baseline_level().into(),
        });
        let accelerators = runs[*cell.runs.first()?].accelerators.filter(|count| 0 < *count);
        Some(Configuration {
            levels: design.levels_of(cell),
            changes: changes.collect(),
            au_percent: mean(&AU_ALL_STEPS),
            throughput_each: accelerators.map(|count| throughput.middle / f64::from(count)),
            throughput,
            samples: mean(&SAMPLES_WHOLE)?,
            n: cell.runs.len(),
        })
    }

    /// How many times the accelerators of the baseline it takes, where their number is a factor and it is not the baseline's.
    pub fn times_accelerators(&self) -> Option<f64> {
        let change = self.changes.iter().find(|of| of.factor == PROCESSES)?;
        let [own, base] = [&change.level, &change.baseline].map(|count| count.parse::<f64>().ok());
        Some(own? / base.filter(|base| 0.0 < *base)?)
    }
}
