//! Every number of every run, a line each, for whoever goes on with pandas or R.

use super::Output;
use super::comma::{lines, number};
use crate::report::{Report, Run};

pub(super) static OUTPUT: Output = Output {
    name: "tidy",
    extension: "csv",
    summary: "A line for each run and metric, with its unit and the run's replicate, host and doubts.",
    write,
};

const HEADING: [&str; 16] = [
    "source",
    "path",
    "started",
    "workload",
    "parameter",
    "value",
    "replicate",
    "accelerators",
    "host",
    "hosts",
    "epochs",
    "unused",
    "doubts",
    "metric",
    "unit",
    "number",
];

fn write(report: &Report) -> String {
    lines(&HEADING, report.runs.iter().flat_map(|run| rows(report, run)))
}

fn rows(report: &Report, run: &Run) -> Vec<Vec<String>> {
    let source = report.sources.get(run.source).map_or("", |source| source.path.as_str());
    fn text(value: Option<impl ToString>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
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
    .map(String::from);
    let reported = ("au_reported", "percent", run.au.reported_percent);
    let others =
        run.metrics.iter().map(|metric| (metric.name.as_str(), metric.unit.as_str(), metric.value));
    let row = |(name, unit, value): (&str, &str, Option<f64>)| {
        let end = [name.to_string(), unit.to_string(), number(value)];
        start.iter().cloned().chain(end).collect()
    };
    std::iter::once(reported).chain(others).map(row).collect()
}
