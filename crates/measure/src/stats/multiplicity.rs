//! Correction for multiple tests. Without it, one of twenty tests at 5 % is expected to find a difference that does not exist.

/// Adjusts p-values by Holm's method (Scandinavian Journal of Statistics 6, 1979), in the given order. If each is compared with a
/// significance level, the probability of any false finding is at most this level.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &test) in order.iter().enumerate() {
        largest = largest.max(p[test] * (p.len() - rank) as f64).min(1.0);
        adjusted[test] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Wikipedia's article on the Holm–Bonferroni method: at 5 %, the tests with 0.005 and 0.01 are significant.
    #[test]
    fn p_values_are_adjusted_by_rank() {
        let text: Vec<String> =
            holm(&[0.01, 0.04, 0.03, 0.005]).iter().map(|p| format!("{p:.3}")).collect();
        assert_eq!(text, ["0.030", "0.060", "0.060", "0.020"]);
        assert_eq!(
            (holm(&[]), holm(&[0.2]), holm(&[0.9, 0.8])),
            (vec![], vec![0.2], vec![1.0, 1.0])
        );
    }
}
