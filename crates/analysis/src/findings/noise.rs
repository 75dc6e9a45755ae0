//! Noise where a cell was run often enough to say: runs far from the others, and noise that is not normal. Tests no factor.

use super::about;
use super::design_matrix::DesignMatrix;
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::metric::Metric;
use feedrate_measure::stats::{
    NormalPlot, OUTLIER_SCORE, bootstrap_mean_interval, median_interval, modified_z_scores,
    normal_plot,
};
use feedrate_results::run::Run;

/// Fewer runs have no interval of the median.
pub const RUNS_LEAST: usize = 6;
/// Share of normal noise that is below the bar of the normal plot.
const BELOW_SHARE: f64 = 0.01;

/// Runs far from others of the same cell, where it was run often enough to say so: to be looked at, and never left out.
pub(super) fn outliers(matrix: &DesignMatrix) -> Vec<Finding> {
    (0..matrix.cells.len()).filter_map(|at| outliers_of_cell(matrix, at)).collect()
}

fn outliers_of_cell(matrix: &DesignMatrix, at: usize) -> Option<Finding> {
    let runs = &matrix.runs[at];
    let scores = modified_z_scores(&matrix.cells[at].values)?;
    let far = runs.iter().zip(scores).filter(|(_, score)| OUTLIER_SCORE < score.abs());
    let (far, named): (Vec<&Run>, Vec<(String, f64)>) =
        far.map(|(run, score)| (*run, (run.short_path(), score))).unzip();
    if far.is_empty() {
        return None;
    }
    let subject = Subject::Outliers { runs: named, of: runs.len() };
    Some(Finding {
        response: Some(matrix.response.id.name()),
        effects: middles(matrix.response, runs),
        caveats: vec![Caveat::OutliersAreCommon],
        is_supported: false,
        ..about(FindingKind::Outlier, &matrix.design.workload, subject, &far)
    })
}

/// Whether noise is not normal on the scale of the matrix, by the cells that were run often enough for a median with an interval: more of them are below
/// the bar than 5 % of studies of normal noise have. Each by itself, as they may vary by different amounts.
pub(super) fn skewed(matrix: &DesignMatrix) -> Option<Finding> {
    let judged = matrix.cells.iter().enumerate();
    let judged = judged.filter(|(_, cell)| RUNS_LEAST <= cell.values.len());
    let judged: Vec<(usize, NormalPlot)> =
        judged.filter_map(|(at, cell)| Some((at, normal_plot(&cell.values)?))).collect();
    let mut skewed: Vec<&(usize, NormalPlot)> =
        judged.iter().filter(|(_, plot)| plot.correlation < plot.least).collect();
    skewed
        .sort_by(|(_, a), (_, b)| (a.least - a.correlation).total_cmp(&(b.least - b.correlation)));
    let (worst, plot) = skewed.last()?;
    if ALPHA < at_least(skewed.len(), judged.len(), BELOW_SHARE) {
        return None;
    }
    let subject = Subject::NotNormal {
        cells: skewed.len(),
        of: judged.len(),
        worst: matrix.runs[*worst].first()?.short_path(),
        correlation: plot.correlation,
        least: plot.least,
    };
    let effects = middles(matrix.response, &matrix.runs[*worst]);
    Some(Finding { effects, ..matrix.finding(FindingKind::Outlier, &[], subject, [*worst]) })
}

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
fn middles(response: &Metric, of: &[&Run]) -> Vec<EffectSize> {
    let values: Vec<f64> = of.iter().filter_map(|run| run.metric(response)).collect();
    let known = [
        (Quantity::Median, median_interval(&values, CONFIDENCE)),
        (Quantity::BootstrapMean, bootstrap_mean_interval(&values, CONFIDENCE)),
    ];
    let effects = known.into_iter().filter_map(|(of, interval)| {
        let unit = EffectUnit::Response;
        Some(EffectSize::new(of, unit, interval?.estimate, interval, values.len()))
    });
    effects.collect()
}
