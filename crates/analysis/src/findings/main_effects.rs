//! Effects of the levels of a factor against its baseline. Each cell of runs has a variance of its own (Welch, Satterthwaite).

use super::JudgedResponse;
use super::design_matrix::{Contrast, DesignMatrix};
use super::inconclusive::OpenPoint;
use crate::finding::{
    Caveat, EffectSize, Finding, FindingKind, MainEffect, NamedLevels, OpenQuestion, Subject,
};
use crate::precision::ALPHA;
use feedrate_measure::stats::Difference;
use std::collections::BTreeSet;

/// A level against the baseline of its factor.
pub(super) struct LevelTest {
    pub(super) factor: usize,
    pub(super) level: usize,
    /// `None` where the design does not tell it.
    pub(super) contrast: Option<Contrast>,
    /// `None` where a run that it rests on was not repeated.
    pub(super) difference: Option<Difference>,
    estimate: f64,
    pub(super) p: Option<f64>,
}

/// The tests of all levels of all factors.
pub(super) fn tests(matrix: &DesignMatrix) -> Vec<LevelTest> {
    let mut tests = Vec::new();
    for (at, factor) in matrix.design.factors.iter().enumerate() {
        let base = factor.baseline;
        for level in factor.others() {
            if matrix.is_ignored(at, [base, level]) {
                continue;
            }
            let contrast = matrix.difference(at, base, level);
            let of = contrast.as_ref().map(|of| &of.combination);
            let difference = of.and_then(|of| of.welch(&matrix.cells));
            tests.push(LevelTest {
                factor: at,
                level,
                estimate: of.map_or(0.0, |of| of.estimate(&matrix.cells)),
                p: difference.and_then(|difference| difference.p()),
                difference,
                contrast,
            });
        }
    }
    tests
}

/// Whether a corrected chance is small enough for a claim.
pub(super) fn is_found(p: Option<f64>) -> bool {
    p.is_some_and(|p| p < ALPHA)
}

impl LevelTest {
    fn is_single(&self) -> bool {
        self.contrast.is_some() && self.difference.is_none()
    }

    /// Runs of the level or of the baseline, whichever has fewer.
    pub(super) fn n(&self, matrix: &DesignMatrix) -> usize {
        let Some(contrast) = &self.contrast else { return 0 };
        let base = matrix.design.factors[self.factor].baseline;
        let [a, b] = [self.level, base]
            .map(|level| matrix.runs_of(&contrast.combination, (self.factor, level)));
        a.min(b)
    }

    fn effect(&self, matrix: &DesignMatrix) -> EffectSize {
        let base = matrix.design.factors[self.factor].baseline;
        let of = matrix.quantity(self.factor, self.level, base);
        let effect =
            matrix.scale.effect(of, self.estimate, self.difference.as_ref(), self.n(matrix));
        EffectSize { p: self.p, ..effect }
    }

    fn cells(&self) -> impl Iterator<Item = usize> {
        self.contrast.iter().flat_map(|contrast| contrast.combination.cells())
    }
}

/// The cells that tests rest on.
pub(super) fn cells_of(tests: &[&LevelTest]) -> Vec<usize> {
    tests.iter().flat_map(|one| one.cells()).collect()
}

/// Add what is told of a factor by its `own` tests, and what stays open. `partners`: factors that act together with it.
pub(super) fn conclude(
    judged: &mut JudgedResponse,
    factor: usize,
    mut own: Vec<&LevelTest>,
    partners: &BTreeSet<usize>,
    tests: usize,
) {
    let matrix = judged.matrix;
    own.sort_by(|a, b| b.estimate.abs().total_cmp(&a.estimate.abs()));
    let of = &matrix.design.factors[factor];
    let question = |levels| OpenQuestion::Factor(NamedLevels { factor: of.name.clone(), levels });
    if matrix.is_too_large() {
        judged.open.push(OpenPoint::TooManyLevels(question(Vec::new())));
        return;
    }
    let confounded = own.iter().filter(|one| one.contrast.is_none());
    let confounded: Vec<String> = confounded.map(|one| of.levels[one.level].clone()).collect();
    if !confounded.is_empty() {
        let levels = if confounded.len() < own.len() { confounded } else { Vec::new() };
        judged.open.push(OpenPoint::Confounded(question(levels)));
    }
    if own.iter().any(|one| one.is_single()) {
        judged.open.push(OpenPoint::NoReplicates(question(Vec::new())));
        judged.findings.push(not_tested(matrix, factor, &own));
    }
    if own.iter().any(|one| is_found(one.p)) {
        judged.findings.push(effect(matrix, factor, &own, partners, tests));
    } else if let Some(widest) = own.iter().find(|one| one.difference.is_some()) {
        let (factor, widest) = (of.name.clone(), widest.effect(matrix));
        judged.open.push(OpenPoint::Noise { factor, widest });
    }
}

/// A factor of which at least one level was found to differ.
fn effect(
    matrix: &DesignMatrix,
    factor: usize,
    own: &[&LevelTest],
    partners: &BTreeSet<usize>,
    tests: usize,
) -> Finding {
    let found: Vec<&LevelTest> = own.iter().copied().filter(|one| is_found(one.p)).collect();
    let open = own.iter().filter(|one| !is_found(one.p) && one.difference.is_some());
    let indistinguishable: BTreeSet<usize> = open.map(|one| one.level).collect();
    let factors = &matrix.design.factors;
    let levels = &factors[factor].levels;
    let share_percent = matrix.share_percent(factor);
    let subject = Subject::MainEffect(MainEffect {
        share_percent,
        is_largest: share_percent.is_some_and(|share| is_largest(matrix, factor, share)),
        indistinguishable: indistinguishable
            .into_iter()
            .map(|level| levels[level].clone())
            .collect(),
    });
    let mut finding = matrix.finding(FindingKind::Effect, &[factor], subject, cells_of(&found));
    finding.effects = found.iter().map(|one| one.effect(matrix).tested(one.p, tests)).collect();
    finding.effects[0].share_percent = share_percent;
    finding.magnitude = matrix.scale.magnitude(found[0].estimate);
    if found.iter().any(|one| one.contrast.as_ref().is_some_and(|of| of.is_additive)) {
        let lack_of_fit_p = matrix.lack_of_fit_p().filter(|&p| p < ALPHA);
        finding.caveats.push(Caveat::Additive { lack_of_fit_p });
    }
    // Of a design that is not balanced, factors may have more together than there is: each is taken beside the others.
    let percent: f64 = (0..factors.len()).filter_map(|other| matrix.share_percent(other)).sum();
    if 101.0 <= percent {
        finding.caveats.push(Caveat::SharesOverlap { percent });
    }
    let partners = partners.iter().map(|&other| Caveat::DependsOn(factors[other].name.clone()));
    finding.caveats.extend(partners);
    finding
}

/// Whether a share is larger than that of each other factor, all of which are known.
fn is_largest(matrix: &DesignMatrix, factor: usize, share: f64) -> bool {
    let factors = &matrix.design.factors;
    let others = (0..factors.len()).filter(|&other| other != factor);
    let others: Vec<f64> = others.filter_map(|other| matrix.share_percent(other)).collect();
    let mut factors = factors.iter().enumerate();
    !others.is_empty()
        && others.iter().all(|other| *other < share)
        && factors.all(|(at, of)| matrix.comparable(at).len() == of.levels.len())
}

/// Differences between runs of which at least one was not repeated: description, no claim.
fn not_tested(matrix: &DesignMatrix, factor: usize, own: &[&LevelTest]) -> Finding {
    let singles: Vec<&LevelTest> = own.iter().copied().filter(|one| one.is_single()).collect();
    let subject = Subject::MainEffect(MainEffect::default());
    let mut finding =
        matrix.finding(FindingKind::NotTested, &[factor], subject, cells_of(&singles));
    finding.effects = singles.iter().map(|one| one.effect(matrix)).collect();
    finding.magnitude = matrix.scale.magnitude(singles[0].estimate);
    finding.is_supported = false;
    finding.caveats.push(Caveat::NotReplicated);
    finding
}
