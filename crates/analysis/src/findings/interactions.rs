//! Tests interactions: whether the effect of one factor depends on the level of another.
//!
//! Each cell has a separate variance (Welch, Satterthwaite).

use super::design_matrix::DesignMatrix;
use super::inconclusive::OpenPoint;
use super::main_effects::is_significant;
use crate::finding::{Finding, FindingKind, Interaction, OpenQuestion, Quantity, Subject};
use feedrate_measure::stats::{Cell, Combination, Difference};
use std::collections::BTreeSet;

/// The test of a level of one factor together with a level of another, against the baselines of both.
pub(super) struct PairTest {
    /// Index among the pairs of the matrix.
    pair: usize,
    levels: [usize; 2],
    /// `None` if the design does not determine the interaction.
    combination: Option<Combination>,
    difference: Option<Difference>,
    pub(super) p: Option<f64>,
}

impl PairTest {
    fn size(&self) -> f64 {
        self.difference.map_or(0.0, |difference| difference.estimate.abs())
    }
}

/// Tests all pairs of levels of all pairs of factors.
pub(super) fn test_pairs(matrix: &DesignMatrix) -> Vec<PairTest> {
    let mut tests = Vec::new();
    for (pair, &(a, b)) in matrix.pairs.iter().enumerate() {
        for level_a in matrix.design.factors[a].non_baseline_levels() {
            for level_b in matrix.design.factors[b].non_baseline_levels() {
                let combination = matrix.interaction((a, level_a), (b, level_b));
                let difference = combination
                    .as_ref()
                    .and_then(|combination| combination.welch_difference(&matrix.cells));
                let p = difference.and_then(|difference| difference.p());
                let levels = [level_a, level_b];
                tests.push(PairTest { pair, levels, combination, difference, p });
            }
        }
    }
    tests
}

/// The factors that interact with `factor`.
pub(super) fn interacting_factors(
    matrix: &DesignMatrix,
    tests: &[PairTest],
    factor: usize,
) -> BTreeSet<usize> {
    let significant = tests.iter().filter(|test| is_significant(test.p));
    significant
        .map(|test| matrix.pairs[test.pair])
        .filter(|&(a, b)| a == factor || b == factor)
        .map(|(a, b)| if a == factor { b } else { a })
        .collect()
}

/// Returns one finding for each pair of factors that interact. `test_count` is the number of tests for which p-values are corrected.
pub(super) fn findings(
    matrix: &DesignMatrix,
    tests: &[PairTest],
    test_count: usize,
) -> Vec<Finding> {
    let pairs = 0..matrix.pairs.len();
    pairs.filter_map(|pair| pair_finding(matrix, tests, pair, test_count)).collect()
}

fn pair_finding(
    matrix: &DesignMatrix,
    tests: &[PairTest],
    pair: usize,
    test_count: usize,
) -> Option<Finding> {
    let significant = tests.iter().filter(|test| test.pair == pair && is_significant(test.p));
    let largest = significant.max_by(|x, y| x.size().total_cmp(&y.size()))?;
    let combination = largest.combination.as_ref()?;
    let difference = largest.difference?;
    let (a, b) = matrix.pairs[pair];
    let tested = [(a, largest.levels[0]), (b, largest.levels[1])];
    let factors = &matrix.design.factors;
    let levels = tested.map(|(factor, level)| factors[factor].levels[level].clone());
    let bases = [a, b].map(|factor| factors[factor].baseline_level().to_string());
    let quantity = Quantity::Together { level: levels[1].clone(), with: levels[0].clone() };
    let changes = conditional_effects(matrix, tested);
    let subject = Subject::Interaction(Interaction { levels, bases, changes });
    let n = smaller_side(combination, &matrix.cells);
    let effect = matrix.scale.effect(quantity, difference.estimate, Some(&difference), n);
    let mut tested_effect = effect.with_p(largest.p, test_count);
    tested_effect.share_percent = matrix.pair_share_percent(pair);
    let mut finding = matrix.finding(FindingKind::Effect, &[a, b], subject, combination.cells());
    finding.effects = vec![tested_effect];
    finding.magnitude = matrix.scale.magnitude(difference.estimate);
    Some(finding)
}

/// The number of runs on the smaller side of a difference of means.
fn smaller_side(combination: &Combination, cells: &[Cell]) -> usize {
    let side = |sign: f64| -> usize {
        let cells_of_side =
            combination.cells().filter(|&cell| 0.0 < sign * combination.weights[cell]);
        cells_of_side.map(|cell| cells[cell].values.len()).sum()
    };
    side(1.0).min(side(-1.0))
}

/// The effect of the second factor at the level and at the baseline of the first factor; `None` if not all combinations of other factors
/// were run.
fn conditional_effects(matrix: &DesignMatrix, tested: [(usize, usize); 2]) -> Option<[f64; 2]> {
    let [(a, level_a), (b, level_b)] = tested;
    let base_b = matrix.design.factors[b].baseline;
    let effect_at = |level: usize| {
        let changed = matrix.mean_at((a, level), (b, level_b))?;
        let unchanged = matrix.mean_at((a, level), (b, base_b))?;
        Some(matrix.scale.to_response_unit(changed - unchanged))
    };
    Some([effect_at(level_a)?, effect_at(matrix.design.factors[a].baseline)?])
}

/// Maximum number of pairs that are named individually.
const PAIRS_NAMED_MAX: usize = 3;

/// The pairs of factors for which an interaction cannot be tested, by reason.
pub(super) fn open_points(matrix: &DesignMatrix, tests: &[PairTest]) -> Vec<OpenPoint> {
    let mut aliased = Vec::new();
    let mut unreplicated = Vec::new();
    for (pair, &(a, b)) in matrix.pairs.iter().enumerate() {
        let names = [a, b].map(|factor| matrix.design.factors[factor].name.clone());
        let pair_tests = || tests.iter().filter(|test| test.pair == pair);
        if pair_tests().any(|test| test.combination.is_none()) {
            aliased.push(OpenQuestion::Pair(names));
        } else if pair_tests().any(|test| test.difference.is_none()) {
            unreplicated.push(OpenQuestion::Pair(names));
        }
    }
    let mut open: Vec<OpenPoint> =
        summarise_pairs(aliased).into_iter().map(OpenPoint::Aliased).collect();
    open.extend(summarise_pairs(unreplicated).into_iter().map(OpenPoint::NoReplicates));
    let dropped = matrix.pairs_dropped;
    if dropped > 0 {
        open.push(OpenPoint::TooManyLevels(OpenQuestion::Pairs(dropped)));
    }
    let factors = matrix.design.factors.len();
    let pairs = factors * factors.saturating_sub(1) / 2;
    let missing = pairs - matrix.pairs.len() - dropped;
    if missing > 0 {
        open.push(OpenPoint::NotCrossed { missing, pairs });
    }
    open
}

/// Returns the pairs if there are few, otherwise one question with their number.
fn summarise_pairs(pairs: Vec<OpenQuestion>) -> Vec<OpenQuestion> {
    if pairs.len() <= PAIRS_NAMED_MAX { pairs } else { vec![OpenQuestion::Pairs(pairs.len())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_side_of_an_interaction_has_the_runs_of_all_its_cells() {
        let check = |weights: &[f64], runs: &[usize], expected| {
            let cells: Vec<Cell> = runs
                .iter()
                .map(|&runs| Cell { levels: Vec::new(), values: vec![1.0; runs] })
                .collect();
            let combination = Combination { weights: weights.to_vec() };
            assert_eq!(smaller_side(&combination, &cells), expected);
        };
        // Three factors of two levels with two replicates.
        let weights = [0.5, 0.5, -0.5, -0.5, -0.5, -0.5, 0.5, 0.5];
        check(&weights, &[2; 8], 8);
        check(&weights, &[2, 2, 2, 2, 2, 1, 2, 2], 7);
        // A cell that is not compared.
        check(&[1.0, -1.0, 0.0], &[3, 4, 1], 3);
    }
}
