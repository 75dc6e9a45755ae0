//! Tests main effects: the levels of a factor against its baseline. Each cell has a separate variance (Welch, Satterthwaite).

use super::JudgedResponse;
use super::design_matrix::{Contrast, DesignMatrix};
use super::inconclusive::OpenPoint;
use crate::finding::{
    Caveat, EffectSize, Finding, FindingKind, MainEffect, NamedLevels, OpenQuestion, Subject,
};
use crate::precision::ALPHA;
use feedrate_measure::stats::Difference;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The test of a level against the baseline of its factor.
pub(super) struct LevelTest {
    pub(super) factor: usize,
    pub(super) level: usize,
    /// `None` if the design does not determine the difference.
    pub(super) contrast: Option<Contrast>,
    /// `None` if a cell of the contrast was run only once.
    pub(super) difference: Option<Difference>,
    estimate: f64,
    pub(super) p: Option<f64>,
}

/// The effect of a level of a factor on a response, compared with the baseline of the factor.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelEffect {
    /// Name of the workload, with the part of it whose runs may be compared.
    pub workload: String,
    /// Name of the factor.
    pub factor: String,
    /// Key of the factor.
    pub key: String,
    /// The level.
    pub level: String,
    /// The level with which it is compared.
    pub base: String,
    /// The estimate, averaged over the combinations of the other factors. Without an interval if a run was not repeated.
    pub effect: EffectSize,
    /// Folders of the runs on which it is based.
    pub evidence: Vec<PathBuf>,
}

/// Returns the effects that the design determines, in the order of factors and levels.
pub(super) fn level_effects(matrix: &DesignMatrix) -> Vec<LevelEffect> {
    let tests = if matrix.is_too_large() { Vec::new() } else { test_levels(matrix) };
    let determined = tests.iter().filter(|test| test.contrast.is_some());
    let effect = determined.map(|test| {
        let factor = &matrix.design.factors[test.factor];
        let runs = test.cells().flat_map(|cell| &matrix.runs[cell]);
        LevelEffect {
            workload: matrix.design.workload.clone(),
            factor: factor.name.clone(),
            key: factor.key.clone(),
            level: factor.levels[test.level].clone(),
            base: factor.levels[factor.baseline].clone(),
            effect: test.effect(matrix),
            evidence: runs.map(|run| run.path.clone()).collect(),
        }
    });
    effect.collect()
}

/// Tests all levels of all factors.
pub(super) fn test_levels(matrix: &DesignMatrix) -> Vec<LevelTest> {
    let mut tests = Vec::new();
    for (index, factor) in matrix.design.factors.iter().enumerate() {
        let base = factor.baseline;
        for level in factor.non_baseline_levels() {
            if matrix.is_ignored(index, [base, level]) {
                continue;
            }
            let contrast = matrix.difference(index, base, level);
            let combination = contrast.as_ref().map(|contrast| &contrast.combination);
            let difference =
                combination.and_then(|combination| combination.welch_difference(&matrix.cells));
            tests.push(LevelTest {
                factor: index,
                level,
                estimate: combination
                    .map_or(0.0, |combination| combination.estimate(&matrix.cells)),
                p: difference.and_then(|difference| difference.p()),
                difference,
                contrast,
            });
        }
    }
    tests
}

/// Whether a corrected p-value is small enough for a claim.
pub(super) fn is_significant(p: Option<f64>) -> bool {
    p.is_some_and(|p| p < ALPHA)
}

impl LevelTest {
    /// Whether the difference cannot be tested because a cell of the contrast was run only once.
    fn is_unreplicated(&self) -> bool {
        self.contrast.is_some() && self.difference.is_none()
    }

    /// Number of runs with the level or with the baseline, whichever is smaller.
    pub(super) fn n(&self, matrix: &DesignMatrix) -> usize {
        let Some(contrast) = &self.contrast else { return 0 };
        let base = matrix.design.factors[self.factor].baseline;
        let runs = |level: usize| matrix.run_count(&contrast.combination, (self.factor, level));
        runs(self.level).min(runs(base))
    }

    /// Number of cells with the level that the contrast uses: the combinations of other factors over which it is averaged.
    fn combinations(&self, matrix: &DesignMatrix) -> usize {
        self.cells().filter(|&cell| matrix.cells[cell].levels[self.factor] == self.level).count()
    }

    fn effect(&self, matrix: &DesignMatrix) -> EffectSize {
        let base = matrix.design.factors[self.factor].baseline;
        let quantity = matrix.quantity(self.factor, self.level, base);
        let difference = self.difference.as_ref();
        let effect = matrix.scale.effect(quantity, self.estimate, difference, self.n(matrix));
        EffectSize { p: self.p, ..effect }
    }

    fn cells(&self) -> impl Iterator<Item = usize> {
        self.contrast.iter().flat_map(|contrast| contrast.combination.cells())
    }
}

/// The cells that `tests` use.
pub(super) fn cells_used(tests: &[&LevelTest]) -> Vec<usize> {
    tests.iter().flat_map(|test| test.cells()).collect()
}

/// Adds the findings and open points of one factor.
///
/// `tests` are the tests of the factor, `partners` the factors that interact with it, and `test_count` the number of tests for which
/// p-values are corrected.
pub(super) fn conclude(
    judged: &mut JudgedResponse,
    factor: usize,
    mut tests: Vec<&LevelTest>,
    partners: &BTreeSet<usize>,
    test_count: usize,
) {
    let matrix = judged.matrix;
    tests.sort_by(|a, b| b.estimate.abs().total_cmp(&a.estimate.abs()));
    let tested = &matrix.design.factors[factor];
    let question =
        |levels| OpenQuestion::Factor(NamedLevels { factor: tested.name.clone(), levels });
    if matrix.is_too_large() {
        judged.open.push(OpenPoint::TooManyLevels(question(Vec::new())));
        return;
    }
    let confounded = tests.iter().filter(|test| test.contrast.is_none());
    let confounded_levels: Vec<String> =
        confounded.map(|test| tested.levels[test.level].clone()).collect();
    if !confounded_levels.is_empty() {
        let is_partial = confounded_levels.len() < tests.len();
        let levels = if is_partial { confounded_levels } else { Vec::new() };
        judged.open.push(OpenPoint::Confounded(question(levels)));
    }
    if tests.iter().any(|test| test.is_unreplicated()) {
        judged.open.push(OpenPoint::NoReplicates(question(Vec::new())));
        judged.findings.push(untested_effect(matrix, factor, &tests));
    }
    if tests.iter().any(|test| is_significant(test.p)) {
        judged.findings.push(significant_effect(matrix, factor, &tests, partners, test_count));
    } else if let Some(test) = tests.iter().find(|test| test.difference.is_some()) {
        let widest = test.effect(matrix);
        judged.open.push(OpenPoint::Noise { factor: tested.name.clone(), widest });
    }
}

/// The finding that at least one level of a factor differs significantly from the baseline.
fn significant_effect(
    matrix: &DesignMatrix,
    factor: usize,
    tests: &[&LevelTest],
    partners: &BTreeSet<usize>,
    test_count: usize,
) -> Finding {
    let significant: Vec<&LevelTest> =
        tests.iter().copied().filter(|test| is_significant(test.p)).collect();
    let indistinguishable: BTreeSet<usize> = tests
        .iter()
        .filter(|test| !is_significant(test.p) && test.difference.is_some())
        .map(|test| test.level)
        .collect();
    let factors = &matrix.design.factors;
    let levels = &factors[factor].levels;
    let share_percent = matrix.share_percent(factor);
    let subject = Subject::MainEffect(MainEffect {
        share_percent,
        is_largest: share_percent.is_some_and(|share| is_largest_share(matrix, factor, share)),
        indistinguishable: indistinguishable
            .into_iter()
            .map(|level| levels[level].clone())
            .collect(),
        combinations: significant.iter().map(|test| test.combinations(matrix)).max().unwrap_or(1),
    });
    let cells = cells_used(&significant);
    let mut finding = matrix.finding(FindingKind::Effect, &[factor], subject, cells);
    finding.effects =
        significant.iter().map(|test| test.effect(matrix).with_p(test.p, test_count)).collect();
    finding.effects[0].share_percent = share_percent;
    finding.magnitude = matrix.scale.magnitude(significant[0].estimate);
    let contrasts = || significant.iter().filter_map(|test| test.contrast.as_ref());
    if contrasts().any(|contrast| contrast.is_additive) {
        let lack_of_fit_p = matrix.lack_of_fit_p().filter(|&p| p < ALPHA);
        finding.caveats.push(Caveat::Additive { lack_of_fit_p });
    }
    // In an unbalanced design the shares, each adjusted for the other factors, can add up to more than 100 %.
    let percent: f64 = (0..factors.len()).filter_map(|other| matrix.share_percent(other)).sum();
    if 101.0 <= percent {
        finding.caveats.push(Caveat::SharesOverlap { percent });
    }
    let interactions = partners.iter().map(|&other| Caveat::DependsOn(factors[other].name.clone()));
    finding.caveats.extend(interactions);
    finding
}

/// Whether a share exceeds the share of every other factor, and all levels of all factors are comparable.
fn is_largest_share(matrix: &DesignMatrix, factor: usize, share: f64) -> bool {
    let factors = &matrix.design.factors;
    let others = (0..factors.len()).filter(|&other| other != factor);
    let other_shares: Vec<f64> = others.filter_map(|other| matrix.share_percent(other)).collect();
    let mut indexed = factors.iter().enumerate();
    !other_shares.is_empty()
        && other_shares.iter().all(|other| *other < share)
        && indexed
            .all(|(index, factor)| matrix.comparable_levels(index).len() == factor.levels.len())
}

/// The finding of differences between levels that were not all repeated. It describes the runs and claims nothing.
fn untested_effect(matrix: &DesignMatrix, factor: usize, tests: &[&LevelTest]) -> Finding {
    let unreplicated: Vec<&LevelTest> =
        tests.iter().copied().filter(|test| test.is_unreplicated()).collect();
    let subject = Subject::MainEffect(MainEffect::default());
    let cells = cells_used(&unreplicated);
    let mut finding = matrix.finding(FindingKind::NotTested, &[factor], subject, cells);
    finding.effects = unreplicated.iter().map(|test| test.effect(matrix)).collect();
    finding.magnitude = matrix.scale.magnitude(unreplicated[0].estimate);
    finding.is_supported = false;
    finding.caveats.push(Caveat::NotReplicated);
    finding
}
