//! Finds how throughput grows with the number of processes: the efficiency relative to linear growth, and superlinear growth.

use super::MARGIN;
use super::design_matrix::DesignMatrix;
use crate::design::PROCESSES;
use crate::finding::{EffectSize, EffectUnit, Finding, FindingKind, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::stats::{Combination, Difference, Interval};

/// Test of whether throughput at one number of processes is superlinear.
pub(super) struct SuperlinearTest {
    level: usize,
    /// Logarithm of throughput relative to linear growth.
    excess: Difference,
    pub(super) p: f64,
}

/// The factor "number of processes" of a design.
struct ProcessLevels {
    factor: usize,
    /// Levels that can be compared, ascending; at least two.
    levels: Vec<usize>,
    numbers: Vec<f64>,
}

impl ProcessLevels {
    /// `None` if the response is not a rate, there is no such factor, or its levels cannot be compared.
    fn new(matrix: &DesignMatrix) -> Option<Self> {
        if !matrix.response.unit.is_rate() {
            return None;
        }
        let factor = matrix.design.factor(PROCESSES)?;
        let numbers = matrix.design.factors[factor].numbers.clone()?;
        let levels = matrix.comparable_levels(factor);
        let is_usable = 1.0 <= numbers[0] && 2 <= levels.len();
        is_usable.then_some(ProcessLevels { factor, levels, numbers })
    }

    fn first(&self) -> usize {
        self.levels[0]
    }

    /// Estimates growth from the smallest number of processes to the number at `level`. Returns the combination of cells of the estimate, and
    /// the logarithm of the growth relative to linear growth.
    fn excess(&self, matrix: &DesignMatrix, level: usize) -> Option<(Combination, f64)> {
        let combination = matrix.difference(self.factor, self.first(), level)?.combination;
        let linear = self.numbers[level] / self.numbers[self.first()];
        let estimate = combination.estimate(&matrix.cells) - linear.ln();
        Some((combination, estimate))
    }

    fn finding(
        &self,
        matrix: &DesignMatrix,
        level: usize,
        kind: FindingKind,
        subject: Subject,
    ) -> Option<Finding> {
        let (combination, estimate) = self.excess(matrix, level)?;
        let excess = combination
            .welch_difference(&matrix.cells)
            .map(|difference| Difference { estimate, ..difference });
        let interval = excess.and_then(|excess| excess.interval(CONFIDENCE)).map(Interval::exp);
        let runs = |level: usize| matrix.run_count(&combination, (self.factor, level));
        let n = runs(self.first()).min(runs(level));
        let quantity = matrix.quantity(self.factor, level, self.first());
        let unit = EffectUnit::Efficiency;
        let effect = EffectSize::new(quantity, unit, estimate.exp(), interval, n);
        let mut finding = matrix.finding(kind, &[self.factor], subject, combination.cells());
        finding.effects = vec![effect];
        finding.magnitude = matrix.scale.magnitude(estimate);
        Some(finding)
    }
}

/// Tests each number of processes against the smallest.
pub(super) fn test_superlinear(matrix: &DesignMatrix) -> Vec<SuperlinearTest> {
    let Some(processes) = ProcessLevels::new(matrix) else { return Vec::new() };
    let tests = processes.levels[1..].iter().filter_map(|&level| {
        let (combination, estimate) = processes.excess(matrix, level)?;
        let excess = Difference { estimate, ..combination.welch_difference(&matrix.cells)? };
        Some(SuperlinearTest { level, excess, p: excess.p()? })
    });
    tests.collect()
}

/// Reports the largest superlinear growth or, if there is none, the efficiency at the largest number of processes.
pub(super) fn scaling(
    matrix: &DesignMatrix,
    tests: Vec<SuperlinearTest>,
    test_count: usize,
) -> Option<Finding> {
    let processes = ProcessLevels::new(matrix)?;
    let largest = tests
        .into_iter()
        .filter(|test| test.p < ALPHA && MARGIN.ln_1p() < test.excess.estimate)
        .max_by(|a, b| a.excess.estimate.total_cmp(&b.excess.estimate));
    if let Some(SuperlinearTest { level, p, .. }) = largest {
        let kind = FindingKind::Superlinear;
        let mut finding = processes.finding(matrix, level, kind, Subject::MoreThanLinear)?;
        finding.effects = vec![finding.effects.remove(0).with_p(Some(p), test_count)];
        return Some(finding);
    }
    let last = *processes.levels.last()?;
    let mut finding = processes.finding(matrix, last, FindingKind::Scaling, Subject::Efficiency)?;
    if finding.effects[0].low.is_none() {
        finding.kind = FindingKind::NotTested;
        finding.is_supported = false;
    }
    Some(finding)
}
