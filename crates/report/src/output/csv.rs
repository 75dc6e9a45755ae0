//! Tables as CSV, in quotes where they need them: a line a run, with the utilisation and rate that DLIO reports, recomputed; or every number of every run.

use super::Output;
use crate::report::{Metric, Report, Run};
use crate::table::{Cell, Kind, Table};
use feedrate_measure::metric::Provenance;

pub(super) static STUDY: Output = Output {
    name: "csv",
    extension: "csv",
    summary: "The columns of the study: Model, Parameter, Value, Procs, AU (%), I/O (MB/s); DLIO's definitions, so its MB are MiB. Then doubts, and why a run is not used.",
    write: |report| csv(&of_study(report, |name| !name.ends_with(" Std"))),
};

pub(super) static STUDY_WITH_DEVIATIONS: Output = Output {
    name: "csv-std",
    extension: "csv",
    summary: "The study's earlier columns, with AU Std and I/O Std: deviations over the epochs of a run, as DLIO has them.",
    write: |report| csv(&of_study(report, |_| true)),
};

pub(super) static TIDY: Output = Output {
    name: "tidy",
    extension: "csv",
    summary: "A line for each run and metric, with its unit, how it is known, and the run's replicate, host and doubts.",
    write: |report| csv(&tidy(report)),
};

/// A cell of a run's row.
type CellOf = fn(&Run) -> Cell;

/// Columns whose names are wanted.
fn of_study(report: &Report, is_wanted: fn(&str) -> bool) -> Table {
    let columns: [(&str, CellOf); 10] = [
        ("Model", |run| (&run.workload).into()),
        ("Parameter", |run| (&run.parameter).into()),
        ("Value", |run| (&run.value).into()),
        ("Procs", |run| text(run.accelerators).into()),
        ("AU (%)", |run| Cell::number(run.au.windowed_percent)),
        ("AU Std", |run| Cell::number(run.au.windowed_stdev_percent)),
        ("I/O (MB/s)", |run| Cell::number(run.throughput.windowed_mib_per_second)),
        ("I/O Std", |run| Cell::number(run.throughput.windowed_stdev_mib_per_second)),
        ("doubts", |run| run.doubts.join(" ").into()),
        ("not used", |run| text(run.unused.as_ref()).into()),
    ];
    let mut table = Table::new("");
    for (name, of) in columns.into_iter().filter(|(name, _)| is_wanted(name)) {
        table.add(name, Kind::Text, report.runs.iter().map(of));
    }
    table
}

fn tidy(report: &Report) -> Table {
    let heading = "source path started workload parameter value replicate accelerators host hosts epochs unused doubts metric unit number provenance";
    let mut table = Table::from_text("", heading.split(' '), []);
    for run in &report.runs {
        let source = report.sources.get(run.source).map_or("", |source| source.path.as_str());
        let start = [
            source,
            &run.path,
            &run.started,
            &run.workload,
            &run.parameter,
            &run.value,
            &text(run.replicate),
            &text(run.accelerators),
            &text(run.host.as_ref()),
            &text(run.hosts),
            &run.epochs.to_string(),
            &text(run.unused.as_ref()),
            &run.doubts.join(" "),
        ]
        .map(Cell::from);
        let reported = Metric {
            name: "au_reported".into(),
            unit: "percent".into(),
            value: run.au.reported_percent,
            provenance: run.au.reported_percent.map(|_| Provenance::Reported),
        };
        table.rows.extend(std::iter::once(&reported).chain(&run.metrics).map(|one| {
            let provenance = one.provenance.map_or("", Provenance::name);
            let number = Cell::number(one.value);
            let end = [(&one.name).into(), (&one.unit).into(), number, provenance.into()];
            start.iter().cloned().chain(end).collect()
        }));
    }
    table
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn csv(table: &Table) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory fails only where rows differ in length, which they do not.
    let _ = writer.write_record(table.columns.iter().map(|column| &column.name));
    for row in &table.rows {
        let _ = writer.write_record(row.iter().map(|cell| &cell.text));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
