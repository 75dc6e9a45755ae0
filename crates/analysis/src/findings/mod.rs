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
mod scaling_law;
mod drift;
mod steady;
mod noise;
mod artefact;

pub use noise::RUNS_LEAST;

use crate::design::Design;
use crate::finding::{Caveat, Finding, Inconclusive, Kind, Subject};
use design_matrix::DesignMatrix;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::Metric;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A difference that matters to nobody: 2 %, or two points of a percentage; of one below 20 less.
pub const MARGIN: f64 = 0.02;

/// One run. Its epochs are repeated measures and have no place here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Its folder.
    pub path: PathBuf,
    /// Its name in sentences.
    pub name: String,
    /// Factors that whoever made the run does not act on, and why.
    pub ignored: BTreeMap<String, String>,
    /// By name, in its unit; without those that are not known.
    pub responses: BTreeMap<&'static str, f64>,
    /// Samples per second of each epoch, in order.
    pub epochs: Vec<f64>,
    /// Its place in the order of running, within its source.
    pub order: Option<u32>,
    /// Reasons not to believe it. With an invalid one it is left out.
    pub doubts: Vec<Doubt>,
}

impl Observation {
    fn is_invalid(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
    }
}

/// One utilisation and one throughput: of each the one that most runs have, the truest first among equals.
pub fn main_responses(observations: &[Observation]) -> Vec<&'static Metric> {
    let kinds: [&[&str]; 2] = [
        &["au_all_steps_percent", "au_windowed_percent"],
        &["delivered_bytes_per_second", "nominal_bytes_per_second", "samples_per_second"],
    ];
    kinds.iter().filter_map(|names| commonest(observations, names)).collect()
}

fn commonest(observations: &[Observation], names: &[&str]) -> Option<&'static Metric> {
    let known =
        |name: &str| observations.iter().filter(|one| one.responses.contains_key(name)).count();
    // The last of equals is the greatest.
    let (count, name) = names.iter().rev().map(|name| (known(name), name)).max_by_key(|of| of.0)?;
    if count == 0 { None } else { Metric::find(name).ok() }
}

/// Conclude what `runs`, which the designs are of, say of `responses`.
pub fn findings(
    designs: &[Design],
    runs: &[Observation],
    responses: &[&'static Metric],
) -> Vec<Finding> {
    let mut all = Vec::new();
    for design in designs {
        for finding in of_workload(design, runs, responses) {
            add(&mut all, finding);
        }
    }
    all.sort_by(|a, b| {
        a.kind.place().cmp(&b.kind.place()).then(b.magnitude.total_cmp(&a.magnitude))
    });
    all
}

/// Add a finding; something that cannot be told of several workloads for the same reason is said once.
fn add(all: &mut Vec<Finding>, finding: Finding) {
    let same = all
        .iter_mut()
        .find(|other| finding.kind == Kind::CannotTell && other.subject == finding.subject);
    match same {
        None => all.push(finding),
        Some(other) => {
            other.workloads.extend(finding.workloads);
            other.evidence.extend(finding.evidence);
        }
    }
}

fn of_workload(
    design: &Design,
    runs: &[Observation],
    responses: &[&'static Metric],
) -> Vec<Finding> {
    let used = design.restricted(|_| true, |run| !runs[run].is_invalid());
    let group = UsedRuns { design: &used, runs };
    let mut all: Vec<Finding> = exclusions::left_out(design, &group).into_iter().collect();
    all.extend(artefact::artefacts(&group));
    all.extend(steady::unsteady(&group));
    all.extend(inconclusive::ignored(&group));
    all.extend(inconclusive::only_left_out(design, &group));
    let matrices = responses.iter().filter_map(|response| DesignMatrix::new(&group, response));
    let matrices: Vec<DesignMatrix> = matrices.collect();
    let judged: Vec<Judged> = matrices.iter().map(judge).collect();
    all.extend(inconclusive::open(&used.workload, &judged));
    all.extend(judged.into_iter().flat_map(|one| one.findings));
    all
}

/// The runs of a workload that are used.
#[derive(Clone, Copy)]
struct UsedRuns<'a> {
    design: &'a Design,
    /// All that the design names by their places.
    runs: &'a [Observation],
}

impl<'a> UsedRuns<'a> {
    /// In the order of the list.
    fn used(&self) -> Vec<&'a Observation> {
        let mut places: Vec<usize> =
            self.design.cells.iter().flat_map(|cell| cell.runs.iter().copied()).collect();
        places.sort_unstable();
        places.into_iter().map(|run| &self.runs[run]).collect()
    }
}

/// Make a finding about runs, whatever their response.
fn about(kind: Kind, workload: &str, subject: Subject, of: &[&Observation]) -> Finding {
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
struct Judged<'a> {
    matrix: &'a DesignMatrix<'a>,
    findings: Vec<Finding>,
    open: Vec<inconclusive::OpenPoint>,
}

/// All tests of a response are made first, and corrected together.
fn judge<'a>(matrix: &'a DesignMatrix<'a>) -> Judged<'a> {
    let mut levels = main_effects::tests(matrix);
    let mut pairs = interactions::tests(matrix);
    let mut drift = drift::drift(matrix);
    let mut superlinear = scaling::superlinear(matrix);
    let p = levels.iter_mut().filter_map(|one| one.p.as_mut());
    let p = p.chain(pairs.iter_mut().filter_map(|one| one.p.as_mut()));
    let p = p.chain(drift.iter_mut().map(|one| &mut one.p));
    let p: Vec<&mut f64> = p.chain(superlinear.iter_mut().map(|one| &mut one.p)).collect();
    let tests = p.len();
    let corrected = feedrate_measure::stats::holm(&p.iter().map(|p| **p).collect::<Vec<_>>());
    p.into_iter().zip(corrected).for_each(|(p, corrected)| *p = corrected);
    let mut judged = Judged { matrix, findings: Vec::new(), open: Vec::new() };
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
    let outliers = noise::outliers(matrix);
    let has_outliers = !outliers.is_empty();
    judged.findings.extend(outliers);
    judged.findings.extend(drift.and_then(|drift| drift.finding(matrix, tests)));
    let scaling = scaling::scaling(matrix, superlinear, tests);
    // Growth that is more than linear follows no law.
    let has_law = scaling.as_ref().is_some_and(|one| one.kind != Kind::Superlinear);
    judged.findings.extend(scaling);
    if has_law {
        judged.findings.extend(scaling_law::law(matrix));
    }
    if let Some(skewed) = noise::skewed(matrix) {
        for one in
            judged.findings.iter_mut().filter(|one| !one.effects.is_empty() && one.is_supported)
        {
            one.caveats.push(Caveat::NotNormal);
        }
        // What is far from the others is why it is not normal.
        if !has_outliers {
            judged.findings.push(skewed);
        }
    }
    judged
}

/// Make a finding of something that cannot be told of these runs.
fn cannot_tell(workload: &str, subject: Inconclusive, of: &[&Observation]) -> Finding {
    about(Kind::CannotTell, workload, Subject::Inconclusive(subject), of)
}
