//! Main effects: the mean at each level of each factor, of runs that differ in nothing else.

use super::against::joined;
use super::compared::{Compared, Pooled, of_pooled, same_range};
use super::data::Data;
use super::groups::{Block, Group, axis_of, blocks, title};
use super::{Missing, Plot};
use crate::draw::figure::{Axes, Axis, Figure, Layer, Naming, Panel};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct MainEffects;

static MEMBER: Member = Member {
    name: "main_effects",
    summary: "The mean at each level of each factor, of runs that share the levels of all others or of a design that balances them",
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
        let (mut panels, mut gaps) = (Vec::new(), Vec::new());
        let blocks = blocks(&data.runs);
        for block in &blocks {
            let pooled = Pooled::of(block, response);
            for factor in 0..block.factors.len() {
                match Compared::of(block, &[factor], response) {
                    Some(compared) => {
                        gaps.extend(left_out(block, factor, &compared));
                        let drawn =
                            panel(block, (factor, &compared), (&pooled, response), (&y, unit));
                        panels.extend(drawn);
                    }
                    None => gaps.push(format!("{} is not drawn", told(block, factor))),
                }
            }
        }
        if panels.is_empty() {
            return Err(missing(&gaps, response));
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
            "{}. Marks of a panel are over runs that share the levels of all other factors, or of a design that balances them; the broken line is their mean. {}The upright \
             axis need not begin at 0. {}",
            figure.title,
            of_gaps(&gaps),
            of_pooled(&figure, response)
        );
        Ok(figure)
    }
}

fn missing(gaps: &[String], response: &Response) -> Missing {
    match gaps.is_empty() {
        true => Missing::new(
            format!("no runs that have a `{}` differ in a factor", response.id.name()),
            "main effects are drawn from a design: `feedrate study new` makes one",
        ),
        false => Missing::new(
            "no two runs differ in one factor alone, so each difference may be that of another factor",
            "run the levels of a factor with all else the same, or all combinations: `feedrate study new --design full_factorial`",
        ),
    }
}

fn told(block: &Block<'_>, factor: usize) -> String {
    let name = format!("`{}`", block.factors[factor].name);
    block.title().map_or(name.clone(), |block| format!("{name} of {block}"))
}

/// Levels that were run only where something else differed too.
fn left_out(block: &Block<'_>, factor: usize, compared: &Compared<'_, '_>) -> Option<String> {
    let all = 0..block.factors[factor].levels.len();
    let gone: Vec<String> = all
        .filter(|level| !compared.levels[0].contains(level))
        .map(|level| block.factors[factor].shown(level))
        .collect();
    let s = if gone.len() == 1 { "is" } else { "are" };
    (!gone.is_empty()).then(|| format!("{} {} {s} left out", told(block, factor), gone.join(", ")))
}

fn of_gaps(gaps: &[String]) -> String {
    match gaps.is_empty() {
        true => String::new(),
        false => format!("Where something else always differed: {}. ", gaps.join("; ")),
    }
}

fn panel(
    block: &Block<'_>,
    (factor, compared): (usize, &Compared<'_, '_>),
    (pooled, response): (&Pooled, &Response),
    (y, unit): (&Axis, f64),
) -> Option<Panel> {
    let whole = pooled.point(0.0, &compared.all(), response, unit)?;
    let rule = Layer::Rule { at: whole.y, label: String::new() };
    let (x, places) = block.factors[factor].axis_of(&compared.levels[0]);
    let at = |(level, place): (&usize, f64)| {
        let groups: &Vec<&Group<'_>> = compared.cells.get(&vec![*level])?;
        pooled.point(place, groups, response, unit)
    };
    let points = compared.levels[0].iter().zip(places).filter_map(at).collect();
    let layers = vec![rule, joined(String::new(), 0, points)];
    Some(Panel::axes(block.title(), Axes { x, y: y.clone(), layers, aspect: 0.85 }))
}
