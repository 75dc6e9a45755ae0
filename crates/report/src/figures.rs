//! The figures of a report: every plot that its runs have enough for, drawn on a light and a dark ground.

use crate::draw::figure::{Axes, Axis, Figure, Layer, Panel, PanelContent, Scale, Series, Style};
use crate::draw::{Look, Theme, draw};
use crate::number::significant;
use crate::plot::data::Data;
use crate::plot::{Missing, Needs, PLOTS};
use crate::report::{NotDrawn, ReportFigure};
use crate::table::ReportTable;

/// In the order of the plots, and those that the data have not enough for.
pub(super) fn figures(data: &Data) -> (Vec<ReportFigure>, Vec<NotDrawn>) {
    let (mut figures, mut not_drawn) = (Vec::new(), Vec::new());
    for plot in PLOTS {
        let name = plot.member.name.to_string();
        match plot.figure(data, None) {
            // Only searches and diagnoses are asked for one.
            Err(_) if matches!(plot.needs, Needs::Search | Needs::Diagnosis) => {}
            Err(Missing { message, hint }) => not_drawn.push(NotDrawn { name, why: message, hint }),
            Ok(drawn) => {
                let [svg, dark] = [Theme::Light, Theme::Dark]
                    .map(|theme| draw(&drawn, &Look { theme, ..Look::default() }).svg);
                let (series, values) = (series(&drawn), values(&drawn));
                let Figure { title, caption, .. } = drawn;
                let svg_dark = Some(dark);
                figures.push(ReportFigure { name, title, caption, svg, svg_dark, series, values });
            }
        }
    }
    (figures, not_drawn)
}

/// Names of series; none where there is only one.
fn series(drawn: &Figure) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for panel in &drawn.panels {
        for label in panel.layers().iter().filter_map(Layer::label) {
            let name = panel.series_name(label);
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.len() < 2 { Vec::new() } else { names }
}

/// Rows of a figure's table, about: of a timeline, which has thousands of points, every so many are kept.
const VALUES_MAX: usize = 400;

/// Each mark, under the names of the axes. Columns that nothing stands in are left out.
fn values(drawn: &Figure) -> ReportTable {
    let axes = || drawn.panels.iter().filter_map(Panel::axes);
    let [x, y] =
        [common_label(axes().map(|axes| &axes.x)), common_label(axes().map(|axes| &axes.y))];
    let every = drawn.points().count().div_ceil(VALUES_MAX).max(1);
    let mut rows = Vec::new();
    for panel in &drawn.panels {
        let mut name: Vec<String> = panel.title.iter().cloned().collect();
        if let (Some(axes), true) = (panel.axes(), x.is_none() || y.is_none()) {
            let labels = [axes.y.label.as_str(), axes.x.label.as_str()];
            let labels: Vec<&str> = labels.into_iter().filter(|label| !label.is_empty()).collect();
            name.push(labels.join(" by "));
        }
        let marks = marks(panel, every).into_iter();
        rows.extend(marks.map(|mark| [vec![name.join(": ")], mark.to_vec()].concat()));
    }
    let title = match every {
        1 => drawn.title.clone(),
        every => format!("{}, one point of {every}", drawn.title),
    };
    let [x, y] = [x.unwrap_or("x"), y.unwrap_or("y")];
    let is_band = |series: &Series| series.style == Style::Band;
    let has_band = drawn.panels.iter().flat_map(Panel::all_series).any(is_band);
    // What a record leaves open is no interval of 95 %.
    let interval = if has_band { "Interval" } else { "95 % interval" };
    let columns = ["Panel", "Series", x, y, interval, "n"];
    ReportTable::from_text(title, columns, rows).without_empty_columns()
}

/// The label that axes have; `None` where panels differ. Rows have a name each and, mostly, none for all.
fn common_label<'a>(axes: impl Iterator<Item = &'a Axis>) -> Option<&'a str> {
    let mut labels: Vec<&str> = axes.map(|axis| axis.label.as_str()).collect();
    labels.dedup();
    match labels.as_slice() {
        [""] => Some("Row"),
        [one] => Some(one),
        _ => None,
    }
}

/// Series, place, value, interval and number of runs of each mark.
fn marks(panel: &Panel, every: usize) -> Vec<[String; 5]> {
    let mut marks = Vec::new();
    match &panel.content {
        PanelContent::Axes(Axes { x, y, layers, .. }) => {
            for layer in layers {
                let name = panel.series_name(layer.label().unwrap_or_default());
                match layer {
                    Layer::Series(series) => {
                        for point in series.points.iter().step_by(every) {
                            let interval = point.low.zip(point.high).map(|(low, high)| {
                                format!("{} to {}", significant(Some(low)), significant(Some(high)))
                            });
                            let runs = point.runs.map(|runs| runs.to_string());
                            let [interval, runs] = [interval, runs].map(Option::unwrap_or_default);
                            marks.push([
                                name.clone(),
                                at(x, point.x),
                                at(y, point.y),
                                interval,
                                runs,
                            ]);
                        }
                    }
                    Layer::Bars(bars) => marks.extend(bars.bars.iter().map(|bar| {
                        mark(&name, significant(Some(bar.to - bar.from)), at(y, bar.at))
                    })),
                    Layer::Span(_) | Layer::Rule { .. } => {}
                }
            }
        }
        PanelContent::Pie { slices } => {
            let values = slices.iter().map(|of| (&of.label, significant(Some(of.value))));
            marks.extend(values.map(|(label, value)| mark(label, String::new(), value)));
        }
        PanelContent::Matrix(matrix) => {
            for (name, cells) in matrix.rows.iter().zip(&matrix.cells) {
                let cells = matrix.columns.iter().zip(cells);
                let known = cells.filter_map(|(column, cell)| Some((column, cell.as_ref()?)));
                marks.extend(known.map(|(at, cell)| mark(name, at.clone(), cell.text.clone())));
            }
        }
    }
    marks
}

/// Without interval and runs.
fn mark(series: &str, x: String, y: String) -> [String; 5] {
    [series.into(), x, y, String::new(), String::new()]
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
