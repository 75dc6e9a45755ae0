//! Findings: what the runs of a study say, as sentences with number, interval, evidence and doubt, in the order of importance. Values in, findings out.
//!
//! Nothing is claimed without a test, and no test of a response without counting the others. What cannot be told is a finding too, once a reason.

mod words;
mod sheet;
mod levels;
mod same;
mod scaling;
mod trust;
mod artefact;
mod untold;
#[cfg(test)]
mod tests;

use crate::response::Response;
use feedrate_measure::doubt::Severity;
use serde::Serialize;
use sheet::{Sheet, sheets};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A difference that matters to nobody: 2 %, or two points of a percentage.
pub const MARGIN: f64 = 0.02;

/// One run. Its epochs are repeated measures and have no place here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Its folder.
    pub path: PathBuf,
    /// Runs of different workloads are not compared.
    pub workload: String,
    /// The level of each factor, also where it is the baseline's. A factor that a run does not name is `unset`.
    pub factors: BTreeMap<String, String>,
    /// By [`Response::name`], in its unit; without those that are not known.
    pub responses: BTreeMap<&'static str, f64>,
    /// Its place in the order of running.
    pub order: Option<u32>,
    /// Reasons not to believe it. With an invalid one it is left out.
    pub doubts: Vec<Doubted>,
}

/// A doubt of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `feedrate_measure::doubt`")]
pub struct Doubted {
    pub name: String,
    pub severity: Severity,
}

/// A sentence, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// From 1; the most important first.
    pub rank: usize,
    /// What it is about.
    pub kind: Kind,
    /// Of this workload; of several, where the same cannot be told of each. The sentence does not name it.
    pub workload: String,
    /// [`Response::name`]; `null` where it is about several.
    pub response: Option<&'static str>,
    /// The factors it is about.
    pub factors: Vec<String>,
    /// The finding.
    pub sentence: String,
    /// Its numbers; `null` where it has none.
    pub figures: Option<Figures>,
    /// Folders of the runs that it rests on.
    pub evidence: Vec<PathBuf>,
    /// Why it may mislead.
    pub doubts: Vec<String>,
    /// Whether a test, or the runs themselves, bear it out; otherwise it is description.
    pub supported: bool,
    /// Among its like, the largest first.
    #[serde(skip)]
    magnitude: f64,
}

/// What a finding is about, in the order they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Runs that must not be used.
    LeftOut,
    /// Runs that are doubted.
    Doubted,
    /// Two metrics of the same runs disagree.
    Artefact,
    /// Repeated runs change over the order of running.
    Drift,
    /// Runs far from their replicates.
    Outlier,
    /// More than linear.
    Superlinear,
    /// What a factor does, alone or with another; how throughput grows.
    Effect,
    /// A factor, or more of it, that makes no difference that matters.
    NoEffect,
    /// A difference between runs that were not repeated.
    NotTested,
    /// What the runs do not tell, and why.
    CannotTell,
}

/// The numbers of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// What the estimate counts.
    pub unit: FigureUnit,
    /// The estimate.
    pub estimate: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs on the side that has fewer.
    pub n: usize,
    /// Chance of so much if there were nothing; corrected by Holm's method for all `tests` of the response.
    pub p: Option<f64>,
    /// Tests that p is corrected for.
    pub tests: Option<usize>,
    /// Share of the variation of the response, in percent.
    pub share_percent: Option<f64>,
}

/// What an estimate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Level ÷ level it is compared with.
    Ratio,
    /// Level − level it is compared with, of a response in percent.
    Points,
    /// Share of linear growth.
    Efficiency,
}

/// One utilisation and one throughput: of each the one that most runs have, the truest first among equals.
pub fn main_responses(observations: &[Observation]) -> Vec<&'static Response> {
    let kinds: [&[&str]; 2] = [
        &["au_all_steps_percent", "au_windowed_percent"],
        &["delivered_bytes_per_second", "nominal_bytes_per_second", "samples_per_second"],
    ];
    let most = |names: &&[&str]| {
        let known =
            |name: &str| observations.iter().filter(|one| one.responses.contains_key(name)).count();
        // The last of equals is the greatest.
        let name = names.iter().rev().max_by_key(|name| known(name))?;
        Response::find(name).ok().filter(|_| known(name) > 0)
    };
    kinds.iter().filter_map(most).collect()
}

/// What `observations` say of `responses`. `baseline` is the level of each factor that others are compared with; of a factor
/// that it lacks it is the one that most combinations have.
pub fn findings(
    observations: &[Observation],
    responses: &[&'static Response],
    baseline: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut of_workload: BTreeMap<&str, Vec<&Observation>> = BTreeMap::new();
    for one in observations {
        of_workload.entry(&one.workload).or_default().push(one);
    }
    let mut all = Vec::new();
    for (workload, observations) in of_workload {
        let (used, left_out): (Vec<&Observation>, Vec<&Observation>) =
            observations.into_iter().partition(|one| !one.is_invalid());
        all.extend(trust::left_out(workload, &left_out, used.len()));
        all.extend(trust::doubted(workload, &used));
        all.extend(artefact::artefacts(workload, &used, baseline));
        let sheets = sheets(workload, &used, responses, baseline);
        let judged: Vec<Judged> = sheets.iter().map(judge).collect();
        all.extend(untold::cannot_tell(workload, &judged));
        all.extend(judged.into_iter().flat_map(|one| one.findings));
    }
    let mut all = merged(all);
    all.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.magnitude.total_cmp(&a.magnitude)));
    all.iter_mut().enumerate().for_each(|(at, finding)| finding.rank = at + 1);
    all
}

/// What cannot be told of several workloads for the same reason is said once.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for one in findings {
        let is_same =
            |other: &&mut Finding| other.kind == Kind::CannotTell && other.sentence == one.sentence;
        match all.iter_mut().find(is_same) {
            None => all.push(one),
            Some(other) => {
                other.workload.push_str(&format!(", {}", one.workload));
                other.evidence.extend(one.evidence);
            }
        }
    }
    all
}

impl Observation {
    fn is_invalid(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
    }
}

/// One response: what is told of it, and what is not.
struct Judged<'a> {
    sheet: &'a Sheet<'a>,
    findings: Vec<Finding>,
    untold: Vec<untold::Untold>,
}

/// All tests of a response are made first, and corrected together.
fn judge<'a>(sheet: &'a Sheet<'a>) -> Judged<'a> {
    let mut tests = levels::tests(sheet);
    let mut drift = trust::drift(sheet);
    let mut superlinear = scaling::superlinear(sheet);
    let others = drift.iter_mut().map(|one| &mut one.p);
    let others = others.chain(superlinear.iter_mut().map(|one| &mut one.p));
    let mut p: Vec<&mut f64> = tests.p_mut().chain(others).collect();
    let corrected = feedrate_measure::stats::holm(&p.iter().map(|p| **p).collect::<Vec<_>>());
    let number = p.len();
    p.iter_mut().zip(corrected).for_each(|(p, corrected)| **p = corrected);
    let same = same::same(sheet, &tests);
    let mut findings = Vec::new();
    let mut untold = Vec::new();
    for factor in 0..sheet.factors.len() {
        match same.get(&factor) {
            Some(found) => findings.push(found.clone()),
            None => {
                levels::told(sheet, factor, &tests, number, &mut findings, &mut untold);
                findings.extend(same::no_gain(sheet, factor, &tests));
            }
        }
    }
    findings.extend(levels::together(sheet, &tests, number));
    untold.extend(levels::not_crossed(sheet, &tests));
    findings.extend(trust::outliers(sheet));
    findings.extend(drift.and_then(|drift| drift.finding(sheet, number)));
    findings.extend(scaling::scaling(sheet, superlinear, number));
    Judged { sheet, findings, untold }
}
