//! How throughput grows with processes: Amdahl's law and the Universal Scalability Law, with what is to be doubted of a fit.

use super::interval::{Difference, Interval};
use super::model::swept;
use super::sample::mean;
use serde::Serialize;

/// Throughput of one ÷ (1 + contention · (N − 1) + coherence · N · (N − 1)), times N (Gunther, Guerrilla Capacity Planning, 2007, ch. 4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// Throughput of one.
    pub of_one: f64,
    /// Share of the work that is done one after another: Amdahl's serial fraction.
    pub contention: f64,
    /// Cost of each agreeing with each; 0 in Amdahl's law.
    pub coherence: f64,
    /// Share of the variation of throughput that the fit explains.
    pub r_squared: f64,
    /// Standard errors of `of_one`, `contention`, `coherence`, from the curvature at the best fit; `None` of those that are at their bound, or without degrees of freedom.
    pub standard_errors: [Option<f64>; 3],
    /// Points less free parameters.
    pub freedom: f64,
    /// By how much the fit misses a point at most, as a share of the most throughput.
    pub misfit: f64,
    /// Reasons why it may mislead.
    pub doubts: Vec<ScalingDoubt>,
}

/// Reason why a fit may mislead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalingDoubt {
    /// Fewer than five numbers of processes.
    FewPoints,
    /// More throughput a process than with fewer: a cache or a window, not the law.
    Superlinear,
    /// A coefficient would be best below 0, and is held at it.
    AtBound,
    /// Its peak lies beyond what was measured.
    PeakBeyondData,
    /// The most was measured beyond its peak, with another number between.
    MoreBeyondPeak,
    /// It misses a point by more than a tenth of the most throughput.
    Misfit,
    /// The limit of Amdahl's law is more than twice what was measured.
    LimitBeyondData,
}

/// Points with which a fit is not doubted for their number.
const POINTS_ENOUGH: usize = 5;
/// A point that is missed by a larger share of the most throughput is another law's.
const MISFIT_MAX: f64 = 0.1;
/// A limit of more times what was measured is far from it.
const LIMIT_TIMES_MAX: f64 = 2.0;
/// More throughput a process by this share is superlinear; less is noise.
const SUPERLINEAR_MIN: f64 = 0.02;

impl Scaling {
    /// Value for `n`.
    pub fn throughput(&self, n: f64) -> f64 {
        self.of_one * gain(n, self.contention, self.coherence)
    }

    /// Interval of parameter `of_one` (0), `contention` (1) or `coherence` (2), by Student's t; as good as the law is straight near the fit. `None` without a standard error.
    pub fn interval(&self, parameter: usize, confidence: f64) -> Option<Interval> {
        let estimate = [self.of_one, self.contention, self.coherence][parameter];
        let standard_error = self.standard_errors[parameter]?;
        Difference { estimate, standard_error, freedom: self.freedom }.interval(confidence)
    }

    /// The throughput that it grows to without coherence; `None` with it, or where it grows without end.
    pub fn limit(&self) -> Option<f64> {
        (self.coherence == 0.0 && self.contention > 0.0).then(|| self.of_one / self.contention)
    }

    /// The number, from one on, with the most throughput; `None` where more is always more.
    pub fn peak(&self) -> Option<f64> {
        let square = (1.0 - self.contention).max(0.0) / self.coherence;
        (self.coherence > 0.0).then(|| square.sqrt().max(1.0))
    }

    /// Whether the points are of such a law: none grows more than linearly, and none is far from the fit.
    pub fn fits(&self) -> bool {
        let unfit = [ScalingDoubt::Superlinear, ScalingDoubt::Misfit];
        !self.doubts.iter().any(|doubt| unfit.contains(doubt))
    }
}

/// The Universal Scalability Law by least squares, neither coefficient below 0. Points are (N, throughput); `None` of fewer than four different N, or where a value is not positive.
pub fn universal_scalability(points: &[(f64, f64)]) -> Option<Scaling> {
    fit(points, &[&[1, 2], &[1], &[2], &[]], 4)
}

/// Amdahl's law: no coherence (Amdahl, AFIPS 30, 1967). `None` of fewer than three different N, or where a value is not positive.
pub fn amdahl(points: &[(f64, f64)]) -> Option<Scaling> {
    fit(points, &[&[1], &[]], 3)
}

/// Parameters: throughput of one, contention, coherence.
type Parameters = [f64; 3];

fn gain(n: f64, contention: f64, coherence: f64) -> f64 {
    n / (1.0 + contention * (n - 1.0) + coherence * n * (n - 1.0))
}

fn squares(points: &[(f64, f64)], of: &Parameters) -> f64 {
    points.iter().map(|(n, rate)| (rate - of[0] * gain(*n, of[1], of[2])).powi(2)).sum()
}

/// The best that is within bounds, of each choice of free coefficients; the others are 0.
fn fit(points: &[(f64, f64)], free: &[&[usize]], numbers_least: usize) -> Option<Scaling> {
    let mut numbers: Vec<f64> = points.iter().map(|point| point.0).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let is_positive = points.iter().all(|&(n, rate)| 1.0 <= n && rate > 0.0);
    if numbers.len() < numbers_least || !is_positive {
        return None;
    }
    let fits =
        free.iter().flat_map(|free| starts(points, free).into_iter().map(|start| (start, *free)));
    let fits = fits.filter_map(|(start, free)| Some((descend(points, start, free)?, free)));
    let bounded = fits.filter(|(found, _)| found.iter().all(|&value| 0.0 <= value));
    let (found, free_in_best) =
        bounded.min_by(|(a, _), (b, _)| squares(points, a).total_cmp(&squares(points, b)))?;
    let rates: Vec<f64> = points.iter().map(|point| point.1).collect();
    let middle = mean(&rates)?;
    let total: f64 = rates.iter().map(|rate| (rate - middle).powi(2)).sum();
    let mut scaling = Scaling {
        of_one: found[0],
        contention: found[1],
        coherence: found[2],
        r_squared: 1.0 - squares(points, &found) / total,
        standard_errors: standard_errors(points, &found, free_in_best),
        freedom: freedom(points, free_in_best),
        misfit: 0.0,
        doubts: Vec::new(),
    };
    let most = rates.iter().copied().fold(0.0, f64::max);
    let misses = points.iter().map(|&(n, rate)| (scaling.throughput(n) - rate).abs() / most);
    scaling.misfit = misses.fold(0.0, f64::max);
    let limit = scaling.limit().is_some_and(|limit| LIMIT_TIMES_MAX * most < limit);
    let is_at_bound = free_in_best.len() < free[0].len();
    let beyond = scaling.peak().is_some_and(|peak| numbers[numbers.len() - 1] < peak);
    let is_passed = scaling.peak().is_some_and(|peak| is_more_beyond(points, peak));
    let doubts = [
        (ScalingDoubt::FewPoints, numbers.len() < POINTS_ENOUGH),
        (ScalingDoubt::Superlinear, is_superlinear(points)),
        (ScalingDoubt::AtBound, is_at_bound),
        (ScalingDoubt::PeakBeyondData, beyond),
        (ScalingDoubt::MoreBeyondPeak, is_passed),
        (ScalingDoubt::Misfit, MISFIT_MAX < scaling.misfit),
        (ScalingDoubt::LimitBeyondData, limit),
    ];
    scaling.doubts = doubts.into_iter().filter(|(_, is)| *is).map(|(doubt, _)| doubt).collect();
    Some(scaling)
}

/// Whether the most throughput is of a number above `peak`, and another lies between: of what rises up to its peak and falls from there, the most is next to it.
fn is_more_beyond(points: &[(f64, f64)], peak: f64) -> bool {
    let most = points.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.is_some_and(|most| points.iter().any(|point| peak <= point.0 && point.0 < most.0))
}

/// Whether some N has more throughput a process than a smaller one.
fn is_superlinear(points: &[(f64, f64)]) -> bool {
    points.iter().any(|(large, rate)| {
        let smaller = points.iter().filter(|small| small.0 < *large);
        let mut each = smaller.map(|(small, rate)| rate / small);
        each.any(|of_small| of_small * (1.0 + SUPERLINEAR_MIN) < rate / large)
    })
}

/// Where to begin, so that the best of all is found.
fn starts(points: &[(f64, f64)], free: &[usize]) -> Vec<Parameters> {
    const TRIED: [f64; 5] = [0.5, 0.1, 0.01, 0.001, 1e-5];
    let of_one = points.iter().map(|(n, rate)| rate / n).fold(0.0, f64::max);
    let mut starts = vec![[of_one, 0.0, 0.0]];
    for &parameter in free {
        let with_each = starts.into_iter().flat_map(|mut start| {
            TRIED.map(|tried| {
                start[parameter] = tried;
                start
            })
        });
        starts = with_each.collect();
    }
    starts
}

/// Levenberg and Marquardt's descent (Marquardt, SIAM Journal 11, 1963) in the throughput of one and the free coefficients.
fn descend(points: &[(f64, f64)], start: Parameters, free: &[usize]) -> Option<Parameters> {
    let (mut at, mut damping) = (start, 1e-3);
    let mut best = squares(points, &at);
    for _ in 0..200 {
        let (normal, slope) = normal_equations(points, &at, free);
        let mut damped = normal;
        (0..damped.len()).for_each(|i| damped[i][i] *= 1.0 + damping);
        let (inverse, _) = swept(damped);
        let mut next = at;
        for (i, &parameter) in std::iter::once(&0).chain(free).enumerate() {
            next[parameter] += inverse[i].iter().zip(&slope).map(|(a, b)| a * b).sum::<f64>();
        }
        let found = squares(points, &next);
        if found < best {
            let is_done = best - found <= 1e-14 * best;
            (at, best, damping) = (next, found, damping / 10.0);
            if is_done {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    best.is_finite().then_some(at)
}

/// Products of the derivatives with each other, and with what is left over.
fn normal_equations(
    points: &[(f64, f64)],
    at: &Parameters,
    free: &[usize],
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let size = 1 + free.len();
    let (mut normal, mut slope) = (vec![vec![0.0; size]; size], vec![0.0; size]);
    for &(n, rate) in points {
        let gain = gain(n, at[1], at[2]);
        let by_divisor = -at[0] * gain * gain / n;
        let all = [gain, by_divisor * (n - 1.0), by_divisor * n * (n - 1.0)];
        let own: Vec<f64> = std::iter::once(&0).chain(free).map(|&which| all[which]).collect();
        let left = rate - at[0] * gain;
        for i in 0..size {
            slope[i] += own[i] * left;
            (0..size).for_each(|j| normal[i][j] += own[i] * own[j]);
        }
    }
    (normal, slope)
}

fn freedom(points: &[(f64, f64)], free: &[usize]) -> f64 {
    points.len() as f64 - 1.0 - free.len() as f64
}

fn standard_errors(points: &[(f64, f64)], at: &Parameters, free: &[usize]) -> [Option<f64>; 3] {
    let mut errors = [None; 3];
    let freedom = freedom(points, free);
    if freedom > 0.0 {
        let variance = squares(points, at) / freedom;
        let (inverse, _) = swept(normal_equations(points, at, free).0);
        for (i, &parameter) in std::iter::once(&0).chain(free).enumerate() {
            errors[parameter] = Some((variance * inverse[i][i]).sqrt());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDM_91: [(f64, f64); 7] = [
        (1.0, 64.9),
        (18.0, 995.9),
        (36.0, 1652.4),
        (72.0, 1853.2),
        (108.0, 1828.9),
        (144.0, 1775.0),
        (216.0, 1702.2),
    ];

    /// A Sun SPARCcenter 2000 in SPEC SDM91, as the R package `usl` prints its fit: coefficients and their standard errors.
    #[test]
    fn gunthers_sparccenter() {
        let found = universal_scalability(&SDM_91).unwrap();
        assert_eq!(format!("{:.7}", found.contention), "0.0277285");
        assert_eq!(format!("{:.7}", found.coherence), "0.0001044");
        assert_eq!(format!("{:.5}", found.of_one), "89.99523");
        let [of_one, contention, coherence] = found.standard_errors.map(Option::unwrap);
        assert_eq!(format!("{of_one:.4} {contention:.7}"), "14.2135 0.0091217");
        assert_eq!(format!("{coherence:.7}"), "0.0000199");
        assert_eq!(format!("{:.1}", found.peak().unwrap()), "96.5");
        let interval = found.interval(1, 0.95).unwrap();
        // t(4) is 2.776.
        assert_eq!(format!("{:.4} {:.4}", interval.low, interval.high), "0.0024 0.0531");
        assert_eq!(found.doubts, []);
    }

    #[test]
    fn a_law_is_found_where_it_holds() {
        let law = |n: f64| 50.0 * gain(n, 0.05, 0.001);
        let points = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, law(n)));
        let found = universal_scalability(&points).unwrap();
        assert!((found.contention - 0.05).abs() < 1e-6 && (found.coherence - 0.001).abs() < 1e-7);
        assert_eq!(found.doubts, [ScalingDoubt::PeakBeyondData]);
        assert!((found.throughput(8.0) - law(8.0)).abs() < 1e-4 && found.r_squared > 0.999_999);
        let serial = [1.0, 2.0, 4.0].map(|n| (n, 10.0 * gain(n, 0.2, 0.0)));
        let found = amdahl(&serial).unwrap();
        assert!((found.contention - 0.2).abs() < 1e-6 && found.peak().is_none());
        assert_eq!(found.doubts, [ScalingDoubt::FewPoints]);
    }

    #[test]
    fn what_no_law_has_is_doubted() {
        let points = [(1.0, 10.0), (2.0, 22.0), (4.0, 50.0), (8.0, 110.0)];
        let found = universal_scalability(&points).unwrap();
        let doubts = [ScalingDoubt::FewPoints, ScalingDoubt::Superlinear, ScalingDoubt::AtBound];
        assert_eq!((found.contention, found.coherence), (0.0, 0.0));
        assert_eq!(found.doubts, doubts);
        assert_eq!(universal_scalability(&points[..3]), None);
        assert_eq!(amdahl(&[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)]), None);
        // A peak is doubted that the most throughput lies beyond, and none next to the most.
        let passed = |last: f64| {
            let points =
                [(1.0, 10.0), (2.0, 18.0), (4.0, 29.0), (8.0, 33.0), (16.0, 32.0), (32.0, last)];
            let found = universal_scalability(&points).unwrap();
            assert!(found.fits() && found.peak().unwrap() < 16.0, "{found:?}");
            found.doubts.contains(&ScalingDoubt::MoreBeyondPeak)
        };
        assert!(passed(33.5) && !passed(31.0));
        // What turns back is not Amdahl's, and what hardly bends says little of where it ends.
        let turns = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, 10.0 * gain(n, 0.05, 0.02)));
        let found = amdahl(&turns).unwrap();
        assert!(found.misfit > 0.1 && found.doubts.contains(&ScalingDoubt::Misfit), "{found:?}");
        let bends = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, 10.0 * gain(n, 0.01, 0.0)));
        let found = amdahl(&bends).unwrap();
        assert_eq!(found.doubts, [ScalingDoubt::LimitBeyondData]);
        assert!((found.limit().unwrap() - 1000.0).abs() < 1.0, "{found:?}");
    }
}
