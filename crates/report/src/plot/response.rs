//! Makes the axes of responses and of processes, and the points and lines of a response. Draws nothing.

use super::Missing;
use super::block::{BASELINE, PROCESSES_LABEL, PlotBlock};
use super::data::Data;
use crate::draw::figure::{
    Axes, Axis, AxisRange, Layer, Panel, Point, Rule, RuleLine, Scale, Style, Tone,
};
use feedrate_analysis::design::DesignCell;
use feedrate_analysis::estimate::mean_of_cells;
use feedrate_measure::metric::{Metric, Provenance, Unit};
use feedrate_measure::stats;
use feedrate_results::run::Run;

/// The axis of a response, with the divisor that converts values to its unit.
pub(super) struct ResponseAxis<'r> {
    pub(super) response: &'r Metric,
    pub(super) axis: Axis,
    pub(super) unit: f64,
    /// The target utilisation of these runs in percent; `None` if they differ, or the response is not a utilisation.
    target_percent: Option<f64>,
}

impl<'r> ResponseAxis<'r> {
    pub(super) fn new(response: &'r Metric, data: &Data) -> Self {
        let (unit, name) = match response.unit {
            Unit::Percent => (1.0, "%"),
            Unit::BytesPerSecond => (MB, MB_PER_SECOND),
            Unit::Bytes => (MB, "MB"),
            Unit::Files | Unit::Share | Unit::Ratio => (1.0, ""),
            other => (1.0, other.name()),
        };
        let estimated = estimate_note(response, data.used());
        let is_au = response.is_utilisation();
        let range = if is_au { AxisRange::AtLeast(0.0, 100.0) } else { AxisRange::FromZero };
        let axis = Axis {
            is_estimated: !estimated.is_empty(),
            ..Axis::linear(label(title(response), name, estimated), range)
        };
        let mut targets = data.used().map(|run| run.bar_percent);
        let first = if is_au { targets.next().flatten() } else { None };
        let target_percent = first.filter(|first| targets.all(|other| other == Some(*first)));
        ResponseAxis { response, axis, unit, target_percent }
    }

    /// A panel with this axis as y axis, and the target behind its layers.
    pub(super) fn panel(
        &self,
        title: Option<String>,
        x: Axis,
        layers: Vec<Layer>,
        aspect: f64,
    ) -> Panel {
        let target = self.target_percent.map(|at| {
            Layer::Rule(Rule { label: format!("target: {at} %"), at, line: RuleLine::Broken })
        });
        let layers = target.into_iter().chain(layers).collect();
        Panel::from_axes(title, Axes { x, y: self.axis.clone(), layers, aspect })
    }

    /// A line at the baseline, if the study declares one and it is among these cells.
    pub(super) fn baseline(&self, block: &PlotBlock<'_>, cells: &[&DesignCell]) -> Option<Layer> {
        let baseline = cells.iter().find(|cell| block.is_declared_baseline(cell))?;
        let at = self.point(block, 0.0, &[baseline])?.y;
        Some(Layer::Rule(Rule { label: BASELINE.into(), at, line: RuleLine::Dotted }))
    }

    /// The mean of the cells' means, with its interval. `None` if no cell has the response.
    pub(super) fn point(
        &self,
        block: &PlotBlock<'_>,
        x: f64,
        cells: &[&DesignCell],
    ) -> Option<Point> {
        let mut values = Vec::new();
        let mut folders = Vec::new();
        for cell in cells {
            let mut cell_values = Vec::new();
            for run in block.runs(cell) {
                let Some(value) = run.metric(self.response) else { continue };
                cell_values.push(value);
                folders.push(run.path.clone());
            }
            values.push(cell_values);
        }
        let estimate = if folders.len() > 1 { mean_of_cells(self.response, &values) } else { None };
        let (middle, interval) =
            estimate.or_else(|| Some((stats::mean(&values.concat())?, None)))?;
        let end = |end: f64| Some(end / self.unit).filter(|end| end.is_finite());
        let pair = pair(&values).map(|pair| pair.map(|value| value / self.unit));
        let interval = interval.filter(|_| pair.is_none());
        let low = interval.and_then(|interval| end(interval.low));
        let high = interval.and_then(|interval| end(interval.high));
        let runs = Some(folders.len());
        Some(Point { x, y: middle / self.unit, low, high, pair, runs, folders })
    }

    /// Marks of cells at their x values, with a series for each level of `factor`, or one series without a factor.
    pub(super) fn lines(
        &self,
        block: &PlotBlock<'_>,
        cells: &[&DesignCell],
        factor: Option<usize>,
        style: Style,
        place: impl Fn(&DesignCell) -> Option<f64>,
    ) -> Vec<Layer> {
        let mut layers = Vec::new();
        let has_baseline = cells.iter().any(|cell| block.is_declared_baseline(cell));
        for level in 0..factor.map_or(1, |factor| block.design.factors[factor].levels.len()) {
            let level_cells = cells
                .iter()
                .filter(|cell| factor.is_none_or(|factor| cell.levels[factor] == level));
            let points: Vec<Point> =
                level_cells.filter_map(|cell| self.point(block, place(cell)?, &[cell])).collect();
            let mut label =
                factor.map_or(String::new(), |factor| block.name_in_panel(factor, level));
            if has_baseline
                && factor.is_some_and(|factor| block.design.factors[factor].baseline == level)
            {
                label += &format!(" ({BASELINE})");
            }
            if !points.is_empty() {
                layers.push(Layer::series(label, Tone::Hue(level), style, points));
            }
        }
        layers
    }
}

/// The values of an experiment with two runs; `None` for other numbers of runs or experiments.
pub(super) fn pair(values: &[Vec<f64>]) -> Option<[f64; 2]> {
    let [values] = values else { return None };
    values.as_slice().try_into().ok()
}

/// Checks that a run has the response.
///
/// # Errors
/// No run has the response.
pub(super) fn check_known(response: &Metric, data: &Data) -> Result<(), Missing> {
    if data.used().any(|run| run.metric(response).is_some()) {
        return Ok(());
    }
    Err(Missing::new(
        format!("no run has the metric `{}`", response.id.name()),
        "choose another with `--response`; `feedrate list metrics NAME` shows the data that a metric needs",
    ))
}

/// The label of an axis: its name with the unit and a note on estimates in brackets.
pub(super) fn label(name: &str, unit: &str, estimated: &str) -> String {
    match (unit, estimated) {
        ("", "") => name.into(),
        (note, "") | ("", note) => format!("{name} ({note})"),
        _ => format!("{name} ({unit}, {estimated})"),
    }
}

/// A note on estimated values of a response; empty if none is estimated.
pub(super) fn estimate_note<'r>(
    response: &Metric,
    runs: impl Iterator<Item = &'r Run>,
) -> &'static str {
    let all: Vec<Provenance> = runs.filter_map(|run| run.provenance(response)).collect();
    match all.iter().filter(|provenance| **provenance == Provenance::Estimated).count() {
        0 => "",
        count if count == all.len() => "estimated",
        _ => "partly estimated",
    }
}

/// The name of a response on an axis.
pub(super) fn title(response: &Metric) -> &'static str {
    if response.axis.is_empty() { response.title } else { response.axis }
}

/// The kind of mean that marks of a response show: see [`Metric::average_interval`].
pub(super) fn means(response: &Metric) -> &'static str {
    if response.unit == Unit::Percent { "means" } else { "geometric means" }
}

/// Bytes in the unit of all pictures. A common unit makes pictures comparable.
pub(super) const MB: f64 = 1e6;
/// The unit of rates in pictures.
pub(super) const MB_PER_SECOND: &str = "MB/s";

/// Minimum of a bandwidth relative to the largest bandwidth of the same figure. A panel with less shows nothing.
pub(super) const VISIBLE_SHARE_MIN: f64 = 0.01;

/// An axis of the numbers of processes of all runs.
pub(super) fn processes_axis(data: &Data) -> Axis {
    number_axis(PROCESSES_LABEL, numbers_of_processes(data))
}

/// An axis of ascending numbers. Linear if labels fit: if the closest two numbers are at least a sixteenth of the range apart. Otherwise logarithmic.
pub(super) fn number_axis(label: &str, numbers: Vec<f64>) -> Axis {
    let closest = numbers.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let range = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
    let scale = if range <= 16.0 * closest { Scale::LinearAt } else { Scale::LogAt };
    Axis::new(label, scale(numbers), AxisRange::Tight)
}

/// The numbers of processes of all used runs, ascending.
pub(super) fn numbers_of_processes(data: &Data) -> Vec<f64> {
    let mut numbers: Vec<f64> =
        data.used().filter_map(|run| run.accelerators).map(f64::from).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}
