//! What captions tell of all figures alike: marks and intervals, axes, what changed only together. Draws nothing.

use super::data::RunPoint;
use super::groups::blocks;
use crate::draw::figure::{Axes, Figure, Layer, Panel, Scale, Spread, Style};
use crate::draw::is_cut;
use std::collections::BTreeSet;

/// What marks and intervals in a figure are. `means`: of which kind.
pub(super) fn of_intervals(figure: &Figure, means: &str) -> String {
    let points = || figure.points();
    let counts: BTreeSet<usize> =
        points().filter_map(|point| point.runs).filter(|runs| *runs > 1).collect();
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else {
        return "Each mark is one run, so there are no intervals.".into();
    };
    let to = if least < most { format!(" to {most}") } else { String::new() };
    let single =
        if figure.has_single_among_several() { " A hollow mark is a single run." } else { "" };
    let is_bare = |point: &&crate::draw::figure::Point| point.runs > Some(1) && point.low.is_none();
    let bare = match points().filter(is_bare).count() {
        0 => "",
        _ => " A full mark without one has none, as a value of it is not above 0.",
    };
    format!(
        "Marks are {means} of n = {least}{to} runs with 95 % intervals, which are not seen where they are smaller than the mark.{bare}{single}"
    )
}

/// What of its drawing does not explain itself; empty where all does. Begins with a blank.
pub(super) fn of_look(figure: &Figure) -> String {
    let axes = || figure.panels.iter().filter_map(Panel::axes);
    let mut told = String::new();
    if axes().any(is_cut) {
        told.push_str(" An interval that ends in an arrow goes on beyond the axis.");
    }
    if axes().any(stand_aside) {
        told.push_str(" Marks of the same x stand side by side.");
    }
    let is_log = |scale: &Scale| matches!(scale, Scale::Log10 | Scale::LogAt(_));
    let mut names: Vec<&str> = Vec::new();
    for axis in axes().flat_map(|axes| [&axes.x, &axes.y]).filter(|axis| is_log(&axis.scale)) {
        let name = axis.label.split(" (").next().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let s = if names.len() == 1 { "is" } else { "es" };
        told.push_str(&format!(" Logarithmic ax{s}: {}.", names.join(", ")));
    }
    told
}

/// Whether marks of several series have one place, and so are moved.
fn stand_aside(axes: &Axes) -> bool {
    let mut places: BTreeSet<u64> = BTreeSet::new();
    for layer in &axes.layers {
        let Layer::Series(series) = layer else { continue };
        if series.spread == Spread::Y && matches!(series.style, Style::Marks | Style::Joined) {
            let own: BTreeSet<u64> = series.points.iter().map(|point| point.x.to_bits()).collect();
            if !own.is_disjoint(&places) {
                return true;
            }
            places.extend(own);
        }
    }
    false
}

/// What changed only together with something else; empty where that is nothing. Begins with a blank.
pub(super) fn together(runs: &[RunPoint]) -> String {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for block in blocks(runs) {
        let pairs = block.followers.iter();
        told.extend(pairs.map(|(name, factor)| format!("`{name}` with `{factor}`")));
    }
    match told.is_empty() {
        true => String::new(),
        false => format!(
            " These changed only together, and their effects cannot be told apart: {}.",
            told.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}
