//! One factor at a time: the baseline, and each other level of each factor with all else as in the baseline. Cheap, and blind to
//! interactions (Jain, "The Art of Computer Systems Performance Analysis", chapter 16).

use super::{DesignKind, DesignRequest, Laid, Point};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "one_factor_at_a_time",
    summary: "The baseline, and each other level of each factor alone.",
    estimates: "the effect of each factor beside the baseline; no interactions",
    options: &[],
    lay,
};

fn lay(asked: &DesignRequest) -> Result<Laid, Problem> {
    let baseline: Point = vec![None; asked.factors.len()];
    let mut points = vec![baseline.clone()];
    for (i, factor) in asked.factors.iter().enumerate() {
        for level in factor.levels.iter().filter(|level| !factor.is_baseline(level)) {
            let mut point = baseline.clone();
            point[i] = Some(level.clone());
            points.push(point);
        }
    }
    super::bounded(Some(points.len() as u64))?;
    Ok(Laid { points, ..Laid::default() })
}
