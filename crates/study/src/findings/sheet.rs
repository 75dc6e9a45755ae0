//! One response of one workload, laid out for its tests: factors, their levels, and the runs of each combination. Tests nothing.

use super::{FigureUnit, Figures, Finding, Kind, Observation, words};
use crate::factor::{Factor, number};
use crate::precision::CONFIDENCE;
use crate::response::{Better, Response, Unit};
use feedrate_measure::doubt::Severity;
use feedrate_measure::stats::{Anova, Cell, Combination, Difference, Model, Term, anova};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What the level of a factor is called that a run does not name.
const UNSET: &str = "unset";
/// More levels, and pairs of them, take longer than their tests are worth, one by one.
const COLUMNS_MAX: usize = 200;

/// Rates and durations are laid out as logarithms, percentages as they are: on these scales noise is nearest to normal, and effects add up.
pub(super) struct Sheet<'a> {
    pub(super) workload: &'a str,
    pub(super) response: &'static Response,
    pub(super) factors: Vec<Varied>,
    pub(super) cells: Vec<Cell>,
    /// Of each cell, in the order of its values.
    pub(super) runs: Vec<Vec<&'a Observation>>,
    /// Pairs of factors of which all combinations of levels were run.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Such pairs that are not looked at, because there are too many levels; of factors too where there are no terms at all.
    pub(super) pairs_dropped: usize,
    /// Factors and pairs.
    full: Model,
    /// Factors alone.
    additive: Model,
    /// Of factors, then pairs.
    anova: Anova,
    anova_additive: Anova,
}

/// A factor of more than one level.
pub(super) struct Varied {
    pub(super) name: String,
    /// Numbers ascend; other levels follow the alphabet.
    pub(super) levels: Vec<String>,
    /// As numbers, where all are.
    pub(super) numbers: Option<Vec<f64>>,
    /// The level that others are compared with.
    pub(super) base: usize,
    places: HashMap<String, usize>,
}

/// A combination of cells, and whether it takes that factors do not act together.
pub(super) struct Told {
    pub(super) combination: Combination,
    pub(super) is_additive: bool,
}

/// One a response that two runs have.
pub(super) fn sheets<'a>(
    workload: &'a str,
    observations: &[&'a Observation],
    responses: &[&'static Response],
    baseline: &BTreeMap<String, String>,
) -> Vec<Sheet<'a>> {
    let sheet =
        |response: &&'static Response| Sheet::of(workload, observations, response, baseline);
    responses.iter().filter_map(sheet).collect()
}

impl<'a> Sheet<'a> {
    fn of(
        workload: &'a str,
        observations: &[&'a Observation],
        response: &'static Response,
        baseline: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let value = |one: &Observation| {
            let value =
                one.responses.get(response.name).copied().filter(|value| value.is_finite())?;
            match response.unit {
                Unit::Percent => Some(value),
                // What is not positive has no logarithm.
                _ => (value > 0.0).then(|| value.ln()),
            }
        };
        let known: Vec<(&'a Observation, f64)> =
            observations.iter().filter_map(|&one| Some((one, value(one)?))).collect();
        if known.len() < 2 {
            return None;
        }
        let factors = varied(&known.iter().map(|(one, _)| *one).collect::<Vec<_>>(), baseline);
        let mut groups: BTreeMap<Vec<usize>, (Vec<f64>, Vec<&'a Observation>)> = BTreeMap::new();
        for (one, value) in known {
            let levels = factors.iter().map(|factor| factor.level_of(one)).collect();
            let group = groups.entry(levels).or_default();
            group.0.push(value);
            group.1.push(one);
        }
        let (mut cells, mut runs) = (Vec::new(), Vec::new());
        for (levels, (values, of)) in groups {
            cells.push(Cell { levels, values });
            runs.push(of);
        }
        let counts: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
        let columns: usize = counts.iter().map(|levels| levels - 1).sum();
        let fits = columns <= COLUMNS_MAX;
        let alone: Vec<Term> = (0..factors.len()).filter(|_| fits).map(|at| vec![at]).collect();
        let crossed = crossed(&cells, &counts);
        let of_pairs = crossed.iter().map(|&(a, b)| (counts[a] - 1) * (counts[b] - 1));
        let pairs_fit = columns + of_pairs.sum::<usize>() <= COLUMNS_MAX;
        let (pairs, pairs_dropped) =
            if pairs_fit { (crossed, 0) } else { (Vec::new(), crossed.len()) };
        let mut terms = alone.clone();
        terms.extend(pairs.iter().map(|&(a, b)| vec![a, b]));
        let full = Model::new(&cells, &counts, &terms);
        let additive = Model::new(&cells, &counts, &alone);
        let anova_additive = anova(&cells, &counts, &alone);
        let anova = anova(&cells, &counts, &terms);
        Some(Sheet {
            workload,
            response,
            factors,
            cells,
            runs,
            pairs,
            pairs_dropped,
            full,
            additive,
            anova,
            anova_additive,
        })
    }

    /// Level `to` against `from`; `None` where the design does not tell it.
    pub(super) fn difference(&self, factor: usize, from: usize, to: usize) -> Option<Told> {
        let told = |is_additive| move |combination| Told { combination, is_additive };
        let full = self.full.difference(factor, from, to).map(told(false));
        full.or_else(|| self.additive.difference(factor, from, to).map(told(true)))
    }

    /// How much more a level does with a level of another factor, each against its base.
    pub(super) fn interaction(&self, a: (usize, usize), b: (usize, usize)) -> Option<Combination> {
        let from_base =
            |(factor, level): (usize, usize)| (factor, self.factors[factor].base, level);
        self.full.interaction(from_base(a), from_base(b))
    }

    /// Share of the variation that a factor explains; where pairs are not told from it, of those that have it alone.
    pub(super) fn share(&self, factor: usize) -> Option<f64> {
        let own = self.anova.terms.get(factor)?;
        let is_whole = own.part.freedom + 1 == self.factors[factor].levels.len();
        if is_whole { own.share } else { self.anova_additive.terms.get(factor)?.share }
    }

    /// Share of the variation that a pair explains beyond its factors.
    pub(super) fn share_of_pair(&self, pair: usize) -> Option<f64> {
        self.anova.terms.get(self.factors.len() + pair)?.share
    }

    /// Whether factors have too many levels to test one by one.
    pub(super) fn is_too_large(&self) -> bool {
        self.anova_additive.terms.len() < self.factors.len()
    }

    /// The deviation of repeated runs; `None` where none were repeated.
    pub(super) fn noise(&self) -> Option<f64> {
        self.anova.pure.mean_square().map(f64::sqrt)
    }

    /// Whether the response is laid out as logarithms.
    pub(super) fn is_log(&self) -> bool {
        self.response.unit != Unit::Percent
    }

    /// A difference in the unit that figures have.
    pub(super) fn unit(&self) -> FigureUnit {
        if self.is_log() { FigureUnit::Ratio } else { FigureUnit::Points }
    }

    /// A value of the scale of the sheet as a figure.
    pub(super) fn shown(&self, value: f64) -> f64 {
        if self.is_log() { value.exp() } else { value }
    }

    /// Two levels of a factor, by the cells of a combination: the runs of each.
    pub(super) fn runs_of(&self, combination: &Combination, at: (usize, usize)) -> usize {
        let cells = combination.cells().filter(|&cell| self.cells[cell].levels[at.0] == at.1);
        cells.map(|cell| self.cells[cell].values.len()).sum()
    }

    /// What `difference` says in figures; without ends where it has none.
    pub(super) fn figures(&self, estimate: f64, of: Option<&Difference>, n: usize) -> Figures {
        let interval = of.and_then(|of| of.interval(CONFIDENCE));
        Figures {
            unit: self.unit(),
            estimate: self.shown(estimate),
            low: interval.map(|interval| self.shown(interval.low)),
            high: interval.map(|interval| self.shown(interval.high)),
            n,
            p: None,
            tests: None,
            share_percent: None,
        }
    }

    /// A finding on this sheet that rests on `cells`.
    pub(super) fn finding(
        &self,
        kind: Kind,
        factors: &[usize],
        sentence: String,
        cells: impl IntoIterator<Item = usize>,
    ) -> Finding {
        let cells: BTreeSet<usize> = cells.into_iter().collect();
        let runs: Vec<&'a Observation> =
            cells.into_iter().flat_map(|cell| self.runs[cell].iter().copied()).collect();
        let warnings = |run: &&'a Observation| {
            let all = run.doubts.iter().filter(|doubt| doubt.severity == Severity::Warning);
            all.map(|doubt| doubt.name.as_str())
        };
        let doubts: BTreeSet<&str> = runs.iter().flat_map(warnings).collect();
        Finding {
            rank: 0,
            kind,
            workload: self.workload.into(),
            response: Some(self.response.name),
            factors: factors.iter().map(|&factor| self.factors[factor].name.clone()).collect(),
            sentence,
            figures: None,
            evidence: runs.iter().map(|run| run.path.clone()).collect(),
            doubts: doubts.into_iter().map(words::quoted).collect(),
            supported: true,
            magnitude: 0.0,
        }
    }

    /// A change towards what is better is positive.
    pub(super) fn gain(&self, difference: f64) -> f64 {
        if self.response.better == Better::Higher { difference } else { -difference }
    }

    /// How far from nothing a difference is, so that points and ratios can be ordered.
    pub(super) fn magnitude(&self, difference: f64) -> f64 {
        if self.is_log() { difference.abs() } else { difference.abs() / 100.0 }
    }
}

impl Varied {
    pub(super) fn level_of(&self, run: &Observation) -> usize {
        let own = run.factors.get(&self.name).map_or(UNSET, String::as_str);
        self.places.get(own).copied().unwrap_or(self.base)
    }

    pub(super) fn base_level(&self) -> &str {
        &self.levels[self.base]
    }
}

/// Factors that are not the same in all.
pub(super) fn varied(all: &[&Observation], baseline: &BTreeMap<String, String>) -> Vec<Varied> {
    let names: BTreeSet<&String> = all.iter().flat_map(|one| one.factors.keys()).collect();
    // Combinations, so that a baseline that was run often counts no more than others.
    let combinations: BTreeSet<&BTreeMap<String, String>> =
        all.iter().map(|one| &one.factors).collect();
    let of_name = |name: &String| {
        let level =
            |of: &BTreeMap<String, String>| of.get(name).map_or(UNSET, |level| level).to_string();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        combinations.iter().for_each(|of| *seen.entry(level(of)).or_default() += 1);
        let mut levels: Vec<String> = seen.keys().cloned().collect();
        let numbers: Option<Vec<f64>> = levels.iter().map(|level| number(level)).collect();
        let numbers = numbers.map(|mut numbers| {
            levels.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(a.cmp(b)));
            numbers.sort_by(f64::total_cmp);
            numbers
        });
        let given = baseline.get(name);
        let is_given = |level: &String| given.is_some_and(|given| Factor::is_same(given, level));
        let most = seen.values().max();
        let base = levels.iter().position(is_given);
        let base = base.or_else(|| levels.iter().position(|level| seen.get(level) == most))?;
        let places = levels.iter().cloned().enumerate().map(|(at, level)| (level, at)).collect();
        (levels.len() > 1).then(|| Varied { name: name.clone(), levels, numbers, base, places })
    };
    names.into_iter().filter_map(of_name).collect()
}

/// Pairs of factors of which all combinations are there; only of these can be told whether they act together.
fn crossed(cells: &[Cell], counts: &[usize]) -> Vec<(usize, usize)> {
    let pairs = (0..counts.len()).flat_map(|a| (a + 1..counts.len()).map(move |b| (a, b)));
    let is_crossed = |&(a, b): &(usize, usize)| {
        let seen: BTreeSet<(usize, usize)> =
            cells.iter().map(|cell| (cell.levels[a], cell.levels[b])).collect();
        seen.len() == counts[a] * counts[b]
    };
    pairs.filter(is_crossed).collect()
}
