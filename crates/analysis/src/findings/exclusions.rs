//! Runs that are excluded because their numbers must not be used or may be those of another dataset, and the warnings about the runs that are kept.

use super::{UsedRuns, finding_about, is_excluded};
use crate::finding::{Caveat, Finding, FindingKind, Subject};
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::Metric;
use feedrate_results::doubt::{IGNORED_SETTING, STALE_DATA};
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
    let doubts = run.doubts.iter().filter(|doubt| doubt.severity == Severity::Warning);
    doubts.map(|doubt| doubt.name.as_str()).filter(|name| *name != IGNORED_SETTING)
}

/// Whether a doubt excludes its run from findings. The run may have read other data than its settings say, so it is no replicate of runs with
/// equal settings.
pub(super) fn excludes_run(doubt: &Doubt) -> bool {
    doubt.severity == Severity::Invalid || doubt.name == STALE_DATA
}

/// The finding that names the excluded runs of a design and their doubts; `None` if all runs are used.
pub(super) fn excluded_runs(all: &UsedRuns) -> Option<Finding> {
    let runs = all.used_runs();
    let number = runs.len();
    let excluded: Vec<&Run> = runs.into_iter().filter(|run| is_excluded(run)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for doubt in excluded.iter().flat_map(|run| &run.doubts).filter(|doubt| excludes_run(doubt)) {
        *counts.entry(&doubt.name).or_default() += 1;
    }
    let doubts = counts.into_iter().map(|(name, runs)| (name.to_string(), runs)).collect();
    let subject = Subject::LeftOut { runs: excluded.len(), all: number, doubts };
    let workload = &all.design.workload;
    let is_any = !excluded.is_empty();
    is_any.then(|| finding_about(FindingKind::LeftOut, workload, subject, &excluded))
}
