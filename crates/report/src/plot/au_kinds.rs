//! The three utilisations of each experiment side by side.

use super::caption::of_intervals;
use super::data::Data;
use super::groups::{Block, Group, blocks, point};
use super::{Missing, Plot};
use crate::draw::figure::{
    Axes, Axis, Figure, Layer, Naming, Panel, Point, Range, Scale, Series, Spread, Style, Tone,
};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct AuKinds;

/// More are looked through by nobody.
const MOST: usize = 150;

const KINDS: [(&str, &str); 3] = [
    ("au_windowed_percent", "windowed"),
    ("au_all_steps_percent", "all steps"),
    ("au_sustained_percent", "sustained"),
];

static MEMBER: Member = Member {
    name: "au_kinds",
    summary: "Windowed, all-steps and sustained AU of each experiment side by side",
    abilities: &[],
};

impl Plot for AuKinds {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let blocks = blocks(&data.runs);
        match blocks.iter().map(|block| block.groups.len()).sum::<usize>() {
            0 => return Err(Missing::runs()),
            count if count > MOST => {
                return Err(Missing::new(
                    format!("{count} experiments are too many for one picture of at most {MOST}"),
                    "give a folder that holds fewer",
                ));
            }
            _ => {}
        }
        let panels: Vec<Panel> = blocks.iter().filter_map(panel).collect();
        if panels.is_empty() {
            return Err(Missing::new("no run has an AU", "a run of at least two steps has one"));
        }
        let mut figure = Figure {
            title: "Windowed, all-steps and sustained AU".into(),
            caption: String::new(),
            panels,
            columns: 1,
            naming: Naming::Key,
        };
        figure.caption = format!(
            "{} of each experiment. Where windowed AU is far above the other two, its window lived off batches that were read before. Sustained AU is left \
             out where a run had too few steps for it. {}",
            figure.title,
            of_intervals(&figure, "means")
        );
        Ok(figure)
    }
}

/// A row for each experiment of a block; `None` where none has an AU.
fn panel(block: &Block<'_>) -> Option<Panel> {
    let series = |(i, (name, label)): (usize, &(&str, &str))| {
        let response = Response::find(name).ok()?;
        let at = |(row, group): (usize, &Group<'_>)| {
            let point = point(0.0, &group.runs, response, 1.0)?;
            Some(Point { x: point.y, y: row as f64, ..point })
        };
        let points: Vec<Point> = block.groups.iter().enumerate().filter_map(at).collect();
        let (tone, style, spread) = (Tone::Hue(i), Style::Marks, Spread::X);
        let label = (*label).into();
        (!points.is_empty()).then_some(Layer::Series(Series { label, tone, style, spread, points }))
    };
    let layers: Vec<Layer> = KINDS.iter().enumerate().filter_map(series).collect();
    let names = block.groups.iter().map(|group| block.label_in_list(group)).collect();
    let x =
        Axis { label: "AU (%)".into(), scale: Scale::Linear, range: Range::AtLeast(0.0, 100.0) };
    let y = Axis { label: String::new(), scale: Scale::Categories(names), range: Range::Tight };
    let axes = Axes { x, y, layers, aspect: 1.0 };
    (!axes.layers.is_empty()).then(|| Panel::axes(block.title(), axes))
}
