//! Full factorial: every level of every factor with every other; the first factor changes fastest.

use super::{Asked, Design, Laid, Point};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: Design = Design {
    name: "full_factorial",
    summary: "Every combination of all levels.",
    estimates: "all effects and all interactions",
    options: &[],
    lay,
};

fn lay(asked: &Asked) -> Result<Laid, Problem> {
    let counts = asked.factors.iter().map(|factor| factor.levels.len());
    let all = counts.clone().try_fold(1_u64, |all, n| all.checked_mul(n as u64));
    let point = |number: usize| -> Point {
        let mut rest = number;
        let digit = |factor: &crate::factor::Factor| {
            let level = factor.levels[rest % factor.levels.len()].clone();
            rest /= factor.levels.len();
            Some(level)
        };
        asked.factors.iter().map(digit).collect()
    };
    let points = (0..super::bounded(all)?).map(point).collect();
    Ok(Laid { points, ..Laid::default() })
}
