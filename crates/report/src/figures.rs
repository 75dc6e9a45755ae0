//! Selects and draws the figures of a report, on a light and on a dark background. A plot is drawn if the runs have data for it and it adds something to the
//! earlier figures.

use crate::draw::figure::{Axis, Figure, Layer, Panel, Scale};
use crate::draw::{DrawOptions, Drawing, Theme, draw};
use crate::number::significant;
use crate::plot::data::Data;
use crate::plot::{Missing, Needs, PLOTS};
use crate::report::{FigureUse, NotDrawn, ReportFigure};
use crate::table::ReportTable;

/// Maximum number of pictures at the top of a page.
const LEAD_MAX: usize = 3;

/// Size of these pictures: each takes a third of the page.
const LEAD: DrawOptions = DrawOptions { width_in: Some(4.8), font_pt: 9.0, theme: Theme::Light };

/// Maximum height of these pictures, as a share of the width.
const LEAD_ASPECT_MAX: f64 = 0.9;

/// The figures in the order of the plots, and the plots that are not drawn, with reasons. Pictures are drawn only if the output shows them.
pub(super) fn figures(data: &Data, figure_use: FigureUse) -> (Vec<ReportFigure>, Vec<NotDrawn>) {
    let mut found: Vec<(String, Figure)> = Vec::new();
    let mut not_drawn: Vec<NotDrawn> = Vec::new();
    let plots = if figure_use == FigureUse::Nothing { &[] } else { PLOTS };
    for plot in plots {
        let name = plot.name.to_string();
        match plot.figure(data, None) {
            // A missing diagnosis needs no note.
            Err(_) if plot.needs == Needs::Diagnosis => {}
            Err(Missing { message, hint }) => not_drawn.push(NotDrawn { name, why: message, hint }),
            Ok(drawn) => match redundancy(&drawn, &found) {
                Some(why) => {
                    let hint = format!("`feedrate plot {name}` draws it anyway");
                    not_drawn.push(NotDrawn { name, why, hint });
                }
                None => found.push((name, drawn)),
            },
        }
    }
    let mut figures = Vec::new();
    let mut leads = 0;
    for (name, drawn) in found {
        let mut figure = ReportFigure {
            name,
            series: series(&drawn),
            values: values(&drawn),
            ..ReportFigure::default()
        };
        if figure_use == FigureUse::Pictures {
            figure.is_lead = leads < LEAD_MAX && aspect(&draw(&drawn, &LEAD)) <= LEAD_ASPECT_MAX;
            leads += usize::from(figure.is_lead);
            let options = if figure.is_lead { LEAD } else { DrawOptions::default() };
            [figure.svg, figure.svg_dark] = [Theme::Light, Theme::Dark]
                .map(|theme| draw(&drawn, &DrawOptions { theme, ..options }).svg);
        }
        figure.title.clone_from(&drawn.title);
        figure.caption.clone_from(&drawn.caption);
        figure.figure = Some(drawn);
        figures.push(figure);
    }
    (figures, not_drawn)
}

fn aspect(drawing: &Drawing) -> f64 {
    drawing.size_in.1 / drawing.size_in.0
}

/// The reason why a figure adds nothing: one point, bars of one kind, or values that an earlier figure shows. `None` if it adds something.
fn redundancy(drawn: &Figure, before: &[(String, Figure)]) -> Option<String> {
    let bars =
        drawn.panels.iter().flat_map(|panel| &panel.axes.layers).filter_map(|layer| match layer {
            Layer::Bars(bars) => Some(&bars.label),
            _ => None,
        });
    if let [label] = bars.collect::<Vec<_>>()[..] {
        return Some(format!("all are {label}"));
    }
    if drawn.panels.iter().all(has_one_place) {
        return Some("no series has two different x values, so nothing would be compared".into());
    }
    let all: Vec<_> = drawn.panels.iter().map(points).collect::<Option<_>>()?;
    let is_known = all.iter().all(|points| before.iter().any(|(_, figure)| shows(figure, points)));
    let (name, _) = before.iter().find(|(_, figure)| is_known && shows(figure, &all[0]))?;
    Some(format!("other figures show its values, the first in `{name}`"))
}

/// The values of a panel, with the name of their axis.
type Points<'a> = (&'a str, Vec<String>);

fn shows(figure: &Figure, wanted: &Points) -> bool {
    figure.panels.iter().filter_map(points).any(|shown| shown == *wanted)
}

/// Whether the points of each series share one x value: then the figure compares nothing.
fn has_one_place(panel: &Panel) -> bool {
    let is_bare = !panel.axes.layers.iter().any(|layer| matches!(layer, Layer::Bars(_)));
    let mut series = panel.all_series().map(|series| &series.points);
    is_bare && series.all(|points| points.iter().all(|point| point.x == points[0].x))
}

/// The sorted values of a panel with the name of their axis; `None` if the panel shows more than points.
fn points(panel: &Panel) -> Option<Points<'_>> {
    let axes = &panel.axes;
    let is_points = |layer: &Layer| matches!(layer, Layer::Series(_) | Layer::Rule(_));
    let mut values: Vec<String> = panel.points().map(|point| format!("{:.9e}", point.y)).collect();
    values.sort_unstable();
    let is_known = axes.layers.iter().all(is_points) && !values.is_empty();
    is_known.then_some((axes.y.label.as_str(), values))
}

/// The names of series; empty if there is only one.
fn series(drawn: &Figure) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for panel in &drawn.panels {
        for label in panel.axes.layers.iter().filter_map(Layer::label) {
            let name = panel.series_name(label);
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.len() < 2 { Vec::new() } else { names }
}

/// Approximate maximum of rows in a figure's table. Longer timelines are thinned out to every nth point.
const VALUES_MAX: usize = 400;

/// A table of all marks under the names of the axes, without empty columns.
fn values(drawn: &Figure) -> ReportTable {
    let axes = || drawn.panels.iter().map(|panel| &panel.axes);
    let x = common_label(axes().map(|axes| &axes.x));
    let y = common_label(axes().map(|axes| &axes.y));
    let every = drawn.points().count().div_ceil(VALUES_MAX).max(1);
    let mut rows = Vec::new();
    for panel in &drawn.panels {
        let mut name: Vec<String> = panel.title.iter().cloned().collect();
        if x.is_none() || y.is_none() {
            let axes = &panel.axes;
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
    let columns = ["Panel", "Series", x.unwrap_or("x"), y.unwrap_or("y"), "95 % interval", "n"];
    ReportTable::from_text(title, columns, rows).without_empty_columns()
}

/// The label that all axes share; `None` if they differ. Axes of named rows usually have no label.
fn common_label<'a>(axes: impl Iterator<Item = &'a Axis>) -> Option<&'a str> {
    let mut labels: Vec<&str> = axes.map(|axis| axis.label.as_str()).collect();
    labels.dedup();
    match labels.as_slice() {
        [""] => Some("Row"),
        [label] => Some(label),
        _ => None,
    }
}

/// The series, place, value, interval and number of runs of each mark.
fn marks(panel: &Panel, every: usize) -> Vec<[String; 5]> {
    let x = &panel.axes.x;
    let y = &panel.axes.y;
    let mut marks = Vec::new();
    for layer in &panel.axes.layers {
        let name = panel.series_name(layer.label().unwrap_or_default());
        match layer {
            Layer::Series(series) => {
                marks.extend(series.points.iter().step_by(every).map(|point| {
                    let interval = point.low.zip(point.high).map(|(low, high)| {
                        format!("{} to {}", significant(Some(low)), significant(Some(high)))
                    });
                    let runs = point.runs.map_or(String::new(), |runs| runs.to_string());
                    let pair = point.pair.map(|values| {
                        let [first, second] = values.map(|value| significant(Some(value)));
                        format!("{first} and {second}")
                    });
                    let interval = interval.or(pair).unwrap_or_default();
                    [name.clone(), axis_text(x, point.x), axis_text(y, point.y), interval, runs]
                }));
            }
            Layer::Bars(bars) => marks.extend(bars.bars.iter().map(|bar| {
                let length = significant(Some(bar.to - bar.from));
                [name.clone(), length, axis_text(y, bar.at), String::new(), String::new()]
            })),
            Layer::Span(_) | Layer::Rule(_) => {}
        }
    }
    marks
}

/// A value of an axis, or the name of its category.
fn axis_text(axis: &Axis, value: f64) -> String {
    match &axis.scale {
        Scale::Categories(names) => {
            names.get(value.round() as usize).cloned().unwrap_or_else(|| significant(Some(value)))
        }
        _ if value == value.round() && value.abs() < 1e6 => format!("{value:.0}"),
        _ => significant(Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::figure::{Axes, AxisRange, Bar, Bars, Point, Style, Tone};

    fn figure(axes: Axes) -> Figure {
        let panels = vec![Panel::from_axes(None, axes)];
        Figure { title: String::new(), caption: String::new(), panels, columns: 1 }
    }

    fn marks(x_label: &str, points: &[(f64, f64)]) -> Figure {
        let points = points.iter().map(|&(x, y)| Point::new(x, y)).collect();
        let layers = vec![Layer::series("", Tone::Hue(0), Style::Marks, points)];
        let [x, y] = [x_label, "AU"].map(|label| Axis::linear(label, AxisRange::FromZero));
        figure(Axes { x, y, layers, aspect: 0.6 })
    }

    fn bars(labels: &[&str]) -> Figure {
        let layer = |(at, label): (usize, &&str)| {
            let bars = vec![Bar { at: 0.0, from: at as f64, to: at as f64 + 1.0 }];
            Layer::Bars(Bars { label: (*label).into(), tone: Tone::Good, bars })
        };
        let layers = labels.iter().enumerate().map(layer).collect();
        let x = Axis::linear("Rows (runs)", AxisRange::FromZero);
        let y = Axis::categories("", vec!["all".into()]);
        figure(Axes { x, y, layers, aspect: 1.0 })
    }

    #[test]
    fn a_redundant_figure_is_left_out() {
        let before = [("first".to_string(), marks("processes", &[(1.0, 90.0), (2.0, 50.0)]))];
        for (drawn, expected) in [
            (marks("processes", &[(1.0, 90.0)]), Some("no series has two different x")),
            (
                marks("processes", &[(4.0, 90.0), (4.0, 50.0)]),
                Some("no series has two different x"),
            ),
            (marks("threads", &[(2.0, 50.0), (1.0, 90.0)]), Some("the first in `first`")),
            (marks("threads", &[(2.0, 50.0), (1.0, 91.0)]), None),
            (bars(&["done"]), Some("all are done")),
            (bars(&["done", "failed"]), None),
        ] {
            let why = redundancy(&drawn, &before);
            let has = |expected| why.as_ref().is_some_and(|why| why.contains(expected));
            assert!(expected.map_or(why.is_none(), has), "{why:?}: {expected:?}");
        }
    }
}
