//! Plots a response against processes: a line for each workload, or a panel for each factor with a line for each level.

use super::block::PlotBlock;
use super::caption::{held, intervals};
use super::data::Data;
use super::response::{ResponseAxis, check_known, means, processes_axis, title};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axis, Figure, Layer, Panel, Style, Tone};
use feedrate_analysis::throughput::THROUGHPUTS;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric};

pub(super) static AU_PROCESSES: Plot = Plot {
    name: "au_processes",
    aliases: &["whatif"],
    summary: "AU against processes: a line for each workload, or a panel for each factor with a line for each level",
    needs: Needs::Summaries,
    responses: &[&AU_ALL_STEPS],
    make: |data, response| figure(data, response.unwrap_or(&AU_ALL_STEPS)),
};

pub(super) static THROUGHPUT_PROCESSES: Plot = Plot {
    name: "throughput_processes",
    aliases: &[],
    summary: "Throughput against processes: a line for each workload, or a panel for each factor with a line for each level",
    needs: Needs::Summaries,
    responses: &THROUGHPUTS,
    make: |data, response| figure(data, response.unwrap_or_else(|| data.throughput())),
};

fn figure(data: &Data, response: &Metric) -> Result<Figure, Missing> {
    if data.used().next().is_none() {
        return Err(Missing::runs());
    }
    check_known(response, data)?;
    let lines = ProcessLines { x: processes_axis(data), y: ResponseAxis::new(response, data) };
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
            let parts = lines.parts(block);
            notes.push_str(&parts.notes);
            changed.extend(parts.is_changed.then_some(block));
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
    let caption = format!("{title}{}. {notes}{intervals}", held(&changed));
    Ok(Figure { title, caption, columns: panels.len().min(2), panels })
}

/// The axes that all lines share.
struct ProcessLines<'r> {
    x: Axis,
    y: ResponseAxis<'r>,
}

/// The panels of a block; empty if no line joins several numbers of processes.
struct Parts {
    panels: Vec<Panel>,
    /// Whether a factor changes in them.
    is_changed: bool,
    /// Sentences on factors that are held or left out.
    notes: String,
}

impl ProcessLines<'_> {
    /// One line for all of a block.
    fn block_line(&self, block: &PlotBlock<'_>, label: &str, hue: usize) -> Layer {
        let cells = block.design.slice(&block.free());
        let points =
            cells.iter().filter_map(|cell| self.y.point(block, block.count(cell)?, &[cell]));
        Layer::series(label, Tone::Hue(hue), Style::Joined, points.collect())
    }

    /// A line for each level of a factor.
    fn by_level(&self, block: &PlotBlock<'_>, factor: usize) -> Panel {
        let cells = block.design.slice(&block.processes_and(factor));
        let layers =
            self.y.lines(block, &cells, Some(factor), Style::Joined, |cell| block.count(cell));
        let name = block.design.factors[factor].name.clone();
        let title = block.title().map_or(name.clone(), |block| format!("{block}: {name}"));
        Panel { series_of: Some(name), ..self.panel(Some(title), layers) }
    }

    fn panel(&self, title: Option<String>, layers: Vec<Layer>) -> Panel {
        self.y.panel(title, self.x.clone(), layers, 0.68)
    }

    /// A panel for each factor with lines for at least two levels; if there is none, a panel with one line for the block.
    fn parts(&self, block: &PlotBlock<'_>) -> Parts {
        let panels = block.others().into_iter().map(|factor| self.by_level(block, factor));
        let (drawn, undrawn): (Vec<Panel>, Vec<Panel>) =
            panels.partition(|panel| count_lines(panel) > 1);
        let alone = self.panel(block.title(), vec![self.block_line(block, "", 0)]);
        if drawn.is_empty() && count_lines(&alone) == 0 {
            let why = "was not run at several numbers of processes with otherwise equal settings";
            let notes = format!("{} {why}, and is not drawn. ", block.name);
            return Parts { panels: Vec::new(), is_changed: false, notes };
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
            return Parts { panels: drawn, is_changed: true, notes };
        }
        let held = block.held(&block.free());
        if !held.is_empty() {
            notes.push_str(&format!("Held{}: {held}. ", block.suffix()));
        }
        Parts { panels: vec![alone], is_changed: false, notes }
    }
}

/// The number of series that join two numbers of processes or more.
fn count_lines(panel: &Panel) -> usize {
    panel.all_series().filter(|series| series.points.len() > 1).count()
}
