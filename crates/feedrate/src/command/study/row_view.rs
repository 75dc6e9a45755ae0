//! One row in `feedrate study status`: its settings, state and results.

use crate::text;
use feedrate_analysis::answer::{AnsweredSummary, relevant_doubts};
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, METRICS, Metric, MetricId,
};
use feedrate_report::document::Block;
use feedrate_report::table::ReportTable;
use feedrate_results::index::{ReadOptions, RunIndex};
use feedrate_results::load_run;
use feedrate_results::place::{label, short_label};
use feedrate_results::row::Row;
use feedrate_results::run::Run;
use feedrate_results::setting::Setting;
use feedrate_results::state::{ADOPTED, Attempt, Outcome, RowState, Status};
use feedrate_session::threads;
use feedrate_spec::units;
use feedrate_study::ledger::Ledger;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A row of a study with its state and result.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct RowView<'a> {
    /// Number of the row, from 1.
    row: usize,
    /// Name of the row, as in `study status`.
    label: String,
    /// The workload.
    model: &'a str,
    /// Epochs, if the row sets them.
    epochs: Option<u32>,
    /// Emulated accelerators.
    processes: u32,
    /// Settings of the row: keys with values.
    overrides: Vec<String>,
    /// Number of the run within its experiment.
    replicate: Option<u32>,
    /// Block of the design.
    block: Option<u32>,
    /// Position in the order of runs.
    order: Option<u32>,
    /// State of the row.
    status: Status,
    /// State in one word; for the current row `preparing` or `running`.
    stage: &'static str,
    /// Reason that the row failed.
    reason: Option<&'a str>,
    /// Folder of the result.
    run_dir: Option<&'a Path>,
    /// Summary of the run; `null` if there is no result of feedrate, or it cannot be read.
    summary: Option<AnsweredSummary>,
    /// Numbers of a result of another program; `null` if there is none.
    imported: Option<ImportedView>,
    /// If single rows were requested: every attempt to run the row or a row with the same settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<AttemptView<'a>>>,
    #[serde(skip)]
    short_label: String,
    #[serde(skip)]
    note: &'a str,
    #[serde(skip)]
    attempt: Option<&'a Attempt>,
}

/// Numbers of a result of another program, recomputed from its steps.
#[derive(Serialize, JsonSchema)]
struct ImportedView {
    /// Compute time of all steps ÷ elapsed time, in percent.
    au_all_steps_percent: Option<f64>,
    /// Windowed utilisation, in percent.
    au_windowed_percent: Option<f64>,
    /// Bytes per second that the loaders received.
    delivered_bytes_per_second: Option<f64>,
    /// Names of the doubts that are no notes.
    doubts: Vec<String>,
    #[serde(skip)]
    values: BTreeMap<MetricId, f64>,
}

/// An attempt to run a row.
#[derive(Serialize, JsonSchema)]
struct AttemptView<'a> {
    /// Number of the attempt.
    attempt: u64,
    /// Local start time, which is also the name of the folder.
    #[serde(rename = "at")]
    started: String,
    /// Outcome in words.
    outcome: String,
    /// Whether a later result replaces it.
    superseded: bool,
    /// Folder of the attempt.
    run_dir: &'a Path,
}

impl<'a> RowView<'a> {
    /// Creates the views of the rows at `indices`. The results of other programs are read at once and compared with each other, and unless `skips_siblings`
    /// with the other runs of their workloads.
    pub(super) fn all(
        ledger: &'a Ledger,
        states: &[RowState<'a>],
        indices: impl IntoIterator<Item = usize>,
        skips_siblings: bool,
    ) -> Vec<Self> {
        let indices = indices.into_iter();
        let mut views: Vec<Self> =
            indices.map(|index| RowView::new(ledger, index, &states[index])).collect();
        let without_summary = views.iter_mut().filter(|view| view.summary.is_none());
        let (imports, folders): (Vec<_>, Vec<PathBuf>) = without_summary
            .filter_map(|view| Some((&mut view.imported, view.run_dir?.to_path_buf())))
            .unzip();
        let options = ReadOptions { threads: threads(), skips_siblings, ..ReadOptions::default() };
        let RunIndex { runs, sources, .. } = RunIndex::read_folders(&folders, &options);
        for (imported, indices) in imports.into_iter().zip(sources) {
            *imported = indices.first().map(|&index| ImportedView::new(&runs[index]));
        }
        views
    }

    /// Creates the view of the row at `index` with its state, without a result of another program.
    fn new(ledger: &'a Ledger, index: usize, state: &RowState<'a>) -> Self {
        let row: &Row = &ledger.rows[index];
        let attempt = state.result();
        let run_dir = attempt.map(|attempt| &*attempt.run_dir);
        let record = run_dir.and_then(|run_dir| load_run(run_dir).ok());
        RowView {
            row: index + 1,
            label: label(row, &ledger.rows),
            model: &row.model,
            epochs: row.epochs,
            processes: row.accelerators,
            overrides: row.settings.iter().map(Setting::text).collect(),
            replicate: row.replicate,
            block: row.block,
            order: row.order,
            status: state.status,
            stage: ledger.stage(state),
            reason: state.reason(),
            run_dir,
            summary: record.map(|record| AnsweredSummary::new(&record)),
            imported: None,
            attempts: None,
            short_label: short_label(row, &ledger.rows),
            note: &row.note,
            attempt,
        }
    }

    /// Adds all attempts.
    #[must_use]
    pub(super) fn with_attempts(self, ledger: &'a Ledger) -> Self {
        let key = ledger.rows[self.row - 1].key();
        let attempts = ledger.state.attempts.iter().filter(|attempt| attempt.key == key);
        RowView { attempts: Some(attempts.map(AttemptView::new).collect()), ..self }
    }

    /// Headings of [`RowView::cells`].
    pub(super) const HEADER: [&'static str; 7] =
        ["Row", "Run", "State", "AU all", "Delivered", "Took", "Doubts"];

    /// Cells of a table of rows.
    pub(super) fn cells(&self) -> [String; 7] {
        let has_no_result = self.status == Status::Done && self.attempt.is_none();
        let checked = self.attempt.filter(|attempt| attempt.number != ADOPTED);
        let took_s = checked.and_then(Attempt::checked).map(|checked| checked.duration_s);
        [
            format!("#{}", self.row),
            self.short_label.clone(),
            if has_no_result { "Y, no result here" } else { self.stage }.into(),
            self.value(&AU_ALL_STEPS),
            self.value(&DELIVERED_WHOLE),
            text::known(took_s, units::seconds),
            self.doubts(),
        ]
    }

    /// The details of the row as blocks of a document.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let settings = self.overrides.join("\n");
        let mut rows = vec![
            ("run", format!("#{} {}", self.row, self.label)),
            ("state", self.status.name().into()),
            ("sets", if settings.is_empty() { "nothing".into() } else { settings }),
        ];
        let places = [("replicate", self.replicate), ("block", self.block), ("order", self.order)];
        rows.extend(places.iter().filter_map(|(name, value)| Some((*name, (*value)?.to_string()))));
        rows.extend((!self.note.is_empty()).then(|| ("note", self.note.into())));
        if self.summary.is_some() || self.imported.is_some() {
            let all_steps = self.value(&AU_ALL_STEPS);
            let windowed = self.value(&AU_WINDOWED);
            let sustained = self.value(&AU_SUSTAINED);
            rows.push((
                "AU",
                format!("all steps {all_steps}, windowed {windowed}, sustained {sustained}"),
            ));
            rows.push(("delivered", self.value(&DELIVERED_WHOLE)));
        }
        let verdict = self.summary.as_ref().map(|run| run.summary.verdict.name.name().to_string());
        rows.extend(verdict.map(|verdict| ("verdict", verdict)));
        let doubts = self.doubts();
        rows.extend((!doubts.is_empty()).then_some(("doubts", doubts)));
        let attempts = self.attempts.iter().flatten().map(|attempt| {
            let folder = attempt.run_dir.display().to_string();
            [attempt.attempt.to_string(), attempt.started.clone(), attempt.outcome.clone(), folder]
        });
        let header = ["Attempt", "Started", "Outcome", "Folder"];
        vec![Block::facts(rows), Block::Table(ReportTable::from_text("", header, attempts))]
    }

    fn value(&self, metric: &Metric) -> String {
        let summary = self.summary.as_ref();
        let imported = || self.imported.as_ref()?.values.get(&metric.id).copied();
        let value = summary.and_then(|run| run.summary.figures.value(metric)).or_else(imported);
        text::known(value, |value| metric.unit.text(value))
    }

    /// Names of the doubts that could change the answer, and of those that the study found.
    fn doubts(&self) -> String {
        let summary = self.summary.iter();
        let relevant =
            summary.flat_map(|run| relevant_doubts(Some(&run.answer), &run.summary.doubts));
        let checked = self.attempt.and_then(Attempt::checked);
        let runner_doubts = checked.iter().flat_map(|checked| &checked.doubts);
        let runner_doubts = runner_doubts.map(|doubt| &*doubt.name);
        let mut names: Vec<&str> = Vec::new();
        let imported = self.imported.iter().flat_map(|run| &run.doubts).map(|name| &**name);
        for name in relevant.map(|doubt| &*doubt.name).chain(imported).chain(runner_doubts) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }
}

impl ImportedView {
    fn new(run: &Run) -> Self {
        let doubts = relevant_doubts(None, &run.doubts).into_iter();
        ImportedView {
            au_all_steps_percent: run.metric(&AU_ALL_STEPS),
            au_windowed_percent: run.metric(&AU_WINDOWED),
            delivered_bytes_per_second: run.metric(&DELIVERED_WHOLE),
            doubts: doubts.map(|doubt| doubt.name.to_string()).collect(),
            values: METRICS
                .iter()
                .filter_map(|metric| Some((metric.id, run.metric(metric)?)))
                .collect(),
        }
    }
}

impl<'a> AttemptView<'a> {
    fn new(attempt: &'a Attempt) -> Self {
        let name = attempt.run_dir.file_name().unwrap_or_default();
        AttemptView {
            attempt: attempt.number,
            started: name.to_string_lossy().into_owned(),
            outcome: match &attempt.outcome {
                Outcome::Running => "running, or its runner died".into(),
                Outcome::Complete(_) if attempt.number == ADOPTED => {
                    "done by another program or study".into()
                }
                Outcome::Complete(Some(checked)) => {
                    format!("done in {}", units::seconds(checked.duration_s))
                }
                Outcome::Complete(None) => "done".into(),
                Outcome::Superseded => "done, superseded".into(),
                Outcome::Failed { reason, .. } => format!("failed: {reason}"),
                Outcome::Interrupted => "interrupted".into(),
            },
            superseded: attempt.outcome == Outcome::Superseded,
            run_dir: &attempt.run_dir,
        }
    }
}
