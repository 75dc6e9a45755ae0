//! One response of one design, laid out for its tests: the values of each cell, and what a least-squares fit can tell of them. Tests nothing.

use super::exclusions::{touches, warnings};
use super::{MARGIN, Observation, UsedRuns, about};
use crate::design::Design;
use crate::estimate::{ResponseScale, scaled};
use crate::finding::{Caveat, Effect, EffectUnit, Finding, Kind, Quantity, Subject};
use crate::precision::CONFIDENCE;
use feedrate_measure::metric::{Better, Metric};
use feedrate_measure::stats::{
    Anova, Cell, Combination, Difference, Explained, Model, Term, anova, mean,
};
use std::collections::BTreeSet;

/// More levels, and pairs of them, take longer than their tests are worth, one by one.
const COLUMNS_MAX: usize = 200;

/// Rates and durations are laid out as logarithms, percentages as they are: see [`ResponseScale`].
pub(super) struct DesignMatrix<'a> {
    pub(super) response: &'static Metric,
    pub(super) scale: ResponseScale,
    /// The design of the runs that have the response. The baseline of each factor is one that others can be compared with.
    pub(super) design: Design,
    /// The baselines of the design as it was given.
    baselines: Vec<usize>,
    /// In the order of those of the design.
    pub(super) cells: Vec<Cell>,
    /// The runs of each cell, in the order of its values.
    pub(super) runs: Vec<Vec<&'a Observation>>,
    /// Pairs of factors of which all combinations of levels were run.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Such pairs that are not looked at, because there are too many levels; of factors too where there are no terms at all.
    pub(super) pairs_dropped: usize,
    /// Factors and pairs.
    full: Model,
    /// Factors alone.
    additive: Model,
    /// Terms of factors, then those of pairs.
    anova: Anova,
    anova_additive: Anova,
}

/// A combination of cells, and whether it takes that factors do not act together.
pub(super) struct Contrast {
    pub(super) combination: Combination,
    pub(super) is_additive: bool,
}

impl<'a> DesignMatrix<'a> {
    /// Lay out a response that at least two runs have.
    pub(super) fn new(group: &UsedRuns<'a>, response: &'static Metric) -> Option<Self> {
        let all = group.runs;
        let values: Vec<Option<f64>> = all
            .iter()
            .map(|run| scaled(response, *run.responses.get(response.id.name())?))
            .collect();
        let used: Vec<usize> =
            group.design.cells.iter().flat_map(|cell| cell.runs.clone()).collect();
        let used: Vec<usize> = used.into_iter().filter(|&run| values[run].is_some()).collect();
        if used.len() < 2 {
            return None;
        }
        // Runs that differ only in what is never acted on are repeats.
        let is_acted_on = |name: &str| used.iter().any(|&run| !all[run].ignored.contains_key(name));
        let mut design = group
            .design
            .restricted(|factor| is_acted_on(&factor.name), |run| values[run].is_some());
        let cells: Vec<Cell> = design
            .cells
            .iter()
            .map(|cell| Cell {
                levels: cell.levels.clone(),
                values: cell.runs.iter().filter_map(|&run| values[run]).collect(),
            })
            .collect();
        let of_cell = |runs: &Vec<usize>| runs.iter().map(|&run| &all[run]).collect();
        let runs = design.cells.iter().map(|cell| of_cell(&cell.runs)).collect();
        let counts: Vec<usize> = design.factors.iter().map(|factor| factor.levels.len()).collect();
        let columns: usize = counts.iter().map(|levels| levels - 1).sum();
        let mut alone: Vec<Term> = Vec::new();
        if columns <= COLUMNS_MAX {
            alone.extend((0..counts.len()).map(|at| vec![at]));
        }
        let crossed = crossed(&cells, &counts);
        let of_pairs: usize = crossed.iter().map(|&(a, b)| (counts[a] - 1) * (counts[b] - 1)).sum();
        let (pairs, pairs_dropped) = if columns + of_pairs <= COLUMNS_MAX {
            (crossed, 0)
        } else {
            (Vec::new(), crossed.len())
        };
        let mut terms = alone.clone();
        terms.extend(pairs.iter().map(|&(a, b)| vec![a, b]));
        let additive = Model::new(&cells, &counts, &alone);
        let baselines: Vec<usize> = design.factors.iter().map(|factor| factor.baseline).collect();
        for (at, factor) in design.factors.iter_mut().enumerate() {
            factor.baseline = reference(&additive.comparable(at), &cells, at, baselines[at]);
        }
        Some(DesignMatrix {
            response,
            scale: ResponseScale::of(response),
            full: Model::new(&cells, &counts, &terms),
            anova: anova(&cells, &counts, &terms),
            anova_additive: anova(&cells, &counts, &alone),
            design,
            baselines,
            cells,
            runs,
            pairs,
            pairs_dropped,
            additive,
        })
    }

    /// Level `to` against `from`; `None` where the design does not tell it.
    pub(super) fn difference(&self, factor: usize, from: usize, to: usize) -> Option<Contrast> {
        if let Some(combination) = self.full.difference(factor, from, to) {
            return Some(Contrast { combination, is_additive: false });
        }
        let combination = self.additive.difference(factor, from, to)?;
        Some(Contrast { combination, is_additive: true })
    }

    /// How much more a level does with a level of another factor, each against its base.
    pub(super) fn interaction(&self, a: (usize, usize), b: (usize, usize)) -> Option<Combination> {
        let [a, b] = [a, b].map(|(at, level)| (at, self.design.factors[at].baseline, level));
        self.full.interaction(a, b)
    }

    /// Share of the variation that a factor explains, in percent; where pairs are not told from it, of those that have it alone. `None` where not all of its
    /// levels can be compared.
    pub(super) fn share_percent(&self, factor: usize) -> Option<f64> {
        let levels = self.design.factors[factor].levels.len();
        let is_whole = |own: &&Explained| own.part.freedom + 1 == levels;
        let own = self.anova.terms.get(factor).filter(is_whole);
        let own = own.or_else(|| self.anova_additive.terms.get(factor).filter(is_whole));
        own?.share.map(|share| 100.0 * share)
    }

    /// Share of the variation that a pair explains beyond its factors, in percent.
    pub(super) fn share_percent_of_pair(&self, pair: usize) -> Option<f64> {
        let own = self.anova.terms.get(self.design.factors.len() + pair)?;
        own.share.map(|share| 100.0 * share)
    }

    /// Chance of so much left over by factors that do not act together, if they did not; `None` where the runs do not tell.
    pub(super) fn lack_of_fit_p(&self) -> Option<f64> {
        self.anova_additive.lack_of_fit.p
    }

    /// Levels that can be compared with the baseline, and the baseline: ascending where they are numbers.
    pub(super) fn comparable(&self, factor: usize) -> Vec<usize> {
        let of = &self.design.factors[factor];
        let is_told = |&level: &usize| {
            level == of.baseline || self.additive.difference(factor, of.baseline, level).is_some()
        };
        (0..of.levels.len()).filter(is_told).collect()
    }

    /// The cell of the baselines, where it is lacking and would make all levels of all factors comparable.
    pub(super) fn lacking(&self) -> Option<Vec<(String, String)>> {
        let is_there = self.cells.iter().any(|cell| cell.levels == self.baselines);
        if self.is_too_large() || is_there {
            return None;
        }
        let mut cells = self.cells.clone();
        cells.push(Cell { levels: self.baselines.clone(), values: vec![0.0] });
        let factors = &self.design.factors;
        let counts: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
        let alone: Vec<Term> = (0..counts.len()).map(|at| vec![at]).collect();
        let model = Model::new(&cells, &counts, &alone);
        let is_told = |at: usize| {
            let base = self.baselines[at];
            (0..counts[at]).all(|to| to == base || model.difference(at, base, to).is_some())
        };
        let named = factors.iter().zip(&self.baselines);
        (0..counts.len())
            .all(is_told)
            .then(|| named.map(|(of, &at)| (of.name.clone(), of.levels[at].clone())).collect())
    }

    /// Whether factors have too many levels to test one by one.
    pub(super) fn is_too_large(&self) -> bool {
        self.anova_additive.terms.len() < self.design.factors.len()
    }

    /// Whether neither level is acted on, so that runs of both are the same.
    pub(super) fn is_ignored(&self, factor: usize, levels: [usize; 2]) -> bool {
        let name = &self.design.factors[factor].name;
        let of = |at: usize| levels.contains(&self.cells[at].levels[factor]);
        let cells = (0..self.cells.len()).filter(|&at| of(at));
        cells.flat_map(|at| &self.runs[at]).all(|run| run.ignored.contains_key(name))
    }

    /// The deviation of repeated runs; `None` where none were repeated.
    pub(super) fn noise(&self) -> Option<f64> {
        self.anova.pure.mean_square().map(f64::sqrt)
    }

    /// A difference that matters to nobody, in percent or points; of a percentage below 20 a tenth of it, as two points of 5 % are no small matter.
    pub(super) fn margin(&self) -> f64 {
        let means: Vec<f64> = self.cells.iter().filter_map(|cell| mean(&cell.values)).collect();
        let largest = 100.0 * MARGIN;
        match self.scale {
            ResponseScale::Logarithm => largest,
            ResponseScale::Percent => {
                mean(&means).map_or(largest, |of| largest.min(0.1 * of.abs()))
            }
        }
    }

    /// The mean of all cells that have two levels; `None` where others have other combinations of the rest.
    pub(super) fn middle(&self, a: (usize, usize), b: (usize, usize)) -> Option<f64> {
        let all: usize = self.design.factors.iter().map(|factor| factor.levels.len()).product();
        let own =
            self.cells.iter().filter(|cell| cell.levels[a.0] == a.1 && cell.levels[b.0] == b.1);
        let means = own.map(|cell| mean(&cell.values)).collect::<Option<Vec<f64>>>()?;
        if self.cells.len() == all { mean(&means) } else { None }
    }

    /// Runs that a combination of cells rests on, of those with a level.
    pub(super) fn runs_of(&self, combination: &Combination, at: (usize, usize)) -> usize {
        let cells = combination.cells().filter(|&cell| self.cells[cell].levels[at.0] == at.1);
        cells.map(|cell| self.cells[cell].values.len()).sum()
    }

    /// An estimate as people count it; without ends where it has no interval.
    pub(super) fn effect(
        &self,
        of: Quantity,
        estimate: f64,
        difference: Option<&Difference>,
        n: usize,
    ) -> Effect {
        let interval = difference.and_then(|difference| difference.interval(CONFIDENCE));
        let (unit, interval) = match self.scale {
            ResponseScale::Logarithm => (EffectUnit::Ratio, interval.map(|one| one.exp())),
            ResponseScale::Percent => (EffectUnit::Points, interval),
        };
        Effect::new(of, unit, self.scale.back(estimate), interval, n)
    }

    /// A level against another.
    pub(super) fn quantity(&self, factor: usize, level: usize, base: usize) -> Quantity {
        let levels = &self.design.factors[factor].levels;
        Quantity::Level { level: levels[level].clone(), base: levels[base].clone() }
    }

    /// A finding that rests on `cells`.
    pub(super) fn finding(
        &self,
        kind: Kind,
        factors: &[usize],
        subject: Subject,
        cells: impl IntoIterator<Item = usize>,
    ) -> Finding {
        let cells: BTreeSet<usize> = cells.into_iter().collect();
        let runs: Vec<&Observation> =
            cells.into_iter().flat_map(|cell| self.runs[cell].iter().copied()).collect();
        let doubts: BTreeSet<&str> = runs.iter().flat_map(|run| warnings(run)).collect();
        let doubts = doubts.into_iter().filter(|name| touches(name, self.response.id.name()));
        let names = factors.iter().map(|&factor| self.design.factors[factor].name.clone());
        Finding {
            response: Some(self.response.id.name()),
            factors: names.collect(),
            caveats: doubts.map(|name| Caveat::RunsDoubted(name.into())).collect(),
            magnitude: 0.0,
            ..about(kind, &self.design.workload, subject, &runs)
        }
    }

    /// A change towards what is better is positive.
    pub(super) fn gain(&self, difference: f64) -> f64 {
        if self.response.better == Better::Higher { difference } else { -difference }
    }

    /// How far from nothing a difference is, so that points and ratios can be ordered.
    pub(super) fn magnitude(&self, difference: f64) -> f64 {
        match self.scale {
            ResponseScale::Logarithm => difference.abs(),
            ResponseScale::Percent => difference.abs() / 100.0,
        }
    }
}

/// The level that others of a factor are compared with: of the largest set of levels that can be compared with each other, the baseline, else the one that
/// most cells have. `set_of` names the set of each level.
fn reference(set_of: &[usize], cells: &[Cell], at: usize, baseline: usize) -> usize {
    // Of each level, cells and runs.
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
    // The last of equals is the greatest: of sets the baseline's own, else the first, and so of levels.
    let own = set_of[baseline];
    let sets = (0..sizes.len()).rev();
    let largest = sets.max_by_key(|&set| (sizes[set], set == own)).unwrap_or(own);
    if largest == own {
        return baseline;
    }
    let levels = (0..set_of.len()).rev().filter(|&level| set_of[level] == largest);
    levels.max_by_key(|&level| weights[level]).unwrap_or(baseline)
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
