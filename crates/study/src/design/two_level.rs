//! Two-level designs 2^k: all combinations of two levels, in the standard (Yates) order, in which the first factor changes fastest
//! (Jain, chapter 17; Montgomery, "Design and Analysis of Experiments", chapter 6). With r replicates, a design has 2^k·r runs.

use super::{DesignKind, DesignPoints, DesignRequest, levels};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "two_level",
    summary: "2^k: every combination of factors at two levels; with r replicates, 2^k·r.",
    estimates: "all effects; the report tests interactions of two factors; with replicates, their errors",
    options: &[],
    create_points,
};

fn create_points(request: &DesignRequest) -> Result<DesignPoints, Problem> {
    levels::require_two(request.factors, DESIGN.name)?;
    let count = 1_u64.checked_shl(request.factors.len() as u32);
    let runs = 0..super::checked_count(count)?;
    let points = runs.map(|run| levels::point(request.factors, |i| run >> i & 1 == 1));
    Ok(DesignPoints { points: points.collect(), ..DesignPoints::default() })
}
