//! Interactions: for each pair of factors, the mean by level of one, a line for each level of the other, of runs that differ in nothing
//! else. Parallel lines: none.

use super::against::joined;
use super::compared::{Compared, Pooled, of_pooled, same_range};
use super::data::Data;
use super::groups::{Block, axis_of, blocks, title};
use super::{Missing, Plot};
use crate::draw::figure::{Axes, Axis, Figure, Naming, Panel, Point};
use feedrate_results::response::Response;
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
        let mut pairs = 0;
        for block in &blocks(&data.runs) {
            let pooled = Pooled::of(block, response);
            for along in 0..block.factors.len() {
                for by in (0..block.factors.len()).filter(|by| *by < along) {
                    pairs += 1;
                    found.extend(pair(block, [along, by], (&pooled, response), (&y, unit)));
                }
            }
        }
        if found.is_empty() {
            let message = match pairs {
                0 => "runs differ in fewer than two factors".into(),
                _ => format!(
                    "no two factors were crossed: of {} some combination of levels was not run with all else the same",
                    if pairs == 1 {
                        "the one pair".into()
                    } else {
                        format!("each of {pairs} pairs")
                    }
                ),
            };
            return Err(Missing::new(
                message,
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
            "{}: {}, over runs that share the levels of all other factors or of a design that balances \
             them. {}The upright axis need not begin at 0. {}",
            figure.title,
            match all {
                1 => "one pair of factors".into(),
                _ => format!(
                    "{shown} of {all} pairs of factors, those farthest from parallel lines first"
                ),
            },
            of_empty(pairs - all),
            of_pooled(&figure, response)
        );
        Ok(figure)
    }
}

fn of_empty(pairs: usize) -> String {
    match pairs {
        0 => String::new(),
        1 => "One more pair was not crossed. ".into(),
        _ => format!("{pairs} more pairs were not crossed. "),
    }
}

/// The panel of two factors whose levels were all combined, and how far it is from parallel lines.
fn pair(
    block: &Block<'_>,
    factors: [usize; 2],
    (pooled, response): (&Pooled, &Response),
    (y, unit): (&Axis, f64),
) -> Option<(f64, Panel)> {
    let compared = Compared::of(block, &factors, response)?;
    let [along, by] = factors.map(|factor| &block.factors[factor]);
    let (x, places) = along.axis_of(&compared.levels[0]);
    let line = |of: &usize| {
        let at = |(level, place): (&usize, &f64)| {
            pooled.point(*place, compared.cells.get(&vec![*level, *of])?, response, unit)
        };
        compared.levels[0].iter().zip(&places).map(at).collect::<Option<Vec<Point>>>()
    };
    let lines: Vec<Vec<Point>> = compared.levels[1].iter().map(line).collect::<Option<_>>()?;
    let strength = apart(&lines);
    let lines = compared.levels[1].iter().zip(lines);
    let layers = lines.map(|(level, points)| joined(by.named(*level), *level, points)).collect();
    Some((strength, Panel::axes(block.title(), Axes { x, y: y.clone(), layers, aspect: 0.62 })))
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
