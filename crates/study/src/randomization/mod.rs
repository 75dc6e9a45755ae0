//! Around any design: centre points, replicates, blocks, order, sentinels. Points in, rows out; which points, is the design's.
//!
//! A block is a whole replicate by default (randomised complete blocks: Montgomery, chapter 4), so that a drift of the machine falls on all
//! points alike. A sentinel is the baseline, run again and again: what changes there is not the factors' doing.

#[cfg(test)]
mod tests;

use crate::design::{Point, RUNS_MAX};
use crate::factor::{self, StudyFactor};
use crate::random::Random;
use feedrate_results::row::{Row, RowKey};
use feedrate_spec::names;
use feedrate_spec::problem::{Problem, Problems};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The note of a run of the baseline that watches for drift.
pub const SENTINEL: &str = "sentinel";
/// The note of a run in the middle of all numeric factors.
pub const CENTRE_POINT: &str = "centre point";

/// How points become runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// Runs of each point.
    pub replicates: u32,
    /// Meaning of a block.
    pub blocks: Blocking,
    /// Order inside a block.
    pub order: RunOrder,
    /// Seed of the random order, and of designs with chance in them.
    pub seed: u64,
    /// Runs from one sentinel to the next; `None` for no sentinels.
    pub sentinel: Option<u32>,
    /// Runs in the middle, in each block, for each combination of levels that are no numbers.
    pub centre_points: u32,
}

names! {
    /// Meaning of a block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Blocking {
        /// A replicate.
        Replicates = "replicates",
        /// There is one block of all runs.
        None = "none",
    }
}

names! {
    /// The order of runs in a block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunOrder {
        /// Drawn by the seed.
        Random = "random",
        /// As the design has them.
        Standard = "standard",
    }
}

/// The rows of a design, in the order they are to be run.
///
/// # Errors
/// A factor has no middle, a level does not fit its column, or there are more than [`RUNS_MAX`] runs.
pub fn randomized(
    baseline: &Row,
    factors: &[StudyFactor],
    points: &[Point],
    how: &Arrangement,
) -> Result<Vec<Row>, Problems> {
    let centres = if how.centre_points == 0 { Vec::new() } else { centres(factors)? };
    let (blocks, times) = match how.blocks {
        Blocking::Replicates => (how.replicates, 1),
        Blocking::None => (1, how.replicates),
    };
    refuse_too_many(points.len(), centres.len(), how, blocks, times)?;
    let points = rows(baseline, factors, points)?;
    let mut centres = rows(baseline, factors, &centres)?;
    centres.iter_mut().for_each(|row| row.note = CENTRE_POINT.into());
    let mut random = Random::new(how.seed);
    let mut runs = Vec::new();
    for block in 1..=blocks {
        let mut own: Vec<Row> = Vec::new();
        (0..times).for_each(|_| own.extend_from_slice(&points));
        (0..how.centre_points).for_each(|_| own.extend_from_slice(&centres));
        if how.order == RunOrder::Random {
            random.shuffle(&mut own);
        }
        let own = with_sentinels(own, baseline, how.sentinel).into_iter();
        runs.extend(own.map(|row| Row { block: Some(block), ..row }));
    }
    number(&mut runs);
    Ok(runs)
}

/// All that a run of them could cost is said before any is made.
fn refuse_too_many(
    points: usize,
    centres: usize,
    how: &Arrangement,
    blocks: u32,
    times: u32,
) -> Result<(), Problem> {
    let of_points = points as u128 * u128::from(times);
    let own = of_points + centres as u128 * u128::from(how.centre_points);
    let sentinels = how.sentinel.map_or(0, |every| own.div_ceil(u128::from(every.max(1))) + 1);
    let all = (own + sentinels) * u128::from(blocks);
    if all <= RUNS_MAX as u128 {
        return Ok(());
    }
    Err(Problem::error("design", format!("{all} runs, the limit is {RUNS_MAX}"))
        .hint("take fewer replicates, centre points or levels"))
}

fn rows(baseline: &Row, factors: &[StudyFactor], points: &[Point]) -> Result<Vec<Row>, Problems> {
    let mut problems = Problems::default();
    let mut rows = Vec::with_capacity(points.len());
    for point in points {
        let mut row = baseline.clone();
        for (factor, level) in factors.iter().zip(point) {
            let Some(level) = level else { continue };
            let level = factor::written(&factor.key, level);
            if let Err(problem) = factor::set(&mut row, &factor.key, &level)
                && !problems.0.contains(&problem)
            {
                problems.push(problem);
            }
        }
        rows.push(row);
    }
    if problems.has_errors() { Err(problems) } else { Ok(rows) }
}

/// The middle of all numbers with each combination of what is no number (Montgomery, section 6.8).
fn centres(factors: &[StudyFactor]) -> Result<Vec<Point>, Problem> {
    if factors.iter().all(|factor| factor.centre().is_none()) {
        return Err(Problem::error("centre_points", "no factor has numbers as levels")
            .hint("leave centre points out, or give a factor two numbers"));
    }
    let mut centres: Vec<Point> = vec![Vec::new()];
    for factor in factors {
        let levels = match factor.centre() {
            Some(centre) if factor.levels.len() == 2 && factor.levels.contains(&centre) => {
                let message =
                    format!("there is nothing between `{}`", factor.levels.join("` and `"));
                return Err(Problem::error(format!("factors.{}", factor.name), message)
                    .hint("set the levels farther apart, or leave centre points out"));
            }
            Some(centre) => vec![centre],
            None => factor.levels.clone(),
        };
        let shorter = std::mem::take(&mut centres);
        for (point, level) in shorter.iter().flat_map(|p| levels.iter().map(move |l| (p, l))) {
            centres.push([point.as_slice(), &[Some(level.clone())]].concat());
        }
        if centres.len() > RUNS_MAX {
            return Err(Problem::error("centre_points", format!("more than {RUNS_MAX} of them"))
                .hint("leave them out: too many factors have levels that are no numbers"));
        }
    }
    Ok(centres)
}

/// One first, one last, and one after each `every` runs between.
fn with_sentinels(runs: Vec<Row>, baseline: &Row, every: Option<u32>) -> Vec<Row> {
    let Some(every) = every else { return runs };
    let sentinel = Row { note: SENTINEL.into(), ..baseline.clone() };
    let mut all = vec![sentinel.clone()];
    for some in runs.chunks(every as usize) {
        all.extend_from_slice(some);
        all.push(sentinel.clone());
    }
    all
}

/// Give each its order, and the next free number among runs that ask for the same: points first, then centre points, then sentinels.
fn number(runs: &mut [Row]) {
    let mut free: BTreeMap<RowKey, u32> = BTreeMap::new();
    let mut places: Vec<usize> = (0..runs.len()).collect();
    let later = [CENTRE_POINT, SENTINEL];
    places.sort_by_key(|&i| later.iter().position(|note| runs[i].note == *note));
    for i in places {
        // Blocks repeat each other: their runs are numbered on.
        let key = Row { block: None, ..runs[i].clone() }.key();
        let number = free.entry(key).or_insert(0);
        *number += 1;
        (runs[i].replicate, runs[i].order) = (Some(*number), Some(i as u32 + 1));
    }
}
