//! Checks and combines factors at two levels. The first level is the low one, `-` in sign tables; the second is the high one, `+`.

use super::Point;
use crate::factor::StudyFactor;
use feedrate_spec::problem::Problem;

/// Refuses factors that do not have exactly two levels.
pub(super) fn require_two(factors: &[StudyFactor], design: &str) -> Result<(), Problem> {
    let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) else {
        return Ok(());
    };
    let message = format!("has {} levels, `{design}` takes two: low and high", factor.levels.len());
    Err(Problem::error(format!("factors.{}", factor.name), message)
        .hint("give two levels, or use `full_factorial`"))
}

/// Returns the point with each factor at its high or low level.
pub(super) fn point(factors: &[StudyFactor], is_high: impl Fn(usize) -> bool) -> Point {
    let factors = factors.iter().enumerate();
    factors.map(|(i, factor)| Some(factor.levels[usize::from(is_high(i))].clone())).collect()
}
