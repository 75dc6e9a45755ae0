//! Writes CSV: a line for each run with recomputed utilisation and rate by DLIO's definitions, or a line for each number of each run.

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
    summary: "One line per run: Model, Parameter, Value, Procs, AU (%), I/O (MB/s) by DLIO's definitions with correctly counted steps (its MB are MiB), each also as reported and over all steps; then a column per factor, doubts, and the reason why a run is not used.",
    figures: FigureUse::Nothing,
    write: |report| write_csv(&study_table(report, |name| !name.ends_with(" Std"))),
};

pub(super) static STUDY_WITH_DEVIATIONS: ReportOutput = ReportOutput {
    name: "csv-std",
    extension: "csv",
    summary: "The columns of csv with AU Std and I/O Std: deviations over the epochs of a run, as DLIO computes them.",
    figures: FigureUse::Nothing,
    write: |report| write_csv(&study_table(report, |_| true)),
};

pub(super) static TIDY: ReportOutput = ReportOutput {
    name: "tidy",
    extension: "csv",
    summary: "One line per run and metric, with unit, provenance, and the run's replicate, host and doubts.",
    figures: FigureUse::Nothing,
    write: |report| write_csv(&tidy_table(report)),
};

type CellOf = fn(&ReportedRun) -> TableCell;

/// A table with a row for each run and the wanted columns.
fn study_table(report: &Report, is_wanted: fn(&str) -> bool) -> ReportTable {
    let columns: [(&str, CellOf); 12] = [
        ("Model", |run| (&run.run.workload).into()),
        ("Parameter", |run| (&run.run.parameter).into()),
        ("Value", |run| (&run.run.value).into()),
        ("Procs", |run| text(run.run.accelerators).into()),
        ("AU reported (%)", |run| TableCell::number(run.run.reported_au_percent())),
        ("AU (%)", |run| TableCell::number(run.run.metric(&AU_WINDOWED))),
        ("AU all steps (%)", |run| TableCell::number(run.run.metric(&AU_ALL_STEPS))),
        ("AU Std", |run| TableCell::number(run.stdev(&AU_WINDOWED))),
        ("I/O reported (MB/s)", |run| TableCell::number(run.run.reported_mib_per_second())),
        ("I/O (MB/s)", |run| mib(run.run.metric(&NOMINAL_WINDOWED))),
        ("I/O all steps (MiB/s)", |run| mib(run.run.metric(&NOMINAL_WHOLE))),
        ("I/O Std", |run| mib(run.stdev(&NOMINAL_WINDOWED))),
    ];
    let mut table = ReportTable::new("");
    for (name, cell) in columns.into_iter().filter(|(name, _)| is_wanted(name)) {
        table.add(name, ColumnKind::Text, report.runs.iter().map(cell));
    }
    let factors = report.runs.iter().flat_map(|run| run.factors.keys());
    let factors: BTreeSet<&String> = factors.filter(|name| *name != PROCESSES).collect();
    for factor in factors {
        let levels = report.runs.iter().map(|run| text(run.factors.get(factor)));
        table.add(factor, ColumnKind::Text, levels);
    }
    table.add("doubts", ColumnKind::Text, report.runs.iter().map(|run| run.doubts().join(" ")));
    table.add("not used", ColumnKind::Text, report.runs.iter().map(|run| text(run.unused())));
    table
}

/// Bytes per second as MiB per second.
fn mib(rate: Option<f64>) -> TableCell {
    TableCell::number(rate.map(|rate| rate / MIB))
}

/// A table with a row for each number of each run.
fn tidy_table(report: &Report) -> ReportTable {
    let heading = "source path started workload parameter value replicate accelerators host hosts epochs unused doubts metric unit number provenance";
    let mut table = ReportTable::from_text("", heading.split(' '), Vec::<Vec<String>>::new());
    for reported in &report.runs {
        let run = &reported.run;
        let source = report.sources.get(reported.source).map_or("", |source| source.path.as_str());
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
            text(reported.unused()),
            reported.doubts().join(" "),
        ]
        .map(TableCell::from);
        let provenance = Provenance::Reported;
        let value = run.reported_au_percent().map(|number| Value { number, provenance });
        let au = OtherNumber { name: "au_reported", unit: "percent", value };
        table.rows.extend(std::iter::once(au).chain(reported.metrics()).map(|metric| {
            let number = TableCell::number(metric.value.map(|value| value.number));
            let provenance = metric.value.map_or("", |value| value.provenance.name());
            let end = [metric.name.into(), metric.unit.into(), number, provenance.into()];
            start.iter().cloned().chain(end).collect()
        }));
    }
    table
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Prefixes text that a spreadsheet would evaluate with an apostrophe, which marks it as text.
fn escape_formula(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text.into() }
}

fn write_csv(table: &ReportTable) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory fails only if rows differ in length, and all rows have the same length.
    let _ = writer.write_record(table.columns.iter().map(|column| escape_formula(&column.name)));
    for row in &table.rows {
        let _ = writer.write_record(row.iter().map(|cell| escape_formula(&cell.text)));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
