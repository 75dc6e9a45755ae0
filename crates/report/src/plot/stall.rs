//! Plots shares of an accelerator's time: computing, and waiting by cause.

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
    summary: "Shares of an accelerator's time: computing, waiting for open, read, decode, client or queue (for DLIO's results only in total), and waiting for slower accelerators",
    needs: Needs::Summaries,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| figure(data),
};

/// Maximum number of rows.
const ROWS_MAX: usize = 150;

/// Parts of the time, in seconds. If a run records only the total wait for data, the total replaces its parts. If a run does not record the cause of waits
/// in the barrier, the barrier replaces the skew, in the same colour.
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

/// The index of the wait for the client in [`PARTS`]. Not every run has it.
const CLIENT: usize = 4;
/// The index of the total wait for data, which follows its parts.
const TOTAL: usize = 6;
/// The index of the wait for slower accelerators.
const SKEW: usize = 7;
/// The index of the wait in the barrier.
const BARRIER: usize = 8;

/// Shares in percent, by [`PARTS`]; `None` for unknown parts.
type Shares = [Option<f64>; PARTS.len()];

fn figure(data: &Data) -> Result<Figure, Missing> {
    let blocks = data.blocks();
    let mut panels = Vec::new();
    let mut count = 0;
    let mut has_total = false;
    let mut has_barrier = false;
    for block in &blocks {
        let cells = block.design.cells.iter();
        let rows: Vec<(String, Shares)> = cells
            .filter_map(|cell| Some((block.label_in_list(cell), shares_of_cell(block, cell)?)))
            .collect();
        count += rows.len();
        has_total |= rows.iter().any(|(_, shares)| shares[TOTAL].is_some());
        has_barrier |= rows.iter().any(|(_, shares)| shares[BARRIER].is_some());
        if !rows.is_empty() {
            panels.push(panel(block.title(), rows));
        }
    }
    if count == 0 {
        return Err(Missing::new(
            "no run records where its time went",
            "records of feedrate do, as do DLIO's results with the times of steps and blocks",
        ));
    }
    if count > ROWS_MAX {
        return Err(Missing::too_many(count, ROWS_MAX, "give a folder that holds fewer"));
    }
    let mut caption = "Shares of the accelerators' time: computing, waiting for data by what the worker of the last accelerator in a step was doing, and waiting for \
         accelerators that were slower for other reasons (skew). Means over accelerators and runs."
        .to_string();
    if has_barrier {
        caption.push_str(" Older records and DLIO's results show the wait for other accelerators (barrier) without its cause.");
    }
    if has_total {
        caption.push_str(
            " DLIO's results show the total wait for data without its parts; the rest of a block counts as barrier.",
        );
    }
    let title = "Where the time went".into();
    Ok(Figure { title, caption, panels, columns: 1 })
}

/// A panel with a stacked bar for each row.
fn panel(title: Option<String>, rows: Vec<(String, Shares)>) -> Panel {
    let (names, shares): (Vec<String>, Vec<Shares>) = rows.into_iter().unzip();
    let layers = Layer::stacked_bars(PARTS.map(|(label, tone, _)| (label, tone)), &shares);
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

/// The shares of a run; `None` if it does not record them.
fn shares(run: &Run) -> Option<Shares> {
    let mut parts = PARTS.map(|(.., metric)| run.metric(metric));
    let has_parts = (1..TOTAL).all(|part| part == CLIENT || parts[part].is_some());
    let unused = if has_parts { TOTAL..TOTAL + 1 } else { 1..TOTAL };
    parts[unused].fill(None);
    let needed = if has_parts { 1 } else { TOTAL };
    if has_parts && parts[SKEW].is_some() {
        parts[BARRIER] = None;
    } else {
        parts[SKEW] = None;
    }
    let is_known = [0, needed].iter().all(|part| parts[*part].is_some())
        && parts[SKEW].or(parts[BARRIER]).is_some();
    let total: f64 = parts.iter().flatten().sum();
    (is_known && total > 0.0).then(|| parts.map(|part| Some(100.0 * part? / total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_bar_has_a_different_colour() {
        let others = &PARTS[..BARRIER];
        for (at, part) in others.iter().enumerate() {
            assert!(others[..at].iter().all(|other| other.1 != part.1), "{}", part.0);
        }
    }
}
