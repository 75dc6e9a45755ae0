//! A response against processes: a line for each workload, or a panel for each factor with a line for each of its levels.

use super::Missing;
use super::caption::of_intervals;
use super::data::RunPoint;
use super::groups::{
    Block, Group, axis_of, blocks, means_of, point, processes, processes_axis, title,
};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Series, Spread, Style, Tone,
};
use feedrate_results::response::Response;
use std::collections::{BTreeMap, BTreeSet};

/// The whole figure.
pub(super) fn figure(runs: &[RunPoint], response: &Response) -> Result<Figure, Missing> {
    if runs.is_empty() {
        return Err(Missing::runs());
    }
    if !runs.iter().any(|run| run.responses.contains_key(response.id.name())) {
        return Err(Missing::new(
            format!("no run has the response `{}`", response.id.name()),
            "choose another with `--response`; `feedrate describe metrics NAME` says what a number needs",
        ));
    }
    let (y, unit) = axis_of(response, runs);
    let with = With { x: processes_axis(runs), y, response, unit };
    let blocks = blocks(runs);
    let parts = match blocks.iter().all(|block| block.others().is_empty()) {
        true => Parts { panels: vec![with.together(&blocks)], ..Parts::default() },
        false => Parts::of(&blocks, &with),
    };
    let mut figure = Figure {
        title: format!("{} against processes", title(response)),
        caption: String::new(),
        columns: parts.panels.len().min(2),
        panels: parts.panels,
        naming: Naming::Direct,
    };
    figure.caption = format!(
        "{}{}. {}{}",
        figure.title,
        of_held(&parts.changed),
        parts.told,
        of_intervals(&figure, means_of(response))
    );
    Ok(figure)
}

/// A line with marks.
pub(super) fn joined(label: String, tone: usize, points: Vec<Point>) -> Layer {
    let (tone, style) = (Tone::Hue(tone), Style::Joined);
    Layer::Series(Series { label, tone, style, spread: Spread::Y, points })
}

/// What all panels have.
struct With<'r> {
    x: Axis,
    y: Axis,
    response: &'r Response,
    unit: f64,
}

impl With<'_> {
    fn line(&self, label: String, tone: usize, groups: &[&Group<'_>]) -> Layer {
        let at = |group: &&Group<'_>| {
            point(processes(group.runs.first()?)?, &group.runs, self.response, self.unit)
        };
        joined(label, tone, groups.iter().filter_map(at).collect())
    }

    fn panel(&self, title: Option<String>, layers: Vec<Layer>) -> Panel {
        let axes = Axes { x: self.x.clone(), y: self.y.clone(), layers, aspect: 0.68 };
        Panel::axes(title, axes)
    }

    /// A line for each block.
    fn together(&self, blocks: &[Block<'_>]) -> Panel {
        let line = |(i, block): (usize, &Block<'_>)| {
            self.line(block.name.clone(), i, &block.groups.iter().collect::<Vec<_>>())
        };
        self.panel(None, blocks.iter().enumerate().map(line).collect())
    }

    /// The runs at the levels where most numbers of processes were run.
    fn alone(&self, block: &Block<'_>) -> Panel {
        let free: Vec<usize> = block.processes().into_iter().collect();
        let groups: Vec<&Group<'_>> = block.slice(&free).collect();
        self.panel(block.title(), vec![self.line(String::new(), 0, &groups)])
    }

    /// A line for each level of a factor.
    fn levels(&self, block: &Block<'_>, factor: usize) -> Panel {
        let free: Vec<usize> = block.processes().into_iter().chain([factor]).collect();
        let slice: Vec<&Group<'_>> = block.slice(&free).collect();
        let of_level = |level: usize| {
            let groups: Vec<&Group<'_>> =
                slice.iter().copied().filter(|group| group.levels[factor] == level).collect();
            let label = block.factors[factor].shown(level);
            (!groups.is_empty()).then(|| self.line(label, level, &groups))
        };
        let name = block.factors[factor].name.clone();
        let title = block.title().map_or(name.clone(), |block| format!("{block}: {name}"));
        let layers = (0..block.factors[factor].levels.len()).filter_map(of_level).collect();
        Panel { series_of: Some(name), ..self.panel(Some(title), layers) }
    }
}

/// The panels of several factors.
#[derive(Default)]
struct Parts<'b, 'a> {
    panels: Vec<Panel>,
    /// Blocks in whose panels a factor changes.
    changed: Vec<&'b Block<'a>>,
    /// What is held or left out, in sentences.
    told: String,
}

impl<'b, 'a> Parts<'b, 'a> {
    /// Of each block the factors of which two levels have a line; where there is none, the one line there is.
    fn of(blocks: &'b [Block<'a>], with: &With<'_>) -> Self {
        let (mut parts, mut bare) = (Parts::default(), Vec::new());
        for block in blocks {
            let panels = block.others().into_iter().map(|factor| with.levels(block, factor));
            let panels: Vec<Panel> = panels.collect();
            let alone = with.alone(block);
            let (told, untold): (Vec<Panel>, Vec<Panel>) =
                panels.into_iter().partition(|panel| lines(panel) > 1);
            if !told.is_empty() {
                parts.changed.push(block);
                parts.leave_out(block, &untold);
                parts.panels.extend(told);
            } else if lines(&alone) > 0 {
                parts.leave_out(block, &untold);
                parts.hold(block);
                parts.panels.push(alone);
            } else if untold.is_empty() {
                bare.push((block, vec![alone]));
            } else {
                bare.push((block, untold));
            }
        }
        let has_lines = !parts.panels.is_empty();
        for (block, panels) in bare {
            if !has_lines {
                parts.changed.push(block);
                parts.panels.extend(panels);
            } else if let Some(name) = block.title() {
                let why = "was not run at several numbers of processes with all else the same";
                parts.told.push_str(&format!("{name} {why}, and is not drawn. "));
            }
        }
        parts
    }

    fn leave_out(&mut self, block: &Block<'_>, panels: &[Panel]) {
        let names = panels.iter().filter_map(|panel| panel.series_of.as_ref());
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        if !names.is_empty() {
            let of = block.title().map_or(String::new(), |name| format!(" of {name}"));
            self.told.push_str(&format!(
                "Not drawn, as fewer than two of its levels were run at several numbers of processes: {}{of}. ",
                names.join(", ")
            ));
        }
    }

    fn hold(&mut self, block: &Block<'_>) {
        let held = block.held(&block.processes().into_iter().collect::<Vec<_>>());
        if !held.is_empty() {
            let of = block.title().map_or(String::new(), |name| format!(" of {name}"));
            self.told.push_str(&format!("Held{of}: {held}. "));
        }
    }
}

/// Series that join two numbers of processes or more.
fn lines(panel: &Panel) -> usize {
    let layers = match &panel.content {
        crate::draw::figure::Content::Axes(axes) => axes.layers.as_slice(),
        _ => &[],
    };
    let is_line = |layer: &&Layer| matches!(layer, Layer::Series(one) if one.points.len() > 1);
    layers.iter().filter(is_line).count()
}

/// What is held while one factor changes, in words. Begins with a blank.
pub(super) fn of_held(blocks: &[&Block<'_>]) -> String {
    let held: Vec<String> = blocks
        .iter()
        .filter(|block| block.others().len() > 1)
        .map(|block| {
            let name =
                if block.name.is_empty() { String::new() } else { format!("{}: ", block.name) };
            format!("{name}{}", held_in(block))
        })
        .collect();
    match held.is_empty() {
        true => String::new(),
        false => {
            format!(" (one factor changes at a time, the others stay: {})", held.join("; "))
        }
    }
}

/// Of a block: the same for all panels where it is, else of each.
fn held_in(block: &Block<'_>) -> String {
    let others = block.others();
    let free = |factor: usize| block.processes().into_iter().chain([factor]).collect::<Vec<_>>();
    let mut levels: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for factor in &others {
        for group in block.slice(&free(*factor)) {
            for other in others.iter().filter(|other| *other != factor) {
                levels.entry(*other).or_default().insert(group.levels[*other]);
            }
        }
    }
    let same: Option<Vec<String>> = levels
        .iter()
        .map(|(factor, levels)| match levels.iter().collect::<Vec<_>>().as_slice() {
            [level] => Some(block.factors[*factor].named(**level)),
            _ => None,
        })
        .collect();
    let of = |factor: &usize| {
        format!("while `{}` changes, {}", block.factors[*factor].name, block.held(&free(*factor)))
    };
    match same {
        Some(same) => same.join(", "),
        None => others.iter().map(of).collect::<Vec<_>>().join("; "),
    }
}
