//! Whether the epochs of runs settle: still warming up, or never steady. Epochs are repeated measures of a run, and tell nothing of others.

use super::{Observation, UsedRuns, about};
use crate::finding::{Effect, EffectUnit, Epochs, Finding, Kind, Quantity, Subject};
use feedrate_measure::stats::{STEADY_ROUNDS, mean, slope, steady_from};

/// One finding of runs that settle late, one of those that never do.
pub(super) fn unsteady(group: &UsedRuns) -> Vec<Finding> {
    let mut judged = group.used();
    judged.retain(|run| STEADY_ROUNDS <= run.epochs.len());
    let found = judged.iter().filter_map(|run| Some((*run, unsteady_epochs(&run.epochs)?)));
    let (late, never): (Vec<_>, Vec<_>) =
        found.partition(|(_, epochs)| matches!(epochs, Epochs::SettleLate { .. }));
    [late, never].iter().filter_map(|of| finding(group, of, judged.len())).collect()
}

/// `None` of epochs that are steady from the first on.
fn unsteady_epochs(rates: &[f64]) -> Option<Epochs> {
    let all = mean(rates).filter(|&mean| mean > 0.0)?;
    match steady_from(rates) {
        Some(0) => None,
        Some(first_steady) => {
            let (before, after) = (mean(&rates[..first_steady])?, mean(&rates[first_steady..])?);
            Some(Epochs::SettleLate { first_steady, before, after, bias: all / after - 1.0 })
        }
        None => {
            let numbers: Vec<f64> = (0..rates.len()).map(|epoch| epoch as f64).collect();
            let line = slope(&numbers, rates)?.estimate * (rates.len() - 1) as f64;
            Some(Epochs::NeverSettle {
                epochs: rates.len(),
                least: rates.iter().copied().reduce(f64::min)?,
                most: rates.iter().copied().reduce(f64::max)?,
                trend: line / all,
            })
        }
    }
}

fn finding(group: &UsedRuns, of: &[(&Observation, Epochs)], judged: usize) -> Option<Finding> {
    let size = |(run, epochs): &(&Observation, Epochs)| match *epochs {
        Epochs::SettleLate { bias, .. } => bias.abs(),
        Epochs::NeverSettle { least, most, .. } => {
            mean(&run.epochs).map_or(0.0, |all| (most - least) / all)
        }
    };
    let worst = of.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let (name, epochs) = (worst.0.name.clone(), worst.1);
    let runs: Vec<&Observation> = of.iter().map(|(run, _)| *run).collect();
    let run = name.clone();
    let (quantity, unit, estimate) = match epochs {
        Epochs::SettleLate { bias, .. } => {
            (Quantity::AllEpochsAgainstSettled { run }, EffectUnit::Ratio, 1.0 + bias)
        }
        Epochs::NeverSettle { .. } => {
            (Quantity::SpreadOfEpochs { run }, EffectUnit::Share, size(worst))
        }
    };
    let subject = Subject::Unsteady { runs: of.len(), judged, worst: name, epochs };
    let mut finding = about(Kind::Unsteady, &group.design.workload, subject, &runs);
    finding.effects = vec![Effect::new(quantity, unit, estimate, None, 1)];
    finding.magnitude = size(worst);
    Some(finding)
}
