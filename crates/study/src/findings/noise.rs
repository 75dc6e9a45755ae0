//! What noise looks like where a combination was run often enough to say: runs far from the others, and noise that is not normal. Tests no factor.

use super::sheet::Sheet;
use super::trust::{about, short};
use super::words::{list, plain, quoted, runs as runs_text, signed};
use super::{FigureUnit, Figures, Finding, Kind, Observation};
use crate::precision::CONFIDENCE;
use crate::response::Response;
use feedrate_measure::stats::{
    Cell, Interval, OUTLIER_SCORE, bootstrap_mean_interval, mean, median_interval,
    modified_z_scores, normal_plot,
};

/// Of what rests on normal noise, where it is not.
pub(super) const NOT_NORMAL: &str =
    "its interval takes noise as normal, which that of these runs is not";

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
            format!("{} (modified z-score {})", quoted(&short(run)), signed(*score, 1))
        };
        let (middle, figures) = middles(sheet.response, of);
        let sentence = format!(
            "{} of {} of the same combination far from the others in {}: {}; {middle}",
            far.len(),
            runs_text(of.len()),
            sheet.response.title,
            list(&far.iter().map(text).collect::<Vec<_>>())
        );
        let of: Vec<&Observation> = far.iter().map(|(run, _)| *run).collect();
        let mut finding = about(Kind::Outlier, sheet.workload, sentence, &of);
        finding.response = Some(sheet.response.name);
        finding.figures = figures;
        finding.doubts.push("of ten runs with normal noise one set in eight has such a run".into());
        finding.supported = false;
        Some(finding)
    };
    sheet.cells.iter().zip(&sheet.runs).filter_map(of_cell).collect()
}

/// Whether what is left of each combination's mean is not normal on the scale of the sheet; and the middle of the combination that was run most, which does not rest on that.
pub(super) fn skewed(sheet: &Sheet) -> Option<Finding> {
    let scaled = |cell: &Cell| {
        let n = cell.values.len() as f64;
        let middle = mean(&cell.values).filter(|_| 1.0 < n)?;
        // All with the variance of one run.
        let widen = (n / (n - 1.0)).sqrt();
        Some(cell.values.iter().map(|value| (value - middle) * widen).collect::<Vec<f64>>())
    };
    let left: Vec<f64> = sheet.cells.iter().filter_map(scaled).flatten().collect();
    let plot = normal_plot(&left).filter(|plot| plot.correlation < plot.least)?;
    let most = (0..sheet.runs.len()).rev().max_by_key(|&cell| sheet.runs[cell].len())?;
    let of = &sheet.runs[most];
    let (middle, figures) = middles(sheet.response, of);
    let what = figures
        .is_empty()
        .then(|| "six runs of a combination would have a median with an interval".into());
    let sentence = format!(
        "noise of {} in repeated runs is not normal{} (normal plot: correlation {:.3} of {} runs, normal noise is below {:.3} in 1 %); {}",
        sheet.response.title,
        if sheet.is_log() { " on the scale of logarithms" } else { "" },
        plot.correlation,
        left.len(),
        plot.least,
        what.unwrap_or(middle)
    );
    let mut finding = sheet.finding(Kind::Outlier, &[], sentence, [most]);
    finding.figures = figures;
    Some(finding)
}

/// Median of runs, and their mean where they are enough for an interval that takes no noise as normal.
fn middles(response: &Response, of: &[&Observation]) -> (String, Vec<Figures>) {
    let values: Vec<f64> =
        of.iter().filter_map(|run| run.responses.get(response.name).copied()).collect();
    let n = values.len();
    let known = [
        ("median", median_interval(&values, CONFIDENCE)),
        ("mean (bootstrap)", bootstrap_mean_interval(&values, CONFIDENCE)),
    ];
    let known = known.into_iter().filter_map(|(name, interval)| Some((name, interval?)));
    let known: Vec<(&str, Interval)> = known.collect();
    let text = |(name, of): &(&str, Interval)| {
        let [middle, low, high] = [of.estimate, of.low, of.high].map(|x| response.unit.text(x));
        format!("{name} {middle} [{low}, {high}]")
    };
    let texts: Vec<String> = known.iter().map(text).collect();
    let figures = known
        .into_iter()
        .map(|(name, of)| Figures::new(name, FigureUnit::Response, of.estimate, Some(of), n));
    (format!("of these {} runs: {}", plain(n as f64, 0), list(&texts)), figures.collect())
}
