//! Throughput against processes, beside what it would be if it grew as they do, with fits where there are any.

use super::caption::of_intervals;
use super::data::Data;
use super::groups::{
    Block, Group, PROCESSES, axis_of, blocks, means_of, numbers_of_processes, point, processes,
};
use super::{Missing, Plot, against};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Spread, Style, Tone,
};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::stats::{Scaling as Law, ScalingDoubt, amdahl, knee, universal_scalability};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;
use std::collections::{BTreeMap, BTreeSet};

/// See the row.
pub(super) struct Scaling;

/// More lines have no colours beside that of the ideal.
const MOST: usize = 6;

static MEMBER: Member = Member {
    name: "scaling",
    summary: "Throughput against processes on logarithmic axes, with the ideal from the fewest processes, a fitted law and its knee; a line for each combination of other factors",
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
        let blocks = blocks(runs);
        let (lines, held) = lines(&blocks, (response, unit));
        if lines.is_empty() {
            return Err(Missing::new(
                format!(
                    "no runs with a `{}` above 0 differ in the number of processes alone",
                    response.id.name()
                ),
                "run one workload with several numbers of processes and all else the same",
            ));
        }
        let mut drawn = Drawn::default();
        lines.iter().enumerate().for_each(|(i, line)| drawn.add(i, line, lines.len() == 1));
        let x_scale = Scale::LogAt(numbers_of_processes(runs));
        let x = Axis { label: PROCESSES.into(), scale: x_scale, range: Range::Tight };
        let y = Axis { scale: Scale::Log10, range: Range::Tight, ..y };
        let told = drawn.says();
        let axes = Axes { x, y, layers: drawn.layers, aspect: 0.75 };
        let mut figure = Figure {
            title: "Throughput against processes, and the ideal".into(),
            caption: String::new(),
            panels: vec![Panel::axes(None, axes)],
            columns: 1,
            naming: Naming::Direct,
        };
        figure.caption = format!(
            "Scaling. Ideal: as many times the throughput of the fewest processes as there are more processes. {held}{told}{}",
            of_intervals(&figure, means_of(response))
        );
        Ok(figure)
    }
}

/// What was measured at the same levels of all factors but processes.
struct Line {
    name: String,
    points: Vec<Point>,
}

/// The lines of each block that join several numbers of processes, and in sentences what is held and what is not drawn.
fn lines(blocks: &[Block<'_>], (response, unit): (&Response, f64)) -> (Vec<Line>, String) {
    let at = |group: &&Group<'_>| {
        point(processes(group.runs.first()?)?, &group.runs, response, unit)
            .filter(|point| point.y > 0.0)
    };
    let of_blocks: Vec<Contexts> = blocks
        .iter()
        .map(|block| {
            let mut contexts = Contexts::new();
            let free: Vec<usize> = block.processes().into_iter().collect();
            for group in &block.groups {
                let points = contexts.entry(block.context(group, &free)).or_default();
                points.extend(at(&group));
            }
            contexts
        })
        .collect();
    let all = of_blocks.iter().flat_map(Contexts::values).filter(|points| is_line(points)).count();
    let (mut lines, mut told) = (Vec::new(), String::new());
    for (block, mut contexts) in blocks.iter().zip(of_blocks) {
        let combinations = contexts.len();
        contexts.retain(|_, points| is_line(points));
        let free: Vec<usize> = block.processes().into_iter().collect();
        let mut why = "as they were run at one number of processes";
        if all > MOST && contexts.len() > 1 {
            let most = block.slice(&free).next().map(|group| block.context(group, &free));
            let longest = contexts.iter().max_by_key(|(_, points)| points.len());
            let kept = most.filter(|most| contexts.contains_key(most));
            let kept = kept.or_else(|| longest.map(|(levels, _)| levels.clone()));
            contexts.retain(|levels, _| Some(levels) == kept.as_ref());
            why = "as more lines than six are told apart by nobody";
        }
        told.push_str(&of_rest(block, &contexts, combinations - contexts.len(), why));
        let is_alone = contexts.len() == 1;
        for (levels, points) in &contexts {
            let differing = if is_alone { String::new() } else { named(block, &contexts, levels) };
            let parts = [block.name.clone(), differing];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let name = if parts.is_empty() { "measured".into() } else { parts.join(", ") };
            lines.push(Line { name, points: points.clone() });
        }
    }
    (lines, told)
}

/// Points by the levels of all factors but processes.
type Contexts = BTreeMap<Vec<usize>, Vec<Point>>;

fn is_line(points: &[Point]) -> bool {
    points.iter().any(|point| point.x != points[0].x)
}

/// The levels in which the lines of a block differ.
fn named(block: &Block<'_>, contexts: &Contexts, levels: &[usize]) -> String {
    let differ = |at: usize| contexts.keys().any(|other| other[at] != levels[at]);
    let told = block.others().into_iter().enumerate().filter(|(at, _)| differ(*at));
    let told = told.map(|(at, factor)| block.factors[factor].named(levels[at]));
    told.collect::<Vec<_>>().join(", ")
}

/// The levels that all lines of a block have, and how many combinations are not drawn.
fn of_rest(block: &Block<'_>, contexts: &Contexts, gone: usize, why: &str) -> String {
    let Some(first) = contexts.keys().next() else { return String::new() };
    let of = block.title().map_or(String::new(), |name| format!(" of {name}"));
    let is_held = |at: usize| contexts.keys().all(|levels| levels[at] == first[at]);
    let others = block.others().into_iter().enumerate().filter(|(at, _)| is_held(*at));
    let held: Vec<String> =
        others.map(|(at, factor)| block.factors[factor].named(first[at])).collect();
    let mut told = String::new();
    if !held.is_empty() {
        told = format!("Held{of}: {}. ", held.join(", "));
    }
    if gone > 0 {
        let s = if gone == 1 { "" } else { "s" };
        told.push_str(&format!("Not drawn{of}: {gone} combination{s} of other levels, {why}. "));
    }
    told
}

/// Layers, and what their caption must tell.
#[derive(Default)]
struct Drawn {
    layers: Vec<Layer>,
    has_law: bool,
    /// Why a line has none, with its name.
    lawless: Vec<(String, &'static str)>,
    knees: BTreeSet<&'static str>,
}

impl Drawn {
    fn add(&mut self, number: usize, line: &Line, is_alone: bool) {
        let points = &line.points;
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let label = if self.layers.is_empty() { "ideal" } else { "" };
        let end = Point::at(last.x, first.y * last.x / first.x);
        let ideal = vec![Point::at(first.x, first.y), end];
        self.layers.push(layer(label.into(), Tone::Hue(6), Style::Dashes, ideal));
        let measured: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        let (name, points) = (line.name.clone(), points.clone());
        let tone = Tone::Hue(if is_alone { 1 } else { number });
        let of_line =
            |what: &str| if is_alone { what.into() } else { format!("{}, {what}", line.name) };
        let law = law(&measured);
        match &law {
            Ok((label, law)) => {
                self.layers.push(layer(name, Tone::Hue(number), Style::Marks, points));
                let curve = curve(law, first_and_last(&measured));
                self.layers.push(layer(of_line(label), tone, Style::Line, curve));
                self.has_law = true;
            }
            Err(why) => {
                self.layers.push(against::joined(name.clone(), number, points));
                self.lawless.push((name, why));
            }
        }
        if let Some((what, (x, y))) = bend(&measured, law.as_ref().ok().map(|(_, law)| law)) {
            let least = measured.iter().map(|point| point.1).fold(y, f64::min);
            let drop = vec![Point::at(x, least), Point::at(x, y)];
            let name = of_line(&format!("knee at {x:.0}"));
            self.layers.push(layer(name, tone, Style::Dashes, drop));
            self.knees.insert(what);
        }
    }

    /// What laws and knees are, and why there is no law.
    fn says(&self) -> String {
        let mut told = String::new();
        if self.has_law {
            told.push_str("Fit: the Universal Scalability Law, or Amdahl's where coherence is not told from none. ");
        }
        let reasons: BTreeSet<&str> = self.lawless.iter().map(|(_, why)| *why).collect();
        for why in &reasons {
            let names = self.lawless.iter().filter(|(_, own)| own == why);
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            let of = match self.has_law || reasons.len() > 1 {
                true => format!(" of {}", names.join("; ")),
                false => String::new(),
            };
            told.push_str(&format!("No law is fitted{of}, as {why}. "));
        }
        for knee in &self.knees {
            told.push_str(&format!("Knee: {knee}. "));
        }
        told
    }
}

const FEW: &str = "fewer than four numbers of processes were run";
const SUPERLINEAR: &str = "throughput per process rose from one number of processes to a larger one, which it does in no law";
const MISFIT: &str = "the law misses a mark by more than a tenth of the most throughput";

const PEAK: &str = "the peak of the law";
const BEND: &str = "where the measured curve bends (Kneedle)";

/// The law that fits, or why none is drawn.
fn law(points: &[(f64, f64)]) -> Result<(&'static str, Law), &'static str> {
    let universal = universal_scalability(points).ok_or(FEW)?;
    let is_coherent = universal.interval(2, CONFIDENCE).is_some_and(|of| 0.0 < of.low);
    let (label, law) = match is_coherent {
        true => ("USL fit", universal),
        false => ("Amdahl fit", amdahl(points).ok_or(FEW)?),
    };
    match &law.doubts {
        doubts if doubts.contains(&ScalingDoubt::Superlinear) => Err(SUPERLINEAR),
        doubts if doubts.contains(&ScalingDoubt::Misfit) => Err(MISFIT),
        _ => Ok((label, law)),
    }
}

/// The peak of the law where it was reached, else the knee of what was measured.
fn bend(points: &[(f64, f64)], law: Option<&Law>) -> Option<(&'static str, (f64, f64))> {
    let last = first_and_last(points).1;
    let law = law.filter(|law| !law.doubts.contains(&ScalingDoubt::MoreBeyondPeak));
    let peak = law.and_then(|law| Some((law.peak()?, law.throughput(law.peak()?))));
    let peak = peak.filter(|(x, _)| *x <= last).map(|at| (PEAK, at));
    peak.or_else(|| Some((BEND, points[knee(points)?])))
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

fn layer(label: String, tone: Tone, style: Style, points: Vec<Point>) -> Layer {
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
        let (what, (x, y)) = bend(&points, Some(&found)).unwrap();
        assert_eq!(what, PEAK);
        // √((1 − 0.05) ÷ 0.004)
        assert_eq!(
            (format!("{x:.1}"), format!("{:.1}", y - turns_back(x))),
            ("15.4".into(), "0.0".into())
        );
        let curve = curve(&found, (1.0, 32.0));
        assert_eq!((curve[0].x, curve[curve.len() - 1].x.round()), (1.0, 32.0));
        // A peak that was not reached is no knee.
        assert_ne!(
            bend(&points[..4], law(&points[..4]).as_ref().ok().map(|(_, law)| law))
                .map(|(_, at)| at.0),
            Some(x)
        );
        let serial = |n: f64| 50.0 * n / (1.0 + 0.1 * (n - 1.0));
        assert_eq!(law(&at(serial, &[1.0, 2.0, 4.0, 8.0])).unwrap().0, "Amdahl fit");
    }

    #[test]
    fn no_law_is_drawn_that_does_not_fit() {
        let linear = |n: f64| 50.0 * n;
        let why = |points: &[(f64, f64)]| law(points).unwrap_err();
        assert_eq!(why(&at(linear, &[1.0, 2.0, 4.0])), FEW);
        assert_eq!(why(&at(|n| n * n, &[1.0, 2.0, 4.0, 8.0])), SUPERLINEAR);
        let capped = |n: f64| 100.0 * n.min(4.0);
        assert_eq!(why(&at(capped, &[1.0, 2.0, 4.0, 8.0, 16.0])), MISFIT);
        assert!(law(&[]).is_err() && bend(&[], None).is_none());
    }
}
