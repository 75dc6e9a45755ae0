//! Whether the numbers can be trusted before anything is made of them: runs left out, runs doubted, metrics that contradict each other, drift.

use super::scaling::is_processes;
use super::sheet::{Sheet, Varied, varied};
use super::words::{chance, digits, list, quoted, runs as runs_text, signed};
use super::{FigureUnit, Figures, Finding, Kind, Observation};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use feedrate_measure::doubt::Severity;
use feedrate_measure::stats::{Cell, Difference, OUTLIER_SCORE, mean, modified_z_scores, slope};
use std::collections::BTreeMap;

/// A finding about runs, whatever their response.
fn about(kind: Kind, workload: &str, sentence: String, of: &[&Observation]) -> Finding {
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

/// Windowed utilisation that moves by less, in points, is let be.
const POINTS_MIN: f64 = 1.0;
/// Utilisation over all steps that moves by less, in points, is not missed.
const HIDDEN_MIN: f64 = 5.0;
/// Of a change of the one figure, the other has at least this share; otherwise the window made it, or hides it.
const SHARE_MIN: f64 = 1.0 / 3.0;

/// What the runs of a step say by the window and as a whole.
struct Side {
    runs: usize,
    windowed: f64,
    /// Utilisation over all steps.
    whole: Option<f64>,
    /// Over whole epochs.
    rate: Option<f64>,
}

/// Steps from one level of a factor to the next, all else at the baseline, in which windowed utilisation changes and that of the whole epoch does not.
///
/// Both are of the same runs, so that no replicates are needed to see that they disagree.
pub(super) fn artefacts(
    workload: &str,
    used: &[&Observation],
    baseline: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let factors = varied(used, baseline);
    let mut findings = Vec::new();
    for (at, factor) in factors.iter().enumerate().filter(|(_, factor)| factor.numbers.is_some()) {
        let others = factors.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<&Varied> = others.map(|(_, other)| other).collect();
        let on_path =
            |run: &&&Observation| others.iter().all(|other| other.level_of(run) == other.base);
        let mut path: BTreeMap<usize, Vec<&Observation>> = BTreeMap::new();
        for &run in used.iter().filter(on_path) {
            path.entry(factor.level_of(run)).or_default().push(run);
        }
        let path: Vec<(usize, Vec<&Observation>)> = path.into_iter().collect();
        for step in path.windows(2) {
            findings.extend(artefact(workload, factor, &step[0], &step[1]));
        }
    }
    findings
}

fn side(of: &[&Observation]) -> Option<Side> {
    let middle = |name: &str| {
        let values: Option<Vec<f64>> =
            of.iter().map(|run| run.responses.get(name).copied()).collect();
        mean(&values?)
    };
    let rates = ["samples_per_second", "delivered_bytes_per_second", "nominal_bytes_per_second"];
    Some(Side {
        runs: of.len(),
        windowed: middle("au_windowed_percent").filter(|au| *au > 0.0)?,
        whole: middle("au_all_steps_percent").filter(|au| *au > 0.0),
        rate: rates.iter().find_map(|name| middle(name)).filter(|rate| *rate > 0.0),
    })
}

fn artefact(
    workload: &str,
    factor: &Varied,
    (from, of_from): &(usize, Vec<&Observation>),
    (to, of_to): &(usize, Vec<&Observation>),
) -> Option<Finding> {
    let (from, to) = (*from, *to);
    let (a, b) = (side(of_from)?, side(of_to)?);
    let numbers = factor.numbers.as_ref()?;
    let is_processes = is_processes(&factor.name);
    let linear = if is_processes { numbers[to] / numbers[from] } else { 1.0 };
    let rate = a.rate.zip(b.rate).map(|(a, b)| b / a);
    let whole = a.whole.zip(b.whole);
    // Throughput a process stands for utilisation where that is not known, as long as a step computes the same.
    let by_rate = rate.filter(|_| is_processes).map(|rate| rate / linear);
    let ratio = whole.map(|(a, b)| b / a).or(by_rate)?;
    let (moved, windowed) = (b.windowed - a.windowed, (b.windowed / a.windowed).ln());
    let (large, small) =
        (ratio.ln().abs().max(windowed.abs()), ratio.ln().abs().min(windowed.abs()));
    let agrees = ratio.ln() * windowed > 0.0 && SHARE_MIN * large <= small;
    let is_opposite = ratio.ln() * windowed < 0.0;
    let is_made = POINTS_MIN < moved.abs() && (is_opposite || ratio.ln().abs() < windowed.abs());
    let is_hidden = whole.is_some_and(|(a, b)| HIDDEN_MIN < (b - a).abs());
    if agrees || !(is_made || is_hidden) {
        return None;
    }
    let change = |ratio: f64| {
        let percent = 100.0 * (ratio - 1.0);
        let word = if percent < 0.0 { "falls" } else { "rises" };
        format!("{word} by {:.0} %", percent.abs())
    };
    let mut against = Vec::new();
    if let Some(rate) = rate {
        let linear = if is_processes {
            format!(" ({:.0} % would be linear)", 100.0 * (linear - 1.0))
        } else {
            String::new()
        };
        against.push(format!("whole-epoch throughput {}{linear}", change(rate)));
    }
    if let Some((a, b)) = whole {
        against.push(format!("utilisation over all steps goes from {a:.1} % to {b:.1} %"));
    }
    let word = |change: f64| if change < 0.0 { "drop" } else { "rise" };
    let step =
        format!("from {} to {} {}", factor.levels[from], factor.levels[to], quoted(&factor.name));
    let by_window = format!("{:.1} % to {:.1} %", a.windowed, b.windowed);
    let against = list(&against);
    let sentence = match is_made {
        true => format!(
            "the {} {step} in windowed utilisation ({by_window}) is an artefact of the excluded first step: {against}",
            word(moved)
        ),
        false => format!(
            "the {} {step} in utilisation is hidden by the excluded first step (windowed, {by_window}): {against}",
            word(ratio.ln())
        ),
    };
    let evidence: Vec<&Observation> = of_from.iter().chain(of_to).copied().collect();
    let mut finding = about(Kind::Artefact, workload, sentence, &evidence);
    finding.response = Some("au_windowed_percent");
    finding.factors = vec![factor.name.clone()];
    finding.magnitude = moved.abs();
    let n = a.runs.min(b.runs);
    finding.figures = Some(Figures {
        unit: FigureUnit::Points,
        estimate: moved,
        low: None,
        high: None,
        n,
        p: None,
        tests: None,
        share_percent: None,
    });
    if n == 1 {
        finding.doubts.push("one run of a level".into());
    }
    Some(finding)
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
