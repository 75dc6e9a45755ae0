//! Read calls by the size that they returned.

use super::data::Data;
use super::groups::{Group, blocks};
use super::{Missing, Plot};
use crate::draw::figure::{
    Axes, Axis, Bar, Bars, Figure, Layer, Naming, Panel, Range, Scale, Spread, Tone,
};
use feedrate_measure::record::access::BIN_NAMES;
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct RequestSizes;

/// More panels have no place on a page.
const MOST: usize = 24;

static MEMBER: Member = Member {
    name: "request_sizes",
    summary: "Read calls by the bytes they returned, in Darshan's bins, a panel for each experiment",
    abilities: &[],
};

impl Plot for RequestSizes {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let blocks = blocks(&data.runs);
        let mut panels: Vec<Panel> = Vec::new();
        for block in &blocks {
            let mut alike: Vec<(Vec<Bar>, Vec<&Group<'_>>)> = Vec::new();
            for group in &block.groups {
                let Some(shares) = shares(group) else { continue };
                match alike.iter_mut().find(|(known, _)| *known == shares) {
                    Some((_, groups)) => groups.push(group),
                    None => alike.push((shares, vec![group])),
                }
            }
            panels
                .extend(alike.into_iter().map(|(bars, groups)| panel(block.common(&groups), bars)));
        }
        if panels.is_empty() {
            return Err(Missing::new(
                "no run tells the sizes of its reads",
                "records of feedrate do, where files were read",
            ));
        }
        if panels.len() > MOST {
            return Err(Missing::new(
                format!(
                    "{} experiments are too many for one picture of at most {MOST}",
                    panels.len()
                ),
                "give a folder that holds fewer",
            ));
        }
        let columns = panels.len().min(2);
        Ok(Figure {
            title: "Read calls by size".into(),
            caption: "Share of read calls by the bytes they returned, in Darshan's bins, over all accelerators, epochs and runs of an experiment. Experiments \
                      with the same shares have one panel, named by what they have in common."
                .into(),
            panels,
            columns,
            naming: Naming::None,
        })
    }
}

fn panel(title: Option<String>, bars: Vec<Bar>) -> Panel {
    let names = BIN_NAMES.iter().map(|name| name.replace('-', "–")).collect();
    let x = Axis {
        label: "Read size (bytes, K = 1024)".into(),
        scale: Scale::Categories(names),
        range: Range::Tight,
    };
    let y = Axis {
        label: "Read calls (%)".into(),
        scale: Scale::Linear,
        range: Range::AtLeast(0.0, 100.0),
    };
    let bars = Bars { label: "read calls (%)".into(), tone: Tone::Hue(0), on: Spread::X, bars };
    Panel::axes(title, Axes { x, y, layers: vec![Layer::Bars(bars)], aspect: 0.5 })
}

/// Of each bin in percent; `None` where nothing was counted.
fn shares(group: &Group<'_>) -> Option<Vec<Bar>> {
    let mut counts = [0u64; BIN_NAMES.len()];
    for (name, count) in group.runs.iter().flat_map(|run| &run.requests) {
        if let Some(bin) = BIN_NAMES.iter().position(|known| known == name) {
            counts[bin] += count;
        }
    }
    let all: u64 = counts.iter().sum();
    let bar = |(i, count): (usize, &u64)| Bar {
        at: i as f64,
        from: 0.0,
        to: 100.0 * *count as f64 / all as f64,
    };
    (all > 0).then(|| counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bar).collect())
}
