//! Whether runs can be trusted before anything is made of them: left out, doubted, drifting.

use super::sheet::Sheet;
use super::words::{chance, digits, quoted, runs as runs_text, signed};
use super::{FigureUnit, Figures, Finding, Kind, Observation};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use feedrate_measure::doubt::Severity;
use feedrate_measure::stats::{Difference, mean, slope};
use std::collections::BTreeSet;

/// A finding about runs, whatever their response.
pub(super) fn about(kind: Kind, workload: &str, sentence: String, of: &[&Observation]) -> Finding {
    Finding {
        rank: 0,
        kind,
        workload: workload.into(),
        response: None,
        factors: Vec::new(),
        sentence,
        figures: Vec::new(),
        evidence: of.iter().map(|run| run.path.clone()).collect(),
        doubts: Vec::new(),
        supported: true,
        magnitude: of.len() as f64,
    }
}

/// Which numbers show how large a doubt is: the one that misleads, and the one that is right, if there is one. By doubt, unit, names.
const SHOWN_BY: &[(&str, FigureUnit, &str, &str)] = &[
    (
        "wrong_step_count",
        FigureUnit::Ratio,
        "reported_samples_per_second",
        "windowed_samples_per_second",
    ),
    ("au_misreported", FigureUnit::Points, "au_reported_percent", "au_windowed_percent"),
    ("au_disagrees", FigureUnit::Points, "au_windowed_percent", "au_all_steps_percent"),
    ("wait_outside_window", FigureUnit::Points, "wait_excluded_percent", ""),
    ("ranks_disagree", FigureUnit::Points, "au_highest_percent", "au_lowest_percent"),
    ("nominal_bytes", FigureUnit::Ratio, "nominal_bytes_per_second", "delivered_bytes_per_second"),
    ("stale_data", FigureUnit::Ratio, "nominal_bytes_per_second", "delivered_bytes_per_second"),
];

/// Doubts that touch only some numbers, each with the start of their names; what was reported is no response.
const TOUCHES_ONLY: &[(&str, &str)] = &[
    ("wrong_step_count", "reported"),
    ("au_misreported", "reported"),
    ("au_disagrees", "au_windowed"),
    ("wait_outside_window", "au_windowed"),
    ("window_shorter_than_stock", "au_windowed"),
    ("ranks_disagree", "au_windowed"),
    ("nominal_bytes", "nominal"),
    ("throughput_misreported", "reported"),
    // Growth of what was recomputed has a finding of its own.
    ("superlinear_scaling", "reported"),
];

/// Whether a doubt is about this response.
pub(super) fn touches(doubt: &str, response: &str) -> bool {
    let only = TOUCHES_ONLY.iter().find(|(name, _)| *name == doubt);
    only.is_none_or(|(_, start)| response.starts_with(start))
}

/// Of a run. What is not acted on is said of the factor.
pub(super) fn warnings(run: &Observation) -> impl Iterator<Item = &str> {
    named(run, Severity::Warning).filter(|name| *name != "ignored_setting")
}

fn named(run: &Observation, severity: Severity) -> impl Iterator<Item = &str> {
    let all = run.doubts.iter().filter(move |doubt| doubt.severity == severity);
    all.map(|doubt| doubt.name.as_str())
}

/// Runs that are not used, one finding a reason.
pub(super) fn left_out(workload: &str, of: &[&Observation], used: usize) -> Vec<Finding> {
    let all = of.len() + used;
    let reasons: BTreeSet<&str> = of.iter().flat_map(|run| named(run, Severity::Invalid)).collect();
    let finding = |name| {
        let what = format!("left out as invalid: {} in", quoted(name));
        of_doubt(Kind::LeftOut, workload, name, &what, of, all)
    };
    reasons.into_iter().filter_map(finding).collect()
}

/// Doubts of the runs that are used, one finding a doubt.
pub(super) fn doubted(workload: &str, used: &[&Observation]) -> Vec<Finding> {
    let names: BTreeSet<&str> = used.iter().flat_map(|run| warnings(run)).collect();
    let finding = |name| {
        let what = format!("{} in", quoted(name));
        of_doubt(Kind::Doubted, workload, name, &what, used, used.len())
    };
    names.into_iter().filter_map(finding).collect()
}

/// How many runs have a doubt, and what it says of the one that it takes most from.
fn of_doubt(
    kind: Kind,
    workload: &str,
    name: &str,
    what: &str,
    among: &[&Observation],
    all: usize,
) -> Option<Finding> {
    let is_doubted = |run: &&Observation| run.doubts.iter().any(|doubt| doubt.name == name);
    let runs: Vec<&Observation> = among.iter().copied().filter(is_doubted).collect();
    let shown = |run: &&Observation| {
        shown_by(name, run).map(|(_, unit, value)| match unit {
            FigureUnit::Points => value.abs() / 100.0,
            _ => value.ln().abs(),
        })
    };
    let worst = runs.iter().rev().max_by(|a, b| {
        let size = |run| shown(run).unwrap_or(f64::NEG_INFINITY);
        size(a).total_cmp(&size(b))
    })?;
    let which = match (runs.len(), shown(worst)) {
        (1, _) => "",
        (_, Some(_)) => "most in ",
        (_, None) => "such as ",
    };
    let doubt = worst.doubts.iter().find(|doubt| doubt.name == name)?;
    let sentence = format!(
        "{what} {} of {}, {which}{}: {}; to do: {}",
        runs.len(),
        runs_text(all),
        quoted(&worst.name),
        doubt.evidence,
        doubt.advice
    );
    let mut finding = about(kind, workload, sentence, &runs);
    if let Some((of, unit, value)) = shown_by(name, worst) {
        let of = format!("{of}, {}", worst.name);
        finding.figures = vec![Figures::new(of, unit, value, None, 1)];
    }
    finding.magnitude = runs.len() as f64 / all as f64 + shown(worst).unwrap_or(0.0);
    Some(finding)
}

/// What misleads against what is right: what they are, and how far apart.
fn shown_by(name: &str, run: &Observation) -> Option<(String, FigureUnit, f64)> {
    let &(_, unit, wrong, right) = SHOWN_BY.iter().find(|row| row.0 == name)?;
    let number = |name: &str| run.responses.get(name).or(run.shown.get(name)).copied();
    if right.is_empty() {
        return Some((wrong.into(), unit, number(wrong)?));
    }
    let of = format!("{wrong} against {right}");
    let (wrong, right) = (number(wrong)?, number(right)?);
    match unit {
        FigureUnit::Points => Some((of, unit, wrong - right)),
        _ => {
            let ratio = Some(wrong / right).filter(|ratio| 0.0 < *ratio && ratio.is_finite())?;
            Some((of, unit, ratio))
        }
    }
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
            ..sheet.figures(
                "last run against first",
                self.change.estimate,
                Some(&self.change),
                self.runs,
            )
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
        finding.figures = vec![figures];
        finding.magnitude = sheet.magnitude(self.change.estimate);
        Some(finding)
    }
}
