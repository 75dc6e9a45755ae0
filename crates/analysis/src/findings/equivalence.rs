//! Finds factors without a relevant effect, and levels above which greater levels bring no gain.
//!
//! Tests of equivalence show both. The absence of a significant difference shows neither.

use super::design_matrix::DesignMatrix;
use super::main_effects::{LevelTest, cells_used, is_significant};
use crate::estimate::ResponseScale;
use crate::finding::{EffectSize, Finding, FindingKind, Quantity, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::stats::{Combination, Difference, Interval, equivalence_p};

/// The equivalence margin on the scale of the response: the smallest and the largest irrelevant difference.
fn margin(matrix: &DesignMatrix) -> (f64, f64) {
    let margin = matrix.margin();
    match matrix.scale {
        ResponseScale::Logarithm => ((1.0 - margin / 100.0).ln(), (1.0 + margin / 100.0).ln()),
        ResponseScale::Percent => (-margin, margin),
    }
}

/// Significance level of one claim. It is divided by the number of factors, as there is one claim per factor (Bonferroni). It is also halved,
/// which requires the 95 % instead of the 90 % interval to be within the margin.
fn alpha(matrix: &DesignMatrix) -> f64 {
    ALPHA / 2.0 / matrix.design.factors.len() as f64
}

/// The finding that all levels of a factor are equivalent to the baseline. Each level must be shown to be equivalent (intersection-union
/// test, Berger, Technometrics 24, 1982).
pub(super) fn no_effect(
    matrix: &DesignMatrix,
    factor: usize,
    tests: &[&LevelTest],
) -> Option<Finding> {
    let (low, high) = margin(matrix);
    let level_p = tests.iter().map(|test| equivalence_p(&test.difference?, low, high));
    let p = level_p.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)?;
    if p >= alpha(matrix) {
        return None;
    }
    let differences: Vec<Difference> = tests.iter().filter_map(|test| test.difference).collect();
    let n = tests.iter().map(|test| test.n(matrix)).min()?;
    let tested = &matrix.design.factors[factor];
    let quantity = Quantity::OthersAgainst(tested.baseline_level().into());
    let levels = tests.iter().map(|test| tested.levels[test.level].clone()).collect();
    let subject = Subject::Equivalent { levels, margin: matrix.margin() };
    let mut finding = matrix.finding(FindingKind::NoEffect, &[factor], subject, cells_used(tests));
    let effect = largest_with_hull(matrix, quantity, &differences, n)?;
    finding.effects = vec![EffectSize { p: Some(p), ..effect }];
    Some(finding)
}

/// The largest of several differences, with the interval that covers the 95 % intervals of all of them.
fn largest_with_hull(
    matrix: &DesignMatrix,
    quantity: Quantity,
    differences: &[Difference],
    n: usize,
) -> Option<EffectSize> {
    let intervals: Vec<Interval> = differences
        .iter()
        .map(|difference| difference.interval(CONFIDENCE))
        .collect::<Option<_>>()?;
    let low = intervals.iter().map(|interval| interval.low).reduce(f64::min)?;
    let high = intervals.iter().map(|interval| interval.high).reduce(f64::max)?;
    let estimates = differences.iter().map(|difference| difference.estimate);
    let largest = estimates.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let effect = matrix.scale.effect(quantity, largest, None, n);
    Some(EffectSize {
        low: Some(matrix.scale.to_response_unit(low)),
        high: Some(matrix.scale.to_response_unit(high)),
        ..effect
    })
}

/// The finding of the smallest level of a numeric factor above which greater levels improve the response by at most the margin. Levels are
/// tested from the greatest down to the first that fails, so p-values need no correction (fixed sequence, Maurer, Hothorn and Lehmacher
/// 1995).
pub(super) fn no_gain(
    matrix: &DesignMatrix,
    factor: usize,
    tests: &[&LevelTest],
) -> Option<Finding> {
    let tested = &matrix.design.factors[factor];
    tested.numbers.as_ref()?;
    let levels = matrix.comparable_levels(factor);
    if levels.len() < 3 {
        return None;
    }
    let mut smallest = None;
    for index in (0..levels.len() - 1).rev() {
        match gainless_contrasts(matrix, factor, &levels[index..]) {
            Some(contrasts) => smallest = Some((index, contrasts)),
            None => break,
        }
    }
    let (index, contrasts) = smallest?;
    // If the factor only makes the response worse, its effect is reported instead.
    if index == 0 && tests.iter().any(|test| is_significant(test.p)) {
        return None;
    }
    let differences: Vec<Difference> =
        contrasts.iter().map(|(_, difference)| *difference).collect();
    let run_counts = contrasts.iter().flat_map(|(combination, _)| {
        levels[index..].iter().map(|&level| matrix.run_count(combination, (factor, level)))
    });
    let n = run_counts.filter(|&runs| runs > 0).min()?;
    let level = tested.levels[levels[index]].clone();
    let effect = largest_with_hull(matrix, Quantity::MoreThan(level.clone()), &differences, n)?;
    let subject = Subject::NoGain { level, margin: matrix.margin() };
    let cells = contrasts.iter().flat_map(|(combination, _)| combination.cells());
    let mut finding = matrix.finding(FindingKind::NoEffect, &[factor], subject, cells);
    finding.effects = vec![effect];
    finding.magnitude = 1.0;
    Some(finding)
}

/// Compares all levels with the first level. Returns the contrasts, or `None` if a level may be more than the margin better.
fn gainless_contrasts(
    matrix: &DesignMatrix,
    factor: usize,
    levels: &[usize],
) -> Option<Vec<(Combination, Difference)>> {
    let gain_max = margin(matrix).1;
    let mut contrasts = Vec::new();
    for &other in &levels[1..] {
        let combination = matrix.difference(factor, levels[0], other)?.combination;
        let difference = combination.welch_difference(&matrix.cells)?;
        let loss = Difference { estimate: -matrix.gain(difference.estimate), ..difference };
        if alpha(matrix) <= loss.p_above(-gain_max)? {
            return None;
        }
        contrasts.push((combination, difference));
    }
    Some(contrasts)
}
