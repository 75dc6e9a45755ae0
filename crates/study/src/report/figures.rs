//! The figures of a report: every plot that its runs have enough for, drawn on a light and a dark ground.

use super::number::significant;
use super::{Figure, NotDrawn, Table};
use crate::draw::figure::{self, Axes, Axis, Content, Layer, Panel, Scale};
use crate::draw::{Look, Theme, draw};
use crate::plot::data::Data;
use crate::plot::{Missing, PLOTS, Plot, figure_of};
use crate::response::Response;

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
    let svg = |theme| draw(&drawn, &Look { theme, ..Look::default() }).svg();
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
        drawn.panels.iter().flat_map(|panel| layers(panel).iter().map(move |layer| (panel, layer)))
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

fn layers(panel: &Panel) -> &[Layer] {
    match &panel.content {
        Content::Axes(axes) => &axes.layers,
        Content::Pie { .. } | Content::Matrix(_) => &[],
    }
}

/// Rows of a figure's table, at most: a timeline has thousands of points.
const VALUES_MAX: usize = 400;

/// Series, place, value and interval of each mark.
fn values(drawn: &figure::Figure) -> Table {
    let mut rows = Vec::new();
    for panel in &drawn.panels {
        let title = panel.title.clone().unwrap_or_default();
        match &panel.content {
            Content::Axes(axes) => {
                for layer in &axes.layers {
                    rows.extend(
                        of_layer(panel, layer, axes).into_iter().map(|row| with(&title, row)),
                    );
                }
            }
            Content::Pie { slices } => rows.extend(slices.iter().map(|slice| {
                let value = significant(Some(slice.value));
                with(
                    &title,
                    [slice.label.clone(), String::new(), value, String::new(), String::new()],
                )
            })),
            Content::Matrix(matrix) => {
                for (name, cells) in matrix.rows.iter().zip(&matrix.cells) {
                    for (column, cell) in matrix.columns.iter().zip(cells) {
                        let Some(cell) = cell else { continue };
                        let place = column.clone();
                        rows.push(with(
                            &title,
                            [name.clone(), place, cell.text.clone(), String::new(), String::new()],
                        ));
                    }
                }
            }
        }
    }
    if VALUES_MAX < rows.len() {
        rows.clear();
    }
    Table {
        title: drawn.title.clone(),
        columns: ["Panel", "Series", "x", "y", "95 % interval", "n"].map(String::from).to_vec(),
        rows,
    }
}

fn with(title: &str, row: [String; 5]) -> Vec<String> {
    std::iter::once(title.to_string()).chain(row).collect()
}

fn of_layer(panel: &Panel, layer: &Layer, axes: &Axes) -> Vec<[String; 5]> {
    let (x, y) = (&axes.x, &axes.y);
    match layer {
        Layer::Series(series) => series
            .points
            .iter()
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
                let category = match bars.on {
                    figure::Spread::X => at(x, place),
                    figure::Spread::Y => at(y, place),
                };
                [panel.series_name(&bars.label), category, height, String::new(), String::new()]
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
