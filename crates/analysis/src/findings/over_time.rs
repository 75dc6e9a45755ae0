//! How runs change while they last: the first epoch against later ones, and training during and after checkpoints against before. Each run is compared with itself, so that
//! experiments of other settings count together; replicates tell how far that varies.

use super::exclusions::doubted;
use super::{UsedRuns, about};
use crate::estimate::{ResponseScale, mean_of_cells, scaled, unweighted_mean};
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use crate::precision::ALPHA;
use feedrate_measure::metric::{AU_ALL_STEPS, DURATION_S, Metric, SAMPLES_WHOLE};
use feedrate_measure::phase::{CheckpointPhases, Phase, PhaseKind, checkpoint_phases};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::{Cell, Difference, Interval, holm, mean};
use feedrate_results::run::Run;

/// Responses that are known by epoch and phase.
const RESPONSES: [&Metric; 2] = [&SAMPLES_WHOLE, &AU_ALL_STEPS];

/// A part of runs against another part of them, in one response.
struct PartTest<'a> {
    of: Quantity,
    response: &'static Metric,
    estimate: f64,
    /// `None` where no experiment was repeated.
    difference: Option<Difference>,
    p: Option<f64>,
    /// Runs that it rests on.
    runs: Vec<&'a Run>,
    experiments: usize,
}

/// One finding on epochs, one on checkpoints, where there are several, or some. Their tests are corrected together.
pub(super) fn over_time(group: &UsedRuns) -> Vec<Finding> {
    let mut epochs = Vec::new();
    let (mut during, mut after) = (Vec::new(), Vec::new());
    for response in RESPONSES {
        let id = response.id.name();
        epochs.extend(PartTest::new(group, Quantity::FirstEpoch(id), response, |run| {
            first_epoch(run, response)
        }));
        let beside = |run: &Run, part: PartOf| against_before(run, response, part);
        let of = Quantity::DuringCheckpoints(id);
        during
            .extend(PartTest::new(group, of, response, |run| beside(run, |one| Some(one.during))));
        let of = Quantity::AfterCheckpoints(id);
        after.extend(PartTest::new(group, of, response, |run| beside(run, |one| one.after)));
    }
    let mut tests: Vec<&mut PartTest> =
        epochs.iter_mut().chain(&mut during).chain(&mut after).collect();
    let known: Vec<f64> = tests.iter().filter_map(|test| test.p).collect();
    let corrected = holm(&known).into_iter();
    tests
        .iter_mut()
        .filter_map(|test| test.p.as_mut())
        .zip(corrected)
        .for_each(|(p, one)| *p = one);
    let tests = known.len();
    let of_epochs = (!epochs.is_empty())
        .then(|| finding(group, FindingKind::Epochs, &epochs, tests, Vec::new(), Vec::new()));
    let checkpoints: Vec<PartTest> = during.into_iter().chain(after).collect();
    of_epochs.into_iter().chain(of_checkpoints_written(group, &checkpoints, tests)).collect()
}

/// A phase beside a checkpoint.
type PartOf = for<'p> fn(CheckpointPhases<'p>) -> Option<&'p Phase>;

fn saves(run: &Run) -> impl Iterator<Item = CheckpointPhases<'_>> {
    checkpoint_phases(&run.phases, CheckpointKind::Save)
}

/// The first epoch less the mean of all later ones, on the scale of the response.
fn first_epoch(run: &Run, response: &Metric) -> Option<f64> {
    let epochs = run.series.get(&response.id)?.iter();
    let epochs: Option<Vec<f64>> = epochs.map(|value| scaled(response, (*value)?)).collect();
    let (first, later) = epochs.as_ref()?.split_first()?;
    Some(first - mean(later)?)
}

/// A phase less the one before the checkpoint, on the scale of the response; the mean over checkpoints that have both in one epoch.
fn against_before(run: &Run, response: &Metric, part: PartOf) -> Option<f64> {
    let value = |phase: &Phase| {
        let known = if response.id == SAMPLES_WHOLE.id {
            phase.samples_per_second
        } else {
            phase.au_percent
        };
        scaled(response, known?)
    };
    let changes = saves(run).filter_map(|one| {
        let (part, before) = (part(one)?, one.before?);
        is_in_one_epoch(run, before, part).then_some(value(part)? - value(before)?)
    });
    mean(&changes.collect::<Vec<f64>>())
}

/// The first steps of an epoch wait as they do without a checkpoint before it: they tell nothing of checkpoints.
fn is_in_one_epoch(run: &Run, before: &Phase, after: &Phase) -> bool {
    let mut epochs = run.phases.iter().filter(|of| of.phase == PhaseKind::Epoch);
    epochs.any(|of| of.start_s <= before.start_s && after.start_s < of.start_s + of.duration_s)
}

impl<'a> PartTest<'a> {
    /// The mean over experiments, each as heavy. Where some were repeated it is of these, so that it has an interval.
    fn new(
        group: &UsedRuns<'a>,
        of: Quantity,
        response: &'static Metric,
        value: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Self> {
        let design = group.acted_on(|run| value(group.runs[run]).is_some());
        let mut all: Vec<(Cell, Vec<&Run>)> = Vec::new();
        for cell in &design.cells {
            let runs: Vec<&Run> = cell.runs.iter().map(|&run| group.runs[run]).collect();
            let values = runs.iter().filter_map(|run| value(run)).collect();
            all.push((Cell { levels: cell.levels.clone(), values }, runs));
        }
        if all.iter().any(|(cell, _)| 1 < cell.values.len()) {
            all.retain(|(cell, _)| 1 < cell.values.len());
        }
        let (cells, runs): (Vec<Cell>, Vec<Vec<&Run>>) = all.into_iter().unzip();
        let experiments = cells.len();
        if experiments == 0 {
            return None;
        }
        let (estimate, difference) = unweighted_mean(&cells);
        Some(PartTest {
            of,
            response,
            estimate,
            p: difference.as_ref().and_then(Difference::p),
            difference,
            runs: runs.concat(),
            experiments,
        })
    }

    fn effect(&self, tests: usize) -> EffectSize {
        let scale = ResponseScale::new(self.response);
        let (of, n) = (self.of.clone(), self.runs.len());
        let effect = scale.effect(of, self.estimate, self.difference.as_ref(), n);
        if self.p.is_some() { effect.tested(self.p, tests) } else { effect }
    }

    fn magnitude(&self) -> f64 {
        ResponseScale::new(self.response).magnitude(self.estimate)
    }
}

/// `costs`: numbers that are no test, and rest on `runs`.
fn finding<'a>(
    group: &UsedRuns,
    kind: FindingKind,
    parts: &[PartTest<'a>],
    tests: usize,
    costs: Vec<EffectSize>,
    mut runs: Vec<&'a Run>,
) -> Finding {
    runs.extend(parts.iter().flat_map(|part| part.runs.iter().copied()));
    runs.sort_by(|a, b| a.path.cmp(&b.path));
    runs.dedup_by(|a, b| a.path == b.path);
    let experiments = parts.iter().map(|part| part.experiments).max().unwrap_or(0);
    let subject = match kind {
        FindingKind::Epochs => Subject::BetweenEpochs(experiments),
        _ => Subject::AroundCheckpoints(experiments),
    };
    let effects: Vec<EffectSize> =
        costs.into_iter().chain(parts.iter().map(|part| part.effect(tests))).collect();
    let mut caveats = doubted(&runs, &RESPONSES);
    if effects.iter().all(|of| of.low.is_none()) {
        caveats.push(Caveat::NotReplicated);
    }
    Finding {
        // What a checkpoint takes is measured; what parts differ by is tested.
        is_supported: effects.iter().any(|of| of.p.map_or(of.low.is_some(), |p| p < ALPHA)),
        effects,
        caveats,
        magnitude: parts.iter().map(PartTest::magnitude).fold(0.0, f64::max),
        ..about(kind, &group.design.workload, subject, &runs)
    }
}

/// Length and share of checkpoints, and what training does beside them. `None` where none was written.
fn of_checkpoints_written<'a>(
    group: &UsedRuns<'a>,
    parts: &[PartTest<'a>],
    tests: usize,
) -> Option<Finding> {
    let seconds =
        |run: &Run| mean(&saves(run).map(|one| one.during.duration_s).collect::<Vec<_>>());
    let design = group.acted_on(|run| seconds(group.runs[run]).is_some());
    let of_cells = |value: &dyn Fn(&Run) -> Option<f64>| {
        let cells = design.cells.iter();
        let values = cells.map(|cell| cell.runs.iter().filter_map(|&run| value(group.runs[run])));
        values.map(Iterator::collect).collect::<Vec<Vec<f64>>>()
    };
    let runs: Vec<&Run> =
        design.cells.iter().flat_map(|cell| &cell.runs).map(|&run| group.runs[run]).collect();
    let mut costs = Vec::new();
    let durations = mean_of_cells(&DURATION_S, &of_cells(&seconds));
    // A share is a percentage, and its interval ends where these do.
    let shares = mean_of_cells(&AU_ALL_STEPS, &of_cells(&percent_of_run)).map(|(of, ends)| {
        let end = |percent: f64| percent.clamp(0.0, 100.0) / 100.0;
        let ends = ends.map(|of| Interval { low: end(of.low), high: end(of.high), ..of });
        (of / 100.0, ends)
    });
    for (of, unit, found) in [
        (Quantity::CheckpointDuration, EffectUnit::Seconds, durations),
        (Quantity::CheckpointShare, EffectUnit::Share, shares),
    ] {
        let found = found.into_iter();
        costs.extend(found.map(|(middle, interval)| {
            EffectSize::new(of.clone(), unit, middle, interval, runs.len())
        }));
    }
    if costs.is_empty() {
        return None;
    }
    Some(finding(group, FindingKind::Checkpoints, parts, tests, costs, runs))
}

/// Time of checkpoints ÷ time from the first phase's start to the last one's end, in percent.
fn percent_of_run(run: &Run) -> Option<f64> {
    let start_s = run.phases.iter().map(|one| one.start_s).reduce(f64::min)?;
    let end_s = run.phases.iter().map(|one| one.start_s + one.duration_s).reduce(f64::max)?;
    let all_s: f64 = saves(run).map(|one| one.during.duration_s).sum();
    (start_s < end_s && 0.0 < all_s).then(|| 100.0 * all_s / (end_s - start_s))
}
