//! How far a study is, or the runs of folders are: all as a pie, each model's as bars, and the matrix of models and processes.

use super::data::{Data, FolderRun, FolderState};
use super::{Make, Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, Bar, Bars, Cell, Content, Figure, Layer, Matrix, Naming, Panel, Range, Slice, Tone,
};
use feedrate_results::overview::Overview;
use feedrate_spec::catalog::Member;

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
struct Group {
    model: String,
    processes: Option<u32>,
    counts: [usize; 4],
}

fn groups_of_study(study: &Overview) -> Vec<Group> {
    let cells = study.matrix.iter();
    let group = cells.map(|cell| {
        let of = cell.counts;
        let counts = [of.done, of.running, of.pending, of.failed];
        Group { model: cell.model.clone(), processes: Some(cell.processes), counts }
    });
    group.collect()
}

fn groups_of_folders(folders: &[FolderRun]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for FolderRun { workload, processes, state, .. } in folders {
        let state = match state {
            FolderState::Done => 0,
            FolderState::Partial => 1,
            FolderState::Failed => 2,
            FolderState::NoTraining => 3,
        };
        let same = |one: &Group| one.model == *workload && one.processes == *processes;
        if !groups.iter().any(same) {
            let (model, processes) = (workload.clone(), *processes);
            groups.push(Group { model, processes, counts: [0; 4] });
        }
        groups.iter_mut().filter(|one| same(one)).for_each(|one| one.counts[state] += 1);
    }
    groups.sort_by(|a, b| (&a.model, a.processes).cmp(&(&b.model, b.processes)));
    groups
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
    if groups.iter().flat_map(|group| group.counts).sum::<usize>() == 0 {
        return Err(Missing::new(
            "there is no row of a study and no folder of a run",
            "give the CSV of a study, or a folder with results",
        ));
    }
    let count = |state: usize| groups.iter().map(|group| group.counts[state]).sum::<usize>();
    let counted = |state: usize| format!("{} {}", count(state), states[state].0);
    let to_do: usize = groups.iter().map(|group| to_do(&states, group)).sum();
    let lower = what.to_lowercase();
    let rest = [1, 2, 3].map(counted).join(", ");
    let mut caption = format!("{} of {to_do} {lower} done, {rest}.", count(0));
    if data.overview.is_none() {
        caption.push_str(" Done: its steps, summary and ranks are there. Partial: some are. Failed: no step is, or nothing can be read. No training: it made data or checkpoints alone, and only pie and bars count it.");
    }
    let mut slices = Vec::new();
    for (state, (label, tone)) in states.into_iter().enumerate() {
        if count(state) > 0 {
            slices.push(Slice { label: label.into(), value: count(state) as f64, tone });
        }
    }
    let mut models: Vec<String> = groups.iter().map(|group| group.model.clone()).collect();
    let mut seen = std::collections::HashSet::new();
    models.retain(|model| seen.insert(model.clone()));
    let named = |title: String, content| Panel { title: Some(title), series_of: None, content };
    let matrix = matrix(&states, &groups, &models);
    let panels = vec![
        named(format!("All {lower}"), Content::Pie { slices }),
        bars(&states, &groups, &models, unit),
        named(format!("{what} done of {whole}"), Content::Matrix(matrix)),
    ];
    Ok(Figure { title: title.into(), caption, panels, columns: 2, naming: Naming::None })
}

/// Those that have something to be done.
fn to_do(states: &States, group: &Group) -> usize {
    let counts = states.iter().zip(group.counts);
    counts.filter(|(state, _)| state.0 != NO_TRAINING).map(|(_, count)| count).sum()
}

/// Each model's by state.
fn bars(states: &States, groups: &[Group], models: &[String], unit: &str) -> Panel {
    let mut ends = vec![0.0; models.len()];
    let mut layers = Vec::new();
    for (state, (label, tone)) in states.iter().enumerate() {
        let mut bars = Vec::new();
        for (i, model) in models.iter().enumerate() {
            let own = groups.iter().filter(|group| group.model == *model);
            let count = own.map(|group| group.counts[state]).sum::<usize>() as f64;
            if count > 0.0 {
                bars.push(Bar { at: i as f64, from: ends[i], to: ends[i] + count });
                ends[i] += count;
            }
        }
        if !bars.is_empty() {
            layers.push(Layer::Bars(Bars { label: (*label).into(), tone: *tone, bars }));
        }
    }
    let x = Axis::linear(unit, Range::FromZero);
    let y = Axis::categories("", models.to_vec());
    Panel::from_axes(Some("By model".into()), Axes { x, y, layers, aspect: 1.0 })
}

/// Each cell says how many are done; its colour how large a share, or that something went wrong.
fn matrix(states: &States, groups: &[Group], models: &[String]) -> Matrix {
    let mut processes: Vec<Option<u32>> = groups.iter().map(|group| group.processes).collect();
    processes.sort_unstable_by_key(|count| (count.is_none(), *count));
    processes.dedup();
    let cell = |model: &String, processes: &Option<u32>| {
        let is_it = |group: &&Group| group.model == *model && group.processes == *processes;
        let group = groups.iter().find(is_it)?;
        let (done, all) = (group.counts[0], to_do(states, group));
        let mut counts = states.iter().zip(group.counts);
        let is_wrong = counts.any(|(state, count)| WRONG.contains(&state.0) && count > 0);
        let share = done as f64 / all.max(1) as f64;
        let (tone, strength) =
            if is_wrong { (Tone::Bad, 0.5) } else { (Tone::Good, 0.08 + 0.72 * share) };
        (all > 0).then_some(Cell { text: format!("{done}/{all}"), strength, tone })
    };
    let rows = models.iter().map(|model| processes.iter().map(|n| cell(model, n)).collect());
    let column = |count: &Option<u32>| count.map_or("not known".into(), |count| count.to_string());
    Matrix {
        x_label: super::block::PROCESSES_LABEL.into(),
        y_label: "Model".into(),
        columns: processes.iter().map(column).collect(),
        cells: rows.collect(),
        rows: models.to_vec(),
    }
}
