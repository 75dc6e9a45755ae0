//! Where windowed utilisation and the whole epoch contradict each other: what the excluded first step made, or hides.

use super::{Observation, UsedRuns, about};
use crate::design::PROCESSES;
use crate::finding::{
    Caveat, Effect, EffectUnit, Finding, Kind, Quantity, Subject, WindowArtefact,
};
use crate::precision::ALPHA;
use feedrate_measure::stats::{mean, welch_difference};

/// Windowed utilisation that moves by less, in points, is let be.
const MOVED_MIN: f64 = 1.0;
/// The same without replicates: noise does not move it so far.
const MOVED_MIN_UNTESTED: f64 = 5.0;
/// Utilisation over all steps that moves by less, in points, is not missed.
const HIDDEN_MIN: f64 = 5.0;
/// Share of a change of the one figure that the other has at least; otherwise the window made it, or hides it.
const SHARE_MIN: f64 = 1.0 / 3.0;

const WINDOWED: &str = "au_windowed_percent";
const ALL_STEPS: &str = "au_all_steps_percent";
const RATES: [&str; 3] =
    ["samples_per_second", "delivered_bytes_per_second", "nominal_bytes_per_second"];

/// Steps from one level of a factor to the next, all else the same, in which one of the two changes and the other does not.
///
/// Both are of the same runs: that they disagree in these takes no replicates.
pub(super) fn artefacts(group: &UsedRuns) -> Vec<Finding> {
    let used = group.used();
    let is_acted_on = |name: &str| used.iter().any(|run| !run.ignored.contains_key(name));
    let design = group.design.restricted(|factor| is_acted_on(&factor.name), |_| true);
    let mut steps = Vec::new();
    for (at, factor) in design.factors.iter().enumerate() {
        let Some(numbers) = &factor.numbers else { continue };
        for pair in design.slice(&[at]).windows(2) {
            let levels = [pair[0].levels[at], pair[1].levels[at]];
            let runs = |of: usize| pair[of].runs.iter().map(|&run| &group.runs[run]).collect();
            let sides = [0, 1].map(|of| LevelRuns::new(runs(of)));
            let [Some(before), Some(after)] = sides else { continue };
            let linear = numbers[levels[1]] / numbers[levels[0]];
            let linear = if factor.name == PROCESSES { Some(linear) } else { None };
            let names = levels.map(|level| factor.levels[level].clone());
            steps.push(Step { factor: &factor.name, names, before, after, linear });
        }
    }
    let number = steps.len();
    steps.iter().filter_map(|step| step.finding(&design.workload, number)).collect()
}

/// From one level to the next.
struct Step<'a> {
    factor: &'a str,
    names: [String; 2],
    before: LevelRuns<'a>,
    after: LevelRuns<'a>,
    /// Growth of throughput if utilisation stayed the same, where that is known.
    linear: Option<f64>,
}

/// The runs of a level, by the window and as a whole.
struct LevelRuns<'a> {
    runs: Vec<&'a Observation>,
    windowed: f64,
    /// Utilisation over all steps.
    whole: Option<f64>,
    /// Over whole epochs.
    rate: Option<f64>,
}

impl<'a> LevelRuns<'a> {
    fn new(runs: Vec<&'a Observation>) -> Option<Self> {
        let middle = |name: &str| {
            let values = runs.iter().map(|run| run.responses.get(name).copied());
            mean(&values.collect::<Option<Vec<f64>>>()?).filter(|mean| *mean > 0.0)
        };
        let (windowed, whole) = (middle(WINDOWED)?, middle(ALL_STEPS));
        let rate = RATES.iter().find_map(|name| middle(name));
        Some(LevelRuns { runs, windowed, whole, rate })
    }

    /// ln of window ÷ whole, or ÷ throughput, of each run.
    fn gaps(&self) -> Vec<f64> {
        let gap = |run: &&Observation| {
            let known = |name: &str| run.responses.get(name).copied().filter(|value| *value > 0.0);
            let whole = match self.whole {
                Some(_) => known(ALL_STEPS),
                None => RATES.iter().find_map(|name| known(name)),
            };
            Some((known(WINDOWED)? / whole?).ln())
        };
        self.runs.iter().filter_map(gap).collect()
    }
}

impl Step<'_> {
    /// In points.
    fn moved(&self) -> f64 {
        self.after.windowed - self.before.windowed
    }

    fn whole(&self) -> Option<[f64; 2]> {
        Some([self.before.whole?, self.after.whole?])
    }

    fn rate(&self) -> Option<f64> {
        Some(self.after.rate? / self.before.rate?)
    }

    /// ln of the change of utilisation over the whole epoch. Throughput a process stands for it where it is not known.
    fn change(&self) -> Option<f64> {
        match self.whole() {
            Some([before, after]) => Some((after / before).ln()),
            None => Some((self.rate()? / self.linear?).ln()),
        }
    }

    /// Whether the window hides a change, or has made one; `None` where it does neither. `number` steps are looked at; with replicates each is tested at the
    /// chance divided by it (Bonferroni).
    fn is_hidden(&self, number: usize) -> Option<bool> {
        let whole = self.change()?;
        let windowed = (self.after.windowed / self.before.windowed).ln();
        let (large, small) = (whole.abs().max(windowed.abs()), whole.abs().min(windowed.abs()));
        if whole * windowed > 0.0 && SHARE_MIN * large <= small {
            return None;
        }
        let tested = welch_difference(&self.before.gaps(), &self.after.gaps());
        let moved_min = match tested.and_then(|gap| gap.p()) {
            Some(p) if p < ALPHA / number as f64 => MOVED_MIN,
            Some(_) => return None,
            None => MOVED_MIN_UNTESTED,
        };
        let is_larger = whole * windowed < 0.0 || whole.abs() < windowed.abs();
        if moved_min < self.moved().abs() && is_larger {
            return Some(false);
        }
        self.whole().filter(|[before, after]| HIDDEN_MIN < (after - before).abs()).map(|_| true)
    }

    fn finding(&self, workload: &str, number: usize) -> Option<Finding> {
        let is_hidden = self.is_hidden(number)?;
        let runs: Vec<&Observation> =
            self.before.runs.iter().chain(&self.after.runs).copied().collect();
        let n = self.before.runs.len().min(self.after.runs.len());
        let [from, to] = self.names.clone();
        let (level, base) = (to.clone(), from.clone());
        let quantity = |of: fn(String, String) -> Quantity| of(level.clone(), base.clone());
        let points = |of, value| Effect::new(of, EffectUnit::Points, value, None, n);
        let windowed = quantity(|level, base| Quantity::Windowed { level, base });
        let mut effects = vec![points(windowed, self.moved())];
        if let Some([before, after]) = self.whole() {
            let whole = quantity(|level, base| Quantity::AllSteps { level, base });
            effects.push(points(whole, after - before));
        }
        if let Some(rate) = self.rate() {
            let of = quantity(|level, base| Quantity::WholeEpochThroughput { level, base });
            effects.push(Effect::new(of, EffectUnit::Ratio, rate, None, n));
        }
        let subject = Subject::Window(WindowArtefact {
            from,
            to,
            is_hidden,
            windowed_percent: [self.before.windowed, self.after.windowed],
            all_steps_percent: self.whole(),
            rate: self.rate(),
            rate_if_linear: self.linear,
        });
        Some(Finding {
            response: Some(WINDOWED),
            factors: vec![self.factor.into()],
            effects,
            caveats: if n == 1 { vec![Caveat::OneRunOfLevel] } else { Vec::new() },
            magnitude: self.moved().abs() / 100.0,
            ..about(Kind::Artefact, workload, subject, &runs)
        })
    }
}
