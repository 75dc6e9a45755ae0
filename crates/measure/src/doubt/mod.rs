//! Doubts: named reasons not to believe a number. One file a doubt, one row in [`DOUBTS`].
//!
//! To add one: write its file with a `pub(super) static DOUBT`, which holds a case where it fires and one where it does not; add its
//! `mod` line and row here. `feedrate list` and the contract tests read the table.

mod incomplete_run;
mod stale_data;
mod window_shorter_than_stock;
mod too_few_steps;
mod au_disagrees;
mod page_cache;
mod checkpoints_from_page_cache;
mod metadata_warm;
mod direct_not_in_effect;
mod other_io;
mod client_cpu_saturated;
mod straggler_accelerator;
mod compute_overshoot;
mod first_epoch_differs;
mod no_step_causes;
mod watched;
mod members_not_decoded;
mod results_on_device_under_test;
mod clock_step;
#[cfg(test)]
mod tests;

pub use client_cpu_saturated::NAME as CPU_SATURATED;
pub(crate) use client_cpu_saturated::is_saturated;
pub use page_cache::NAME as PAGE_CACHE;

use crate::derived::Derived;
use crate::facts::Facts;
use feedrate_spec::names;
use feedrate_spec::plan::PlanDoubt;
use schemars::JsonSchema;
use serde::Serialize;

/// Every doubt of records, in the order they are shown within a severity.
pub static DOUBTS: &[&RecordDoubt] = &[
    &incomplete_run::DOUBT,
    &stale_data::DOUBT,
    &warning(
        "records_shrunk",
        "Records were made smaller than the workload's: this is another workload.",
    ),
    &warning("not_cold", "The page cache should have been emptied of the dataset, and was not."),
    &warning(
        "not_warm",
        "The dataset should have been in the page cache when training began, and part of it was not.",
    ),
    &warning(
        "device_not_quiet",
        "Others used the device or the processors shortly before a run of a study began.",
    ),
    &window_shorter_than_stock::DOUBT,
    &too_few_steps::DOUBT,
    &au_disagrees::DOUBT,
    &page_cache::DOUBT,
    &checkpoints_from_page_cache::DOUBT,
    &direct_not_in_effect::DOUBT,
    &other_io::DOUBT,
    &client_cpu_saturated::DOUBT,
    &straggler_accelerator::DOUBT,
    &compute_overshoot::DOUBT,
    &first_epoch_differs::DOUBT,
    &metadata_warm::DOUBT,
    &no_step_causes::DOUBT,
    &watched::DOUBT,
    &members_not_decoded::DOUBT,
    &note(
        "scaled",
        "Fewer files or samples than the workload's were used, or smaller tensors in checkpoints: epochs and checkpoints are shorter.",
    ),
    &note(
        "dataset_subset",
        "The dataset has more files than the workload names, and the first of them were used: numbers are of a part of it.",
    ),
    &note(
        "dataset_fits_page_cache",
        "The dataset is smaller than the memory, so that later epochs may not touch the storage; page_cache says whether that happened.",
    ),
    &note(
        "checkpoint_not_reached",
        "Checkpoints are asked for, and the run ended before the first: what they cost is not in the numbers.",
    ),
    &note(
        "evaluation_not_reached",
        "Evaluation is asked for, and the run ended before the first: what it costs is not in the numbers.",
    ),
    &note(
        "samples_in_memory",
        "Samples stay in the process's memory after they were read once: later epochs say nothing about the storage.",
    ),
    &note(
        "staged",
        "Samples were read from a copy of the dataset, not where it lies: steps say what the copy's storage gives.",
    ),
    &note(
        "emulated",
        "Storage or accelerators were made slower than they are: the numbers are of what was emulated.",
    ),
    &warning(
        "workers_outnumber_shards",
        "Some workers had no file to read, where each reads whole files: fewer were at work than the settings say.",
    ),
    &warning(
        "ranks_share_no_memory",
        "Ranks of a machine waited for each other by the MPI library instead of memory that they share, which tells them late that a step may begin: barriers are too long.",
    ),
    &note(
        "raw_checkpoint",
        "Checkpoints are the bytes of the tensors alone: their size is right, and no framework can load them.",
    ),
    &note(
        "shared_gpu",
        "Emulated accelerators shared a GPU: what it shows is of all of them together, and copies of one delay another's.",
    ),
    &warning(
        "client_of_others",
        "The client's costs were measured with another loader, or on files of another format, than this run has.",
    ),
    &warning(
        "checkpoints_exceed_disk",
        "All checkpoints together are larger than what is free where they are to be written.",
    ),
    &results_on_device_under_test::DOUBT,
    &clock_step::DOUBT,
    &warning(
        "replicates_differ",
        "Runs that replicate each other by their rows were made by different plans: a workload file or a default changed in between.",
    ),
    &note(
        "no_replicates",
        "A difference between runs that were made once: how far they vary from one time to the next is not known. Epochs of one run are no replicates.",
    ),
];

const fn warning(name: &'static str, meaning: &'static str) -> RecordDoubt {
    noticed(name, Severity::Warning, meaning)
}

const fn note(name: &'static str, meaning: &'static str) -> RecordDoubt {
    noticed(name, Severity::Note, meaning)
}

/// Noticed while planning or running, and shown by no figure of a record: passed on with the text of whoever noticed it.
const fn noticed(name: &'static str, severity: Severity, meaning: &'static str) -> RecordDoubt {
    RecordDoubt {
        kind: DoubtKind { name, severity, meaning, evidence: "", advice: "" },
        needs_loader: false,
        check: None,
        #[cfg(test)]
        cases: &[],
    }
}

/// A row of the table.
pub struct RecordDoubt {
    /// Name, severity and text.
    pub kind: DoubtKind,
    /// Whether it rests on how many batches the loader holds, which settings decide.
    pub needs_loader: bool,
    /// Looks for it in what follows from a record; `None` for what is noticed while planning or running.
    pub check: Option<fn(&Derived) -> Option<Facts>>,
    /// Records where it fires and where it does not.
    #[cfg(test)]
    cases: &'static [tests::Case],
}

/// Whatever has this name means the same: in records, imports and sets of runs.
pub struct DoubtKind {
    /// Stable name in snake_case.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The reason not to believe, in one sentence.
    pub meaning: &'static str,
    /// Template of the evidence: see [`Facts::render`].
    pub evidence: &'static str,
    /// Template of the advice.
    pub advice: &'static str,
}

impl DoubtKind {
    /// The doubt that these facts make.
    pub fn seen(&self, facts: Facts) -> Doubt {
        Doubt {
            name: self.name.into(),
            severity: self.severity,
            evidence: facts.render(self.evidence),
            advice: facts.render(self.advice),
            facts,
        }
    }
}

names! {
    /// How much a doubt takes from the numbers. The worst comes first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// The numbers must not be used.
        Invalid = "invalid",
        /// At least one number may mislead.
        Warning = "warning",
        /// Worth knowing.
        Note = "note",
    }
}

/// A doubt that a run deserves, whoever wrote its results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Doubt {
    /// That of its row.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// The facts in a sentence.
    pub evidence: String,
    /// How to get rid of it.
    pub advice: String,
    /// None of a doubt that came as text: from a plan, or from a record of an older version.
    pub facts: Facts,
}

/// All doubts a record deserves, the worst first: those that its figures show, those of its plan, those seen while it ran.
pub fn doubts(derived: &Derived) -> Vec<Doubt> {
    let mut seen: Vec<Doubt> = Vec::new();
    for row in DOUBTS {
        let facts = row.check.and_then(|check| check(derived));
        seen.extend(facts.map(|facts| row.kind.seen(facts)));
    }
    for known in derived.record.doubts.iter().chain(&derived.record.plan.doubts) {
        if seen.iter().all(|doubt| doubt.name != known.name) {
            seen.push(passed_on(known));
        }
    }
    seen.sort_by_key(|doubt| (doubt.severity, place(&doubt.name)));
    seen
}

/// The kind of a name.
pub fn find(name: &str) -> Option<&'static DoubtKind> {
    DOUBTS.iter().map(|row| &row.kind).find(|kind| kind.name == name)
}

/// Whether the doubt of this name rests on the settings of the loader.
pub fn needs_loader(name: &str) -> bool {
    DOUBTS.iter().any(|row| row.kind.name == name && row.needs_loader)
}

/// Position in the table; unknown names come last.
pub fn place(name: &str) -> usize {
    DOUBTS.iter().position(|row| row.kind.name == name).unwrap_or(DOUBTS.len())
}

/// A name that this table does not have is another version's, and is taken seriously.
fn passed_on(known: &PlanDoubt) -> Doubt {
    Doubt {
        name: known.name.clone(),
        severity: find(&known.name).map_or(Severity::Warning, |kind| kind.severity),
        evidence: known.evidence.clone(),
        advice: known.advice.clone(),
        facts: Facts::new(),
    }
}
