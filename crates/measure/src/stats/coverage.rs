//! Checks the coverage of each interval in 2 000 seeded simulations of five runs each.

use super::*;
use feedrate_spec::plan::mt19937::LegacyRandom;

const SIMULATIONS: u32 = 2000;

/// Checks that the 95 % interval contains `truth` in 95 ± 2 % of simulations. `interval` is called with two samples of standard normal noise.
#[track_caller]
fn check(name: &str, truth: f64, interval: impl Fn(&[f64], &[f64]) -> Option<Interval>) {
    let coverage = coverage_percent(truth, interval);
    assert!((coverage - 95.0).abs() <= 2.0, "{name}: {coverage} %");
}

fn coverage_percent(truth: f64, interval: impl Fn(&[f64], &[f64]) -> Option<Interval>) -> f64 {
    let mut random = LegacyRandom::new(2025);
    let mut draw = || [(); 5].map(|()| random.standard_normal());
    let mut covered = 0;
    for _ in 0..SIMULATIONS {
        let found = interval(&draw(), &draw()).unwrap();
        covered += u32::from(found.low <= truth && truth <= found.high);
    }
    100.0 * f64::from(covered) / f64::from(SIMULATIONS)
}

fn normal(noise: &[f64], mean: f64, stdev: f64) -> Vec<f64> {
    noise.iter().map(|z| mean + stdev * z).collect()
}

fn log_normal(noise: &[f64], median: f64, sigma: f64) -> Vec<f64> {
    noise.iter().map(|z| median * (sigma * z).exp()).collect()
}

#[test]
fn intervals_cover_normal_noise() {
    check("mean", 50.0, |a, _| mean_interval(&normal(a, 50.0, 3.0), 0.95));
    check("stdev", 3.0, |a, _| stdev_interval(&normal(a, 50.0, 3.0), 0.95));
    for spread in [3.0, 1.0, 0.3] {
        check("welch difference", 2.0, |a, b| {
            welch_difference(&normal(a, 50.0, 3.0), &normal(b, 52.0, spread))?.interval(0.95)
        });
    }
    check("paired difference", 2.0, |a, b| {
        let partners: Vec<f64> =
            a.iter().zip(b).map(|(shared, z)| 52.0 + 9.0 * shared + z).collect();
        paired_difference(&normal(a, 50.0, 9.0), &partners)?.interval(0.95)
    });
    check("ratio of nearly normal values", 1.04, |a, b| {
        Some(welch_log_ratio(&normal(a, 50.0, 1.0), &normal(b, 52.0, 1.0))?.interval(0.95)?.exp())
    });
}

/// With normal noise, the interval of percentages has the coverage of Student's t. With skewed values near 0 or 100 %, it is better.
#[test]
fn intervals_cover_percentages() {
    for mean in [50.0, 90.0] {
        check("percentages", mean, |a, _| percent_interval(&normal(a, mean, 2.0), 0.95));
    }
    // A step computes for 50 ms, and waits for 50 ms on average.
    check("share of sums", 50.0, |a, _| {
        let computes = [50.0; 5];
        share_interval(&computes, &normal(a, 100.0, 10.0), 0.95)
    });
    let skewed = |z: f64| 100.0 / (1.0 + (-3.0 - 0.5 * z).exp());
    let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let mean: f64 =
        (-800..800).map(|z| f64::from(z) / 100.0).map(|z| 0.01 * skewed(z) * density(z)).sum();
    let values = |a: &[f64]| a.iter().map(|z| skewed(*z)).collect::<Vec<f64>>();
    let coverage = coverage_percent(mean, |a, _| percent_interval(&values(a), 0.95));
    let coverage_of_t = coverage_percent(mean, |a, _| mean_interval(&values(a), 0.95));
    assert!(coverage_of_t + 1.0 < coverage && 93.0 < coverage, "{coverage} %, {coverage_of_t} %");
    let found = percent_interval(&[98.4, 98.3, 79.9], 0.95).unwrap();
    assert!(0.0 < found.low && found.high < 100.0 && (found.estimate - 92.2).abs() < 1e-9);
    // Values without variation, and values that are no percentages.
    let text =
        |found: Interval| format!("{:.1} {:.1} {:.1}", found.estimate, found.low, found.high);
    assert_eq!(text(percent_interval(&[100.0, 100.0], 0.95).unwrap()), "100.0 100.0 100.0");
    assert_eq!(percent_interval(&[90.0, 120.0], 0.95), mean_interval(&[90.0, 120.0], 0.95));
}

#[test]
fn intervals_cover_log_normal_noise() {
    for sigma in [0.1, 0.5_f64] {
        check("geometric mean", 50.0, |a, _| {
            geometric_mean_interval(&log_normal(a, 50.0, sigma), 0.95)
        });
        check("welch ratio", 1.5, |a, b| {
            let b = log_normal(b, 75.0, sigma);
            Some(welch_log_ratio(&log_normal(a, 50.0, sigma), &b)?.interval(0.95)?.exp())
        });
        check("welch difference", 25.0 * (sigma * sigma / 2.0).exp(), |a, b| {
            let b = log_normal(b, 75.0, sigma);
            welch_difference(&log_normal(a, 50.0, sigma), &b)?.interval(0.95)
        });
        check("paired ratio", 1.5, |a, b| {
            let partners: Vec<f64> =
                a.iter().zip(b).map(|(shared, z)| 75.0 * (shared + sigma * z).exp()).collect();
            Some(paired_log_ratio(&log_normal(a, 50.0, 1.0), &partners)?.interval(0.95)?.exp())
        });
    }
}

/// Two factors with two and three levels, and five runs of each of the six combinations. `value` is called with both levels and noise.
fn crossed(random: &mut LegacyRandom, value: impl Fn(usize, usize, f64) -> f64) -> Vec<Cell> {
    let combinations = (0..6).map(|i| (i / 3, i % 3));
    let cells = combinations.map(|(a, b)| {
        let values = (0..5).map(|_| value(a, b, random.standard_normal())).collect();
        Cell { levels: vec![a, b], values }
    });
    cells.collect()
}

/// Checks the coverage of the effect of a level, of differences of two levels, and of an interaction.
fn check_effects(name: &str, value: impl Fn(usize, usize, f64) -> f64) {
    let terms = [vec![0], vec![1], vec![0, 1]];
    let mut random = LegacyRandom::new(1908);
    let mut covered = [0_u32; 4];
    for _ in 0..SIMULATIONS {
        let cells = crossed(&mut random, &value);
        let model = Model::new(&cells, &[2, 3], &terms);
        let without_noise: Vec<Cell> = cells
            .iter()
            .map(|cell| {
                let value = value(cell.levels[0], cell.levels[1], 0.0);
                Cell { levels: cell.levels.clone(), values: vec![value] }
            })
            .collect();
        let combinations = [
            model.effect(&[(1, 2)]),
            model.difference(0, 0, 1),
            model.difference(1, 0, 2),
            model.interaction(
                LevelStep { factor: 0, from: 0, to: 1 },
                LevelStep { factor: 1, from: 0, to: 2 },
            ),
        ];
        for (count, combination) in covered.iter_mut().zip(combinations) {
            let combination = combination.unwrap();
            let interval = combination.welch_difference(&cells).unwrap().interval(0.95).unwrap();
            let truth = combination.estimate(&without_noise);
            *count += u32::from(interval.low <= truth && truth <= interval.high);
        }
    }
    for (i, count) in covered.into_iter().enumerate() {
        let coverage = 100.0 * f64::from(count) / f64::from(SIMULATIONS);
        assert!((coverage - 95.0).abs() <= 2.0, "{name}, combination {i}: {coverage} %");
    }
}

/// The noise is normal with equal deviations, normal with unequal deviations, or log-normal.
#[test]
fn intervals_cover_effects_of_factors() {
    let mean = |a: usize, b: usize| 50.0 + 4.0 * a as f64 + (a * b) as f64 - 2.0 * b as f64;
    check_effects("normal", |a, b, z| mean(a, b) + 3.0 * z);
    check_effects("normal, unequal", |a, b, z| mean(a, b) + 0.3 * (1 + 5 * a + b) as f64 * z);
    for sigma in [0.1, 0.5] {
        check_effects("log-normal", |a, b, z| (mean(a, b) * (sigma * z).exp()).ln());
    }
}

/// This is why the geometric mean is used for rates and durations.
#[test]
fn the_arithmetic_mean_of_log_normal_values_is_covered_only_for_small_noise() {
    let mean_of = |sigma: f64| 50.0 * (sigma * sigma / 2.0).exp();
    check("mean", mean_of(0.1), |a, _| mean_interval(&log_normal(a, 50.0, 0.1), 0.95));
    let coverage =
        coverage_percent(mean_of(0.5), |a, _| mean_interval(&log_normal(a, 50.0, 0.5), 0.95));
    assert!(coverage < 93.0, "{coverage} %");
}
