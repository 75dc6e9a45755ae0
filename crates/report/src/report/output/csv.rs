//! The study's own CSV: a line a run, with the utilisation and rate that DLIO reports, recomputed.

use super::Output;
use super::comma::{lines, number};
use crate::report::Report;

pub(super) static OUTPUT: Output = Output {
    name: "csv",
    extension: "csv",
    summary: "The columns of the study: Model, Parameter, Value, Procs, AU (%), I/O (MB/s); DLIO's definitions, so its MB are MiB. Then doubts, and why a run is not used.",
    write,
};

fn write(report: &Report) -> String {
    let heading =
        ["Model", "Parameter", "Value", "Procs", "AU (%)", "I/O (MB/s)", "doubts", "not used"];
    let row = |run: &crate::report::Run| {
        [
            run.workload.clone(),
            run.parameter.clone(),
            run.value.clone(),
            run.accelerators.map_or(String::new(), |count| count.to_string()),
            number(run.au.windowed_percent),
            number(run.throughput.windowed_mib_per_second),
            run.doubts.join(" "),
            run.unused.clone().unwrap_or_default(),
        ]
    };
    lines(&heading, report.runs.iter().map(row))
}
