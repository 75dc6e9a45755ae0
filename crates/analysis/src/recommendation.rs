//! The tested configurations that did best, what they take, and what was not tried. From the means of cells: it claims no more than these.

use crate::design::{Design, DesignCell, Factor, Stratum};
use crate::estimate::{Middle, scaled};
use crate::precision::ALPHA;
use crate::throughput::throughput;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE, Unit};
use feedrate_measure::stats::{holm, welch_difference};
use feedrate_results::run::Run;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering::Equal;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Levels by their factors.
type HeldLevels = BTreeMap<String, String>;

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
    pub indistinguishable: usize,
    /// Configurations that were run, and are compared.
    pub tested: usize,
    /// Factors of the workload that are no choice, with the level that all compared configurations have.
    pub held: HeldLevels,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Configuration {
    /// Levels by their factors.
    pub levels: BTreeMap<String, String>,
    /// Those that are not the baseline's.
    #[serde(skip)]
    pub changes: Vec<ChangedLevel>,
    /// In the unit of the recommendation.
    #[serde(skip)]
    pub throughput: Middle,
    /// Samples per second.
    #[serde(rename = "samples_per_second")]
    pub samples: Middle,
    /// Utilisation over all steps, in percent.
    #[serde(rename = "au_all_steps_percent")]
    pub au_percent: Middle,
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

/// Recommend the best of each part of a workload whose runs may be compared, and that has at least two configurations: the same work, accelerators, client and
/// conditions of the storage. Parts of a workload with most configurations come first. `runs`: those that the designs name by their places.
pub fn recommendations(designs: &[Design], runs: &[&Run]) -> Vec<Recommendation> {
    let strata = designs.iter().flat_map(|design| {
        design.restricted(|_| true, |run| runs[run].unusable.is_none()).strata(runs)
    });
    let mut found = Vec::new();
    for whole in strata.map(Stratum::named_design) {
        let mut own: Vec<Recommendation> = groups(&whole)
            .into_iter()
            .filter_map(|(held, members)| recommend(&whole, held, &members, runs))
            .collect();
        own.sort_by_key(|of| Reverse(of.tested));
        found.extend(own);
    }
    found
}

/// Runs that differ in nothing but what can be chosen, with the levels that they share of all else.
fn groups(whole: &Design) -> Vec<(HeldLevels, BTreeSet<usize>)> {
    let held: Vec<usize> =
        (0..whole.factors.len()).filter(|&at| is_held(&whole.factors[at])).collect();
    let mut groups: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
    for cell in &whole.cells {
        let levels = held.iter().map(|&at| cell.levels[at]).collect();
        groups.entry(levels).or_default().extend(&cell.runs);
    }
    let named = |levels: Vec<usize>| {
        let factors = held.iter().map(|&at| &whole.factors[at]).zip(levels);
        factors.map(|(of, level)| (of.name.clone(), of.levels[level].clone())).collect()
    };
    groups.into_iter().map(|(levels, runs)| (named(levels), runs)).collect()
}

/// Whether a factor, or what always changed with it, is no choice.
fn is_held(factor: &Factor) -> bool {
    let mut names = factor.followers.iter().chain([&factor.name]).map(String::as_str);
    names.any(|name| HELD.contains(&name) || HELD_BELOW.iter().any(|of| name.starts_with(of)))
}

fn recommend(
    whole: &Design,
    held: HeldLevels,
    members: &BTreeSet<usize>,
    runs: &[&Run],
) -> Option<Recommendation> {
    let response = throughput(runs.iter().copied());
    let design = whole.restricted(
        |factor| !is_held(factor),
        |run| {
            let rate = runs[run].metric(&SAMPLES_WHOLE).filter(|rate| 0.0 < *rate);
            members.contains(&run) && rate.is_some()
        },
    );
    if design.cells.len() < 2 {
        return None;
    }
    let mut all: Vec<(Configuration, &DesignCell)> = Vec::new();
    for cell in &design.cells {
        all.push((Configuration::new(&design, cell, runs, response)?, cell));
    }
    all.sort_by(|a, b| {
        b.0.throughput.estimate.partial_cmp(&a.0.throughput.estimate).unwrap_or(Equal)
    });
    let rates: Vec<_> = all.iter().map(|(_, cell)| values(cell, runs, response)).collect();
    let others: Vec<Option<f64>> =
        rates[1..].iter().map(|own| chance(response, &rates[0], own)).collect();
    let known: Vec<f64> = others.iter().copied().flatten().collect();
    let told_apart = holm(&known).into_iter().filter(|p| *p < ALPHA).count();
    let is_au_known = all.iter().all(|(one, _)| one.au_percent.estimate.is_some());
    let (mut best, mut cells): (Vec<Configuration>, Vec<&DesignCell>) = (Vec::new(), Vec::new());
    let mut highest: Option<f64> = None;
    for (configuration, cell) in all {
        let au = configuration.au_percent.estimate;
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
        indistinguishable: others.len() - told_apart,
        tested: design.cells.len(),
        held,
        combinations: combinations.fold(1, u64::saturating_mul),
        followed: followed.map(|of| (of.name.clone(), of.followers.clone())).collect(),
        is_au_known,
        doubts: doubts.into_iter().collect(),
    })
}

/// Settings that change the work, the client or the conditions of the storage: of such there is no best.
const HELD: [&str; 18] = [
    "hosts",
    "processes",
    "model",
    "computation_time",
    "batch_size",
    "epochs",
    "cache",
    "num_files_train",
    "num_samples_per_file",
    "record_length_bytes",
    "record_length_bytes_stdev",
    "storage_type",
    "throttle_bytes_per_second",
    "throttle_latency_s",
    "throttle_concurrency",
    "delay_s",
    "open_delay_s",
    "read_delay_s",
];

/// All settings below these keys are such.
const HELD_BELOW: [&str; 2] = ["train.", "loader.client."];

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
        let [throughput, samples, au] = [response, &SAMPLES_WHOLE, &AU_ALL_STEPS]
            .map(|metric| Middle::new(metric, values(cell, runs, metric)));
        let computes = au.estimate.is_some_and(|percent| 0.0 < percent);
        let named = design.factors.iter().zip(&cell.levels);
        let changed = named.filter(|(factor, level)| factor.baseline != **level);
        let changes = changed.map(|(factor, &level)| ChangedLevel {
            factor: factor.name.clone(),
            level: factor.levels[level].clone(),
            baseline: factor.baseline_level().into(),
        });
        throughput.estimate.and(samples.estimate).map(|_| Configuration {
            levels: design.levels_of(cell),
            changes: changes.collect(),
            // Where nothing is computed there is no utilisation.
            au_percent: if computes { au } else { Middle::default() },
            throughput,
            samples,
            n: cell.runs.len(),
        })
    }
}
