//! The axes of responses and of processes, and the points and lines of a response. Draws nothing.

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

/// An axis with a unit, and what values are divided by.
pub(super) struct ResponseAxis<'r> {
    pub(super) response: &'r Metric,
    pub(super) axis: Axis,
    pub(super) unit: f64,
    /// The utilisation that is asked of all of these runs, in percent; `None` where they differ, or the response is none.
    bar_percent: Option<f64>,
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
        let estimated = estimated(response, data.used());
        let is_au = response.id.name().starts_with("au_");
        let range = if is_au { AxisRange::AtLeast(0.0, 100.0) } else { AxisRange::FromZero };
        let axis = Axis {
            is_estimated: !estimated.is_empty(),
            ..Axis::linear(label(title(response), name, estimated), range)
        };
        let mut bars = data.used().map(|run| run.bar_percent);
        let bar_percent = if is_au { bars.next().flatten() } else { None };
        let bar_percent = bar_percent.filter(|bar| bars.all(|other| other == Some(*bar)));
        ResponseAxis { response, axis, unit, bar_percent }
    }

    /// A panel with this axis upright, and the bar behind its layers.
    pub(super) fn panel(
        &self,
        title: Option<String>,
        x: Axis,
        layers: Vec<Layer>,
        aspect: f64,
    ) -> Panel {
        let bar = self.bar_percent.map(|at| {
            Layer::Rule(Rule { label: format!("asked for: {at} %"), at, line: RuleLine::Broken })
        });
        let layers = bar.into_iter().chain(layers).collect();
        Panel::from_axes(title, Axes { x, y: self.axis.clone(), layers, aspect })
    }

    /// A line of the baseline, where it is among these cells and the study says which it is.
    pub(super) fn baseline(&self, block: &PlotBlock<'_>, cells: &[&DesignCell]) -> Option<Layer> {
        let own = cells.iter().find(|cell| block.is_declared_baseline(cell))?;
        let at = self.point(block, 0.0, &[own])?.y;
        Some(Layer::Rule(Rule { label: BASELINE.into(), at, line: RuleLine::Dotted }))
    }

    /// The mean of the means of cells, with its interval. `None` where none has the response.
    pub(super) fn point(
        &self,
        block: &PlotBlock<'_>,
        x: f64,
        cells: &[&DesignCell],
    ) -> Option<Point> {
        let (mut values, mut folders) = (Vec::new(), Vec::new());
        for cell in cells {
            let mut own = Vec::new();
            for run in block.runs(cell) {
                let Some(value) = run.metric(self.response) else { continue };
                own.push(value);
                folders.push(run.path.clone());
            }
            values.push(own);
        }
        let estimate = if folders.len() > 1 { mean_of_cells(self.response, &values) } else { None };
        let (middle, interval) =
            estimate.or_else(|| Some((stats::mean(&values.concat())?, None)))?;
        let ends = interval.map(|of| [of.low, of.high].map(|end| end / self.unit));
        let [low, high] = [0, 1].map(|at| Some(ends?[at]).filter(|end| end.is_finite()));
        let runs = Some(folders.len());
        Some(Point { x, y: middle / self.unit, low, high, runs, folders })
    }

    /// Marks of cells, each at its place, for each level of a factor; of one kind without a factor. Joined where places are an order.
    pub(super) fn lines(
        &self,
        block: &PlotBlock<'_>,
        cells: &[&DesignCell],
        by: Option<usize>,
        style: Style,
        place: impl Fn(&DesignCell) -> Option<f64>,
    ) -> Vec<Layer> {
        let mut layers = Vec::new();
        let has_baseline = cells.iter().any(|cell| block.is_declared_baseline(cell));
        for level in 0..by.map_or(1, |by| block.design.factors[by].levels.len()) {
            let own = cells.iter().filter(|cell| by.is_none_or(|by| cell.levels[by] == level));
            let points: Vec<Point> =
                own.filter_map(|cell| self.point(block, place(cell)?, &[cell])).collect();
            let mut label = by.map_or(String::new(), |by| block.name_in_panel(by, level));
            if has_baseline && by.is_some_and(|by| block.design.factors[by].baseline == level) {
                label += &format!(" ({BASELINE})");
            }
            if !points.is_empty() {
                layers.push(Layer::series(label, Tone::Hue(level), style, points));
            }
        }
        layers
    }
}

/// # Errors
/// No run has the response.
pub(super) fn check_known(response: &Metric, data: &Data) -> Result<(), Missing> {
    if data.used().any(|run| run.metric(response).is_some()) {
        return Ok(());
    }
    Err(Missing::new(
        format!("no run has the response `{}`", response.id.name()),
        "choose another with `--response`; `feedrate list metrics NAME` says what a number needs",
    ))
}

/// The label of an axis: its name, with the unit and whether values are estimated in brackets.
pub(super) fn label(name: &str, unit: &str, estimated: &str) -> String {
    match (unit, estimated) {
        ("", "") => name.into(),
        (note, "") | ("", note) => format!("{name} ({note})"),
        _ => format!("{name} ({unit}, {estimated})"),
    }
}

/// The word for values of a response that were not measured but estimated; empty where none is.
pub(super) fn estimated<'r>(
    response: &Metric,
    runs: impl Iterator<Item = &'r Run>,
) -> &'static str {
    let all: Vec<Provenance> = runs.filter_map(|run| run.provenance(response)).collect();
    match all.iter().filter(|of| **of == Provenance::Estimated).count() {
        0 => "",
        count if count == all.len() => "estimated",
        _ => "partly estimated",
    }
}

/// The name of a response on an axis.
pub(super) fn title(response: &Metric) -> &'static str {
    if response.axis.is_empty() { response.title } else { response.axis }
}

/// The kind of mean that the marks of a response are: see [`Metric::middle`].
pub(super) fn means(response: &Metric) -> &'static str {
    if response.unit == Unit::Percent { "means" } else { "geometric means" }
}

/// Bytes are shown in this unit in all pictures, so that any two can be compared.
pub(super) const MB: f64 = 1e6;
/// Its name, of rates.
pub(super) const MB_PER_SECOND: &str = "MB/s";

/// An axis of the numbers of processes that runs had: even where the closest two are a sixteenth of it apart, so that their names have room.
pub(super) fn processes_axis(data: &Data) -> Axis {
    number_axis(PROCESSES_LABEL, numbers_of_processes(data))
}

/// The same of other numbers, ascending.
pub(super) fn number_axis(label: &str, numbers: Vec<f64>) -> Axis {
    let closest = numbers.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let range = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
    let scale = if range <= 16.0 * closest { Scale::LinearAt } else { Scale::LogAt };
    Axis::new(label, scale(numbers), AxisRange::Tight)
}

/// Ascending.
pub(super) fn numbers_of_processes(data: &Data) -> Vec<f64> {
    let mut numbers: Vec<f64> =
        data.used().filter_map(|run| run.accelerators).map(f64::from).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}
