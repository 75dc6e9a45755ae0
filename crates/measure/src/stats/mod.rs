//! Statistics of small samples with one value per run: intervals, tests, and required numbers of runs. The functions are pure and do not
//! know records.
//!
//! Every interval has its nominal coverage for the noise named in its documentation; tests verify this by simulations with five values.
//! An interval needs at least two values, or six for a median. Pairs are compared by Welch's test with Holm's correction, which needs neither a
//! table of the studentized range nor equal variances.

mod sample;
mod interval;
mod logarithm;
mod equivalence;
mod multiplicity;
mod model;
mod anova;
mod residual;
mod robust;
mod size;
#[cfg(test)]
mod worked_examples;
#[cfg(test)]
mod coverage;

pub use anova::{Anova, AnovaRow, Squares, anova};
pub use equivalence::equivalence_p;
pub use interval::{
    Difference, Interval, mean_half_width, mean_interval, paired_difference, percent_interval,
    share_interval, stdev_interval, welch_difference,
};
pub use logarithm::{geometric_mean_interval, paired_log_ratio, welch_log_ratio};
pub use model::{Cell, Combination, LevelStep, Model, Term};
pub use multiplicity::holm;
pub use residual::slope;
pub use robust::{OUTLIER_SCORE, OUTLIER_VALUES_MIN, median_interval, modified_z_scores};
pub use sample::{coefficient_of_variation, mean, median, stdev};
pub use size::{Margin, Samples, runs_for_difference, runs_for_equivalence, runs_for_half_width};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Degrees of freedom from which the normal distribution replaces Student's t. Above, the numeric t is less accurate than the normal, and
/// for much larger values its computation does not terminate.
const NORMAL_FREEDOM_MIN: f64 = 1e5;

/// Quantile of Student's t; `None` without degrees of freedom.
fn t_quantile(share: f64, freedom: f64) -> Option<f64> {
    if NORMAL_FREEDOM_MIN <= freedom {
        return Some(Normal::standard().inverse_cdf(share));
    }
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(share))
}

/// Cumulative distribution function of Student's t at `t`; `None` without degrees of freedom.
fn t_cdf(t: f64, freedom: f64) -> Option<f64> {
    if NORMAL_FREEDOM_MIN <= freedom {
        return Some(Normal::standard().cdf(t));
    }
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.cdf(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// According to Cornish and Fisher (1960), t is z + (z³ + z) ÷ 4n plus smaller terms.
    #[test]
    fn students_t_approaches_the_normal() {
        for (share, z) in [(0.95, 1.644_853_627_f64), (0.975, 1.959_963_985)] {
            for freedom in [1e4, 9.9e4, 1e5, 1e6, 1e9] {
                let expected = z + (z.powi(3) + z) / (4.0 * freedom);
                let found = t_quantile(share, freedom).unwrap();
                assert!((found - expected).abs() < 5e-5, "{share}, {freedom}: {found}");
                assert!((t_cdf(z, freedom).unwrap() - share).abs() < 5e-5, "{share}, {freedom}");
            }
        }
    }
}
