//! Plots AU and throughput by the levels of each factor, with one panel per factor.

use super::block::PlotBlock;
use super::caption::{baselines, held_levels, intervals};
use super::data::Data;
use super::response::{ResponseAxis, check_known, means, title};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Figure, Panel};
use feedrate_analysis::design::DesignCell;
use feedrate_measure::metric::{AU_ALL_STEPS, DELIVERED_WHOLE, Metric, SAMPLES_WHOLE};

pub(super) static PLOT: Plot = Plot {
    name: "factor_levels",
    aliases: &["main_effects"],
    summary: "AU and throughput by the levels of each factor, with all others at their most common level; a line for each number of processes",
    needs: Needs::Summaries,
    responses: &[&AU_ALL_STEPS, &DELIVERED_WHOLE, &SAMPLES_WHOLE],
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
    let mut panels = Vec::new();
    let mut gaps = Vec::new();
    for block in &blocks {
        let others = block.others();
        let factors = if others.is_empty() { block.factor_order() } else { others };
        for factor in factors {
            let drawn: Vec<Panel> = y.iter().filter_map(|y| panel(block, factor, y)).collect();
            if drawn.is_empty() {
                gaps.push(format!("`{}`", block.design.factors[factor].name));
            }
            panels.extend(drawn);
        }
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

/// A panel with a line for each number of processes; `None` if no line joins levels.
fn panel(block: &PlotBlock<'_>, factor: usize, y: &ResponseAxis<'_>) -> Option<Panel> {
    let all: Vec<usize> = (0..block.design.factors[factor].levels.len()).collect();
    let (x, places) = block.axis(factor, &all);
    let processes = block.processes().filter(|processes| *processes != factor);
    let cells = block.design.slice(&block.processes_and(factor));
    let style = block.style(factor);
    let place = |cell: &DesignCell| Some(places[cell.levels[factor]]);
    let lines = y.lines(block, &cells, processes, style, place);
    let layers = y.baseline(block, &cells).into_iter().chain(lines).collect();
    let panel = y.panel(block.title(), x, layers, 0.6);
    let has_line = panel.all_series().any(|series| series.points.len() > 1);
    has_line.then_some(panel)
}
