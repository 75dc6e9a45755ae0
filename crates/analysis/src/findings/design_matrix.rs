//! One response of one design, prepared for its tests: the values of each cell and the models fitted to them.
//!
//! The modules of the findings contain the tests.

use super::exclusions::doubt_caveats;
use super::{MARGIN, UsedRuns, finding_about};
use crate::design::{Design, Factor};
use crate::estimate::{ResponseScale, scaled};
use crate::finding::{Finding, FindingKind, Quantity, Subject};
use feedrate_measure::metric::{Better, Metric};
use feedrate_measure::stats::{Anova, Cell, Combination, LevelStep, Model, Term, anova, mean};
use feedrate_results::run::Run;
use std::collections::BTreeSet;

/// Maximum number of model columns. Testing more levels and pairs of levels individually takes too long.
const COLUMNS_MAX: usize = 200;

/// Maximum sum of the positive weights of a difference. The sum is 1 for a difference of two means, and slightly larger if levels were not
/// combined equally often.
const POSITIVE_WEIGHTS_MAX: f64 = 1.25;

/// The values of a response by cell, with the models fitted to them. Rates and durations are stored as logarithms, see
/// [`ResponseScale`].
pub(super) struct DesignMatrix<'a> {
    pub(super) response: &'static Metric,
    pub(super) scale: ResponseScale,
    /// The design of the runs that have the response. The baseline of each factor can be compared with other levels.
    pub(super) design: Design,
    /// The baselines of the original design.
    baselines: Vec<usize>,
    /// The cells in the order of the design.
    pub(super) cells: Vec<Cell>,
    /// The runs of each cell in the order of its values.
    pub(super) runs: Vec<Vec<&'a Run>>,
    /// Pairs of factors whose combinations of levels were all run.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Number of such pairs that are not tested because there are too many levels.
    pub(super) pairs_dropped: usize,
    /// Model with factors and pairs.
    full: Model,
    /// Model with factors alone.
    additive: Model,
    /// Analysis of variance. Terms of single factors precede terms of pairs.
    anova: Anova,
    anova_additive: Anova,
}

/// A comparison of two levels as a combination of cells.
pub(super) struct Contrast {
    pub(super) combination: Combination,
    /// Whether the contrast assumes that factors do not interact.
    pub(super) is_additive: bool,
}

impl<'a> DesignMatrix<'a> {
    /// Prepares a response; `None` if fewer than two runs have it.
    pub(super) fn new(group: &UsedRuns<'a>, response: &'static Metric) -> Option<Self> {
        let value = |run: usize| scaled(response, group.runs[run].metric(response)?);
        let mut design = group.effective_design(|run| value(run).is_some());
        let mut cells = Vec::new();
        let mut runs = Vec::new();
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
        let factor_terms =
            if COLUMNS_MAX < columns { Vec::new() } else { single_factor_terms(counts.len()) };
        let mut pairs = crossed_pairs(&cells, &counts);
        let pair_columns: usize =
            pairs.iter().map(|&(a, b)| (counts[a] - 1) * (counts[b] - 1)).sum();
        let mut pairs_dropped = 0;
        if COLUMNS_MAX < columns + pair_columns {
            pairs_dropped = std::mem::take(&mut pairs).len();
        }
        let mut terms = factor_terms.clone();
        terms.extend(pairs.iter().map(|&(a, b)| vec![a, b]));
        let additive = Model::new(&cells, &counts, &factor_terms);
        let baselines: Vec<usize> = design.factors.iter().map(|factor| factor.baseline).collect();
        for (index, factor) in design.factors.iter_mut().enumerate() {
            let set_of_level = additive.comparable_sets(index);
            factor.baseline = reference_level(&set_of_level, &cells, index, baselines[index]);
        }
        Some(DesignMatrix {
            response,
            scale: ResponseScale::new(response),
            full: Model::new(&cells, &counts, &terms),
            anova: anova(&cells, &counts, &terms),
            anova_additive: anova(&cells, &counts, &factor_terms),
            design,
            baselines,
            cells,
            runs,
            pairs,
            pairs_dropped,
            additive,
        })
    }

    /// The contrast of level `to` against level `from`; `None` if the design does not determine it.
    pub(super) fn difference(&self, factor: usize, from: usize, to: usize) -> Option<Contrast> {
        let mut models = [(&self.full, false), (&self.additive, true)].into_iter();
        models.find_map(|(model, is_additive)| {
            let combination = model.difference(factor, from, to)?;
            self.is_plausible(&combination).then_some(Contrast { combination, is_additive })
        })
    }

    /// Whether a contrast is approximately a difference of two means and is possible. A sum of many differences of percentages can exceed
    /// 100 points; rates have no limit.
    fn is_plausible(&self, combination: &Combination) -> bool {
        let positive: f64 = combination.weights.iter().filter(|weight| **weight > 0.0).sum();
        self.scale == ResponseScale::Logarithm
            || (positive <= POSITIVE_WEIGHTS_MAX
                && combination.estimate(&self.cells).abs() <= 100.0)
    }

    /// The interaction of two levels, each given as factor and level and compared with the baseline of its factor.
    pub(super) fn interaction(&self, a: (usize, usize), b: (usize, usize)) -> Option<Combination> {
        let from_baseline = |(factor, to): (usize, usize)| {
            let from = self.design.factors[factor].baseline;
            LevelStep { factor, from, to }
        };
        self.full.interaction(from_baseline(a), from_baseline(b))
    }

    /// The share of the variation that a factor explains, in percent. If pairs cannot be separated from the factor, the model without pairs
    /// is used. `None` if not all levels can be compared.
    pub(super) fn share_percent(&self, factor: usize) -> Option<f64> {
        let levels = self.design.factors[factor].levels.len();
        let term = [&self.anova, &self.anova_additive].into_iter().find_map(|anova| {
            anova.terms.get(factor).filter(|term| term.part.freedom + 1 == levels)
        });
        term?.share.map(|share| 100.0 * share)
    }

    /// The share of the variation that a pair explains beyond its factors, in percent.
    pub(super) fn pair_share_percent(&self, pair: usize) -> Option<f64> {
        let term = self.anova.terms.get(self.design.factors.len() + pair)?;
        term.share.map(|share| 100.0 * share)
    }

    /// The p-value of the lack of fit of the model without interactions; `None` if the runs do not determine it.
    pub(super) fn lack_of_fit_p(&self) -> Option<f64> {
        self.anova_additive.lack_of_fit.p
    }

    /// The baseline and the levels that can be compared with it, in the order of the levels.
    pub(super) fn comparable_levels(&self, factor: usize) -> Vec<usize> {
        let Factor { levels, baseline, .. } = &self.design.factors[factor];
        let is_comparable = |level: usize| {
            level == *baseline || self.additive.difference(factor, *baseline, level).is_some()
        };
        (0..levels.len()).filter(|&level| is_comparable(level)).collect()
    }

    /// The cell of all baselines, as names of factors and levels, if it was not run and would make all levels of all factors comparable.
    pub(super) fn missing_baseline_cell(&self) -> Option<Vec<(String, String)>> {
        let was_run = self.cells.iter().any(|cell| cell.levels == self.baselines);
        if self.is_too_large() || was_run {
            return None;
        }
        let mut cells = self.cells.clone();
        cells.push(Cell { levels: self.baselines.clone(), values: vec![0.0] });
        let factors = &self.design.factors;
        let counts: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
        let model = Model::new(&cells, &counts, &single_factor_terms(counts.len()));
        let mut cell = Vec::new();
        for (index, (factor, &base)) in factors.iter().zip(&self.baselines).enumerate() {
            let mut others = (0..counts[index]).filter(|&level| level != base);
            if others.any(|level| model.difference(index, base, level).is_none()) {
                return None;
            }
            cell.push((factor.name.clone(), factor.levels[base].clone()));
        }
        Some(cell)
    }

    /// Whether factors have too many levels to test them individually.
    pub(super) fn is_too_large(&self) -> bool {
        self.anova_additive.terms.len() < self.design.factors.len()
    }

    /// Whether the runs at both levels ignore the factor, which makes them replicates.
    pub(super) fn is_ignored(&self, factor: usize, levels: [usize; 2]) -> bool {
        let name = &self.design.factors[factor].name;
        let cells = self.cells.iter().zip(&self.runs);
        cells
            .filter(|(cell, _)| levels.contains(&cell.levels[factor]))
            .flat_map(|(_, runs)| runs)
            .all(|run| run.ignored_reason(name).is_some())
    }

    /// The standard deviation of repeated runs; `None` if no cell was repeated.
    pub(super) fn noise(&self) -> Option<f64> {
        self.anova.pure.mean_square().map(f64::sqrt)
    }

    /// The equivalence margin in percent or points. If percentages average less than 20, it is a tenth of the mean, because two points
    /// of 5 % are not negligible.
    pub(super) fn margin(&self) -> f64 {
        let means: Vec<f64> = self.cells.iter().filter_map(|cell| mean(&cell.values)).collect();
        let largest = 100.0 * MARGIN;
        match self.scale {
            ResponseScale::Logarithm => largest,
            ResponseScale::Percent => {
                mean(&means).map_or(largest, |mean| largest.min(0.1 * mean.abs()))
            }
        }
    }

    /// The mean of all cells with two levels, each given as factor and level; `None` if not all combinations of the other factors
    /// were run.
    pub(super) fn mean_at(&self, a: (usize, usize), b: (usize, usize)) -> Option<f64> {
        let combinations: usize =
            self.design.factors.iter().map(|factor| factor.levels.len()).product();
        let cells =
            self.cells.iter().filter(|cell| cell.levels[a.0] == a.1 && cell.levels[b.0] == b.1);
        let means = cells.map(|cell| mean(&cell.values)).collect::<Option<Vec<f64>>>()?;
        if self.cells.len() == combinations { mean(&means) } else { None }
    }

    /// Number of runs with a level among the cells that a combination uses. `level` is a factor and its level.
    pub(super) fn run_count(&self, combination: &Combination, level: (usize, usize)) -> usize {
        let cells = combination.cells().filter(|&cell| self.cells[cell].levels[level.0] == level.1);
        cells.map(|cell| self.cells[cell].values.len()).sum()
    }

    /// The quantity that compares two levels of a factor.
    pub(super) fn quantity(&self, factor: usize, level: usize, base: usize) -> Quantity {
        let levels = &self.design.factors[factor].levels;
        Quantity::Level { level: levels[level].clone(), base: levels[base].clone() }
    }

    /// A finding that is based on the runs of `cells`.
    pub(super) fn finding(
        &self,
        kind: FindingKind,
        factors: &[usize],
        subject: Subject,
        cells: impl IntoIterator<Item = usize>,
    ) -> Finding {
        let distinct: BTreeSet<usize> = cells.into_iter().collect();
        let runs: Vec<&Run> =
            distinct.into_iter().flat_map(|cell| self.runs[cell].clone()).collect();
        let names = factors.iter().map(|&factor| self.design.factors[factor].name.clone());
        Finding {
            response: Some(self.response.id.name()),
            factors: names.collect(),
            caveats: doubt_caveats(&runs, &[self.response]),
            magnitude: 0.0,
            ..finding_about(kind, &self.design.workload, subject, &runs)
        }
    }

    /// The difference with a positive sign if it is an improvement.
    pub(super) fn gain(&self, difference: f64) -> f64 {
        if self.response.better == Better::Higher { difference } else { -difference }
    }
}

/// A term for each single factor.
fn single_factor_terms(factors: usize) -> Vec<Term> {
    (0..factors).map(|factor| vec![factor]).collect()
}

/// The level with which other levels of a factor are compared: the baseline if it belongs to the largest set of comparable levels,
/// otherwise the level in that set with most cells. `set_of_level` is the number of the set of each level.
fn reference_level(
    set_of_level: &[usize],
    cells: &[Cell],
    factor: usize,
    baseline: usize,
) -> usize {
    // Number of cells and of runs with a level.
    let weight = |level: usize| {
        let cells = || cells.iter().filter(|cell| cell.levels[factor] == level);
        (cells().count(), cells().map(|cell| cell.values.len()).sum::<usize>())
    };
    let levels_in =
        |set: usize| (0..set_of_level.len()).filter(move |&level| set_of_level[level] == set);
    // Sets are ordered by their number of levels, then by their number of runs. Of equal sets, the set with the baseline is preferred, then
    // the first.
    let baseline_set = set_of_level[baseline];
    let size = |set: &usize| {
        let runs: usize = levels_in(*set).map(|level| weight(level).1).sum();
        (levels_in(*set).count(), runs, *set == baseline_set)
    };
    let largest = (0..set_of_level.len()).rev().max_by_key(size).unwrap_or(baseline_set);
    if largest == baseline_set {
        return baseline;
    }
    // `max_by_key` returns the last maximum, but the first level is needed.
    let mut levels: Vec<usize> = levels_in(largest).collect();
    levels.reverse();
    levels.into_iter().max_by_key(|&level| weight(level)).unwrap_or(baseline)
}

/// Pairs of factors whose combinations of levels were all run. An interaction can be tested only for these.
fn crossed_pairs(cells: &[Cell], counts: &[usize]) -> Vec<(usize, usize)> {
    let pairs = (0..counts.len()).flat_map(|a| (a + 1..counts.len()).map(move |b| (a, b)));
    let crossed = pairs.filter(|&(a, b)| {
        let combinations: BTreeSet<(usize, usize)> =
            cells.iter().map(|cell| (cell.levels[a], cell.levels[b])).collect();
        combinations.len() == counts[a] * counts[b]
    });
    crossed.collect()
}
