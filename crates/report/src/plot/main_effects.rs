//! Main effects: the mean at each level of each factor, of runs that differ in nothing else.

use super::block::PlotBlock;
use super::data::Data;
use super::response::{ResponseAxis, in_sentence, means, title};
use super::{Make, Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, AxisRange, Figure, Layer, Panel, PanelContent, Point, Rule, RuleLine, Tone,
};
use feedrate_analysis::design::DesignCell;
use feedrate_analysis::throughput::THROUGHPUTS;
use feedrate_measure::metric::Metric;
use feedrate_measure::stats;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static PLOT: Plot = Plot {
    name: "main_effects",
    summary: "The mean at each level of each factor, of runs that share the levels of all others or of a design that balances them",
    needs: Needs::Summaries,
    make: Make::Response(&THROUGHPUTS, figure),
};

fn figure(data: &Data, response: &Metric) -> Result<Figure, Missing> {
    let y = ResponseAxis::new(response, data);
    let (mut panels, mut gaps) = (Vec::new(), Vec::new());
    let blocks = data.blocks();
    for block in &blocks {
        let first = panels.len();
        for factor in block.order() {
            let compared = compared(block, factor, response);
            if compared.is_empty() {
                gaps.push(format!("{} is not drawn", quoted(block, factor)));
                continue;
            }
            gaps.extend(left_out(block, factor, &compared));
            panels.extend(panel(block, factor, &compared, &y));
        }
        panels[first..].sort_by(|a, b| effect(b).total_cmp(&effect(a)));
    }
    if panels.is_empty() && gaps.is_empty() {
        return Err(Missing::new(
            format!("no runs that have a `{}` differ in a factor", response.id.name()),
            "main effects are drawn from a design: `feedrate study new` makes one",
        ));
    }
    if panels.is_empty() {
        return Err(Missing::new(
            "no two runs differ in one factor alone, so each difference may be that of another factor",
            "run the levels of a factor with all else the same, or all combinations: `feedrate study new --design full_factorial`",
        ));
    }
    same_range(&mut panels);
    let mut told = String::new();
    if !gaps.is_empty() {
        told = format!("Where something else always differed: {}. ", gaps.join("; "));
    }
    let title = format!("Main effects on {}", in_sentence(title(response)));
    let means = means(response);
    let intervals = if panels.iter().flat_map(Panel::points).any(|point| point.low.is_some()) {
        format!(
            "Marks are {means}; 95 % intervals are of the spread of replicates, where each experiment behind a mark was repeated (Welch)."
        )
    } else {
        format!("Marks are {means}. Nothing was repeated, so there are no intervals.")
    };
    let caption = format!(
        "{title}. The factor of the largest effect comes first. Marks of a panel are over runs that share the levels of all other factors, or of a design that balances them. {told}The upright \
         axis need not begin at 0. {intervals}"
    );
    Ok(Figure { title, caption, columns: panels.len().clamp(1, 3), panels })
}

/// The largest difference between two marks of a panel.
fn effect(panel: &Panel) -> f64 {
    let ys = || panel.points().map(|point| point.y);
    ys().fold(f64::NEG_INFINITY, f64::max) - ys().fold(f64::INFINITY, f64::min)
}

fn quoted(block: &PlotBlock<'_>, factor: usize) -> String {
    format!("`{}`{}", block.design.factors[factor].name, block.of_name())
}

/// Cells by their level of a factor.
type ByLevel<'b> = BTreeMap<usize, Vec<&'b DesignCell>>;

/// Cells at two levels or more of a factor whose other factors are the same at each level: because the whole design balances them, or because these levels were
/// run at the same places. Empty where there are none.
fn compared<'b>(block: &'b PlotBlock<'_>, factor: usize, response: &Metric) -> ByLevel<'b> {
    let has = |cell: &&DesignCell| block.runs(cell).any(|run| run.metric(response).is_some());
    let mut all = ByLevel::new();
    let mut places: BTreeMap<Vec<usize>, ByLevel<'b>> = BTreeMap::new();
    for cell in block.design.cells.iter().filter(has) {
        all.entry(cell.levels[factor]).or_default().push(cell);
        let place = places.entry(block.design.held(cell, &[factor])).or_default();
        place.entry(cell.levels[factor]).or_default().push(cell);
    }
    if all.len() > 1 && is_balanced(block, factor, &all) {
        return all;
    }
    // All levels that were run at the place where most were, with the baseline if there is one, at each place where all these were run.
    let baseline = block.design.factors[factor].baseline;
    let best = places.values().rev().max_by_key(|place| {
        let has_others = 1 < place.len();
        (has_others && place.contains_key(&baseline), place.len())
    });
    let levels: BTreeSet<usize> =
        best.into_iter().flat_map(|place| place.keys().copied()).collect();
    let mut shared = ByLevel::new();
    for place in places.values().filter(|place| levels.iter().all(|of| place.contains_key(of))) {
        for level in &levels {
            shared.entry(*level).or_default().extend(&place[level]);
        }
    }
    if levels.len() > 1 { shared } else { ByLevel::new() }
}

/// Whether every level of a factor has the levels of each other factor in the same proportion (Montgomery, Design and Analysis of Experiments, ch. 8: an
/// orthogonal fraction), so that their effects cancel.
fn is_balanced(block: &PlotBlock<'_>, factor: usize, cells: &ByLevel<'_>) -> bool {
    let whole: usize = cells.values().map(Vec::len).sum();
    let others = (0..block.design.factors.len()).filter(|other| *other != factor);
    others.into_iter().all(|other| {
        (0..block.design.factors[other].levels.len()).all(|level| {
            let count =
                |of: &[&DesignCell]| of.iter().filter(|cell| cell.levels[other] == level).count();
            let all: usize = cells.values().map(|of| count(of)).sum();
            cells.values().all(|of| count(of) * whole == all * of.len())
        })
    })
}

/// Names levels that were run only where something else differed too.
fn left_out(block: &PlotBlock<'_>, factor: usize, compared: &ByLevel<'_>) -> Option<String> {
    let all = 0..block.design.factors[factor].levels.len();
    let gone: Vec<String> = all
        .filter(|level| !compared.contains_key(level))
        .map(|level| block.shown(factor, level))
        .collect();
    let s = if gone.len() == 1 { "is" } else { "are" };
    let quoted = quoted(block, factor);
    (!gone.is_empty()).then(|| format!("{quoted} {} {s} left out", gone.join(", ")))
}

fn panel(
    block: &PlotBlock<'_>,
    factor: usize,
    compared: &ByLevel<'_>,
    y: &ResponseAxis<'_>,
) -> Option<Panel> {
    let all: Vec<&DesignCell> = compared.values().flatten().copied().collect();
    // Where one factor changes at a time, each level is compared with the baseline alone.
    let is_one_at_a_time = compared.values().all(|cells| cells.len() == 1);
    let baseline = if is_one_at_a_time { y.baseline(block, &all) } else { None };
    let rule = match baseline {
        Some(baseline) => baseline,
        None => {
            let at = y.point(block, 0.0, &all)?.y;
            Layer::Rule(Rule { label: "mean".into(), at, line: RuleLine::Dotted })
        }
    };
    let levels: Vec<usize> = compared.keys().copied().collect();
    let (x, places) = block.axis(factor, &levels);
    let points = compared.values().zip(places);
    let points = points.filter_map(|(cells, place)| y.point(block, place, cells)).collect();
    let line = Layer::series("", Tone::Hue(0), block.style(factor), points);
    let layers = vec![rule, line];
    Some(Panel::from_axes(block.title(), Axes { x, y: y.axis.clone(), layers, aspect: 0.85 }))
}

/// So many times half of the median interval have room, however near the marks are to each other.
const NOISE: f64 = 1.5;

/// Effects are compared by their heights, so all panels have the same upright axis, which need not begin at 0.
fn same_range(panels: &mut [Panel]) {
    let points: Vec<Point> = panels.iter().flat_map(Panel::points).cloned().collect();
    let least = points.iter().map(|point| point.y).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.y).fold(f64::NEG_INFINITY, f64::max);
    let beyond = if least < most { most - least } else { 0.1 * most.abs().max(1e-9) };
    // Where levels differ by less than the noise of most marks, the picture shows that they do.
    let halves = points.iter().filter_map(|point| Some((point.high? - point.low?) / 2.0));
    let beyond = beyond.max(NOISE * stats::median(&halves.collect::<Vec<_>>()).unwrap_or(0.0));
    let low = points.iter().filter_map(|point| point.low).fold(least, f64::min);
    let high = points.iter().filter_map(|point| point.high).fold(most, f64::max);
    let low = low.max(least - beyond) - 0.08 * beyond;
    let high = high.min(most + beyond) + 0.08 * beyond;
    for panel in panels {
        if let PanelContent::Axes(axes) = &mut panel.content {
            axes.y.range = AxisRange::AtLeast(low, high);
        }
    }
}
