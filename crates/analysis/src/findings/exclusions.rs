//! Runs that are excluded because their numbers must not be used, and the warnings about the runs that are kept.

use super::{UsedRuns, finding_about, is_invalid};
use crate::finding::{Caveat, Finding, FindingKind, Subject};
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::Metric;
use feedrate_results::doubt::IGNORED_SETTING;
use feedrate_results::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Doubts that concern only some responses, with the prefix of the names of these responses. No response begins with `reported`, so doubts
/// with this prefix concern no response.
const DOUBTS_OF_SOME_RESPONSES: &[(&str, &str)] = &[
    ("wrong_step_count", "reported"),
    ("au_misreported", "reported"),
    ("au_disagrees", "au_windowed"),
    ("window_shorter_than_stock", "au_windowed"),
    ("nominal_bytes", "nominal"),
    ("throughput_misreported", "reported"),
];

fn concerns_response(doubt: &str, response: &str) -> bool {
    let limited = DOUBTS_OF_SOME_RESPONSES.iter().find(|(name, _)| *name == doubt);
    limited.is_none_or(|(_, prefix)| response.starts_with(prefix))
}

/// Caveats for the warnings about `runs` that concern at least one of `responses`.
pub(super) fn doubt_caveats(runs: &[&Run], responses: &[&Metric]) -> Vec<Caveat> {
    let doubts: BTreeSet<&str> = runs.iter().flat_map(|run| warnings(run)).collect();
    doubts
        .into_iter()
        .filter(|doubt| {
            responses.iter().any(|response| concerns_response(doubt, response.id.name()))
        })
        .map(|doubt| Caveat::RunsDoubted(doubt.into()))
        .collect()
}

/// Names of the warnings about a run. Ignored settings have a separate finding.
fn warnings(run: &Run) -> impl Iterator<Item = &str> {
    doubts_of_severity(run, Severity::Warning).filter(|name| *name != IGNORED_SETTING)
}

fn doubts_of_severity(run: &Run, severity: Severity) -> impl Iterator<Item = &str> {
    let doubts = run.doubts.iter().filter(move |doubt| doubt.severity == severity);
    doubts.map(|doubt| doubt.name.as_str())
}

/// The finding that names the excluded runs of a design and their doubts; `None` if all runs are used.
pub(super) fn excluded_runs(all: &UsedRuns) -> Option<Finding> {
    let runs = all.used_runs();
    let number = runs.len();
    let invalid: Vec<&Run> = runs.into_iter().filter(|run| is_invalid(run)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in invalid.iter().flat_map(|run| doubts_of_severity(run, Severity::Invalid)) {
        *counts.entry(name).or_default() += 1;
    }
    let doubts = counts.into_iter().map(|(name, runs)| (name.to_string(), runs)).collect();
    let subject = Subject::LeftOut { runs: invalid.len(), all: number, doubts };
    let workload = &all.design.workload;
    (!invalid.is_empty()).then(|| finding_about(FindingKind::LeftOut, workload, subject, &invalid))
}
