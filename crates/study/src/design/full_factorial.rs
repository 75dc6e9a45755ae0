//! Full factorial designs: all combinations of all levels. The first factor changes fastest.

use super::{DesignKind, DesignPoints, DesignRequest, Point};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "full_factorial",
    summary: "Every combination of all levels.",
    estimates: "all effects; the report tests interactions of two factors",
    options: &[],
    create_points,
};

fn create_points(request: &DesignRequest) -> Result<DesignPoints, Problem> {
    let counts = request.factors.iter().map(|factor| factor.levels.len());
    let count =
        counts.clone().try_fold(1_u64, |product, levels| product.checked_mul(levels as u64));
    let mut points = Vec::new();
    for mut rest in 0..super::checked_count(count)? {
        let mut point = Point::new();
        for factor in request.factors {
            point.push(Some(factor.levels[rest % factor.levels.len()].clone()));
            rest /= factor.levels.len();
        }
        points.push(point);
    }
    Ok(DesignPoints { points, ..DesignPoints::default() })
}
