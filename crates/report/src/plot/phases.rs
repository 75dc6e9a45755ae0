//! AU, throughput and use of GPUs by phase: in epochs and evaluations, and before, during and after checkpoints.

use super::caption::of_intervals;
use super::data::{Data, PhasePoint, RunPoint};
use super::groups::{Group, blocks, bytes_unit, mean_point};
use super::{Missing, Plot};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Spread, Style, Tone,
};
use feedrate_measure::stats;
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct Phases;

/// More marks in a row are told apart by nobody.
const MOST: usize = 7;

static MEMBER: Member = Member {
    name: "phases",
    summary: "AU, throughput and use of GPUs in epochs and evaluations, and before, during and after checkpoints; of DLIO's results in epochs, and in first and later steps",
    abilities: &[],
};

const OF_NOTHING: &str = "Where nothing was computed, read or written there is no mark. ";

const OF_STEPS: &str = "First and later steps, of each block, are without the barrier: DLIO's results do not tell when it was. ";

type Figures = fn(&PhasePoint) -> Option<f64>;

impl Plot for Phases {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let mut names: Vec<String> = Vec::new();
        for phase in data.runs.iter().flat_map(|run| &run.phases) {
            if !names.contains(&phase.name) {
                names.push(phase.name.clone());
            }
        }
        if names.is_empty() {
            return Err(Missing::new(
                "no run has phases",
                "records of feedrate have (see docs/guide/timeline.md), and results of DLIO with the times of steps and blocks",
            ));
        }
        let blocks = blocks(&data.runs);
        let groups: Vec<(String, &Group<'_>)> = blocks
            .iter()
            .flat_map(|block| block.groups.iter().map(|group| (block.label(group), group)))
            .collect();
        if groups.len() > MOST {
            return Err(Missing::new(
                format!(
                    "{} experiments are too many for one picture of at most {MOST}",
                    groups.len()
                ),
                "give the folders of some: `feedrate plot phases RUN RUN`",
            ));
        }
        let percent = Range::AtLeast(0.0, 100.0);
        let mut panels = Vec::new();
        panels.extend(panel(&groups, &names, ("AU (%)", percent, 1.0), |phase| phase.au_percent));
        for (label, of) in [
            ("Read", (|phase| phase.delivered_bytes_per_second) as Figures),
            ("Written", |phase| phase.written_bytes_per_second),
        ] {
            let largest = values(&data.runs, of).fold(0.0, f64::max);
            let (unit, name) = bytes_unit(largest);
            if largest > 0.0 {
                let label = format!("{label} ({name}/s)");
                panels.extend(panel(&groups, &names, (&label, Range::FromZero, unit), of));
            }
        }
        panels.extend(panel(&groups, &names, ("GPU use (%)", percent, 1.0), |phase| {
            phase.gpu_percent
        }));
        if panels.is_empty() {
            return Err(Missing::new(
                "no phase has a figure",
                "let runs keep a timeline: `output.timeline=True`",
            ));
        }
        let is_gpu_known = values(&data.runs, |phase| phase.gpu_percent).next().is_some();
        let columns = panels.len();
        let mut figure = Figure {
            title: "Phases of the run".into(),
            caption: String::new(),
            panels,
            columns,
            naming: Naming::Key,
        };
        figure.caption = format!(
            "AU, throughput and use of GPUs by phase. A run counts with the mean of its phases{}. {OF_NOTHING}{}{}{}",
            if groups.len() == 1 { ", which are the small dots" } else { "" },
            if names.iter().any(|name| name == "first steps") { OF_STEPS } else { "" },
            of_intervals(&figure, "means"),
            if is_gpu_known { "" } else { " No GPU was seen." }
        );
        Ok(figure)
    }
}

/// One figure of all phases, a series for each experiment; `None` where no phase has it.
fn panel(
    groups: &[(String, &Group<'_>)],
    names: &[String],
    (label, range, unit): (&str, Range, f64),
    of: Figures,
) -> Option<Panel> {
    let mut layers = Vec::new();
    for (i, (experiment, group)) in groups.iter().enumerate() {
        let (mut dots, mut means) = (Vec::new(), Vec::new());
        for (row, name) in names.iter().enumerate() {
            let mut of_runs = Vec::new();
            for run in &group.runs {
                let phases = run.phases.iter().filter(|phase| phase.name == *name);
                let values: Vec<f64> = phases.filter_map(of).map(|value| value / unit).collect();
                dots.extend(values.iter().map(|&value| Point::at(value, row as f64)));
                of_runs.extend(stats::mean(&values));
            }
            let mean = mean_point(0.0, &of_runs);
            means.extend(mean.map(|point| Point { x: point.y, y: row as f64, ..point }));
        }
        let tone = Tone::Hue(i);
        let series = |label: &str, style, points| {
            let label = label.to_string();
            Layer::Series(Series { label, tone, style, spread: Spread::X, points })
        };
        if groups.len() == 1 {
            layers.push(series("", Style::Dots, dots));
        }
        if !means.is_empty() {
            layers.push(series(experiment, Style::Marks, means));
        }
    }
    let x = Axis { label: label.into(), scale: Scale::Linear, range };
    let y = Axis {
        label: String::new(),
        scale: Scale::Categories(names.to_vec()),
        range: Range::Tight,
    };
    let is_known = layers.iter().any(|layer| match layer {
        Layer::Series(series) => !series.points.is_empty(),
        _ => false,
    });
    is_known.then(|| Panel::from_axes(None, Axes { x, y, layers, aspect: 1.0 }))
}

fn values(runs: &[RunPoint], of: Figures) -> impl Iterator<Item = f64> {
    runs.iter().flat_map(|run| &run.phases).filter_map(of)
}
