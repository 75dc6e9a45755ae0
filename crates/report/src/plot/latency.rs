//! Plots the durations of single opens, reads and samples as cumulative distributions.

use super::block::PlotBlock;
use super::data::Data;
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Scale, Style, Tone};
use feedrate_analysis::design::DesignCell;
use feedrate_measure::histogram::Histogram;
use feedrate_measure::record::{AcceleratorEpoch, IoCounters, Record};
use feedrate_results::run::Run;
use std::collections::BTreeMap;

/// Maximum number of distinguishable lines.
const LINES_MAX: usize = 7;

pub(super) static PLOT: Plot = Plot {
    name: "latency",
    aliases: &[],
    summary: "Durations of opens, reads and samples, or for DLIO's results the waits for the data of steps: cumulative distributions on a logarithmic axis",
    needs: Needs::Records,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| figure(data),
};

/// Returns the durations of calls in a record, in nanoseconds, with the number of calls.
type Counts = fn(&Record) -> Vec<(u64, u64)>;

/// The measured durations. DLIO's results have no calls, only waits.
const CALLS: [(&str, Counts); 4] = [
    ("Open call", |record| merge_histograms(record, |io| &io.open_latency)),
    ("Read call", |record| merge_histograms(record, |io| &io.read_latency)),
    ("Sample", |record| merge_histograms(record, |io| &io.sample_latency)),
    (WAIT, |record| {
        let blocks = accelerators(record).flat_map(|accelerator| &accelerator.blocks);
        blocks.flat_map(|block| &block.load_ns).map(|ns| (*ns, 1)).collect()
    }),
];

fn accelerators(record: &Record) -> impl Iterator<Item = &AcceleratorEpoch> {
    record.epochs.iter().flat_map(|epoch| &epoch.accelerators)
}

/// One histogram of all accelerators and epochs.
fn merge_histograms(record: &Record, histogram: fn(&IoCounters) -> &Histogram) -> Vec<(u64, u64)> {
    let mut all = Histogram::default();
    accelerators(record).for_each(|accelerator| all.merge(histogram(&accelerator.io)));
    all.counts()
}

const WAIT: &str = "Wait for the data of a step";

fn figure(data: &Data) -> Result<Figure, Missing> {
    let blocks = data.blocks();
    let cells =
        || blocks.iter().flat_map(|block| block.design.cells.iter().map(move |cell| (block, cell)));
    let count = cells().count();
    if count > LINES_MAX {
        let hint = "give the folders of fewer runs: `feedrate plot latency RUN RUN`";
        return Err(Missing::too_many(count, LINES_MAX, hint));
    }
    let mut panels = Vec::new();
    let mut has_calls = false;
    let mut has_waits = false;
    for (name, counts) in CALLS {
        let mut layers = Vec::new();
        for (i, (block, cell)) in cells().enumerate() {
            let points = distribution(block, cell, name, counts);
            if !points.is_empty() {
                let label = block.label(cell);
                layers.push(Layer::series(label, Tone::Hue(i), Style::BrokenSteps, points));
            }
        }
        if layers.is_empty() {
            continue;
        }
        has_waits |= name == WAIT;
        has_calls |= name != WAIT;
        let counted = if name == WAIT { "Steps" } else { "Calls" };
        let x = Axis::new(format!("{name} (ms)"), Scale::Log10, AxisRange::Tight);
        let y = Axis::linear(format!("{counted}, cumulative (%)"), AxisRange::AtLeast(0.0, 100.0));
        panels.push(Panel::from_axes(None, Axes { x, y, layers, aspect: 0.85 }));
    }
    if panels.is_empty() {
        return Err(Missing::new(
            "no run has the durations of its calls",
            "records of feedrate have them if files were read; results of DLIO have the waits of steps for data",
        ));
    }
    let calls = "Durations of single open calls, read calls and complete samples (open, reads, decoding), with a resolution of one sixteenth.";
    let waits = "Waits of accelerators for the data of a step, from DLIO's results; these are not latencies of calls, as batches are read ahead.";
    let (title, shown) = match (has_calls, has_waits) {
        (true, true) => {
            ("Latency of calls, and waits for data of steps", format!("{calls} {waits}"))
        }
        (false, true) => ("Waits for data of steps", waits.into()),
        _ => ("Latency of opens, reads and samples", calls.into()),
    };
    let caption = format!("{shown} Over all accelerators, epochs and runs of an experiment.");
    let columns = panels.len();
    Ok(Figure { title: title.into(), caption, panels, columns })
}

/// The record of a run that has these durations.
fn record<'a>(run: &'a Run, name: &str) -> Option<&'a Record> {
    let is_from_feedrate = run.is_from_feedrate();
    if is_from_feedrate == (name != WAIT) { run.record.as_deref() } else { None }
}

/// Durations in milliseconds, with the cumulative percentage of calls. Calls of 0 ns count below the first point.
fn distribution(
    block: &PlotBlock<'_>,
    cell: &DesignCell,
    name: &str,
    counts: Counts,
) -> Vec<Point> {
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for record in block.runs(cell).filter_map(|run| record(run, name)) {
        for (ns, count) in counts(record) {
            *found.entry(ns).or_default() += count;
        }
    }
    let all: u64 = found.values().sum();
    let share = |below: u64| 100.0 * below as f64 / all as f64;
    let mut below = found.remove(&0).unwrap_or(0);
    let mut points = Vec::new();
    for (ns, count) in found {
        let ms = ns as f64 / 1e6;
        if points.is_empty() {
            points.push(Point::new(ms, share(below)));
        }
        below += count;
        points.push(Point::new(ms, share(below)));
    }
    points
}
