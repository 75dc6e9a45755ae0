//! Tables as CSV, in quotes where they need them: a line a run, with the utilisation and rate that DLIO reports, recomputed; or every number of every run.

use super::ReportOutput;
use crate::report::{FigureUse, Report, ReportedRun};
use crate::table::{ColumnKind, ReportTable, TableCell};
use feedrate_analysis::design::PROCESSES;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_WINDOWED, NOMINAL_WHOLE, NOMINAL_WINDOWED, Provenance, Value,
};
use feedrate_results::run::OtherNumber;
use feedrate_spec::units::MIB;
use std::collections::BTreeSet;

pub(super) static STUDY: ReportOutput = ReportOutput {
    name: "csv",
    extension: "csv",
    summary: "The columns of the study: Model, Parameter, Value, Procs, AU (%), I/O (MB/s), by DLIO's definitions with the steps counted right, so its MB are MiB; beside each what was reported and what all steps had. Then a column a factor, doubts, and why a run is not used.",
    figures: FigureUse::Nothing,
    write: |report| csv(&of_study(report, |name| !name.ends_with(" Std"))),
};

pub(super) static STUDY_WITH_DEVIATIONS: ReportOutput = ReportOutput {
    name: "csv-std",
    extension: "csv",
    summary: "The study's earlier columns, with AU Std and I/O Std: deviations over the epochs of a run, as DLIO has them.",
    figures: FigureUse::Nothing,
    write: |report| csv(&of_study(report, |_| true)),
};

pub(super) static TIDY: ReportOutput = ReportOutput {
    name: "tidy",
    extension: "csv",
    summary: "A line for each run and metric, with its unit, how it is known, and the run's replicate, host and doubts.",
    figures: FigureUse::Nothing,
    write: |report| csv(&tidy(report)),
};

type CellOf = fn(&ReportedRun) -> TableCell;

/// Columns whose names are wanted.
fn of_study(report: &Report, is_wanted: fn(&str) -> bool) -> ReportTable {
    let columns: [(&str, CellOf); 12] = [
        ("Model", |one| (&one.run.workload).into()),
        ("Parameter", |one| (&one.run.parameter).into()),
        ("Value", |one| (&one.run.value).into()),
        ("Procs", |one| text(one.run.accelerators).into()),
        ("AU reported (%)", |one| TableCell::number(one.run.reported_au_percent())),
        ("AU (%)", |one| TableCell::number(one.run.metric(&AU_WINDOWED))),
        ("AU all steps (%)", |one| TableCell::number(one.run.metric(&AU_ALL_STEPS))),
        ("AU Std", |one| TableCell::number(one.stdev(&AU_WINDOWED))),
        ("I/O reported (MB/s)", |one| TableCell::number(one.run.reported_mib_per_second())),
        ("I/O (MB/s)", |one| mib(one.run.metric(&NOMINAL_WINDOWED))),
        ("I/O all steps (MB/s)", |one| mib(one.run.metric(&NOMINAL_WHOLE))),
        ("I/O Std", |one| mib(one.stdev(&NOMINAL_WINDOWED))),
    ];
    let mut table = ReportTable::new("");
    for (name, cell) in columns.into_iter().filter(|(name, _)| is_wanted(name)) {
        table.add(name, ColumnKind::Text, report.runs.iter().map(cell));
    }
    let factors = report.runs.iter().flat_map(|one| one.factors.keys());
    let factors: BTreeSet<&String> = factors.filter(|name| *name != PROCESSES).collect();
    for factor in factors {
        let levels = report.runs.iter().map(|one| text(one.factors.get(factor)));
        table.add(factor, ColumnKind::Text, levels);
    }
    table.add("doubts", ColumnKind::Text, report.runs.iter().map(|one| one.doubts().join(" ")));
    table.add("not used", ColumnKind::Text, report.runs.iter().map(|one| text(one.unused())));
    table
}

fn mib(rate: Option<f64>) -> TableCell {
    TableCell::number(rate.map(|rate| rate / MIB))
}

fn tidy(report: &Report) -> ReportTable {
    let heading = "source path started workload parameter value replicate accelerators host hosts epochs unused doubts metric unit number provenance";
    let mut table = ReportTable::from_text("", heading.split(' '), []);
    for one in &report.runs {
        let run = &one.run;
        let source = report.sources.get(one.source).map_or("", |source| source.path.as_str());
        let start = [
            source.to_string(),
            run.path.display().to_string(),
            text(run.started.as_ref()),
            run.workload.clone(),
            run.parameter.clone(),
            run.value.clone(),
            text(run.replicate),
            text(run.accelerators),
            text(run.hostname.as_ref()),
            text(run.hosts),
            run.epochs.to_string(),
            text(one.unused()),
            one.doubts().join(" "),
        ]
        .map(TableCell::from);
        let (number, provenance) = (run.reported_au_percent(), Provenance::Reported);
        let value = number.map(|number| Value { number, provenance });
        let reported = OtherNumber { name: "au_reported", unit: "percent", value };
        table.rows.extend(std::iter::once(reported).chain(one.metrics()).map(|of| {
            let number = TableCell::number(of.value.map(|value| value.number));
            let provenance = of.value.map_or("", |value| value.provenance.name());
            let end = [of.name.into(), of.unit.into(), number, provenance.into()];
            start.iter().cloned().chain(end).collect()
        }));
    }
    table
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Text that spreadsheets would run is marked as text, as they have it.
fn no_formula(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text.into() }
}

fn csv(table: &ReportTable) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory fails only where rows differ in length, which they do not.
    let _ = writer.write_record(table.columns.iter().map(|column| no_formula(&column.name)));
    for row in &table.rows {
        let _ = writer.write_record(row.iter().map(|cell| no_formula(&cell.text)));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
