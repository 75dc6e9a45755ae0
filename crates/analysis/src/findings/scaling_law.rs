//! The law that throughput follows over processes: the Universal Scalability Law, or Amdahl's where it adds nothing; or why neither can be told.

use super::design_matrix::DesignMatrix;
use super::scaling::ProcessLevels;
use crate::finding::{
    Caveat, EffectSize, EffectUnit, Finding, FindingKind, LawObstacle, Quantity, ScalingLaw,
    Subject,
};
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{Interval, Scaling, ScalingDoubt, amdahl, universal_scalability};
use std::collections::BTreeSet;

/// Places of the parameters of a fit. Contention is the serial share of Amdahl's law.
const CONTENTION: usize = 1;
const COHERENCE: usize = 2;

/// The law, fitted to the middle of each number of processes against the fewest. Nothing where growth is not told, or no law can be fitted.
pub(super) fn law(matrix: &DesignMatrix) -> Option<Finding> {
    let processes = ProcessLevels::new(matrix)?;
    let fewest = processes.number(processes.first());
    // Laws tell ratios only, so that the fewest processes may have 1.
    let mut points = vec![(fewest, 1.0)];
    let mut cells: BTreeSet<usize> = BTreeSet::new();
    for &level in &processes.levels[1..] {
        let (combination, over) = processes.over_linear(matrix, level)?;
        let number = processes.number(level);
        points.push((number, over.exp() * number / fewest));
        cells.extend(combination.cells());
    }
    let universal = universal_scalability(&points).filter(|fit| told(fit, COHERENCE).is_some());
    let fit = match universal {
        Some(fit) => fit,
        None => amdahl(&points)?,
    };
    let runs = processes.levels.iter().map(|level| {
        let cells = cells.iter().map(|&cell| &matrix.cells[cell]);
        let own = cells.filter(|cell| cell.levels[processes.factor] == *level);
        own.map(|cell| cell.values.len()).sum::<usize>()
    });
    let n = runs.min()?;
    let law = ScalingLaw::new(&fit);
    let kind = match law.obstacle {
        Some(_) => FindingKind::CannotTell,
        None if n < 2 => FindingKind::NotTested,
        None => FindingKind::Scaling,
    };
    let (is_universal, effects) = (law.is_universal, law.effects(n));
    let subject = Subject::Law { law, numbers: points.len(), n };
    let mut finding = matrix.finding(kind, &[processes.factor], subject, cells);
    finding.is_supported = kind != FindingKind::NotTested;
    if kind != FindingKind::CannotTell {
        finding.effects = effects;
        let doubts = Some(fit.doubts).filter(|doubts| !doubts.is_empty());
        finding.caveats.extend(doubts.map(|doubts| Caveat::Law { is_universal, doubts }));
    }
    Some(finding)
}

/// A share that is told from none, and is one: its interval lies above 0, and not beyond all.
fn told(fit: &Scaling, at: usize) -> Option<Interval> {
    fit.interval(at, CONFIDENCE).filter(|of| 0.0 < of.low && of.high <= 1.0)
}

impl ScalingLaw {
    fn new(fit: &Scaling) -> Self {
        let has_more_beyond = fit.doubts.contains(&ScalingDoubt::MoreBeyondPeak);
        ScalingLaw {
            is_universal: fit.coherence > 0.0,
            contention: told(fit, CONTENTION),
            coherence: told(fit, COHERENCE),
            limit: 1.0 / fit.contention,
            peak: if has_more_beyond { None } else { fit.peak() },
            r_squared: fit.r_squared,
            obstacle: obstacle(fit),
        }
    }

    fn effects(&self, n: usize) -> Vec<EffectSize> {
        let shares = [
            (Quantity::Contention { is_universal: self.is_universal }, self.contention),
            (Quantity::Coherence, self.coherence),
        ];
        let shares = shares.into_iter().filter_map(|(of, interval)| {
            Some(EffectSize::new(of, EffectUnit::Share, interval?.estimate, interval, n))
        });
        let peak = self.peak.map(|peak| {
            EffectSize::new(Quantity::PeakProcesses, EffectUnit::Processes, peak, None, n)
        });
        shares.chain(peak).collect()
    }
}

fn obstacle(fit: &Scaling) -> Option<LawObstacle> {
    if fit.doubts.contains(&ScalingDoubt::Superlinear) {
        return Some(LawObstacle::Superlinear);
    }
    if !fit.fits() {
        return Some(LawObstacle::Misfit(fit.misfit));
    }
    if told(fit, CONTENTION).is_some() || told(fit, COHERENCE).is_some() {
        return None;
    }
    Some(match fit.interval(CONTENTION, CONFIDENCE) {
        None => LawObstacle::NoSerialShare,
        Some(of) => LawObstacle::Interval { below: of.low <= 0.0, beyond: 1.0 < of.high },
    })
}
