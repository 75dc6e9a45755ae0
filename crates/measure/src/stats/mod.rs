//! Statistics of small samples, one value a run: intervals, tests, and how many runs they take. Pure; knows nothing of records.
//!
//! Every interval covers as it claims for the noise that it names; tests simulate it at five values. Fewer than two values have
//! none; a median takes six. Pairs are compared by Welch and corrected by Holm, which needs no table of the studentized range and
//! no equal variances.

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

pub use anova::{Anova, Explained, Squares, anova};
pub use equivalence::equivalence_p;
pub use interval::{
    Difference, Interval, mean_half_width, mean_interval, paired_difference, percent_interval,
    share_interval, stdev_interval, welch_difference,
};
pub use logarithm::{geometric_mean_interval, paired_log_ratio, welch_log_ratio};
pub use model::{Cell, Combination, Model, Term};
pub use multiplicity::holm;
pub use residual::slope;
pub use robust::{OUTLIER_SCORE, OUTLIER_VALUES_LEAST, median_interval, modified_z_scores};
pub use sample::{cov, mean, median, stdev};
pub use size::{Margin, Samples, samples_for_half_width, samples_to_tell, samples_within};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// From here on the normal is nearer to Student's t than what is computed of it, which for many more degrees of freedom never ends.
const FREEDOM_OF_NORMAL: f64 = 1e5;

/// Below this value lies `share` of Student's t; `None` without degrees of freedom.
fn t_quantile(share: f64, freedom: f64) -> Option<f64> {
    if FREEDOM_OF_NORMAL <= freedom {
        return Some(Normal::standard().inverse_cdf(share));
    }
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(share))
}

/// The share of Student's t below `t`.
fn t_below(t: f64, freedom: f64) -> Option<f64> {
    if FREEDOM_OF_NORMAL <= freedom {
        return Some(Normal::standard().cdf(t));
    }
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.cdf(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cornish and Fisher (1960): t is z + (z³ + z) ÷ 4n, and what is smaller than both.
    #[test]
    fn students_t_becomes_the_normal() {
        for (share, z) in [(0.95, 1.644_853_627_f64), (0.975, 1.959_963_985)] {
            for freedom in [1e4, 9.9e4, 1e5, 1e6, 1e9] {
                let expected = z + (z.powi(3) + z) / (4.0 * freedom);
                let found = t_quantile(share, freedom).unwrap();
                assert!((found - expected).abs() < 5e-5, "{share}, {freedom}: {found}");
                assert!((t_below(z, freedom).unwrap() - share).abs() < 5e-5, "{share}, {freedom}");
            }
        }
    }
}
