//! Many tests at once: of twenty, one finds a difference at 5 % where there is none.

/// p of each test such that the chance of even one false finding among all stays what each is compared with (Holm, Scandinavian
/// Journal of Statistics 6, 1979). In the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &at) in order.iter().enumerate() {
        largest = largest.max(p[at] * (p.len() - rank) as f64).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four tests at 5 %: 0.005 and 0.01 are found, 0.03 and 0.04 are not (Wikipedia, Holm–Bonferroni method, its example).
    #[test]
    fn the_smallest_is_compared_with_the_strictest_bar() {
        let text: Vec<String> =
            holm(&[0.01, 0.04, 0.03, 0.005]).iter().map(|p| format!("{p:.3}")).collect();
        assert_eq!(text, ["0.030", "0.060", "0.060", "0.020"]);
        assert_eq!(
            (holm(&[]), holm(&[0.2]), holm(&[0.9, 0.8])),
            (vec![], vec![0.2], vec![1.0, 1.0])
        );
    }
}
