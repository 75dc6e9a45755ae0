//! Findings: what the runs of a study say, as sentences with number, interval, evidence and doubt, in the order of importance. Values in, findings out.
//!
//! Nothing is claimed without a test, and no test of a response without counting the others. What cannot be told is a finding too, once a reason.

mod words;
mod sheet;
mod levels;
mod same;
mod scaling;
mod law;
mod trust;
mod steady;
mod noise;
mod artefact;
mod untold;
#[cfg(test)]
mod tests;

use crate::precision::CONFIDENCE;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::stats::Interval;
use feedrate_results::response::Response;
use serde::Serialize;
use sheet::{Sheet, sheets};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A difference that matters to nobody: 2 %, or two points of a percentage; of one below 20 less.
pub const MARGIN: f64 = 0.02;

/// One run. Its epochs are repeated measures and have no place here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Its folder.
    pub path: PathBuf,
    /// What sentences call it.
    pub name: String,
    /// Runs of different workloads are not compared.
    pub workload: String,
    /// The level of each factor, also where it is the baseline's. A factor that a run does not name is `unset`.
    pub factors: BTreeMap<String, String>,
    /// Factors that whoever made the run does not act on, and why.
    pub ignored: BTreeMap<String, String>,
    /// By [`Response::name`], in its unit; without those that are not known.
    pub responses: BTreeMap<&'static str, f64>,
    /// Numbers that are no responses, and show how large a doubt is: what was reported, and what of it is right.
    pub shown: BTreeMap<&'static str, f64>,
    /// Samples per second of each epoch, in order.
    pub epochs: Vec<f64>,
    /// Its place in the order of running, within its source.
    pub order: Option<u32>,
    /// Reasons not to believe it. With an invalid one it is left out.
    pub doubts: Vec<Doubt>,
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
    /// Its numbers, the most important first.
    pub figures: Vec<Figures>,
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

/// What a finding is about, in the order they are told; artefacts and more than linear growth together, and so effects and growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Two metrics of the same runs disagree.
    Artefact,
    /// More than linear.
    Superlinear,
    /// Runs that must not be used.
    LeftOut,
    /// What a factor does, alone or with another.
    Effect,
    /// How throughput grows with processes.
    Scaling,
    /// A factor, or more of it, that makes no difference that matters.
    NoEffect,
    /// Runs that are doubted.
    Doubted,
    /// Repeated runs change over the order of running.
    Drift,
    /// Epochs of a run that do not settle.
    Unsteady,
    /// Runs far from their replicates, or noise that is not normal.
    Outlier,
    /// A difference between runs that were not repeated.
    NotTested,
    /// What the runs do not tell, and why.
    CannotTell,
}

/// A number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// What it is of: `8 against 4`.
    pub of: String,
    /// What it counts.
    pub unit: FigureUnit,
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How often such an interval holds the truth, as a share; `null` without one.
    pub confidence: Option<f64>,
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
    /// A part of 1: contention, coherence.
    Share,
    /// A number of processes.
    Processes,
    /// That of the response.
    Response,
}

impl Figures {
    /// Of `n` runs; without ends where there is no interval.
    fn new(
        of: impl Into<String>,
        unit: FigureUnit,
        value: f64,
        interval: Option<Interval>,
        n: usize,
    ) -> Self {
        Figures {
            of: of.into(),
            unit,
            value,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            confidence: interval.map(|_| CONFIDENCE),
            n,
            p: None,
            tests: None,
            share_percent: None,
        }
    }
}

impl Kind {
    /// Where it is told.
    fn place(self) -> usize {
        match self {
            Kind::Superlinear => Kind::Artefact as usize,
            Kind::Scaling => Kind::Effect as usize,
            other => other as usize,
        }
    }
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

/// What `observations` say of `responses`.
pub fn findings(observations: &[Observation], responses: &[&'static Response]) -> Vec<Finding> {
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
        all.extend(artefact::artefacts(workload, &used));
        all.extend(steady::unsteady(workload, &used));
        all.extend(untold::ignored(workload, &used));
        all.extend(untold::unusable(workload, &used, &left_out));
        let sheets = sheets(workload, &used, responses);
        let judged: Vec<Judged> = sheets.iter().map(judge).collect();
        all.extend(untold::cannot_tell(workload, &judged));
        all.extend(judged.into_iter().flat_map(|one| one.findings));
    }
    let mut all = merged(all);
    let place = |one: &Finding| one.kind.place();
    all.sort_by(|a, b| place(a).cmp(&place(b)).then(b.magnitude.total_cmp(&a.magnitude)));
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
    let outliers = noise::outliers(sheet);
    let has_outliers = !outliers.is_empty();
    findings.extend(outliers);
    findings.extend(drift.and_then(|drift| drift.finding(sheet, number)));
    let scaling = scaling::scaling(sheet, superlinear, number);
    // Growth that is more than linear follows no law.
    let has_law = scaling.as_ref().is_some_and(|one| one.kind != Kind::Superlinear);
    findings.extend(scaling);
    findings.extend(law::law(sheet).filter(|_| has_law));
    if let Some(skewed) = noise::skewed(sheet) {
        let rests_on_normal = |one: &&mut Finding| !one.figures.is_empty() && one.supported;
        findings
            .iter_mut()
            .filter(rests_on_normal)
            .for_each(|one| one.doubts.push(noise::NOT_NORMAL.into()));
        // What is far from the others is why it is not normal.
        findings.extend(Some(skewed).filter(|_| !has_outliers));
    }
    Judged { sheet, findings, untold }
}
