//! Factors that make no difference that matters, and levels beyond which more gains nothing: shown by tests of equivalence, never by a difference that was not found.

use super::design_matrix::DesignMatrix;
use super::main_effects::{LevelTest, cells_of, is_found};
use crate::estimate::ResponseScale;
use crate::finding::{EffectSize, Finding, FindingKind, Quantity, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::stats::{Combination, Difference, equivalence_p};

/// Least and greatest difference that matters to nobody, on the scale of the matrix.
fn margin(matrix: &DesignMatrix) -> (f64, f64) {
    let margin = matrix.margin();
    match matrix.scale {
        ResponseScale::Logarithm => ((1.0 - margin / 100.0).ln(), (1.0 + margin / 100.0).ln()),
        ResponseScale::Percent => (-margin, margin),
    }
}

/// One claim a factor, so each at the chance divided by their number (Bonferroni); and half of it on either side, so that the 95 % interval lies within the margin.
fn alpha(matrix: &DesignMatrix) -> f64 {
    ALPHA / 2.0 / matrix.design.factors.len() as f64
}

/// A factor all of whose levels are the same as the baseline: one question of several parts (intersection-union, Berger, Technometrics 24, 1982).
pub(super) fn no_effect(
    matrix: &DesignMatrix,
    factor: usize,
    own: &[&LevelTest],
) -> Option<Finding> {
    let (low, high) = margin(matrix);
    let p = own.iter().map(|one| equivalence_p(&one.difference?, low, high));
    let p = p.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)?;
    if p >= alpha(matrix) {
        return None;
    }
    let differences: Vec<Difference> = own.iter().filter_map(|one| one.difference).collect();
    let n = own.iter().map(|one| one.n(matrix)).min()?;
    let of = &matrix.design.factors[factor];
    let quantity = Quantity::OthersAgainst(of.baseline_level().into());
    let levels = own.iter().map(|one| of.levels[one.level].clone()).collect();
    let subject = Subject::Equivalent { levels, margin: matrix.margin() };
    let mut finding = matrix.finding(FindingKind::NoEffect, &[factor], subject, cells_of(own));
    finding.effects = vec![EffectSize { p: Some(p), ..hull(matrix, quantity, &differences, n)? }];
    Some(finding)
}

/// From the least to the greatest end of 95 % intervals.
fn hull(
    matrix: &DesignMatrix,
    of: Quantity,
    differences: &[Difference],
    n: usize,
) -> Option<EffectSize> {
    let intervals = differences.iter().map(|one| one.interval(CONFIDENCE));
    let intervals = intervals.collect::<Option<Vec<_>>>()?;
    let low = intervals.iter().map(|one| one.low).reduce(f64::min)?;
    let high = intervals.iter().map(|one| one.high).reduce(f64::max)?;
    let farthest = differences.iter().map(|one| one.estimate);
    let farthest = farthest.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let (low, high) = (Some(matrix.scale.back(low)), Some(matrix.scale.back(high)));
    Some(EffectSize { low, high, ..matrix.scale.effect(of, farthest, None, n) })
}

/// The least level of a factor that is a number beyond which no other is better by what matters. Levels are tried from the greatest down until one is
/// not, so that nothing is tried twice (a fixed sequence, Maurer, Hothorn and Lehmacher 1995).
pub(super) fn no_gain(matrix: &DesignMatrix, factor: usize, own: &[&LevelTest]) -> Option<Finding> {
    let of = &matrix.design.factors[factor];
    of.numbers.as_ref()?;
    let levels = matrix.comparable(factor);
    if levels.len() < 3 {
        return None;
    }
    let mut found = None;
    for at in (0..levels.len() - 1).rev() {
        match gains_nothing(matrix, factor, &levels[at..]) {
            Some(beyond) => found = Some((at, beyond)),
            None => break,
        }
    }
    let (at, beyond) = found?;
    // Of a factor that only makes things worse, that is what is told.
    if at == 0 && own.iter().any(|one| is_found(one.p)) {
        return None;
    }
    let differences: Vec<Difference> = beyond.iter().map(|one| one.1).collect();
    let runs = beyond.iter().flat_map(|(combination, _)| {
        levels[at..].iter().map(|&level| matrix.runs_of(combination, (factor, level)))
    });
    let n = runs.filter(|&n| n > 0).min()?;
    let level = of.levels[levels[at]].clone();
    let effect = hull(matrix, Quantity::MoreThan(level.clone()), &differences, n)?;
    let subject = Subject::NoGain { level, margin: matrix.margin() };
    let cells = beyond.iter().flat_map(|(combination, _)| combination.cells());
    let mut finding = matrix.finding(FindingKind::NoEffect, &[factor], subject, cells);
    finding.effects = vec![effect];
    finding.magnitude = 1.0;
    Some(finding)
}

/// All but the first level against it, where none is better by what matters.
fn gains_nothing(
    matrix: &DesignMatrix,
    factor: usize,
    levels: &[usize],
) -> Option<Vec<(Combination, Difference)>> {
    let gain_max = margin(matrix).1;
    let mut all = Vec::new();
    for &other in &levels[1..] {
        let combination = matrix.difference(factor, levels[0], other)?.combination;
        let difference = combination.welch(&matrix.cells)?;
        let loss = Difference { estimate: -matrix.gain(difference.estimate), ..difference };
        if alpha(matrix) <= loss.p_above(-gain_max)? {
            return None;
        }
        all.push((combination, difference));
    }
    Some(all)
}
