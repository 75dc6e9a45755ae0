//! Whether what a model leaves over looks like noise: drift, shape, and the scale on which effects add up.

use super::interval::Difference;
use super::model::{Cell, Model, Term};
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
    let left = |(x, y): (&f64, &f64)| (y - mean_y - estimate * (x - mean_x)).powi(2);
    let freedom = (x.len() - 2) as f64;
    let variance = x.iter().zip(y).map(left).sum::<f64>() / freedom;
    Some(Difference { estimate, standard_error: (variance / square).sqrt(), freedom })
}

/// How straight a normal quantile-quantile plot is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalPlot {
    /// Of the sorted values with normal scores; 1 is a straight line.
    pub correlation: f64,
    /// Normal noise is below it in 5 % of samples.
    pub least: f64,
}

/// Ryan and Joiner, Normal probability plots and tests for normality (1976), with Blom's scores and their formula for the bar at 5 %. `None` of fewer than five
/// values, or where all are the same.
pub fn normal_plot(values: &[f64]) -> Option<NormalPlot> {
    if values.len() < 5 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let normal = Normal::standard();
    let score = |rank: usize| normal.inverse_cdf((rank as f64 + 0.625) / (n + 0.25));
    let scores: Vec<f64> = (0..sorted.len()).map(score).collect();
    let middle = mean(&sorted)?;
    let product: f64 = sorted.iter().zip(&scores).map(|(value, z)| (value - middle) * z).sum();
    let squares = |of: &[f64], middle: f64| of.iter().map(|x| (x - middle).powi(2)).sum::<f64>();
    let both = squares(&sorted, middle) * squares(&scores, 0.0);
    let least = 1.0063 - 0.1288 / n.sqrt() - 0.6118 / n + 1.3505 / (n * n);
    (both > 0.0).then(|| NormalPlot { correlation: product / both.sqrt(), least })
}

/// The power of a response on which a model fits best: 1 is the response itself, 0 its logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "with its 95 % interval")]
pub struct BoxCox {
    pub lambda: f64,
    pub low: f64,
    pub high: f64,
}

/// Half of chi-squared's 95 % quantile with one degree of freedom.
const LIKELIHOOD_DROP: f64 = 1.920_729;

/// Box and Cox, An analysis of transformations (J. Royal Statistical Society B 26, 1964), in steps of 0.01 from −3 to 3. `None` where a value is not positive, or the
/// model leaves nothing over.
pub fn box_cox(cells: &[Cell], counts: &[usize], terms: &[Term]) -> Option<BoxCox> {
    let values: Vec<f64> = cells.iter().flat_map(|cell| &cell.values).copied().collect();
    if values.is_empty() || values.iter().any(|&value| value <= 0.0) {
        return None;
    }
    let model = Model::new(cells, counts, terms);
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let geometric = mean(&logarithms)?.exp();
    let n = values.len() as f64;
    let likelihood = |lambda: f64| {
        let transform = |value: &f64| match lambda {
            0.0 => geometric * value.ln(),
            _ => (value.powf(lambda) - 1.0) / (lambda * geometric.powf(lambda - 1.0)),
        };
        let turned = cells.iter().map(|cell| {
            let values = cell.values.iter().map(transform).collect();
            Cell { levels: cell.levels.clone(), values }
        });
        let turned: Vec<Cell> = turned.collect();
        let fitted = model.fitted(&turned);
        let of_cell = |(cell, fitted): (&Cell, f64)| {
            cell.values.iter().map(|value| (value - fitted).powi(2)).sum::<f64>()
        };
        let squares: f64 = turned.iter().zip(fitted).map(of_cell).sum();
        (squares > 0.0).then(|| -n / 2.0 * (squares / n).ln())
    };
    let tried = (-300..=300).map(|step| f64::from(step) / 100.0);
    let tried = tried.map(|lambda| Some((lambda, likelihood(lambda)?)));
    let tried: Vec<(f64, f64)> = tried.collect::<Option<_>>()?;
    let (lambda, best) = tried.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut near = tried.iter().filter(|(_, found)| best - LIKELIHOOD_DROP <= *found);
    let low = near.next()?.0;
    Some(BoxCox { lambda, low, high: near.next_back().map_or(low, |last| last.0) })
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

    /// The control group of R's `PlantGrowth`; the correlation as numpy's `corrcoef` has it, the bar at n = 10 as in Ryan and Joiner's table (0.9180).
    #[test]
    fn a_normal_plot_of_plants() {
        let found =
            normal_plot(&[4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14]).unwrap();
        assert_eq!(format!("{:.6} {:.3}", found.correlation, found.least), "0.977417 0.918");
        assert_eq!((normal_plot(&[1.0; 4]), normal_plot(&[1.0; 9])), (None, None));
    }

    #[test]
    fn normal_noise_is_below_the_bar_in_5_percent() {
        let mut random = LegacyRandom::new(7);
        for n in [5, 10, 30] {
            let mut below = 0;
            for _ in 0..2000 {
                let values: Vec<f64> = (0..n).map(|_| random.standard_normal()).collect();
                let plot = normal_plot(&values).unwrap();
                below += u32::from(plot.correlation < plot.least);
            }
            assert!((60..=140).contains(&below), "{n}: {below} of 2000");
        }
    }

    /// Box and Cox (1964): survival times of three poisons and four treatments; their additive model has λ = −0.75, −1.13 to −0.37.
    #[test]
    fn box_and_cox_on_poisons() {
        const TIMES: [[f64; 4]; 12] = [
            [0.31, 0.45, 0.46, 0.43],
            [0.82, 1.10, 0.88, 0.72],
            [0.43, 0.45, 0.63, 0.76],
            [0.45, 0.71, 0.66, 0.62],
            [0.36, 0.29, 0.40, 0.23],
            [0.92, 0.61, 0.49, 1.24],
            [0.44, 0.35, 0.31, 0.40],
            [0.56, 1.02, 0.71, 0.38],
            [0.22, 0.21, 0.18, 0.23],
            [0.30, 0.37, 0.38, 0.29],
            [0.23, 0.25, 0.24, 0.22],
            [0.30, 0.36, 0.31, 0.33],
        ];
        let cells = TIMES.iter().enumerate();
        let cells =
            cells.map(|(at, times)| Cell { levels: vec![at / 4, at % 4], values: times.into() });
        let cells: Vec<Cell> = cells.collect();
        let found = box_cox(&cells, &[3, 4], &[vec![0], vec![1]]).unwrap();
        assert_eq!((found.lambda, found.low), (-0.75, -1.13));
        // They read −0.37 off a drawing.
        assert_eq!(found.high, -0.36);
        let zero = [Cell { levels: vec![0], values: vec![0.0, 1.0] }];
        assert_eq!(box_cox(&zero, &[1], &[]), None);
    }
}
