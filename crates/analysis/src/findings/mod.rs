//! Derives findings from the runs of a study, each with numbers, intervals, evidence and caveats, most important first.
//!
//! A claim needs a test, and the p-values of a response are corrected for multiple tests. Open questions are findings too, one per
//! reason.

mod design_matrix;
mod exclusions;
mod inconclusive;
mod main_effects;
mod trade_off;
mod interactions;
mod equivalence;
mod scaling;
mod drift;
mod over_time;
mod noise;
mod artefact;

pub use main_effects::LevelEffect;

use crate::design::Design;
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Inconclusive, Subject};
use crate::throughput::throughput;
use design_matrix::DesignMatrix;
use exclusions::excludes_run;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_WINDOWED, DELIVERED_WHOLE, Metric, NOMINAL_WHOLE, SAMPLES_WHOLE,
};
use feedrate_measure::stats::holm;
use feedrate_results::run::Run;
use std::collections::BTreeSet;

/// Equivalence margin: 2 %, or two points of a percentage; less for percentages below 20.
pub const MARGIN: f64 = 0.02;

/// Returns one metric of utilisation and one of throughput. Of each kind, it is the metric known for most runs; of equally frequent metrics,
/// the most accurate.
pub fn main_responses(runs: &[&Run]) -> Vec<&'static Metric> {
    let preferred = throughput(runs.iter().copied());
    let kinds: [&[&'static Metric]; 2] = [
        &[&AU_ALL_STEPS, &AU_WINDOWED],
        &[preferred, &SAMPLES_WHOLE, &DELIVERED_WHOLE, &NOMINAL_WHOLE],
    ];
    let count =
        |metric: &&'static Metric| runs.iter().filter(|run| run.metric(metric).is_some()).count();
    // `max_by_key` returns the last maximum, but the first metric is needed.
    let most_common = kinds.iter().filter_map(|kind| kind.iter().rev().copied().max_by_key(count));
    most_common.filter(|metric| 0 < count(metric)).collect()
}

/// Derives the findings about `responses` from `runs`, to which the designs refer by index.
pub fn findings(designs: &[Design], runs: &[&Run], responses: &[&'static Metric]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for finding in designs.iter().flat_map(|design| workload_findings(design, runs, responses)) {
        add(&mut findings, finding);
    }
    findings
        .sort_by(|a, b| position(a).cmp(&position(b)).then(b.magnitude.total_cmp(&a.magnitude)));
    findings
}

/// Estimates the main effects on `response` from `runs`, to which the designs refer by index. Runs that findings leave out are left out.
pub fn level_effects(
    designs: &[Design],
    runs: &[&Run],
    response: &'static Metric,
) -> Vec<LevelEffect> {
    let strata = designs.iter().flat_map(|design| used_design(design, runs).strata(runs));
    let effects = strata.flat_map(|stratum| {
        let group = UsedRuns { design: &stratum.named_design(), runs };
        let matrix = DesignMatrix::new(&group, response);
        matrix.as_ref().map(main_effects::level_effects).unwrap_or_default()
    });
    effects.collect()
}

/// The design without the runs that a doubt excludes.
fn used_design(design: &Design, runs: &[&Run]) -> Design {
    design.restrict(|_| true, |run| !is_excluded(runs[run]))
}

/// Whether an effect is larger than the equivalence margin, regardless of its certainty.
pub fn exceeds_margin(effect: &EffectSize) -> bool {
    is_beyond_margin(effect.unit, effect.estimate)
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

/// Groups of findings in the order of reports. Within a group, findings are sorted by magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    /// Metrics of the same runs disagree.
    Artefact,
    /// Runs are excluded.
    LeftOut,
    /// A shown difference.
    Difference,
    /// No relevant difference.
    NoEffect,
    /// Runs that are far from their replicates.
    Outlier,
    /// A difference without a test.
    Described,
    /// An open question.
    Open,
    /// A difference whose entire interval is within the equivalence margin.
    Irrelevant,
}

fn position(finding: &Finding) -> Position {
    let is_tested = finding.effects.iter().any(|effect| effect.p.is_some());
    match finding.kind {
        FindingKind::Effect
        | FindingKind::Epochs
        | FindingKind::Checkpoints
        | FindingKind::Drift
            if !finding.effects.iter().any(may_exceed_margin) =>
        {
            Position::Irrelevant
        }
        FindingKind::CannotTell => Position::Open,
        FindingKind::Epochs | FindingKind::Checkpoints if !finding.is_supported && is_tested => {
            Position::Open
        }
        FindingKind::Outlier => Position::Outlier,
        _ if !finding.is_supported => Position::Described,
        FindingKind::Artefact | FindingKind::Superlinear => Position::Artefact,
        FindingKind::LeftOut => Position::LeftOut,
        FindingKind::NoEffect => Position::NoEffect,
        FindingKind::Effect
        | FindingKind::TradeOff
        | FindingKind::Scaling
        | FindingKind::Epochs
        | FindingKind::Checkpoints
        | FindingKind::Drift
        | FindingKind::NotTested => Position::Difference,
    }
}

/// Whether the estimate or an end of its interval is beyond the equivalence margin.
fn may_exceed_margin(effect: &EffectSize) -> bool {
    let values = [Some(effect.estimate), effect.low, effect.high];
    values.into_iter().flatten().any(|value| is_beyond_margin(effect.unit, value))
}

/// Adds a finding. Findings of several workloads about the same open question are merged.
fn add(findings: &mut Vec<Finding>, finding: Finding) {
    let same = findings
        .iter_mut()
        .find(|other| finding.kind == FindingKind::CannotTell && other.subject == finding.subject);
    match same {
        None => findings.push(finding),
        Some(other) => {
            other.workloads.extend(finding.workloads);
            other.evidence.extend(finding.evidence);
        }
    }
}

fn workload_findings(
    design: &Design,
    runs: &[&Run],
    responses: &[&'static Metric],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(exclusions::excluded_runs(&UsedRuns { design, runs }));
    let used = used_design(design, runs);
    let group = UsedRuns { design: &used, runs };
    findings.extend(inconclusive::invalid_levels(design, &group));
    let strata = used.strata(runs);
    findings.extend(inconclusive::separate_strata(&group, &strata));
    for stratum in strata {
        findings.extend(stratum_findings(&stratum.named_design(), runs, responses));
    }
    findings
}

/// The findings of one stratum: runs of one source, machine and sample size, which may be compared.
fn stratum_findings(design: &Design, runs: &[&Run], responses: &[&'static Metric]) -> Vec<Finding> {
    let group = UsedRuns { design, runs };
    let mut findings = artefact::artefacts(&group);
    findings.extend(over_time::over_time(&group));
    findings.extend(inconclusive::ignored_factors(&group));
    let matrices: Vec<DesignMatrix> =
        responses.iter().filter_map(|response| DesignMatrix::new(&group, response)).collect();
    let judged: Vec<JudgedResponse> = matrices.iter().map(judge).collect();
    findings.extend(inconclusive::open_findings(&design.workload, &judged));
    findings.extend(trade_off::trade_offs(&judged));
    findings.extend(judged.into_iter().flat_map(|response| response.findings));
    findings.iter_mut().for_each(|finding| add_follower_caveats(finding, design));
    findings
}

/// Adds a caveat for each factor with settings that always changed together with it.
fn add_follower_caveats(finding: &mut Finding, design: &Design) {
    if finding.kind == FindingKind::CannotTell {
        return;
    }
    let factors = finding.factors.iter().filter_map(|name| design.factor(name));
    let followed =
        factors.map(|index| &design.factors[index]).filter(|factor| !factor.followers.is_empty());
    finding.caveats.extend(followed.map(|factor| Caveat::ChangedTogether {
        factor: factor.name.clone(),
        followers: factor.followers.clone(),
    }));
}

/// Whether a doubt excludes a run: its numbers must not be used, or may be those of another dataset.
pub(crate) fn is_excluded(run: &Run) -> bool {
    run.doubts.iter().any(excludes_run)
}

/// The runs of a workload that are used, with their design.
#[derive(Clone, Copy)]
struct UsedRuns<'a> {
    design: &'a Design,
    /// All runs to which the design refers by index.
    runs: &'a [&'a Run],
}

impl<'a> UsedRuns<'a> {
    fn used_runs(&self) -> Vec<&'a Run> {
        self.used_indexes().into_iter().map(|run| self.runs[run]).collect()
    }

    fn used_indexes(&self) -> BTreeSet<usize> {
        self.design.cells.iter().flat_map(|cell| cell.runs.iter().copied()).collect()
    }

    /// The design of the runs that `is_included` selects, without the factors that all these runs ignore.
    fn effective_design(&self, is_included: impl Fn(usize) -> bool) -> Design {
        self.design.effective(self.runs, is_included)
    }
}

/// A finding about runs, without response, factors, effects or caveats.
fn finding_about(kind: FindingKind, workload: &str, subject: Subject, runs: &[&Run]) -> Finding {
    Finding {
        kind,
        workloads: vec![workload.into()],
        response: None,
        factors: Vec::new(),
        subject,
        effects: Vec::new(),
        evidence: runs.iter().map(|run| run.path.clone()).collect(),
        caveats: Vec::new(),
        is_supported: true,
        magnitude: runs.len() as f64,
    }
}

/// One response with its findings and its open points.
struct JudgedResponse<'a> {
    matrix: &'a DesignMatrix<'a>,
    findings: Vec<Finding>,
    open: Vec<inconclusive::OpenPoint>,
}

/// Makes all tests of a response, corrects their p-values together, and derives the findings.
fn judge<'a>(matrix: &'a DesignMatrix<'a>) -> JudgedResponse<'a> {
    let mut level_tests = main_effects::test_levels(matrix);
    let mut pair_tests = interactions::test_pairs(matrix);
    let mut drift = drift::fit_drift(matrix);
    let mut superlinear = scaling::test_superlinear(matrix);
    let mut p_values: Vec<&mut f64> = Vec::new();
    p_values.extend(level_tests.iter_mut().filter_map(|test| test.p.as_mut()));
    p_values.extend(pair_tests.iter_mut().filter_map(|test| test.p.as_mut()));
    p_values.extend(drift.iter_mut().map(|test| &mut test.p));
    p_values.extend(superlinear.iter_mut().map(|test| &mut test.p));
    let test_count = p_values.len();
    let corrected = holm(&p_values.iter().map(|p| **p).collect::<Vec<_>>());
    p_values.into_iter().zip(corrected).for_each(|(p, corrected)| *p = corrected);
    let mut judged = JudgedResponse { matrix, findings: Vec::new(), open: Vec::new() };
    for factor in 0..matrix.design.factors.len() {
        let tests: Vec<_> = level_tests.iter().filter(|test| test.factor == factor).collect();
        match equivalence::no_effect(matrix, factor, &tests) {
            Some(found) => judged.findings.push(found),
            None => {
                let partners = interactions::interacting_factors(matrix, &pair_tests, factor);
                main_effects::conclude(&mut judged, factor, tests.clone(), &partners, test_count);
                judged.findings.extend(equivalence::no_gain(matrix, factor, &tests));
            }
        }
    }
    judged.findings.extend(interactions::findings(matrix, &pair_tests, test_count));
    judged.open.extend(interactions::open_points(matrix, &pair_tests));
    judged.findings.extend(noise::outliers(matrix));
    judged.findings.extend(drift.and_then(|drift| drift.finding(matrix, test_count)));
    judged.findings.extend(scaling::scaling(matrix, superlinear, test_count));
    judged
}

/// The finding that runs leave a question open.
fn open_finding(workload: &str, reason: Inconclusive, runs: &[&Run]) -> Finding {
    finding_about(FindingKind::CannotTell, workload, Subject::Inconclusive(reason), runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Quantity;
    use feedrate_measure::stats::Interval;

    #[test]
    fn a_difference_within_the_margin_comes_last() {
        let epochs = |low, high| {
            let quantity = Quantity::FirstEpoch(SAMPLES_WHOLE.id.name());
            let interval = Some(Interval { estimate: 1.0004, low, high });
            let effect = EffectSize::new(quantity, EffectUnit::Ratio, 1.0004, interval, 3);
            let found = finding_about(FindingKind::Epochs, "w", Subject::BetweenEpochs(1), &[]);
            position(&Finding { effects: vec![effect], ..found })
        };
        let open = position(&finding_about(FindingKind::CannotTell, "w", Subject::Drift, &[]));
        assert!(open < epochs(1.0001, 1.0007), "0.04 % is certain but irrelevant");
        assert!(epochs(0.95, 1.05) < open, "it may be 5 %");
    }
}
