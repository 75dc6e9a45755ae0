//! Throughput against processes, beside what it would be if it grew as they do, with fits where there are any.

use super::data::Data;
use super::groups::{axis_of, blocks, means_of, of_intervals, point, processes, processes_axis};
use super::{Missing, Plot, against};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Spread, Style, Tone,
};
use crate::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct Scaling;

static MEMBER: Member = Member {
    name: "scaling",
    summary: "Throughput against processes on logarithmic axes, with the ideal from the fewest processes, and fits",
    abilities: &[],
};

impl Plot for Scaling {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn response(&self) -> Option<&'static str> {
        Some("delivered_bytes_per_second")
    }

    fn figure(&self, data: &Data, response: Option<&'static Response>) -> Result<Figure, Missing> {
        let response = response.ok_or_else(Missing::runs)?;
        let runs = &data.runs;
        let (y, unit) = axis_of(response, runs);
        let mut layers = Vec::new();
        for (i, block) in blocks(runs).iter().enumerate() {
            let free: Vec<usize> = block.processes().into_iter().collect();
            let at = |group: &super::groups::Group<'_>| {
                point(processes(group.runs.first()?)?, &group.runs, response, unit)
            };
            let points: Vec<Point> =
                block.slice(&free).filter_map(at).filter(|point| point.y > 0.0).collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            if first.x == last.x {
                continue;
            }
            let ideal = Point::at(last.x, first.y * last.x / first.x);
            let label = if layers.is_empty() { "ideal" } else { "" };
            if first.x < last.x {
                let ideal = vec![Point::at(first.x, first.y), ideal];
                layers.push(line(label.into(), Tone::Hue(6), Style::Dashes, ideal));
            }
            let name = if block.name.is_empty() { "measured".into() } else { block.name.clone() };
            layers.push(against::joined(name, i, points));
        }
        if layers.is_empty() {
            return Err(Missing::new(
                format!(
                    "no runs with a `{}` above 0 differ in the number of processes alone",
                    response.name
                ),
                "run one workload with several numbers of processes and all else the same",
            ));
        }
        for (i, fit) in data.fits.iter().enumerate() {
            let points = fit.points.iter().map(|(x, y)| Point::at(*x, y / unit)).collect();
            layers.push(line(fit.label.clone(), Tone::Hue(i + 1), Style::Line, points));
        }
        let y = Axis { scale: Scale::Log10, range: Range::Tight, ..y };
        let axes = Axes { x: processes_axis(runs), y, layers, aspect: 0.75 };
        let mut figure = Figure {
            title: "Throughput against processes, and the ideal".into(),
            caption: String::new(),
            panels: vec![Panel::axes(None, axes)],
            columns: 1,
            naming: Naming::Direct,
        };
        figure.caption = format!(
            "Scaling. Ideal: as many times the throughput of the fewest processes as there are more processes. {}",
            of_intervals(&figure, means_of(response))
        );
        Ok(figure)
    }
}

fn line(label: String, tone: Tone, style: Style, points: Vec<Point>) -> Layer {
    Layer::Series(Series { label, tone, style, spread: Spread::Y, points })
}
