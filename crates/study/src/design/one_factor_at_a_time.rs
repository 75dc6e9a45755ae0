//! One-factor-at-a-time designs: the baseline, and each other level of each factor with all other factors at the baseline. Needs few runs, but shows
//! no interactions (Jain, "The Art of Computer Systems Performance Analysis", chapter 16).

use super::{DesignKind, DesignPoints, DesignRequest, Point};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "one_factor_at_a_time",
    summary: "The baseline, and each other level of each factor alone.",
    estimates: "the effect of each factor relative to the baseline; no interactions",
    options: &[],
    create_points,
};

fn create_points(request: &DesignRequest) -> Result<DesignPoints, Problem> {
    let baseline: Point = vec![None; request.factors.len()];
    let mut points = vec![baseline.clone()];
    for (i, factor) in request.factors.iter().enumerate() {
        for level in factor.levels.iter().filter(|level| !factor.is_baseline(level)) {
            let mut point = baseline.clone();
            point[i] = Some(level.clone());
            points.push(point);
        }
    }
    super::checked_count(Some(points.len() as u64))?;
    Ok(DesignPoints { points, ..DesignPoints::default() })
}
