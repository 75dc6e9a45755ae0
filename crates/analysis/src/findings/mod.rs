//! Findings: what the runs of a study say, each with numbers, intervals, evidence and caveats, in the order of importance. Values in, findings out.
//!
//! Nothing is claimed without a test, and no test of a response without counting the others. What cannot be told is a finding too, once a reason.

mod design_matrix;
mod exclusions;
mod inconclusive;
mod main_effects;
mod interactions;
mod equivalence;
mod scaling;
mod drift;
mod over_time;
mod noise;
mod artefact;

use crate::design::{Design, Stratum};
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Inconclusive, Subject};
use crate::throughput::throughput;
use design_matrix::DesignMatrix;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_WINDOWED, DELIVERED_WHOLE, Metric, NOMINAL_WHOLE, SAMPLES_WHOLE,
};
use feedrate_measure::stats::holm;
use feedrate_results::run::Run;
use std::collections::BTreeSet;

/// A difference that matters to nobody: 2 %, or two points of a percentage; of one below 20 less.
pub const MARGIN: f64 = 0.02;

/// One utilisation and one throughput: of each the one that most runs have, the truest first among equals.
pub fn main_responses(runs: &[&Run]) -> Vec<&'static Metric> {
    let first = throughput(runs.iter().copied());
    let kinds: [&[&'static Metric]; 2] = [
        &[&AU_ALL_STEPS, &AU_WINDOWED],
        &[first, &SAMPLES_WHOLE, &DELIVERED_WHOLE, &NOMINAL_WHOLE],
    ];
    let count =
        |metric: &&'static Metric| runs.iter().filter(|run| run.metric(metric).is_some()).count();
    // The last of equals is the greatest.
    let commonest = kinds.iter().filter_map(|kind| kind.iter().rev().copied().max_by_key(count));
    commonest.filter(|metric| 0 < count(metric)).collect()
}

/// Conclude what `runs`, which the designs are of, say of `responses`.
pub fn findings(designs: &[Design], runs: &[&Run], responses: &[&'static Metric]) -> Vec<Finding> {
    let mut all = Vec::new();
    for finding in designs.iter().flat_map(|design| of_workload(design, runs, responses)) {
        add(&mut all, finding);
    }
    all.sort_by(|a, b| place(a).cmp(&place(b)).then(b.magnitude.total_cmp(&a.magnitude)));
    all
}

/// Whether anybody would act on a difference, however certain it is.
pub fn matters(of: &EffectSize) -> bool {
    is_beyond_margin(of.unit, of.estimate)
}

fn is_beyond_margin(unit: EffectUnit, value: f64) -> bool {
    match unit {
        EffectUnit::Points => 100.0 * MARGIN <= value.abs(),
        EffectUnit::Ratio => MARGIN <= (value - 1.0).abs(),
        EffectUnit::Share => MARGIN <= value,
        EffectUnit::Seconds => false,
        _ => true,
    }
}

/// By its kind; a difference that with all of its interval matters to nobody comes after all else.
fn place(of: &Finding) -> (bool, usize) {
    let is_difference = matches!(
        of.kind,
        FindingKind::Effect | FindingKind::Epochs | FindingKind::Checkpoints | FindingKind::Drift
    );
    (is_difference && !of.effects.iter().any(may_matter), of.kind.rank())
}

fn may_matter(of: &EffectSize) -> bool {
    let ends = [Some(of.estimate), of.low, of.high];
    ends.into_iter().flatten().any(|value| is_beyond_margin(of.unit, value))
}

/// Add a finding; something that cannot be told of several workloads for the same reason is said once.
fn add(all: &mut Vec<Finding>, finding: Finding) {
    let same = all
        .iter_mut()
        .find(|other| finding.kind == FindingKind::CannotTell && other.subject == finding.subject);
    match same {
        None => all.push(finding),
        Some(other) => {
            other.workloads.extend(finding.workloads);
            other.evidence.extend(finding.evidence);
        }
    }
}

fn of_workload(design: &Design, runs: &[&Run], responses: &[&'static Metric]) -> Vec<Finding> {
    let mut all: Vec<Finding> =
        exclusions::left_out(&UsedRuns { design, runs }).into_iter().collect();
    let used = design.restricted(|_| true, |run| !is_invalid(runs[run]));
    let group = UsedRuns { design: &used, runs };
    all.extend(inconclusive::only_left_out(design, &group));
    let strata = used.strata(runs);
    all.extend(inconclusive::apart(&group, &strata));
    let designs = strata.into_iter().map(Stratum::named_design);
    all.extend(designs.flat_map(|design| of_stratum(&design, runs, responses)));
    all
}

/// Only runs of one source, machine and size of samples are compared.
fn of_stratum(design: &Design, runs: &[&Run], responses: &[&'static Metric]) -> Vec<Finding> {
    let group = UsedRuns { design, runs };
    let mut all = artefact::artefacts(&group);
    all.extend(over_time::over_time(&group));
    all.extend(inconclusive::ignored(&group));
    let matrices = responses.iter().filter_map(|response| DesignMatrix::new(&group, response));
    let matrices: Vec<DesignMatrix> = matrices.collect();
    let judged: Vec<JudgedResponse> = matrices.iter().map(judge).collect();
    all.extend(inconclusive::open(&design.workload, &judged));
    all.extend(judged.into_iter().flat_map(|one| one.findings));
    all.iter_mut().for_each(|finding| doubt_followed(finding, design));
    all
}

/// Settings that always changed with a factor may do what it seems to do.
fn doubt_followed(finding: &mut Finding, design: &Design) {
    if finding.kind == FindingKind::CannotTell {
        return;
    }
    let named = finding.factors.iter().filter_map(|name| design.factor(name));
    let followed = named.map(|at| &design.factors[at]).filter(|of| !of.followers.is_empty());
    finding.caveats.extend(followed.map(|of| Caveat::ChangedTogether {
        factor: of.name.clone(),
        followers: of.followers.clone(),
    }));
}

fn is_invalid(run: &Run) -> bool {
    run.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
}

/// The runs of a workload that are used.
#[derive(Clone, Copy)]
struct UsedRuns<'a> {
    design: &'a Design,
    /// All that the design names by their places.
    runs: &'a [&'a Run],
}

impl<'a> UsedRuns<'a> {
    /// In the order of the list.
    fn used(&self) -> Vec<&'a Run> {
        self.places().into_iter().map(|run| self.runs[run]).collect()
    }

    fn places(&self) -> BTreeSet<usize> {
        self.design.cells.iter().flat_map(|cell| cell.runs.iter().copied()).collect()
    }

    /// The design of those that count, as repeats where they differ only in what is never acted on.
    fn acted_on(&self, counts: impl Fn(usize) -> bool) -> Design {
        let places: Vec<usize> = self.places().into_iter().filter(|&run| counts(run)).collect();
        self.design.restricted(
            |factor| places.iter().any(|&run| self.runs[run].ignores(&factor.name).is_none()),
            counts,
        )
    }
}

/// Make a finding about runs, whatever their response.
fn about(kind: FindingKind, workload: &str, subject: Subject, of: &[&Run]) -> Finding {
    Finding {
        kind,
        workloads: vec![workload.into()],
        response: None,
        factors: Vec::new(),
        subject,
        effects: Vec::new(),
        evidence: of.iter().map(|run| run.path.clone()).collect(),
        caveats: Vec::new(),
        is_supported: true,
        magnitude: of.len() as f64,
    }
}

/// One response: what is told of it, and what is open.
struct JudgedResponse<'a> {
    matrix: &'a DesignMatrix<'a>,
    findings: Vec<Finding>,
    open: Vec<inconclusive::OpenPoint>,
}

/// All tests of a response are made first, and corrected together.
fn judge<'a>(matrix: &'a DesignMatrix<'a>) -> JudgedResponse<'a> {
    let mut levels = main_effects::tests(matrix);
    let mut pairs = interactions::tests(matrix);
    let mut drift = drift::drift(matrix);
    let mut superlinear = scaling::superlinear(matrix);
    let p = levels.iter_mut().filter_map(|one| one.p.as_mut());
    let p = p.chain(pairs.iter_mut().filter_map(|one| one.p.as_mut()));
    let p = p.chain(drift.iter_mut().map(|one| &mut one.p));
    let p: Vec<&mut f64> = p.chain(superlinear.iter_mut().map(|one| &mut one.p)).collect();
    let tests = p.len();
    let corrected = holm(&p.iter().map(|p| **p).collect::<Vec<_>>());
    p.into_iter().zip(corrected).for_each(|(p, corrected)| *p = corrected);
    let mut judged = JudgedResponse { matrix, findings: Vec::new(), open: Vec::new() };
    for factor in 0..matrix.design.factors.len() {
        let own: Vec<_> = levels.iter().filter(|one| one.factor == factor).collect();
        match equivalence::no_effect(matrix, factor, &own) {
            Some(found) => judged.findings.push(found),
            None => {
                let partners = interactions::partners(matrix, &pairs, factor);
                main_effects::conclude(&mut judged, factor, own.clone(), &partners, tests);
                judged.findings.extend(equivalence::no_gain(matrix, factor, &own));
            }
        }
    }
    judged.findings.extend(interactions::findings(matrix, &pairs, tests));
    judged.open.extend(interactions::open(matrix, &pairs));
    judged.findings.extend(noise::outliers(matrix));
    judged.findings.extend(drift.and_then(|drift| drift.finding(matrix, tests)));
    judged.findings.extend(scaling::scaling(matrix, superlinear, tests));
    judged
}

/// Make a finding of something that cannot be told of these runs.
fn cannot_tell(workload: &str, subject: Inconclusive, of: &[&Run]) -> Finding {
    about(FindingKind::CannotTell, workload, Subject::Inconclusive(subject), of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Quantity;
    use feedrate_measure::stats::Interval;

    #[test]
    fn a_difference_that_matters_to_nobody_comes_last() {
        let epochs = |low, high| {
            let of = Quantity::FirstEpoch(SAMPLES_WHOLE.id.name());
            let ends = Some(Interval { estimate: 1.0004, low, high });
            let effect = EffectSize::new(of, EffectUnit::Ratio, 1.0004, ends, 3);
            let found = about(FindingKind::Epochs, "w", Subject::BetweenEpochs(1), &[]);
            place(&Finding { effects: vec![effect], ..found })
        };
        let open = place(&about(FindingKind::CannotTell, "w", Subject::Drift, &[]));
        assert!(open < epochs(1.0001, 1.0007), "0.04 % is certain, and nothing");
        assert!(epochs(0.95, 1.05) < open, "it may be 5 %");
    }
}
