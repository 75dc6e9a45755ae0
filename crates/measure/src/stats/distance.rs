//! How far apart two distributions lie.

/// A value, and how often it came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedValue {
    /// The value.
    pub value: f64,
    /// Any positive number: only shares of the sum count.
    pub weight: f64,
}

/// Earth mover's distance of two distributions on a line: how far their values lie apart in the mean where each is paired with one of
/// the same rank, which is the area between the two distribution functions (Vallender 1974). `None` where one has no values.
pub fn earth_movers(a: &[WeightedValue], b: &[WeightedValue]) -> Option<f64> {
    let sum = |of: &[WeightedValue]| of.iter().map(|point| point.weight).sum::<f64>();
    let (sum_a, sum_b) = (sum(a), sum(b));
    if !(sum_a > 0.0 && sum_b > 0.0) {
        return None;
    }
    let steps_a = a.iter().map(|point| (point.value, point.weight / sum_a));
    let mut steps: Vec<(f64, f64)> =
        steps_a.chain(b.iter().map(|point| (point.value, -point.weight / sum_b))).collect();
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut area, mut apart) = (0.0, 0.0_f64);
    for pair in steps.windows(2) {
        apart += pair[0].1;
        area += apart.abs() * (pair[1].0 - pair[0].0);
    }
    Some(area)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: &[(f64, f64)]) -> Vec<WeightedValue> {
        points.iter().map(|&(value, weight)| WeightedValue { value, weight }).collect()
    }

    /// The second and third are in the documentation of SciPy's `wasserstein_distance`.
    #[test]
    fn the_distance_is_the_work_of_moving_one_to_the_other() {
        let check = |a: &[(f64, f64)], b: &[(f64, f64)], expected: Option<f64>| {
            let found = earth_movers(&of(a), &of(b));
            let is_near = found.zip(expected).map(|pair| (pair.0 - pair.1).abs() < 1e-9);
            assert_eq!(is_near, expected.map(|_| true), "{a:?} {b:?}: {found:?}");
        };
        check(&[(3.0, 2.0)], &[(3.0, 5.0)], Some(0.0));
        check(
            &[(0.0, 1.0), (1.0, 1.0), (3.0, 1.0)],
            &[(5.0, 1.0), (6.0, 1.0), (8.0, 1.0)],
            Some(5.0),
        );
        check(&[(0.0, 3.0), (1.0, 1.0)], &[(0.0, 2.0), (1.0, 2.0)], Some(0.25));
        check(&[], &[(1.0, 1.0)], None);
    }
}
