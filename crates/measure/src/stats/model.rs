//! Effects of factors on a response, by least squares, for balanced and unbalanced designs. Factors and levels are numbers without names.
//!
//! In the coding of columns, the effects of a factor's levels add up to 0 (−1 and 1 for two levels), as in Jain (1991), ch. 17 to 22. Columns
//! contain only −1, 0 and 1, so the normal equations are exact. Sweeping solves the equations and skips linearly dependent columns
//! (Goodnight, American Statistician 33, 1979), so no crate for matrices is needed.

use super::interval::Difference;
use super::sample::{mean, stdev};

/// Runs with the same level of each factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Level of each factor, counted from 0.
    pub levels: Vec<usize>,
    /// Value of each run; not empty.
    pub values: Vec<f64>,
}

/// Factors of an interaction, or the single factor of a main effect.
pub type Term = Vec<usize>;

/// Terms fitted to cells.
#[derive(Clone, Debug)]
pub struct Model {
    terms: Vec<Term>,
    /// Number of levels of each factor.
    counts: Vec<usize>,
    /// Row of each cell: 1 for the constant, then the columns of each term.
    rows: Vec<Vec<f64>>,
    /// Number of runs of each cell.
    runs: Vec<f64>,
    /// Generalized inverse of the normal equations, with zeros for linearly dependent columns.
    inverse: Vec<Vec<f64>>,
    rank: usize,
}

impl Model {
    /// Fits terms to cells. `counts` are the numbers of levels of the factors. Terms must not contain factors with a single level.
    pub fn new(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Self {
        let counts = counts.to_vec();
        let rows = cells.iter().map(|cell| {
            let columns = terms.iter().flat_map(|term| code_levels(term, &counts, &cell.levels));
            std::iter::once(1.0).chain(columns).collect()
        });
        let rows: Vec<Vec<f64>> = rows.collect();
        let runs: Vec<f64> = cells.iter().map(|cell| cell.values.len() as f64).collect();
        let (inverse, rank) = sweep(normal_equations(&rows, &runs));
        Model { terms: terms.to_vec(), counts, rows, runs, inverse, rank }
    }

    /// Number of linearly independent columns.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the fitted value of each cell.
    pub fn fitted_values(&self, cells: &[Cell]) -> Vec<f64> {
        let mut sums = vec![0.0; self.inverse.len()];
        for (row, cell) in self.rows.iter().zip(cells) {
            let sum: f64 = cell.values.iter().sum();
            add_scaled(&mut sums, row, sum);
        }
        let coefficients: Vec<f64> = self.inverse.iter().map(|line| dot(line, &sums)).collect();
        self.rows.iter().map(|row| dot(row, &coefficients)).collect()
    }

    /// The grand mean, in which each level counts once.
    pub fn grand_mean(&self) -> Option<Combination> {
        let mut coefficients = vec![0.0; self.inverse.len()];
        *coefficients.first_mut()? = 1.0;
        self.combination(&coefficients)
    }

    /// Effect of a combination of levels beyond its lower-order effects. `levels` are pairs of factor and level in the order of the term. `None`
    /// if the cells cannot separate the effect from other terms, or if the model does not contain the term.
    pub fn effect(&self, levels: &[(usize, usize)]) -> Option<Combination> {
        self.sum_of_effects(&[(1.0, levels)])
    }

    /// Difference of level `to` from level `from`, averaged over all other factors.
    pub fn difference(&self, factor: usize, from: usize, to: usize) -> Option<Combination> {
        self.sum_of_effects(&[(1.0, &[(factor, to)]), (-1.0, &[(factor, from)])])
    }

    /// Interaction of two steps: how much one step changes the effect of the other.
    pub fn interaction(&self, a: LevelStep, b: LevelStep) -> Option<Combination> {
        self.sum_of_effects(&[
            (1.0, &[(a.factor, a.to), (b.factor, b.to)]),
            (-1.0, &[(a.factor, a.from), (b.factor, b.to)]),
            (-1.0, &[(a.factor, a.to), (b.factor, b.from)]),
            (1.0, &[(a.factor, a.from), (b.factor, b.from)]),
        ])
    }

    /// Groups the levels of a factor into sets of comparable levels. Returns the first level of the set of each level.
    pub fn comparable_sets(&self, factor: usize) -> Vec<usize> {
        let levels = 0..self.counts[factor];
        let parts: Vec<Option<Vec<f64>>> =
            levels.clone().map(|level| self.inestimable_part(factor, level)).collect();
        let sets = levels.map(|level| {
            let Some(part) = &parts[level] else { return level };
            let is_same = |other: &Vec<f64>| other.iter().zip(part).all(|(a, b)| is_equal(*a, *b));
            let mut earlier = parts[..level].iter().map(Option::as_ref);
            earlier.position(|other| other.is_some_and(is_same)).unwrap_or(level)
        });
        sets.collect()
    }

    /// The part of a level's effect that the cells cannot estimate; levels with equal parts can be compared. `None` if the model does not
    /// contain the factor as a term.
    fn inestimable_part(&self, factor: usize, level: usize) -> Option<Vec<f64>> {
        let coefficients = self.coefficients(&[(1.0, &[(factor, level)])])?;
        let estimable = self.estimated_coefficients(&self.weights(&coefficients));
        Some(estimable.iter().zip(&coefficients).map(|(part, total)| total - part).collect())
    }

    fn sum_of_effects(&self, parts: &[(f64, &[(usize, usize)])]) -> Option<Combination> {
        self.combination(&self.coefficients(parts)?)
    }

    /// A signed sum of effects as a vector over the model's columns; `None` if the model does not contain a term.
    fn coefficients(&self, parts: &[(f64, &[(usize, usize)])]) -> Option<Vec<f64>> {
        let mut coefficients = vec![0.0; self.inverse.len()];
        for (sign, effect) in parts {
            let term: Term = effect.iter().map(|&(factor, _)| factor).collect();
            let mut levels = vec![0; self.counts.len()];
            effect.iter().for_each(|&(factor, level)| levels[factor] = level);
            let index = self.terms.iter().position(|known| *known == term)?;
            let columns_before: usize =
                self.terms[..index].iter().map(|term| width(term, &self.counts)).sum();
            let columns = code_levels(&term, &self.counts, &levels);
            for (i, code) in columns.into_iter().enumerate() {
                coefficients[1 + columns_before + i] += sign * code;
            }
        }
        Some(coefficients)
    }

    /// The combination of cell means with these coefficients; `None` if the cells cannot estimate it.
    fn combination(&self, coefficients: &[f64]) -> Option<Combination> {
        let weights = self.weights(coefficients);
        let estimable = self.estimated_coefficients(&weights);
        let is_estimable =
            estimable.iter().zip(coefficients).all(|(part, total)| is_equal(*part, *total));
        is_estimable.then_some(Combination { weights })
    }

    /// Weights of cell means for these coefficients, from the normal equations.
    fn weights(&self, coefficients: &[f64]) -> Vec<f64> {
        let solution: Vec<f64> = self.inverse.iter().map(|line| dot(line, coefficients)).collect();
        self.rows.iter().zip(&self.runs).map(|(row, runs)| runs * dot(row, &solution)).collect()
    }

    /// The coefficients that these weights of cell means estimate.
    fn estimated_coefficients(&self, weights: &[f64]) -> Vec<f64> {
        let mut coefficients = vec![0.0; self.inverse.len()];
        for (row, &weight) in self.rows.iter().zip(weights) {
            add_scaled(&mut coefficients, row, weight);
        }
        coefficients
    }
}

/// A step of a factor from one level to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct LevelStep {
    pub factor: usize,
    pub from: usize,
    pub to: usize,
}

/// A weighted sum of cell means, such as an effect or a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// Weight of each cell.
    pub weights: Vec<f64>,
}

/// Smallest weight that is not due to rounding.
const WEIGHT_MIN: f64 = 1e-9;

impl Combination {
    /// Computes the value for the model's cells. A value that differs from 0 only by rounding becomes 0, so equal means do not differ.
    pub fn estimate(&self, cells: &[Cell]) -> f64 {
        let mut sum = 0.0;
        let mut absolute_sum = 0.0;
        for (cell, weight) in cells.iter().zip(&self.weights) {
            let part: f64 = weight * mean(&cell.values).unwrap_or(0.0);
            sum += part;
            absolute_sum += part.abs();
        }
        if sum.abs() <= 1e-12 * absolute_sum { 0.0 } else { sum }
    }

    /// Indices of the cells whose weight is not 0.
    pub fn cells(&self) -> impl Iterator<Item = usize> {
        let weights = self.weights.iter().enumerate();
        weights.filter(|(_, weight)| weight.abs() > WEIGHT_MIN).map(|(cell, _)| cell)
    }

    /// The difference if all cells have the variance of the residual (Jain 1991, ch. 18.4).
    #[cfg(test)]
    pub(super) fn pooled_difference(
        &self,
        cells: &[Cell],
        variance: f64,
        freedom: f64,
    ) -> Difference {
        let parts =
            self.cells().map(|cell| self.weights[cell].powi(2) / cells[cell].values.len() as f64);
        let standard_error = (variance * parts.sum::<f64>()).sqrt();
        Difference { estimate: self.estimate(cells), standard_error, freedom }
    }

    /// The difference with a separate variance for each cell, and degrees of freedom by Satterthwaite (Biometrics Bulletin 2, 1946). For two
    /// cells it is Welch's difference. `None` if a cell with a weight has only one run.
    pub fn welch_difference(&self, cells: &[Cell]) -> Option<Difference> {
        let mut variance = 0.0;
        let mut squares_by_freedom = 0.0;
        let mut total_freedom = 0.0;
        for cell in self.cells() {
            let values = &cells[cell].values;
            let cell_freedom = (values.len() - 1) as f64;
            let part = (self.weights[cell] * stdev(values)?).powi(2) / values.len() as f64;
            variance += part;
            squares_by_freedom += part * part / cell_freedom;
            total_freedom += cell_freedom;
        }
        // Without variation, all degrees of freedom count.
        let freedom = if squares_by_freedom > 0.0 {
            variance * variance / squares_by_freedom
        } else {
            total_freedom
        };
        let estimate = self.estimate(cells);
        Some(Difference { estimate, standard_error: variance.sqrt(), freedom })
    }
}

/// Whether two coefficients differ only by rounding.
fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// Number of columns of a term.
fn width(term: &[usize], counts: &[usize]) -> usize {
    term.iter().map(|&factor| counts[factor] - 1).product()
}

/// Codes the levels of a term: each column is a product of columns of its factors.
fn code_levels(term: &[usize], counts: &[usize], levels: &[usize]) -> Vec<f64> {
    let mut columns = vec![1.0];
    for &factor in term {
        let last = counts[factor] - 1;
        let level = levels[factor];
        let codes: Vec<f64> = (0..last)
            .map(|column| if level == last { -1.0 } else { f64::from(u8::from(level == column)) })
            .collect();
        columns = columns.iter().flat_map(|x| codes.iter().map(move |y| x * y)).collect();
    }
    columns
}

/// Matrix of the normal equations: sums of products of columns over runs.
fn normal_equations(rows: &[Vec<f64>], runs: &[f64]) -> Vec<Vec<f64>> {
    let columns = rows.first().map_or(0, Vec::len);
    let mut sums = vec![vec![0.0; columns]; columns];
    for (row, runs) in rows.iter().zip(runs) {
        for (line, x) in sums.iter_mut().zip(row).filter(|(_, x)| **x != 0.0) {
            line.iter_mut().zip(row).for_each(|(sum, y)| *sum += runs * x * y);
        }
    }
    sums
}

/// Sweeps a symmetric matrix: returns a generalized inverse and the rank.
fn sweep(mut a: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, usize) {
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
                row.iter_mut().zip(&line).for_each(|(entry, x)| *entry -= factor * x);
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
    let rank = is_swept.iter().filter(|&&swept| swept).count();
    (a, rank)
}

fn add_scaled(sums: &mut [f64], row: &[f64], factor: f64) {
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * factor);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_of_one_set_have_a_difference() {
        let check = |cells: &[[usize; 2]], expected: &[usize]| {
            let cell = |levels: &[usize; 2]| Cell { levels: levels.to_vec(), values: vec![1.0] };
            let cells: Vec<Cell> = cells.iter().map(cell).collect();
            let counts = [0, 1]
                .map(|factor| 1 + cells.iter().map(|cell| cell.levels[factor]).max().unwrap());
            let model = Model::new(&cells, &counts, &[vec![0], vec![1]]);
            let sets = model.comparable_sets(0);
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
