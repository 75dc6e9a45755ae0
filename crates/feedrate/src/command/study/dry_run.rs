//! `feedrate study run --dry-run`: what would run, how long, how many bytes, and whether the disk holds them. Runs nothing.

use super::machine::Machine;
use crate::exit::Exit;
use crate::messages;
use crate::text;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_results::state::{StudySettings, StudyState};
use feedrate_spec::units;
use feedrate_study::datasets::{Change, Forecast, Now};
use feedrate_study::runner::{
    DatasetPlan, Plans, RowPlan, RunnerEnv, RunnerError, RunnerOptions, due,
};
use serde::Serialize;
use std::path::PathBuf;

/// One run that would be made.
#[derive(Serialize)]
struct Step {
    row: usize,
    label: String,
    run_s: f64,
    generation_s: f64,
    /// The folder of its dataset.
    dataset: Option<PathBuf>,
    /// To be generated first; 0 where it is there by then.
    generate_bytes: u64,
    /// To be deleted before.
    delete: Vec<PathBuf>,
    /// There is too little room, by so many bytes.
    short_bytes: Option<u64>,
}

/// Tell what would run.
pub(super) fn dry_run(
    machine: &mut Machine,
    state: &StudyState,
    settings: &StudySettings,
    options: &RunnerOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    let rows: Vec<Row> = machine.files.table()?.rows().cloned().collect();
    let pending = due(&rows, state, options);
    let pending = &pending[..options.limit.unwrap_or(pending.len()).min(pending.len())];
    let mut plans = Plans::default();
    let made = plans.make(&rows, pending, |row| machine.plan(row, settings));
    made.map_err(RunnerError::Rows)?;
    let planned: Vec<Planned> = pending
        .iter()
        .filter_map(|&index| Some(Planned { rows: &rows, index, plan: plans.get(&rows[index])? }))
        .collect();
    let uses = planned.iter().map(|of| of.plan.dataset.as_ref().map(|of| of.folder.clone()));
    let owned = machine.own_datasets(&plans.dataset_roots(), &settings.id);
    let mut forecast = Forecast::new(options.datasets, uses.collect(), owned);
    let pace = plans.pace(state);
    let steps: Vec<Step> = planned
        .iter()
        .enumerate()
        .map(|(n, of)| of.step(pace, of.change(&mut forecast, n, machine, settings)))
        .collect();
    tell(&steps, json);
    Ok(Exit::Fine)
}

/// A row that would be run.
struct Planned<'a> {
    rows: &'a [Row],
    index: usize,
    plan: &'a RowPlan,
}

impl Planned<'_> {
    /// The change that the `n`th run makes to the disk.
    fn change(
        &self,
        forecast: &mut Forecast,
        n: usize,
        machine: &mut Machine,
        settings: &StudySettings,
    ) -> Change {
        let Some(DatasetPlan { folder, bytes, .. }) = &self.plan.dataset else {
            return Change::default();
        };
        let is_whole = machine.is_whole(&self.rows[self.index], settings);
        let free_bytes = machine.free_bytes(folder);
        forecast.step(n, Now { folder, bytes: *bytes, is_whole, free_bytes })
    }

    fn step(&self, pace: f64, change: Change) -> Step {
        let is_made = change.generate_bytes > 0;
        Step {
            row: self.index + 1,
            label: label(&self.rows[self.index], self.rows),
            run_s: self.plan.run_s * pace,
            generation_s: if is_made { self.plan.generation_s } else { 0.0 },
            dataset: self.plan.dataset.as_ref().map(|dataset| dataset.folder.clone()),
            generate_bytes: change.generate_bytes,
            delete: change.delete,
            short_bytes: change.short_bytes,
        }
    }
}

fn tell(steps: &[Step], json: bool) {
    let run_s: f64 = steps.iter().map(|step| step.run_s).sum();
    let generation_s: f64 = steps.iter().map(|step| step.generation_s).sum();
    let generate_bytes: u64 = steps.iter().map(|step| step.generate_bytes).sum();
    let is_short = steps.iter().any(|step| step.short_bytes.is_some());
    if json {
        messages::print(serde_json::json!({
            "runs": steps,
            "run_s": run_s,
            "generation_s": generation_s,
            "generate_bytes": generate_bytes,
            "fits_disk": !is_short,
        }));
        return;
    }
    if steps.is_empty() {
        return messages::print("nothing is pending");
    }
    messages::print(table(steps));
    messages::print(format!(
        "\n{}: about {} of running and {} of generating {}; {}",
        units::counted(steps.len() as u64, "run"),
        units::seconds(run_s),
        units::seconds(generation_s),
        units::bytes(generate_bytes),
        if is_short { "the disk is too small" } else { "the disk has room" },
    ));
}

fn table(steps: &[Step]) -> String {
    let mut table = text::table(["Row", "Run", "Takes about", "Dataset", "Before it"]);
    for step in steps {
        let name = |folder: &PathBuf| {
            folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        let mut before: Vec<String> =
            step.delete.iter().map(|folder| format!("delete {}", name(folder))).collect();
        if step.generate_bytes > 0 {
            before.push(format!("generate {}", units::bytes(step.generate_bytes)));
        }
        before.extend(
            step.short_bytes.map(|short| format!("no room: {} short", units::bytes(short))),
        );
        table.add_row([
            format!("#{}", step.row),
            step.label.clone(),
            units::seconds(step.run_s),
            step.dataset.as_ref().map_or("-".into(), name),
            before.join(", "),
        ]);
    }
    text::lines(&table)
}
