//! The slope of a straight line through points, which shows drift.

use super::interval::Difference;
use super::sample::mean;

/// Estimates the slope of the regression line, with n − 2 degrees of freedom (Jain 1991, ch. 14.3 and 14.5). `None` for fewer than three points, if the
/// numbers of x and y differ, or if all x are equal.
pub fn slope(x: &[f64], y: &[f64]) -> Option<Difference> {
    if x.len() < 3 || x.len() != y.len() {
        return None;
    }
    let mean_x = mean(x)?;
    let mean_y = mean(y)?;
    let square: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let product: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    if square <= 0.0 {
        return None;
    }
    let estimate = product / square;
    let freedom = (x.len() - 2) as f64;
    let residuals = x.iter().zip(y).map(|(x, y)| (y - mean_y - estimate * (x - mean_x)).powi(2));
    let variance = residuals.sum::<f64>() / freedom;
    Some(Difference { estimate, standard_error: (variance / square).sqrt(), freedom })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jain (1991), examples 14.1 and 14.5: processor time as a function of disk I/Os, with the 90 % interval of the slope.
    #[test]
    fn the_slope_equals_jains() {
        let operations = [14.0, 16.0, 27.0, 42.0, 39.0, 50.0, 83.0];
        let found = slope(&operations, &[2.0, 5.0, 7.0, 9.0, 10.0, 13.0, 20.0]).unwrap();
        assert_eq!(format!("{:.4}", found.estimate), "0.2438");
        assert_eq!(format!("{:.4}", found.standard_error), "0.0187");
        let interval = found.interval(0.90).unwrap();
        assert_eq!(format!("{:.4} {:.4}", interval.low, interval.high), "0.2061 0.2814");
        assert_eq!((slope(&[1.0, 2.0], &[1.0, 2.0]), slope(&[1.0; 3], &[1.0; 3])), (None, None));
    }
}
