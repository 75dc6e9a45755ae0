//! Where more stops being worth it, for the eye: no test.

/// Find the knee of a curve that rises ever more slowly: Kneedle (Satopää, Albrecht, Irwin and Raghavan, ICDCS workshops 2011) with a
/// sensitivity of 1, without smoothing. Points are (x, y) with rising x. `None` of fewer than four points, or where it does not bend.
pub fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let low = points.iter().map(|point| point.1).reduce(f64::min)?;
    let high = points.iter().map(|point| point.1).reduce(f64::max)?;
    if points.len() < 4 || high <= low || last.0 <= first.0 || last.1 <= first.1 {
        return None;
    }
    // How far the curve is above the diagonal of its box.
    let over =
        points.iter().map(|(x, y)| (y - low) / (high - low) - (x - first.0) / (last.0 - first.0));
    let over: Vec<f64> = over.collect();
    let step = 1.0 / (points.len() - 1) as f64;
    (1..points.len() - 1).find(|&at| {
        let is_peak = over[at - 1] < over[at] && over[at + 1] <= over[at];
        // It is the knee if the curve falls by a step below it before it rises to another peak.
        let mut after = over[at + 1..].iter().take_while(|&&other| other <= over[at]);
        is_peak && after.any(|other| *other < over[at] - step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 2 of the paper: y = 5 − 1 ÷ (x + 0.1) at ten x from 0 to 1 has its knee at 0.22.
    #[test]
    fn the_knee_of_the_papers_figure() {
        let curve = |i: u32| {
            let x = f64::from(i) / 9.0;
            (x, 5.0 - 1.0 / (x + 0.1))
        };
        let points: Vec<(f64, f64)> = (0..10).map(curve).collect();
        assert_eq!(format!("{:.2}", points[knee(&points).unwrap()].0), "0.22");
    }

    #[test]
    fn a_straight_line_has_none() {
        let line: Vec<(f64, f64)> = (0..6).map(|i| (f64::from(i), 2.0 * f64::from(i))).collect();
        assert_eq!((knee(&line), knee(&line[..3]), knee(&[])), (None, None, None));
        let down = [(0.0, 4.0), (1.0, 3.0), (2.0, 3.0), (3.0, 3.0)];
        assert_eq!(knee(&down), None);
    }
}
