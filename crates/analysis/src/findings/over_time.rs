//! Finds changes within runs: the first epoch compared with later epochs, and training during and after checkpoints compared with
//! training before checkpoints.
//!
//! Each run is compared with itself, so experiments with different settings count together. Replicates show how much the change
//! varies.

use super::exclusions::doubt_caveats;
use super::{UsedRuns, finding_about};
use crate::estimate::{ResponseScale, mean_of_cells, scaled, unweighted_mean};
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::metric::{AU_ALL_STEPS, DURATION_S, Metric, SAMPLES_WHOLE};
use feedrate_measure::phase::{CheckpointPhases, Phase, PhaseKind, checkpoint_phases};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::{Cell, Difference, Interval, holm, mean};
use feedrate_results::run::Run;
use std::collections::BTreeMap;

/// The responses that are known for each epoch and phase.
const RESPONSES: [&Metric; 2] = [&SAMPLES_WHOLE, &AU_ALL_STEPS];

/// The test of one part of runs against another part of the same runs, in one response.
struct PartTest<'a> {
    quantity: Quantity,
    response: &'static Metric,
    estimate: f64,
    /// `None` if no experiment was repeated.
    difference: Option<Difference>,
    p: Option<f64>,
    runs: Vec<&'a Run>,
    experiments: usize,
}

/// Returns a finding about epochs and one about checkpoints, if runs have several epochs or checkpoints. The p-values of both are corrected
/// together.
pub(super) fn over_time(group: &UsedRuns) -> Vec<Finding> {
    let mut epochs = Vec::new();
    let mut during = Vec::new();
    let mut after = Vec::new();
    for response in RESPONSES {
        let id = response.id.name();
        epochs.extend(PartTest::new(group, Quantity::FirstEpoch(id), response, |run| {
            first_epoch_change(run, response)
        }));
        during.extend(PartTest::new(group, Quantity::DuringCheckpoints(id), response, |run| {
            checkpoint_change(run, response, |phases| Some(phases.during))
        }));
        after.extend(PartTest::new(group, Quantity::AfterCheckpoints(id), response, |run| {
            checkpoint_change(run, response, |phases| phases.after)
        }));
    }
    let tests = epochs.iter_mut().chain(&mut during).chain(&mut after);
    let p_values: Vec<&mut f64> = tests.filter_map(|test| test.p.as_mut()).collect();
    let test_count = p_values.len();
    let corrected = holm(&p_values.iter().map(|p| **p).collect::<Vec<_>>());
    p_values.into_iter().zip(corrected).for_each(|(p, corrected)| *p = corrected);
    let mut findings = Vec::new();
    if !epochs.is_empty() {
        let costs = CheckpointCosts::default();
        findings.push(finding(group, FindingKind::Epochs, &epochs, test_count, costs));
    }
    let checkpoints: Vec<PartTest> = during.into_iter().chain(after).collect();
    findings.extend(checkpoint_finding(group, &checkpoints, test_count));
    findings
}

/// Selects one of the phases around a checkpoint.
type SelectPhase = for<'p> fn(CheckpointPhases<'p>) -> Option<&'p Phase>;

fn saved_checkpoints(run: &Run) -> impl Iterator<Item = CheckpointPhases<'_>> {
    checkpoint_phases(&run.phases, CheckpointKind::Save)
}

/// The difference between the first epoch and the mean of later epochs, on the scale of the response.
fn first_epoch_change(run: &Run, response: &Metric) -> Option<f64> {
    let values = run.series.get(&response.id)?.iter();
    let epochs: Option<Vec<f64>> = values.map(|value| scaled(response, (*value)?)).collect();
    let (first, later) = epochs.as_ref()?.split_first()?;
    Some(first - mean(later)?)
}

/// The difference between a phase and the phase before the checkpoint, on the scale of the response. It is a mean over the checkpoints with
/// both phases in one epoch, and enough steps before and after.
fn checkpoint_change(run: &Run, response: &Metric, select: SelectPhase) -> Option<f64> {
    let value = |phase: &Phase| {
        let known = if response.id == SAMPLES_WHOLE.id {
            phase.samples_per_second
        } else {
            phase.au_percent
        };
        scaled(response, known?)
    };
    let epochs = EpochSpans::new(run);
    let changes = saved_checkpoints(run).filter_map(|phases| {
        let selected = select(phases)?;
        let before = phases.before?;
        let is_comparable = epochs.contain(before, selected)
            && before.too_few_steps().is_none()
            && selected.too_few_steps().is_none();
        is_comparable.then_some(value(selected)? - value(before)?)
    });
    mean(&changes.collect::<Vec<f64>>())
}

/// Mean net cost of a checkpoint between steps of one epoch, in seconds.
fn net_cost_s(run: &Run) -> Option<f64> {
    let epochs = EpochSpans::new(run);
    let costs = saved_checkpoints(run).filter_map(|phases| {
        let is_comparable = epochs.contain(phases.before?, phases.after?);
        phases.net_cost_s().filter(|_| is_comparable)
    });
    mean(&costs.collect::<Vec<f64>>())
}

/// Start and end of a run's epochs in seconds, by number.
struct EpochSpans(BTreeMap<u32, [f64; 2]>);

impl EpochSpans {
    fn new(run: &Run) -> Self {
        let epochs = run.phases.iter().filter(|phase| phase.phase == PhaseKind::Epoch);
        let span = |epoch: &Phase| [epoch.start_s, epoch.start_s + epoch.duration_s];
        EpochSpans(epochs.map(|epoch| (epoch.epoch, span(epoch))).collect())
    }

    /// Whether one epoch contains two phases. The first steps of an epoch always wait, so they do not show the effect of a checkpoint.
    fn contain(&self, before: &Phase, after: &Phase) -> bool {
        let span = self.0.get(&before.epoch);
        span.is_some_and(|[start_s, end_s]| *start_s <= before.start_s && after.start_s < *end_s)
    }
}

impl<'a> PartTest<'a> {
    /// Tests the unweighted mean over experiments, each with a separate variance. If some were run once, they have no variance: then the mean
    /// over all runs is tested, as each run is compared with itself.
    fn new(
        group: &UsedRuns<'a>,
        quantity: Quantity,
        response: &'static Metric,
        change: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Self> {
        let design = group.effective_design(|run| change(group.runs[run]).is_some());
        let mut experiments: Vec<(Cell, Vec<&Run>)> = Vec::new();
        for cell in &design.cells {
            let runs: Vec<&Run> = cell.runs.iter().map(|&run| group.runs[run]).collect();
            let values = runs.iter().filter_map(|run| change(run)).collect();
            experiments.push((Cell { levels: cell.levels.clone(), values }, runs));
        }
        if experiments.is_empty() {
            return None;
        }
        let (cells, runs): (Vec<Cell>, Vec<Vec<&Run>>) = experiments.into_iter().unzip();
        let all_values = || cells.iter().flat_map(|cell| cell.values.iter().copied()).collect();
        let all_runs = Cell { levels: Vec::new(), values: all_values() };
        let is_repeated = cells.iter().all(|cell| 1 < cell.values.len());
        let tested = if is_repeated { cells.as_slice() } else { std::slice::from_ref(&all_runs) };
        let (estimate, difference) = unweighted_mean(tested);
        Some(PartTest {
            quantity,
            response,
            estimate,
            p: difference.as_ref().and_then(Difference::p),
            difference,
            runs: runs.concat(),
            experiments: cells.len(),
        })
    }

    fn effect(&self, test_count: usize) -> EffectSize {
        let scale = ResponseScale::new(self.response);
        let quantity = self.quantity.clone();
        let difference = self.difference.as_ref();
        let effect = scale.effect(quantity, self.estimate, difference, self.runs.len());
        if self.p.is_some() { effect.with_p(self.p, test_count) } else { effect }
    }

    fn magnitude(&self) -> f64 {
        ResponseScale::new(self.response).magnitude(self.estimate)
    }
}

/// Measured costs of checkpoints, which are not tested, with the runs they are from.
#[derive(Default)]
struct CheckpointCosts<'a> {
    effects: Vec<EffectSize>,
    runs: Vec<&'a Run>,
}

fn finding<'a>(
    group: &UsedRuns,
    kind: FindingKind,
    parts: &[PartTest<'a>],
    test_count: usize,
    costs: CheckpointCosts<'a>,
) -> Finding {
    let mut runs = costs.runs;
    runs.extend(parts.iter().flat_map(|part| part.runs.iter().copied()));
    runs.sort_by(|a, b| a.path.cmp(&b.path));
    runs.dedup_by(|a, b| a.path == b.path);
    let experiments = parts.iter().map(|part| part.experiments).max().unwrap_or(0);
    let subject = match kind {
        FindingKind::Epochs => Subject::BetweenEpochs(experiments),
        _ => Subject::AroundCheckpoints(experiments),
    };
    let mut effects = costs.effects;
    effects.extend(parts.iter().map(|part| part.effect(test_count)));
    let mut caveats = doubt_caveats(&runs, &RESPONSES);
    if effects.iter().all(|effect| effect.low.is_none()) {
        caveats.push(Caveat::NotReplicated);
    }
    Finding {
        // Costs are measured and need an interval; differences between parts need a significant test.
        is_supported: effects
            .iter()
            .any(|effect| effect.p.map_or(effect.low.is_some(), |p| p < ALPHA)),
        effects,
        caveats,
        magnitude: parts.iter().map(PartTest::magnitude).fold(0.0, f64::max),
        ..finding_about(kind, &group.design.workload, subject, &runs)
    }
}

/// The finding about the cost of checkpoints and their effect on training; `None` if no checkpoint was saved.
fn checkpoint_finding<'a>(
    group: &UsedRuns<'a>,
    parts: &[PartTest<'a>],
    test_count: usize,
) -> Option<Finding> {
    let mean_duration_s = |run: &Run| {
        let durations = saved_checkpoints(run).map(|phases| phases.during.duration_s);
        mean(&durations.collect::<Vec<_>>())
    };
    let design = group.effective_design(|run| mean_duration_s(group.runs[run]).is_some());
    let values_by_cell = |value: &dyn Fn(&Run) -> Option<f64>| {
        let cells = design.cells.iter();
        cells
            .map(|cell| cell.runs.iter().filter_map(|&run| value(group.runs[run])).collect())
            .collect::<Vec<Vec<f64>>>()
    };
    let runs: Vec<&Run> =
        design.cells.iter().flat_map(|cell| &cell.runs).map(|&run| group.runs[run]).collect();
    let mut effects = Vec::new();
    if let Some((mean_s, interval)) = mean_of_cells(&DURATION_S, &values_by_cell(&mean_duration_s))
    {
        let quantity = Quantity::CheckpointDuration;
        effects.push(EffectSize::new(quantity, EffectUnit::Seconds, mean_s, interval, runs.len()));
    }
    // A cost may be negative, so it has no logarithm.
    let net_costs = values_by_cell(&net_cost_s);
    if !net_costs.is_empty() && net_costs.iter().all(|values| !values.is_empty()) {
        let to_cell = |values| Cell { levels: Vec::new(), values };
        let cells: Vec<Cell> = net_costs.into_iter().map(to_cell).collect();
        let (mean_s, noise) = unweighted_mean(&cells);
        let interval = noise.and_then(|noise| noise.interval(CONFIDENCE));
        let quantity = Quantity::CheckpointNetCost;
        effects.push(EffectSize::new(quantity, EffectUnit::Seconds, mean_s, interval, runs.len()));
    }
    // A share is a percentage like utilisation, and its interval is limited to the possible values.
    if let Some((percent, interval)) =
        mean_of_cells(&AU_ALL_STEPS, &values_by_cell(&checkpoint_percent))
    {
        let share = |percent: f64| percent.clamp(0.0, 100.0) / 100.0;
        let share_interval = interval.map(|interval| Interval {
            low: share(interval.low),
            high: share(interval.high),
            ..interval
        });
        let quantity = Quantity::CheckpointShare;
        let unit = EffectUnit::Share;
        let estimate = percent / 100.0;
        effects.push(EffectSize::new(quantity, unit, estimate, share_interval, runs.len()));
    }
    if effects.is_empty() {
        return None;
    }
    let costs = CheckpointCosts { effects, runs };
    Some(finding(group, FindingKind::Checkpoints, parts, test_count, costs))
}

/// The time of saved checkpoints as a percentage of the time from the start of the first phase to the end of the last.
fn checkpoint_percent(run: &Run) -> Option<f64> {
    let start_s = run.phases.iter().map(|phase| phase.start_s).reduce(f64::min)?;
    let ends_s = run.phases.iter().map(|phase| phase.start_s + phase.duration_s);
    let end_s = ends_s.reduce(f64::max)?;
    let checkpoints_s: f64 = saved_checkpoints(run).map(|phases| phases.during.duration_s).sum();
    (start_s < end_s && 0.0 < checkpoints_s).then(|| 100.0 * checkpoints_s / (end_s - start_s))
}
