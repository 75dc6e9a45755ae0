//! How long single opens, reads and samples took: cumulative distributions.

use super::data::Data;
use super::groups::{Group, blocks};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Spread, Style, Tone,
};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;
use std::collections::BTreeMap;

/// See the row.
pub(super) struct Latency;

/// More lines are told apart by nobody.
const MOST: usize = 7;

/// The waits are of DLIO's results, which know no calls.
const CALLS: [&str; 4] = ["open", "read", "sample", "wait"];

static MEMBER: Member = Member {
    name: "latency",
    summary: "How long opens, reads and samples took, or of DLIO's results the waits for the data of steps: cumulative distributions on a logarithmic axis",
    abilities: &[],
};

impl Plot for Latency {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn needs(&self) -> Needs {
        Needs::Records
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let blocks = blocks(&data.runs);
        let groups: Vec<(String, &Group<'_>)> = blocks
            .iter()
            .flat_map(|block| block.groups.iter().map(|group| (block.label(group), group)))
            .collect();
        if groups.len() > MOST {
            return Err(Missing::new(
                format!(
                    "{} experiments are too many lines for one picture of at most {MOST}",
                    groups.len()
                ),
                "give the folders of some: `feedrate plot latency RUN RUN`",
            ));
        }
        let mut panels = Vec::new();
        for name in CALLS {
            let curves = groups.iter().enumerate().filter_map(|(i, (label, group))| {
                let points = distribution(name, group);
                let (tone, style, spread) = (Tone::Hue(i), Style::BrokenSteps, Spread::Y);
                let label = label.clone();
                (!points.is_empty()).then_some(Layer::Series(Series {
                    label,
                    tone,
                    style,
                    spread,
                    points,
                }))
            });
            let layers: Vec<Layer> = curves.collect();
            if !layers.is_empty() {
                let x = Axis {
                    label: format!("{} (ms)", of_call(name)),
                    scale: Scale::Log10,
                    range: Range::Tight,
                };
                let y = Axis {
                    label: of_all(name).into(),
                    scale: Scale::Linear,
                    range: Range::AtLeast(0.0, 100.0),
                };
                panels.push(Panel::from_axes(None, Axes { x, y, layers, aspect: 0.85 }));
            }
        }
        if panels.is_empty() {
            return Err(Missing::new(
                "no run tells how long its calls took",
                "records of feedrate do, where files were read; results of DLIO tell how long steps waited for data",
            ));
        }
        let has = |wanted: fn(&str) -> bool| {
            let details = data.runs.iter().filter_map(|run| run.details.as_ref());
            let mut all = details.flat_map(|details| &details.latencies);
            all.any(|one| wanted(one.name) && !one.counts.is_empty())
        };
        let (title, caption) = words(has(|name| name != "wait"), has(|name| name == "wait"));
        let columns = panels.len();
        Ok(Figure { title: title.into(), caption, panels, columns, naming: Naming::Key })
    }
}

fn of_call(name: &str) -> &'static str {
    match name {
        "open" => "Open call",
        "read" => "Read call",
        "wait" => "Wait for the data of a step",
        _ => "Sample",
    }
}

fn of_all(name: &str) -> &'static str {
    if name == "wait" { "Steps, cumulative (%)" } else { "Calls, cumulative (%)" }
}

/// What is shown, which is not the same of records and of DLIO's results.
fn words(has_calls: bool, has_waits: bool) -> (&'static str, String) {
    let calls = "How long single open calls, read calls and whole samples (open, reads, decoding) took; known to one sixteenth.";
    let waits = "How long accelerators waited for the data of a step, as DLIO's results have it: no latency of a call, as batches are read ahead.";
    let (title, shown) = match (has_calls, has_waits) {
        (true, true) => {
            ("Latency of calls, and waits for data of steps", format!("{calls} {waits}"))
        }
        (false, true) => ("Waits for data of steps", waits.into()),
        _ => ("Latency of opens, reads and samples", calls.into()),
    };
    (title, format!("{shown} Over all accelerators, epochs and runs of an experiment."))
}

/// Milliseconds, and the percentage of calls that took no longer. Those that took no time lie below the first.
fn distribution(name: &str, group: &Group<'_>) -> Vec<Point> {
    // By bits, which sort as positive numbers do.
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut below = 0;
    let details = group.runs.iter().filter_map(|run| run.details.as_ref());
    for latencies in details.flat_map(|details| &details.latencies).filter(|one| one.name == name) {
        for (seconds, count) in &latencies.counts {
            match *seconds > 0.0 {
                true => *counts.entry((seconds * 1e3).to_bits()).or_default() += count,
                false => below += count,
            }
        }
    }
    let all = below + counts.values().sum::<u64>();
    let share = |below: u64| 100.0 * below as f64 / all as f64;
    let mut points = Vec::new();
    for (bits, count) in counts {
        if points.is_empty() {
            points.push(Point::at(f64::from_bits(bits), share(below)));
        }
        below += count;
        points.push(Point::at(f64::from_bits(bits), share(below)));
    }
    points
}
