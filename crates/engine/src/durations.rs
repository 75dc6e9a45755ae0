//! Durations of compute and preprocessing: constant, or drawn from DLIO's distributions (`utility.py:sleep`).

use feedrate_spec::workload::TimeSpec;
use rand_distr::{Distribution, Exp, Gamma, Normal, Poisson, Uniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// A sequence of durations.
pub struct Durations {
    random: Xoshiro256PlusPlus,
    /// Draws seconds; `None` if each duration is the mean.
    draw: Option<Draw>,
    mean_s: f64,
    factor: f64,
}

type Draw = Box<dyn Fn(&mut Xoshiro256PlusPlus) -> f64 + Send + Sync>;

impl Durations {
    /// Creates the sequence for `seed`. If the parameters of a distribution are invalid, every duration is its mean.
    pub fn new(spec: TimeSpec, seed: u64) -> Self {
        let draw = match spec {
            TimeSpec::None | TimeSpec::Constant { .. } => None,
            TimeSpec::Normal { mean, stdev } => Normal::new(mean, stdev).ok().map(draw_from),
            TimeSpec::Uniform { min, max } => Uniform::new_inclusive(min, max).ok().map(draw_from),
            TimeSpec::Gamma { shape, scale } => Gamma::new(shape, scale).ok().map(draw_from),
            TimeSpec::Exponential { scale } => Exp::new(1.0 / scale).ok().map(draw_from),
            TimeSpec::Poisson { lam } => Poisson::new(lam).ok().map(draw_from),
        };
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Durations { random, draw, mean_s: spec.mean_s(), factor: 1.0 }
    }

    /// Multiplies all durations by `factor`.
    pub fn with_factor(self, factor: f64) -> Self {
        Durations { factor, ..self }
    }

    /// Returns the next duration.
    pub fn next_ns(&mut self) -> u64 {
        let seconds = match &self.draw {
            Some(draw) => draw(&mut self.random),
            None => self.mean_s,
        };
        // DLIO sleeps for the absolute value of the drawn time.
        (seconds.abs() * self.factor * 1e9).round() as u64
    }
}

fn draw_from(distribution: impl Distribution<f64> + Send + Sync + 'static) -> Draw {
    Box::new(move |random| distribution.sample(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_s(spec: TimeSpec) -> f64 {
        let mut durations = Durations::new(spec, 123);
        (0..20_000).map(|_| durations.next_ns() as f64 / 1e9).sum::<f64>() / 20_000.0
    }

    #[test]
    fn means_match_the_distributions() {
        for (spec, expected) in [
            (TimeSpec::Constant { mean: 0.323 }, 0.323),
            (TimeSpec::Constant { mean: -0.5 }, 0.5),
            (TimeSpec::Normal { mean: 1.0, stdev: 0.1 }, 1.0),
            (TimeSpec::Normal { mean: 1.0, stdev: 1.0 }, 1.1666),
            (TimeSpec::Normal { mean: 0.0, stdev: 1.0 }, 0.7979),
            (TimeSpec::Uniform { min: -0.2, max: 0.6 }, 0.25),
            (TimeSpec::Uniform { min: 0.2, max: 0.6 }, 0.4),
            (TimeSpec::Gamma { shape: 2.0, scale: 0.25 }, 0.5),
            (TimeSpec::Exponential { scale: 0.5 }, 0.5),
            (TimeSpec::Poisson { lam: 3.0 }, 3.0),
        ] {
            let mean = mean_s(spec);
            assert!((mean - expected).abs() < 0.03 * expected, "{spec:?}: {mean}");
            assert!((spec.mean_s() - expected).abs() < 1e-4, "{spec:?}: {}", spec.mean_s());
        }
    }

    #[test]
    fn each_seed_draws_a_reproducible_sequence_of_its_own() {
        let spec = TimeSpec::Uniform { min: 0.0, max: 1.0 };
        assert_eq!(Durations::new(spec, 3).next_ns(), Durations::new(spec, 3).next_ns());
        assert_ne!(Durations::new(spec, 3).next_ns(), Durations::new(spec, 4).next_ns());
    }
}
