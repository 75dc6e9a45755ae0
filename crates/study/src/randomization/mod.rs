//! Around any design: centre points, replicates, blocks, order, sentinels. Points in, rows out; which points, is the design's.
//!
//! A block is a whole replicate by default (randomised complete blocks: Montgomery, chapter 4), so that a drift of the machine falls on all
//! points alike. A sentinel is the baseline, run again and again: what changes there is not the factors' doing.

#[cfg(test)]
mod tests;

use crate::design::{Point, RUNS_MAX};
use crate::factor::{self, Factor};
use crate::random::Random;
use clap::ValueEnum;
use feedrate_results::row::{Row, RowKey};
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
    pub blocks: Blocks,
    /// Order inside a block.
    pub order: Order,
    /// Seed of the random order, and of designs with chance in them.
    pub seed: u64,
    /// Runs from one sentinel to the next; `None` for no sentinels.
    pub sentinel: Option<u32>,
    /// Runs in the middle, in each block, for each combination of levels that are no numbers.
    pub centre_points: u32,
}

/// Meaning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// A replicate.
    Replicates,
    /// There is one block of all runs.
    None,
}

/// The order of runs in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Drawn by the seed.
    Random,
    /// As the design has them.
    Standard,
}

/// Purpose of a run. Replicates are numbered in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Point,
    Centre,
    Sentinel,
}

/// The rows of a design, in the order they are to be run.
///
/// # Errors
/// A factor has no middle, a level does not fit its column, or there are more than [`RUNS_MAX`] runs.
pub fn randomized(
    baseline: &Row,
    factors: &[Factor],
    points: &[Point],
    how: &Arrangement,
) -> Result<Vec<Row>, Problems> {
    let alone = |problem| Problems(vec![problem]);
    let centres =
        if how.centre_points == 0 { Vec::new() } else { centres(factors).map_err(alone)? };
    let (blocks, times) = match how.blocks {
        Blocks::Replicates => (how.replicates, 1),
        Blocks::None => (1, how.replicates),
    };
    refuse_too_many(points.len(), centres.len(), how, blocks, times).map_err(alone)?;
    let points = rows(baseline, factors, points)?;
    let centres = rows(baseline, factors, &centres)?;
    let mut random = Random::new(how.seed);
    let mut runs: Vec<(Purpose, Row)> = Vec::new();
    for block in 1..=blocks {
        let times_each = |rows: &[Row], times: u32, purpose| {
            let all = (0..times).flat_map(|_| rows.to_vec());
            all.map(|row| (purpose, row)).collect::<Vec<_>>()
        };
        let mut own = times_each(&points, times, Purpose::Point);
        own.extend(times_each(&centres, how.centre_points, Purpose::Centre));
        if how.order == Order::Random {
            random.shuffle(&mut own);
        }
        let own = with_sentinels(own, baseline, how.sentinel);
        runs.extend(
            own.into_iter().map(|(purpose, row)| (purpose, Row { block: Some(block), ..row })),
        );
    }
    Ok(numbered(runs))
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

fn rows(baseline: &Row, factors: &[Factor], points: &[Point]) -> Result<Vec<Row>, Problems> {
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
fn centres(factors: &[Factor]) -> Result<Vec<Point>, Problem> {
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
        let with = |point: &Point, level: &String| {
            point.iter().cloned().chain([Some(level.clone())]).collect()
        };
        centres = centres.iter().flat_map(|p| levels.iter().map(move |l| with(p, l))).collect();
        if centres.len() > RUNS_MAX {
            return Err(Problem::error("centre_points", format!("more than {RUNS_MAX} of them"))
                .hint("leave them out: too many factors have levels that are no numbers"));
        }
    }
    Ok(centres)
}

/// One first, one last, and one after each `every` runs between.
fn with_sentinels(
    runs: Vec<(Purpose, Row)>,
    baseline: &Row,
    every: Option<u32>,
) -> Vec<(Purpose, Row)> {
    let Some(every) = every else { return runs };
    let sentinel = || (Purpose::Sentinel, baseline.clone());
    let mut all = vec![sentinel()];
    let mut rest = runs.into_iter().peekable();
    while rest.peek().is_some() {
        all.extend(rest.by_ref().take(every as usize));
        all.push(sentinel());
    }
    all
}

/// With their order, notes, and the next free number among runs that ask for the same.
fn numbered(runs: Vec<(Purpose, Row)>) -> Vec<Row> {
    let mut free: BTreeMap<RowKey, u32> = BTreeMap::new();
    let mut by_purpose: Vec<usize> = (0..runs.len()).collect();
    by_purpose.sort_by_key(|&i| runs[i].0);
    let mut replicates = vec![0; runs.len()];
    for i in by_purpose {
        // Blocks repeat each other: their runs are numbered on.
        let key = Row { block: None, ..runs[i].1.clone() }.key();
        let number = free.entry(key).or_insert(0);
        *number += 1;
        replicates[i] = *number;
    }
    let complete = |(i, (purpose, row)): (usize, (Purpose, Row))| Row {
        replicate: Some(replicates[i]),
        order: Some(i as u32 + 1),
        note: match purpose {
            Purpose::Point => row.note,
            Purpose::Centre => CENTRE_POINT.into(),
            Purpose::Sentinel => SENTINEL.into(),
        },
        ..row
    };
    runs.into_iter().enumerate().map(complete).collect()
}
