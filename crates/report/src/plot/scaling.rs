//! Plots throughput against processes, and linear growth from the fewest processes for comparison.

use super::block::{PROCESSES_LABEL, PlotBlock};
use super::caption::intervals;
use super::data::Data;
use super::response::{ResponseAxis, means, numbers_of_processes};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Scale, Style, Tone};
use feedrate_analysis::throughput::THROUGHPUTS;
use feedrate_measure::metric::Metric;
use feedrate_spec::units;
use std::collections::BTreeMap;

/// Maximum number of lines besides the ideal, limited by the number of colours.
const LINES_MAX: usize = 6;

pub(super) static PLOT: Plot = Plot {
    name: "scaling",
    aliases: &["search"],
    summary: "Throughput against processes on logarithmic axes, with the ideal from the fewest processes; a line for each combination of other factors",
    needs: Needs::Summaries,
    responses: &THROUGHPUTS,
    has_factor_panels: false,
    make: |data, response| figure(data, response.unwrap_or_else(|| data.throughput())),
};

fn figure(data: &Data, response: &Metric) -> Result<Figure, Missing> {
    let y = ResponseAxis::new(response, data);
    let blocks = data.blocks();
    let mut all: Vec<Curves> = blocks.iter().map(|block| Curves::new(block, &y)).collect();
    let count: usize = all.iter().map(|curves| curves.drawn.len()).sum();
    if count == 0 {
        return Err(Missing::new(
            format!(
                "no runs with a `{}` above 0 differ in the number of processes alone",
                response.id.name()
            ),
            "run one workload with several numbers of processes and otherwise equal settings; `feedrate show FOLDER` prints the result of a search, even of a single number",
        ));
    }
    if count > LINES_MAX {
        all.iter_mut().for_each(Curves::keep_one);
    }
    let is_alone = all.iter().map(|curves| curves.drawn.len()).sum::<usize>() == 1;
    let mut layers: Vec<Layer> = all.iter().filter_map(ideal).collect();
    let mut curves: Vec<(&Curves<'_>, &Vec<usize>)> = all
        .iter()
        .flat_map(|block| block.combinations.iter().map(move |levels| (block, levels)))
        .collect();
    // If there are enough colours, those of other levels stay free, so that a level has the same colour in other plots.
    if is_alone || LINES_MAX < curves.len() {
        curves.retain(|(block, levels)| block.drawn.contains_key(*levels));
    }
    layers.extend(curves.into_iter().enumerate().filter_map(|(hue, (block, levels))| {
        let points = block.drawn.get(levels)?.clone();
        Some(Layer::series(block.name(levels), Tone::Hue(hue), Style::Joined, points))
    }));
    let explained: String = all.iter().map(Curves::explain).collect();
    let x = Axis::new(PROCESSES_LABEL, Scale::LogAt(numbers_of_processes(data)), AxisRange::Tight);
    let y = Axis { scale: Scale::Log10, range: AxisRange::Tight, ..y.axis };
    let axes = Axes { x, y, layers, aspect: 0.75 };
    let has_several_ideals = 1 < all.iter().filter(|curves| !curves.drawn.is_empty()).count();
    let scope = match (is_alone, has_several_ideals) {
        (true, _) => "",
        (false, false) => {
            ", from the line that begins highest; a line of the same slope scales as well"
        }
        (false, true) => {
            ", for each workload or machine from its line that begins highest; a line of the same slope scales as well"
        }
    };
    let panels = vec![Panel::from_axes(None, axes)];
    let caption = format!(
        "Scaling. Ideal: throughput grows from the fewest processes in proportion to their number{scope}. {explained}{}",
        intervals(&panels, means(response))
    );
    let title = "Throughput against processes, and the ideal".into();
    Ok(Figure { title, caption, panels, columns: 1 })
}

/// The ideal line of a block: linear growth from the curve with the most throughput per process at its start, over all numbers of processes.
fn ideal(curves: &Curves<'_>) -> Option<Layer> {
    let points = || curves.drawn.values().flatten();
    let firsts = curves.drawn.values().filter_map(|points| points.first());
    let each = firsts.map(|first| first.y / first.x).reduce(f64::max)?;
    let least = points().map(|point| point.x).reduce(f64::min)?;
    let most = points().map(|point| point.x).reduce(f64::max)?;
    let ends = [least, most].map(|x| Point::new(x, each * x));
    let name = curves.block.title().map_or("ideal".into(), |block| format!("ideal, {block}"));
    Some(Layer::series(name, Tone::Hue(LINES_MAX), Style::Dashes, ends.into()))
}

/// Curves of a block: the points at each combination of the levels of all factors but processes.
struct Curves<'a> {
    block: &'a PlotBlock<'a>,
    /// All combinations.
    combinations: Vec<Vec<usize>>,
    drawn: BTreeMap<Vec<usize>, Vec<Point>>,
    /// Reason that the other combinations are not drawn.
    why: &'static str,
}

impl<'a> Curves<'a> {
    /// The curves of a block that join several numbers of processes.
    fn new(block: &'a PlotBlock<'a>, y: &ResponseAxis<'_>) -> Self {
        let mut drawn: BTreeMap<Vec<usize>, Vec<Point>> = BTreeMap::new();
        for cell in &block.design.cells {
            let points =
                drawn.entry(block.design.held_levels(cell, &block.processes_list())).or_default();
            let point = block.process_count(cell).and_then(|x| y.point(block, x, &[cell]));
            points.extend(point.filter(|point| point.y > 0.0));
        }
        let combinations = drawn.keys().cloned().collect();
        drawn.retain(|_, points| points.iter().any(|point| point.x != points[0].x));
        let why = "as they were run at one number of processes";
        Curves { block, combinations, drawn, why }
    }

    /// Keeps one curve: the curve at the most common levels, or the longest.
    fn keep_one(&mut self) {
        let Some(longest) = self.drawn.iter().max_by_key(|(_, points)| points.len()) else {
            return;
        };
        let most = self.block.design.slice(&self.block.processes_list());
        let most = most
            .first()
            .map(|cell| self.block.design.held_levels(cell, &self.block.processes_list()));
        let kept = most.filter(|levels| self.drawn.contains_key(levels));
        let kept = kept.unwrap_or_else(|| longest.0.clone());
        if self.drawn.len() > 1 {
            self.drawn.retain(|levels, _| *levels == kept);
            self.why = "as more than six lines cannot be distinguished";
        }
    }

    /// Whether all curves have this level of the factor `at`.
    fn is_held(&self, at: usize, level: usize) -> bool {
        self.drawn.keys().all(|levels| levels[at] == level)
    }

    /// The levels of a curve that all curves share (`held`), or the other levels.
    fn level_names(&self, levels: &[usize], held: bool) -> Vec<String> {
        let others = self.block.others().into_iter().zip(levels).enumerate();
        let wanted = others.filter(|(at, (_, level))| self.is_held(*at, **level) == held);
        wanted.map(|(_, (factor, level))| self.block.level_with_factor(factor, *level)).collect()
    }

    /// Sentences on the levels that all curves share, and on the combinations that are not drawn.
    fn explain(&self) -> String {
        let Some(first) = self.drawn.keys().next() else { return String::new() };
        let held = self.level_names(first, true);
        let suffix = self.block.suffix();
        let mut text = String::new();
        if !held.is_empty() {
            text = format!("Held{suffix}: {}. ", held.join(", "));
        }
        let left_out = self.combinations.len() - self.drawn.len();
        if left_out > 0 {
            let left_out = units::counted(left_out as u64, "combination");
            text += &format!("Not drawn{suffix}: {left_out} of other levels, {}. ", self.why);
        }
        text
    }

    /// The name of a curve: the block, and the levels that distinguish its curves.
    fn name(&self, levels: &[usize]) -> String {
        let mut parts: Vec<String> = self.block.title().into_iter().collect();
        parts.extend(self.level_names(levels, false));
        if parts.is_empty() { "measured".into() } else { parts.join(", ") }
    }
}
