//! Where the time of an accelerator went: computing, or waiting, and for what.

use super::data::{Data, TimeParts, Wait};
use super::groups::{Block, Group, blocks};
use super::{Missing, Plot};
use crate::draw::figure::{
    Axes, Axis, Bar, Bars, Figure, Layer, Naming, Panel, Range, Scale, Spread, Tone,
};
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct StallSplit;

/// More are looked through by nobody.
const MOST: usize = 150;

static MEMBER: Member = Member {
    name: "stall",
    summary: "Shares of an accelerator's time: computing, waiting for open, read, decode or queue (of DLIO's results, waiting as a whole), and in the barrier",
    abilities: &[],
};

/// `None`: a run does not tell.
type Part = (&'static str, Tone, fn(&TimeParts) -> Option<f64>);

const PARTS: [Part; 7] = [
    ("compute", Tone::Faint, |time| Some(time.compute_s)),
    ("open", Tone::Hue(4), |time| split(time).map(|parts| parts[0])),
    ("read", Tone::Hue(0), |time| split(time).map(|parts| parts[1])),
    ("decode", Tone::Hue(2), |time| split(time).map(|parts| parts[2])),
    ("queue", Tone::Hue(5), |time| split(time).map(|parts| parts[3])),
    ("data (not split)", Tone::Hue(1), |time| match time.wait {
        Wait::Whole { load_s } => Some(load_s),
        Wait::Split { .. } => None,
    }),
    ("barrier", Tone::Hue(3), |time| Some(time.barrier_s)),
];

fn split(time: &TimeParts) -> Option<[f64; 4]> {
    match time.wait {
        Wait::Split { open_s, read_s, decode_s, queue_s } => {
            Some([open_s, read_s, decode_s, queue_s])
        }
        Wait::Whole { .. } => None,
    }
}

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
                    "records of feedrate do, and of DLIO's results those with the times of steps and blocks",
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
        let mut all = known.iter().flat_map(|(_, rows)| rows);
        let is_whole = all.any(|(_, shares)| shares[WHOLE].is_some());
        let panels = known.into_iter().map(|(block, rows)| panel(block.title(), rows)).collect();
        let mut caption = "Where the time of accelerators went: computing, waiting for data by what the worker of the awaited batch did meanwhile, and waiting for other \
             accelerators (barrier). Mean over accelerators and runs."
            .to_string();
        if is_whole {
            caption.push_str(
                " DLIO's results tell how long was waited for data, not for which part of it; the barrier is there all the rest of a block.",
            );
        }
        Ok(Figure {
            title: "Where the time went".into(),
            caption,
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
            let from: f64 = shares[..part].iter().flatten().sum();
            Some(Bar { at: at as f64, from, to: from + shares[part]? })
        };
        let bars: Vec<Bar> = rows.iter().enumerate().filter_map(bar).collect();
        if !bars.is_empty() {
            let (label, tone, on) = ((*label).into(), *tone, Spread::Y);
            layers.push(Layer::Bars(Bars { label, tone, on, bars }));
        }
    }
    let names = rows.into_iter().map(|(name, _)| name).collect();
    let x = Axis {
        label: "Share of an accelerator's time (%)".into(),
        scale: Scale::Linear,
        range: Range::AtLeast(0.0, 100.0),
    };
    let y = Axis { label: String::new(), scale: Scale::Categories(names), range: Range::Tight };
    Panel::from_axes(title, Axes { x, y, layers, aspect: 1.0 })
}

/// The place of the wait whose parts are not known, in [`PARTS`].
const WHOLE: usize = 5;

/// An experiment's name and its shares in percent, by [`PARTS`]; `None` of what no run of it tells.
type Row = (String, [Option<f64>; PARTS.len()]);

/// The mean over its runs.
fn row(block: &Block<'_>, group: &Group<'_>) -> Option<Row> {
    let mut shares = [None; PARTS.len()];
    let mut runs = 0.0;
    for time in group.runs.iter().filter_map(|run| run.time) {
        let parts = PARTS.map(|(.., of)| of(&time));
        let whole: f64 = parts.iter().flatten().sum();
        if whole > 0.0 {
            for (share, part) in shares.iter_mut().zip(parts) {
                if let Some(part) = part {
                    *share = Some(share.unwrap_or(0.0) + 100.0 * part / whole);
                }
            }
            runs += 1.0;
        }
    }
    let name = block.label_in_list(group);
    (runs > 0.0).then(|| (name, shares.map(|share| share.map(|share| share / runs))))
}
