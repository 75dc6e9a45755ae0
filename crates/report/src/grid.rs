//! The tables of a report: of experiments, of these by epoch and around checkpoints, and of runs: their columns, and what a cell says.

use crate::experiment::{EpochMiddles, ReportedExperiment, SaveMiddles, experiments};
use crate::number::{UNKNOWN, level, megabytes, percent, significant};
use crate::report::{Report, ReportedRun};
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::answer::passes;
use feedrate_analysis::design::{PROCESSES, SOURCE};
use feedrate_analysis::estimate::Middle;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, SAMPLES_WHOLE,
};
use feedrate_results::groups::Passes;
use feedrate_results::run::Submission;
use std::collections::{BTreeSet, HashMap};

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
    let several: Vec<&ReportedExperiment> = all.iter().filter(|one| 1 < one.epochs.len()).collect();
    let mut tables = Vec::new();
    if !several.is_empty() {
        let (title, kind) = ("AU of all steps (%) by epoch", ColumnKind::Utilisation);
        tables.push(by_epoch(report, &several, title, kind, |of| {
            cell(&of.au_all_steps_percent, percent)
        }));
        let (title, kind) = ("Samples/s by epoch", ColumnKind::Rate);
        tables.push(by_epoch(report, &several, title, kind, |of| {
            cell(&of.samples_per_second, significant)
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
    several: &[&ReportedExperiment],
    title: &str,
    kind: ColumnKind,
    cell: fn(&EpochMiddles) -> TableCell,
) -> ReportTable {
    let mut table = table_of(report, several, format!("{title}. {MEANS}"));
    let epochs = several.iter().map(|one| one.epochs.len()).max().unwrap_or(0);
    let (first, last) = (EPOCHS_MAX / 2, epochs.saturating_sub(EPOCHS_MAX / 2));
    for epoch in 0..epochs {
        if epochs <= EPOCHS_MAX || epoch < first || last <= epoch {
            let cells = several.iter().map(|one| one.epochs.get(epoch));
            let cells = cells.map(|of| of.map_or_else(TableCell::default, cell));
            table.add(&format!("Epoch {}", epoch + 1), kind, cells);
        }
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
        let cells = saves.iter().map(|one| cell(&of(one), text));
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
    let all_steps = all.iter().map(|one| cell(&one.au_all_steps_percent, percent));
    table.add("AU all steps (%)", kind, all_steps);
    let windowed = all.iter().map(|one| cell(&one.au_windowed_percent, percent));
    table.add("AU windowed (%)", kind, windowed);
    let bar = |one: &ReportedExperiment| report.runs[one.runs[0]].run.bar_percent;
    if all.iter().any(|one| bar(one).is_some()) {
        let bars: Vec<TableCell> = all.iter().map(|one| TableCell::number(bar(one))).collect();
        if bars.iter().all(|one| *one == bars[0]) {
            table.title += &format!(" The bar is {} % AU.", bars[0].text);
        } else {
            table.add("Bar (%)", ColumnKind::Number, bars);
        }
        let runs = |one: &ReportedExperiment| {
            let runs = one.runs.iter().map(|&run| &report.runs[run].run);
            passes(Passes::over_all_steps(runs))
        };
        table.add("Reach it, all steps", ColumnKind::Text, all.iter().map(runs));
    }
    if has_sustained(report) {
        let sustained = all.iter().map(|one| cell(&one.au_sustained_percent, percent));
        table.add("AU sustained (%)", kind, sustained);
    }
    let read = all.iter().map(|one| rate(cell(&one.bytes_per_second, megabytes), one.is_estimated));
    let firsts: Vec<&ReportedRun> = all.iter().map(|one| &report.runs[one.runs[0]]).collect();
    table.add(read_heading(&firsts), ColumnKind::Rate, read);
    let samples = all.iter().map(|one| cell(&one.samples_per_second, significant));
    table.add("Samples/s", ColumnKind::Rate, samples);
    table
}

/// Settings that these runs differ in, a column each; an experiment has those of its first run. What is the same of all stands above the table.
fn add_settings(table: &mut ReportTable, report: &Report, runs: &[&ReportedRun]) {
    let mut same = Vec::new();
    for (name, kind, cells) in settings(report, runs) {
        let texts: BTreeSet<&str> = cells.iter().map(|cell| cell.text.as_str()).collect();
        match texts.into_iter().collect::<Vec<_>>()[..] {
            [] | [""] | [UNKNOWN] => {}
            [one] => same.push(format!("{} {one}", name.to_lowercase())),
            _ => table.add(&name, kind, cells),
        }
    }
    if !same.is_empty() {
        table.title += &format!(" All of {}.", same.join(", "));
    }
}

/// Name, kind and cells.
type Column = (String, ColumnKind, Vec<TableCell>);

fn settings(report: &Report, runs: &[&ReportedRun]) -> Vec<Column> {
    let text = |name: &str, of: &dyn Fn(&ReportedRun) -> TableCell| -> Column {
        (name.into(), ColumnKind::Text, runs.iter().map(|one| of(one)).collect())
    };
    let mut columns = vec![
        text("Source", &|one| match report.sources.get(one.source) {
            Some(source) if report.has_several_sources() => (&source.path).into(),
            _ => TableCell::default(),
        }),
        text("System", &|one| {
            one.run.submission.as_ref().map_or(String::new(), Submission::to_string).into()
        }),
        text("Workload", &|one| (&one.run.workload).into()),
        text("Processes", &|one| one.run.accelerators.map(u64::from).into()),
    ];
    columns[3].1 = ColumnKind::Number;
    let names: BTreeSet<&str> =
        runs.iter().flat_map(|one| one.factors.keys()).map(String::as_str).collect();
    for name in names.into_iter().filter(|name| ![PROCESSES, SOURCE].contains(name)) {
        let cell = |one: &ReportedRun| {
            let level = one.factors.get(name).map(|of| (level(name, of), TableCell::level(of)));
            level.map_or_else(TableCell::default, |(text, cell)| TableCell { text, ..cell })
        };
        let (name, _, cells) = text(name, &cell);
        let is_number = cells.iter().all(|cell| cell.value.is_some() || cell.text.is_empty());
        let kind = if is_number { ColumnKind::Number } else { ColumnKind::Text };
        columns.push((name, kind, cells));
    }
    if !is_told_by(&columns, runs) {
        columns.push(text("Parameter", &|one| (&one.run.parameter).into()));
        columns.push(text("Value", &|one| TableCell::level(&one.run.value)));
    }
    columns
}

/// Whether runs of another parameter or value differ in some column too.
fn is_told_by(columns: &[Column], runs: &[&ReportedRun]) -> bool {
    let mut known: HashMap<Vec<&str>, [&str; 2]> = HashMap::new();
    runs.iter().enumerate().filter(|(_, one)| one.unused().is_none()).all(|(at, one)| {
        let told = columns.iter().map(|column| column.2[at].text.as_str()).collect();
        let varied = [one.run.parameter.as_str(), one.run.value.as_str()];
        *known.entry(told).or_insert(varied) == varied
    })
}

fn cell(of: &Middle, text: fn(Option<f64>) -> String) -> TableCell {
    TableCell::middle(of.estimate, of.interval, |value| text(Some(value)))
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
