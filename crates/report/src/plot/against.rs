//! A response against processes: a line for each workload, or a panel for each factor with a line for each of its levels.

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
    let (mut panels, mut told) = (Vec::new(), String::new());
    let mut changed: Vec<&PlotBlock<'_>> = Vec::new();
    if blocks.iter().all(|block| block.others().is_empty()) {
        let layers =
            blocks.iter().enumerate().map(|(i, block)| lines.of_block(block, &block.name, i));
        panels.push(lines.panel(None, layers.collect()));
        panels.retain(|panel| count_lines(panel) > 0);
    } else {
        for block in &blocks {
            let parts = lines.parts(block);
            told.push_str(&parts.told);
            changed.extend(parts.is_changed.then_some(block));
            panels.extend(parts.panels);
        }
    }
    if panels.is_empty() {
        return Err(Missing::new(
            "no two numbers of processes were run with all else the same",
            "make `processes` a factor of the study, or draw what else differs: `feedrate plot factor_levels`",
        ));
    }
    let title = format!("{} against processes", title(response));
    let intervals = intervals(&panels, means(response));
    let caption = format!("{title}{}. {told}{intervals}", held(&changed));
    Ok(Figure { title, caption, columns: panels.len().min(2), panels })
}

/// The axes that all lines share.
struct ProcessLines<'r> {
    x: Axis,
    y: ResponseAxis<'r>,
}

/// The panels of a block; none where no line joins several numbers of processes.
struct Parts {
    panels: Vec<Panel>,
    /// A factor changes in them.
    is_changed: bool,
    /// Names what is held or left out, in sentences.
    told: String,
}

impl ProcessLines<'_> {
    /// One line for a whole block.
    fn of_block(&self, block: &PlotBlock<'_>, label: &str, hue: usize) -> Layer {
        let cells = block.design.slice(&block.free());
        let points = cells.iter().filter_map(|of| self.y.point(block, block.count(of)?, &[of]));
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

    /// The factors of which two levels have a line; where there is none, the one line there is.
    fn parts(&self, block: &PlotBlock<'_>) -> Parts {
        let panels = block.others().into_iter().map(|factor| self.by_level(block, factor));
        let (drawn, left): (Vec<Panel>, Vec<Panel>) =
            panels.partition(|panel| count_lines(panel) > 1);
        let alone = self.panel(block.title(), vec![self.of_block(block, "", 0)]);
        if drawn.is_empty() && count_lines(&alone) == 0 {
            let why = "was not run at several numbers of processes with all else the same";
            let told = format!("{} {why}, and is not drawn. ", block.name);
            return Parts { panels: Vec::new(), is_changed: false, told };
        }
        let mut told = String::new();
        let names: Vec<String> = left
            .iter()
            .flat_map(|panel| &panel.series_of)
            .map(|name| format!("`{name}`"))
            .collect();
        if !names.is_empty() {
            told = format!(
                "Not drawn, as fewer than two of its levels were run at several numbers of processes: {}{}. ",
                names.join(", "),
                block.of_name()
            );
        }
        if !drawn.is_empty() {
            return Parts { panels: drawn, is_changed: true, told };
        }
        let held = block.held(&block.free());
        if !held.is_empty() {
            told.push_str(&format!("Held{}: {held}. ", block.of_name()));
        }
        Parts { panels: vec![alone], is_changed: false, told }
    }
}

/// Series that join two numbers of processes or more.
fn count_lines(panel: &Panel) -> usize {
    panel.all_series().filter(|series| series.points.len() > 1).count()
}
