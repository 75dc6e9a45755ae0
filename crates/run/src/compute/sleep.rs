//! A wait of known length: constant, or drawn from DLIO's distributions (`utility.py:sleep`).

use super::Compute;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::order::mix;
use feedrate_spec::workload::TimeSpec;
use rand_distr::{Distribution, Exp, Gamma, Normal, Poisson, Uniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

pub(super) static MEMBER: Member = Member {
    name: "sleep",
    summary: "a wait to an absolute deadline, of constant or drawn length",
    abilities: &[],
};

/// Draws step lengths.
pub(super) struct Sleep {
    random: Xoshiro256PlusPlus,
    draw: Draw,
}

enum Draw {
    Constant(f64),
    Normal(Normal<f64>),
    Uniform(Uniform<f64>),
    Gamma(Gamma<f64>),
    Exp(Exp<f64>),
    Poisson(Poisson<f64>),
}

impl Sleep {
    /// Each stream is a sequence of its own. Parameters that make no distribution fall back to its mean.
    pub(super) fn new(spec: TimeSpec, seed: u64, stream: u64) -> Self {
        let constant = Draw::Constant(spec.mean_s());
        let draw = match spec {
            TimeSpec::None | TimeSpec::Constant { .. } => None,
            TimeSpec::Normal { mean, stdev } => Normal::new(mean, stdev).ok().map(Draw::Normal),
            TimeSpec::Uniform { min, max } => {
                Uniform::new_inclusive(min, max).ok().map(Draw::Uniform)
            }
            TimeSpec::Gamma { shape, scale } => Gamma::new(shape, scale).ok().map(Draw::Gamma),
            TimeSpec::Exponential { scale } => Exp::new(1.0 / scale).ok().map(Draw::Exp),
            TimeSpec::Poisson { lam } => Poisson::new(lam).ok().map(Draw::Poisson),
        };
        Sleep {
            random: Xoshiro256PlusPlus::seed_from_u64(mix(seed, stream)),
            draw: draw.unwrap_or(constant),
        }
    }
}

impl Compute for Sleep {
    fn next_ns(&mut self) -> u64 {
        let seconds = match &self.draw {
            Draw::Constant(seconds) => *seconds,
            Draw::Normal(d) => d.sample(&mut self.random),
            Draw::Uniform(d) => d.sample(&mut self.random),
            Draw::Gamma(d) => d.sample(&mut self.random),
            Draw::Exp(d) => d.sample(&mut self.random),
            Draw::Poisson(d) => d.sample(&mut self.random),
        };
        // DLIO sleeps the absolute value of what it draws.
        (seconds.abs() * 1e9).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_s(spec: TimeSpec) -> f64 {
        let mut sleep = Sleep::new(spec, 123, 0);
        (0..20_000).map(|_| sleep.next_ns() as f64 / 1e9).sum::<f64>() / 20_000.0
    }

    #[test]
    fn means_are_the_distributions() {
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
    fn accelerators_draw_differently_and_repeatably() {
        let spec = TimeSpec::Uniform { min: 0.0, max: 1.0 };
        let first = |accelerator| Sleep::new(spec, 1, accelerator).next_ns();
        assert_eq!(first(3), first(3));
        assert_ne!(first(3), first(4));
    }
}
