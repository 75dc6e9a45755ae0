//! Whether the epochs of runs settle: still warming up, or never steady. Epochs are repeated measures of a run, and tell nothing of others.

use super::trust::about;
use super::words::{plain, quoted, runs as runs_text, signed};
use super::{FigureUnit, Figures, Finding, Kind, Observation};
use feedrate_measure::stats::{STEADY_ROUNDS, mean, slope, steady_from};
use feedrate_results::response::Unit;

/// A run whose epochs are not steady from the first on.
struct Unsteady<'a> {
    run: &'a Observation,
    /// Which epoch is the first of those that settle, counted from 0.
    from: Option<usize>,
    /// Greatest less least, as a share of the mean; of one that settles, the mean of all epochs against those that settled, less 1.
    by: f64,
}

/// One finding of runs that settle late, one of those that never do.
pub(super) fn unsteady(workload: &str, used: &[&Observation]) -> Vec<Finding> {
    let judged: Vec<&Observation> =
        used.iter().copied().filter(|run| STEADY_ROUNDS <= run.epochs.len()).collect();
    let found: Vec<Unsteady> = judged.iter().filter_map(|run| Unsteady::of(run)).collect();
    let (late, never): (Vec<&Unsteady>, Vec<&Unsteady>) =
        found.iter().partition(|one| one.from.is_some());
    [late, never].iter().filter_map(|of| finding(workload, of, judged.len())).collect()
}

impl<'a> Unsteady<'a> {
    fn of(run: &'a Observation) -> Option<Self> {
        let from = steady_from(&run.epochs);
        let all = mean(&run.epochs).filter(|&mean| mean > 0.0)?;
        let by = match from {
            Some(0) => return None,
            Some(from) => all / mean(&run.epochs[from..])? - 1.0,
            None => {
                let (low, high) = ends(&run.epochs)?;
                (high - low) / all
            }
        };
        Some(Unsteady { run, from, by })
    }

    fn text(&self) -> Option<String> {
        let rates = &self.run.epochs;
        let text = |rate: f64| Unit::SamplesPerSecond.text(rate);
        let percent = |share: f64| signed(100.0 * share, 0);
        Some(match self.from {
            Some(from) => format!(
                "the first {} at {}, those from epoch {} on at {}; the mean of all is {} % {} that",
                if from == 1 { "epoch is".into() } else { format!("{from} epochs are") },
                text(mean(&rates[..from])?),
                from + 1,
                text(mean(&rates[from..])?),
                plain(100.0 * self.by.abs(), 0),
                if self.by < 0.0 { "below" } else { "above" }
            ),
            None => {
                let numbers: Vec<f64> = (0..rates.len()).map(|epoch| epoch as f64).collect();
                let line = slope(&numbers, rates)?.estimate * (rates.len() - 1) as f64;
                let (low, high) = ends(rates)?;
                format!(
                    "{} epochs have {} to {}, and a straight line through them changes by {} %",
                    rates.len(),
                    text(low),
                    text(high),
                    percent(line / mean(rates)?)
                )
            }
        })
    }
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().reduce(f64::max)?))
}

fn finding(workload: &str, of: &[&Unsteady], judged: usize) -> Option<Finding> {
    let worst = of.iter().max_by(|a, b| a.by.abs().total_cmp(&b.by.abs()))?;
    let sentence = format!(
        "{} in {} of {} of {STEADY_ROUNDS} epochs or more, {}{}: {}; five epochs within 20 % whose line changes by at most 10 % would be steady",
        match worst.from {
            Some(_) => "epochs settle late",
            None => "epochs do not settle",
        },
        of.len(),
        runs_text(judged),
        if of.len() == 1 { "" } else { "most in " },
        quoted(&worst.run.name),
        worst.text()?
    );
    let runs: Vec<&Observation> = of.iter().map(|one| one.run).collect();
    let mut finding = about(Kind::Unsteady, workload, sentence, &runs);
    let what = match worst.from {
        Some(_) => format!("mean of all epochs against the settled, {}", worst.run.name),
        None => format!("greatest less least epoch as a share of the mean, {}", worst.run.name),
    };
    let (unit, value) = match worst.from {
        Some(_) => (FigureUnit::Ratio, 1.0 + worst.by),
        None => (FigureUnit::Share, worst.by),
    };
    finding.figures = vec![Figures::new(what, unit, value, None, 1)];
    finding.magnitude = worst.by.abs();
    Some(finding)
}
