//! Turns the points of a design into rows: adds centre points, replicates, blocks, the order and sentinels. The design chooses the points.
//!
//! By default, a block is a complete replicate (randomised complete blocks: Montgomery, chapter 4). A drift of the machine then affects all points
//! equally. A sentinel is a repeated run of the baseline. Its factors never change, so a change of its result is drift.

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

/// Note of a sentinel: a run of the baseline that shows drift.
pub const SENTINEL: &str = "sentinel";
/// Note of a centre point: a run in the middle of all numeric factors.
pub const CENTRE_POINT: &str = "centre point";

/// Rules by which the points of a design become runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// Runs of each point.
    pub replicates: u32,
    /// Runs that form a block.
    pub blocks: Blocking,
    /// Order inside a block.
    pub order: RunOrder,
    /// Seed of the random order.
    pub seed: u64,
    /// Number of runs between sentinels; `None` for no sentinels.
    pub sentinel: Option<u32>,
    /// Centre points in each block, for each combination of levels that are not numbers.
    pub centre_points: u32,
}

names! {
    /// Runs that form a block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Blocking {
        /// Each block is a replicate.
        Replicates = "replicates",
        /// All runs form one block.
        None = "none",
    }
}

names! {
    /// The order of runs in a block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunOrder {
        /// Random, by the seed.
        Random = "random",
        /// The order of the design.
        Standard = "standard",
    }
}

/// Returns the rows of a design, in the order in which they run.
///
/// # Errors
/// Centre points are requested but a factor has none, a column does not accept a level, or there are more than [`RUNS_MAX`] runs.
pub fn create_rows(
    baseline: &Row,
    factors: &[StudyFactor],
    points: &[Point],
    arrangement: &Arrangement,
) -> Result<Vec<Row>, Problems> {
    let centres =
        if arrangement.centre_points == 0 { Vec::new() } else { find_centre_points(factors)? };
    let blocks = match arrangement.blocks {
        Blocking::Replicates => Blocks { count: arrangement.replicates, replicates_each: 1 },
        Blocking::None => Blocks { count: 1, replicates_each: arrangement.replicates },
    };
    refuse_too_many(points.len(), centres.len(), arrangement, blocks)?;
    let point_rows = level_rows(baseline, factors, points)?;
    let mut centre_rows = level_rows(baseline, factors, &centres)?;
    centre_rows.iter_mut().for_each(|row| row.note = CENTRE_POINT.into());
    let mut random = Random::new(arrangement.seed);
    let mut runs = Vec::new();
    for block in 1..=blocks.count {
        let mut block_rows: Vec<Row> = Vec::new();
        (0..blocks.replicates_each).for_each(|_| block_rows.extend_from_slice(&point_rows));
        (0..arrangement.centre_points).for_each(|_| block_rows.extend_from_slice(&centre_rows));
        if arrangement.order == RunOrder::Random {
            random.shuffle(&mut block_rows);
        }
        let with_sentinels = insert_sentinels(block_rows, baseline, arrangement.sentinel);
        runs.extend(with_sentinels.into_iter().map(|row| Row { block: Some(block), ..row }));
    }
    number_rows(&mut runs);
    Ok(runs)
}

/// Number of blocks, and number of replicates in each block.
#[derive(Clone, Copy)]
struct Blocks {
    count: u32,
    replicates_each: u32,
}

/// Refuses more than [`RUNS_MAX`] runs before any row is created.
fn refuse_too_many(
    points: usize,
    centres: usize,
    arrangement: &Arrangement,
    blocks: Blocks,
) -> Result<(), Problem> {
    let point_runs = points as u128 * u128::from(blocks.replicates_each);
    let block_runs = point_runs + centres as u128 * u128::from(arrangement.centre_points);
    let sentinels = arrangement
        .sentinel
        .map_or(0, |interval| block_runs.div_ceil(u128::from(interval.max(1))) + 1);
    let runs = (block_runs + sentinels) * u128::from(blocks.count);
    if runs <= RUNS_MAX as u128 {
        return Ok(());
    }
    Err(Problem::error("design", format!("{runs} runs, the limit is {RUNS_MAX}"))
        .hint("use fewer replicates, centre points or levels"))
}

/// Returns the row of each point: the baseline with the levels of the point.
fn level_rows(
    baseline: &Row,
    factors: &[StudyFactor],
    points: &[Point],
) -> Result<Vec<Row>, Problems> {
    let mut problems = Problems::default();
    let mut rows = Vec::with_capacity(points.len());
    for point in points {
        let mut row = baseline.clone();
        for (factor, level) in factors.iter().zip(point) {
            let Some(level) = level else { continue };
            let written = factor::format_level(&factor.key, level);
            if let Err(problem) = factor::set_level(&mut row, &factor.key, &written)
                && !problems.0.contains(&problem)
            {
                problems.push(problem);
            }
        }
        rows.push(row);
    }
    if problems.has_errors() { Err(problems) } else { Ok(rows) }
}

/// Returns the centre points: the middle of all numeric factors, with each combination of the other levels (Montgomery, section 6.8).
fn find_centre_points(factors: &[StudyFactor]) -> Result<Vec<Point>, Problem> {
    if factors.iter().all(|factor| factor.centre().is_none()) {
        return Err(Problem::error("centre_points", "no factor has numbers as levels")
            .hint("leave centre points out, or give a factor two numbers"));
    }
    let mut centres: Vec<Point> = vec![Vec::new()];
    for factor in factors {
        let levels = match factor.centre() {
            Some(centre) if factor.levels.len() == 2 && factor.levels.contains(&centre) => {
                let message =
                    format!("there is no level between `{}`", factor.levels.join("` and `"));
                return Err(Problem::error(format!("factors.{}", factor.name), message)
                    .hint("set the levels farther apart, or leave centre points out"));
            }
            Some(centre) => vec![centre],
            None => factor.levels.clone(),
        };
        let prefixes = std::mem::take(&mut centres);
        for point in &prefixes {
            for level in &levels {
                centres.push([point.as_slice(), &[Some(level.clone())]].concat());
            }
        }
        if centres.len() > RUNS_MAX {
            return Err(Problem::error("centre_points", format!("more than {RUNS_MAX} runs"))
                .hint(
                    "leave centre points out: too many factors have levels that are not numbers",
                ));
        }
    }
    Ok(centres)
}

/// Adds sentinels before the first run, after the last one, and after each `interval` runs.
fn insert_sentinels(runs: Vec<Row>, baseline: &Row, interval: Option<u32>) -> Vec<Row> {
    let Some(interval) = interval else { return runs };
    let sentinel = Row { note: SENTINEL.into(), ..baseline.clone() };
    let mut with_sentinels = vec![sentinel.clone()];
    for chunk in runs.chunks(interval as usize) {
        with_sentinels.extend_from_slice(chunk);
        with_sentinels.push(sentinel.clone());
    }
    with_sentinels
}

/// Sets the order of each run and its replicate: the next free number among equal runs. Points are numbered first, then centre points, then sentinels.
fn number_rows(runs: &mut [Row]) {
    let mut used: BTreeMap<RowKey, u32> = BTreeMap::new();
    let mut indices: Vec<usize> = (0..runs.len()).collect();
    let later_notes = [CENTRE_POINT, SENTINEL];
    indices.sort_by_key(|&i| later_notes.iter().position(|note| runs[i].note == *note));
    for i in indices {
        // Numbers continue over blocks, which contain the same runs.
        let key = Row { block: None, ..runs[i].clone() }.key();
        let number = used.entry(key).or_insert(0);
        *number += 1;
        runs[i].replicate = Some(*number);
        runs[i].order = Some(i as u32 + 1);
    }
}
