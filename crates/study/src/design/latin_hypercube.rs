//! Latin hypercube: n points such that each of n equal parts of every factor's range has exactly one (McKay, Beckman and Conover,
//! Technometrics 21, 1979); of several drawn, the one whose nearest two points are farthest apart (maximin: Johnson, Moore and
//! Ylvisaker, J. Statistical Planning and Inference 26, 1990).

use super::{DesignKind, DesignOption, DesignRequest, Laid};
use crate::random::Random;
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "latin_hypercube",
    summary: "Points spread over ranges, each of n parts of every range met once.",
    estimates: "a smooth response over the whole ranges; what a model fitted to it can say",
    options: &[
        DesignOption { name: "points", meaning: "n; without it, ten for each factor." },
        DesignOption {
            name: "tries",
            meaning: "Hypercubes drawn, of which the best spread is kept; without it 100.",
        },
    ],
    lay,
};

/// Ten points a dimension: Loeppky, Sacks and Welch, Technometrics 51, 2009.
const POINTS_PER_FACTOR: usize = 10;
const TRIES: u32 = 100;
/// Differences that comparing all hypercubes may take: some seconds.
const WORK_MAX: u64 = 2_000_000_000;

fn lay(asked: &DesignRequest) -> Result<Laid, Problem> {
    let factors = asked.factors.len();
    let points = asked.options.count("points")?.map_or(POINTS_PER_FACTOR * factors, |n| n as usize);
    if points < 2 {
        return Err(Problem::error("design.points", format!("`{points}` points span nothing"))
            .hint("give at least two; ten for each factor is usual"));
    }
    super::bounded(Some(points as u64))?;
    let tries = tries(asked, points as u64)?;
    let mut random = Random::new(asked.seed);
    let mut best = cube(&mut random, points, factors);
    if tries > 1 {
        let mut distance = nearest(&best);
        for _ in 1..tries {
            let next = cube(&mut random, points, factors);
            let apart = nearest(&next);
            if apart > distance {
                (best, distance) = (next, apart);
            }
        }
    }
    let laid = best.iter().map(|shares| {
        asked.factors.iter().zip(shares).map(|(factor, &share)| Some(factor.at(share))).collect()
    });
    let notes = vec![format!("{points} points, the best spread of {tries} drawn by the seed")];
    Ok(Laid { points: laid.collect(), notes, aliases: None })
}

fn tries(asked: &DesignRequest, points: u64) -> Result<u32, Problem> {
    let tries = asked.options.count("tries")?.unwrap_or(TRIES);
    if tries == 0 {
        return Err(
            Problem::error("design.tries", "`0` tries draw nothing").hint("give at least 1")
        );
    }
    let work = (points * points / 2)
        .saturating_mul(asked.factors.len() as u64)
        .saturating_mul(u64::from(tries));
    if tries > 1 && work > WORK_MAX {
        let message = format!("comparing {tries} hypercubes of {points} points takes too long");
        return Err(Problem::error("design.tries", message)
            .hint("give fewer; `tries = 1` takes the first that is drawn"));
    }
    Ok(tries)
}

/// Points as shares of each range, 0 to below 1.
fn cube(random: &mut Random, points: usize, factors: usize) -> Vec<Vec<f64>> {
    let mut cube = vec![Vec::with_capacity(factors); points];
    for _ in 0..factors {
        let mut parts: Vec<usize> = (0..points).collect();
        random.shuffle(&mut parts);
        for (point, part) in cube.iter_mut().zip(parts) {
            point.push((part as f64 + random.unit()) / points as f64);
        }
    }
    cube
}

/// The square of the least distance between two points.
fn nearest(cube: &[Vec<f64>]) -> f64 {
    let mut least = f64::INFINITY;
    for (i, a) in cube.iter().enumerate() {
        for b in &cube[..i] {
            least = least.min(a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum());
        }
    }
    least
}
