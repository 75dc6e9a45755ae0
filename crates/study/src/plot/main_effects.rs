//! Main effects: the mean of all runs at each level of each factor, beside the mean of all.

use super::against::joined;
use super::data::{Data, RunPoint};
use super::groups::{Block, Pooled, axis_of, blocks, of_pooled, point, same_range, title};
use super::{Missing, Plot};
use crate::draw::figure::{Axes, Figure, Layer, Naming, Panel};
use crate::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct MainEffects;

static MEMBER: Member = Member {
    name: "main_effects",
    summary: "The mean of all runs at each level of each factor, with the mean of all runs: for designs that cross factors",
    abilities: &[],
};

impl Plot for MainEffects {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn response(&self) -> Option<&'static str> {
        Some("delivered_bytes_per_second")
    }

    fn figure(&self, data: &Data, response: Option<&'static Response>) -> Result<Figure, Missing> {
        let response = response.ok_or_else(Missing::runs)?;
        let (y, unit) = axis_of(response, &data.runs);
        let mut panels = Vec::new();
        let blocks = blocks(&data.runs);
        for block in &blocks {
            let all: Vec<&RunPoint> =
                block.groups.iter().flat_map(|group| group.runs.clone()).collect();
            let Some(whole) = point(0.0, &all, response, unit) else { continue };
            for factor in 0..block.factors.len() {
                let rule = Layer::Rule { at: whole.y, label: String::new() };
                let (x, places) = block.factors[factor].axis();
                let layers = vec![rule, levels(block, (factor, &places), response, unit)];
                let title = block.title();
                panels.push(Panel::axes(title, Axes { x, y: y.clone(), layers, aspect: 0.85 }));
            }
        }
        if panels.is_empty() {
            return Err(Missing::new(
                format!("no runs that have a `{}` differ in a factor", response.name),
                "main effects are drawn from a design: `feedrate study new` makes one",
            ));
        }
        same_range(&mut panels);
        let columns = panels.len().clamp(1, 3);
        let mut figure = Figure {
            title: format!("Main effects on {}", title(response)),
            caption: String::new(),
            panels,
            columns,
            naming: Naming::None,
        };
        figure.caption = format!(
            "{}. Each mark is over all runs at its level, whatever else they set; the broken line is over all runs. Where factors were not crossed, marks mix their effects. \
             The upright axis need not begin at 0. {}",
            figure.title,
            of_pooled(&figure, response)
        );
        Ok(figure)
    }
}

fn levels(
    block: &Block<'_>,
    (factor, places): (usize, &[f64]),
    response: &Response,
    unit: f64,
) -> Layer {
    let pooled = Pooled::of(block, response);
    let at = |level: usize| {
        let groups = block.groups.iter().filter(|group| group.levels[factor] == level);
        let runs: Vec<&RunPoint> = groups.flat_map(|group| group.runs.clone()).collect();
        pooled.point(places[level], &runs, response, unit)
    };
    let levels = 0..block.factors[factor].levels.len();
    joined(String::new(), 0, levels.filter_map(at).collect())
}
