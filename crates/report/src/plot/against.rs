//! Plots a response against processes: a line for each workload, or a panel for each factor with a line for each level.

use super::block::PlotBlock;
use super::caption::{held_levels, intervals};
use super::data::Data;
use super::response::{ResponseAxis, check_known, means, processes_axis, title};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axis, Figure, Layer, Panel, Style, Tone};
use feedrate_analysis::throughput::THROUGHPUTS;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric};

pub(super) static AU_PROCESSES: Plot = Plot {
    name: "au_processes",
    aliases: &["whatif", "scale"],
    summary: "AU against processes: a line for each workload, or a panel for each factor with a line for each level",
    needs: Needs::Summaries,
    responses: &[&AU_ALL_STEPS],
    has_factor_panels: true,
    make: |data, response| figure(data, response.unwrap_or_else(|| data.utilisation())),
};

pub(super) static THROUGHPUT_PROCESSES: Plot = Plot {
    name: "throughput_processes",
    aliases: &[],
    summary: "Throughput against processes: a line for each workload, or a panel for each factor with a line for each level",
    needs: Needs::Summaries,
    responses: &THROUGHPUTS,
    has_factor_panels: true,
    make: |data, response| figure(data, response.unwrap_or_else(|| data.throughput())),
};

fn figure(data: &Data, response: &Metric) -> Result<Figure, Missing> {
    if data.used().next().is_none() {
        return Err(Missing::runs());
    }
    check_known(response, data)?;
    let lines =
        ProcessLines { data, x: processes_axis(data), y: ResponseAxis::new(response, data) };
    let blocks = data.blocks();
    let mut panels = Vec::new();
    let mut notes = String::new();
    let mut changed: Vec<&PlotBlock<'_>> = Vec::new();
    if blocks.iter().all(|block| block.others().is_empty()) {
        let layers =
            blocks.iter().enumerate().map(|(i, block)| lines.block_line(block, &block.name, i));
        panels.push(lines.panel(None, layers.collect()));
        panels.retain(|panel| count_lines(panel) > 0);
    } else {
        for block in &blocks {
            let parts = lines.block_panels(block);
            notes.push_str(&parts.notes);
            changed.extend(parts.varies_factor.then_some(block));
            panels.extend(parts.panels);
        }
    }
    if panels.is_empty() {
        return Err(Missing::new(
            "no two numbers of processes were run with otherwise equal settings",
            "make `processes` a factor of the study, or plot other factors: `feedrate plot factor_levels`",
        ));
    }
    let title = format!("{} against processes", title(response));
    let intervals = intervals(&panels, means(response));
    let caption = format!("{title}{}. {notes}{intervals}", held_levels(&changed));
    Ok(Figure { title, caption, columns: panels.len().min(2), panels })
}

/// The axes that all lines share.
struct ProcessLines<'r> {
    data: &'r Data,
    x: Axis,
    y: ResponseAxis<'r>,
}

/// The panels of a block; empty if no line joins several numbers of processes.
struct BlockPanels {
    panels: Vec<Panel>,
    /// Whether a factor varies in the panels.
    varies_factor: bool,
    /// Sentences on factors that are held constant or not drawn.
    notes: String,
}

impl ProcessLines<'_> {
    /// One line for a whole block.
    fn block_line(&self, block: &PlotBlock<'_>, label: &str, hue: usize) -> Layer {
        let cells = block.design.slice(&block.processes_list());
        let points = cells
            .iter()
            .filter_map(|cell| self.y.point(block, block.process_count(cell)?, &[cell]));
        Layer::series(label, Tone::Hue(hue), Style::Joined, points.collect())
    }

    /// A line for each level of a factor.
    fn level_panel(&self, block: &PlotBlock<'_>, factor: usize) -> Panel {
        let cells = block.design.slice(&block.processes_and(factor));
        let layers = self
            .y
            .lines(block, &cells, Some(factor), Style::Joined, |cell| block.process_count(cell));
        let name = block.design.factors[factor].name.clone();
        let title = block.title().map_or(name.clone(), |block| format!("{block}: {name}"));
        Panel { series_of: Some(name), ..self.panel(Some(title), layers) }
    }

    fn panel(&self, title: Option<String>, layers: Vec<Layer>) -> Panel {
        self.y.panel(title, self.x.clone(), layers, 0.68)
    }

    /// A panel for each factor with lines for at least two levels; if there is none, a panel with one line for the block.
    fn block_panels(&self, block: &PlotBlock<'_>) -> BlockPanels {
        let is_drawn = |factor: &usize| self.data.may_draw(&block.design.factors[*factor].name);
        let factors = block.others().into_iter().filter(is_drawn);
        let panels = factors.map(|factor| self.level_panel(block, factor));
        let (drawn, undrawn): (Vec<Panel>, Vec<Panel>) =
            panels.partition(|panel| count_lines(panel) > 1);
        let alone = self.panel(block.title(), vec![self.block_line(block, "", 0)]);
        if drawn.is_empty() && count_lines(&alone) == 0 {
            let why = "was not run at several numbers of processes with otherwise equal settings";
            let notes = format!("{} {why}, and is not drawn. ", block.name);
            return BlockPanels { panels: Vec::new(), varies_factor: false, notes };
        }
        let mut notes = String::new();
        let names: Vec<String> = undrawn
            .iter()
            .flat_map(|panel| &panel.series_of)
            .map(|name| format!("`{name}`"))
            .collect();
        if !names.is_empty() {
            notes = format!(
                "Not drawn, as fewer than two of its levels were run at several numbers of processes: {}{}. ",
                names.join(", "),
                block.suffix()
            );
        }
        if !drawn.is_empty() {
            return BlockPanels { panels: drawn, varies_factor: true, notes };
        }
        let held = block.held_levels_text(&block.processes_list());
        if !held.is_empty() {
            notes.push_str(&format!("Held{}: {held}. ", block.suffix()));
        }
        BlockPanels { panels: vec![alone], varies_factor: false, notes }
    }
}

/// The number of series that join two numbers of processes or more.
fn count_lines(panel: &Panel) -> usize {
    panel.all_series().filter(|series| series.points.len() > 1).count()
}
