//! How runs change while they last: the first epoch against later ones, and training during and after checkpoints against before. Each run is compared with itself, so that
//! experiments of other settings count together; replicates tell how far that varies.

use super::exclusions::{touches, warnings};
use super::{UsedRuns, about};
use crate::estimate::{ResponseScale, mean_of_cells, scaled};
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use crate::precision::{ALPHA, CONFIDENCE};
use feedrate_measure::metric::{AU_ALL_STEPS, DURATION_S, Metric, SAMPLES_WHOLE};
use feedrate_measure::phase::{CheckpointPhases, Phase, of_checkpoints};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::{Cell, Combination, Difference, holm, mean};
use feedrate_results::run::Run;
use std::collections::BTreeSet;

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
        let first = |run: &Run| first_epoch(run, response);
        epochs.extend(PartTest::new(group, Quantity::FirstEpoch(id), response, first));
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
    let of_epochs = (!epochs.is_empty()).then(|| {
        finding(group, FindingKind::Epochs, Subject::BetweenEpochs, &epochs, tests, Vec::new())
    });
    let checkpoints: Vec<PartTest> = during.into_iter().chain(after).collect();
    of_epochs.into_iter().chain(of_checkpoints_written(group, &checkpoints, tests)).collect()
}

/// A phase beside a checkpoint.
type PartOf = for<'p> fn(CheckpointPhases<'p>) -> Option<&'p Phase>;

fn saves(run: &Run) -> impl Iterator<Item = CheckpointPhases<'_>> {
    of_checkpoints(&run.phases, CheckpointKind::Save)
}

/// The first epoch less the mean of all later ones, on the scale of the response.
fn first_epoch(run: &Run, response: &Metric) -> Option<f64> {
    let epochs = run.series.get(&response.id)?.iter();
    let epochs: Option<Vec<f64>> = epochs.map(|value| scaled(response, (*value)?)).collect();
    let (first, later) = epochs.as_ref()?.split_first()?;
    Some(first - mean(later)?)
}

/// A phase less the one before the checkpoint, on the scale of the response; the mean over checkpoints that have both.
fn against_before(run: &Run, response: &Metric, part: PartOf) -> Option<f64> {
    let value = |phase: &Phase| {
        let known = if response.id == SAMPLES_WHOLE.id {
            phase.samples_per_second
        } else {
            phase.au_percent
        };
        scaled(response, known?)
    };
    let changes = saves(run).filter_map(|one| Some(value(part(one)?)? - value(one.before?)?));
    mean(&changes.collect::<Vec<f64>>())
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
        let middle = Combination { weights: vec![1.0 / experiments as f64; experiments] };
        let difference = middle.welch(&cells);
        Some(PartTest {
            of,
            response,
            estimate: middle.estimate(&cells),
            p: difference.as_ref().and_then(Difference::p),
            difference,
            runs: runs.concat(),
            experiments,
        })
    }

    fn effect(&self, tests: usize) -> EffectSize {
        let interval = self.difference.as_ref().and_then(|of| of.interval(CONFIDENCE));
        let scale = ResponseScale::new(self.response);
        let (unit, interval) = match scale {
            ResponseScale::Logarithm => (EffectUnit::Ratio, interval.map(|one| one.exp())),
            ResponseScale::Percent => (EffectUnit::Points, interval),
        };
        let estimate = scale.back(self.estimate);
        let effect = EffectSize::new(self.of.clone(), unit, estimate, interval, self.runs.len());
        if self.p.is_some() { effect.tested(self.p, tests) } else { effect }
    }

    fn magnitude(&self) -> f64 {
        match ResponseScale::new(self.response) {
            ResponseScale::Logarithm => self.estimate.abs(),
            ResponseScale::Percent => self.estimate.abs() / 100.0,
        }
    }
}

/// `costs`: numbers of checkpoints that are no test.
fn finding(
    group: &UsedRuns,
    kind: FindingKind,
    subject: fn(usize) -> Subject,
    parts: &[PartTest],
    tests: usize,
    costs: Vec<EffectSize>,
) -> Finding {
    let mut runs: Vec<&Run> = parts.iter().flat_map(|part| part.runs.iter().copied()).collect();
    runs.sort_by(|a, b| a.path.cmp(&b.path));
    runs.dedup_by(|a, b| a.path == b.path);
    let experiments = parts.iter().map(|part| part.experiments).max().unwrap_or(0);
    let doubts: BTreeSet<&str> = runs.iter().flat_map(|run| warnings(run)).collect();
    let doubts = doubts
        .into_iter()
        .filter(|name| RESPONSES.iter().any(|response| touches(name, response.id.name())));
    let mut caveats: Vec<Caveat> = doubts.map(|name| Caveat::RunsDoubted(name.into())).collect();
    let is_supported = parts.iter().any(|part| part.p.is_some_and(|p| p < ALPHA));
    if parts.iter().all(|part| part.difference.is_none()) && !parts.is_empty() {
        caveats.push(Caveat::NotReplicated);
    }
    let effects = parts.iter().map(|part| part.effect(tests));
    Finding {
        effects: costs.into_iter().chain(effects).collect(),
        caveats,
        is_supported,
        magnitude: parts.iter().map(PartTest::magnitude).fold(0.0, f64::max),
        ..about(kind, &group.design.workload, subject(experiments), &runs)
    }
}

/// Length and share of checkpoints, and what training does beside them. `None` where none was written.
fn of_checkpoints_written(group: &UsedRuns, parts: &[PartTest], tests: usize) -> Option<Finding> {
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
    let shares = mean_of_cells(&DURATION_S, &of_cells(&share_of_run));
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
    let kind = FindingKind::Checkpoints;
    let mut finding = finding(group, kind, Subject::AroundCheckpoints, parts, tests, costs);
    finding.is_supported |= finding.effects.iter().any(|of| of.low.is_some());
    finding.evidence = runs.iter().map(|run| run.path.clone()).collect();
    Some(finding)
}

/// Time of checkpoints ÷ time from the first phase's start to the last one's end.
fn share_of_run(run: &Run) -> Option<f64> {
    let start_s = run.phases.iter().map(|one| one.start_s).reduce(f64::min)?;
    let end_s = run.phases.iter().map(|one| one.start_s + one.duration_s).reduce(f64::max)?;
    let all_s: f64 = saves(run).map(|one| one.during.duration_s).sum();
    (start_s < end_s && 0.0 < all_s).then(|| all_s / (end_s - start_s))
}
