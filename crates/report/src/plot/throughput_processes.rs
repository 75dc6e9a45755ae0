//! Throughput against processes.

use super::data::Data;
use super::{Missing, Plot, against};
use crate::draw::figure::Figure;
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct ThroughputProcesses;

static MEMBER: Member = Member {
    name: "throughput_processes",
    summary: "Throughput against processes: a line for each workload, or a panel for each factor with a line for each level",
    abilities: &[],
};

impl Plot for ThroughputProcesses {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn response(&self) -> Option<&'static str> {
        Some("delivered_bytes_per_second")
    }

    fn figure(&self, data: &Data, response: Option<&'static Response>) -> Result<Figure, Missing> {
        against::figure(&data.runs, response.ok_or_else(Missing::runs)?)
    }
}
