//! How throughput grows with processes: the share of linear growth, and growth that is more than linear.

use super::MARGIN;
use super::design_matrix::DesignMatrix;
use crate::design::PROCESSES;
use crate::finding::{EffectSize, EffectUnit, Finding, FindingKind, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::stats::{Combination, Difference, Interval};

/// A number of processes whose throughput may be more than linear.
pub(super) struct Superlinear {
    level: usize,
    /// ln of the share of linear growth.
    over: Difference,
    pub(super) p: f64,
}

/// The factor that counts processes, for the response of a rate.
struct ProcessLevels {
    factor: usize,
    /// Levels that can be compared, ascending; at least two.
    levels: Vec<usize>,
    numbers: Vec<f64>,
}

impl ProcessLevels {
    /// `None` where there is none, or nothing can be compared.
    fn new(matrix: &DesignMatrix) -> Option<Self> {
        if !matrix.response.unit.is_rate() {
            return None;
        }
        let factor = matrix.design.factor(PROCESSES)?;
        let numbers = matrix.design.factors[factor].numbers.clone()?;
        let levels = matrix.comparable(factor);
        (1.0 <= numbers[0] && 2 <= levels.len()).then_some(ProcessLevels {
            factor,
            levels,
            numbers,
        })
    }

    fn first(&self) -> usize {
        self.levels[0]
    }

    /// ln of the share of linear growth from the fewest processes to those of `level`.
    fn over_linear(&self, matrix: &DesignMatrix, level: usize) -> Option<(Combination, f64)> {
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
        let (combination, estimate) = self.over_linear(matrix, level)?;
        let over = combination.welch(&matrix.cells).map(|of| Difference { estimate, ..of });
        let interval = over.and_then(|of| of.interval(CONFIDENCE)).map(Interval::exp);
        let [a, b] =
            [self.first(), level].map(|level| matrix.runs_of(&combination, (self.factor, level)));
        let of = matrix.quantity(self.factor, level, self.first());
        let effect =
            EffectSize::new(of, EffectUnit::Efficiency, estimate.exp(), interval, a.min(b));
        let mut finding = matrix.finding(kind, &[self.factor], subject, combination.cells());
        finding.effects = vec![effect];
        finding.magnitude = matrix.scale.magnitude(estimate);
        Some(finding)
    }
}

/// A test of each number of processes against the fewest.
pub(super) fn superlinear(matrix: &DesignMatrix) -> Vec<Superlinear> {
    let Some(processes) = ProcessLevels::new(matrix) else { return Vec::new() };
    let tests = processes.levels[1..].iter().filter_map(|&level| {
        let (combination, estimate) = processes.over_linear(matrix, level)?;
        let over = Difference { estimate, ..combination.welch(&matrix.cells)? };
        Some(Superlinear { level, over, p: over.p()? })
    });
    tests.collect()
}

/// The worst excess, or the efficiency at most processes.
pub(super) fn scaling(
    matrix: &DesignMatrix,
    tests: Vec<Superlinear>,
    number: usize,
) -> Option<Finding> {
    let processes = ProcessLevels::new(matrix)?;
    let excess =
        tests.into_iter().filter(|one| one.p < ALPHA && MARGIN.ln_1p() < one.over.estimate);
    let excess = excess.max_by(|a, b| a.over.estimate.total_cmp(&b.over.estimate));
    if let Some(Superlinear { level, p, .. }) = excess {
        let (kind, subject) = (FindingKind::Superlinear, Subject::MoreThanLinear);
        let mut finding = processes.finding(matrix, level, kind, subject)?;
        finding.effects = vec![finding.effects.remove(0).tested(Some(p), number)];
        return Some(finding);
    }
    let last = *processes.levels.last()?;
    let mut finding = processes.finding(matrix, last, FindingKind::Scaling, Subject::Efficiency)?;
    if finding.effects[0].low.is_none() {
        (finding.kind, finding.is_supported) = (FindingKind::NotTested, false);
    }
    Some(finding)
}
