//! One run over time: what was read and written, with epochs, evaluations and checkpoints behind it.

use super::data::{Blocks, Data, Moments, Stretch, StretchKind};
use super::groups::bytes_unit;
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, Content, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Span, Spread,
    Style, Tone,
};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct Timeline;

/// More samples than this are told apart on no page; neighbours are put together.
const SAMPLES: usize = 500;

static MEMBER: Member = Member {
    name: "timeline",
    summary: "Throughput of one run over time, with its epochs, evaluations and checkpoints shaded; of DLIO's results by block, with the waits of steps",
    abilities: &[],
};

impl Plot for Timeline {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let run = match data.runs.as_slice() {
            [] => return Err(Missing::runs()),
            [run] => run,
            [first, ..] => {
                return Err(Missing::new(
                    format!("a timeline is of one run, and there are {}", data.runs.len()),
                    format!("give the folder of one, such as `{}`", first.path),
                ));
            }
        };
        let details = run.details.as_ref();
        if let Some(blocks) = details.and_then(|details| details.blocks.as_ref()) {
            return Ok(of_blocks(blocks));
        }
        let moments = details.and_then(|details| details.timeline.as_ref());
        let Some(moments) = moments.filter(|moments| !moments.ends_s.is_empty()) else {
            return Err(Missing::new(
                format!("`{}` has no timeline", run.path),
                "let it run with `output.timeline=True`, as is the default; of DLIO's results the times of steps and blocks are needed",
            ));
        };
        let end_s = moments.ends_s.last().copied().unwrap_or(0.0);
        let mut panels = Vec::new();
        for (name, bytes) in [("Read", &moments.read_bytes), ("Written", &moments.written_bytes)] {
            let rates = bytes.as_ref().map(|bytes| rates(moments, bytes)).unwrap_or_default();
            let largest = rates.iter().map(|point| point.y).fold(0.0, f64::max);
            if largest > 0.0 || (name == "Read" && !rates.is_empty()) {
                let (unit, per) = bytes_unit(largest);
                let points = rates.into_iter().map(|point| Point::at(point.x, point.y / unit));
                let y = (format!("{name} ({per}/s)"), Range::FromZero);
                let is_first = panels.is_empty();
                panels.push(panel((&moments.stretches, end_s), y, points.collect(), is_first));
            }
        }
        if let Some(used) = &moments.gpu_percent {
            let starts = starts(moments);
            let known =
                used.iter().zip(starts).filter_map(|(percent, x)| Some(Point::at(x, (*percent)?)));
            let y = ("GPU use (%)".to_string(), Range::AtLeast(0.0, 100.0));
            panels.push(panel((&moments.stretches, end_s), y, known.collect(), false));
        }
        if panels.is_empty() {
            return Err(Missing::new(
                "the timeline tells neither bytes nor GPUs",
                "use the run of another record",
            ));
        }
        Ok(Figure {
            title: "Throughput over time".into(),
            caption: "Throughput over time, at each sample of the timeline.".into(),
            panels,
            columns: 1,
            naming: Naming::Key,
        })
    }
}

fn panel(
    (stretches, end_s): (&[Stretch], f64),
    (label, range): (String, Range),
    points: Vec<Point>,
    named: bool,
) -> Panel {
    let spans = stretches.iter().map(|stretch| {
        let (tone, kind) = match stretch.kind {
            StretchKind::Epoch => (Tone::Faint, "epoch"),
            StretchKind::Evaluation => (Tone::Hue(2), "evaluation"),
            StretchKind::Checkpoint => (Tone::Hue(4), "checkpoint"),
        };
        let is_named = named && stretch.kind == StretchKind::Epoch;
        let label = if is_named { stretch.name.clone() } else { String::new() };
        let kind = kind.into();
        Layer::Span(Span { from: stretch.from_s, to: stretch.to_s, kind, label, tone })
    });
    let mut layers: Vec<Layer> = spans.collect();
    let (tone, style, spread) = (Tone::Hue(0), Style::Steps, Spread::Y);
    layers.push(Layer::Series(Series { label: String::new(), tone, style, spread, points }));
    let range_x = Range::AtLeast(0.0, end_s);
    let x = Axis { label: "Time (s)".into(), scale: Scale::Linear, range: range_x };
    let y = Axis { label, scale: Scale::Linear, range };
    Panel::from_axes(None, Axes { x, y, layers, aspect: 0.38 })
}

/// What DLIO's results tell of when something happened: how long each block took, and each step of it waited.
fn of_blocks(blocks: &Blocks) -> Figure {
    let known = |rates: &[Option<f64>]| -> Option<Vec<f64>> { rates.iter().copied().collect() };
    let rates = match (known(&blocks.bytes_per_second), known(&blocks.samples_per_second)) {
        (Some(rates), _) => {
            let (unit, per) = bytes_unit(rates.iter().copied().fold(0.0, f64::max));
            let rates = rates.into_iter().map(|rate| rate / unit).collect();
            Some((format!("Throughput ({per}/s)"), rates))
        }
        (None, Some(rates)) => Some(("Throughput (samples/s)".into(), rates)),
        (None, None) => None,
    };
    let end_s = blocks.spans_s.iter().map(|span| span.1).fold(0.0, f64::max);
    let mut panels = Vec::new();
    if let Some((label, rates)) = rates {
        panels.push(of_rates(blocks, end_s, (label, rates)));
    }
    panels.push(of_waits(blocks));
    Figure {
        title: "Throughput by block, and waits of steps".into(),
        caption: "Throughput of each block of steps, which is all that DLIO's results tell of when data came: samples of its steps, by its length. Below, for each step of the run, how long \
                  accelerators waited for its data."
            .into(),
        panels,
        columns: 1,
        naming: Naming::Key,
    }
}

fn of_rates(blocks: &Blocks, end_s: f64, (label, rates): (String, Vec<f64>)) -> Panel {
    // Each block has a line of its own: nothing is known between two.
    let lines = blocks.spans_s.iter().zip(rates).map(|((from, to), rate)| {
        let points = vec![Point::at(*from, rate), Point::at(*to, rate)];
        let (label, tone) = (String::new(), Tone::Hue(0));
        Layer::Series(Series { label, tone, style: Style::Steps, spread: Spread::Y, points })
    });
    let lines: Vec<Layer> = lines.collect();
    let mut panel = panel((&blocks.stretches, end_s), (label, Range::FromZero), Vec::new(), true);
    if let Content::Axes(axes) = &mut panel.content {
        axes.layers.extend(lines);
    }
    panel
}

fn of_waits(blocks: &Blocks) -> Panel {
    let together = blocks.step_waits_s.len().div_ceil(SAMPLES).max(1);
    let line = |label: &str, tone, of: fn(&[(f64, f64)]) -> f64| {
        let parts = blocks.step_waits_s.chunks(together).enumerate();
        let at = |(i, part): (usize, &[(f64, f64)])| Point::at((i * together + 1) as f64, of(part));
        let points = parts.map(at).collect();
        let (label, style) = (label.into(), Style::Steps);
        Layer::Series(Series { label, tone, style, spread: Spread::Y, points })
    };
    let mean: fn(&[(f64, f64)]) -> f64 =
        |part| part.iter().map(|wait| wait.0).sum::<f64>() / part.len() as f64;
    let layers = vec![
        line("longest of all accelerators", Tone::Hue(1), |part| {
            part.iter().map(|wait| wait.1).fold(0.0, f64::max)
        }),
        line("mean", Tone::Hue(0), mean),
    ];
    let range = Range::AtLeast(1.0, blocks.step_waits_s.len().max(2) as f64);
    let x = Axis { label: "Step, of all epochs".into(), scale: Scale::Linear, range };
    let y =
        Axis { label: "Wait for data (s)".into(), scale: Scale::Linear, range: Range::FromZero };
    Panel::from_axes(None, Axes { x, y, layers, aspect: 0.38 })
}

fn starts(moments: &Moments) -> Vec<f64> {
    let before = moments.ends_s.iter().take(moments.ends_s.len().saturating_sub(1));
    std::iter::once(moments.start_s).chain(before.copied()).collect()
}

/// Bytes a second from the start of each sample on, and once more at the end.
fn rates(moments: &Moments, bytes: &[f64]) -> Vec<Point> {
    let starts = starts(moments);
    let together = bytes.len().div_ceil(SAMPLES).max(1);
    let mut points = Vec::new();
    let samples: Vec<(f64, f64, f64)> = starts
        .into_iter()
        .zip(&moments.ends_s)
        .zip(bytes)
        .map(|((from, to), bytes)| (from, *to, *bytes))
        .collect();
    for part in samples.chunks(together) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let sum: f64 = part.iter().map(|sample| sample.2).sum();
        if first.0 < last.1 {
            points.push(Point::at(first.0, sum / (last.1 - first.0)));
        }
    }
    if let (Some(last), Some(end)) = (points.last().cloned(), moments.ends_s.last()) {
        points.push(Point::at(*end, last.y));
    }
    points
}
