//! Factors that act together: how much more a level does with a level of another factor. Each cell of runs has a variance of its own.

use super::design_matrix::DesignMatrix;
use super::inconclusive::OpenPoint;
use super::main_effects::is_found;
use crate::finding::{Finding, FindingKind, Interaction, OpenQuestion, Quantity, Subject};
use feedrate_measure::stats::{Combination, Difference};
use std::collections::BTreeSet;

/// Two levels together, against each alone.
pub(super) struct PairTest {
    /// Place among the pairs of the matrix.
    pair: usize,
    levels: [usize; 2],
    /// `None` where the design does not tell it.
    combination: Option<Combination>,
    difference: Option<Difference>,
    pub(super) p: Option<f64>,
}

impl PairTest {
    fn size(&self) -> f64 {
        self.difference.map_or(0.0, |difference| difference.estimate.abs())
    }
}

/// The tests of all pairs of levels of all pairs of factors.
pub(super) fn tests(matrix: &DesignMatrix) -> Vec<PairTest> {
    let mut tests = Vec::new();
    for (pair, &(a, b)) in matrix.pairs.iter().enumerate() {
        let [of_a, of_b] = [a, b].map(|factor| matrix.design.factors[factor].others());
        for levels in of_a.flat_map(|x| of_b.clone().map(move |y| [x, y])) {
            let combination = matrix.interaction((a, levels[0]), (b, levels[1]));
            let difference = combination.as_ref().and_then(|one| one.welch(&matrix.cells));
            let p = difference.and_then(|difference| difference.p());
            tests.push(PairTest { pair, levels, combination, difference, p });
        }
    }
    tests
}

/// Factors that act together with this one.
pub(super) fn partners(
    matrix: &DesignMatrix,
    tests: &[PairTest],
    factor: usize,
) -> BTreeSet<usize> {
    let found = tests.iter().filter(|one| is_found(one.p)).map(|one| matrix.pairs[one.pair]);
    let pairs = found.filter(|&(a, b)| a == factor || b == factor);
    pairs.map(|(a, b)| if a == factor { b } else { a }).collect()
}

/// Pairs of factors that act together.
pub(super) fn findings(matrix: &DesignMatrix, tests: &[PairTest], number: usize) -> Vec<Finding> {
    let pairs = 0..matrix.pairs.len();
    pairs.filter_map(|pair| finding(matrix, tests, pair, number)).collect()
}

fn finding(
    matrix: &DesignMatrix,
    tests: &[PairTest],
    pair: usize,
    number: usize,
) -> Option<Finding> {
    let found = tests.iter().filter(|one| one.pair == pair && is_found(one.p));
    let largest = found.max_by(|x, y| x.size().total_cmp(&y.size()))?;
    let combination = largest.combination.as_ref()?;
    let difference = largest.difference?;
    let (a, b) = matrix.pairs[pair];
    let places = [(a, largest.levels[0]), (b, largest.levels[1])];
    let factors = &matrix.design.factors;
    let levels = places.map(|(factor, level)| factors[factor].levels[level].clone());
    let bases = [a, b].map(|factor| factors[factor].baseline_level().to_string());
    let of = Quantity::Together { level: levels[1].clone(), with: levels[0].clone() };
    let changes = changes(matrix, places);
    let subject = Subject::Interaction(Interaction { levels, bases, changes });
    let n = combination.cells().map(|cell| matrix.cells[cell].values.len()).min()?;
    let effect = matrix.scale.effect(of, difference.estimate, Some(&difference), n);
    let mut effect = effect.tested(largest.p, number);
    effect.share_percent = matrix.share_percent_of_pair(pair);
    let mut finding = matrix.finding(FindingKind::Effect, &[a, b], subject, combination.cells());
    finding.effects = vec![effect];
    finding.magnitude = matrix.scale.magnitude(difference.estimate);
    Some(finding)
}

/// The change by a step of the second factor with the level of the first and with its base, where the same combinations of other factors have both.
fn changes(matrix: &DesignMatrix, places: [(usize, usize); 2]) -> Option<[f64; 2]> {
    let [(a, level), (b, to)] = places;
    let [base_a, base_b] = [a, b].map(|factor| matrix.design.factors[factor].baseline);
    let [with, without] = [level, base_a].map(|at| {
        let change = matrix.middle((a, at), (b, to))? - matrix.middle((a, at), (b, base_b))?;
        Some(matrix.scale.back(change))
    });
    Some([with?, without?])
}

/// Pairs are named one by one up to here.
const PAIRS_NAMED_MAX: usize = 3;

/// Pairs of factors of which cannot be told whether they act together.
pub(super) fn open(matrix: &DesignMatrix, tests: &[PairTest]) -> Vec<OpenPoint> {
    let (mut aliased, mut single) = (Vec::new(), Vec::new());
    for (pair, &(a, b)) in matrix.pairs.iter().enumerate() {
        let names = [a, b].map(|factor| matrix.design.factors[factor].name.clone());
        let own: Vec<&PairTest> = tests.iter().filter(|one| one.pair == pair).collect();
        if own.iter().any(|one| one.combination.is_none()) {
            aliased.push(OpenQuestion::Pair(names));
        } else if own.iter().any(|one| one.difference.is_none()) {
            single.push(OpenQuestion::Pair(names));
        }
    }
    let mut open: Vec<OpenPoint> = few(aliased).into_iter().map(OpenPoint::Aliased).collect();
    open.extend(few(single).into_iter().map(OpenPoint::NoReplicates));
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

fn few(pairs: Vec<OpenQuestion>) -> Vec<OpenQuestion> {
    if pairs.len() <= PAIRS_NAMED_MAX { pairs } else { vec![OpenQuestion::Pairs(pairs.len())] }
}
