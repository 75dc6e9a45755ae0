//! `feedrate study run --dry-run`: prints the pending runs, their estimated time and bytes, and whether the disk has enough space. Nothing
//! is run.

use crate::exit::Exit;
use crate::messages::{self, StdoutError};
use feedrate_report::document::{Block, Document};
use feedrate_report::output::Schema;
use feedrate_report::table::ReportTable;
use feedrate_results::place::{label, short_label};
use feedrate_results::row::Row;
use feedrate_results::state::StudySettings;
use feedrate_spec::units;
use feedrate_study::datasets::{CurrentDataset, DiskChange, Forecast};
use feedrate_study::ledger::Ledger;
use feedrate_study::machine::ThisMachine;
use feedrate_study::runner::{
    Plans, RowDataset, RowPlan, RowProblem, RunnerEnv, RunnerError, RunnerOptions, due_rows,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Output of `study run --dry-run --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct StudyDryRunOutput<'a> {
    /// Runs that would be made.
    runs: &'a [ForecastRun],
    /// Time of all runs, in seconds.
    run_s: f64,
    /// Time to generate datasets, in seconds.
    generation_s: f64,
    /// Bytes of datasets that would be generated.
    generate_bytes: u64,
    /// Whether the datasets fit on the disk.
    fits_disk: bool,
}

/// One run that would be made.
#[derive(Serialize, JsonSchema)]
struct ForecastRun {
    row: usize,
    label: String,
    #[serde(skip)]
    short_label: String,
    /// Name of the bundled workload, or the file that is used.
    workload: String,
    run_s: f64,
    generation_s: f64,
    /// Folder of the run's dataset.
    dataset: Option<PathBuf>,
    /// Changes on the disk before the run.
    #[serde(flatten)]
    change: DiskChange,
}

/// Prints the forecast of a study's pending runs.
pub(super) fn dry_run(ledger: Ledger, options: &RunnerOptions, json: bool) -> anyhow::Result<Exit> {
    let Ledger { rows, state, settings, mut machine, .. } = ledger;
    let mut pending = due_rows(&rows, &state, options);
    pending.truncate(options.limit.unwrap_or(pending.len()));
    let mut plans = Plans::default();
    let refused = plans.plan_rows(&rows, &pending, |row| machine.plan(row, &settings));
    let refused = refused.map_err(RunnerError::Rows)?;
    if refused.len() == pending.len() {
        let refused = RowProblem::refuse(&refused, &rows, |row| machine.scale_min(row, &settings));
        refused.map_err(RunnerError::Rows)?;
    }
    let planned = pending.iter().filter_map(|&index| Some((index, plans.get(&rows[index])?)));
    let planned: Vec<(usize, &RowPlan)> = planned.collect();
    let uses = planned.iter().map(|(_, plan)| Some(plan.dataset.as_ref()?.folder.clone()));
    let owned = machine.own_datasets(&plans.dataset_roots(), &settings.id);
    let mut forecast = Forecast::new(options.datasets, uses.collect(), owned);
    let pace = plans.pace(&state);
    let mut runs = Vec::new();
    for (n, (index, plan)) in planned.into_iter().enumerate() {
        let row = &rows[index];
        let mut change = DiskChange::default();
        if let Some(RowDataset { folder, bytes, .. }) = &plan.dataset {
            let is_complete = machine.has_complete_dataset(row, &settings);
            let free_bytes = machine.free_bytes(folder);
            change =
                forecast.step(n, CurrentDataset { folder, bytes: *bytes, is_complete, free_bytes });
        }
        runs.push(ForecastRun {
            row: index + 1,
            label: label(row, &rows),
            short_label: short_label(row, &rows),
            workload: plan.workload.clone(),
            run_s: pace.row_s(plan),
            generation_s: if change.generate_bytes > 0 { plan.generation_s } else { 0.0 },
            dataset: plan.dataset.as_ref().map(|dataset| dataset.folder.clone()),
            change,
        });
    }
    print_forecast(&runs, json)?;
    let problems = RowProblem::messages(&refused, &rows, |row| machine.scale_min(row, &settings));
    problems.iter().for_each(|problem| messages::say(format!("cannot run: {problem}")));
    if state.settings.is_none() {
        note_page_cache(&machine, pending.first().map(|&index| &rows[index]), &settings);
    }
    Ok(if refused.is_empty() { Exit::Fine } else { Exit::Failed })
}

/// Notes that the page cache can hold the dataset of the first row, so its runs may not measure the storage. The cache of a study cannot be changed later.
pub(super) fn note_page_cache(
    machine: &ThisMachine,
    first: Option<&Row>,
    settings: &StudySettings,
) {
    let planned = first.and_then(|row| machine.plan_row(row, settings).ok());
    if planned.is_some_and(|planned| planned.may_be_cached) {
        messages::note(
            "note: memory can hold the dataset, so runs may measure memory instead of the storage; `--cache cold` removes it from memory before each epoch",
        );
    }
}

fn print_forecast(runs: &[ForecastRun], json: bool) -> Result<(), StdoutError> {
    let run_s: f64 = runs.iter().map(|run| run.run_s).sum();
    let generation_s: f64 = runs.iter().map(|run| run.generation_s).sum();
    let generate_bytes: u64 = runs.iter().map(|run| run.change.generate_bytes).sum();
    let is_short = runs.iter().any(|run| run.change.short_bytes.is_some());
    if json {
        let fits_disk = !is_short;
        let output = StudyDryRunOutput { runs, run_s, generation_s, generate_bytes, fits_disk };
        return messages::print_json(Schema::StudyDryRun, &output);
    }
    if runs.is_empty() {
        return messages::print_page("nothing is pending");
    }
    let header = ["Row", "Run", "Takes about", "Before the run"];
    let table = ReportTable::from_text("", header, runs.iter().map(cells));
    messages::print_document(&Document::from(vec![Block::Table(table)]), true)?;
    messages::print_page(&format!(
        "\n{}: about {} for running and {} for generating {}; {}",
        units::counted(runs.len() as u64, "run"),
        units::seconds(run_s),
        units::seconds(generation_s),
        units::bytes(generate_bytes),
        if is_short { "not enough disk space" } else { "the disk space is sufficient" },
    ))
}

fn cells(run: &ForecastRun) -> [String; 4] {
    let DiskChange { generate_bytes, delete, short_bytes } = &run.change;
    let mut before: Vec<String> =
        delete.iter().map(|folder| format!("delete {}", folder_name(folder))).collect();
    if *generate_bytes > 0 {
        before.push(format!("generate {}", units::bytes(*generate_bytes)));
    }
    before.extend(
        short_bytes.map(|short| format!("not enough space: {} short", units::bytes(short))),
    );
    [format!("#{}", run.row), run.short_label.clone(), units::seconds(run.run_s), before.join(", ")]
}

/// Name of a folder without its parents.
fn folder_name(folder: &Path) -> String {
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
