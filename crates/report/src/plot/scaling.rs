//! Throughput against processes, beside what it would be if it grew as they do, with fits where there are any.

use super::block::{PROCESSES_LABEL, PlotBlock};
use super::caption::intervals;
use super::data::Data;
use super::response::{ResponseAxis, means, numbers_of_processes};
use super::{Make, Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Scale, Style, Tone};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_analysis::throughput::THROUGHPUTS;
use feedrate_measure::metric::Metric;
use feedrate_measure::stats::{Scaling as Law, ScalingDoubt, amdahl, knee, universal_scalability};
use feedrate_spec::units;
use std::collections::BTreeMap;

/// Most lines that have colours beside that of the ideal.
const MOST: usize = 6;

pub(super) static PLOT: Plot = Plot {
    name: "scaling",
    summary: "Throughput against processes on logarithmic axes, with the ideal from the fewest processes, a fitted law and its knee; a line for each combination of other factors",
    needs: Needs::Summaries,
    make: Make::Response(&THROUGHPUTS, figure),
};

fn figure(data: &Data, response: &Metric) -> Result<Figure, Missing> {
    let y = ResponseAxis::new(response, data);
    let blocks = data.blocks();
    let mut all: Vec<Curves> = blocks.iter().map(|block| Curves::new(block, &y)).collect();
    let count: usize = all.iter().map(|of| of.drawn.len()).sum();
    if count == 0 {
        return Err(Missing::new(
            format!(
                "no runs with a `{}` above 0 differ in the number of processes alone",
                response.id.name()
            ),
            "run one workload with several numbers of processes and all else the same",
        ));
    }
    if count > MOST {
        all.iter_mut().for_each(Curves::keep_one);
    }
    let is_alone = all.iter().map(|of| of.drawn.len()).sum::<usize>() == 1;
    let mut layers = Layers::default();
    layers.all.extend(ideal(&all));
    let mut told = String::new();
    for curves in &all {
        told += &curves.explain();
        for (levels, points) in &curves.drawn {
            layers.add(&curves.name(levels), points, is_alone);
        }
    }
    let x = Axis::new(PROCESSES_LABEL, Scale::LogAt(numbers_of_processes(data)), AxisRange::Tight);
    told += &layers.explain();
    let y = Axis { scale: Scale::Log10, range: AxisRange::Tight, ..y.axis };
    let axes = Axes { x, y, layers: layers.all, aspect: 0.75 };
    let of = if is_alone {
        ""
    } else {
        ", of the line that begins highest; as steep a line scales as well"
    };
    let panels = vec![Panel::from_axes(None, axes)];
    let caption = format!(
        "Scaling. Ideal: as many times the throughput of the fewest processes as there are more processes{of}. {told}{}",
        intervals(&panels, means(response))
    );
    let title = "Throughput against processes, and the ideal".into();
    Ok(Figure { title, caption, panels, columns: 1 })
}

/// The line of the curve that begins highest for its processes, over all numbers of them.
fn ideal(all: &[Curves<'_>]) -> Option<Layer> {
    let points = || all.iter().flat_map(|of| of.drawn.values()).flatten();
    let firsts = all.iter().flat_map(|of| of.drawn.values()).filter_map(|points| points.first());
    let each = firsts.map(|first| first.y / first.x).reduce(f64::max)?;
    let least = points().map(|point| point.x).reduce(f64::min)?;
    let most = points().map(|point| point.x).reduce(f64::max)?;
    let ends = [least, most].map(|x| Point::at(x, each * x));
    Some(Layer::series("ideal", Tone::Hue(MOST), Style::Dashes, ends.into()))
}

/// Curves of a block: the points at each combination of the levels of all factors but processes.
struct Curves<'a> {
    block: &'a PlotBlock<'a>,
    drawn: BTreeMap<Vec<usize>, Vec<Point>>,
    /// Combinations that are not drawn.
    left_out: usize,
    why: &'static str,
}

impl<'a> Curves<'a> {
    /// Those that join several numbers of processes.
    fn new(block: &'a PlotBlock<'a>, y: &ResponseAxis<'_>) -> Self {
        let mut drawn: BTreeMap<Vec<usize>, Vec<Point>> = BTreeMap::new();
        for cell in &block.design.cells {
            let points = drawn.entry(block.design.held(cell, &block.free())).or_default();
            let point = block.count(cell).and_then(|x| y.point(block, x, &[cell]));
            points.extend(point.filter(|point| point.y > 0.0));
        }
        let all = drawn.len();
        drawn.retain(|_, points| points.iter().any(|point| point.x != points[0].x));
        let why = "as they were run at one number of processes";
        Curves { block, left_out: all - drawn.len(), drawn, why }
    }

    /// The one at the levels where most was run, else the longest.
    fn keep_one(&mut self) {
        let Some(longest) = self.drawn.iter().max_by_key(|(_, points)| points.len()) else {
            return;
        };
        let most = self.block.design.slice(&self.block.free());
        let most = most.first().map(|cell| self.block.design.held(cell, &self.block.free()));
        let kept = most.filter(|levels| self.drawn.contains_key(levels));
        let kept = kept.unwrap_or_else(|| longest.0.clone());
        if self.drawn.len() > 1 {
            self.left_out += self.drawn.len() - 1;
            self.drawn.retain(|levels, _| *levels == kept);
            self.why = "as more than six lines cannot be told apart";
        }
    }

    /// Whether all its curves have this level in one place.
    fn is_held(&self, at: usize, level: usize) -> bool {
        self.drawn.keys().all(|levels| levels[at] == level)
    }

    /// The levels of some curve, by their factors, that all curves have, or have not.
    fn named(&self, levels: &[usize], held: bool) -> Vec<String> {
        let others = self.block.others().into_iter().zip(levels).enumerate();
        let wanted = others.filter(|(at, (_, level))| self.is_held(*at, **level) == held);
        wanted.map(|(_, (factor, level))| self.block.named(factor, *level)).collect()
    }

    /// Names the levels that all its curves have, and counts the combinations that are not drawn.
    fn explain(&self) -> String {
        let Some(first) = self.drawn.keys().next() else { return String::new() };
        let (held, of) = (self.named(first, true), self.block.of_name());
        let mut told = String::new();
        if !held.is_empty() {
            told = format!("Held{of}: {}. ", held.join(", "));
        }
        if self.left_out > 0 {
            let left_out = units::counted(self.left_out as u64, "combination");
            told += &format!("Not drawn{of}: {left_out} of other levels, {}. ", self.why);
        }
        told
    }

    /// The block, and the levels in which its curves differ.
    fn name(&self, levels: &[usize]) -> String {
        let mut parts: Vec<String> = self.block.title().into_iter().collect();
        parts.extend(self.named(levels, false));
        if parts.is_empty() { "measured".into() } else { parts.join(", ") }
    }
}

/// Layers, and what their caption must tell.
#[derive(Default)]
struct Layers {
    all: Vec<Layer>,
    /// Curves so far.
    count: usize,
    /// Names of lines without a law, by the reason.
    lawless: BTreeMap<&'static str, Vec<String>>,
    /// Names of several lines with their knees, by how these are found.
    knees: BTreeMap<&'static str, Vec<String>>,
}

impl Layers {
    fn add(&mut self, name: &str, points: &[Point], is_alone: bool) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let measured: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        let own = Tone::Hue(self.count);
        let tone = if is_alone { Tone::Hue(1) } else { own };
        // Of several, the name of the marks is enough.
        let label = |label: String| if is_alone { label } else { String::new() };
        self.count += 1;
        let law = law(&measured);
        let style = if law.is_ok() { Style::Marks } else { Style::Joined };
        match &law {
            Ok((name, law)) => {
                let curve = curve(law, first.x, last.x);
                self.all.push(Layer::series(label((*name).into()), tone, Style::Line, curve));
            }
            Err(why) => self.lawless.entry(why).or_default().push(name.into()),
        }
        self.all.push(Layer::series(name, own, style, points.to_vec()));
        if let Some((what, (x, y))) = bend(&measured, law.as_ref().ok().map(|(_, law)| law)) {
            let at = format!("knee at {x:.0}");
            if is_alone {
                let least = measured.iter().map(|point| point.1).fold(y, f64::min);
                let drop = vec![Point::at(x, least), Point::at(x, y)];
                self.all.push(Layer::series(at, tone, Style::Dashes, drop));
                self.knees.entry(what).or_default();
            } else {
                self.knees.entry(what).or_default().push(format!("{name}, {at}"));
            }
        }
    }

    /// Explains laws and knees, and why there is no law.
    fn explain(&self) -> String {
        let mut told = String::new();
        let has_law = self.lawless.values().map(Vec::len).sum::<usize>() < self.count;
        if has_law {
            told.push_str("Fit: the Universal Scalability Law, or Amdahl's where coherence is not told from none. ");
        }
        for (why, names) in &self.lawless {
            let is_told = has_law || self.lawless.len() > 1;
            let of = if is_told { format!(" of {}", names.join("; ")) } else { String::new() };
            told.push_str(&format!("No law is fitted{of}, as {why}. "));
        }
        for (knee, names) in &self.knees {
            let of =
                if names.is_empty() { String::new() } else { format!(": {}", names.join("; ")) };
            told.push_str(&format!("Knee: {knee}{of}. "));
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
    let (label, law) = if is_coherent {
        ("USL fit", universal)
    } else {
        ("Amdahl fit", amdahl(points).ok_or(FEW)?)
    };
    match &law.doubts {
        doubts if doubts.contains(&ScalingDoubt::Superlinear) => Err(SUPERLINEAR),
        doubts if doubts.contains(&ScalingDoubt::Misfit) => Err(MISFIT),
        _ => Ok((label, law)),
    }
}

/// The peak of the law where it was reached, else the knee of what was measured.
fn bend(points: &[(f64, f64)], law: Option<&Law>) -> Option<(&'static str, (f64, f64))> {
    let last = points.last()?.0;
    let law = law.filter(|law| !law.doubts.contains(&ScalingDoubt::MoreBeyondPeak));
    let peak = law.and_then(|law| Some((law.peak()?, law.throughput(law.peak()?))));
    let peak = peak.filter(|(x, _)| *x <= last).map(|at| (PEAK, at));
    peak.or_else(|| Some((BEND, points[knee(points)?])))
}

/// Points that are evenly apart on a logarithmic axis; nothing beyond what was measured.
fn curve(law: &Law, first: f64, last: f64) -> Vec<Point> {
    const STEPS: u32 = 40;
    let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    let places = shares.map(|share| first * (last / first).powf(share));
    places.map(|x| Point::at(x, law.throughput(x))).collect()
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
        let curve = curve(&found, 1.0, 32.0);
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
