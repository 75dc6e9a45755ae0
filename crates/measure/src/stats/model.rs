//! Factors and responses by least squares: what a level, or a combination of levels, does. Balanced or not; knows no names of factors.
//!
//! Columns are coded so that the effects of a factor's levels sum to 0 (−1 and 1 for two levels), as in Jain (1991), ch. 17 to 22. They hold −1, 0 and 1
//! only, so that the normal equations lose no digits; they are solved by sweeping (Goodnight, American Statistician 33, 1979), which passes over columns
//! that follow from others. So no crate of matrices is needed.

use super::interval::Difference;
use super::sample::{mean, stdev};

/// Runs that have the same level of each factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Level of each factor, counted from 0.
    pub levels: Vec<usize>,
    /// One a run; at least one.
    pub values: Vec<f64>,
}

/// Factors that act together; a single one is a main effect.
pub type Term = Vec<usize>;

/// Terms fitted to cells.
#[derive(Clone, Debug)]
pub struct Model {
    terms: Vec<Term>,
    /// Levels of each factor.
    counts: Vec<usize>,
    /// Row of each cell: the constant, then the columns of each term.
    rows: Vec<Vec<f64>>,
    /// Runs of each cell.
    runs: Vec<f64>,
    /// Inverse of the normal equations; for columns that follow from others it has zeros.
    inverse: Vec<Vec<f64>>,
    rank: usize,
}

impl Model {
    /// `counts` are the levels of each factor. Of factors of one level no term may be made.
    pub fn new(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Self {
        let counts = counts.to_vec();
        let rows = cells.iter().map(|cell| {
            let columns = terms.iter().flat_map(|term| coded(term, &counts, &cell.levels));
            std::iter::once(1.0).chain(columns).collect()
        });
        let rows: Vec<Vec<f64>> = rows.collect();
        let runs: Vec<f64> = cells.iter().map(|cell| cell.values.len() as f64).collect();
        let (inverse, rank) = swept(products(&rows, &runs));
        Model { terms: terms.to_vec(), counts, rows, runs, inverse, rank }
    }

    /// Columns that do not follow from others.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// The value that the model has for each cell.
    pub fn fitted(&self, cells: &[Cell]) -> Vec<f64> {
        let mut sums = vec![0.0; self.inverse.len()];
        for (row, cell) in self.rows.iter().zip(cells) {
            let sum: f64 = cell.values.iter().sum();
            sums.iter_mut().zip(row).for_each(|(to, x)| *to += x * sum);
        }
        let coefficients: Vec<f64> = self.inverse.iter().map(|line| dot(line, &sums)).collect();
        self.rows.iter().map(|row| dot(row, &coefficients)).collect()
    }

    /// The mean of all levels, each counted once.
    pub fn middle(&self) -> Option<Combination> {
        let mut wanted = vec![0.0; self.inverse.len()];
        *wanted.first_mut()? = 1.0;
        self.combination(&wanted)
    }

    /// Effect of these levels beyond the effects of fewer of their factors: (factor, level), in the order of the term. `None` where the cells do not tell it
    /// apart from other terms of the model, or the model lacks the term.
    pub fn effect(&self, of: &[(usize, usize)]) -> Option<Combination> {
        self.sum_of_effects(&[(1.0, of)])
    }

    /// Level `to` against level `from`, all others at their mean.
    pub fn difference(&self, factor: usize, from: usize, to: usize) -> Option<Combination> {
        self.sum_of_effects(&[(1.0, &[(factor, to)]), (-1.0, &[(factor, from)])])
    }

    /// By how much a step of one factor does more after a step of the other: each is factor, from, to, in the order of the term.
    pub fn interaction(&self, a: [usize; 3], b: [usize; 3]) -> Option<Combination> {
        let ([a, a0, a1], [b, b0, b1]) = (a, b);
        self.sum_of_effects(&[
            (1.0, &[(a, a1), (b, b1)]),
            (-1.0, &[(a, a0), (b, b1)]),
            (-1.0, &[(a, a1), (b, b0)]),
            (1.0, &[(a, a0), (b, b0)]),
        ])
    }

    /// Number of the set that each level of a factor is of: levels of one set can be compared with each other, and those of two sets cannot. Named by their
    /// first levels.
    pub fn comparable(&self, factor: usize) -> Vec<usize> {
        let levels = 0..self.counts[factor];
        let rests: Vec<Option<Vec<f64>>> =
            levels.clone().map(|level| self.untold(factor, level)).collect();
        let sets = levels.map(|level| {
            let Some(own) = &rests[level] else { return level };
            let mut earlier = rests[..level].iter().map(Option::as_ref);
            let same = earlier.position(|rest| {
                rest.is_some_and(|rest| rest.iter().zip(own).all(|(a, b)| is_equal(*a, *b)))
            });
            same.unwrap_or(level)
        });
        sets.collect()
    }

    /// Rest of a level's effect that the cells do not tell; levels that leave the same can be compared. `None` where the model lacks the term.
    fn untold(&self, factor: usize, level: usize) -> Option<Vec<f64>> {
        let wanted = self.wanted(&[(1.0, &[(factor, level)])])?;
        let (found, _) = self.solved(&wanted);
        Some(found.iter().zip(&wanted).map(|(found, wanted)| wanted - found).collect())
    }

    fn sum_of_effects(&self, parts: &[(f64, &[(usize, usize)])]) -> Option<Combination> {
        self.combination(&self.wanted(parts)?)
    }

    /// The sum of coefficients that effects are; `None` where the model lacks a term.
    fn wanted(&self, parts: &[(f64, &[(usize, usize)])]) -> Option<Vec<f64>> {
        let mut wanted = vec![0.0; self.inverse.len()];
        for (sign, at) in parts {
            let term: Term = at.iter().map(|&(factor, _)| factor).collect();
            let mut levels = vec![0; self.counts.len()];
            at.iter().for_each(|&(factor, level)| levels[factor] = level);
            let place = self.terms.iter().position(|known| *known == term)?;
            let before: usize = self.terms[..place].iter().map(|t| width(t, &self.counts)).sum();
            let columns = coded(&term, &self.counts, &levels);
            for (i, code) in columns.into_iter().enumerate() {
                wanted[1 + before + i] += sign * code;
            }
        }
        Some(wanted)
    }

    /// Weights of cell means that give this sum of coefficients, if any do.
    fn combination(&self, wanted: &[f64]) -> Option<Combination> {
        let (found, weights) = self.solved(wanted);
        let is_told = found.iter().zip(wanted).all(|(found, wanted)| is_equal(*found, *wanted));
        is_told.then_some(Combination { weights })
    }

    /// Solution of the normal equations, and the weights of cell means that it comes to.
    fn solved(&self, wanted: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let solved: Vec<f64> = self.inverse.iter().map(|line| dot(line, wanted)).collect();
        let weights: Vec<f64> =
            self.rows.iter().zip(&self.runs).map(|(row, n)| n * dot(row, &solved)).collect();
        let mut found = vec![0.0; wanted.len()];
        for (row, weight) in self.rows.iter().zip(&weights) {
            found.iter_mut().zip(row).for_each(|(to, x)| *to += x * weight);
        }
        (found, weights)
    }
}

/// A weighted sum of the means of cells: an effect, or a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// Weight of each cell.
    pub weights: Vec<f64>,
}

/// Weights that are rounding only.
const WEIGHT_MIN: f64 = 1e-9;

impl Combination {
    /// Value for the cells that it was made for; exactly 0 where it is rounding only, so that values that never vary do not differ.
    pub fn estimate(&self, cells: &[Cell]) -> f64 {
        let parts = cells.iter().zip(&self.weights);
        let parts = parts.map(|(cell, weight)| weight * mean(&cell.values).unwrap_or(0.0));
        let (sum, size) =
            parts.fold((0.0, 0.0), |(sum, size), part: f64| (sum + part, size + part.abs()));
        if sum.abs() <= 1e-12 * size { 0.0 } else { sum }
    }

    /// The cells that it rests on.
    pub fn cells(&self) -> impl Iterator<Item = usize> {
        let weights = self.weights.iter().enumerate();
        weights.filter(|(_, weight)| weight.abs() > WEIGHT_MIN).map(|(at, _)| at)
    }

    /// With one variance for all cells, from elsewhere: the error of an analysis of variance (Jain 1991, ch. 18.4).
    #[cfg(test)]
    pub(super) fn pooled(&self, cells: &[Cell], variance: f64, freedom: f64) -> Difference {
        let parts = self.cells().map(|at| self.weights[at].powi(2) / cells[at].values.len() as f64);
        let standard_error = (variance * parts.sum::<f64>()).sqrt();
        Difference { estimate: self.estimate(cells), standard_error, freedom }
    }

    /// Each cell with a variance of its own; degrees of freedom by Satterthwaite (Biometrics Bulletin 2, 1946). Of two cells it is Welch's difference.
    /// `None` where it rests on a cell of one run.
    pub fn welch(&self, cells: &[Cell]) -> Option<Difference> {
        let (mut square, mut fourth, mut freedom_all) = (0.0, 0.0, 0.0);
        for at in self.cells() {
            let values = &cells[at].values;
            let (n, freedom) = (values.len() as f64, (values.len() - 1) as f64);
            let part = (self.weights[at] * stdev(values)?).powi(2) / n;
            square += part;
            fourth += part * part / freedom;
            freedom_all += freedom;
        }
        // Values that never vary have the degrees of freedom of all.
        let freedom = if fourth > 0.0 { square * square / fourth } else { freedom_all };
        Some(Difference { estimate: self.estimate(cells), standard_error: square.sqrt(), freedom })
    }
}

/// Equal but for rounding.
fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// Columns of a term.
fn width(term: &[usize], counts: &[usize]) -> usize {
    term.iter().map(|&factor| counts[factor] - 1).product()
}

/// The columns of a term for these levels: products of those of its factors.
fn coded(term: &[usize], counts: &[usize], levels: &[usize]) -> Vec<f64> {
    let mut columns = vec![1.0];
    for &factor in term {
        let last = counts[factor] - 1;
        let own = (0..last).map(|column| match levels[factor] {
            level if level == last => -1.0,
            level => f64::from(u8::from(level == column)),
        });
        let own: Vec<f64> = own.collect();
        columns = columns.iter().flat_map(|x| own.iter().map(move |y| x * y)).collect();
    }
    columns
}

/// Sums of products of columns over runs.
fn products(rows: &[Vec<f64>], runs: &[f64]) -> Vec<Vec<f64>> {
    let columns = rows.first().map_or(0, Vec::len);
    let mut sums = vec![vec![0.0; columns]; columns];
    for (row, n) in rows.iter().zip(runs) {
        for (line, x) in sums.iter_mut().zip(row).filter(|(_, x)| **x != 0.0) {
            line.iter_mut().zip(row).for_each(|(to, y)| *to += n * x * y);
        }
    }
    sums
}

/// A generalized inverse of a symmetric matrix, and its rank.
fn swept(mut a: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, usize) {
    let scale: Vec<f64> = (0..a.len()).map(|i| a[i][i]).collect();
    let mut is_swept = vec![false; a.len()];
    for k in 0..a.len() {
        let pivot = a[k][k];
        if pivot <= 1e-9 * scale[k] {
            continue;
        }
        is_swept[k] = true;
        let line: Vec<f64> = a[k].iter().map(|x| x / pivot).collect();
        for (_, row) in a.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = row[k];
            if factor != 0.0 {
                row.iter_mut().zip(&line).for_each(|(to, x)| *to -= factor * x);
                row[k] = -factor / pivot;
            }
        }
        a[k] = line;
        a[k][k] = 1.0 / pivot;
    }
    for (i, row) in a.iter_mut().enumerate() {
        for (j, x) in row.iter_mut().enumerate() {
            if !is_swept[i] || !is_swept[j] {
                *x = 0.0;
            }
        }
    }
    let rank = is_swept.iter().filter(|&&is| is).count();
    (a, rank)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_one_set_are_those_with_a_difference() {
        let check = |cells: &[[usize; 2]], expected: &[usize]| {
            let cell = |levels: &[usize; 2]| Cell { levels: levels.to_vec(), values: vec![1.0] };
            let cells: Vec<Cell> = cells.iter().map(cell).collect();
            let counts =
                [0, 1].map(|at| 1 + cells.iter().map(|cell| cell.levels[at]).max().unwrap());
            let model = Model::new(&cells, &counts, &[vec![0], vec![1]]);
            let sets = model.comparable(0);
            assert_eq!(sets, expected);
            for (a, b) in (0..counts[0]).flat_map(|a| (0..a).map(move |b| (a, b))) {
                assert_eq!(sets[a] == sets[b], model.difference(0, b, a).is_some(), "{a}, {b}");
            }
        };
        check(&[[0, 0], [1, 0], [1, 1]], &[0, 0]);
        check(&[[0, 0], [1, 1], [2, 0], [3, 1]], &[0, 1, 0, 1]);
        check(&[[0, 0], [1, 1], [2, 2]], &[0, 1, 2]);
    }
}
