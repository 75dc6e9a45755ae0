//! Throughput against processes.

use super::{Make, Needs, Plot, against};
use feedrate_spec::catalog::Member;

pub(super) static PLOT: Plot = Plot {
    member: Member {
        name: "throughput_processes",
        summary: "Throughput against processes: a line for each workload, or a panel for each factor with a line for each level",
        abilities: &[],
    },
    needs: Needs::Summaries,
    make: Make::Response("delivered_bytes_per_second", against::figure),
};
