//! Makes the panels of AU and throughput by epoch.

use super::data::Data;
use super::response::{ResponseAxis, pair};
use super::together::{self, SharedMark};
use crate::draw::figure::{Axis, AxisRange, Layer, Panel, Point, Scale, Style, Tone};
use feedrate_analysis::estimate::mean_of_cells;
use feedrate_results::run::Run;

/// Maximum number of tick labels that fit.
const TICKS_MAX: usize = 10;

/// A panel of each response for each group; none if no run has two epochs.
pub(super) fn panels(data: &Data, all: &[SharedMark]) -> Vec<Panel> {
    let runs = all.iter().flat_map(|mark| mark.experiments.iter().flatten());
    let epochs = runs.flat_map(|run| run.series.values()).map(Vec::len).max().unwrap_or(0);
    let mut panels = Vec::new();
    if epochs < 2 {
        return panels;
    }
    let axes: Vec<_> = data.responses().map(|response| ResponseAxis::new(response, data)).collect();
    let every = epochs.div_ceil(TICKS_MAX);
    let ticks: Vec<f64> = (1..=epochs).step_by(every).map(|epoch| epoch as f64).collect();
    for group in together::groups(all) {
        for y in &axes {
            let lines = group.iter().enumerate();
            let lines = lines.filter_map(|(i, mark)| line(mark, i, epochs, y)).collect();
            let x = Axis::new("Epoch", Scale::LinearAt(ticks.clone()), AxisRange::Tight);
            panels.push(y.panel(together::title(all, group), x, lines, 0.68));
        }
    }
    panels
}

/// The line of an experiment, or of several that share it.
fn line(mark: &SharedMark, hue: usize, epochs: usize, y: &ResponseAxis<'_>) -> Option<Layer> {
    // The line ends with the shortest run: after it, the mean would change because a run is missing.
    let epoch_counts = mark.experiments.iter().flatten();
    let epoch_counts = epoch_counts.filter_map(|run| run.series.get(&y.response.id).map(Vec::len));
    let common_epochs = epoch_counts.filter(|epochs| 1 < *epochs).min().unwrap_or(0).min(epochs);
    let mut points = Vec::new();
    for epoch in 0..common_epochs {
        let value = |run: &Run| {
            let series = run.series.get(&y.response.id).filter(|series| 1 < series.len())?;
            *series.get(epoch)?
        };
        let cells = mark.values(value);
        let Some((middle, interval)) = mean_of_cells(y.response, &cells) else { continue };
        let pair = pair(&cells).map(|pair| pair.map(|value| value / y.unit));
        let interval = interval.filter(|_| pair.is_none());
        points.push(Point {
            pair,
            low: interval.map(|ends| ends.low / y.unit),
            high: interval.map(|ends| ends.high / y.unit),
            runs: Some(cells.iter().map(Vec::len).sum()),
            ..Point::new((epoch + 1) as f64, middle / y.unit)
        });
    }
    let is_known = !points.is_empty();
    is_known.then(|| Layer::series(mark.label.clone(), Tone::Hue(hue), Style::Joined, points))
}
