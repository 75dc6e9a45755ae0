//! Interactions: for each pair of factors, the mean by level of one, a line for each level of the other. Parallel lines: none.

use super::against::joined;
use super::data::{Data, RunPoint};
use super::groups::{Block, Pooled, axis_of, blocks, of_pooled, same_range, title};
use super::{Missing, Plot};
use crate::draw::figure::{Axes, Axis, Figure, Layer, Naming, Panel, Point};
use crate::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct Interactions;

/// Pairs that are shown, those that differ most from parallel first.
const PAIRS: usize = 6;

static MEMBER: Member = Member {
    name: "interactions",
    summary: "For each pair of factors the mean by level of one, a line for each level of the other; lines that are not parallel are an interaction",
    abilities: &[],
};

impl Plot for Interactions {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn response(&self) -> Option<&'static str> {
        Some("delivered_bytes_per_second")
    }

    fn figure(&self, data: &Data, response: Option<&'static Response>) -> Result<Figure, Missing> {
        let response = response.ok_or_else(Missing::runs)?;
        let (y, unit) = axis_of(response, &data.runs);
        let mut found: Vec<(f64, Panel)> = Vec::new();
        for block in &blocks(&data.runs) {
            for along in 0..block.factors.len() {
                for by in (0..block.factors.len()).filter(|by| *by < along) {
                    found.extend(pair(block, (along, by), response, (&y, unit)));
                }
            }
        }
        if found.is_empty() {
            return Err(Missing::new(
                "no two factors were crossed",
                "interactions need runs at all combinations of two factors' levels: `feedrate study new --design full_factorial`",
            ));
        }
        let all = found.len();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut panels: Vec<Panel> =
            found.into_iter().take(PAIRS).map(|(_, panel)| panel).collect();
        same_range(&mut panels);
        let columns = panels.len().min(2);
        let mut figure = Figure {
            title: format!("Interactions on {}", title(response)),
            caption: String::new(),
            panels,
            columns,
            naming: Naming::Direct,
        };
        let shown = figure.panels.len();
        figure.caption = format!(
            "{}: {shown} of {all} pairs of factors, those farthest from parallel lines first. The upright axis need not begin at 0. {}",
            figure.title,
            of_pooled(&figure, response)
        );
        Ok(figure)
    }
}

/// The panel of two factors whose levels were all combined, and how far it is from parallel lines.
fn pair(
    block: &Block<'_>,
    (along, by): (usize, usize),
    response: &Response,
    (y, unit): (&Axis, f64),
) -> Option<(f64, Panel)> {
    let (x, places) = block.factors[along].axis();
    let pooled = Pooled::of(block, response);
    let at = |level: usize, line: usize| {
        let both = |levels: &[usize]| levels[along] == level && levels[by] == line;
        let groups = block.groups.iter().filter(|group| both(&group.levels));
        let runs: Vec<&RunPoint> = groups.flat_map(|group| group.runs.clone()).collect();
        pooled.point(places[level], &runs, response, unit)
    };
    let of = |line: usize| {
        (0..block.factors[along].levels.len())
            .map(|level| at(level, line))
            .collect::<Option<Vec<Point>>>()
    };
    let lines: Vec<Vec<Point>> =
        (0..block.factors[by].levels.len()).map(of).collect::<Option<_>>()?;
    let strength = apart(&lines);
    let layers: Vec<Layer> = lines
        .into_iter()
        .enumerate()
        .map(|(i, points)| joined(block.factors[by].named(i), i, points))
        .collect();
    let title = block.title();
    Some((strength, Panel::axes(title, Axes { x, y: y.clone(), layers, aspect: 0.62 })))
}

/// The largest deviation of a value from the sum of its line's and its level's effect.
fn apart(lines: &[Vec<Point>]) -> f64 {
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let all = mean(&mut lines.iter().flatten().map(|point| point.y));
    let mut largest: f64 = 0.0;
    for line in lines {
        let of_line = mean(&mut line.iter().map(|point| point.y));
        for (i, point) in line.iter().enumerate() {
            let of_level = mean(&mut lines.iter().map(|line| line[i].y));
            largest = largest.max((point.y - of_line - of_level + all).abs());
        }
    }
    largest
}
