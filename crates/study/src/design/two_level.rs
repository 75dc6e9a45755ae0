//! 2^k: every combination of two levels, in the standard (Yates) order: the first factor changes fastest
//! (Jain, chapter 17; Montgomery, "Design and Analysis of Experiments", chapter 6). With r replicates it is 2^k·r.

use super::{DesignKind, DesignRequest, Laid, levels};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "two_level",
    summary: "2^k: every combination of factors at two levels; with r replicates, 2^k·r.",
    estimates: "all effects and all interactions of two levels; with replicates, their errors",
    options: &[],
    lay,
};

fn lay(asked: &DesignRequest) -> Result<Laid, Problem> {
    levels::two_each(asked.factors, DESIGN.name)?;
    let all = 1_u64.checked_shl(asked.factors.len() as u32);
    let runs = 0..super::bounded(all)?;
    let points = runs.map(|run| levels::point(asked.factors, |i| run >> i & 1 == 1));
    Ok(Laid { points: points.collect(), ..Laid::default() })
}
