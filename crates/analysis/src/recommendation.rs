//! Recommends the best of the configurations that were run.
//!
//! This module compares the means of cells and predicts nothing about configurations that were not run.

use crate::answer::{Answer, relevant_doubts};
use crate::design::{Design, DesignCell, Factor, Stratum};
use crate::estimate::{Middle, scaled};
use crate::findings::is_excluded;
use crate::precision::ALPHA;
use crate::throughput::throughput;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE, Unit};
use feedrate_measure::stats::{holm, welch_difference};
use feedrate_results::run::Run;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering::Equal;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Levels by the names of their factors.
type HeldLevels = BTreeMap<String, String>;

/// The best of the configurations of a workload that were run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The workload.
    pub workload: String,
    /// The configurations that no other exceeds in both throughput and utilisation, highest throughput first.
    pub best: Vec<Configuration>,
    /// The unit of throughputs.
    pub unit: Unit,
    /// Number of other configurations whose throughput is not significantly different from the first configuration, by Welch's test with
    /// Holm's correction. Configurations that were run only once count too, as they cannot be tested.
    pub indistinguishable: usize,
    /// Number of compared configurations.
    pub tested: usize,
    /// Factors of the workload that cannot be chosen, with the level that all compared configurations share.
    pub held: HeldLevels,
    /// Number of combinations of all levels of all factors, including those that were not run.
    pub combinations: u64,
    /// Factors with the settings that always changed together with them, which may be the actual cause.
    pub followed: Vec<(String, Vec<String>)>,
    /// Whether the utilisation of all compared configurations is known.
    pub is_au_known: bool,
    /// Names of the doubts that could change the answers of runs of `best`.
    pub doubts: Vec<String>,
}

/// A configuration that was run, with its results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Configuration {
    /// Levels by the names of their factors.
    pub levels: BTreeMap<String, String>,
    /// The levels that differ from the baseline.
    #[serde(skip)]
    pub changes: Vec<ChangedLevel>,
    /// Throughput in the unit of the recommendation.
    #[serde(skip)]
    pub throughput: Middle,
    /// Samples per second.
    #[serde(rename = "samples_per_second")]
    pub samples: Middle,
    /// Utilisation over all steps, in percent.
    #[serde(rename = "au_all_steps_percent")]
    pub au_percent: Middle,
    /// Number of runs.
    pub n: usize,
}

/// A level that differs from the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct ChangedLevel {
    pub factor: String,
    pub level: String,
    pub baseline: String,
}

/// Recommends the best configurations of each group of comparable runs, which have the same work, accelerators, client and storage
/// conditions. A group needs at least two configurations. Groups of a workload are sorted by their number of configurations, largest first.
/// The designs refer to `runs` by index.
pub fn recommendations(designs: &[Design], runs: &[&Run]) -> Vec<Recommendation> {
    let strata = designs
        .iter()
        .flat_map(|design| design.restrict(|_| true, |run| is_usable(runs[run])).strata(runs));
    let mut recommendations = Vec::new();
    for stratum in strata.map(Stratum::named_design) {
        let mut in_stratum: Vec<Recommendation> = groups(&stratum)
            .into_iter()
            .filter_map(|(held, members)| recommend(&stratum, held, &members, runs))
            .collect();
        in_stratum.sort_by_key(|recommendation| Reverse(recommendation.tested));
        recommendations.extend(in_stratum);
    }
    recommendations
}

fn is_usable(run: &Run) -> bool {
    run.unusable.is_none() && !is_excluded(run)
}

/// Groups runs that differ only in factors that can be chosen, with the levels of the other factors.
fn groups(stratum: &Design) -> Vec<(HeldLevels, BTreeSet<usize>)> {
    let held: Vec<usize> =
        (0..stratum.factors.len()).filter(|&index| is_held(&stratum.factors[index])).collect();
    let mut groups: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
    for cell in &stratum.cells {
        let levels = held.iter().map(|&index| cell.levels[index]).collect();
        groups.entry(levels).or_default().extend(&cell.runs);
    }
    let named = |levels: Vec<usize>| {
        let factors = held.iter().map(|&index| &stratum.factors[index]).zip(levels);
        factors.map(|(factor, level)| (factor.name.clone(), factor.levels[level].clone())).collect()
    };
    groups.into_iter().map(|(levels, runs)| (named(levels), runs)).collect()
}

/// Whether a factor, or a setting that always changed together with it, cannot be chosen.
fn is_held(factor: &Factor) -> bool {
    let mut names = factor.followers.iter().chain([&factor.name]).map(String::as_str);
    names.any(|name| {
        HELD.contains(&name) || HELD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}

/// Recommends the best configurations of the runs `members`.
fn recommend(
    stratum: &Design,
    held: HeldLevels,
    members: &BTreeSet<usize>,
    runs: &[&Run],
) -> Option<Recommendation> {
    let response = throughput(runs.iter().copied());
    let design = stratum.restrict(
        |factor| !is_held(factor),
        |run| {
            let rate = runs[run].metric(&SAMPLES_WHOLE).filter(|rate| 0.0 < *rate);
            members.contains(&run) && rate.is_some()
        },
    );
    if design.cells.len() < 2 {
        return None;
    }
    let mut configurations: Vec<(Configuration, &DesignCell)> = Vec::new();
    for cell in &design.cells {
        configurations.push((Configuration::new(&design, cell, runs, response)?, cell));
    }
    configurations.sort_by(|a, b| {
        b.0.throughput.estimate.partial_cmp(&a.0.throughput.estimate).unwrap_or(Equal)
    });
    let rates: Vec<_> =
        configurations.iter().map(|(_, cell)| values(cell, runs, response)).collect();
    let other_p: Vec<Option<f64>> =
        rates[1..].iter().map(|other| difference_p(response, &rates[0], other)).collect();
    let known_p: Vec<f64> = other_p.iter().copied().flatten().collect();
    let distinguishable = holm(&known_p).into_iter().filter(|p| *p < ALPHA).count();
    let is_au_known =
        configurations.iter().all(|(configuration, _)| configuration.au_percent.estimate.is_some());
    let mut best: Vec<Configuration> = Vec::new();
    let mut doubts: BTreeSet<String> = BTreeSet::new();
    let mut highest_au: Option<f64> = None;
    for (configuration, cell) in configurations {
        let au = configuration.au_percent.estimate;
        if best.is_empty() || au.zip(highest_au).is_some_and(|(au, highest)| highest < au) {
            highest_au = au.or(highest_au);
            best.push(configuration);
            for run in cell.runs.iter().map(|&run| runs[run]) {
                let relevant = relevant_doubts(Answer::from_run(run).as_ref(), &run.doubts);
                doubts.extend(relevant.into_iter().map(|doubt| doubt.name.clone()));
            }
        }
    }
    let level_counts = design.factors.iter().map(|factor| factor.levels.len() as u64);
    let followed = design.factors.iter().filter(|factor| !factor.followers.is_empty());
    Some(Recommendation {
        workload: design.workload.clone(),
        best,
        unit: response.unit,
        indistinguishable: other_p.len() - distinguishable,
        tested: design.cells.len(),
        held,
        combinations: level_counts.fold(1, u64::saturating_mul),
        followed: followed.map(|factor| (factor.name.clone(), factor.followers.clone())).collect(),
        is_au_known,
        doubts: doubts.into_iter().collect(),
    })
}

/// Settings that change the work, the client or the storage conditions. Their levels cannot be recommended.
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

/// Prefixes of further settings that change the work or the client.
const HELD_PREFIXES: [&str; 2] = ["train.", "loader.client."];

fn values(cell: &DesignCell, runs: &[&Run], metric: &Metric) -> Vec<f64> {
    cell.runs.iter().filter_map(|&run| runs[run].metric(metric)).collect()
}

/// The p-value of the difference of two sets of rates; `None` if one has fewer than two values.
fn difference_p(response: &Metric, a: &[f64], b: &[f64]) -> Option<f64> {
    let scaled_rates = |rates: &[f64]| -> Vec<f64> {
        rates.iter().filter_map(|&rate| scaled(response, rate)).collect()
    };
    welch_difference(&scaled_rates(a), &scaled_rates(b))?.p()
}

impl Configuration {
    fn new(design: &Design, cell: &DesignCell, runs: &[&Run], response: &Metric) -> Option<Self> {
        let middle = |metric: &Metric| Middle::new(metric, values(cell, runs, metric));
        let throughput = middle(response);
        let samples = middle(&SAMPLES_WHOLE);
        let au = middle(&AU_ALL_STEPS);
        let computes = au.estimate.is_some_and(|percent| 0.0 < percent);
        let factor_levels = design.factors.iter().zip(&cell.levels);
        let changed = factor_levels.filter(|(factor, level)| factor.baseline != **level);
        let changes = changed.map(|(factor, &level)| ChangedLevel {
            factor: factor.name.clone(),
            level: factor.levels[level].clone(),
            baseline: factor.baseline_level().into(),
        });
        throughput.estimate.and(samples.estimate).map(|_| Configuration {
            levels: design.levels_of(cell),
            changes: changes.collect(),
            // Without compute there is no utilisation.
            au_percent: if computes { au } else { Middle::default() },
            throughput,
            samples,
            n: cell.runs.len(),
        })
    }
}
