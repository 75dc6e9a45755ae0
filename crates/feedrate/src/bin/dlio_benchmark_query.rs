//! `dlio_benchmark_query`: print one value of a workload.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedrate::dlio_benchmark_query()
}
