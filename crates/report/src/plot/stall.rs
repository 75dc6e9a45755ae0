//! Where the time of an accelerator went: computing, or waiting, and for what.

use super::block::PlotBlock;
use super::data::Data;
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Tone};
use feedrate_analysis::design::DesignCell;
use feedrate_measure::metric::{
    BARRIER_S, COMPUTE_S, LOAD_S, Metric, STALL_CLIENT, STALL_DECODE, STALL_OPEN, STALL_QUEUE,
    STALL_READ, STALL_SKEW,
};
use feedrate_results::run::Run;

pub(super) static PLOT: Plot = Plot {
    name: "stall",
    aliases: &[],
    summary: "Shares of an accelerator's time: computing, waiting for open, read, decode, client or queue (of DLIO's results, waiting as a whole), and for slower ones",
    needs: Needs::Summaries,
    responses: &[],
    make: |data, _| figure(data),
};

/// Most rows that anybody looks through.
const MOST: usize = 150;

/// Parts of the time, in seconds. Of a run that tells only of waiting as a whole, this stands in the place of its parts; of one that
/// does not tell for whom it waited in the barrier, the barrier in the place of the skew, and in its colour.
pub(super) const PARTS: [(&str, Tone, &Metric); 9] = [
    ("compute", Tone::Faint, &COMPUTE_S),
    ("open", Tone::Hue(4), &STALL_OPEN),
    ("read", Tone::Hue(0), &STALL_READ),
    ("decode", Tone::Hue(2), &STALL_DECODE),
    ("client", Tone::Hue(3), &STALL_CLIENT),
    ("queue", Tone::Hue(5), &STALL_QUEUE),
    ("data (not split)", Tone::Hue(1), &LOAD_S),
    ("skew", Tone::Hue(6), &STALL_SKEW),
    ("barrier", Tone::Hue(6), &BARRIER_S),
];

/// The place of the wait for the client in [`PARTS`], which not every run has.
const CLIENT: usize = 4;
/// The place of the wait as a whole; its parts stand before it.
const WHOLE: usize = 6;
/// The places of the waits for others.
const SKEW: usize = 7;
const BARRIER: usize = 8;

/// Shares in percent, by [`PARTS`]; `None` of what is not told.
type Shares = [Option<f64>; PARTS.len()];

fn figure(data: &Data) -> Result<Figure, Missing> {
    let blocks = data.blocks();
    let mut panels = Vec::new();
    let (mut count, mut is_whole, mut has_barrier) = (0, false, false);
    for block in &blocks {
        let cells = block.design.cells.iter();
        let rows: Vec<(String, Shares)> = cells
            .filter_map(|cell| Some((block.label_in_list(cell), shares_of_cell(block, cell)?)))
            .collect();
        count += rows.len();
        is_whole |= rows.iter().any(|(_, shares)| shares[WHOLE].is_some());
        has_barrier |= rows.iter().any(|(_, shares)| shares[BARRIER].is_some());
        if !rows.is_empty() {
            panels.push(panel(block.title(), rows));
        }
    }
    if count == 0 {
        return Err(Missing::new(
            "no run tells where its time went",
            "records of feedrate do, and of DLIO's results those with the times of steps and blocks",
        ));
    }
    if count > MOST {
        return Err(Missing::too_many(count, MOST, "give a folder that holds fewer"));
    }
    let mut caption = "Where the time of accelerators went: computing, waiting for data, its own or that of the last in a step, by what the last one's worker did \
         meanwhile, and for accelerators that took longer for another reason (skew). Mean over accelerators and runs."
        .to_string();
    if has_barrier {
        caption.push_str(" Older records and DLIO's results tell how long others were waited for (barrier), not why.");
    }
    if is_whole {
        caption.push_str(
            " DLIO's results tell how long was waited for data, not for which part of it; the barrier is there all the rest of a block.",
        );
    }
    let title = "Where the time went".into();
    Ok(Figure { title, caption, panels, columns: 1 })
}

/// A bar for each row, of all parts.
fn panel(title: Option<String>, rows: Vec<(String, Shares)>) -> Panel {
    let (names, shares): (Vec<String>, Vec<Shares>) = rows.into_iter().unzip();
    let layers = Layer::stacked(PARTS.map(|(label, tone, _)| (label, tone)), &shares);
    let x = Axis::linear("Share of an accelerator's time (%)", AxisRange::AtLeast(0.0, 100.0));
    Panel::from_axes(title, Axes { x, y: Axis::categories("", names), layers, aspect: 1.0 })
}

/// The mean over the runs of a cell.
fn shares_of_cell(block: &PlotBlock<'_>, cell: &DesignCell) -> Option<Shares> {
    let runs: Vec<Shares> = block.runs(cell).filter_map(shares).collect();
    let count = runs.len() as f64;
    let mut means: Shares = [None; PARTS.len()];
    for (part, share) in runs.iter().flat_map(|shares| shares.iter().enumerate()) {
        if let Some(share) = share {
            *means[part].get_or_insert(0.0) += share / count;
        }
    }
    (!runs.is_empty()).then_some(means)
}

fn shares(run: &Run) -> Option<Shares> {
    let mut parts = PARTS.map(|(.., metric)| run.metric(metric));
    let has_parts = (1..WHOLE).all(|part| part == CLIENT || parts[part].is_some());
    let unused = if has_parts { WHOLE..WHOLE + 1 } else { 1..WHOLE };
    parts[unused].fill(None);
    let needed = if has_parts { 1 } else { WHOLE };
    if has_parts && parts[SKEW].is_some() {
        parts[BARRIER] = None;
    } else {
        parts[SKEW] = None;
    }
    let is_known = [0, needed].iter().all(|part| parts[*part].is_some())
        && parts[SKEW].or(parts[BARRIER]).is_some();
    let whole: f64 = parts.iter().flatten().sum();
    (is_known && whole > 0.0).then(|| parts.map(|part| Some(100.0 * part? / whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_have_colours_of_their_own() {
        let others = &PARTS[..BARRIER];
        for (at, one) in others.iter().enumerate() {
            assert!(others[..at].iter().all(|other| other.1 != one.1), "{}", one.0);
        }
    }
}
