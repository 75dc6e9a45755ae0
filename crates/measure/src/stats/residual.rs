//! Whether what a model leaves over looks like noise: drift, and shape.

use super::interval::Difference;
use super::sample::mean;
use statrs::distribution::{ContinuousCDF, Normal};

/// The slope of a straight line through points, with n − 2 degrees of freedom (Jain 1991, ch. 14.3 and 14.5): drift over the order of running.
/// `None` of fewer than three points, where x and y do not pair, or all x are the same.
pub fn slope(x: &[f64], y: &[f64]) -> Option<Difference> {
    if x.len() < 3 || x.len() != y.len() {
        return None;
    }
    let (mean_x, mean_y) = (mean(x)?, mean(y)?);
    let square: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let product: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    if square <= 0.0 {
        return None;
    }
    let estimate = product / square;
    let freedom = (x.len() - 2) as f64;
    let left = x.iter().zip(y).map(|(x, y)| (y - mean_y - estimate * (x - mean_x)).powi(2));
    let variance = left.sum::<f64>() / freedom;
    Some(Difference { estimate, standard_error: (variance / square).sqrt(), freedom })
}

/// How straight a normal quantile-quantile plot is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalPlot {
    /// Correlation of the sorted values with normal scores; 1 is a straight line.
    pub correlation: f64,
    /// Normal noise is below it in 1 % of samples, of more than a hundred values in fewer.
    pub least: f64,
}

/// Ryan and Joiner, Normal probability plots and tests for normality (1976), with Blom's scores and their formula for the bar at 1 %. `None` of fewer than five
/// values, or where all are the same.
pub fn normal_plot(values: &[f64]) -> Option<NormalPlot> {
    if values.len() < 5 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let normal = Normal::standard();
    let ranks = (0..sorted.len()).map(|rank| rank as f64 + 0.625);
    let scores: Vec<f64> = ranks.map(|rank| normal.inverse_cdf(rank / (n + 0.25))).collect();
    let middle = mean(&sorted)?;
    let product: f64 = sorted.iter().zip(&scores).map(|(value, z)| (value - middle) * z).sum();
    let squares: f64 = sorted.iter().map(|value| (value - middle).powi(2)).sum();
    let both = squares * scores.iter().map(|z| z.powi(2)).sum::<f64>();
    let least = 0.9963 - 0.0211 / n.sqrt() - 1.4106 / n + 3.1791 / (n * n);
    (both > 0.0).then(|| NormalPlot { correlation: product / both.sqrt(), least })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;

    /// Jain (1991), examples 14.1 and 14.5: processor time by disk I/Os; the 90 % interval of the slope.
    #[test]
    fn jains_disk_operations() {
        let operations = [14.0, 16.0, 27.0, 42.0, 39.0, 50.0, 83.0];
        let found = slope(&operations, &[2.0, 5.0, 7.0, 9.0, 10.0, 13.0, 20.0]).unwrap();
        assert_eq!(format!("{:.4}", found.estimate), "0.2438");
        assert_eq!(format!("{:.4}", found.standard_error), "0.0187");
        let interval = found.interval(0.90).unwrap();
        assert_eq!(format!("{:.4} {:.4}", interval.low, interval.high), "0.2061 0.2814");
        assert_eq!((slope(&[1.0, 2.0], &[1.0, 2.0]), slope(&[1.0; 3], &[1.0; 3])), (None, None));
    }

    /// The control group of R's `PlantGrowth`; the correlation as numpy's `corrcoef` has it, the bar at n = 10 as in Ryan and Joiner's table (0.8804).
    #[test]
    fn a_normal_plot_of_plants() {
        let found =
            normal_plot(&[4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14]).unwrap();
        assert_eq!(format!("{:.6} {:.4}", found.correlation, found.least), "0.977417 0.8804");
        assert_eq!((normal_plot(&[1.0; 4]), normal_plot(&[1.0; 9])), (None, None));
    }

    #[test]
    fn normal_noise_is_below_the_bar_in_1_percent() {
        let mut random = LegacyRandom::new(7);
        for n in [5, 10, 30, 100] {
            let mut below = 0;
            for _ in 0..2000 {
                let values: Vec<f64> = (0..n).map(|_| random.standard_normal()).collect();
                let plot = normal_plot(&values).unwrap();
                below += u32::from(plot.correlation < plot.least);
            }
            assert!((8..=36).contains(&below), "{n}: {below} of 2000");
        }
    }
}
