//! Whether the epochs of runs settle: still warming up, or never steady. Epochs are repeated measures of a run, and tell nothing of others.

use super::{UsedRuns, about};
use crate::finding::{EffectSize, EffectUnit, Epochs, Finding, FindingKind, Quantity, Subject};
use feedrate_measure::metric::SAMPLES_WHOLE;
use feedrate_measure::stats::{STEADY_ROUNDS, mean, slope, steady_from};
use feedrate_results::run::Run;

/// A run, its rate in each epoch, and how these do not settle.
type UnsteadyRun<'a> = (&'a Run, Vec<f64>, Epochs);

/// One finding of runs that settle late, one of those that never do.
pub(super) fn unsteady(group: &UsedRuns) -> Vec<Finding> {
    let judged: Vec<(&Run, Vec<f64>)> = group
        .used()
        .into_iter()
        .map(|run| (run, run.epoch_values(&SAMPLES_WHOLE)))
        .filter(|(_, rates)| STEADY_ROUNDS <= rates.len())
        .collect();
    let number = judged.len();
    let found = judged.into_iter().filter_map(|(run, rates)| {
        let epochs = unsteady_epochs(&rates)?;
        Some((run, rates, epochs))
    });
    let (late, never): (Vec<UnsteadyRun>, Vec<UnsteadyRun>) =
        found.partition(|(.., epochs)| matches!(epochs, Epochs::SettleLate { .. }));
    [late, never].iter().filter_map(|of| finding(group, of, number)).collect()
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

fn finding(group: &UsedRuns, of: &[UnsteadyRun], judged: usize) -> Option<Finding> {
    let worst = of.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let (run, magnitude, epochs) = (worst.0.short_path(), size(worst), worst.2);
    let (quantity, unit, estimate) = match epochs {
        Epochs::SettleLate { bias, .. } => {
            (Quantity::AllEpochsAgainstSettled { run: run.clone() }, EffectUnit::Ratio, 1.0 + bias)
        }
        Epochs::NeverSettle { .. } => {
            (Quantity::SpreadOfEpochs { run: run.clone() }, EffectUnit::Share, magnitude)
        }
    };
    let runs: Vec<&Run> = of.iter().map(|(run, ..)| *run).collect();
    let subject = Subject::Unsteady { runs: of.len(), judged, worst: run, epochs };
    Some(Finding {
        effects: vec![EffectSize::new(quantity, unit, estimate, None, 1)],
        magnitude,
        ..about(FindingKind::Unsteady, &group.design.workload, subject, &runs)
    })
}

fn size((_, rates, epochs): &UnsteadyRun) -> f64 {
    match *epochs {
        Epochs::SettleLate { bias, .. } => bias.abs(),
        Epochs::NeverSettle { least, most, .. } => {
            mean(rates).map_or(0.0, |all| (most - least) / all)
        }
    }
}
