//! Doubts: named reasons not to believe a number. One file a doubt, one row in [`DOUBTS`].
//!
//! To add one: write its file with a `pub(super) static DOUBT`, add its `mod` line and row here, and a case in `tests.rs` where it
//! fires and one where it does not. `feedrate list`, `describe` and the contract tests read the table.

mod incomplete_run;
mod planned;
mod window_shorter_than_stock;
mod too_few_steps;
mod au_disagrees;
mod page_cache;
mod direct_not_in_effect;
mod other_io;
mod client_cpu_saturated;
mod straggler_accelerator;
mod compute_overshoot;
mod first_epoch_differs;
mod results_on_device_under_test;
mod clock_step;
#[cfg(test)]
mod tests;

use crate::facts::Facts;
use feedrate_spec::plan::PlanDoubt;
use serde::Serialize;

/// Every doubt, in the order they are shown within a severity.
pub static DOUBTS: &[&Doubt] = &[
    &incomplete_run::DOUBT,
    &planned::RECORDS_SHRUNK,
    &planned::NOT_COLD,
    &planned::NOT_WARM,
    &planned::DEVICE_NOT_QUIET,
    &window_shorter_than_stock::DOUBT,
    &too_few_steps::DOUBT,
    &au_disagrees::DOUBT,
    &page_cache::DOUBT,
    &direct_not_in_effect::DOUBT,
    &other_io::DOUBT,
    &client_cpu_saturated::DOUBT,
    &straggler_accelerator::DOUBT,
    &compute_overshoot::DOUBT,
    &first_epoch_differs::DOUBT,
    &planned::SCALED,
    &planned::DATASET_FITS_PAGE_CACHE,
    &planned::CHECKPOINT_NOT_REACHED,
    &planned::EVALUATION_NOT_REACHED,
    &planned::SAMPLES_IN_MEMORY,
    &planned::RAW_CHECKPOINT,
    &planned::SHARED_GPU,
    &planned::CHECKPOINTS_EXCEED_DISK,
    &results_on_device_under_test::DOUBT,
    &clock_step::DOUBT,
    &planned::REPLICATES_DIFFER,
    &planned::NO_REPLICATES,
];

/// A row of the table.
pub struct Doubt {
    /// Stable name in snake_case.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is doubted and why, in one sentence.
    pub meaning: &'static str,
    /// Looks for it.
    pub check: fn(&Facts) -> Option<Finding>,
}

/// How much a doubt takes from the numbers. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The numbers must not be used.
    Invalid,
    /// At least one number may mislead.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Invalid => "invalid",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// What a check saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// With figures.
    pub evidence: String,
    /// What to do.
    pub advice: String,
}

/// A doubt that a record deserves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "as in `Doubt` and `Finding`")]
pub struct SeenDoubt {
    pub name: String,
    pub severity: Severity,
    pub evidence: String,
    pub advice: String,
}

/// All doubts a record deserves, the worst first: those that its figures show, those of its plan, those seen while it ran.
pub fn of(facts: &Facts) -> Vec<SeenDoubt> {
    let mut seen: Vec<SeenDoubt> =
        DOUBTS.iter().filter_map(|doubt| seen_in(doubt, facts)).collect();
    for known in facts.record.doubts.iter().chain(&facts.record.plan.doubts) {
        if seen.iter().all(|doubt| doubt.name != known.name) {
            seen.push(passed_on(known));
        }
    }
    let place = |name: &str| DOUBTS.iter().position(|doubt| doubt.name == name);
    seen.sort_by_key(|doubt| (doubt.severity, place(&doubt.name).unwrap_or(DOUBTS.len())));
    seen
}

/// The doubt of a name.
pub fn find(name: &str) -> Option<&'static Doubt> {
    DOUBTS.iter().copied().find(|doubt| doubt.name == name)
}

fn seen_in(doubt: &Doubt, facts: &Facts) -> Option<SeenDoubt> {
    let Finding { evidence, advice } = (doubt.check)(facts)?;
    Some(SeenDoubt { name: doubt.name.into(), severity: doubt.severity, evidence, advice })
}

/// A name that this table does not have is another version's, and is taken seriously.
fn passed_on(known: &PlanDoubt) -> SeenDoubt {
    SeenDoubt {
        name: known.name.clone(),
        severity: find(&known.name).map_or(Severity::Warning, |doubt| doubt.severity),
        evidence: known.evidence.clone(),
        advice: known.advice.clone(),
    }
}

fn found(evidence: impl Into<String>, advice: &str) -> Option<Finding> {
    Some(Finding { evidence: evidence.into(), advice: advice.into() })
}
