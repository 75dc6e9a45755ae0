//! Where windowed utilisation and the whole epoch contradict each other: what the excluded first step made, or hides.

use super::{UsedRuns, about};
use crate::design::PROCESSES;
use crate::finding::{
    Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject, WindowArtefact,
};
use crate::precision::ALPHA;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Metric, SAMPLES_WHOLE};
use feedrate_measure::stats::{mean, welch_difference};
use feedrate_results::run::Run;

/// Windowed utilisation that moves by less, in points, is let be.
const MOVED_MIN: f64 = 1.0;
/// The same without replicates: noise does not move it so far.
const MOVED_MIN_UNTESTED: f64 = 5.0;
/// Utilisation over all steps that moves by less, in points, is not missed.
const HIDDEN_MIN: f64 = 5.0;
/// Share of a change of the one figure that the other has at least; otherwise the window made it, or hides it.
const SHARE_MIN: f64 = 1.0 / 3.0;

/// Steps from one level of a factor to the next, all else the same, in which one of the two changes and the other does not.
///
/// Both are of the same runs: that they disagree in these takes no replicates.
pub(super) fn artefacts(group: &UsedRuns) -> Vec<Finding> {
    let design = group.acted_on(|_| true);
    let mut steps = Vec::new();
    for (at, factor) in design.factors.iter().enumerate() {
        let Some(numbers) = &factor.numbers else { continue };
        for pair in design.slice(&[at]).windows(2) {
            let sides = [pair[0], pair[1]]
                .map(|cell| LevelRuns::new(cell.runs.iter().map(|&run| group.runs[run]).collect()));
            let [Some(before), Some(after)] = sides else { continue };
            let levels = [pair[0].levels[at], pair[1].levels[at]];
            let [from, to] = levels.map(|level| factor.levels[level].clone());
            let linear = numbers[levels[1]] / numbers[levels[0]];
            let artefact = WindowArtefact {
                from,
                to,
                is_hidden: false,
                windowed_percent: [before.windowed, after.windowed],
                all_steps_percent: before.whole.zip(after.whole).map(<[f64; 2]>::from),
                rate: before.rate.zip(after.rate).map(|(before, after)| after / before),
                rate_if_linear: (factor.name == PROCESSES).then_some(linear),
            };
            steps.push(LevelStep { factor: &factor.name, before, after, artefact });
        }
    }
    let number = steps.len();
    steps.into_iter().filter_map(|step| step.finding(&design.workload, number)).collect()
}

/// From one level to the next.
struct LevelStep<'a> {
    factor: &'a str,
    before: LevelRuns<'a>,
    after: LevelRuns<'a>,
    artefact: WindowArtefact,
}

/// The runs of a level, by the window and as a whole.
struct LevelRuns<'a> {
    runs: Vec<&'a Run>,
    windowed: f64,
    /// Utilisation over all steps.
    whole: Option<f64>,
    /// Over whole epochs.
    rate: Option<f64>,
}

impl<'a> LevelRuns<'a> {
    fn new(runs: Vec<&'a Run>) -> Option<Self> {
        let middle = |metric: &Metric| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| run.metric(metric)).collect();
            mean(&values?).filter(|mean| *mean > 0.0)
        };
        let (windowed, whole) = (middle(&AU_WINDOWED)?, middle(&AU_ALL_STEPS));
        let rate = middle(&SAMPLES_WHOLE);
        Some(LevelRuns { runs, windowed, whole, rate })
    }

    /// ln of window ÷ whole, or ÷ throughput, of each run.
    fn gaps(&self) -> Vec<f64> {
        let whole = self.whole.map_or(&SAMPLES_WHOLE, |_| &AU_ALL_STEPS);
        let gaps = self.runs.iter().filter_map(|run| {
            let [windowed, whole] = [&AU_WINDOWED, whole].map(|metric| run.metric(metric));
            Some((windowed.filter(|au| *au > 0.0)? / whole.filter(|value| *value > 0.0)?).ln())
        });
        gaps.collect()
    }
}

impl LevelStep<'_> {
    /// Whether the window hides a change, or has made one; `None` where it does neither. `number` steps are looked at; with replicates each is tested at the
    /// chance divided by it (Bonferroni).
    fn is_hidden(&self, number: usize) -> Option<bool> {
        let WindowArtefact { rate, rate_if_linear, .. } = self.artefact;
        let [before, after] = self.artefact.windowed_percent;
        // Of utilisation over the whole epoch. Throughput a process stands for it where it is not known.
        let whole = match self.artefact.all_steps_percent {
            Some([before, after]) => (after / before).ln(),
            None => (rate? / rate_if_linear?).ln(),
        };
        let windowed = (after / before).ln();
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
        if moved_min < (after - before).abs() && is_larger {
            return Some(false);
        }
        let [before, after] = self.artefact.all_steps_percent?;
        (HIDDEN_MIN < (after - before).abs()).then_some(true)
    }

    fn finding(self, workload: &str, number: usize) -> Option<Finding> {
        let is_hidden = self.is_hidden(number)?;
        let LevelStep { factor, before, after, artefact } = self;
        let n = before.runs.len().min(after.runs.len());
        let (level, base) = (artefact.to.clone(), artefact.from.clone());
        let moved = after.windowed - before.windowed;
        let windowed = Quantity::Windowed { level: level.clone(), base: base.clone() };
        let mut effects = vec![EffectSize::new(windowed, EffectUnit::Points, moved, None, n)];
        if let Some([before, after]) = artefact.all_steps_percent {
            let whole = Quantity::AllSteps { level: level.clone(), base: base.clone() };
            effects.push(EffectSize::new(whole, EffectUnit::Points, after - before, None, n));
        }
        if let Some(rate) = artefact.rate {
            let of = Quantity::WholeEpochThroughput { level, base };
            effects.push(EffectSize::new(of, EffectUnit::Ratio, rate, None, n));
        }
        let runs = [before.runs, after.runs].concat();
        let subject = Subject::Window(WindowArtefact { is_hidden, ..artefact });
        Some(Finding {
            response: Some(AU_WINDOWED.id.name()),
            factors: vec![factor.into()],
            effects,
            caveats: if n == 1 { vec![Caveat::OneRunOfLevel] } else { Vec::new() },
            magnitude: moved.abs() / 100.0,
            ..about(FindingKind::Artefact, workload, subject, &runs)
        })
    }
}
