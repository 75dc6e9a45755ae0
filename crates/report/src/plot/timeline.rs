//! Plots the bandwidth of one run over time, with its epochs, evaluations and checkpoints.

use super::data::{Data, samples};
use super::response::{MB, MB_PER_SECOND, VISIBLE_SHARE_MIN};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, AxisRange, Figure, Layer, Panel, Point, ShadedSpan, Style, Tone,
};
use feedrate_measure::record::timeline::{Column, GpuTimeline, Timeline};
use feedrate_measure::record::{Block, EpochRecord, Record};
use feedrate_measure::stats::mean;
use feedrate_results::run::Run;

/// Maximum number of samples in a picture. With more samples, neighbours are merged.
const SAMPLES_MAX: usize = 500;

/// Minimum duration of a drawn sample, as a share of the usual one: the rate of a few bytes in a sample that is cut off by the end of an epoch means nothing.
const DURATION_SHARE_MIN: f64 = 0.5;

pub(super) static PLOT: Plot = Plot {
    name: "timeline",
    aliases: &[],
    summary: "Bandwidth of one run over time, with its epochs, evaluations and checkpoints shaded; for DLIO's results throughput by block, with the waits of steps",
    needs: Needs::Records,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| figure(data),
};

fn figure(data: &Data) -> Result<Figure, Missing> {
    let runs: Vec<&Run> = data.used().collect();
    let run = match runs.as_slice() {
        [] => return Err(Missing::runs()),
        [run] => run,
        [first, ..] => {
            return Err(Missing::new(
                format!("a timeline shows one run, and there are {}", runs.len()),
                format!("give the folder of one run, such as `{}`", first.path.display()),
            ));
        }
    };
    let record = run.record.as_deref();
    if !run.is_from_feedrate()
        && let Some(record) = record
        && let Some(figure) = block_timeline(run, record)
    {
        return Ok(figure);
    }
    let timeline = record.and_then(|record| Some((record, record.timeline.as_ref()?)));
    let Some((record, timeline)) = timeline.filter(|(_, timeline)| !timeline.is_empty()) else {
        return Err(Missing::new(
            format!("`{}` has no timeline", run.path.display()),
            "run it with `output.timeline=True`, the default; DLIO's results need the times of steps and blocks",
        ));
    };
    let time = SampleTimes::new(timeline);
    let mut panels = Vec::new();
    let columns = [("Read", &timeline.read_bytes), ("Written", &timeline.written_bytes)];
    let total = |column: &Column| column.as_ref().map_or(0, |bytes| bytes.iter().sum::<u64>());
    let most = columns.iter().map(|(_, bytes)| total(bytes)).max().unwrap_or(0);
    for (name, bytes) in columns {
        let points = bytes.as_ref().map(|bytes| time.rates(bytes)).unwrap_or_default();
        // A run that only reads also writes its few results.
        let is_visible = match most {
            0 => name == "Read",
            most => most as f64 * VISIBLE_SHARE_MIN <= total(bytes) as f64,
        };
        if is_visible && !points.is_empty() {
            let points = points.into_iter().map(|at| Point::new(at.x, at.y / MB)).collect();
            let y = Axis::linear(format!("{name} ({MB_PER_SECOND})"), AxisRange::FromZero);
            let spans = spans(record, 0.0, panels.is_empty());
            panels.push(panel(time.end_s(), y, spans, vec![steps(points)]));
        }
    }
    if let Some(points) = timeline.gpus.as_ref().map(|gpus| time.gpu_percent(gpus))
        && !points.is_empty()
    {
        let y = Axis::linear("GPU use (%)", AxisRange::AtLeast(0.0, 100.0));
        panels.push(panel(time.end_s(), y, spans(record, 0.0, false), vec![steps(points)]));
    }
    if panels.is_empty() {
        return Err(Missing::new("the timeline has neither bytes nor GPUs", "choose another run"));
    }
    Ok(Figure {
        title: "Bandwidth over time".into(),
        caption: "Bandwidth over time, at each sample of the timeline.".into(),
        panels,
        columns: 1,
    })
}

/// Start and end of each sample of a timeline.
struct SampleTimes {
    starts_s: Vec<f64>,
    ends_s: Vec<f64>,
    /// Intended duration of a sample.
    interval_s: f64,
}

impl SampleTimes {
    fn new(timeline: &Timeline) -> Self {
        let ends_s: Vec<f64> = timeline.ends_ns().into_iter().map(seconds).collect();
        let before = ends_s.iter().take(ends_s.len().saturating_sub(1)).copied();
        let starts_s = std::iter::once(seconds(timeline.start_ns)).chain(before).collect();
        SampleTimes { starts_s, ends_s, interval_s: seconds(timeline.interval_ns) }
    }

    fn end_s(&self) -> f64 {
        self.ends_s.last().copied().unwrap_or(0.0)
    }

    /// Bytes per second from the start of each sample, with a last point at the end. Short samples are merged with the next, or with the last if none follows.
    fn rates(&self, bytes: &[u64]) -> Vec<Point> {
        let together = bytes.len().div_ceil(SAMPLES_MAX).max(1);
        let duration_min_s = DURATION_SHARE_MIN * self.interval_s;
        let mut merged: Vec<MergedSample> = Vec::new();
        let samples = self.starts_s.iter().zip(&self.ends_s).zip(bytes);
        for ((&start_s, &end_s), &bytes) in samples {
            match merged.last_mut() {
                Some(last) if last.samples < together || last.duration_s() < duration_min_s => {
                    last.add(end_s, bytes);
                }
                _ => merged.push(MergedSample { start_s, end_s, bytes, samples: 1 }),
            }
        }
        if let [.., before, last] = merged.as_mut_slice()
            && last.duration_s() < duration_min_s
        {
            before.add(last.end_s, last.bytes);
            merged.pop();
        }
        let known = merged.iter().filter(|sample| 0.0 < sample.duration_s());
        let rate = |sample: &MergedSample| sample.bytes as f64 / sample.duration_s();
        let mut points: Vec<Point> =
            known.map(|sample| Point::new(sample.start_s, rate(sample))).collect();
        let last = points.last().map(|last| Point::new(self.end_s(), last.y));
        points.extend(last);
        points
    }

    /// The mean over GPUs at each sample that has a value.
    fn gpu_percent(&self, gpus: &[GpuTimeline]) -> Vec<Point> {
        let mut points = Vec::new();
        for (i, start_s) in self.starts_s.iter().enumerate() {
            let known = gpus.iter().filter_map(|gpu| *gpu.utilisation_percent.get(i)?);
            let known: Vec<f64> = known.map(|percent| percent as f64).collect();
            points.extend(mean(&known).map(|percent| Point::new(*start_s, percent)));
        }
        points
    }
}

/// Neighbouring samples with one rate.
struct MergedSample {
    start_s: f64,
    end_s: f64,
    bytes: u64,
    samples: usize,
}

impl MergedSample {
    fn duration_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    fn add(&mut self, end_s: f64, bytes: u64) {
        self.end_s = end_s;
        self.bytes += bytes;
        self.samples += 1;
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn steps(points: Vec<Point>) -> Layer {
    Layer::series("", Tone::Hue(0), Style::Steps, points)
}

fn panel(end_s: f64, y: Axis, spans: Vec<Layer>, lines: Vec<Layer>) -> Panel {
    let layers = [spans, lines].concat();
    let x = Axis::linear("Time (s)", AxisRange::AtLeast(0.0, end_s));
    Panel::from_axes(None, Axes { x, y, layers, aspect: 0.38 })
}

/// Shaded spans of epochs, evaluations and checkpoints, with times relative to `start_s`. Epochs are labelled if `has_names`.
fn spans(record: &Record, start_s: f64, has_names: bool) -> Vec<Layer> {
    let mut spans = Vec::new();
    for epoch in &record.epochs {
        let label = if has_names { format!("epoch {}", epoch.number) } else { String::new() };
        spans.push(("epoch", Tone::Faint, epoch.start_ns, epoch.end_ns, label));
        for checkpoint in &epoch.checkpoints {
            let ends_ns = (checkpoint.start_ns, checkpoint.end_ns);
            spans.push(("checkpoint", Tone::Hue(4), ends_ns.0, ends_ns.1, String::new()));
        }
    }
    for evaluation in &record.evaluations {
        let ends_ns = (evaluation.start_ns, evaluation.end_ns);
        spans.push(("evaluation", Tone::Hue(2), ends_ns.0, ends_ns.1, String::new()));
    }
    let spans = spans.into_iter().map(|(kind, tone, from_ns, to_ns, label)| {
        let from = (seconds(from_ns) - start_s).max(0.0);
        let to = seconds(to_ns) - start_s;
        Layer::Span(ShadedSpan { from, to, kind: kind.into(), label, tone })
    });
    spans.collect()
}

/// A block of steps of all accelerators.
struct StepBlock {
    start_s: f64,
    end_s: f64,
    /// The waits of each step, by accelerator.
    waits_s: Vec<Vec<f64>>,
}

/// The blocks that all accelerators have in an epoch.
fn blocks(epoch: &EpochRecord) -> Vec<StepBlock> {
    let accelerators = &epoch.accelerators;
    let mut all = Vec::new();
    let count = accelerators.iter().map(|accelerator| accelerator.blocks.len()).min();
    for number in 0..count.unwrap_or(0) {
        let parts: Vec<&Block> =
            accelerators.iter().map(|accelerator| &accelerator.blocks[number]).collect();
        let steps = parts.iter().map(|block| block.load_ns.len()).min().unwrap_or(0);
        let waits_s =
            |step: usize| parts.iter().map(|block| seconds(block.load_ns[step])).collect();
        all.push(StepBlock {
            start_s: seconds(parts.iter().map(|block| block.start_ns).min().unwrap_or(0)),
            end_s: seconds(parts.iter().map(|block| block.end_ns).max().unwrap_or(0)),
            waits_s: (0..steps).map(waits_s).collect(),
        });
    }
    all
}

impl StepBlock {
    /// The throughput of the block; `None` if batch or ranks are unknown.
    fn samples_per_second(&self, run: &Run) -> Option<f64> {
        let length_s = self.end_s - self.start_s;
        let samples = samples(run, self.waits_s.len() as u64)?;
        (length_s > 0.0).then(|| samples / length_s)
    }
}

/// The timeline of DLIO's results: the throughput of each block, and the wait of each step. `None` without a block.
fn block_timeline(run: &Run, record: &Record) -> Option<Figure> {
    let blocks: Vec<StepBlock> = record.epochs.iter().flat_map(blocks).collect();
    // DLIO's files have wall-clock times: the run begins with its first block.
    let start_s = blocks.iter().map(|block| block.start_s).reduce(f64::min)?;
    let end_s = blocks.iter().map(|block| block.end_s).fold(start_s, f64::max) - start_s;
    let rates: Option<Vec<f64>> =
        blocks.iter().map(|block| block.samples_per_second(run)).collect();
    let mut panels = Vec::new();
    if let Some(rates) = rates {
        // Each block has its own line, because nothing is known between blocks.
        let lines = blocks.iter().zip(rates).map(|(block, rate)| {
            let ends = [block.start_s - start_s, block.end_s - start_s];
            steps(ends.map(|at| Point::new(at, rate)).to_vec())
        });
        let y = Axis::linear("Throughput (samples/s)", AxisRange::FromZero);
        panels.push(panel(end_s, y, spans(record, start_s, true), lines.collect()));
    }
    panels.push(waits(&blocks));
    Some(Figure {
        title: "Throughput by block, and waits of steps".into(),
        caption: "Throughput of each block of steps, the finest resolution of DLIO's results: the samples of its steps divided by its duration. Below, for each step of the run, the wait of \
                  accelerators for its data."
            .into(),
        panels,
        columns: 1,
    })
}

/// A panel with the wait of each step.
fn waits(blocks: &[StepBlock]) -> Panel {
    let each: Vec<&Vec<f64>> = blocks.iter().flat_map(|block| &block.waits_s).collect();
    let together = each.len().div_ceil(SAMPLES_MAX).max(1);
    let mut longest = Vec::new();
    let mut means = Vec::new();
    for (i, part) in each.chunks(together).enumerate() {
        let x = (i * together + 1) as f64;
        longest.push(Point::new(x, part.iter().copied().flatten().copied().fold(0.0, f64::max)));
        let step_means: Vec<f64> = part.iter().filter_map(|waits| mean(waits)).collect();
        means.extend(mean(&step_means).map(|wait_s| Point::new(x, wait_s)));
    }
    let layers = vec![
        Layer::series("longest of all accelerators", Tone::Hue(1), Style::Steps, longest),
        Layer::series("mean", Tone::Hue(0), Style::Steps, means),
    ];
    let x = Axis::linear("Step (all epochs)", AxisRange::AtLeast(1.0, each.len().max(2) as f64));
    let y = Axis::linear("Wait for data (s)", AxisRange::FromZero);
    Panel::from_axes(None, Axes { x, y, layers, aspect: 0.38 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::tests::made_up::data_of;
    use feedrate_measure::example::simple;
    use feedrate_measure::record::timeline::Sample;
    use feedrate_results::import::RunOrigin;

    const INTERVAL_NS: u64 = 100_000_000;

    /// Samples of durations in ms, with the bytes read and written.
    fn timeline(samples: &[(u64, u64, u64)]) -> Timeline {
        let mut timeline = Timeline::new(0);
        for &(ms, read_bytes, written_bytes) in samples {
            let sample = Sample {
                duration_ns: ms * 1_000_000,
                read_bytes: Some(read_bytes),
                written_bytes: Some(written_bytes),
                ..Sample::default()
            };
            timeline.push(&sample, &[]);
        }
        assert_eq!(timeline.interval_ns, INTERVAL_NS);
        timeline
    }

    fn drawn(samples: &[(u64, u64, u64)]) -> Figure {
        let mut record = simple(&[(1000, 1000, 0, 1_000_000); 2]);
        record.timeline = Some(timeline(samples));
        let run =
            Run { origin: RunOrigin::Feedrate, record: Some(Box::new(record)), ..Run::default() };
        figure(&data_of(vec![run])).unwrap()
    }

    #[test]
    fn a_panel_of_almost_nothing_is_left_out() {
        let labels = |written: u64, read: u64| {
            let figure = drawn(&[(100, read, 0), (100, read, written)]);
            let labels = figure.panels.into_iter().map(|panel| panel.axes.y.label);
            labels.collect::<Vec<_>>().join(", ")
        };
        let both = "Read (MB/s), Written (MB/s)";
        assert_eq!(labels(20_000, 50_000_000), "Read (MB/s)");
        assert_eq!(labels(2_000_000, 50_000_000), both);
        // A run that only writes checkpoints.
        assert_eq!(labels(50_000_000, 20_000), "Written (MB/s)");
        assert_eq!(labels(0, 0), "Read (MB/s)");
    }

    #[test]
    fn a_short_sample_shows_no_spike() {
        let rates = |samples: &[(u64, u64, u64)]| -> Vec<(f64, f64)> {
            let timeline = timeline(samples);
            let bytes = timeline.written_bytes.as_ref().unwrap();
            let points = SampleTimes::new(&timeline).rates(bytes).into_iter();
            points.map(|point| (point.x, (point.y / MB * 1e6).round() / 1e6)).collect()
        };
        // Results are written in the last millisecond.
        let usual = (100, 0, 1_000_000);
        assert_eq!(
            rates(&[usual, usual, (1, 0, 1_000_000)]),
            [(0.0, 10.0), (0.1, 19.801980), (0.201, 19.801980)]
        );
        // A short sample in the middle counts with the next.
        assert_eq!(
            rates(&[usual, (2, 0, 0), usual]),
            [(0.0, 10.0), (0.1, 9.803922), (0.202, 9.803922)]
        );
        assert_eq!(rates(&[usual, (60, 0, 0)]), [(0.0, 10.0), (0.1, 0.0), (0.16, 0.0)]);
        assert_eq!(rates(&[(1, 0, 5_000)]), [(0.0, 5.0), (0.001, 5.0)]);
    }
}
