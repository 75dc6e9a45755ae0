//! Parts of captions that figures share: marks and intervals, axes, what was held, what changed only together. Draws nothing.

use super::block::PlotBlock;
use super::data::Data;
use crate::draw::figure::{Axes, Figure, Panel, Point, Scale, has_single_among_several};
use crate::draw::{is_cut, stand_aside};
use std::collections::{BTreeMap, BTreeSet};

/// Explains the marks and intervals of a figure's panels. `means`: of which kind.
pub(super) fn intervals(panels: &[Panel], means: &str) -> String {
    let points: Vec<&Point> = panels.iter().flat_map(Panel::points).collect();
    let counts: BTreeSet<usize> =
        points.iter().filter_map(|point| point.runs).filter(|runs| *runs > 1).collect();
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else {
        return "Each mark is one run, so there are no intervals.".into();
    };
    let to = if least < most { format!(" to {most}") } else { String::new() };
    let mut told = format!(
        "Marks are {means} of n = {least}{to} runs with 95 % intervals, which are not seen where they are smaller than the mark."
    );
    let is_bare = |point: &Point| point.runs > Some(1) && point.low.is_none();
    if points.into_iter().any(is_bare) {
        told.push_str(" A full mark without one has none, as a value of it is not above 0.");
    }
    if has_single_among_several(panels) {
        told.push_str(" A hollow mark is a single run.");
    }
    told
}

/// Explains what of its drawing does not explain itself; empty where all does. Begins with a blank.
pub(super) fn look(figure: &Figure) -> String {
    let axes: Vec<&Axes> = figure.panels.iter().map(|panel| &panel.axes).collect();
    let mut told = String::new();
    if axes.iter().any(|axes| is_cut(axes)) {
        told.push_str(" An interval that ends in an arrow goes on beyond the axis.");
    }
    if axes.iter().any(|axes| stand_aside(axes)) {
        told.push_str(" Marks of the same x stand side by side.");
    }
    let mut names: Vec<&str> = Vec::new();
    for axis in axes.iter().flat_map(|axes| [&axes.x, &axes.y]) {
        let name = axis.label.split(" (").next().unwrap_or_default();
        let is_log = matches!(axis.scale, Scale::Log10 | Scale::LogAt(_));
        if is_log && !names.contains(&name) {
            names.push(name);
        }
    }
    if axes.iter().any(|axes| axes.x.is_estimated || axes.y.is_estimated) {
        told.push_str(" Bytes of DLIO's runs are estimated: samples times the mean size of those that its generator draws.");
    }
    if !names.is_empty() {
        let s = if names.len() == 1 { "is" } else { "es" };
        told.push_str(&format!(" Logarithmic ax{s}: {}.", names.join(", ")));
    }
    told
}

/// Names what changed only together with something else; empty where that is nothing. Begins with a blank.
pub(super) fn changed_together(data: &Data) -> String {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for block in data.blocks() {
        let pairs = block.followers.iter();
        told.extend(pairs.map(|[name, factor]| format!("`{name}` with `{factor}`")));
    }
    if told.is_empty() {
        return String::new();
    }
    let told: Vec<String> = told.into_iter().collect();
    format!(
        " These changed only together, and their effects cannot be told apart: {}.",
        told.join(", ")
    )
}

/// Names the levels of the baselines that are drawn.
pub(super) fn baselines(blocks: &[PlotBlock<'_>]) -> String {
    let mut told = Vec::new();
    for block in blocks {
        let own = block.design.cells.iter().find(|cell| block.is_declared_baseline(cell));
        told.extend(own.map(|own| {
            let levels = block.order().into_iter().map(|at| block.named(at, own.levels[at]));
            format!("{}{}", levels.collect::<Vec<_>>().join(", "), block.of_name())
        }));
    }
    if told.is_empty() { String::new() } else { format!("Baseline: {}. ", told.join("; ")) }
}

/// Names the levels that are held while one factor changes. Begins with a blank.
pub(super) fn held(blocks: &[&PlotBlock<'_>]) -> String {
    let several = blocks.iter().filter(|block| block.others().len() > 1);
    let held: Vec<String> = several
        .map(|block| match block.title() {
            Some(name) => format!("{name}: {}", held_in(block)),
            None => held_in(block),
        })
        .collect();
    if held.is_empty() {
        return String::new();
    }
    format!(" (one factor changes at a time, the others stay: {})", held.join("; "))
}

/// The same for all panels of a block where it is, else of each.
fn held_in(block: &PlotBlock<'_>) -> String {
    let others = block.others();
    let mut levels: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for factor in &others {
        for cell in block.design.slice(&block.processes_and(*factor)) {
            for other in others.iter().filter(|other| *other != factor) {
                levels.entry(*other).or_default().insert(cell.levels[*other]);
            }
        }
    }
    let mut parts = Vec::new();
    if levels.values().all(|levels| levels.len() == 1) {
        for (factor, of) in levels {
            parts.extend(of.first().map(|level| block.named(factor, *level)));
        }
        return parts.join(", ");
    }
    for factor in others {
        let name = &block.design.factors[factor].name;
        let held = block.held(&block.processes_and(factor));
        parts.push(format!("while `{name}` changes, {held}"));
    }
    parts.join("; ")
}
