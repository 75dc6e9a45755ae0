//! How far a study is, or the runs of folders are: all as a pie, each model's as bars, and the matrix of models and processes.

use super::data::{Data, FolderRun, FolderState};
use super::{Make, Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, AxisRange, Bar, Bars, Figure, Layer, Matrix, MatrixCell, Naming, Panel,
    PanelContent, Slice, Tone,
};
use feedrate_results::overview::{LevelCounts, Overview, StatusCounts};
use feedrate_spec::catalog::Member;
use std::collections::BTreeMap;

pub(super) static PLOT: Plot = Plot {
    member: Member {
        name: "status",
        summary: "How far a study is, or what folders hold: done, pending, partial and failed as a pie and as bars, and the matrix of models and processes",
        abilities: &[],
    },
    needs: Needs::Progress,
    make: Make::Figure(figure),
};

/// The four states of rows or folders, done first.
type States = [(&'static str, Tone); 4];

const OF_ROWS: States = [
    ("done", Tone::Good),
    ("running", Tone::Hue(0)),
    ("pending", Tone::Open),
    ("failed", Tone::Bad),
];

const OF_FOLDERS: States = [
    ("done", Tone::Good),
    ("partial", Tone::Hue(4)),
    ("failed", Tone::Bad),
    (NO_TRAINING, Tone::Open),
];

/// There is nothing to be done of it.
const NO_TRAINING: &str = "no training";

/// States in which something went wrong.
const WRONG: [&str; 2] = ["failed", "partial"];

/// Rows of a study, or folders of results, of a model and a number of processes; how many in each state.
struct StatusGroup<'a> {
    model: &'a str,
    processes: Option<u32>,
    counts: [usize; 4],
}

fn groups_of_study(study: &Overview) -> Vec<StatusGroup<'_>> {
    let mut groups = Vec::new();
    for cell in &study.matrix {
        let counts = of_rows(cell.counts);
        groups.push(StatusGroup { model: &cell.model, processes: Some(cell.processes), counts });
    }
    groups
}

fn of_rows(of: StatusCounts) -> [usize; 4] {
    [of.done, of.running, of.pending, of.failed]
}

fn groups_of_folders(folders: &[FolderRun]) -> Vec<StatusGroup<'_>> {
    let mut groups: BTreeMap<(&str, Option<u32>), [usize; 4]> = BTreeMap::new();
    for folder in folders {
        let state = match folder.state {
            FolderState::Done => 0,
            FolderState::Partial => 1,
            FolderState::Failed => 2,
            FolderState::NoTraining => 3,
        };
        groups.entry((&folder.workload, folder.processes)).or_default()[state] += 1;
    }
    let groups = groups.into_iter();
    groups.map(|((model, processes), counts)| StatusGroup { model, processes, counts }).collect()
}

fn figure(data: &Data) -> Result<Figure, Missing> {
    let (states, groups, [what, whole, unit, title]) = match &data.overview {
        Some(study) => {
            let names = ["Rows", "all", "Rows (runs)", "How far the study is"];
            (OF_ROWS, groups_of_study(study), names)
        }
        None => {
            let names = ["Folders", "those that train", "Folders of runs", "How far the runs are"];
            (OF_FOLDERS, groups_of_folders(&data.folders), names)
        }
    };
    let totals: [usize; 4] =
        std::array::from_fn(|state| groups.iter().map(|group| group.counts[state]).sum());
    if totals.iter().sum::<usize>() == 0 {
        return Err(Missing::new(
            "there is no row of a study and no folder of a run",
            "give the CSV of a study, or a folder with results",
        ));
    }
    let lower = what.to_lowercase();
    let mut caption = format!("{} of {} {lower} done", totals[0], to_do(&states, totals));
    let mut slices = Vec::new();
    for (state, ((label, tone), count)) in states.into_iter().zip(totals).enumerate() {
        if state > 0 {
            caption += &format!(", {count} {label}");
        }
        if count > 0 {
            slices.push(Slice { label: label.into(), value: count as f64, tone });
        }
    }
    caption.push('.');
    if data.overview.is_none() {
        caption.push_str(" Done: its steps, summary and ranks are there. Partial: some are. Failed: no step is, or nothing can be read. No training: it made data or checkpoints alone, and only pie and bars count it.");
    }
    let mut models: Vec<&str> = Vec::new();
    for group in &groups {
        if !models.contains(&group.model) {
            models.push(group.model);
        }
    }
    let (pie, matrix) = (PanelContent::Pie { slices }, matrix(&states, &groups, &models));
    let panels = vec![
        Panel { title: Some(format!("All {lower}")), series_of: None, content: pie },
        bars(&states, bar_counts(data, &groups, &models), unit),
        Panel { title: Some(format!("{what} done of {whole}")), series_of: None, content: matrix },
    ];
    Ok(Figure { title: title.into(), caption, panels, columns: 2, naming: Naming::None })
}

/// Those that have something to be done.
fn to_do(states: &States, counts: [usize; 4]) -> usize {
    let counts = states.iter().zip(counts);
    counts.filter(|(state, _)| state.0 != NO_TRAINING).map(|(_, count)| count).sum()
}

/// Rows or folders by what the bars are of: each model, or each level of a factor where there is one model.
struct BarCounts {
    title: &'static str,
    bars: Vec<(String, [usize; 4])>,
}

/// More levels are too many for bars.
const LEVELS_MAX: usize = 24;

fn bar_counts(data: &Data, groups: &[StatusGroup], models: &[&str]) -> BarCounts {
    let factors = data.overview.iter().flat_map(|study| &study.factors);
    let levels = factors.flat_map(|of| of.levels.iter().map(move |level| (of, level)));
    let levels: Vec<(String, [usize; 4])> = levels
        .map(|(of, LevelCounts { level, counts })| {
            let name = of.factor.rsplit('.').next().unwrap_or_default();
            (format!("{name} {level}"), of_rows(*counts))
        })
        .collect();
    if models.len() == 1 && (1..=LEVELS_MAX).contains(&levels.len()) {
        return BarCounts { title: "By factor", bars: levels };
    }
    let bars = models.iter().map(|model| {
        let own = groups.iter().filter(|group| group.model == *model);
        let counts = |state: usize| own.clone().map(|group| group.counts[state]).sum();
        (model.to_string(), std::array::from_fn(counts))
    });
    BarCounts { title: "By model", bars: bars.collect() }
}

fn bars(states: &States, of: BarCounts, unit: &str) -> Panel {
    let mut ends = vec![0.0; of.bars.len()];
    let mut layers = Vec::new();
    for (state, (label, tone)) in states.iter().enumerate() {
        let mut bars = Vec::new();
        for (i, (_, counts)) in of.bars.iter().enumerate() {
            let count = counts[state] as f64;
            if count > 0.0 {
                bars.push(Bar { at: i as f64, from: ends[i], to: ends[i] + count });
                ends[i] += count;
            }
        }
        if !bars.is_empty() {
            layers.push(Layer::Bars(Bars { label: (*label).into(), tone: *tone, bars }));
        }
    }
    let x = Axis::linear(unit, AxisRange::FromZero);
    let y = Axis::categories("", of.bars.into_iter().map(|(name, _)| name).collect());
    Panel::from_axes(Some(of.title.into()), Axes { x, y, layers, aspect: 1.0 })
}

/// Each cell says how many are done; its colour how large a share, or that something went wrong.
fn matrix(states: &States, groups: &[StatusGroup], models: &[&str]) -> PanelContent {
    let mut processes: Vec<Option<u32>> = groups.iter().map(|group| group.processes).collect();
    processes.sort_unstable_by_key(|count| (count.is_none(), *count));
    processes.dedup();
    let mut cells = vec![vec![None; processes.len()]; models.len()];
    for group in groups {
        let row = models.iter().position(|model| *model == group.model);
        let column = processes.iter().position(|count| *count == group.processes);
        let (done, all) = (group.counts[0], to_do(states, group.counts));
        if let (Some(row), Some(column), 1..) = (row, column, all) {
            let mut counts = states.iter().zip(group.counts);
            let is_wrong = counts.any(|(state, count)| WRONG.contains(&state.0) && count > 0);
            let share = 0.08 + 0.72 * done as f64 / all as f64;
            let (tone, strength) = if is_wrong { (Tone::Bad, 0.5) } else { (Tone::Good, share) };
            cells[row][column] = Some(MatrixCell { text: format!("{done}/{all}"), strength, tone });
        }
    }
    let columns = processes.iter();
    let columns = columns.map(|n| n.map_or("not known".into(), |count| count.to_string()));
    PanelContent::Matrix(Matrix {
        x_label: super::block::PROCESSES_LABEL.into(),
        y_label: "Model".into(),
        columns: columns.collect(),
        cells,
        rows: models.iter().map(|model| model.to_string()).collect(),
    })
}
