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
        let blocks = blocks(runs);
        for (i, block) in blocks.iter().enumerate() {
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
            let measured: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
            let law = law(&measured);
            layers.push(match law {
                Some(_) => line(name, Tone::Hue(i), Style::Marks, points),
                None => against::joined(name, i, points),
            });
            let tone = Tone::Hue(if blocks.len() == 1 { 1 } else { i });
            if let Some((label, law)) = &law {
                let curve = curve(law, first_and_last(&measured));
                layers.push(line(of_block(block, label), tone, Style::Line, curve));
                fitted = true;
            }
            if let Some((x, y)) = bend(&measured, law.as_ref().map(|(_, law)| law)) {
                let least = measured.iter().map(|point| point.1).fold(y, f64::min);
                let name = of_block(block, &format!("knee at {x:.0}"));
                let drop = vec![Point::at(x, least), Point::at(x, y)];
                layers.push(line(name, tone, Style::Dashes, drop));
            }
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

/// The law that fits, where it may be drawn: four numbers of processes or more, none missed by more than a tenth of the most throughput, no growth that no law has.
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
fn bend(points: &[(f64, f64)], law: Option<&Law>) -> Option<(f64, f64)> {
    let last = first_and_last(points).1;
    let peak = law.and_then(|law| Some((law.peak()?, law.throughput(law.peak()?))));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: impl Fn(f64) -> f64, numbers: &[f64]) -> Vec<(f64, f64)> {
        numbers.iter().map(|&n| (n, rate(n))).collect()
    }

    #[test]
    fn a_law_is_drawn_where_it_fits() {
        let turns_back = |n: f64| 50.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.004 * n * (n - 1.0));
        let points = at(turns_back, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        let (label, found) = law(&points).unwrap();
        assert_eq!(label, "USL fit");
        let (x, y) = bend(&points, Some(&found)).unwrap();
        // √((1 − 0.05) ÷ 0.004)
        assert_eq!(
            (format!("{x:.1}"), format!("{:.1}", y - turns_back(x))),
            ("15.4".into(), "0.0".into())
        );
        let curve = curve(&found, (1.0, 32.0));
        assert_eq!((curve[0].x, curve[curve.len() - 1].x.round()), (1.0, 32.0));
        // A peak that was not reached is no knee.
        assert_ne!(
            bend(&points[..4], law(&points[..4]).as_ref().map(|(_, law)| law)).map(|(x, _)| x),
            Some(x)
        );
        let serial = |n: f64| 50.0 * n / (1.0 + 0.1 * (n - 1.0));
        assert_eq!(law(&at(serial, &[1.0, 2.0, 4.0, 8.0])).unwrap().0, "Amdahl fit");
    }

    #[test]
    fn no_law_is_drawn_that_does_not_fit() {
        let linear = |n: f64| 50.0 * n;
        assert!(law(&at(linear, &[1.0, 2.0, 4.0])).is_none(), "of three numbers");
        assert!(law(&at(|n| n * n, &[1.0, 2.0, 4.0, 8.0])).is_none(), "more than linear");
        let saw = |n: f64| if n == 4.0 { 300.0 } else { 100.0 * n.sqrt() };
        assert!(law(&at(saw, &[1.0, 2.0, 4.0, 8.0, 16.0])).is_none(), "missed by a third");
        assert!(law(&[]).is_none() && bend(&[], None).is_none());
    }
}
