//! Analysis of variance: which share of the variation each term explains, and whether it is more than noise.

use super::model::{Cell, Model, Term};
use super::sample::mean;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// A table of the analysis of variance (Jain 1991, ch. 18 to 22; Montgomery, Design and Analysis of Experiments, ch. 3 to 6).
///
/// Sums of squares are of Type II: each term after all others that do not contain it (Langsrud, Statistics and Computing 13, 2003). In balanced designs they
/// are the textbooks', and add up.
#[derive(Clone, Debug, PartialEq)]
pub struct Anova {
    /// In the order of the terms that were asked for.
    pub terms: Vec<Explained>,
    /// Sum of squares of all runs about the mean of all.
    pub total: f64,
    /// Residual: the part that no term explains.
    pub error: Squares,
    /// The part of the error within cells; of no degrees of freedom where there are no replicates.
    pub pure: Squares,
    /// The rest of the error, against its part within cells: whether terms are missing (Box, Hunter and Hunter, Statistics for Experimenters, ch. 10.3).
    pub lack_of_fit: Explained,
}

/// A sum of squares.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the words of every textbook")]
pub struct Squares {
    pub squares: f64,
    pub freedom: usize,
}

impl Squares {
    /// Squares a degree of freedom; `None` without any.
    pub fn mean_square(&self) -> Option<f64> {
        (self.freedom > 0).then(|| self.squares / self.freedom as f64)
    }
}

/// A sum of squares against noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explained {
    /// Its squares.
    pub part: Squares,
    /// Share of the total, 0 to 1; `None` where nothing varies.
    pub share: Option<f64>,
    /// Mean square ÷ that of the noise; `None` where either has no degrees of freedom, or there is no noise at all.
    pub f: Option<f64>,
    /// Chance of such an F if the term did nothing.
    pub p: Option<f64>,
}

/// Analyse terms fitted to cells. `counts` are the levels of each factor.
pub fn anova(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Anova {
    let values: Vec<f64> = cells.iter().flat_map(|cell| &cell.values).copied().collect();
    let middle = mean(&values).unwrap_or(0.0);
    let total = squares(&values, middle);
    let error = left_over(cells, counts, terms);
    let pure = within(cells);
    let explained = terms.iter().map(|term| {
        let others = terms.iter().filter(|other| !term.iter().all(|factor| other.contains(factor)));
        let mut others: Vec<Term> = others.cloned().collect();
        let without = left_over(cells, counts, &others);
        others.push(term.clone());
        Explained::new(less(without, left_over(cells, counts, &others)), error, total)
    });
    Anova {
        terms: explained.collect(),
        total,
        error,
        pure,
        lack_of_fit: Explained::new(less(error, pure), pure, total),
    }
}

impl Explained {
    fn new(part: Squares, noise: Squares, total: f64) -> Self {
        let f = noise.mean_square().filter(|&noise| noise > 0.0);
        let f = f.and_then(|noise| Some(part.mean_square()? / noise));
        let p = f.and_then(|f| f_above(f, part.freedom as f64, noise.freedom as f64));
        let share = (total > 0.0).then(|| part.squares / total);
        Explained { part, share, f, p }
    }
}

fn less(of: Squares, part: Squares) -> Squares {
    Squares { squares: of.squares - part.squares, freedom: of.freedom - part.freedom }
}

/// Squares that a model leaves unexplained: within cells, and of cell means.
fn left_over(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Squares {
    let model = Model::new(cells, counts, terms);
    let runs: usize = cells.iter().map(|cell| cell.values.len()).sum();
    let fitted = model.fitted(cells);
    let squares =
        cells.iter().zip(fitted).map(|(cell, fitted)| squares(&cell.values, fitted)).sum();
    Squares { squares, freedom: runs - model.rank() }
}

/// Within cells: noise, whatever the model.
fn within(cells: &[Cell]) -> Squares {
    let of_cells =
        cells.iter().map(|cell| squares(&cell.values, mean(&cell.values).unwrap_or(0.0)));
    let freedom = cells.iter().map(|cell| cell.values.len() - 1).sum();
    Squares { squares: of_cells.sum(), freedom }
}

fn squares(values: &[f64], about: f64) -> f64 {
    values.iter().map(|value| (value - about).powi(2)).sum()
}

fn f_above(f: f64, freedom: f64, freedom_noise: f64) -> Option<f64> {
    Some(FisherSnedecor::new(freedom, freedom_noise).ok()?.sf(f.max(0.0)))
}
