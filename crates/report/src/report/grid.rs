//! The two tables of a report, of experiments and of runs, whatever file they come to stand in: which columns, and what a cell says.

use super::number::{UNKNOWN, megabytes, percent, significant, with_interval};
use super::{Experiment, Middle, Report, Run};
use std::collections::{BTreeMap, HashMap};

/// A column of a table of `T`.
pub(super) struct Column<T> {
    /// Its heading, with the unit.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether this report needs it.
    pub(super) is_wanted: fn(&Report) -> bool,
    pub(super) of: fn(&Report, &T) -> Cell,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    /// Of 100.
    Utilisation,
    /// Of the highest of its column.
    Rate,
}

/// What stands in a place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// What it is sorted and shaded by.
    pub(super) value: Option<f64>,
}

fn text(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), value: None }
}

fn number(value: Option<f64>, text: impl Fn(Option<f64>) -> String) -> Cell {
    Cell { text: text(value), value }
}

fn count(value: Option<u64>) -> Cell {
    let written = value.map_or(UNKNOWN.into(), |count| count.to_string());
    Cell { text: written, value: value.map(|count| count as f64) }
}

/// A value of a factor: a number where it is one, so that 2 sorts before 10.
fn level(value: &str) -> Cell {
    Cell { text: value.into(), value: value.parse().ok().filter(|value: &f64| value.is_finite()) }
}

fn middle(middle: &Middle, text: impl Fn(Option<f64>) -> String) -> Cell {
    Cell { text: with_interval(middle, text), value: middle.estimate }
}

fn source(report: &Report, index: usize) -> Cell {
    text(report.sources.get(index).map_or("", |source| source.path.as_str()))
}

/// A rate whose bytes were not counted is marked.
fn estimated(is_estimated: bool, cell: Cell) -> Cell {
    match is_estimated && cell.value.is_some() {
        true => Cell { text: format!("≈ {}", cell.text), ..cell },
        false => cell,
    }
}

fn read_by(run: &Run) -> Cell {
    let rates = &run.throughput;
    estimated(rates.is_estimated, number(rates.bytes_per_second, megabytes))
}

fn read_by_all(report: &Report, of: &Experiment) -> Cell {
    let is_estimated = of.runs.iter().any(|&run| report.runs[run].throughput.is_estimated);
    estimated(is_estimated, middle(&of.bytes_per_second, megabytes))
}

fn always(_: &Report) -> bool {
    true
}

/// Only where files said something else than what follows from their steps.
fn is_reported_otherwise(report: &Report) -> bool {
    report.runs.iter().any(|run| {
        let of = |value: Option<f64>| percent(value);
        run.au.reported_percent.is_some()
            && of(run.au.reported_percent) != of(run.au.windowed_percent)
    })
}

/// DLIO's files do not tell it.
fn has_sustained(report: &Report) -> bool {
    report.runs.iter().any(|run| run.au.sustained_percent.is_some())
}

fn has_unused(report: &Report) -> bool {
    report.runs.iter().any(|run| run.unused.is_some())
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
fn levels(factors: &BTreeMap<String, String>, parameter: &str) -> Cell {
    let has_column = |name: &str| name == "processes" || name == "source" || name == parameter;
    let rest = factors.iter().filter(|(name, _)| !has_column(name));
    text(rest.map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", "))
}

macro_rules! column {
    ($name:literal, $kind:ident, $of:expr) => {
        column!($name, $kind, $of, always)
    };
    ($name:literal, $kind:ident, $of:expr, $is_wanted:expr) => {
        Column { name: $name, kind: Kind::$kind, is_wanted: $is_wanted, of: $of }
    };
}

/// Of the table of runs.
pub(super) static OF_RUNS: &[Column<Run>] = &[
    column!("Not used", Text, |_, run| text(run.unused.as_deref().unwrap_or_default()), has_unused),
    column!("Source", Text, |report, run| source(report, run.source), Report::has_several_sources),
    column!("Workload", Text, |_, run| text(&run.workload)),
    column!("Parameter", Text, |_, run| text(&run.parameter)),
    column!("Value", Text, |_, run| level(&run.value)),
    column!("Procs", Number, |_, run| count(run.accelerators.map(u64::from))),
    column!("Factors", Text, |_, run| levels(&run.factors, &run.parameter), is_varied_otherwise),
    column!("AU all steps (%)", Utilisation, |_, run| number(run.au.all_steps_percent, percent)),
    column!("AU windowed (%)", Utilisation, |_, run| number(run.au.windowed_percent, percent)),
    column!(
        "AU reported (%)",
        Utilisation,
        |_, run| number(run.au.reported_percent, percent),
        is_reported_otherwise
    ),
    column!(
        "AU sustained (%)",
        Utilisation,
        |_, run| number(run.au.sustained_percent, percent),
        has_sustained
    ),
    column!("Read (MB/s)", Rate, |_, run| read_by(run)),
    column!("Samples/s", Rate, |_, run| number(run.throughput.samples_per_second, significant)),
    column!("Epochs", Number, |_, run| count(Some(run.epochs))),
];

/// Of the table of experiments.
pub(super) static OF_EXPERIMENTS: &[Column<Experiment>] = &[
    column!("Source", Text, |report, of| source(report, of.source), Report::has_several_sources),
    column!("Workload", Text, |_, of| text(&of.workload)),
    column!("Parameter", Text, |_, of| text(&of.parameter)),
    column!("Value", Text, |_, of| level(&of.value)),
    column!("Procs", Number, |_, of| count(of.accelerators.map(u64::from))),
    column!("Factors", Text, |_, of| levels(&of.factors, &of.parameter), is_varied_otherwise),
    column!("n", Number, |_, of| count(Some(of.runs.len() as u64))),
    column!("AU all steps (%)", Utilisation, |_, of| middle(&of.au_all_steps_percent, percent)),
    column!("AU windowed (%)", Utilisation, |_, of| middle(&of.au_windowed_percent, percent)),
    column!(
        "AU sustained (%)",
        Utilisation,
        |_, of| middle(&of.au_sustained_percent, percent),
        has_sustained
    ),
    column!("Read (MB/s)", Rate, read_by_all),
    column!("Samples/s", Rate, |_, of| middle(&of.samples_per_second, significant)),
];

/// Those that this report needs.
pub(super) fn wanted<T>(
    report: &Report,
    columns: &'static [Column<T>],
) -> impl Iterator<Item = &'static Column<T>> {
    columns.iter().filter(|column| (column.is_wanted)(report))
}

/// Headings, and the text of each row.
pub(super) fn texts<T>(
    report: &Report,
    columns: &'static [Column<T>],
    rows: &[T],
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let columns: Vec<&Column<T>> = wanted(report, columns).collect();
    let row = |of: &T| columns.iter().map(|column| (column.of)(report, of).text).collect();
    (columns.iter().map(|column| column.name).collect(), rows.iter().map(row).collect())
}
