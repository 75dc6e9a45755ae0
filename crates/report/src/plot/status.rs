//! How far a study is, or the runs of folders are: all as a pie, each model's as bars, and the matrix of models and processes.

use super::data::{Data, FolderRun, FolderState};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, Bar, Bars, Cell, Content, Figure, Layer, Matrix, Naming, Panel, Range, Scale,
    Slice, Spread, Tone,
};
use feedrate_results::overview::Overview;
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;
use std::collections::BTreeMap;

/// See the row.
pub(super) struct StudyStatus;

static MEMBER: Member = Member {
    name: "status",
    summary: "How far a study is, or what folders hold: done, pending, partial and failed as a pie and as bars, and the matrix of models and processes",
    abilities: &[],
};

/// Rows of a study, or folders of results, by state.
struct Progress {
    /// What is counted, with a capital.
    what: &'static str,
    /// Of what those that are done are a part.
    whole: &'static str,
    /// On an axis.
    unit: &'static str,
    states: Vec<(&'static str, Tone)>,
    cells: Vec<Cells>,
}

/// Those of a model and a number of processes.
struct Cells {
    model: String,
    processes: Option<u32>,
    /// By state; the first is what is done.
    counts: Vec<usize>,
}

/// There is nothing to be done of it.
const NO_TRAINING: &str = "no training";

/// Of a state in which something went wrong.
const WRONG: [&str; 2] = ["failed", "partial"];

impl Progress {
    fn of_study(study: &Overview) -> Self {
        let of = |cell: &feedrate_results::overview::Cell| {
            let counts = cell.counts;
            Cells {
                model: cell.model.clone(),
                processes: Some(cell.processes),
                counts: vec![counts.done, counts.running, counts.pending, counts.failed],
            }
        };
        Progress {
            what: "Rows",
            whole: "all",
            unit: "Rows (runs)",
            states: vec![
                ("done", Tone::Good),
                ("running", Tone::Hue(0)),
                ("pending", Tone::Open),
                ("failed", Tone::Bad),
            ],
            cells: study.matrix.iter().map(of).collect(),
        }
    }

    fn of_folders(folders: &[FolderRun]) -> Self {
        use FolderState::{Done, Failed, NoTraining, Partial};
        let mut counts: BTreeMap<(&str, Option<u32>), Vec<usize>> = BTreeMap::new();
        let order = [Done, Partial, Failed, NoTraining];
        for folder in folders {
            let cell = counts.entry((&folder.workload, folder.processes));
            let cell = cell.or_insert_with(|| vec![0; order.len()]);
            let state = order.iter().position(|state| *state == folder.state);
            if let Some(count) = state.and_then(|state| cell.get_mut(state)) {
                *count += 1;
            }
        }
        let cells = counts.into_iter().map(|((model, processes), counts)| Cells {
            model: model.into(),
            processes,
            counts,
        });
        Progress {
            what: "Folders",
            whole: "those that train",
            unit: "Folders of runs",
            states: vec![
                ("done", Tone::Good),
                ("partial", Tone::Hue(4)),
                ("failed", Tone::Bad),
                (NO_TRAINING, Tone::Open),
            ],
            cells: cells.collect(),
        }
    }

    fn count(&self, state: usize) -> usize {
        self.cells.iter().map(|cell| cell.counts[state]).sum()
    }

    fn all(&self) -> usize {
        self.cells.iter().flat_map(|cell| &cell.counts).sum()
    }

    /// In words, for the caption.
    fn says(&self) -> String {
        let rest = (1..self.states.len())
            .map(|state| format!("{} {}", self.count(state), self.states[state].0));
        let rest: Vec<String> = rest.collect();
        let what = self.what.to_lowercase();
        format!("{} of {} {what} done, {}.", self.count(0), self.to_do(), rest.join(", "))
    }

    /// Those that have something to be done.
    fn to_do(&self) -> usize {
        let states = 0..self.states.len();
        states.filter(|state| self.states[*state].0 != NO_TRAINING).map(|at| self.count(at)).sum()
    }
}

impl Plot for StudyStatus {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn needs(&self) -> Needs {
        Needs::Progress
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let progress = match &data.overview {
            Some(study) => Progress::of_study(study),
            None => Progress::of_folders(&data.folders),
        };
        if progress.all() == 0 {
            return Err(Missing::new(
                "there is no row of a study and no folder of a run",
                "give the CSV of a study, or a folder with results",
            ));
        }
        let what = progress.what.to_lowercase();
        let slices = progress.states.iter().enumerate().map(|(state, (label, tone))| Slice {
            label: (*label).into(),
            value: progress.count(state) as f64,
            tone: *tone,
        });
        let pie = Content::Pie { slices: slices.filter(|slice| slice.value > 0.0).collect() };
        let (bars, matrix) = (bars(&progress), Content::Matrix(matrix(&progress)));
        let of = |title: String, content| Panel { title: Some(title), series_of: None, content };
        let is_study = data.overview.is_some();
        Ok(Figure {
            title: if is_study { "How far the study is" } else { "How far the runs are" }.into(),
            caption: match is_study {
                true => progress.says(),
                false => format!(
                    "{} Done: its steps, summary and ranks are there. Partial: some are. Failed: no step is, or nothing can be read. No training: it made data or checkpoints alone, and only pie and bars count it.",
                    progress.says()
                ),
            },
            panels: vec![
                of(format!("All {what}"), pie),
                bars,
                of(format!("{} done of {}", progress.what, progress.whole), matrix),
            ],
            columns: 2,
            naming: Naming::None,
        })
    }
}

fn models(progress: &Progress) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for cell in &progress.cells {
        if !models.contains(&cell.model) {
            models.push(cell.model.clone());
        }
    }
    models
}

/// Those of each model by state.
fn bars(progress: &Progress) -> Panel {
    let models = models(progress);
    let count = |model: &str, state: usize| {
        let cells = progress.cells.iter().filter(|cell| cell.model == model);
        cells.map(|cell| cell.counts[state]).sum::<usize>() as f64
    };
    let mut ends = vec![0.0; models.len()];
    let mut layers = Vec::new();
    for (state, (label, tone)) in progress.states.iter().enumerate() {
        let mut bars = Vec::new();
        for (i, model) in models.iter().enumerate() {
            let rows = count(model, state);
            if rows > 0.0 {
                bars.push(Bar { at: i as f64, from: ends[i], to: ends[i] + rows });
                ends[i] += rows;
            }
        }
        if !bars.is_empty() {
            let (label, tone, on) = ((*label).into(), *tone, Spread::Y);
            layers.push(Layer::Bars(Bars { label, tone, on, bars }));
        }
    }
    let label = progress.unit.into();
    let x = Axis { label, scale: Scale::Linear, range: Range::FromZero };
    let y = Axis { label: String::new(), scale: Scale::Categories(models), range: Range::Tight };
    Panel::from_axes(Some("By model".into()), Axes { x, y, layers, aspect: 1.0 })
}

/// Each cell says how many are done; its colour how large a share, or that something went wrong.
fn matrix(progress: &Progress) -> Matrix {
    let rows = models(progress);
    let mut processes: Vec<Option<u32>> =
        progress.cells.iter().map(|cell| cell.processes).collect();
    processes.sort_unstable_by_key(|count| (count.is_none(), *count));
    processes.dedup();
    let cell = |model: &String, processes: Option<u32>| {
        let is_it = |cell: &&Cells| cell.model == *model && cell.processes == processes;
        let found = progress.cells.iter().find(is_it)?;
        let states = || progress.states.iter().map(|state| state.0).zip(&found.counts);
        let sum = |is_counted: &dyn Fn(&str) -> bool| {
            states().filter(|(name, _)| is_counted(name)).map(|(_, count)| count).sum::<usize>()
        };
        let (done, all) = (found.counts[0], sum(&|name| name != NO_TRAINING));
        let is_wrong = sum(&|name| WRONG.contains(&name)) > 0;
        let share = done as f64 / all.max(1) as f64;
        let (tone, strength) =
            if is_wrong { (Tone::Bad, 0.5) } else { (Tone::Good, 0.08 + 0.72 * share) };
        (all > 0).then_some(Cell { text: format!("{done}/{all}"), strength, tone })
    };
    let cells =
        rows.iter().map(|model| processes.iter().map(|n| cell(model, *n)).collect()).collect();
    let column = |count: &Option<u32>| count.map_or("not known".into(), |count| count.to_string());
    Matrix {
        x_label: "Processes (emulated accelerators)".into(),
        y_label: "Model".into(),
        columns: processes.iter().map(column).collect(),
        rows,
        cells,
    }
}
