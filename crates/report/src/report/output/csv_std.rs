//! The study's CSV as it was first, with deviations. They are over the epochs of a run, as DLIO has them, and tell nothing of replicates.

use super::Output;
use super::comma::{lines, number};
use crate::report::Report;

pub(super) static OUTPUT: Output = Output {
    name: "csv-std",
    extension: "csv",
    summary: "The study's earlier columns, with AU Std and I/O Std: deviations over the epochs of a run, as DLIO has them.",
    write,
};

fn write(report: &Report) -> String {
    let heading = [
        "Model",
        "Parameter",
        "Value",
        "Procs",
        "AU (%)",
        "AU Std",
        "I/O (MB/s)",
        "I/O Std",
        "doubts",
        "not used",
    ];
    let row = |run: &crate::report::Run| {
        [
            run.workload.clone(),
            run.parameter.clone(),
            run.value.clone(),
            run.accelerators.map_or(String::new(), |count| count.to_string()),
            number(run.au.windowed_percent),
            number(run.au.windowed_stdev_percent),
            number(run.throughput.windowed_mib_per_second),
            number(run.throughput.windowed_stdev_mib_per_second),
            run.doubts.join(" "),
            run.unused.clone().unwrap_or_default(),
        ]
    };
    lines(&heading, report.runs.iter().map(row))
}
