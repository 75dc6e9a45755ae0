//! Analysis of variance: the share of the variation that each term explains, and tests against noise.

use super::model::{Cell, Model, Term};
use super::sample::mean;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// A table of the analysis of variance (Jain 1991, ch. 18 to 22; Montgomery, Design and Analysis of Experiments, ch. 3 to 6).
///
/// Sums of squares are of Type II: each term is adjusted for all other terms that do not contain it (Langsrud, Statistics and Computing
/// 13, 2003). In balanced designs they equal the textbook sums and add up to the total.
#[derive(Clone, Debug, PartialEq)]
pub struct Anova {
    /// The analysed terms, in the given order.
    pub terms: Vec<AnovaRow>,
    /// Sum of squares of all runs about their mean.
    pub total: f64,
    /// Residual: the part that no term explains.
    pub error: Squares,
    /// Pure error: the part of the residual within cells. It has no degrees of freedom without replicates.
    pub pure: Squares,
    /// Lack of fit: the residual without the pure error. Its test shows whether terms are missing (Box, Hunter and Hunter, Statistics for
    /// Experimenters, ch. 10.3).
    pub lack_of_fit: AnovaRow,
}

/// A sum of squares.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "terms of every textbook")]
pub struct Squares {
    pub squares: f64,
    pub freedom: usize,
}

impl Squares {
    /// Sum of squares per degree of freedom; `None` without degrees of freedom.
    pub fn mean_square(&self) -> Option<f64> {
        (self.freedom > 0).then(|| self.squares / self.freedom as f64)
    }
}

/// A row of the table: a sum of squares compared with noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnovaRow {
    /// The sum of squares.
    pub part: Squares,
    /// Share of the total, 0 to 1; `None` if the values do not vary.
    pub share: Option<f64>,
    /// Mean square ÷ mean square of the noise; `None` if either has no degrees of freedom, or if the noise is zero.
    pub f: Option<f64>,
    /// Probability of an F of at least this size if the term has no effect.
    pub p: Option<f64>,
}

/// Analyses the variance of terms fitted to cells. `counts` are the numbers of levels of the factors.
pub fn anova(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Anova {
    let values: Vec<f64> = cells.iter().flat_map(|cell| &cell.values).copied().collect();
    let total = squares_about(mean(&values).unwrap_or(0.0), &values);
    let error = residual(cells, counts, terms);
    let pure = pure_error(cells);
    let rows = terms.iter().map(|term| {
        let contains_term = |other: &Term| term.iter().all(|factor| other.contains(factor));
        let mut fitted: Vec<Term> =
            terms.iter().filter(|other| !contains_term(other)).cloned().collect();
        let without_term = residual(cells, counts, &fitted);
        fitted.push(term.clone());
        let with_term = residual(cells, counts, &fitted);
        AnovaRow::new(subtract(without_term, with_term), error, total)
    });
    Anova {
        terms: rows.collect(),
        total,
        error,
        pure,
        lack_of_fit: AnovaRow::new(subtract(error, pure), pure, total),
    }
}

impl AnovaRow {
    fn new(part: Squares, noise: Squares, total: f64) -> Self {
        let noise_square = noise.mean_square().filter(|&square| square > 0.0);
        let f = noise_square.and_then(|square| Some(part.mean_square()? / square));
        let p = f.and_then(|f| f_survival(f, part.freedom as f64, noise.freedom as f64));
        let share = (total > 0.0).then(|| part.squares / total);
        AnovaRow { part, share, f, p }
    }
}

fn subtract(total: Squares, part: Squares) -> Squares {
    Squares { squares: total.squares - part.squares, freedom: total.freedom - part.freedom }
}

/// Sum of squares that a model with these terms does not explain.
fn residual(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Squares {
    let model = Model::new(cells, counts, terms);
    let runs: usize = cells.iter().map(|cell| cell.values.len()).sum();
    let fitted = model.fitted_values(cells);
    let squares =
        cells.iter().zip(fitted).map(|(cell, fitted)| squares_about(fitted, &cell.values)).sum();
    Squares { squares, freedom: runs - model.rank() }
}

/// Sum of squares within cells, which is independent of the model.
fn pure_error(cells: &[Cell]) -> Squares {
    let cell_squares = |cell: &Cell| squares_about(mean(&cell.values).unwrap_or(0.0), &cell.values);
    let freedom = cells.iter().map(|cell| cell.values.len() - 1).sum();
    Squares { squares: cells.iter().map(cell_squares).sum(), freedom }
}

fn squares_about(center: f64, values: &[f64]) -> f64 {
    values.iter().map(|value| (value - center).powi(2)).sum()
}

/// Probability that an F-distributed variable exceeds `f`.
fn f_survival(f: f64, freedom: f64, freedom_noise: f64) -> Option<f64> {
    Some(FisherSnedecor::new(freedom, freedom_noise).ok()?.sf(f.max(0.0)))
}
