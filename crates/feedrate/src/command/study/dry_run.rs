//! `feedrate study run --dry-run`: what would run, how long, how many bytes, and whether the disk holds them. Runs nothing.

use super::world::World;
use crate::exit::Exit;
use crate::messages;
use crate::text;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_results::state::{History, Settings};
use feedrate_spec::units;
use feedrate_study::datasets::{Change, Forecast, Now};
use feedrate_study::runner::{Host, Options, Plans, RowPlan, RunnerError, due, generation_s};
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
    world: &mut World,
    history: &History,
    settings: &Settings,
    options: &Options,
    json: bool,
) -> anyhow::Result<Exit> {
    let rows: Vec<Row> = world.files.table()?.rows().cloned().collect();
    let pending = due(&rows, history, options);
    let pending = &pending[..options.limit.unwrap_or(pending.len()).min(pending.len())];
    let mut plans = Plans::default();
    let made = plans.make(&rows, pending, |row| world.plan(row, settings));
    made.map_err(RunnerError::Rows)?;
    let steps = steps(world, (history, settings, options), (&rows, pending), &plans);
    tell(&steps, json);
    Ok(Exit::Fine)
}

/// The runs in their order, with what they do to the disk.
fn steps(
    world: &mut World,
    (history, settings, options): (&History, &Settings, &Options),
    (rows, pending): (&[Row], &[usize]),
    plans: &Plans,
) -> Vec<Step> {
    let pace = plans.pace(history);
    let planned = pending.iter().filter_map(|index| Some((*index, plans.of(&rows[*index])?)));
    let planned: Vec<(usize, &RowPlan)> = planned.collect();
    let folder = |plan: &RowPlan| Some(plan.dataset.as_ref()?.folder.clone());
    let uses = planned.iter().map(|(_, plan)| folder(plan)).collect();
    let owned = history.datasets.iter().map(|(folder, of)| (folder.clone(), of.bytes)).collect();
    let mut forecast = Forecast::new(options.datasets, uses, owned);
    let step = |(n, &(index, plan)): (usize, &(usize, &RowPlan))| {
        let row = &rows[index];
        let change = plan.dataset.as_ref().map_or_else(Change::default, |dataset| {
            let is_whole = world.is_whole(row, settings);
            let free_bytes = world.free_bytes(&dataset.folder);
            let (folder, bytes) = (&dataset.folder, dataset.bytes);
            forecast.step(n, Now { folder, bytes, is_whole, free_bytes })
        });
        let is_made = change.generate_bytes > 0;
        Step {
            row: index + 1,
            label: label(row, rows),
            run_s: plan.run_s * pace,
            generation_s: if is_made { generation_s(history, plan) } else { 0.0 },
            dataset: folder(plan),
            generate_bytes: change.generate_bytes,
            delete: change.delete,
            short_bytes: change.short_bytes,
        }
    };
    planned.iter().enumerate().map(step).collect()
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
