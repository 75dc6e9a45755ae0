//! How far a study is, or the runs of folders are: all, and those of each level of what varies, as bars.

use super::block::level_named;
use super::data::{Data, FolderRun, FolderState};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{Axes, Axis, AxisRange, Figure, Layer, Panel, Tone};
use feedrate_results::overview::{Overview, StatusCounts};
use feedrate_spec::units;
use std::collections::BTreeMap;

pub(super) static PLOT: Plot = Plot {
    name: "status",
    aliases: &[],
    summary: "How far a study is, or what folders hold: done, pending, partial and failed, of all and by what varies",
    needs: Needs::Progress,
    responses: &[],
    make: |data, _| figure(data),
};

/// The four states of rows or folders, done first.
type States = [(&'static str, Tone); 4];

pub(super) const OF_ROWS: States = [
    ("done", Tone::Good),
    ("running", Tone::Hue(5)),
    ("pending", Tone::Open),
    ("failed", Tone::Bad),
];

pub(super) const OF_FOLDERS: States = [
    ("done", Tone::Good),
    ("partial", Tone::Hue(4)),
    ("failed", Tone::Bad),
    (NO_TRAINING, Tone::Open),
];

/// There is nothing to be done of it.
const NO_TRAINING: &str = "no training";

/// More levels than this of one factor, or of all, are too many for bars.
const LEVELS_MAX: usize = 40;

/// How many are in each of the states.
type Counts = [usize; 4];

/// Rows of a study, or folders of results.
struct Counted<'a> {
    /// `rows`.
    what: &'static str,
    states: States,
    /// Each setting that varies: its name, and its levels.
    factors: Vec<(&'a str, Vec<(String, Counts)>)>,
    /// By model and number of processes.
    cells: Vec<(&'a str, Option<u32>, Counts)>,
}

impl<'a> Counted<'a> {
    fn of_study(study: &'a Overview) -> Self {
        let factors = study.factors.iter().map(|of| {
            let levels = of.levels.iter();
            let levels = levels.map(|at| (level_named(&of.factor, &at.level), of_rows(at.counts)));
            (of.factor.as_str(), levels.collect())
        });
        let cells = study.matrix.iter();
        let cells = cells.map(|of| (of.model.as_str(), Some(of.processes), of_rows(of.counts)));
        Counted {
            what: "rows",
            states: OF_ROWS,
            factors: factors.collect(),
            cells: cells.collect(),
        }
    }

    fn of_folders(folders: &'a [FolderRun]) -> Self {
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
        let (mut by_model, mut by_count) = (BTreeMap::new(), BTreeMap::new());
        for (model, count, counts) in &cells {
            add(by_model.entry(model.to_string()).or_default(), counts);
            // Folders that do not tell are last.
            add(by_count.entry((count.is_none(), *count)).or_default(), counts);
        }
        let by_count = by_count.into_iter().map(|((_, count), counts)| {
            let name = count.map_or("processes not known".into(), |count| {
                level_named("processes", &count.to_string())
            });
            (name, counts)
        });
        let factors = vec![
            ("model", by_model.into_iter().collect::<Vec<_>>()),
            ("processes", by_count.collect()),
        ];
        let factors = factors.into_iter().filter(|(_, levels)| 1 < levels.len()).collect();
        Counted { what: "folders", states: OF_FOLDERS, factors, cells }
    }

    fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        self.cells.iter().for_each(|(.., counts)| add(&mut totals, counts));
        totals
    }

    /// Those that have something to be done.
    fn to_do(&self, counts: Counts) -> usize {
        let counts = self.states.iter().zip(counts);
        counts.filter(|(state, _)| state.0 != NO_TRAINING).map(|(_, count)| count).sum()
    }

    /// `18 of 42 rows done, 6 running, 12 pending, 6 failed`.
    fn told(&self) -> String {
        let totals = self.totals();
        let mut told = format!("{} of {} {} done", totals[0], self.to_do(totals), self.what);
        for ((label, _), count) in self.states.iter().zip(totals).skip(1) {
            if count > 0 {
                told += &format!(", {count} {label}");
            }
        }
        told
    }
}

fn add(to: &mut Counts, counts: &Counts) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}

fn of_rows(of: StatusCounts) -> Counts {
    [of.done, of.running, of.pending, of.failed]
}

fn figure(data: &Data) -> Result<Figure, Missing> {
    let (of, title) = match &data.overview {
        Some(study) => (Counted::of_study(study), "How far the study is"),
        None => (Counted::of_folders(&data.folders), "How far the runs are"),
    };
    if of.totals() == Counts::default() {
        return Err(Missing::new(
            "there is no row of a study and no folder of a run",
            "give the CSV of a study, or a folder with results",
        ));
    }
    let mut caption = format!("{}.", of.told());
    if data.overview.is_none() {
        caption.push_str(" Done: its steps, summary and ranks are there. Partial: some are. Failed: no step is, or nothing can be read. No training: it made data or checkpoints alone, and only bars count it.");
    }
    let (bars, left_out) = bars(&of);
    if !left_out.is_empty() {
        caption += &format!(" Levels too many for bars: {}.", left_out.join(", "));
    }
    let panels = vec![bars];
    Ok(Figure { title: title.into(), caption, panels, columns: 1 })
}

/// A bar of all, and one for each level of what varies; and the names of what has too many levels.
fn bars(of: &Counted<'_>) -> (Panel, Vec<String>) {
    let mut bars = vec![("all".to_string(), of.totals())];
    let mut left_out = Vec::new();
    for (name, levels) in &of.factors {
        if bars.len() + levels.len() <= LEVELS_MAX {
            bars.extend(levels.iter().cloned());
        } else {
            left_out.push(format!("`{name}` ({})", units::counted(levels.len() as u64, "level")));
        }
    }
    let (names, counts): (Vec<String>, Vec<Counts>) = bars.into_iter().unzip();
    let length = |count: usize| (count > 0).then_some(count as f64);
    let lengths: Vec<_> = counts.into_iter().map(|counts| counts.map(length)).collect();
    let layers = Layer::stacked(of.states, &lengths);
    let unit = if of.what == "rows" { "Rows (runs)" } else { "Folders of runs" };
    let x = Axis::linear(unit, AxisRange::FromZero);
    let y = Axis::categories("", names);
    (Panel::from_axes(Some(of.told()), Axes { x, y, layers, aspect: 1.0 }), left_out)
}
