//! Statistics of small samples, one value a run: intervals, tests, and how many runs they take. Pure; knows nothing of records.
//!
//! Every interval covers as it claims for the noise that it names; tests simulate it at five values. Fewer than two values have
//! none; a median takes six, the bootstrap fifteen. Pairs are compared by Welch and corrected by Holm, which needs no table of the studentized range and
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
mod bootstrap;
mod steady;
mod scalability;
mod knee;
mod size;
#[cfg(test)]
mod worked_examples;
#[cfg(test)]
mod coverage;

pub use anova::{Anova, Explained, Squares, anova};
pub use bootstrap::{BOOTSTRAP_VALUES_LEAST, bootstrap_mean_interval};
pub use equivalence::{equivalence_p, not_below_p};
pub use interval::{
    Difference, Interval, mean_interval, paired_difference, stdev_interval, welch_difference,
};
pub use knee::knee;
pub use logarithm::{geometric_mean_interval, paired_log_ratio, welch_log_ratio};
pub use model::{Cell, Combination, Model, Term};
pub use multiplicity::holm;
pub use residual::{BoxCox, NormalPlot, box_cox, normal_plot, slope};
pub use robust::{OUTLIER_SCORE, OUTLIER_VALUES_LEAST, median_interval, modified_z_scores};
pub use sample::{cov, mean, median, stdev};
pub use scalability::{Scaling, ScalingDoubt, amdahl, universal_scalability};
pub use size::{power_of_two_samples, samples_for_half_width, samples_to_tell};
pub use steady::{STEADY_ROUNDS, steady_from};

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Below this value lies `share` of Student's t; `None` without degrees of freedom.
fn t_quantile(share: f64, freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(share))
}

/// The share of Student's t below `t`.
fn t_below(t: f64, freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.cdf(t))
}
