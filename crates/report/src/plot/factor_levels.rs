//! AU and throughput by the levels of each factor, one panel a factor.

use super::against::{joined, of_held};
use super::caption::of_intervals;
use super::data::Data;
use super::groups::{Block, Group, axis_of, blocks, point};
use super::{Missing, Plot};
use crate::draw::figure::{Axes, Figure, Layer, Naming, Panel, Point};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct FactorLevels;

static MEMBER: Member = Member {
    name: "factor_levels",
    summary: "AU and throughput by the levels of each factor, all others as commonly; a line for each number of processes",
    abilities: &[],
};

const RESPONSES: [&str; 2] = ["au_all_steps_percent", "delivered_bytes_per_second"];

impl Plot for FactorLevels {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        if data.runs.is_empty() {
            return Err(Missing::runs());
        }
        let blocks = blocks(&data.runs);
        let responses: Vec<&Response> =
            RESPONSES.iter().filter_map(|name| Response::find(name).ok()).collect();
        let (mut panels, mut gaps) = (Vec::new(), Vec::new());
        for block in &blocks {
            for factor in factors(block) {
                let before = panels.len();
                for response in &responses {
                    let (y, unit) = axis_of(response, &data.runs);
                    let (x, places) = block.factors[factor].axis();
                    let layers = lines(block, (factor, &places), response, unit);
                    if layers.iter().any(has_levels) {
                        panels.push(Panel::from_axes(
                            block.title(),
                            Axes { x, y, layers, aspect: 0.6 },
                        ));
                    }
                }
                if panels.len() == before {
                    gaps.push(format!("`{}`", block.factors[factor].name));
                }
            }
        }
        if panels.is_empty() {
            return Err(missing(&gaps));
        }
        let mut figure = Figure {
            title: "AU and throughput by level of each factor".into(),
            caption: String::new(),
            panels,
            columns: 2,
            naming: Naming::Key,
        };
        figure.caption = format!(
            "{}{}. {}{}",
            figure.title,
            of_held(&blocks.iter().collect::<Vec<_>>()),
            of_gaps(&gaps),
            of_intervals(&figure, "means (of throughput, geometric means)")
        );
        Ok(figure)
    }
}

fn missing(gaps: &[String]) -> Missing {
    match gaps.is_empty() {
        true => Missing::new(
            "all runs have the same settings",
            "this plot is drawn from runs that differ in a factor: `feedrate study new` designs them",
        ),
        false => Missing::new(
            format!("no two runs differ in {} alone", gaps.join(" or ")),
            "run the levels of a factor with all else the same: `feedrate study new` designs such runs",
        ),
    }
}

fn of_gaps(gaps: &[String]) -> String {
    match gaps.is_empty() {
        true => String::new(),
        false => format!("Not drawn, as something else always differed: {}. ", gaps.join(", ")),
    }
}

/// Whether a line joins levels.
fn has_levels(layer: &Layer) -> bool {
    matches!(layer, Layer::Series(series) if series.points.len() > 1)
}

/// Those but processes; processes where there is no other.
fn factors(block: &Block<'_>) -> Vec<usize> {
    let others = block.others();
    if others.is_empty() { block.processes().into_iter().collect() } else { others }
}

fn lines(
    block: &Block<'_>,
    (factor, places): (usize, &[f64]),
    response: &Response,
    unit: f64,
) -> Vec<Layer> {
    let by = block.processes().filter(|processes| *processes != factor);
    let free: Vec<usize> = by.into_iter().chain([factor]).collect();
    let levels =
        by.map_or(vec![None], |by| (0..block.factors[by].levels.len()).map(Some).collect());
    let line = |level: Option<usize>| -> Option<Layer> {
        let of = |group: &&Group<'_>| by.is_none_or(|by| Some(group.levels[by]) == level);
        let at =
            |group: &Group<'_>| point(places[group.levels[factor]], &group.runs, response, unit);
        let points: Vec<Point> = block.slice(&free).filter(of).filter_map(at).collect();
        let label = by.zip(level).map(|(by, level)| block.factors[by].named(level));
        (!points.is_empty()).then(|| joined(label.unwrap_or_default(), level.unwrap_or(0), points))
    };
    levels.into_iter().filter_map(line).collect()
}
