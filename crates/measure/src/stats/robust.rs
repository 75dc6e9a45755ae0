//! Statistics that a few wild values do not move: the median's interval, and outliers.

use super::interval::Interval;
use super::sample::median;
use statrs::distribution::{Binomial, DiscreteCDF};

/// Interval of the median, between two values of the sample, whatever the noise (Conover, Practical Nonparametric Statistics, ch. 3.2): the narrowest symmetric
/// pair that covers at least as often as asked. `None` where even the least and the greatest do not: 95 % takes six values.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let below = Binomial::new(0.5, values.len() as u64).ok()?;
    // Of `rank` values below the lower end, so that the truth is outside on either side with this chance.
    let ranks = 0..values.len() as u64 / 2;
    let fitting = ranks.take_while(|rank| 2.0 * below.cdf(*rank) <= 1.0 - confidence);
    let rank = fitting.last()? as usize;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = sorted[sorted.len() - 1 - rank];
    Some(Interval { estimate: median(values)?, low: sorted[rank], high })
}

/// Fewer values have no outliers: of five values of normal noise one of twenty would be called one, of ten one of sixty.
pub const OUTLIER_VALUES_LEAST: usize = 10;

/// Bar of the modified z-score.
pub const OUTLIER_SCORE: f64 = 3.5;

/// Modified z-scores: 0.6745 · (value − median) ÷ median distance from it (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993). Beyond
/// [`OUTLIER_SCORE`] a value is to be looked at, never left out for that alone. `None` of fewer than [`OUTLIER_VALUES_LEAST`], or where half are the same.
pub fn modified_z_scores(values: &[f64]) -> Option<Vec<f64>> {
    if values.len() < OUTLIER_VALUES_LEAST {
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

    fn ranks(n: u32) -> Option<(f64, f64)> {
        let values: Vec<f64> = (1..=n).map(f64::from).collect();
        median_interval(&values, 0.95).map(|found| (found.low, found.high))
    }

    /// As tables of the sign test have them (Le Boudec, Performance Evaluation of Computer and Communication Systems, app. A); of 100 values the 40th and 61st.
    #[test]
    fn ranks_are_those_of_the_tables() {
        for (n, expected) in [
            (5, None),
            (6, Some((1.0, 6.0))),
            (8, Some((1.0, 8.0))),
            (10, Some((2.0, 9.0))),
            (20, Some((6.0, 15.0))),
            (100, Some((40.0, 61.0))),
        ] {
            assert_eq!(ranks(n), expected, "{n}");
        }
    }

    /// Iglewicz and Hoaglin's (1993) ten values, whose two wild ones hide each other from plain z-scores. Median 2.45, median distance 0.15.
    #[test]
    fn wild_values_stand_out() {
        let mut values = vec![2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3];
        let scores = modified_z_scores(&values).unwrap();
        let wild: Vec<usize> = (0..10).filter(|&at| OUTLIER_SCORE < scores[at].abs()).collect();
        assert_eq!(wild, [8, 9]);
        assert_eq!(format!("{:.1} {:.1}", scores[8], scores[9]), "25.9 26.3");
        assert_eq!(modified_z_scores(&[1.0; 12]), None);
        values.pop();
        assert_eq!(modified_z_scores(&values), None);
    }

    /// The figures that [`OUTLIER_VALUES_LEAST`] tells.
    #[test]
    fn normal_noise_has_few_outliers_from_ten_values_on() {
        let mut random = LegacyRandom::new(3);
        let mut wild = 0;
        for _ in 0..2000 {
            let values = [(); 10].map(|()| random.standard_normal());
            let scores = modified_z_scores(&values).unwrap();
            wild += scores.iter().filter(|score| OUTLIER_SCORE < score.abs()).count();
        }
        assert!((250..450).contains(&wild), "{wild} of 20000");
    }
}
