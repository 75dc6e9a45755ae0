//! Plots AU and throughput by the levels of each factor, with one panel per factor.

use super::block::PlotBlock;
use super::caption::{baselines, held_levels, intervals};
use super::data::Data;
use super::response::{ResponseAxis, check_known, means, title};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Figure, Panel};
use feedrate_analysis::design::{DesignCell, PROCESSES};
use feedrate_measure::metric::{AU_ALL_STEPS, DELIVERED_WHOLE, Metric, SAMPLES_WHOLE};

pub(super) static PLOT: Plot = Plot {
    name: "factor_levels",
    aliases: &[],
    summary: "AU and throughput by the levels of each factor, with all others at their most common level; a line for each number of processes",
    needs: Needs::Summaries,
    responses: &[&AU_ALL_STEPS, &DELIVERED_WHOLE, &SAMPLES_WHOLE],
    has_factor_panels: true,
    make: figure,
};

fn figure(data: &Data, response: Option<&Metric>) -> Result<Figure, Missing> {
    if data.used().next().is_none() {
        return Err(Missing::runs());
    }
    if let Some(response) = response {
        check_known(response, data)?;
    }
    let blocks = data.blocks();
    let responses = response.map_or_else(|| data.responses().collect(), |response| vec![response]);
    let y: Vec<_> = responses.iter().map(|response| ResponseAxis::new(response, data)).collect();
    let mut groups: Vec<FactorPanels> = Vec::new();
    let mut gaps = Vec::new();
    for block in &blocks {
        let name = |factor: usize| &block.design.factors[factor].name;
        for factor in factors(block).into_iter().filter(|&factor| data.may_draw(name(factor))) {
            let panels: Vec<Panel> = y.iter().filter_map(|y| panel(block, factor, y)).collect();
            // Processes may only distinguish the runs of other factors.
            let is_axis = Some(factor) == block.processes() && !block.others().is_empty();
            if panels.is_empty() && !is_axis {
                gaps.push(format!("`{}`", name(factor)));
            } else if !panels.is_empty() {
                groups.push(FactorPanels { name: name(factor).clone(), panels });
            }
        }
    }
    let fits_page = data.chosen_factors.is_empty();
    let count_max = if fits_page { PANELS_MAX / y.len() } else { groups.len() };
    let left_out = remove_small(&mut groups, count_max);
    let panels: Vec<Panel> = groups.into_iter().flat_map(|group| group.panels).collect();
    if panels.is_empty() && gaps.is_empty() && data.chosen_factors == [PROCESSES] {
        return Err(Missing::new(
            "`processes` gives the lines of this plot, not a panel",
            "`feedrate plot au_processes` and `scaling` have processes on the horizontal axis",
        ));
    }
    if panels.is_empty() && gaps.is_empty() {
        return Err(Missing::new(
            "all runs have the same settings",
            "this plot needs runs that differ in a factor: `feedrate study new` designs them",
        ));
    }
    if panels.is_empty() {
        return Err(Missing::new(
            format!("no two runs differ in {} alone", gaps.join(" or ")),
            "run the levels of a factor with otherwise equal settings: `feedrate study new` designs such runs",
        ));
    }
    let mut notes = String::new();
    if !gaps.is_empty() {
        notes = format!("Not drawn, as other factors always differed too: {}. ", gaps.join(", "));
    }
    if !left_out.is_empty() {
        notes += &format!(
            "The factors with the largest differences are drawn; `--factor` draws others: {}. ",
            left_out.join(", ")
        );
    }
    let (name, means) = match responses[..] {
        [response] => (title(response), means(response)),
        _ => ("AU and throughput", "means (of throughput, geometric means)"),
    };
    let title = format!("{name} by level of each factor");
    let held = held_levels(&blocks.iter().collect::<Vec<_>>());
    let intervals = intervals(&panels, means);
    let baselines = baselines(&blocks);
    let caption = format!("{title}{held}. {notes}{baselines}{intervals}");
    Ok(Figure { title, caption, panels, columns: 2 })
}

/// Maximum number of panels, unless the user chose the factors: four rows of two fill a page.
const PANELS_MAX: usize = 8;

/// The panels of a factor, one for each response.
struct FactorPanels {
    name: String,
    panels: Vec<Panel>,
}

impl FactorPanels {
    /// The largest difference between marks of a panel, relative to the highest mark.
    fn range_share(&self) -> f64 {
        let shares = self.panels.iter().map(|panel| {
            let values = panel.points().map(|point| point.y);
            let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            if 0.0 < high { (high - low) / high } else { 0.0 }
        });
        shares.fold(0.0, f64::max)
    }
}

/// Removes the factors with the smallest differences, so that `count_max` stay. Returns the names of the others in backticks.
fn remove_small(groups: &mut Vec<FactorPanels>, count_max: usize) -> Vec<String> {
    let shares = groups.iter().map(FactorPanels::range_share);
    let mut order: Vec<(usize, f64)> = shares.enumerate().collect();
    // Of equal differences, the first stay.
    order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let small: Vec<usize> = order.into_iter().skip(count_max).map(|(index, _)| index).collect();
    let mut indices = 0..groups.len();
    let removed =
        groups.extract_if(.., |_| indices.next().is_some_and(|index| small.contains(&index)));
    removed.map(|group| format!("`{}`", group.name)).collect()
}

/// The factors with panels: processes too, unless the panels of the others have a line for each number of processes.
fn factors(block: &PlotBlock<'_>) -> Vec<usize> {
    if block.crosses_processes() { block.others() } else { block.factor_order() }
}

/// A panel with a line for each number of processes at which the factor was varied; `None` if no line joins levels.
fn panel(block: &PlotBlock<'_>, factor: usize, y: &ResponseAxis<'_>) -> Option<Panel> {
    let all: Vec<usize> = (0..block.design.factors[factor].levels.len()).collect();
    let (x, places) = block.axis(factor, &all);
    let free = block.free_with(factor);
    let processes =
        block.processes().filter(|processes| *processes != factor && free.contains(processes));
    let cells = block.design.slice(&free);
    let style = block.style(factor);
    let place = |cell: &DesignCell| Some(places[cell.levels[factor]]);
    let lines = y.lines(block, &cells, processes, style, place);
    let layers = y.baseline(block, &cells).into_iter().chain(lines).collect();
    let panel = y.panel(block.title(), x, layers, 0.6);
    let has_line = panel.all_series().any(|series| series.points.len() > 1);
    has_line.then_some(panel)
}
