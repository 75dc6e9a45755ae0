//! Robust statistics: the interval of the median, and outliers.

use super::interval::Interval;
use super::sample::median;
use statrs::distribution::{Binomial, DiscreteCDF};

/// Computes the interval of the median for any distribution (Conover, Practical Nonparametric Statistics, ch. 3.2): the narrowest symmetric pair of sample
/// values with at least the requested confidence. `None` if even the interval from the smallest to the largest value has less; 95 % needs six values.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let values_below_median = Binomial::new(0.5, values.len() as u64).ok()?;
    // With `rank` values below the lower end, the median is outside the interval with probability 2 · cdf(rank).
    let ranks = 0..values.len() as u64 / 2;
    let sufficient =
        ranks.take_while(|rank| 2.0 * values_below_median.cdf(*rank) <= 1.0 - confidence);
    let rank = sufficient.last()? as usize;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = sorted[sorted.len() - 1 - rank];
    Some(Interval { estimate: median(values)?, low: sorted[rank], high })
}

/// Minimum number of values for detecting outliers. With normal noise, one of 20 values would be flagged in samples of five, and one of 60 in
/// samples of ten.
pub const OUTLIER_VALUES_MIN: usize = 10;

/// Absolute modified z-score above which a value is an outlier.
pub const OUTLIER_SCORE: f64 = 3.5;

/// Computes modified z-scores: 0.6745 · (value − median) ÷ median absolute deviation (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993).
/// A value beyond [`OUTLIER_SCORE`] should be inspected, but the score alone does not justify its exclusion. `None` for fewer than
/// [`OUTLIER_VALUES_MIN`] values, or if half of them are equal.
pub fn modified_z_scores(values: &[f64]) -> Option<Vec<f64>> {
    if values.len() < OUTLIER_VALUES_MIN {
        return None;
    }
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let distance = median(&distances).filter(|&distance| distance > 0.0)?;
    Some(values.iter().map(|value| 0.6745 * (value - middle) / distance).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;

    fn interval_ranks(n: u32) -> Option<(f64, f64)> {
        let values: Vec<f64> = (1..=n).map(f64::from).collect();
        median_interval(&values, 0.95).map(|found| (found.low, found.high))
    }

    /// Expected ranks are from tables of the sign test (Le Boudec, Performance Evaluation of Computer and Communication Systems, app. A).
    #[test]
    fn ranks_equal_published_tables() {
        for (n, expected) in [
            (5, None),
            (6, Some((1.0, 6.0))),
            (8, Some((1.0, 8.0))),
            (10, Some((2.0, 9.0))),
            (20, Some((6.0, 15.0))),
            (100, Some((40.0, 61.0))),
        ] {
            assert_eq!(interval_ranks(n), expected, "{n}");
        }
    }

    /// Ten values of Iglewicz and Hoaglin (1993). In plain z-scores, the two outliers mask each other. The median is 2.45, the median
    /// absolute deviation 0.15.
    #[test]
    fn outliers_have_high_scores() {
        let mut values = vec![2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3];
        let scores = modified_z_scores(&values).unwrap();
        let outliers: Vec<usize> = (0..10).filter(|&i| OUTLIER_SCORE < scores[i].abs()).collect();
        assert_eq!(outliers, [8, 9]);
        assert_eq!(format!("{:.1} {:.1}", scores[8], scores[9]), "25.9 26.3");
        assert_eq!(modified_z_scores(&[1.0; 12]), None);
        values.pop();
        assert_eq!(modified_z_scores(&values), None);
    }

    /// Checks the rate that [`OUTLIER_VALUES_MIN`] documents.
    #[test]
    fn ten_values_of_normal_noise_rarely_have_outliers() {
        let mut random = LegacyRandom::new(3);
        let mut outliers = 0;
        for _ in 0..2000 {
            let values = [(); 10].map(|()| random.standard_normal());
            let scores = modified_z_scores(&values).unwrap();
            outliers += scores.iter().filter(|score| OUTLIER_SCORE < score.abs()).count();
        }
        assert!((250..450).contains(&outliers), "{outliers} of 20000");
    }
}
