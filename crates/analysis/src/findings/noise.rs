//! What noise looks like where a combination was run often enough to say: runs far from the others, and noise that is not normal. Tests no factor.

use super::sheet::Sheet;
use super::trust::about;
use super::words::{list, quoted, runs as runs_text, signed};
use super::{FigureUnit, Figures, Finding, Kind, Observation};
use crate::compare::ALPHA;
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{
    Cell, Interval, NormalPlot, OUTLIER_SCORE, bootstrap_mean_interval, median_interval,
    modified_z_scores, normal_plot,
};
use feedrate_results::response::Response;

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
            format!("{} (modified z-score {})", quoted(&run.name), signed(*score, 1))
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
        finding.response = Some(sheet.response.id.name());
        finding.figures = figures;
        finding.doubts.push("of ten runs with normal noise one set in eight has such a run".into());
        finding.supported = false;
        Some(finding)
    };
    sheet.cells.iter().zip(&sheet.runs).filter_map(of_cell).collect()
}

/// Whether noise is not normal on the scale of the sheet, by the combinations that were run often enough for a median with an interval: more of them are below
/// the bar than 5 % of studies of normal noise have. Each by itself, as they may vary by different amounts.
pub(super) fn skewed(sheet: &Sheet) -> Option<Finding> {
    let judged = sheet.cells.iter().enumerate().filter(|(_, cell)| RUNS_LEAST <= cell.values.len());
    let judged: Vec<(usize, NormalPlot)> =
        judged.filter_map(|(at, cell)| Some((at, normal_plot(&cell.values)?))).collect();
    let below = |(_, plot): &&(usize, NormalPlot)| plot.correlation < plot.least;
    let skewed: Vec<&(usize, NormalPlot)> = judged.iter().filter(below).collect();
    let over = |one: &(usize, NormalPlot)| one.1.least - one.1.correlation;
    let (worst, plot) = skewed.iter().max_by(|a, b| over(a).total_cmp(&over(b)))?;
    if ALPHA < at_least(skewed.len(), judged.len(), BELOW_SHARE) {
        return None;
    }
    let (middle, figures) = middles(sheet.response, &sheet.runs[*worst]);
    let sentence = format!(
        "noise of {} is not normal{} in {} of {} combinations of {RUNS_LEAST} runs or more, most in that of {} (normal plot: correlation {:.3}, normal noise is below {:.3} in 1 %); {middle}",
        sheet.response.title,
        if sheet.is_log() { " on the scale of logarithms" } else { "" },
        skewed.len(),
        judged.len(),
        quoted(&sheet.runs[*worst].first()?.name),
        plot.correlation,
        plot.least,
    );
    let mut finding = sheet.finding(Kind::Outlier, &[], sentence, [*worst]);
    finding.figures = figures;
    Some(finding)
}

/// Fewer have no interval of the median.
const RUNS_LEAST: usize = 6;
/// Of normal noise so many are below the bar of the normal plot.
const BELOW_SHARE: f64 = 0.01;

/// Chance of so many of `all` or more, each with a chance of `share` (binomial).
fn at_least(some: usize, all: usize, share: f64) -> f64 {
    let (mut each, mut sum) = ((1.0 - share).powf(all as f64), 0.0);
    for number in 0..some {
        sum += each;
        each *= (all - number) as f64 / (number + 1) as f64 * share / (1.0 - share);
    }
    1.0 - sum
}

/// Median of runs, and their mean where they are enough for an interval that takes no noise as normal.
fn middles(response: &Response, of: &[&Observation]) -> (String, Vec<Figures>) {
    let values: Vec<f64> =
        of.iter().filter_map(|run| run.responses.get(response.id.name()).copied()).collect();
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
    (format!("of these {}: {}", runs_text(n), list(&texts)), figures.collect())
}
