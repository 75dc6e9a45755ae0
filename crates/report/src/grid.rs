//! The tables of a report: of experiments, of these by epoch and around checkpoints, and of runs: their columns, and what a cell says.

use crate::experiment::{ReportedExperiment, SaveMiddles, experiments};
use crate::middle::Middle;
use crate::number::{megabytes, percent, significant};
use crate::report::{Report, ReportedRun};
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::answer::passes;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, SAMPLES_WHOLE,
};
use feedrate_results::groups::Passes;
use feedrate_results::run::Submission;
use std::collections::{BTreeMap, HashMap};

/// All runs.
pub(super) fn table_of_runs(report: &Report) -> ReportTable {
    let mut table = ReportTable::new(
        "One row a run. Its number leads to its record, a doubt to what was seen. Runs that are not used are grey.",
    );
    let runs: Vec<&ReportedRun> = report.runs.iter().collect();
    if runs.iter().any(|one| one.unused().is_some()) {
        let why = runs.iter().map(|one| one.unused().unwrap_or_default());
        table.add("Not used", ColumnKind::Text, why);
    }
    add_settings(&mut table, report, &runs);
    let measured = |metric| runs.iter().map(move |one| one.run.metric(metric));
    add_au(&mut table, "AU all steps (%)", measured(&AU_ALL_STEPS));
    add_au(&mut table, "AU windowed (%)", measured(&AU_WINDOWED));
    // Only where files said something else than what follows from their steps.
    let reported = runs.iter().map(|one| one.run.reported_au_percent());
    let mut pairs = reported.clone().zip(measured(&AU_WINDOWED));
    if pairs.any(|(reported, own)| reported.is_some() && percent(reported) != percent(own)) {
        add_au(&mut table, "AU reported (%)", reported);
    }
    if has_sustained(report) {
        add_au(&mut table, "AU sustained (%)", measured(&AU_SUSTAINED));
    }
    let read = runs.iter().map(|one| {
        rate(TableCell::written(one.run.metric(&DELIVERED_WHOLE), megabytes), one.is_estimated())
    });
    table.add(read_heading(&runs), ColumnKind::Rate, read);
    let samples = measured(&SAMPLES_WHOLE).map(|rate| TableCell::written(rate, significant));
    table.add("Samples/s", ColumnKind::Rate, samples);
    table.add("Epochs", ColumnKind::Number, runs.iter().map(|one| Some(one.run.epochs)));
    table
}

/// Epochs that have columns of their own, at most: the first half and the last.
const EPOCHS_MAX: usize = 8;

/// Utilisation and throughput of all experiments by epoch, and around checkpoints; none where no run has two epochs, or a checkpoint.
pub(super) fn tables_over_time(report: &Report) -> Vec<ReportTable> {
    let all = experiments(report);
    let epochs = all.iter().map(|one| one.epochs.len()).max().unwrap_or(0);
    let shown = (0..epochs).filter(|epoch| {
        epochs <= EPOCHS_MAX || *epoch < EPOCHS_MAX / 2 || epochs - EPOCHS_MAX / 2 <= *epoch
    });
    let shown: Vec<usize> = shown.collect();
    let mut tables = Vec::new();
    if 1 < epochs {
        tables.push(by_epoch(
            report,
            &all,
            &shown,
            "AU of all steps (%) by epoch",
            |one, epoch| one.epochs.get(epoch).map(|of| of.au_all_steps_percent.cell(percent)),
        ));
        tables.push(by_epoch(report, &all, &shown, "Samples/s by epoch", |one, epoch| {
            one.epochs.get(epoch).map(|of| of.samples_per_second.cell(significant))
        }));
    }
    let saving: Vec<&ReportedExperiment> = all.iter().filter(|one| one.saves.is_some()).collect();
    if !saving.is_empty() {
        tables.push(around_checkpoints(report, &saving));
    }
    tables
}

fn by_epoch(
    report: &Report,
    all: &[ReportedExperiment],
    shown: &[usize],
    title: &str,
    cell: impl Fn(&ReportedExperiment, usize) -> Option<TableCell>,
) -> ReportTable {
    let several: Vec<&ReportedExperiment> = all.iter().filter(|one| 1 < one.epochs.len()).collect();
    let mut table = table_of(report, &several, format!("{title}. {MEANS}"));
    for &epoch in shown {
        let cells = several.iter().map(|one| cell(one, epoch).unwrap_or_default());
        table.add(&format!("Epoch {}", epoch + 1), ColumnKind::Number, cells);
    }
    table
}

const MEANS: &str =
    "Means of n runs (of rates geometric), with 95 % intervals where there are several.";

fn around_checkpoints(report: &Report, saving: &[&ReportedExperiment]) -> ReportTable {
    let title = "Training before, during and after checkpoints that were written, in the steps that lie wholly there; a dash where none does.";
    let mut table = table_of(report, saving, format!("{title} {MEANS}"));
    let saves: Vec<SaveMiddles> = saving.iter().filter_map(|one| one.saves).collect();
    let counts = saves.iter().map(|of| Some(of.count as u64));
    table.add("Checkpoints", ColumnKind::Number, counts);
    let mut add = |name: &str, text: fn(Option<f64>) -> String, of: fn(&SaveMiddles) -> Middle| {
        let cells = saves.iter().map(|one| of(one).cell(text));
        table.add(name, ColumnKind::Number, cells);
    };
    add("Duration (s)", significant, |of| of.duration_s);
    add("AU before (%)", percent, |of| of.before.au_percent);
    add("AU during (%)", percent, |of| of.during.au_percent);
    add("AU after (%)", percent, |of| of.after.au_percent);
    add("Samples/s before", significant, |of| of.before.samples_per_second);
    add("Samples/s during", significant, |of| of.during.samples_per_second);
    add("Samples/s after", significant, |of| of.after.samples_per_second);
    table
}

fn add_au(table: &mut ReportTable, name: &str, values: impl Iterator<Item = Option<f64>>) {
    table.add(
        name,
        ColumnKind::Utilisation,
        values.map(|value| TableCell::written(value, percent)),
    );
}

/// Settings and number of runs of experiments.
fn table_of(report: &Report, of: &[&ReportedExperiment], title: String) -> ReportTable {
    let mut table = ReportTable::new(title);
    let firsts: Vec<&ReportedRun> = of.iter().map(|one| &report.runs[one.runs[0]]).collect();
    add_settings(&mut table, report, &firsts);
    table.add("n", ColumnKind::Number, of.iter().map(|one| Some(one.runs.len() as u64)));
    table
}

/// All experiments.
pub(super) fn table_of_experiments(report: &Report) -> ReportTable {
    let all = experiments(report);
    let mut table = table_of(report, &all.iter().collect::<Vec<_>>(), MEANS.into());
    let kind = ColumnKind::Utilisation;
    let all_steps = all.iter().map(|one| one.au_all_steps_percent.cell(percent));
    table.add("AU all steps (%)", kind, all_steps);
    let windowed = all.iter().map(|one| one.au_windowed_percent.cell(percent));
    table.add("AU windowed (%)", kind, windowed);
    let bar = |one: &ReportedExperiment| report.runs[one.runs[0]].run.bar_percent;
    if all.iter().any(|one| bar(one).is_some()) {
        let bars = all.iter().map(|one| TableCell::number(bar(one)));
        table.add("Bar (%)", ColumnKind::Number, bars);
        let runs = |one: &ReportedExperiment| {
            let runs = one.runs.iter().map(|&run| &report.runs[run].run);
            passes(Passes::over_all_steps(runs))
        };
        table.add("Reach it, all steps", ColumnKind::Text, all.iter().map(runs));
    }
    if has_sustained(report) {
        let sustained = all.iter().map(|one| one.au_sustained_percent.cell(percent));
        table.add("AU sustained (%)", kind, sustained);
    }
    let read = all.iter().map(|one| rate(one.bytes_per_second.cell(megabytes), one.is_estimated));
    let firsts: Vec<&ReportedRun> = all.iter().map(|one| &report.runs[one.runs[0]]).collect();
    table.add(read_heading(&firsts), ColumnKind::Rate, read);
    let samples = all.iter().map(|one| one.samples_per_second.cell(significant));
    table.add("Samples/s", ColumnKind::Rate, samples);
    table
}

/// Settings of runs; an experiment has those of its first run.
fn add_settings(table: &mut ReportTable, report: &Report, runs: &[&ReportedRun]) {
    let text = ColumnKind::Text;
    if report.has_several_sources() {
        let sources = runs.iter().map(|one| report.sources.get(one.source));
        let paths = sources.map(|source| source.map_or("", |source| source.path.as_str()));
        table.add("Source", text, paths);
    }
    if report.runs.iter().any(|one| one.run.submission.is_some()) {
        let systems = runs.iter().map(|one| one.run.submission.as_ref());
        let systems = systems.map(|of| of.map_or(String::new(), Submission::to_string));
        table.add("System", text, systems);
    }
    table.add("Workload", text, runs.iter().map(|one| &one.run.workload));
    table.add("Parameter", text, runs.iter().map(|one| &one.run.parameter));
    table.add("Value", text, runs.iter().map(|one| TableCell::level(&one.run.value)));
    let processes = runs.iter().map(|one| one.run.accelerators.map(u64::from));
    table.add("Procs", ColumnKind::Number, processes);
    if is_varied_otherwise(report) {
        table.add("Factors", text, runs.iter().map(|one| other_levels(one)));
    }
}

/// The heading explains the mark of what is estimated.
fn read_heading(runs: &[&ReportedRun]) -> &'static str {
    let is_marked = runs.iter().any(|one| one.is_estimated());
    if is_marked { "Read (MB/s, ≈ estimated)" } else { "Read (MB/s)" }
}

/// A rate whose bytes were not counted is marked.
fn rate(cell: TableCell, is_estimated: bool) -> TableCell {
    match cell.value {
        Some(_) if is_estimated => TableCell { text: format!("≈ {}", cell.text), ..cell },
        _ => cell,
    }
}

/// DLIO's files do not tell it.
fn has_sustained(report: &Report) -> bool {
    report.runs.iter().any(|one| one.run.metric(&AU_SUSTAINED).is_some())
}

/// Only where parameter and value do not say what sets experiments apart.
fn is_varied_otherwise(report: &Report) -> bool {
    let mut known: HashMap<_, &BTreeMap<String, String>> = HashMap::new();
    report.runs.iter().filter(|one| one.unused().is_none()).any(|one| {
        let run = &one.run;
        let told = (one.source, &run.workload, &run.parameter, &run.value, run.accelerators);
        *known.entry(told).or_insert(&one.factors) != &one.factors
    })
}

/// Levels of factors that have no column.
fn other_levels(one: &ReportedRun) -> String {
    let columns = ["processes", "source", &one.run.parameter];
    let rest = one.factors.iter().filter(|(name, _)| !columns.contains(&name.as_str()));
    rest.map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ")
}
