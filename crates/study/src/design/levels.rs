//! Factors at two levels, the low one first, as sign tables have them: `-` and `+`.

use super::Point;
use crate::factor::StudyFactor;
use feedrate_spec::problem::Problem;

/// Refuse factors that have not two levels.
pub(super) fn two_each(factors: &[StudyFactor], design: &str) -> Result<(), Problem> {
    let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) else {
        return Ok(());
    };
    let message = format!("has {} levels, `{design}` takes two: low and high", factor.levels.len());
    Err(Problem::error(format!("factors.{}", factor.name), message)
        .hint("leave two levels, or take `full_factorial`"))
}

/// The point with each factor high or low.
pub(super) fn point(factors: &[StudyFactor], is_high: impl Fn(usize) -> bool) -> Point {
    let factors = factors.iter().enumerate();
    factors.map(|(i, factor)| Some(factor.levels[usize::from(is_high(i))].clone())).collect()
}
