//! Plots the rate of each checkpoint, written and read.

use super::data::Data;
use super::response::{MB, MB_PER_SECOND};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Scale, Style, Tone};
use feedrate_measure::record::{CheckpointKind, Record};
use feedrate_results::run::Run;

/// Maximum number of distinguishable lines.
const LINES_MAX: usize = 7;

pub(super) static PLOT: Plot = Plot {
    name: "checkpoint_rates",
    aliases: &[],
    summary: "Rate at which each checkpoint was written and read",
    needs: Needs::Records,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| figure(data),
};

fn figure(data: &Data) -> Result<Figure, Missing> {
    let runs: Vec<(&Run, &Record)> = data
        .used()
        .chain(&data.checkpoint_runs)
        .filter_map(|run| Some((run, run.record.as_deref()?)))
        .filter(|(_, record)| record.epochs.iter().any(|epoch| !epoch.checkpoints.is_empty()))
        .collect();
    if runs.is_empty() {
        return Err(Missing::new(
            "no run has a record of its checkpoints",
            "run with `workflow.checkpoint=true`; results of DLIO do not have the times of ranks",
        ));
    }
    let mut layers = Vec::new();
    let mut numbers = Vec::new();
    for (run, record) in &runs {
        for (kind, done) in [(CheckpointKind::Save, "written"), (CheckpointKind::Load, "read")] {
            let checkpoints = record.checkpoints_of(kind).enumerate();
            let points: Vec<Point> = checkpoints
                .filter_map(|(index, checkpoint)| {
                    let rate = checkpoint.bytes_per_second()?;
                    Some(Point::new((index + 1) as f64, rate / MB))
                })
                .collect();
            numbers.extend(points.iter().map(|point| point.x));
            if !points.is_empty() {
                let label = match runs.len() {
                    1 => done.to_string(),
                    _ => format!("{} {done}", run.short_path()),
                };
                let tone = Tone::Hue(layers.len());
                layers.push(Layer::series(label, tone, Style::Joined, points));
            }
        }
    }
    if LINES_MAX < layers.len() {
        let hint = "give the folders of fewer runs: `feedrate plot checkpoint_rates RUN RUN`";
        return Err(Missing::too_many(layers.len(), LINES_MAX, hint));
    }
    let x = Axis::new("Checkpoint", Scale::LinearAt(numbers), AxisRange::Tight);
    let y = Axis::linear(format!("Rate ({MB_PER_SECOND})"), AxisRange::FromZero);
    Ok(Figure {
        title: "Rates of checkpoints".into(),
        caption: "Size of each checkpoint ÷ the time until its last rank was done.".into(),
        panels: vec![Panel::from_axes(None, Axes { x, y, layers, aspect: 0.5 })],
        columns: 1,
    })
}
