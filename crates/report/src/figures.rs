//! The figures of a report: every plot that its runs have enough for and that says something which no figure before it says, drawn on a light and a dark
//! ground.

use crate::draw::figure::{Axis, Figure, Layer, Panel, Scale};
use crate::draw::{Drawing, Look, Theme, draw};
use crate::number::significant;
use crate::plot::data::Data;
use crate::plot::{Missing, Needs, PLOTS};
use crate::report::{FigureUse, NotDrawn, ReportFigure};
use crate::table::ReportTable;

/// Pictures that a page opens with.
const LEAD_MAX: usize = 3;

/// Size of these: a third of a page each, side by side.
const LEAD: Look = Look { width_in: Some(4.8), font_pt: 9.0, theme: Theme::Light };

/// Height of the tallest of these, as a share of its width.
const LEAD_ASPECT_MAX: f64 = 0.9;

/// In the order of the plots, and those that the data have not enough for. Drawn only where pictures are shown.
pub(super) fn figures(data: &Data, figure_use: FigureUse) -> (Vec<ReportFigure>, Vec<NotDrawn>) {
    let (mut found, mut not_drawn): (Vec<(String, Figure)>, Vec<NotDrawn>) = Default::default();
    let plots = if figure_use == FigureUse::Nothing { &[] } else { PLOTS };
    for plot in plots {
        let name = plot.name.to_string();
        match plot.figure(data, None) {
            // Only diagnoses have one.
            Err(_) if plot.needs == Needs::Diagnosis => {}
            Err(Missing { message, hint }) => not_drawn.push(NotDrawn { name, why: message, hint }),
            Ok(drawn) => match says_nothing(&drawn, &found) {
                Some(why) => {
                    let hint = format!("`feedrate plot {name}` draws it all the same");
                    not_drawn.push(NotDrawn { name, why, hint });
                }
                None => found.push((name, drawn)),
            },
        }
    }
    let (mut figures, mut leads) = (Vec::new(), 0);
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
            let look = if figure.is_lead { LEAD } else { Look::default() };
            [figure.svg, figure.svg_dark] =
                [Theme::Light, Theme::Dark].map(|theme| draw(&drawn, &Look { theme, ..look }).svg);
        }
        (figure.title, figure.caption) = (drawn.title, drawn.caption);
        figures.push(figure);
    }
    (figures, not_drawn)
}

fn aspect(drawing: &Drawing) -> f64 {
    drawing.size_in.1 / drawing.size_in.0
}

/// The reason for which nobody learns anything from a figure: a plot of one point, bars of one kind, values that stand in one before it.
fn says_nothing(drawn: &Figure, before: &[(String, Figure)]) -> Option<String> {
    let bars =
        drawn.panels.iter().flat_map(|panel| &panel.axes.layers).filter_map(|layer| match layer {
            Layer::Bars(bars) => Some(&bars.label),
            _ => None,
        });
    if let [label] = bars.collect::<Vec<_>>()[..] {
        return Some(format!("all are {label}"));
    }
    if drawn.panels.iter().all(is_of_one_place) {
        return Some("no series has two places on its axis: nothing would be compared".into());
    }
    let all: Vec<_> = drawn.panels.iter().map(points).collect::<Option<_>>()?;
    let is_known = all.iter().all(|own| before.iter().any(|(_, of)| shows(of, own)));
    let (name, _) = before.iter().find(|(_, of)| is_known && shows(of, &all[0]))?;
    Some(format!("its values stand in other figures, the first in `{name}`"))
}

/// The values of a panel, with the name of their axis.
type Points<'a> = (&'a str, Vec<String>);

fn shows(figure: &Figure, own: &Points) -> bool {
    figure.panels.iter().filter_map(points).any(|of| of == *own)
}

/// Whether the points of each series of a panel stand above one another, so that none compares two places.
fn is_of_one_place(panel: &Panel) -> bool {
    let is_bare = !panel.axes.layers.iter().any(|layer| matches!(layer, Layer::Bars(_)));
    let mut series = panel.all_series().map(|series| &series.points);
    is_bare && series.all(|points| points.iter().all(|point| point.x == points[0].x))
}

/// The values of a panel under the name of their axis, in order; `None` of one that shows other things than points.
fn points(panel: &Panel) -> Option<Points<'_>> {
    let axes = &panel.axes;
    let is_points = |layer: &Layer| matches!(layer, Layer::Series(_) | Layer::Rule(_));
    let mut values: Vec<String> = panel.points().map(|point| format!("{:.9e}", point.y)).collect();
    values.sort_unstable();
    let is_known = axes.layers.iter().all(is_points) && !values.is_empty();
    is_known.then_some((axes.y.label.as_str(), values))
}

/// Names of series; none where there is only one.
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

/// Rows of a figure's table, about: of a timeline, which has thousands of points, every so many are kept.
const VALUES_MAX: usize = 400;

/// Each mark, under the names of the axes. Columns that nothing stands in are left out.
fn values(drawn: &Figure) -> ReportTable {
    let axes = || drawn.panels.iter().map(|panel| &panel.axes);
    let [x, y] =
        [common_label(axes().map(|axes| &axes.x)), common_label(axes().map(|axes| &axes.y))];
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
    let [x, y] = [x.unwrap_or("x"), y.unwrap_or("y")];
    let columns = ["Panel", "Series", x, y, "95 % interval", "n"];
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
    let (x, y) = (&panel.axes.x, &panel.axes.y);
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
                    let interval = interval.unwrap_or_default();
                    [name.clone(), at(x, point.x), at(y, point.y), interval, runs]
                }));
            }
            Layer::Bars(bars) => marks.extend(bars.bars.iter().map(|bar| {
                let length = significant(Some(bar.to - bar.from));
                [name.clone(), length, at(y, bar.at), String::new(), String::new()]
            })),
            Layer::Span(_) | Layer::Rule(_) => {}
        }
    }
    marks
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::figure::{Axes, AxisRange, Bar, Bars, Point, Style, Tone};

    fn figure(axes: Axes) -> Figure {
        let panels = vec![Panel::from_axes(None, axes)];
        Figure { title: String::new(), caption: String::new(), panels, columns: 1 }
    }

    fn marks(x_label: &str, points: &[(f64, f64)]) -> Figure {
        let points = points.iter().map(|&(x, y)| Point::at(x, y)).collect();
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
    fn a_figure_that_says_nothing_new_is_left_out() {
        let before = [("first".to_string(), marks("processes", &[(1.0, 90.0), (2.0, 50.0)]))];
        for (drawn, expected) in [
            (marks("processes", &[(1.0, 90.0)]), Some("no series has two places")),
            (marks("processes", &[(4.0, 90.0), (4.0, 50.0)]), Some("no series has two places")),
            (marks("threads", &[(2.0, 50.0), (1.0, 90.0)]), Some("the first in `first`")),
            (marks("threads", &[(2.0, 50.0), (1.0, 91.0)]), None),
            (bars(&["done"]), Some("all are done")),
            (bars(&["done", "failed"]), None),
        ] {
            let why = says_nothing(&drawn, &before);
            let has = |expected| why.as_ref().is_some_and(|why| why.contains(expected));
            assert!(expected.map_or(why.is_none(), has), "{why:?}: {expected:?}");
        }
    }
}
