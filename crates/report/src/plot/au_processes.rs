//! AU against processes.

use super::data::Data;
use super::{Missing, Plot, against};
use crate::draw::figure::Figure;
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// See the row.
pub(super) struct AuProcesses;

static MEMBER: Member = Member {
    name: "au_processes",
    summary: "AU against processes: a line for each workload, or a panel for each factor with a line for each level",
    abilities: &[],
};

impl Plot for AuProcesses {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn response(&self) -> Option<&'static str> {
        Some("au_all_steps_percent")
    }

    fn figure(&self, data: &Data, response: Option<&'static Response>) -> Result<Figure, Missing> {
        against::figure(&data.runs, response.ok_or_else(Missing::runs)?)
    }
}
