//! Ceilings of a workload side by side, and what is needed: a diagnosis as a picture.

use super::data::Data;
use super::{Make, Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, AxisRange, Figure, Layer, Naming, Panel, Point, Scale, Style, Tone,
};
use crate::words::ceilings as words;
use feedrate_results::diagnosis::Diagnosis;
use feedrate_spec::catalog::Member;

pub(super) static PLOT: Plot = Plot {
    member: Member {
        name: "ceilings",
        summary: "How many samples per second each part is good for where the others cost nothing, as `feedrate diagnose` found beside a run, and what is needed",
        abilities: &[],
    },
    needs: Needs::Diagnosis,
    make: Make::Figure(of_runs),
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
        caption: format!("Each mark is one measurement. {}", says.join(" ")),
        columns: panels.len().min(2),
        panels,
        naming: Naming::Key,
    })
}

fn panel(of: &Diagnosis) -> Option<Panel> {
    let known = of.ceilings.iter().filter_map(|one| Some((one.name, one.samples_per_second?)));
    let known: Vec<_> = known.collect();
    let names: Vec<String> = known.iter().map(|one| words::name(one.0).to_string()).collect();
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for rate in known.iter().map(|one| one.1).chain(of.needed_samples_per_second) {
        (least, most) = (least.min(rate), most.max(rate));
    }
    let drop = of.largest_drop.map(|drop| drop.name);
    let mut layers = Vec::new();
    if let Some(needed) = of.needed_samples_per_second {
        let ends = [-0.5, known.len() as f64 - 0.5].map(|y| Point::at(needed, y));
        layers.push(Layer::series("needed", Tone::Open, Style::Dashes, ends.into()));
    }
    for (label, tone, is_drop) in
        [("ceiling", Tone::Hue(0), false), ("largest drop", Tone::Bad, true)]
    {
        let own = known.iter().enumerate().filter(|at| (Some(at.1.0) == drop) == is_drop);
        let points: Vec<Point> = own.map(|at| Point::at(at.1.1, at.0 as f64)).collect();
        if !points.is_empty() {
            layers.push(Layer::series(label, tone, Style::Marks, points));
        }
    }
    let range = AxisRange::AtLeast(least / 2.0, most * 2.0);
    let x = Axis::new("Samples per second", Scale::Log10, range);
    let y = Axis::categories("", names);
    (most > 0.0).then(|| Panel::from_axes(None, Axes { x, y, layers, aspect: 0.7 }))
}

/// Of a workload that needs 1000 samples/s.
#[cfg(test)]
pub(crate) fn example(workload: &str) -> Diagnosis {
    use feedrate_results::diagnosis::{Ceiling, NotMeasured, ReadFrom, Rung, largest_drop};
    let rates = [Some(900.0), Some(310.0), Some(290.0), Some(1e6), None, Some(800.0), Some(250.0)];
    let mut ceilings = Vec::new();
    for (name, rate) in Rung::ALL.into_iter().zip(rates) {
        let none = Ceiling::not_measured(name, NotMeasured::NothingDecoded);
        let measured = Ceiling {
            samples_per_second: rate,
            measured_s: Some(4.0),
            own_per_second: (name == Rung::Opens).then_some(145.0),
            in_flight: Some(if name == Rung::Device { 16 } else { 4 }),
            request_bytes: (name == Rung::Device).then_some(4_194_304.0),
            read_from: (name == Rung::Device).then_some(ReadFrom::Direct),
            not_measured: None,
            ..none.clone()
        };
        ceilings.push(if rate.is_some() { measured } else { none });
    }
    Diagnosis {
        workload: workload.into(),
        accelerators: 2,
        needed_samples_per_second: Some(1000.0),
        needed_bytes_per_second: None,
        largest_drop: largest_drop(&ceilings, Some(1000.0)),
        ceilings,
        bytes_per_sample: None,
        device_bytes_per_sample: None,
        opens_per_sample: Some(0.5),
        files: 64,
        file_bytes: 1 << 28,
        cores: 2,
        took_s: 42.0,
        started: "2026-11-22T12:00:00.000000".into(),
        dataset: Default::default(),
        storage: Default::default(),
        loader: Default::default(),
    }
}
