//! Runs that are left out before anything is made of the others, and doubts that stay with what rests on the others.

use super::{Observation, UsedRuns, about};
use crate::design::Design;
use crate::finding::{Finding, Kind, Subject};
use feedrate_measure::doubt::Severity;
use std::collections::BTreeMap;

/// Doubts that touch only some numbers, each with the start of their names; what was reported is no response.
const TOUCHES_ONLY: &[(&str, &str)] = &[
    ("wrong_step_count", "reported"),
    ("au_misreported", "reported"),
    ("au_disagrees", "au_windowed"),
    ("wait_outside_window", "au_windowed"),
    ("window_shorter_than_stock", "au_windowed"),
    ("ranks_disagree", "au_windowed"),
    ("nominal_bytes", "nominal"),
    ("throughput_misreported", "reported"),
    // Growth of what was recomputed has a finding of its own.
    ("superlinear_scaling", "reported"),
];

/// Whether a doubt is about this response.
pub(super) fn touches(doubt: &str, response: &str) -> bool {
    let only = TOUCHES_ONLY.iter().find(|(name, _)| *name == doubt);
    only.is_none_or(|(_, start)| response.starts_with(start))
}

/// Names of warnings about a run. What is not acted on is said of the factor.
pub(super) fn warnings(run: &Observation) -> impl Iterator<Item = &str> {
    named(run, Severity::Warning).filter(|name| *name != "ignored_setting")
}

fn named(run: &Observation, severity: Severity) -> impl Iterator<Item = &str> {
    let all = run.doubts.iter().filter(move |doubt| doubt.severity == severity);
    all.map(|doubt| doubt.name.as_str())
}

/// Runs of the whole design that are not used; what their doubts say is said with these.
pub(super) fn left_out(all: &Design, group: &UsedRuns) -> Option<Finding> {
    let runs: usize = all.cells.iter().map(|cell| cell.runs.len()).sum();
    let of = invalid(all, group.runs);
    let mut doubts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in of.iter().flat_map(|run| named(run, Severity::Invalid)) {
        *doubts.entry(name).or_default() += 1;
    }
    let doubts = doubts.into_iter().map(|(name, runs)| (name.to_string(), runs)).collect();
    let subject = Subject::LeftOut { runs: of.len(), all: runs, doubts };
    (!of.is_empty()).then(|| about(Kind::LeftOut, &all.workload, subject, &of))
}

fn invalid<'a>(design: &Design, runs: &'a [Observation]) -> Vec<&'a Observation> {
    let places = design.cells.iter().flat_map(|cell| &cell.runs);
    places.map(|&run| &runs[run]).filter(|run| run.is_invalid()).collect()
}
