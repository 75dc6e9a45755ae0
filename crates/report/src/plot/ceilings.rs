//! Plots diagnoses: the ceilings of a workload side by side, and the needed rate.

use super::data::Data;
use super::{Missing, Needs, Plot};
use crate::ceilings as words;
use crate::draw::figure::{
    Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Scale, Series, Spread, Style, Tone,
};
use feedrate_results::diagnosis::Diagnosis;
use feedrate_spec::units;

pub(super) static PLOT: Plot = Plot {
    name: "ceilings",
    aliases: &[],
    summary: "The samples per second that each part alone can deliver, as measured by `feedrate diagnose` beside a run, and the needed rate",
    needs: Needs::Diagnosis,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| stored_diagnoses(data),
};

/// The figure of the diagnoses stored beside runs.
fn stored_diagnoses(data: &Data) -> Result<Figure, Missing> {
    let found: Vec<&Diagnosis> = data.diagnoses.iter().collect();
    figure(&found).ok_or_else(|| {
        Missing::new(
            "no diagnosis is stored beside these runs",
            "make one: `feedrate diagnose` with the workload and the results folder of the runs",
        )
    })
}

/// A figure with a panel for each diagnosis; `None` if nothing was measured.
pub fn figure(all: &[&Diagnosis]) -> Option<Figure> {
    let panels: Vec<Panel> = all.iter().filter_map(|diagnosis| panel(diagnosis)).collect();
    let says: Vec<String> = all
        .iter()
        .map(|diagnosis| format!("{}: {}.", diagnosis.workload, words::answer(diagnosis)))
        .collect();
    (!panels.is_empty()).then(|| Figure {
        title: "Ceilings: the rate of each part alone".into(),
        caption: format!(
            "Marks are means of the slices of one measurement, with 95 % intervals. {}",
            says.join(" ")
        ),
        columns: panels.len().min(2),
        panels,
    })
}

fn panel(diagnosis: &Diagnosis) -> Option<Panel> {
    let known = diagnosis.ceilings.iter().filter_map(|ceiling| {
        // A logarithmic axis has no place for an end at or below 0.
        let interval = ceiling.interval().filter(|interval| 0.0 < interval.low);
        let ends = interval.map(|interval| (interval.low, interval.high));
        Some((ceiling.name, ceiling.samples_per_second?, ends))
    });
    let known: Vec<_> = known.collect();
    let names: Vec<String> = known.iter().map(|(name, ..)| name.title().to_string()).collect();
    let mut least = f64::INFINITY;
    let mut most = 0.0_f64;
    for rate in known.iter().map(|(_, rate, _)| *rate).chain(diagnosis.needed_samples_per_second) {
        least = least.min(rate);
        most = most.max(rate);
    }
    let drop = diagnosis.largest_drop.map(|drop| drop.name);
    let mut layers = Vec::new();
    if let Some(needed) = diagnosis.needed_samples_per_second {
        let ends = [-0.5, known.len() as f64 - 0.5].map(|y| Point::new(needed, y));
        let label = format!("needed: {}", units::per_second(needed, "samples"));
        layers.push(Layer::series(label, Tone::Hue(6), Style::Dashes, ends.into()));
    }
    for (label, tone, is_drop) in
        [("ceiling", Tone::Hue(0), false), ("largest drop", Tone::Bad, true)]
    {
        let measured = known.iter().enumerate();
        let measured = measured.filter(|(_, (name, ..))| (Some(*name) == drop) == is_drop);
        let points = measured.map(|(y, (_, x, ends))| {
            let (low, high) = ends.unzip();
            Point { low, high, ..Point::new(*x, y as f64) }
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            let label = label.into();
            let series = Series { label, tone, style: Style::Marks, spread: Spread::X, points };
            layers.push(Layer::Series(series));
        }
    }
    let range = AxisRange::AtLeast(least / 2.0, most * 2.0);
    let x = Axis::new("Throughput (samples/s)", Scale::Log10, range);
    let y = Axis::categories("", names);
    (most > 0.0).then(|| Panel::from_axes(None, Axes { x, y, layers, aspect: 0.7 }))
}
