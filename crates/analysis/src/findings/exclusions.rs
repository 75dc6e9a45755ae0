//! Runs that are left out before anything is made of the others, and doubts that stay with what rests on the others.

use super::{UsedRuns, about, is_invalid};
use crate::finding::{Caveat, Finding, FindingKind, Subject};
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::Metric;
use feedrate_results::doubt::IGNORED_SETTING;
use feedrate_results::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Doubts that touch only some numbers, each with the start of their names; what was reported is no response.
const TOUCHES_ONLY: &[(&str, &str)] = &[
    ("wrong_step_count", "reported"),
    ("au_misreported", "reported"),
    ("au_disagrees", "au_windowed"),
    ("window_shorter_than_stock", "au_windowed"),
    ("nominal_bytes", "nominal"),
    ("throughput_misreported", "reported"),
];

/// Whether a doubt is about this response.
fn touches(doubt: &str, response: &str) -> bool {
    let only = TOUCHES_ONLY.iter().find(|(name, _)| *name == doubt);
    only.is_none_or(|(_, start)| response.starts_with(start))
}

/// Warnings about runs that some of these responses are touched by.
pub(super) fn doubted(runs: &[&Run], responses: &[&Metric]) -> Vec<Caveat> {
    let doubts: BTreeSet<&str> = runs.iter().flat_map(|run| warnings(run)).collect();
    let touched =
        doubts.into_iter().filter(|name| responses.iter().any(|of| touches(name, of.id.name())));
    touched.map(|name| Caveat::RunsDoubted(name.into())).collect()
}

/// Names of warnings about a run. What is not acted on is said of the factor.
fn warnings(run: &Run) -> impl Iterator<Item = &str> {
    named(run, Severity::Warning).filter(|name| *name != IGNORED_SETTING)
}

fn named(run: &Run, severity: Severity) -> impl Iterator<Item = &str> {
    let all = run.doubts.iter().filter(move |doubt| doubt.severity == severity);
    all.map(|doubt| doubt.name.as_str())
}

/// Runs of the whole design that are not used; what their doubts say is said with these.
pub(super) fn left_out(all: &UsedRuns) -> Option<Finding> {
    let runs = all.used();
    let number = runs.len();
    let invalid: Vec<&Run> = runs.into_iter().filter(|run| is_invalid(run)).collect();
    let mut doubts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in invalid.iter().flat_map(|run| named(run, Severity::Invalid)) {
        *doubts.entry(name).or_default() += 1;
    }
    let doubts = doubts.into_iter().map(|(name, runs)| (name.to_string(), runs)).collect();
    let subject = Subject::LeftOut { runs: invalid.len(), all: number, doubts };
    let workload = &all.design.workload;
    (!invalid.is_empty()).then(|| about(FindingKind::LeftOut, workload, subject, &invalid))
}
