//! One response of one workload, laid out for its tests: factors, their levels, and the runs of each combination. Tests nothing.

use super::{FigureUnit, Figures, Finding, Kind, MARGIN, Observation, trust, words};
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{
    Anova, Cell, Combination, Difference, Explained, Model, Term, anova, mean,
};
use feedrate_results::response::{Better, Response, Unit};
use feedrate_results::setting::number;
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
    /// Of each factor, the level that most combinations have, comparable or not.
    commonest: Vec<usize>,
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
    /// The level that others are compared with: the one that most combinations have, of those that can be compared.
    pub(super) base: usize,
    /// Of each level, whether it is not acted on in any of its runs.
    ignored: Vec<bool>,
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
) -> Vec<Sheet<'a>> {
    let sheet = |response: &&'static Response| Sheet::of(workload, observations, response);
    responses.iter().filter_map(sheet).collect()
}

impl<'a> Sheet<'a> {
    fn of(
        workload: &'a str,
        observations: &[&'a Observation],
        response: &'static Response,
    ) -> Option<Self> {
        let value = |one: &Observation| {
            let value =
                one.responses.get(response.id.name()).copied().filter(|value| value.is_finite())?;
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
        let factors = varied(&known.iter().map(|(one, _)| *one).collect::<Vec<_>>());
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
        let commonest = factors.iter().map(|factor| factor.base).collect();
        let mut factors = factors;
        if fits {
            for (at, factor) in factors.iter_mut().enumerate() {
                factor.base = reference(&additive.comparable(at), &cells, at, factor.base);
            }
        }
        Some(Sheet {
            workload,
            response,
            factors,
            commonest,
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

    /// Share of the variation that a factor explains; where pairs are not told from it, of those that have it alone. `None` where not all of its levels can be compared.
    pub(super) fn share(&self, factor: usize) -> Option<f64> {
        let is_whole = |own: &&Explained| own.part.freedom + 1 == self.factors[factor].levels.len();
        let own = self.anova.terms.get(factor).filter(is_whole);
        own.or_else(|| self.anova_additive.terms.get(factor).filter(is_whole))?.share
    }

    /// Share of the variation that a pair explains beyond its factors.
    pub(super) fn share_of_pair(&self, pair: usize) -> Option<f64> {
        self.anova.terms.get(self.factors.len() + pair)?.share
    }

    /// Chance of so much left over by factors that do not act together, if they did not; `None` where the runs do not tell.
    pub(super) fn lack_of_fit_p(&self) -> Option<f64> {
        self.anova_additive.lack_of_fit.p
    }

    /// Levels that can be compared with the base, and the base: ascending where they are numbers.
    pub(super) fn comparable(&self, factor: usize) -> Vec<usize> {
        let base = self.factors[factor].base;
        let is_told = |&level: &usize| {
            level == base || self.additive.difference(factor, base, level).is_some()
        };
        (0..self.factors[factor].levels.len()).filter(is_told).collect()
    }

    /// The combination of the commonest levels, where it is lacking and would make all levels of all factors comparable.
    pub(super) fn lacking(&self) -> Option<Vec<String>> {
        let is_there = self.cells.iter().any(|cell| cell.levels == self.commonest);
        if self.is_too_large() || is_there {
            return None;
        }
        let mut cells = self.cells.clone();
        cells.push(Cell { levels: self.commonest.clone(), values: vec![0.0] });
        let counts: Vec<usize> = self.factors.iter().map(|factor| factor.levels.len()).collect();
        let alone: Vec<Term> = (0..counts.len()).map(|at| vec![at]).collect();
        let model = Model::new(&cells, &counts, &alone);
        let is_told = |(at, &count): (usize, &usize)| {
            let base = self.commonest[at];
            (0..count).all(|to| to == base || model.difference(at, base, to).is_some())
        };
        let named = self.factors.iter().zip(&self.commonest);
        counts.iter().enumerate().all(is_told).then(|| {
            named
                .map(|(of, &at)| format!("{} {}", words::quoted(&of.name), of.levels[at]))
                .collect()
        })
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

    /// A difference that matters to nobody: a share, or points of a percentage; of one below 20 a tenth of it, as two points of 5 % are no small matter.
    pub(super) fn margin(&self) -> f64 {
        let means: Vec<f64> = self.cells.iter().filter_map(|cell| mean(&cell.values)).collect();
        match mean(&means) {
            Some(middle) if !self.is_log() => (100.0 * MARGIN).min(0.1 * middle.abs()),
            _ if self.is_log() => MARGIN,
            _ => 100.0 * MARGIN,
        }
    }

    /// The same in words.
    pub(super) fn margin_text(&self) -> String {
        let (number, unit) =
            if self.is_log() { (100.0 * self.margin(), "%") } else { (self.margin(), "points") };
        format!("{} {unit}", words::two_digits(number))
    }

    /// A difference in the unit that figures have.
    pub(super) fn unit(&self) -> FigureUnit {
        if self.is_log() { FigureUnit::Ratio } else { FigureUnit::Points }
    }

    /// A value of the scale of the sheet as a figure.
    pub(super) fn shown(&self, value: f64) -> f64 {
        if self.is_log() { value.exp() } else { value }
    }

    /// The mean of all combinations that have two levels; `None` where others have other combinations of the rest.
    pub(super) fn middle(&self, a: (usize, usize), b: (usize, usize)) -> Option<f64> {
        let all: usize = self.factors.iter().map(|factor| factor.levels.len()).product();
        let own =
            self.cells.iter().filter(|cell| cell.levels[a.0] == a.1 && cell.levels[b.0] == b.1);
        let means = own.map(|cell| mean(&cell.values)).collect::<Option<Vec<f64>>>()?;
        if self.cells.len() == all { mean(&means) } else { None }
    }

    /// A difference in figures as sentences count it: a ratio as percent of change.
    pub(super) fn change(&self, shown: f64) -> f64 {
        if self.is_log() { 100.0 * (shown - 1.0) } else { shown }
    }

    /// Two levels of a factor, by the cells of a combination: the runs of each.
    pub(super) fn runs_of(&self, combination: &Combination, at: (usize, usize)) -> usize {
        let cells = combination.cells().filter(|&cell| self.cells[cell].levels[at.0] == at.1);
        cells.map(|cell| self.cells[cell].values.len()).sum()
    }

    /// What `difference` says in figures; without ends where it has none.
    pub(super) fn figures(
        &self,
        what: impl Into<String>,
        estimate: f64,
        of: Option<&Difference>,
        n: usize,
    ) -> Figures {
        let interval = of.and_then(|of| of.interval(CONFIDENCE));
        let shown = interval.map(|one| if self.is_log() { one.exp() } else { one });
        Figures::new(what, self.unit(), self.shown(estimate), shown, n)
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
        let touches = |name: &&str| trust::touches(name, self.response.id.name());
        let doubts: BTreeSet<&str> =
            runs.iter().flat_map(|run| trust::warnings(run)).filter(touches).collect();
        Finding {
            rank: 0,
            kind,
            workload: self.workload.into(),
            response: Some(self.response.id.name()),
            factors: factors.iter().map(|&factor| self.factors[factor].name.clone()).collect(),
            sentence,
            figures: Vec::new(),
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

    /// Whether neither level is acted on, so that runs of both are the same.
    pub(super) fn is_ignored(&self, a: usize, b: usize) -> bool {
        self.ignored[a] && self.ignored[b]
    }
}

/// The level that others of a factor are compared with: of the largest set of levels that can be compared with each other, the one that most combinations have.
/// `set_of` names the set of each level, and `base` the commonest of all.
fn reference(set_of: &[usize], cells: &[Cell], at: usize, base: usize) -> usize {
    // Of each level, combinations and runs.
    let mut weights = vec![(0, 0); set_of.len()];
    for cell in cells {
        let weight: &mut (usize, usize) = &mut weights[cell.levels[at]];
        *weight = (weight.0 + 1, weight.1 + cell.values.len());
    }
    // Of each set, levels and runs.
    let mut sizes = vec![(0, 0); set_of.len()];
    for (&set, (_, runs)) in set_of.iter().zip(&weights) {
        let size: &mut (usize, usize) = &mut sizes[set];
        *size = (size.0 + 1, size.1 + runs);
    }
    // The last of equals is the greatest: of sets the base's own, else the first, and so of levels.
    let is_own = |set: usize| set == set_of[base];
    let sets = (0..sizes.len()).rev();
    let largest = sets.max_by_key(|&set| (sizes[set], is_own(set))).unwrap_or(set_of[base]);
    let levels = (0..set_of.len()).rev().filter(|&level| set_of[level] == largest);
    if is_own(largest) { base } else { levels.max_by_key(|&one| weights[one]).unwrap_or(base) }
}

/// Factors that are not the same in all, but for those that are never acted on: runs that differ in these alone are repeats.
pub(super) fn varied(all: &[&Observation]) -> Vec<Varied> {
    let names: BTreeSet<&String> = all.iter().flat_map(|one| one.factors.keys()).collect();
    let is_acted_on = |name: &&String| all.iter().any(|one| !one.ignored.contains_key(*name));
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
        let most = seen.values().max();
        let base = levels.iter().position(|level| seen.get(level) == most)?;
        let places: HashMap<String, usize> =
            levels.iter().cloned().enumerate().map(|(at, level)| (level, at)).collect();
        let mut ignored = vec![true; levels.len()];
        for one in all {
            let own = one.factors.get(name).map_or(UNSET, String::as_str);
            ignored[places[own]] &= one.ignored.contains_key(name);
        }
        let name = name.clone();
        (levels.len() > 1).then_some(Varied { name, levels, numbers, base, ignored, places })
    };
    names.into_iter().filter(is_acted_on).filter_map(of_name).collect()
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
