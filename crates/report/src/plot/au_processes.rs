//! AU against processes.

use super::{Make, Needs, Plot, against};
use feedrate_spec::catalog::Member;

pub(super) static PLOT: Plot = Plot {
    member: Member {
        name: "au_processes",
        summary: "AU against processes: a line for each workload, or a panel for each factor with a line for each level",
        abilities: &[],
    },
    needs: Needs::Summaries,
    make: Make::Response("au_all_steps_percent", against::figure),
};
