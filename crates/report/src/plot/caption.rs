//! Writes the parts of captions that figures share: marks and intervals, axes, held levels, confounded factors. Draws nothing.

use super::block::PlotBlock;
use super::data::Data;
use crate::draw::figure::{Axes, Figure, Panel, Point, Scale, has_single_among_several};
use crate::draw::{has_cut_interval, needs_offsets};
use std::collections::{BTreeMap, BTreeSet};

/// A sentence on the marks and intervals of a figure's panels. `means` names the kind of mean.
pub(super) fn intervals(panels: &[Panel], means: &str) -> String {
    let points: Vec<&Point> = panels.iter().flat_map(Panel::points).collect();
    let counts: BTreeSet<usize> =
        points.iter().filter_map(|point| point.runs).filter(|runs| *runs > 1).collect();
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else {
        return "Each mark is one run, so there are no intervals.".into();
    };
    let to = if least < most { format!(" to {most}") } else { String::new() };
    let mut text = format!(
        "Marks are {means} of n = {least}{to} runs with 95 % intervals, which are hidden if smaller than the mark."
    );
    let is_pair = |point: &&Point| point.pair.is_some();
    if points.iter().any(is_pair) {
        text = match counts.range(3..).next() {
            Some(_) => text + " Of two runs, both are drawn.",
            None => {
                "Each mark is one run. Two runs have no useful interval, so both are drawn.".into()
            }
        };
    }
    let is_bare =
        |point: &Point| point.runs > Some(1) && point.low.is_none() && point.pair.is_none();
    if points.into_iter().any(is_bare) {
        text.push_str(" A filled mark without an interval has a value that is not above 0.");
    }
    if has_single_among_several(panels) {
        text.push_str(" A hollow mark is a single run.");
    }
    text
}

/// Sentences on features of a drawing that need an explanation; empty if there are none. Begins with a blank.
pub(super) fn drawing_notes(figure: &Figure) -> String {
    let axes: Vec<&Axes> = figure.panels.iter().map(|panel| &panel.axes).collect();
    let mut text = String::new();
    if axes.iter().any(|axes| has_cut_interval(axes)) {
        text.push_str(" An interval that ends in an arrow extends beyond the axis.");
    }
    if axes.iter().any(|axes| needs_offsets(axes)) {
        text.push_str(" Marks with the same x are drawn side by side.");
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
        text.push_str(" Bytes of DLIO's runs are estimated as the number of samples times the generator's mean sample size.");
    }
    if !names.is_empty() {
        let s = if names.len() == 1 { "is" } else { "es" };
        text.push_str(&format!(" Logarithmic ax{s}: {}.", names.join(", ")));
    }
    text
}

/// A sentence on settings that changed only together; empty if there are none. Begins with a blank.
pub(super) fn changed_together(data: &Data) -> String {
    let mut joined: BTreeSet<String> = BTreeSet::new();
    for block in data.blocks() {
        let pairs = block.followers.iter().filter(|[_, factor]| data.may_draw(factor));
        joined.extend(pairs.map(|[name, factor]| format!("`{name}` with `{factor}`")));
    }
    if joined.is_empty() {
        return String::new();
    }
    let joined: Vec<String> = joined.into_iter().collect();
    format!(
        " These settings changed only together, so their effects cannot be separated: {}.",
        joined.join(", ")
    )
}

/// A sentence on the baselines that are drawn.
pub(super) fn baselines(blocks: &[PlotBlock<'_>]) -> String {
    let mut parts = Vec::new();
    for block in blocks {
        let baseline = block.design.cells.iter().find(|cell| block.is_declared_baseline(cell));
        parts.extend(baseline.map(|baseline| {
            let levels = block
                .factor_order()
                .into_iter()
                .map(|index| block.level_with_factor(index, baseline.levels[index]));
            format!("{}{}", levels.collect::<Vec<_>>().join(", "), block.suffix())
        }));
    }
    if parts.is_empty() { String::new() } else { format!("Baseline: {}. ", parts.join("; ")) }
}

/// The levels that are held constant while one factor changes. Begins with a blank.
pub(super) fn held_levels(blocks: &[&PlotBlock<'_>]) -> String {
    let several = blocks.iter().filter(|block| block.others().len() > 1);
    let held: Vec<String> = several
        .map(|block| match block.title() {
            Some(name) => format!("{name}: {}", held_levels_in_block(block)),
            None => held_levels_in_block(block),
        })
        .collect();
    if held.is_empty() {
        return String::new();
    }
    format!(" (one factor changes at a time, the others stay: {})", held.join("; "))
}

/// The held levels of a block: once if they are the same for all panels, else for each.
fn held_levels_in_block(block: &PlotBlock<'_>) -> String {
    let others = block.others();
    let mut levels: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for factor in &others {
        for cell in block.design.slice(&block.free_with(*factor)) {
            for other in others.iter().filter(|other| *other != factor) {
                levels.entry(*other).or_default().insert(cell.levels[*other]);
            }
        }
    }
    let mut parts = Vec::new();
    if levels.values().all(|levels| levels.len() == 1) {
        for (factor, held) in levels {
            parts.extend(held.first().map(|level| block.level_with_factor(factor, *level)));
        }
        return parts.join(", ");
    }
    for factor in others {
        let name = &block.design.factors[factor].name;
        let held = block.held_levels_text(&block.free_with(factor));
        parts.push(format!("while `{name}` changes, {held}"));
    }
    parts.join("; ")
}
