//! Throughput against processes, beside what it would be if it grew as they do, with fits where there are any.

use super::data::Data;
use super::groups::{
    Block, axis_of, blocks, means_of, of_intervals, point, processes, processes_axis,
};
use super::{Missing, Plot, against};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Spread, Style, Tone,
};
use crate::precision::CONFIDENCE;
use crate::response::Response;
use feedrate_measure::stats::{Scaling as Law, ScalingDoubt, amdahl, knee, universal_scalability};
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct Scaling;

static MEMBER: Member = Member {
    name: "scaling",
    summary: "Throughput against processes on logarithmic axes, with the ideal from the fewest processes, a fitted law and its knee",
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
        let (mut layers, mut fitted) = (Vec::new(), false);
        for (i, block) in blocks(runs).iter().enumerate() {
            let free: Vec<usize> = block.processes().into_iter().collect();
            let at = |group: &super::groups::Group<'_>| {
                point(processes(group.runs.first()?)?, &group.runs, response, unit)
            };
            let points: Vec<Point> =
                block.slice(&free).filter_map(at).filter(|point| point.y > 0.0).collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            let ideal = Point::at(last.x, first.y * last.x / first.x);
            let label = if layers.is_empty() { "ideal" } else { "" };
            if first.x < last.x {
                let ideal = vec![Point::at(first.x, first.y), ideal];
                layers.push(line(label.into(), Tone::Hue(6), Style::Dashes, ideal));
            }
            let name = if block.name.is_empty() { "measured".into() } else { block.name.clone() };
            let measured: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
            layers.push(against::joined(name, i, points));
            if let Some((label, law)) = law(&measured) {
                let curve = curve(&law, first_and_last(&measured));
                layers.push(line(of_block(block, label), Tone::Hue(i + 1), Style::Line, curve));
                fitted = true;
            }
            if let Some((x, y)) = bend(&measured) {
                let mark = vec![Point::at(x, y)];
                layers.push(line(of_block(block, "knee"), Tone::Hue(5), Style::Marks, mark));
            }
        }
        if layers.is_empty() {
            return Err(Missing::new(
                format!("no run has a `{}` above 0", response.name),
                "scaling is drawn from runs of several numbers of processes",
            ));
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
            "Scaling. Ideal: as many times the throughput of the fewest processes as there are more processes. {}{}",
            if fitted { OF_FITS } else { "" },
            of_intervals(&figure, means_of(response))
        );
        Ok(figure)
    }
}

const OF_FITS: &str = "Fit: the Universal Scalability Law, or Amdahl's where coherence is not told from none; the knee is its peak where that was reached, else where the measured curve bends (Kneedle). ";

/// The law that fits, where it may be drawn: four numbers of processes or more, none missed by more than a tenth, no growth that no law has.
fn law(points: &[(f64, f64)]) -> Option<(&'static str, Law)> {
    let universal = universal_scalability(points)?;
    let is_coherent = universal.interval(2, CONFIDENCE).is_some_and(|of| 0.0 < of.low);
    let (label, law) = match is_coherent {
        true => ("USL fit", universal),
        false => ("Amdahl fit", amdahl(points)?),
    };
    let unfit = [ScalingDoubt::Superlinear, ScalingDoubt::Misfit];
    (!law.doubts.iter().any(|doubt| unfit.contains(doubt))).then_some((label, law))
}

/// The peak of the law where it was reached, else the knee of what was measured.
fn bend(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let last = first_and_last(points).1;
    let fitted = law(points).map(|(_, law)| law);
    let peak = fitted.and_then(|law| Some((law.peak()?, law.throughput(law.peak()?))));
    peak.filter(|(x, _)| *x <= last).or_else(|| Some(points[knee(points)?]))
}

fn first_and_last(points: &[(f64, f64)]) -> (f64, f64) {
    let x = |point: Option<&(f64, f64)>| point.map_or(1.0, |point| point.0);
    (x(points.first()), x(points.last()))
}

/// Points that are evenly apart on a logarithmic axis; nothing beyond what was measured.
fn curve(law: &Law, (first, last): (f64, f64)) -> Vec<Point> {
    const STEPS: u32 = 40;
    let at = |step: u32| {
        let x = first * (last / first).powf(f64::from(step) / f64::from(STEPS));
        Point::at(x, law.throughput(x))
    };
    (0..=STEPS).map(at).collect()
}

/// Of several blocks each has its own.
fn of_block(block: &Block<'_>, what: &str) -> String {
    if block.name.is_empty() { what.into() } else { format!("{}, {what}", block.name) }
}

fn line(label: String, tone: Tone, style: Style, points: Vec<Point>) -> Layer {
    Layer::Series(Series { label, tone, style, spread: Spread::Y, points })
}
