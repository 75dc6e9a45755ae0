//! Finds artefacts of the measurement window: steps from one level of a factor to the next in which windowed utilisation and the
//! figures over all steps contradict each other, because the window excludes the first step.

use super::{UsedRuns, finding_about};
use crate::design::PROCESSES;
use crate::estimate::Middle;
use crate::finding::{
    Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject, WindowArtefact,
};
use crate::precision::ALPHA;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Metric, SAMPLES_WHOLE};
use feedrate_measure::stats::{mean, welch_difference};
use feedrate_results::run::Run;

/// Smallest change of windowed utilisation, in points, that is reported as an artefact.
const SHOWN_MIN_POINTS: f64 = 1.0;
/// Smallest such change without replicates. It exceeds what noise alone would cause.
const SHOWN_MIN_UNTESTED_POINTS: f64 = 5.0;
/// Smallest change of utilisation over all steps, in points, that is reported as hidden.
const HIDDEN_MIN_POINTS: f64 = 5.0;
/// Smallest ratio of the smaller to the larger change at which the figures agree.
const AGREEMENT_MIN: f64 = 1.0 / 3.0;

/// Finds the steps from one level of a factor to the next, with all other levels equal, in which only one of the two figures changes.
///
/// Both figures are from the same runs, so a contradiction can be described without replicates. It counts as shown only with replicates.
pub(super) fn artefacts(group: &UsedRuns) -> Vec<Finding> {
    let design = group.effective_design(|_| true);
    let mut steps = Vec::new();
    for (index, factor) in design.factors.iter().enumerate() {
        let Some(numbers) = &factor.numbers else { continue };
        for pair in design.slice(&[index]).windows(2) {
            let level_runs = |cell: usize| {
                LevelRuns::new(pair[cell].runs.iter().map(|&run| group.runs[run]).collect())
            };
            let Some((before, after)) = level_runs(0).zip(level_runs(1)) else { continue };
            let from = pair[0].levels[index];
            let to = pair[1].levels[index];
            let linear_growth = numbers[to] / numbers[from];
            let artefact = WindowArtefact {
                from: factor.levels[from].clone(),
                to: factor.levels[to].clone(),
                is_hidden: false,
                windowed_percent: [before.windowed, after.windowed],
                all_steps_percent: before.all_steps.zip(after.all_steps).map(<[f64; 2]>::from),
                rate: before.rate.zip(after.rate).map(|(before, after)| after / before),
                rate_if_linear: (factor.name == PROCESSES).then_some(linear_growth),
            };
            steps.push(LevelStep { factor: &factor.name, before, after, artefact });
        }
    }
    let step_count = steps.len();
    steps.into_iter().filter_map(|step| step.finding(&design.workload, step_count)).collect()
}

/// A step from one level of a factor to the next.
struct LevelStep<'a> {
    factor: &'a str,
    before: LevelRuns<'a>,
    after: LevelRuns<'a>,
    artefact: WindowArtefact,
}

/// The runs with one level, with their mean figures.
struct LevelRuns<'a> {
    runs: Vec<&'a Run>,
    /// Windowed utilisation in percent.
    windowed: f64,
    /// Utilisation over all steps in percent.
    all_steps: Option<f64>,
    /// Throughput over all steps, as geometric mean like in all other findings.
    rate: Option<f64>,
}

impl<'a> LevelRuns<'a> {
    fn new(runs: Vec<&'a Run>) -> Option<Self> {
        let values = |metric: &Metric| -> Option<Vec<f64>> {
            runs.iter().map(|run| run.metric(metric)).collect()
        };
        let positive_mean = |metric: &Metric| mean(&values(metric)?).filter(|mean| *mean > 0.0);
        let rate = values(&SAMPLES_WHOLE)
            .and_then(|rates| Middle::new(&SAMPLES_WHOLE, rates).estimate)
            .filter(|rate| *rate > 0.0);
        Some(LevelRuns {
            windowed: positive_mean(&AU_WINDOWED)?,
            all_steps: positive_mean(&AU_ALL_STEPS),
            rate,
            runs,
        })
    }

    /// For each run, the logarithm of windowed utilisation ÷ utilisation over all steps, or ÷ throughput if that is unknown.
    fn gaps(&self) -> Vec<f64> {
        let reference = if self.all_steps.is_some() { &AU_ALL_STEPS } else { &SAMPLES_WHOLE };
        let gaps = self.runs.iter().filter_map(|run| {
            let windowed = run.metric(&AU_WINDOWED).filter(|au| *au > 0.0)?;
            let unwindowed = run.metric(reference).filter(|value| *value > 0.0)?;
            Some((windowed / unwindowed).ln())
        });
        gaps.collect()
    }
}

impl LevelStep<'_> {
    /// Whether the window hides a change (`true`) or shows a change that is not real (`false`); `None` if the figures agree.
    ///
    /// With replicates, each of the `step_count` steps is tested, at the significance level divided by their number (Bonferroni).
    fn is_hidden(&self, step_count: usize) -> Option<bool> {
        let WindowArtefact { rate, rate_if_linear, windowed_percent, all_steps_percent, .. } =
            self.artefact;
        // Throughput per process replaces utilisation over all steps if that is unknown.
        let real_change = match all_steps_percent {
            Some([before, after]) => (after / before).ln(),
            None => (rate? / rate_if_linear?).ln(),
        };
        let [windowed_before, windowed_after] = windowed_percent;
        let windowed_change = (windowed_after / windowed_before).ln();
        let have_same_sign = real_change * windowed_change > 0.0;
        let larger = real_change.abs().max(windowed_change.abs());
        let smaller = real_change.abs().min(windowed_change.abs());
        if have_same_sign && AGREEMENT_MIN * larger <= smaller {
            return None;
        }
        let gap = welch_difference(&self.before.gaps(), &self.after.gaps());
        let shown_min_points = match gap.and_then(|gap| gap.p()) {
            Some(p) if p < ALPHA / step_count as f64 => SHOWN_MIN_POINTS,
            Some(_) => return None,
            None => SHOWN_MIN_UNTESTED_POINTS,
        };
        let have_opposite_signs = real_change * windowed_change < 0.0;
        let is_exaggerated = have_opposite_signs || real_change.abs() < windowed_change.abs();
        if shown_min_points < (windowed_after - windowed_before).abs() && is_exaggerated {
            return Some(false);
        }
        let [before, after] = all_steps_percent?;
        (HIDDEN_MIN_POINTS < (after - before).abs()).then_some(true)
    }

    fn finding(self, workload: &str, step_count: usize) -> Option<Finding> {
        let is_hidden = self.is_hidden(step_count)?;
        let LevelStep { factor, before, after, artefact } = self;
        let n = before.runs.len().min(after.runs.len());
        let level = artefact.to.clone();
        let base = artefact.from.clone();
        let windowed_points = after.windowed - before.windowed;
        let points = |quantity: Quantity, estimate: f64| {
            EffectSize::new(quantity, EffectUnit::Points, estimate, None, n)
        };
        let windowed = Quantity::Windowed { level: level.clone(), base: base.clone() };
        let mut effects = vec![points(windowed, windowed_points)];
        if let Some([before, after]) = artefact.all_steps_percent {
            let all_steps = Quantity::AllSteps { level: level.clone(), base: base.clone() };
            effects.push(points(all_steps, after - before));
        }
        if let Some(rate) = artefact.rate {
            let quantity = Quantity::WholeEpochThroughput { level, base };
            effects.push(EffectSize::new(quantity, EffectUnit::Ratio, rate, None, n));
        }
        let runs = [before.runs, after.runs].concat();
        let subject = Subject::Window(WindowArtefact { is_hidden, ..artefact });
        Some(Finding {
            response: Some(AU_WINDOWED.id.name()),
            factors: vec![factor.into()],
            effects,
            caveats: if n == 1 { vec![Caveat::OneRunOfLevel] } else { Vec::new() },
            is_supported: 1 < n,
            magnitude: windowed_points.abs() / 100.0,
            ..finding_about(FindingKind::Artefact, workload, subject, &runs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::metric::{Provenance, Value};

    #[test]
    fn throughput_is_averaged_as_in_other_findings() {
        let run = |rate: f64| {
            let known = |number| Value { number, provenance: Provenance::Measured };
            let values = [(AU_WINDOWED.id, known(50.0)), (SAMPLES_WHOLE.id, known(rate))];
            Run { values: values.into(), ..Run::default() }
        };
        let runs = [run(1.0), run(100.0)];
        let rate = LevelRuns::new(runs.iter().collect()).unwrap().rate.unwrap();
        assert!((rate - 10.0).abs() < 1e-9, "{rate}");
    }
}
