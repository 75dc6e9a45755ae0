//! The curve of a search: the response at each number that was tried, what it shows there, and the bound.

use super::block::PROCESSES_LABEL;
use super::caption::intervals;
use super::data::Data;
use super::response::{ResponseAxis, number_axis};
use crate::draw::figure::{Axes, Figure, Layer, Panel, Point, Rule, RuleLine, Style, Tone};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_measure::stats;
use feedrate_results::search::ACCELERATORS;
use feedrate_results::search::{Certainty, SearchResult, SearchedNumber};

/// A panel for each search; `None` where there is none.
pub(super) fn figure(data: &Data) -> Option<Figure> {
    let known = data.searches.iter().filter_map(|of| Some((of, Metric::find(&of.response).ok()?)));
    let panels: Vec<Panel> = known.map(|(of, response)| panel(of, response, data)).collect();
    let title = "The search: what holds at which number".into();
    let caption = format!(
        "{} What decides a number is an interval that is wider from three runs on, as it is looked at after each of them.",
        intervals(&panels, "means")
    );
    let columns = panels.len().min(2);
    (!panels.is_empty()).then_some(Figure { title, caption, columns, panels })
}

fn panel(of: &SearchResult, response: &Metric, data: &Data) -> Panel {
    let y = ResponseAxis::new(response, data);
    let label = if of.key == ACCELERATORS { PROCESSES_LABEL } else { of.key.as_str() };
    let x = number_axis(label, of.numbers.iter().map(|at| at.number as f64).collect());
    let measured: Vec<(&SearchedNumber, Point)> =
        of.numbers.iter().filter_map(|at| Some((at, point(at, &y)?))).collect();
    let line = measured.iter().map(|(_, point)| Point::at(point.x, point.y)).collect();
    let mut layers = vec![
        Layer::Rule(Rule {
            label: "asked for".into(),
            at: of.bound / y.unit,
            line: RuleLine::Broken,
        }),
        Layer::series("", Tone::Faint, Style::Line, line),
    ];
    for (name, state, tone) in [
        ("holds", Certainty::Holds, Tone::Good),
        ("not decided", Certainty::NotDecided, Tone::Hue(0)),
        ("fails", Certainty::Fails, Tone::Bad),
    ] {
        let own = measured.iter().filter(|(at, _)| at.state == state);
        let points: Vec<Point> = own.map(|(_, point)| point.clone()).collect();
        if !points.is_empty() {
            layers.push(Layer::series(name, tone, Style::Marks, points));
        }
    }
    let title = (1 < data.searches.len()).then(|| of.workload.clone());
    Panel::from_axes(title, Axes { x, y: y.axis, layers, aspect: 0.68 })
}

/// The mean of the runs at a number; `None` where none has the response.
fn point(at: &SearchedNumber, y: &ResponseAxis<'_>) -> Option<Point> {
    let highest = if y.response.unit == Unit::Percent { 100.0 } else { f64::INFINITY };
    let interval = stats::mean_interval(&at.values, CONFIDENCE);
    Some(Point {
        x: at.number as f64,
        y: at.mean? / y.unit,
        low: interval.map(|of| of.low.max(0.0) / y.unit),
        high: interval.map(|of| of.high.min(highest) / y.unit),
        runs: Some(at.values.len()),
        folders: at.run_dirs.iter().map(Into::into).collect(),
    })
}
