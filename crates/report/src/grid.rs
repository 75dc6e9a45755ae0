//! The two tables of a report, of experiments and of runs: their columns, and what a cell says.

use crate::experiment::{Experiment, Middle, experiments};
use crate::number::{megabytes, percent, significant};
use crate::report::{Report, Run};
use crate::table::{Cell, Kind, Table};
use std::collections::{BTreeMap, HashMap};

/// All runs.
pub(super) fn table_of_runs(report: &Report) -> Table {
    let mut table = Table::new(
        "One row a run. Its number leads to its record, a doubt to what was seen. Runs that are not used are grey.",
    );
    let runs: Vec<&Run> = report.runs.iter().collect();
    if runs.iter().any(|run| run.unused.is_some()) {
        let why = runs.iter().map(|run| run.unused.as_deref().unwrap_or_default());
        table.add("Not used", Kind::Text, why);
    }
    add_settings(&mut table, report, &runs);
    let au: [Percentage; 4] = [
        ("AU all steps (%)", |run| run.au.all_steps_percent),
        ("AU windowed (%)", |run| run.au.windowed_percent),
        ("AU reported (%)", |run| run.au.reported_percent),
        ("AU sustained (%)", |run| run.au.sustained_percent),
    ];
    for (name, of) in au {
        let is_wanted = match name {
            "AU reported (%)" => is_reported_otherwise(report),
            "AU sustained (%)" => has_sustained(report),
            _ => true,
        };
        if is_wanted {
            let cells = runs.iter().map(|run| Cell::written(of(run), percent));
            table.add(name, Kind::Utilisation, cells);
        }
    }
    let read = runs.iter().map(|run| {
        let cell = Cell::written(run.throughput.bytes_per_second, megabytes);
        if run.throughput.is_estimated { estimated(cell) } else { cell }
    });
    table.add(read_heading(&runs), Kind::Rate, read);
    let samples = runs.iter().map(|run| run.throughput.samples_per_second);
    table.add("Samples/s", Kind::Rate, samples.map(|rate| Cell::written(rate, significant)));
    table.add("Epochs", Kind::Number, runs.iter().map(|run| Some(run.epochs)));
    table
}

type Percentage = (&'static str, fn(&Run) -> Option<f64>);

/// All experiments.
pub(super) fn table_of_experiments(report: &Report) -> Table {
    let mut table = Table::new(
        "Means of n runs (of rates geometric), with 95 % intervals where there are several.",
    );
    let all = experiments(report);
    let firsts: Vec<&Run> = all.iter().map(|one| &report.runs[one.runs[0]]).collect();
    add_settings(&mut table, report, &firsts);
    table.add("n", Kind::Number, all.iter().map(|one| Some(one.runs.len() as u64)));
    let of_all = |of: fn(&Experiment) -> &Middle, text: fn(Option<f64>) -> String| {
        all.iter().map(move |one| of(one).cell(text))
    };
    let kind = Kind::Utilisation;
    table.add("AU all steps (%)", kind, of_all(|one| &one.au_all_steps_percent, percent));
    table.add("AU windowed (%)", kind, of_all(|one| &one.au_windowed_percent, percent));
    if has_sustained(report) {
        table.add("AU sustained (%)", kind, of_all(|one| &one.au_sustained_percent, percent));
    }
    let read = all.iter().map(|one| {
        let cell = one.bytes_per_second.cell(megabytes);
        if one.is_estimated { estimated(cell) } else { cell }
    });
    table.add(read_heading(&firsts), Kind::Rate, read);
    table.add("Samples/s", Kind::Rate, of_all(|one| &one.samples_per_second, significant));
    table
}

/// Settings of runs; an experiment has those of its first run.
fn add_settings(table: &mut Table, report: &Report, runs: &[&Run]) {
    if report.has_several_sources() {
        let path = |run: &&Run| report.sources.get(run.source).map_or("", |one| one.path.as_str());
        table.add("Source", Kind::Text, runs.iter().map(path));
    }
    table.add("Workload", Kind::Text, runs.iter().map(|run| &run.workload));
    table.add("Parameter", Kind::Text, runs.iter().map(|run| &run.parameter));
    table.add("Value", Kind::Text, runs.iter().map(|run| Cell::level(&run.value)));
    table.add("Procs", Kind::Number, runs.iter().map(|run| run.accelerators.map(u64::from)));
    if is_varied_otherwise(report) {
        table.add("Factors", Kind::Text, runs.iter().map(|run| other_levels(run)));
    }
}

/// The heading explains the mark of what is estimated.
fn read_heading(runs: &[&Run]) -> &'static str {
    let is_marked = runs.iter().any(|run| run.throughput.is_estimated);
    if is_marked { "Read (MB/s, ≈ estimated)" } else { "Read (MB/s)" }
}

/// A rate whose bytes were not counted is marked.
fn estimated(cell: Cell) -> Cell {
    let text = if cell.value.is_some() { format!("≈ {}", cell.text) } else { cell.text };
    Cell { text, ..cell }
}

/// Only where files said something else than what follows from their steps.
fn is_reported_otherwise(report: &Report) -> bool {
    let mut reported = report.runs.iter().filter(|run| run.au.reported_percent.is_some());
    reported.any(|run| percent(run.au.reported_percent) != percent(run.au.windowed_percent))
}

/// DLIO's files do not tell it.
fn has_sustained(report: &Report) -> bool {
    report.runs.iter().any(|run| run.au.sustained_percent.is_some())
}

/// Only where parameter and value do not say what sets experiments apart.
fn is_varied_otherwise(report: &Report) -> bool {
    let mut known: HashMap<_, &BTreeMap<String, String>> = HashMap::new();
    report.runs.iter().filter(|run| run.unused.is_none()).any(|run| {
        let told = (run.source, &run.workload, &run.parameter, &run.value, run.accelerators);
        *known.entry(told).or_insert(&run.factors) != &run.factors
    })
}

/// Levels of factors that have no column.
fn other_levels(run: &Run) -> String {
    let has_column = |name: &str| ["processes", "source", &run.parameter].contains(&name);
    let rest = run.factors.iter().filter(|(name, _)| !has_column(name));
    rest.map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ")
}
