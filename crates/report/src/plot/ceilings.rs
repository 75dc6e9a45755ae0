//! Ceilings of a workload side by side, and what is needed: a diagnosis as a picture.

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
    summary: "How many samples per second each part is good for where the others cost nothing, as `feedrate diagnose` found beside a run, and what is needed",
    needs: Needs::Diagnosis,
    responses: &[],
    make: |data, _| of_runs(data),
};

fn of_runs(data: &Data) -> Result<Figure, Missing> {
    let found: Vec<&Diagnosis> = data.diagnoses.iter().collect();
    figure(&found).ok_or_else(|| {
        Missing::new(
            "no diagnosis lies beside these runs",
            "make one with `feedrate diagnose`, with the workload and the results of the runs",
        )
    })
}

/// A panel for each; `None` where nothing was measured.
pub fn figure(all: &[&Diagnosis]) -> Option<Figure> {
    let panels: Vec<Panel> = all.iter().filter_map(|of| panel(of)).collect();
    let says: Vec<String> =
        all.iter().map(|of| format!("{}: {}.", of.workload, words::answer(of))).collect();
    (!panels.is_empty()).then(|| Figure {
        title: "Ceilings: each part where the others cost nothing".into(),
        caption: format!(
            "Marks are means of the slices of one measurement, with 95 % intervals. {}",
            says.join(" ")
        ),
        columns: panels.len().min(2),
        panels,
    })
}

fn panel(of: &Diagnosis) -> Option<Panel> {
    let known = of.ceilings.iter().filter_map(|one| {
        let interval = one.interval();
        // On a logarithmic axis an end at or below nothing has no place.
        let ends = interval.filter(|own| 0.0 < own.low).map(|own| (own.low, own.high));
        Some((one.name, one.samples_per_second?, ends))
    });
    let known: Vec<_> = known.collect();
    let names: Vec<String> = known.iter().map(|one| one.0.title().to_string()).collect();
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for rate in known.iter().map(|one| one.1).chain(of.needed_samples_per_second) {
        (least, most) = (least.min(rate), most.max(rate));
    }
    let drop = of.largest_drop.map(|drop| drop.name);
    let mut layers = Vec::new();
    if let Some(needed) = of.needed_samples_per_second {
        let ends = [-0.5, known.len() as f64 - 0.5].map(|y| Point::at(needed, y));
        let label = format!("needed: {}", units::per_second(needed, "samples"));
        layers.push(Layer::series(label, Tone::Hue(6), Style::Dashes, ends.into()));
    }
    for (label, tone, is_drop) in
        [("ceiling", Tone::Hue(0), false), ("largest drop", Tone::Bad, true)]
    {
        let own = known.iter().enumerate().filter(|at| (Some(at.1.0) == drop) == is_drop);
        let points = own.map(|(y, (_, x, ends))| {
            let (low, high) = ends.unzip();
            Point { low, high, ..Point::at(*x, y as f64) }
        });
        let (points, label) = (points.collect::<Vec<_>>(), label.into());
        if !points.is_empty() {
            let (style, spread) = (Style::Marks, Spread::X);
            layers.push(Layer::Series(Series { label, tone, style, spread, points }));
        }
    }
    let range = AxisRange::AtLeast(least / 2.0, most * 2.0);
    let x = Axis::new("Throughput (samples/s)", Scale::Log10, range);
    let y = Axis::categories("", names);
    (most > 0.0).then(|| Panel::from_axes(None, Axes { x, y, layers, aspect: 0.7 }))
}
