//! How far a study is: all rows as a pie, each model's as bars, and the matrix of models and processes.

use super::data::Data;
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, Bar, Bars, Cell, Content, Figure, Layer, Matrix, Naming, Panel, Range, Scale,
    Slice, Spread, Tone,
};
use crate::overview::{Counts, Overview};
use crate::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct StudyStatus;

static MEMBER: Member = Member {
    name: "status",
    summary: "How far a study is: rows done, pending and failed as a pie and as bars, and the matrix of models and processes",
    abilities: &[],
};

type State = (&'static str, Tone, fn(&Counts) -> usize);

const STATES: [State; 4] = [
    ("done", Tone::Good, |counts| counts.done),
    ("running", Tone::Hue(0), |counts| counts.running),
    ("pending", Tone::Open, |counts| counts.pending),
    ("failed", Tone::Bad, |counts| counts.failed),
];

impl Plot for StudyStatus {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn needs(&self) -> Needs {
        Needs::Study
    }

    fn figure(&self, data: &Data, _: Option<&'static Response>) -> Result<Figure, Missing> {
        let study = data.overview.as_ref().filter(|study| study.counts.all() > 0);
        let Some(study) = study else {
            return Err(Missing::new(
                "there is no study, or none with rows",
                "give the CSV of a study",
            ));
        };
        let slices = STATES.iter().map(|(label, tone, of)| Slice {
            label: (*label).into(),
            value: of(&study.counts) as f64,
            tone: *tone,
        });
        let pie = Panel {
            title: Some("All rows".into()),
            content: Content::Pie { slices: slices.collect() },
        };
        let matrix = Panel {
            title: Some("Rows done of all".into()),
            content: Content::Matrix(matrix(study)),
        };
        Ok(Figure {
            title: "How far the study is".into(),
            caption: format!(
                "{} of {} rows done, {} running, {} pending, {} failed.",
                study.counts.done,
                study.counts.all(),
                study.counts.running,
                study.counts.pending,
                study.counts.failed
            ),
            panels: vec![pie, bars(study), matrix],
            columns: 2,
            naming: Naming::None,
        })
    }
}

fn models(study: &Overview) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for cell in &study.matrix {
        if !models.contains(&cell.model) {
            models.push(cell.model.clone());
        }
    }
    models
}

/// Rows of each model by state.
fn bars(study: &Overview) -> Panel {
    let models = models(study);
    let count = |model: &str, of: fn(&Counts) -> usize| {
        let cells = study.matrix.iter().filter(|cell| cell.model == model);
        cells.map(|cell| of(&cell.counts)).sum::<usize>() as f64
    };
    let mut ends = vec![0.0; models.len()];
    let mut layers = Vec::new();
    for (label, tone, of) in STATES {
        let mut bars = Vec::new();
        for (i, model) in models.iter().enumerate() {
            let rows = count(model, of);
            if rows > 0.0 {
                bars.push(Bar { at: i as f64, from: ends[i], to: ends[i] + rows });
                ends[i] += rows;
            }
        }
        if !bars.is_empty() {
            layers.push(Layer::Bars(Bars { label: label.into(), tone, on: Spread::Y, bars }));
        }
    }
    let x = Axis { label: "Rows (runs)".into(), scale: Scale::Linear, range: Range::FromZero };
    let y = Axis { label: String::new(), scale: Scale::Categories(models), range: Range::Tight };
    Panel::axes(Some("By model".into()), Axes { x, y, layers, aspect: 1.0 })
}

/// Each cell says how many of its rows are done; its colour how large a share, or that one failed.
fn matrix(study: &Overview) -> Matrix {
    let rows = models(study);
    let mut processes: Vec<u32> = study.matrix.iter().map(|cell| cell.processes).collect();
    processes.sort_unstable();
    processes.dedup();
    let cell = |model: &String, processes: u32| {
        let found =
            study.matrix.iter().find(|cell| cell.model == *model && cell.processes == processes)?;
        let counts = &found.counts;
        let share = counts.done as f64 / counts.all().max(1) as f64;
        let (tone, strength) = match counts.failed {
            0 => (Tone::Good, 0.08 + 0.72 * share),
            _ => (Tone::Bad, 0.5),
        };
        let text = format!("{}/{}", counts.done, counts.all());
        (counts.all() > 0).then_some(Cell { text, strength, tone })
    };
    let cells =
        rows.iter().map(|model| processes.iter().map(|n| cell(model, *n)).collect()).collect();
    Matrix {
        x_label: "Processes (emulated accelerators)".into(),
        y_label: "Model".into(),
        columns: processes.iter().map(u32::to_string).collect(),
        rows,
        cells,
    }
}
