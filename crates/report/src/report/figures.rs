//! The figures of a report: every plot that its runs have enough for, drawn on a light and a dark ground.

use super::number::significant;
use super::{Figure, NotDrawn, Table};
use crate::draw::figure::{self, Axes, Axis, Content, Layer, Panel, Scale};
use crate::draw::{Look, Theme, draw};
use crate::plot::data::Data;
use crate::plot::{Missing, PLOTS, Plot, figure_of};
use feedrate_results::response::Response;

/// In the order of the plots, and those that the data have not enough for.
pub(super) fn figures(data: &Data) -> (Vec<Figure>, Vec<NotDrawn>) {
    let (mut figures, mut not_drawn) = (Vec::new(), Vec::new());
    for plot in PLOTS {
        match one(*plot, data) {
            Ok(figure) => figures.push(figure),
            Err(Missing { message, hint }) => {
                let name = plot.member().name.into();
                not_drawn.push(NotDrawn { name, why: message, hint });
            }
        }
    }
    (figures, not_drawn)
}

fn one(plot: &dyn Plot, data: &Data) -> Result<Figure, Missing> {
    let response = plot.response().and_then(|name| Response::find(name).ok());
    let drawn = figure_of(plot, data, response)?;
    let svg = |theme| draw(&drawn, &Look { theme, ..Look::default() }).svg;
    Ok(Figure {
        name: plot.member().name.into(),
        title: drawn.title.clone(),
        caption: drawn.caption.clone(),
        svg: svg(Theme::Light),
        svg_dark: Some(svg(Theme::Dark)),
        series: series(&drawn),
        values: values(&drawn),
    })
}

/// Names that more than one is told by.
fn series(drawn: &figure::Figure) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (panel, layer) in
        drawn.panels.iter().flat_map(|panel| panel.layers().iter().map(move |layer| (panel, layer)))
    {
        let label = match layer {
            Layer::Series(series) => &series.label,
            Layer::Bars(bars) => &bars.label,
            Layer::Span(_) | Layer::Rule { .. } => continue,
        };
        let name = panel.series_name(label);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() < 2 { Vec::new() } else { names }
}

/// Rows of a figure's table, about: of a timeline, which has thousands of points, every so many are kept.
const VALUES_MAX: usize = 400;

/// Series, place, value and interval of each mark, under the names of the axes. Columns that nothing stands in are left out.
fn values(drawn: &figure::Figure) -> Table {
    let all = || drawn.panels.iter().filter_map(Panel::axes);
    let x = heading(all().map(|axes| &axes.x), "x");
    let y = heading(all().map(|axes| &axes.y), "y");
    let are_of_all = x != "x" && y != "y";
    let points: usize = drawn.panels.iter().flat_map(Panel::layers).map(points).sum();
    let every = points.div_ceil(VALUES_MAX).max(1);
    let mut rows = Vec::new();
    for panel in &drawn.panels {
        let name = if are_of_all { panel.title.clone().unwrap_or_default() } else { named(panel) };
        rows.extend(of_panel(panel, every).into_iter().map(|row| with(&name, row)));
    }
    let columns = ["Panel".to_string(), "Series".into(), x, y, "95 % interval".into(), "n".into()];
    let is_filled = |at: &usize| rows.iter().any(|row: &Vec<String>| !row[*at].is_empty());
    let kept: Vec<usize> = (0..columns.len()).filter(is_filled).collect();
    let only = |row: &[String]| kept.iter().map(|&at| row[at].clone()).collect();
    let title = match every {
        1 => drawn.title.clone(),
        every => format!("{}, one point of {every}", drawn.title),
    };
    Table { title, columns: only(&columns), rows: rows.iter().map(|row| only(row)).collect() }
}

/// The label that axes have, or `otherwise` where panels differ. One of categories may have none.
fn heading<'a>(axes: impl Iterator<Item = &'a Axis>, otherwise: &str) -> String {
    let mut labels: Vec<&str> = axes.map(label).collect();
    labels.retain(|label| !label.is_empty());
    labels.dedup();
    match labels.as_slice() {
        [one] => (*one).into(),
        _ => otherwise.into(),
    }
}

fn label(axis: &Axis) -> &str {
    match (&axis.scale, axis.label.as_str()) {
        (Scale::Categories(_), "") => "Of",
        (_, label) => label,
    }
}

/// Of panels with axes of their own what these are.
fn named(panel: &Panel) -> String {
    let title = panel.title.iter().cloned();
    let axes = panel.axes().map(|axes| format!("{} by {}", label(&axes.y), label(&axes.x)));
    title.chain(axes).collect::<Vec<_>>().join(": ")
}

fn points(layer: &Layer) -> usize {
    match layer {
        Layer::Series(series) => series.points.len(),
        Layer::Bars(_) | Layer::Span(_) | Layer::Rule { .. } => 0,
    }
}

fn of_panel(panel: &Panel, every: usize) -> Vec<[String; 5]> {
    let blank = String::new;
    match &panel.content {
        Content::Axes(axes) => {
            axes.layers.iter().flat_map(|layer| of_layer(panel, layer, axes, every)).collect()
        }
        Content::Pie { slices } => {
            let of = |slice: &figure::Slice| {
                let value = significant(Some(slice.value));
                [slice.label.clone(), blank(), value, blank(), blank()]
            };
            slices.iter().map(of).collect()
        }
        Content::Matrix(matrix) => {
            let mut rows = Vec::new();
            for (name, cells) in matrix.rows.iter().zip(&matrix.cells) {
                for (column, cell) in matrix.columns.iter().zip(cells) {
                    let of = |cell: &figure::Cell| {
                        [name.clone(), column.clone(), cell.text.clone(), blank(), blank()]
                    };
                    rows.extend(cell.as_ref().map(of));
                }
            }
            rows
        }
    }
}

fn with(title: &str, row: [String; 5]) -> Vec<String> {
    std::iter::once(title.to_string()).chain(row).collect()
}

fn of_layer(panel: &Panel, layer: &Layer, axes: &Axes, every: usize) -> Vec<[String; 5]> {
    let (x, y) = (&axes.x, &axes.y);
    match layer {
        Layer::Series(series) => series
            .points
            .iter()
            .step_by(every)
            .map(|point| {
                let interval = point.low.zip(point.high).map_or(String::new(), |(low, high)| {
                    format!("{} to {}", significant(Some(low)), significant(Some(high)))
                });
                let runs = point.runs.map_or(String::new(), |runs| runs.to_string());
                [panel.series_name(&series.label), at(x, point.x), at(y, point.y), interval, runs]
            })
            .collect(),
        Layer::Bars(bars) => bars
            .bars
            .iter()
            .map(|bar| {
                let (place, height) = (bar.at, significant(Some(bar.to - bar.from)));
                let (x, y) = match bars.on {
                    figure::Spread::X => (at(x, place), height),
                    figure::Spread::Y => (height, at(y, place)),
                };
                [panel.series_name(&bars.label), x, y, String::new(), String::new()]
            })
            .collect(),
        Layer::Span(_) | Layer::Rule { .. } => Vec::new(),
    }
}

/// A value of an axis; of categories its name.
fn at(axis: &Axis, value: f64) -> String {
    match &axis.scale {
        Scale::Categories(names) => {
            names.get(value.round() as usize).cloned().unwrap_or_else(|| significant(Some(value)))
        }
        _ if value == value.round() && value.abs() < 1e6 => format!("{value:.0}"),
        _ => significant(Some(value)),
    }
}
