//! Where the time of an accelerator went: computing, or waiting, and for what.

use super::data::{Data, TimeParts};
use super::groups::{Block, Group, blocks};
use super::{Missing, Plot};
use crate::draw::figure::{
    Axes, Axis, Bar, Bars, Figure, Layer, Naming, Panel, Range, Scale, Spread, Tone,
};
use crate::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct StallSplit;

/// More are looked through by nobody.
const MOST: usize = 150;

static MEMBER: Member = Member {
    name: "stall",
    summary: "Shares of an accelerator's time: computing, waiting for open, read, decode or queue, and in the barrier",
    abilities: &[],
};

type Part = (&'static str, Tone, fn(&TimeParts) -> f64);

const PARTS: [Part; 6] = [
    ("compute", Tone::Faint, |time| time.compute_s),
    ("open", Tone::Hue(4), |time| time.open_s),
    ("read", Tone::Hue(0), |time| time.read_s),
    ("decode", Tone::Hue(2), |time| time.decode_s),
    ("queue", Tone::Hue(5), |time| time.queue_s),
    ("barrier", Tone::Hue(3), |time| time.barrier_s),
];

impl Plot for StallSplit {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let blocks = blocks(&data.runs);
        let rows = |block: &Block<'_>| {
            block.groups.iter().filter_map(|group| row(block, group)).collect::<Vec<_>>()
        };
        let known: Vec<(&Block<'_>, Vec<Row>)> = blocks
            .iter()
            .map(|block| (block, rows(block)))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        match known.iter().map(|(_, rows)| rows.len()).sum::<usize>() {
            0 => {
                return Err(Missing::new(
                    "no run tells where its time went",
                    "records of feedrate do; other results have only the whole stall",
                ));
            }
            count if count > MOST => {
                return Err(Missing::new(
                    format!("{count} experiments are too many for one picture of at most {MOST}"),
                    "give a folder that holds fewer",
                ));
            }
            _ => {}
        }
        let panels = known.into_iter().map(|(block, rows)| panel(block.title(), rows)).collect();
        Ok(Figure {
            title: "Where the time went".into(),
            caption: "Where the time of accelerators went: computing, waiting for data by what the worker of the awaited batch did meanwhile, and waiting for \
                      other accelerators (barrier). Mean over accelerators and runs."
                .into(),
            panels,
            columns: 1,
            naming: Naming::Key,
        })
    }
}

/// A bar for each row, of all parts.
fn panel(title: Option<String>, rows: Vec<Row>) -> Panel {
    let mut layers = Vec::new();
    for (part, (label, tone, _)) in PARTS.iter().enumerate() {
        let bar = |(at, (_, shares)): (usize, &Row)| {
            let from: f64 = shares[..part].iter().sum();
            Bar { at: at as f64, from, to: from + shares[part] }
        };
        let bars = rows.iter().enumerate().map(bar).collect();
        layers.push(Layer::Bars(Bars { label: (*label).into(), tone: *tone, on: Spread::Y, bars }));
    }
    let names = rows.into_iter().map(|(name, _)| name).collect();
    let x = Axis {
        label: "Share of an accelerator's time (%)".into(),
        scale: Scale::Linear,
        range: Range::AtLeast(0.0, 100.0),
    };
    let y = Axis { label: String::new(), scale: Scale::Categories(names), range: Range::Tight };
    Panel::axes(title, Axes { x, y, layers, aspect: 1.0 })
}

/// An experiment's name and its shares in percent.
type Row = (String, [f64; 6]);

/// An experiment's name and its shares in percent, the mean over its runs.
fn row(block: &Block<'_>, group: &Group<'_>) -> Option<Row> {
    let mut shares = [0.0; 6];
    let mut runs = 0.0;
    for time in group.runs.iter().filter_map(|run| run.time) {
        let parts = PARTS.map(|(.., of)| of(&time));
        let whole: f64 = parts.iter().sum();
        if whole > 0.0 {
            shares.iter_mut().zip(parts).for_each(|(share, part)| *share += 100.0 * part / whole);
            runs += 1.0;
        }
    }
    let name = block.label_in_list(group);
    (runs > 0.0).then(|| (name, shares.map(|share| share / runs)))
}
