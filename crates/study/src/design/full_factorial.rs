//! Full factorial: every level of every factor with every other; the first factor changes fastest.

use super::{DesignKind, DesignRequest, Laid, Point};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "full_factorial",
    summary: "Every combination of all levels.",
    estimates: "all effects and all interactions",
    options: &[],
    lay,
};

fn lay(asked: &DesignRequest) -> Result<Laid, Problem> {
    let counts = asked.factors.iter().map(|factor| factor.levels.len());
    let all = counts.clone().try_fold(1_u64, |all, n| all.checked_mul(n as u64));
    let mut points = Vec::new();
    for mut rest in 0..super::bounded(all)? {
        let mut point = Point::new();
        for factor in asked.factors {
            point.push(Some(factor.levels[rest % factor.levels.len()].clone()));
            rest /= factor.levels.len();
        }
        points.push(point);
    }
    Ok(Laid { points, ..Laid::default() })
}
