//! Plots the progress of a study, or the states of runs in folders, as bars: in total and by level of each factor.

use super::block::key_and_level;
use super::data::{Data, FolderRun, FolderState};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Tone};
use feedrate_results::overview::{Overview, StatusCounts};
use feedrate_spec::units;
use std::collections::BTreeMap;

pub(super) static PLOT: Plot = Plot {
    name: "status",
    aliases: &[],
    summary: "Progress of a study, or states of the runs in folders: done, pending, partial and failed, in total and by factor",
    needs: Needs::Progress,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| figure(data),
};

/// The four states of rows or folders, done first.
type States = [(&'static str, Tone); 4];

/// States of a study's rows.
pub(super) const ROW_STATES: States = [
    ("done", Tone::Good),
    ("running", Tone::Hue(5)),
    ("pending", Tone::Open),
    ("failed", Tone::Bad),
];

/// States of folders with runs.
pub(super) const FOLDER_STATES: States = [
    ("done", Tone::Good),
    ("partial", Tone::Hue(4)),
    ("failed", Tone::Bad),
    (NO_TRAINING, Tone::Open),
];

/// A folder without training does not count as progress.
const NO_TRAINING: &str = "no training";

/// Maximum number of bars.
const LEVELS_MAX: usize = 40;

/// The number of rows or folders in each state.
type Counts = [usize; 4];

/// Rows of a study, or folders of results.
struct CountedStates<'a> {
    /// `rows` or `folders`.
    noun: &'static str,
    states: States,
    /// Each setting that varies: its name, and its levels.
    factors: Vec<(&'a str, Vec<(String, Counts)>)>,
    /// By model and number of processes.
    cells: Vec<(&'a str, Option<u32>, Counts)>,
}

impl<'a> CountedStates<'a> {
    fn from_study(study: &'a Overview) -> Self {
        let factors = study.factors.iter().map(|factor| {
            let levels = factor.levels.iter();
            let levels = levels
                .map(|row| (key_and_level(&factor.factor, &row.level), row_counts(row.counts)));
            (factor.factor.as_str(), levels.collect())
        });
        let cells = study
            .matrix
            .iter()
            .map(|cell| (cell.model.as_str(), Some(cell.processes), row_counts(cell.counts)));
        CountedStates {
            noun: "rows",
            states: ROW_STATES,
            factors: factors.collect(),
            cells: cells.collect(),
        }
    }

    fn from_folders(folders: &'a [FolderRun]) -> Self {
        let mut groups: BTreeMap<(&str, Option<u32>), Counts> = BTreeMap::new();
        for folder in folders {
            let state = match folder.state {
                FolderState::Done => 0,
                FolderState::Partial => 1,
                FolderState::Failed => 2,
                FolderState::NoTraining => 3,
            };
            groups.entry((&folder.workload, folder.processes)).or_default()[state] += 1;
        }
        let cells: Vec<_> =
            groups.into_iter().map(|((model, count), counts)| (model, count, counts)).collect();
        let mut by_model: BTreeMap<String, Counts> = BTreeMap::new();
        let mut by_count: BTreeMap<_, Counts> = BTreeMap::new();
        for (model, count, counts) in &cells {
            add(by_model.entry(model.to_string()).or_default(), counts);
            // Folders without a known number are last.
            add(by_count.entry((count.is_none(), *count)).or_default(), counts);
        }
        let by_count = by_count.into_iter().map(|((_, count), counts)| {
            let name = count.map_or("unknown processes".into(), |count| {
                key_and_level("processes", &count.to_string())
            });
            (name, counts)
        });
        let factors = vec![
            ("model", by_model.into_iter().collect::<Vec<_>>()),
            ("processes", by_count.collect()),
        ];
        let factors = factors.into_iter().filter(|(_, levels)| 1 < levels.len()).collect();
        CountedStates { noun: "folders", states: FOLDER_STATES, factors, cells }
    }

    fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        self.cells.iter().for_each(|(.., counts)| add(&mut totals, counts));
        totals
    }

    /// The number of rows or folders that count as progress.
    fn work(&self, counts: Counts) -> usize {
        let counts = self.states.iter().zip(counts);
        counts.filter(|(state, _)| state.0 != NO_TRAINING).map(|(_, count)| count).sum()
    }

    /// The states in a line: `18 of 42 rows done, 6 running, 12 pending, 6 failed`.
    fn summary(&self) -> String {
        let totals = self.totals();
        let mut text = format!("{} of {} {} done", totals[0], self.work(totals), self.noun);
        for ((label, _), count) in self.states.iter().zip(totals).skip(1) {
            if count > 0 {
                text += &format!(", {count} {label}");
            }
        }
        text
    }
}

fn add(to: &mut Counts, counts: &Counts) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}

fn row_counts(counts: StatusCounts) -> Counts {
    [counts.done, counts.running, counts.pending, counts.failed]
}

fn figure(data: &Data) -> Result<Figure, Missing> {
    let (counted, title) = match &data.overview {
        Some(study) => (CountedStates::from_study(study), "Progress of the study"),
        None => (CountedStates::from_folders(&data.folders), "States of the runs"),
    };
    if counted.totals() == Counts::default() {
        return Err(Missing::new(
            "there is no row of a study and no folder of a run",
            "give the CSV of a study, or a folder with results",
        ));
    }
    let mut caption = format!("{}.", counted.summary());
    if data.overview.is_none() {
        caption.push_str(" Done: steps, summary and ranks exist. Partial: some of them exist. Failed: there is no step, or nothing can be read. No training: the run made only data or checkpoints; only the bars count it.");
    }
    let (bars, left_out) = bars(&counted);
    if !left_out.is_empty() {
        caption += &format!(" Levels too many for bars: {}.", left_out.join(", "));
    }
    let panels = vec![bars];
    Ok(Figure { title: title.into(), caption, panels, columns: 1 })
}

/// A panel with a bar for the total and a bar for each level of each factor, and the names of factors with too many levels.
fn bars(counted: &CountedStates<'_>) -> (Panel, Vec<String>) {
    let mut bars = vec![("all".to_string(), counted.totals())];
    let mut left_out = Vec::new();
    for (name, levels) in &counted.factors {
        if bars.len() + levels.len() <= LEVELS_MAX {
            bars.extend(levels.iter().cloned());
        } else {
            left_out.push(format!("`{name}` ({})", units::counted(levels.len() as u64, "level")));
        }
    }
    let (names, counts): (Vec<String>, Vec<Counts>) = bars.into_iter().unzip();
    let length = |count: usize| (count > 0).then_some(count as f64);
    let lengths: Vec<_> = counts.into_iter().map(|counts| counts.map(length)).collect();
    let layers = Layer::stacked_bars(counted.states, &lengths);
    let unit = if counted.noun == "rows" { "Rows (runs)" } else { "Folders of runs" };
    let x = Axis::linear(unit, AxisRange::FromZero);
    let y = Axis::categories("", names);
    (Panel::from_axes(Some(counted.summary()), Axes { x, y, layers, aspect: 1.0 }), left_out)
}
