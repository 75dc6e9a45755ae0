//! Whether runs can be trusted before anything is made of them: left out, doubted, far from others, drifting.

use super::sheet::Sheet;
use super::words::{chance, digits, list, quoted, runs as runs_text, signed};
use super::{Figures, Finding, Kind, Observation};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use feedrate_measure::doubt::Severity;
use feedrate_measure::stats::{Cell, Difference, OUTLIER_SCORE, mean, modified_z_scores, slope};
use std::collections::BTreeMap;

/// A finding about runs, whatever their response.
pub(super) fn about(kind: Kind, workload: &str, sentence: String, of: &[&Observation]) -> Finding {
    Finding {
        rank: 0,
        kind,
        workload: workload.into(),
        response: None,
        factors: Vec::new(),
        sentence,
        figures: None,
        evidence: of.iter().map(|run| run.path.clone()).collect(),
        doubts: Vec::new(),
        supported: true,
        magnitude: of.len() as f64,
    }
}

/// Runs that are not used, and why.
pub(super) fn left_out(workload: &str, of: &[&Observation], used: usize) -> Option<Finding> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for run in of {
        let invalid = run.doubts.iter().filter(|doubt| doubt.severity == Severity::Invalid);
        invalid.for_each(|doubt| *reasons.entry(&doubt.name).or_default() += 1);
    }
    let reasons: Vec<String> =
        reasons.into_iter().map(|(name, n)| format!("{} ({n})", quoted(name))).collect();
    let all = of.len() + used;
    let sentence =
        format!("{} of {} left out as invalid: {}", of.len(), runs_text(all), list(&reasons));
    (!of.is_empty()).then(|| about(Kind::LeftOut, workload, sentence, of))
}

/// Doubts of the runs that are used, one finding a doubt.
pub(super) fn doubted(workload: &str, used: &[&Observation]) -> Vec<Finding> {
    let mut of_doubt: BTreeMap<&str, Vec<&Observation>> = BTreeMap::new();
    for &run in used {
        let warnings = run.doubts.iter().filter(|doubt| doubt.severity == Severity::Warning);
        warnings.for_each(|doubt| of_doubt.entry(&doubt.name).or_default().push(run));
    }
    let finding = |(name, of): (&str, Vec<&Observation>)| {
        let sentence =
            format!("{} of {} doubted: {}", of.len(), runs_text(used.len()), quoted(name));
        about(Kind::Doubted, workload, sentence, &of)
    };
    of_doubt.into_iter().map(finding).collect()
}

/// Change of repeated runs over the order of running.
pub(super) struct Drift {
    /// From the first run to the last, on the scale of the sheet.
    change: Difference,
    runs: usize,
    cells: Vec<usize>,
    pub(super) p: f64,
}

/// One slope within all combinations that were repeated (analysis of covariance, Montgomery, Design and Analysis of Experiments, ch. 15.3): the sentinels of a
/// design, and every replicate. `None` of fewer than three degrees of freedom.
pub(super) fn drift(sheet: &Sheet) -> Option<Drift> {
    let (mut orders, mut values, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    let all = sheet.runs.iter().flatten().filter_map(|run| run.order).map(f64::from);
    let (first, last) = (all.clone().reduce(f64::min)?, all.reduce(f64::max)?);
    for (at, (cell, of)) in sheet.cells.iter().zip(&sheet.runs).enumerate() {
        let known = cell
            .values
            .iter()
            .zip(of)
            .filter_map(|(value, run)| Some((*value, f64::from(run.order?))));
        let known: Vec<(f64, f64)> = known.collect();
        if known.len() < 2 {
            continue;
        }
        let (of_values, of_orders): (Vec<f64>, Vec<f64>) = known.into_iter().unzip();
        let (value, order) = (mean(&of_values)?, mean(&of_orders)?);
        values.extend(of_values.iter().map(|one| one - value));
        orders.extend(of_orders.iter().map(|one| one - order));
        cells.push(at);
    }
    let found = slope(&orders, &values)?;
    // Each combination has a mean of its own, which the slope does not know of.
    let freedom = values.len() as f64 - cells.len() as f64 - 1.0;
    if freedom < 3.0 {
        return None;
    }
    let span = last - first;
    let change = Difference {
        estimate: found.estimate * span,
        standard_error: found.standard_error * span * (found.freedom / freedom).sqrt(),
        freedom,
    };
    Some(Drift { change, runs: values.len(), cells, p: change.p()? })
}

impl Drift {
    pub(super) fn finding(self, sheet: &Sheet, number: usize) -> Option<Finding> {
        if ALPHA <= self.p {
            return None;
        }
        let figures = Figures {
            p: Some(self.p),
            tests: Some(number),
            ..sheet.figures(self.change.estimate, Some(&self.change), self.runs)
        };
        let interval = self.change.interval(CONFIDENCE)?;
        let (shown, unit): (fn(f64) -> f64, &str) = match sheet.is_log() {
            true => (|log| 100.0 * log.exp_m1(), "%"),
            false => (|points| points, "points"),
        };
        let (low, high) = (shown(interval.low), shown(interval.high));
        let digits = digits(high - low);
        let sentence = format!(
            "{} drifts over the order of running: {} {unit} from the first run to the last [{}, {}], n = {} ({})",
            sheet.response.title,
            signed(shown(self.change.estimate), digits),
            signed(low, digits),
            signed(high, digits),
            self.runs,
            chance(self.p, number)
        );
        let mut finding = sheet.finding(Kind::Drift, &[], sentence, self.cells);
        finding.figures = Some(figures);
        finding.magnitude = sheet.magnitude(self.change.estimate);
        Some(finding)
    }
}

/// Runs far from others of the same combination, where it was run often enough to say so: to be looked at, and never left out.
pub(super) fn outliers(sheet: &Sheet) -> Vec<Finding> {
    let of_cell = |(cell, of): (&Cell, &Vec<&Observation>)| {
        let scores = modified_z_scores(&cell.values)?;
        let far = of.iter().zip(&scores).filter(|(_, score)| OUTLIER_SCORE < score.abs());
        let far: Vec<(&Observation, f64)> = far.map(|(run, score)| (*run, *score)).collect();
        if far.is_empty() {
            return None;
        }
        let text = |(run, score): &(&Observation, f64)| {
            format!("`{}` (modified z-score {})", run.path.display(), signed(*score, 1))
        };
        let sentence = format!(
            "{} of {} of the same combination far from the others in {}: {}",
            far.len(),
            runs_text(of.len()),
            sheet.response.title,
            list(&far.iter().map(text).collect::<Vec<_>>())
        );
        let of: Vec<&Observation> = far.iter().map(|(run, _)| *run).collect();
        let mut finding = about(Kind::Outlier, sheet.workload, sentence, &of);
        finding.response = Some(sheet.response.name);
        finding.doubts.push("of ten runs with normal noise one set in eight has such a run".into());
        finding.supported = false;
        Some(finding)
    };
    sheet.cells.iter().zip(&sheet.runs).filter_map(of_cell).collect()
}
