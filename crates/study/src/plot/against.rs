//! A response against processes: a line for each workload, or a panel for each factor with a line for each of its levels.

use super::Missing;
use super::data::RunPoint;
use super::groups::{
    Block, Group, axis_of, blocks, means_of, of_intervals, point, processes, processes_axis, title,
};
use crate::draw::figure::{Axes, Figure, Layer, Naming, Panel, Point, Series, Spread, Style, Tone};
use crate::response::Response;
use std::collections::{BTreeMap, BTreeSet};

/// The whole figure.
pub(super) fn figure(runs: &[RunPoint], response: &Response) -> Result<Figure, Missing> {
    if runs.is_empty() {
        return Err(Missing::runs());
    }
    if !runs.iter().any(|run| run.responses.contains_key(response.name)) {
        return Err(Missing::new(
            format!("no run has the response `{}`", response.name),
            "choose another with `--response`; `feedrate describe metrics NAME` says what a number needs",
        ));
    }
    let (y, unit) = axis_of(response, runs);
    let axes = |layers| Axes { x: processes_axis(runs), y: y.clone(), layers, aspect: 0.68 };
    let blocks = blocks(runs);
    let line = |label: String, tone: usize, groups: &[&Group<'_>]| {
        let at = |group: &&Group<'_>| {
            point(processes(group.runs.first()?)?, &group.runs, response, unit)
        };
        joined(label, tone, groups.iter().filter_map(at).collect())
    };
    let mut panels = Vec::new();
    if blocks.iter().all(|block| block.others().is_empty()) {
        let lines = blocks.iter().enumerate().map(|(i, block)| {
            line(block.name.clone(), i, &block.groups.iter().collect::<Vec<_>>())
        });
        panels.push(Panel::axes(None, axes(lines.collect())));
    } else {
        for block in &blocks {
            for factor in of_factors(block) {
                let lines = lines_of(block, factor, &line);
                let series_of = factor.map(|factor| block.factors[factor].name.clone());
                let panel = Panel::axes(Some(panel_title(block, factor)), axes(lines));
                panels.push(Panel { series_of, ..panel });
            }
        }
    }
    let columns = panels.len().min(2);
    let mut figure = Figure {
        title: format!("{} against processes", title(response)),
        caption: String::new(),
        panels,
        columns,
        naming: Naming::Direct,
    };
    figure.caption = format!(
        "{} {}{}",
        figure.title,
        of_held(&blocks),
        of_intervals(&figure, means_of(response))
    );
    Ok(figure)
}

/// A line with marks.
pub(super) fn joined(label: String, tone: usize, points: Vec<Point>) -> Layer {
    let (tone, style) = (Tone::Hue(tone), Style::Joined);
    Layer::Series(Series { label, tone, style, spread: Spread::Y, points })
}

/// Each factor; one panel without any where there is none.
fn of_factors(block: &Block<'_>) -> Vec<Option<usize>> {
    let others: Vec<Option<usize>> = block.others().into_iter().map(Some).collect();
    if others.is_empty() { vec![None] } else { others }
}

fn panel_title(block: &Block<'_>, factor: Option<usize>) -> String {
    let name = factor.map(|factor| block.factors[factor].name.clone());
    let parts = [Some(block.name.clone()).filter(|name| !name.is_empty()), name];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

fn lines_of(
    block: &Block<'_>,
    factor: Option<usize>,
    line: &dyn Fn(String, usize, &[&Group<'_>]) -> Layer,
) -> Vec<Layer> {
    let free: Vec<usize> = block.processes().into_iter().chain(factor).collect();
    let slice: Vec<&Group<'_>> = block.slice(&free).collect();
    let Some(factor) = factor else { return vec![line(String::new(), 0, &slice)] };
    let levels = 0..block.factors[factor].levels.len();
    let of_level = |level: usize| {
        let groups: Vec<&Group<'_>> =
            slice.iter().copied().filter(|group| group.levels[factor] == level).collect();
        (!groups.is_empty()).then(|| line(block.factors[factor].shown(level), level, &groups))
    };
    levels.filter_map(of_level).collect()
}

/// What is held while one factor changes, in words.
pub(super) fn of_held(blocks: &[Block<'_>]) -> String {
    let held: Vec<String> = blocks
        .iter()
        .filter(|block| block.others().len() > 1)
        .map(|block| {
            let name =
                if block.name.is_empty() { String::new() } else { format!("{}: ", block.name) };
            format!("{name}{}", held_in(block))
        })
        .collect();
    match held.is_empty() {
        true => String::new(),
        false => {
            format!("(one factor changes at a time, the others stay: {}). ", held.join("; "))
        }
    }
}

/// Of a block: the same for all panels where it is, else of each.
fn held_in(block: &Block<'_>) -> String {
    let others = block.others();
    let free = |factor: usize| block.processes().into_iter().chain([factor]).collect::<Vec<_>>();
    let mut levels: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for factor in &others {
        for group in block.slice(&free(*factor)) {
            for other in others.iter().filter(|other| *other != factor) {
                levels.entry(*other).or_default().insert(group.levels[*other]);
            }
        }
    }
    let same: Option<Vec<String>> = levels
        .iter()
        .map(|(factor, levels)| match levels.iter().collect::<Vec<_>>().as_slice() {
            [level] => Some(block.factors[*factor].named(**level)),
            _ => None,
        })
        .collect();
    let of = |factor: &usize| {
        format!("while `{}` changes, {}", block.factors[*factor].name, block.held(&free(*factor)))
    };
    match same {
        Some(same) => same.join(", "),
        None => others.iter().map(of).collect::<Vec<_>>().join("; "),
    }
}
