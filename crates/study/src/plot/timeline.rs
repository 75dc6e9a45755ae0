//! One run over time: what was read and written, with epochs, evaluations and checkpoints behind it.

use super::data::{Data, Moments, StretchKind};
use super::groups::bytes_unit;
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Span, Spread, Style,
    Tone,
};
use crate::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct Timeline;

/// More samples than this are told apart on no page; neighbours are put together.
const SAMPLES: usize = 500;

static MEMBER: Member = Member {
    name: "timeline",
    summary: "Throughput of one run over time, with its epochs, evaluations and checkpoints shaded",
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
        let moments = run.details.as_ref().and_then(|details| details.timeline.as_ref());
        let Some(moments) = moments.filter(|moments| !moments.ends_s.is_empty()) else {
            return Err(Missing::new(
                format!("`{}` has no timeline", run.path),
                "let it run with `output.timeline=True`, as is the default",
            ));
        };
        let mut panels = Vec::new();
        for (name, bytes) in [("Read", &moments.read_bytes), ("Written", &moments.written_bytes)] {
            let rates = bytes.as_ref().map(|bytes| rates(moments, bytes)).unwrap_or_default();
            let largest = rates.iter().map(|point| point.y).fold(0.0, f64::max);
            if largest > 0.0 || (name == "Read" && !rates.is_empty()) {
                let (unit, per) = bytes_unit(largest);
                let points = rates.into_iter().map(|point| Point::at(point.x, point.y / unit));
                let y = (format!("{name} ({per}/s)"), Range::FromZero);
                panels.push(panel(moments, y, points.collect(), panels.is_empty()));
            }
        }
        if let Some(used) = &moments.gpu_percent {
            let starts = starts(moments);
            let known =
                used.iter().zip(starts).filter_map(|(percent, x)| Some(Point::at(x, (*percent)?)));
            let y = ("GPU use (%)".to_string(), Range::AtLeast(0.0, 100.0));
            panels.push(panel(moments, y, known.collect(), false));
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
    moments: &Moments,
    (label, range): (String, Range),
    points: Vec<Point>,
    named: bool,
) -> Panel {
    let spans = moments.stretches.iter().map(|stretch| {
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
    let end_s = moments.ends_s.last().copied().unwrap_or(0.0);
    let range_x = Range::AtLeast(0.0, end_s);
    let x = Axis { label: "Time (s)".into(), scale: Scale::Linear, range: range_x };
    let y = Axis { label, scale: Scale::Linear, range };
    Panel::axes(None, Axes { x, y, layers, aspect: 0.38 })
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
