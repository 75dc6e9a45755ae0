//! Descriptive statistics of a sample: mean, median, standard deviation, coefficient of variation.

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// Median: the middle value, or the mean of the two middle values. `None` without values. Values must not be NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Some(sorted[half]),
        _ => mean(sorted.get(half.checked_sub(1)?..=half)?),
    }
}

/// Sample standard deviation, with the divisor n − 1. `None` for fewer than two values.
pub fn stdev(values: &[f64]) -> Option<f64> {
    let mean_value = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean_value).powi(2)).sum();
    (2 <= values.len()).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Coefficient of variation: sample standard deviation ÷ mean. `None` for fewer than two values, or if the mean is not positive.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean_value = mean(values).filter(|&mean| mean > 0.0)?;
    Some(stdev(values)? / mean_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jain, The Art of Computer Systems Performance Analysis (1991), example 13.4.
    #[test]
    fn mean_deviation_and_median_equal_jains() {
        let times = [1.5, 2.6, -1.8, 1.3, -0.5, 1.7, 2.4];
        assert_eq!(format!("{:.2}", mean(&times).unwrap()), "1.03");
        let stdev = stdev(&times).unwrap();
        assert_eq!(
            (format!("{:.2}", stdev * stdev), format!("{stdev:.2}")),
            ("2.57".into(), "1.60".into())
        );
        assert_eq!(median(&times), Some(1.5));
    }

    #[test]
    fn a_spread_needs_two_values() {
        assert_eq!(
            (mean(&[]), median(&[]), stdev(&[]), coefficient_of_variation(&[])),
            (None, None, None, None)
        );
        assert_eq!((mean(&[7.0]), median(&[7.0]), stdev(&[7.0])), (Some(7.0), Some(7.0), None));
        assert_eq!(
            (stdev(&[7.0, 7.0]), coefficient_of_variation(&[-1.0, 1.0]), median(&[4.0, 1.0])),
            (Some(0.0), None, Some(2.5))
        );
        assert_eq!(coefficient_of_variation(&[9.0, 11.0]), Some(2.0_f64.sqrt() / 10.0));
    }
}
