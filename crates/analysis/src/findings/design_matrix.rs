//! One response of one design, laid out for its tests: the values of each cell, and what a least-squares fit can tell of them. Tests nothing.

use super::exclusions::doubted;
use super::{MARGIN, UsedRuns, about};
use crate::design::Design;
use crate::estimate::{ResponseScale, scaled};
use crate::finding::{Finding, FindingKind, Quantity, Subject};
use feedrate_measure::metric::{Better, Metric};
use feedrate_measure::stats::{Anova, Cell, Combination, Model, Term, anova, mean};
use feedrate_results::run::Run;
use std::collections::BTreeSet;

/// More levels, and pairs of them, take longer than their tests are worth, one by one.
const COLUMNS_MAX: usize = 200;

/// Weights above 0 of a difference of two means add up to 1, and to a little more where levels were not run equally often together.
const RAISED_MAX: f64 = 1.25;

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
    pub(super) runs: Vec<Vec<&'a Run>>,
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
        let value = |run: usize| scaled(response, group.runs[run].metric(response)?);
        let mut design = group.acted_on(|run| value(run).is_some());
        let (mut cells, mut runs) = (Vec::new(), Vec::new());
        for cell in &design.cells {
            let values = cell.runs.iter().filter_map(|&run| value(run)).collect();
            cells.push(Cell { levels: cell.levels.clone(), values });
            runs.push(cell.runs.iter().map(|&run| group.runs[run]).collect());
        }
        if cells.iter().map(|cell| cell.values.len()).sum::<usize>() < 2 {
            return None;
        }
        let counts: Vec<usize> = design.factors.iter().map(|factor| factor.levels.len()).collect();
        let columns: usize = counts.iter().map(|levels| levels - 1).sum();
        let is_large = COLUMNS_MAX < columns;
        let alone = if is_large { Vec::new() } else { alone(counts.len()) };
        let crossed = crossed(&cells, &counts);
        let of_pairs: usize = crossed.iter().map(|&(a, b)| (counts[a] - 1) * (counts[b] - 1)).sum();
        let (mut pairs, mut pairs_dropped) = (crossed, 0);
        if COLUMNS_MAX < columns + of_pairs {
            pairs_dropped = std::mem::take(&mut pairs).len();
        }
        let mut terms = alone.clone();
        terms.extend(pairs.iter().map(|&(a, b)| vec![a, b]));
        let additive = Model::new(&cells, &counts, &alone);
        let baselines: Vec<usize> = design.factors.iter().map(|factor| factor.baseline).collect();
        for (at, factor) in design.factors.iter_mut().enumerate() {
            factor.baseline = reference(&additive.comparable(at), &cells, at, baselines[at]);
        }
        Some(DesignMatrix {
            response,
            scale: ResponseScale::new(response),
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
        let mut models = [(&self.full, false), (&self.additive, true)].into_iter();
        models.find_map(|(model, is_additive)| {
            let combination = model.difference(factor, from, to)?;
            self.is_told(&combination).then_some(Contrast { combination, is_additive })
        })
    }

    /// Whether a difference is one of two means, which lies between the values that were seen. Percentages have an end on either side, so that what chains of
    /// differences add up to is none of them; rates have none.
    fn is_told(&self, combination: &Combination) -> bool {
        let raised: f64 = combination.weights.iter().filter(|weight| **weight > 0.0).sum();
        self.scale == ResponseScale::Logarithm
            || (raised <= RAISED_MAX && combination.estimate(&self.cells).abs() <= 100.0)
    }

    /// How much more a level does with a level of another factor, each against its base.
    pub(super) fn interaction(&self, a: (usize, usize), b: (usize, usize)) -> Option<Combination> {
        let [a, b] = [a, b].map(|(at, level)| [at, self.design.factors[at].baseline, level]);
        self.full.interaction(a, b)
    }

    /// Share of the variation that a factor explains, in percent; where pairs are not told from it, of those that have it alone. `None` where not all of its
    /// levels can be compared.
    pub(super) fn share_percent(&self, factor: usize) -> Option<f64> {
        let levels = self.design.factors[factor].levels.len();
        let mut own = [&self.anova, &self.anova_additive].into_iter();
        let own = own
            .find_map(|anova| anova.terms.get(factor).filter(|own| own.part.freedom + 1 == levels));
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
        let told = (0..of.levels.len()).filter(|&level| {
            level == of.baseline || self.additive.difference(factor, of.baseline, level).is_some()
        });
        told.collect()
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
        let model = Model::new(&cells, &counts, &alone(counts.len()));
        let mut lacking = Vec::new();
        for (at, (factor, &base)) in factors.iter().zip(&self.baselines).enumerate() {
            if (0..counts[at]).any(|to| to != base && model.difference(at, base, to).is_none()) {
                return None;
            }
            lacking.push((factor.name.clone(), factor.levels[base].clone()));
        }
        Some(lacking)
    }

    /// Whether factors have too many levels to test one by one.
    pub(super) fn is_too_large(&self) -> bool {
        self.anova_additive.terms.len() < self.design.factors.len()
    }

    /// Whether neither level is acted on, so that runs of both are the same.
    pub(super) fn is_ignored(&self, factor: usize, levels: [usize; 2]) -> bool {
        let name = &self.design.factors[factor].name;
        let cells = self.cells.iter().zip(&self.runs);
        let own = cells.filter(|(cell, _)| levels.contains(&cell.levels[factor]));
        own.flat_map(|(_, runs)| runs).all(|run| run.ignores(name).is_some())
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

    /// A level against another.
    pub(super) fn quantity(&self, factor: usize, level: usize, base: usize) -> Quantity {
        let levels = &self.design.factors[factor].levels;
        Quantity::Level { level: levels[level].clone(), base: levels[base].clone() }
    }

    /// A finding that rests on `cells`.
    pub(super) fn finding(
        &self,
        kind: FindingKind,
        factors: &[usize],
        subject: Subject,
        cells: impl IntoIterator<Item = usize>,
    ) -> Finding {
        let cells: BTreeSet<usize> = cells.into_iter().collect();
        let runs: Vec<&Run> = cells.into_iter().flat_map(|cell| self.runs[cell].clone()).collect();
        let names = factors.iter().map(|&factor| self.design.factors[factor].name.clone());
        Finding {
            response: Some(self.response.id.name()),
            factors: names.collect(),
            caveats: doubted(&runs, &[self.response]),
            magnitude: 0.0,
            ..about(kind, &self.design.workload, subject, &runs)
        }
    }

    /// A change towards what is better is positive.
    pub(super) fn gain(&self, difference: f64) -> f64 {
        if self.response.better == Better::Higher { difference } else { -difference }
    }
}

/// A term for each factor by itself.
fn alone(factors: usize) -> Vec<Term> {
    (0..factors).map(|at| vec![at]).collect()
}

/// The level that others of a factor are compared with: of the largest set of levels that can be compared with each other, the baseline, else the one that
/// most cells have. `set_of` names the set of each level.
fn reference(set_of: &[usize], cells: &[Cell], at: usize, baseline: usize) -> usize {
    // Cells and runs of a level.
    let weight = |level: usize| {
        let own = || cells.iter().filter(|cell| cell.levels[at] == level);
        (own().count(), own().map(|cell| cell.values.len()).sum::<usize>())
    };
    let levels_of = |set: usize| (0..set_of.len()).filter(move |&level| set_of[level] == set);
    // Levels and runs; of equals the baseline's own, else the first.
    let own = set_of[baseline];
    let size = |set: &usize| {
        let runs: usize = levels_of(*set).map(|level| weight(level).1).sum();
        (levels_of(*set).count(), runs, *set == own)
    };
    let largest = (0..set_of.len()).rev().max_by_key(size).unwrap_or(own);
    if largest == own {
        return baseline;
    }
    // The last of equals is the greatest.
    let mut levels: Vec<usize> = levels_of(largest).collect();
    levels.reverse();
    levels.into_iter().max_by_key(|&level| weight(level)).unwrap_or(baseline)
}

/// Pairs of factors of which all combinations are there; only of these can be told whether they act together.
fn crossed(cells: &[Cell], counts: &[usize]) -> Vec<(usize, usize)> {
    let pairs = (0..counts.len()).flat_map(|a| (a + 1..counts.len()).map(move |b| (a, b)));
    let crossed = pairs.filter(|&(a, b)| {
        let seen: BTreeSet<(usize, usize)> =
            cells.iter().map(|cell| (cell.levels[a], cell.levels[b])).collect();
        seen.len() == counts[a] * counts[b]
    });
    crossed.collect()
}
