//! Doubts: named reasons not to trust a number. Each doubt has a row in [`DOUBTS`]. A doubt that is found from a record also has a file.
//!
//! To add one, write its file with a `pub(super) static DOUBT`, which contains a case where the doubt fires and one where it does not, and
//! add its `mod` line and row here. `feedrate list` and the contract tests read the table.

mod incomplete_run;
mod stale_data;
mod window_shorter_than_stock;
mod too_few_steps;
mod au_disagrees;
mod page_cache;
mod device_bytes_unknown;
mod checkpoints_from_page_cache;
mod checkpoints_not_synced;
mod metadata_warm;
mod direct_not_in_effect;
mod other_io;
mod throttled;
mod retried;
mod client_cpu_saturated;
mod config_disagrees;
mod straggler_accelerator;
mod compute_overshoot;
mod first_epoch_differs;
mod no_step_causes;
mod watched;
mod watch_not_closed;
mod members_not_decoded;
mod bytes_left_unread;
mod values_elsewhere;
mod samples_guessed;
mod results_on_device_under_test;
mod clock_step;
#[cfg(test)]
mod tests;

pub use checkpoints_from_page_cache::NAME as CHECKPOINTS_FROM_PAGE_CACHE;
pub use checkpoints_not_synced::NAME as CHECKPOINTS_NOT_SYNCED;
pub use client_cpu_saturated::NAME as CPU_SATURATED;
pub use compute_overshoot::{NAME as COMPUTE_OVERSHOOT, compute_stretch};
pub use config_disagrees::{KIND as CONFIG_DISAGREES_KIND, NAME as CONFIG_DISAGREES};
pub use incomplete_run::NAME as INCOMPLETE_RUN;
pub use other_io::NAME as OTHER_IO;
pub use values_elsewhere::NAME as VALUES_ELSEWHERE;
pub(crate) use values_elsewhere::elsewhere_names;
pub use window_shorter_than_stock::NAME as SHORT_WINDOW;

use crate::derived::Derived;
use crate::facts::Facts;
use feedrate_spec::names;
use feedrate_spec::plan::{FITS_PAGE_CACHE, PlanDoubt};
use schemars::JsonSchema;
use serde::Serialize;

/// All doubts about records, in the order in which they are shown within a severity.
pub static DOUBTS: &[&RecordDoubt] = &[
    &incomplete_run::DOUBT,
    &stale_data::DOUBT,
    &config_disagrees::DOUBT,
    &warning(
        "records_shrunk",
        Bias::Either,
        "Samples were made smaller than the workload's: this is another workload.",
    ),
    &warning(
        "not_cold",
        Bias::Raised,
        "The dataset should have been removed from the page cache, but was not.",
    ),
    &warning(
        "not_warm",
        Bias::Lowered,
        "The dataset should have been in the page cache when training began, but part of it was not.",
    ),
    &warning(
        "device_not_quiet",
        Bias::Lowered,
        "Other processes used the device or the processors shortly before a run of a study began.",
    ),
    &window_shorter_than_stock::DOUBT,
    &too_few_steps::DOUBT,
    &au_disagrees::DOUBT,
    &page_cache::DOUBT,
    &device_bytes_unknown::DOUBT,
    &checkpoints_from_page_cache::DOUBT,
    &checkpoints_not_synced::DOUBT,
    &direct_not_in_effect::DOUBT,
    &other_io::DOUBT,
    &throttled::DOUBT,
    &retried::DOUBT,
    &client_cpu_saturated::DOUBT,
    &straggler_accelerator::DOUBT,
    &compute_overshoot::DOUBT,
    &first_epoch_differs::DOUBT,
    &metadata_warm::DOUBT,
    &no_step_causes::DOUBT,
    &watched::DOUBT,
    &watch_not_closed::DOUBT,
    &members_not_decoded::DOUBT,
    &bytes_left_unread::DOUBT,
    &values_elsewhere::DOUBT,
    &samples_guessed::DOUBT,
    &warning(
        "files_left_out",
        Bias::Raised,
        "Less than 80 % of a folder's bytes are in the files of the kind that is read: a job that reads the others as well needs more from the storage.",
    ),
    &warning(
        "no_steps",
        Bias::Either,
        "There were too few samples for one step of all ranks, so nothing was trained, as in DLIO: the run shows nothing about the storage.",
    ),
    &note(
        "scaled",
        "Fewer files or samples than the workload's were used, or smaller tensors in checkpoints: epochs and checkpoints are shorter.",
    ),
    &note(
        "dataset_subset",
        "The dataset has more files than the workload requires, and only the first ones were used: numbers describe a part of the dataset.",
    ),
    &note(
        FITS_PAGE_CACHE,
        "The dataset is smaller than the memory, so later epochs may not use the storage; the doubt page_cache reports whether that happened.",
    ),
    &note(
        "checkpoint_not_reached",
        "Checkpoints are configured, but the run ended before the first one: the numbers do not include their cost.",
    ),
    &note(
        "evaluation_not_reached",
        "Evaluation is configured, but the run ended before the first one: the numbers do not include its cost.",
    ),
    &note(
        "samples_in_memory",
        "Samples stay in the process's memory after they are read once: later epochs show nothing about the storage.",
    ),
    &note(
        "staged",
        "Samples were read from a copy of the dataset: steps show the speed of the copy's storage.",
    ),
    &note(
        "emulated",
        "Storage or accelerators were made slower than they are: the numbers describe the emulated hardware.",
    ),
    &warning(
        "workers_outnumber_shards",
        Bias::Lowered,
        "Each worker reads whole files, and some had no file to read: fewer workers were active than configured.",
    ),
    &warning(
        "ranks_share_no_memory",
        Bias::Lowered,
        "Ranks of a machine waited for each other through the MPI library instead of shared memory, so steps started late: barriers are too long.",
    ),
    &note(
        "raw_checkpoint",
        "Checkpoints contain only the bytes of the tensors: their size is correct, but no framework can load them.",
    ),
    &note(
        "shared_gpu",
        "Emulated accelerators shared a GPU: its figures describe all of them together, and their copies delay each other.",
    ),
    &warning(
        "client_of_others",
        Bias::Either,
        "The client's costs were measured with another loader or another file format than those of this run.",
    ),
    &warning(
        "checkpoints_exceed_disk",
        Bias::Unaffected,
        "All checkpoints together are larger than the free space of the file system they are written to.",
    ),
    &results_on_device_under_test::DOUBT,
    &clock_step::DOUBT,
    &warning(
        "replicates_differ",
        Bias::Either,
        "Runs whose rows make them replicates had different plans: a workload file or a default changed in between.",
    ),
    &note(
        "no_replicates",
        "The compared runs were made once each, so their variation from run to run is unknown. Epochs of one run are not replicates.",
    ),
];

const fn warning(name: &'static str, bias: Bias, meaning: &'static str) -> RecordDoubt {
    reported_doubt(name, Severity::Warning, bias, meaning)
}

const fn note(name: &'static str, meaning: &'static str) -> RecordDoubt {
    reported_doubt(name, Severity::Note, Bias::Unaffected, meaning)
}

/// A doubt that is reported while planning or running, because it cannot be found from a record. It is shown with the reported text.
const fn reported_doubt(
    name: &'static str,
    severity: Severity,
    bias: Bias,
    meaning: &'static str,
) -> RecordDoubt {
    RecordDoubt {
        kind: DoubtKind { name, severity, bias, meaning, evidence: "", advice: "" },
        needs_loader: false,
        check: None,
        #[cfg(test)]
        cases: &[],
    }
}

/// A row of the table.
pub struct RecordDoubt {
    /// Name, severity and texts.
    pub kind: DoubtKind,
    /// Whether the doubt depends on the number of batches that the loader holds.
    pub needs_loader: bool,
    /// Finds the doubt from a record; `None` for doubts that are reported while planning or running.
    pub check: Option<fn(&Derived) -> Option<Facts>>,
    /// Records for which the doubt fires, and records without doubts.
    #[cfg(test)]
    cases: &'static [tests::Case],
}

/// Name, severity and texts of a doubt. They are shared by records, imported results and sets of runs.
pub struct DoubtKind {
    /// Stable name in snake_case.
    pub name: &'static str,
    /// Severity.
    pub severity: Severity,
    /// The possible effect of the cause on the run's utilisation and rates.
    pub bias: Bias,
    /// The reason for the doubt, in one sentence.
    pub meaning: &'static str,
    /// Template of the evidence; see [`Facts::render`].
    pub evidence: &'static str,
    /// Template of the advice; see [`Facts::render`].
    pub advice: &'static str,
}

impl DoubtKind {
    /// Creates a doubt of this kind from its facts.
    pub fn with_facts(&self, facts: Facts) -> Doubt {
        Doubt {
            name: self.name.into(),
            severity: self.severity,
            bias: self.bias,
            evidence: facts.render(self.evidence),
            advice: facts.render(self.advice),
            facts,
        }
    }
}

names! {
    /// Severity of a doubt, most severe first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// The numbers must not be used.
        Invalid = "invalid",
        /// At least one number may mislead.
        Warning = "warning",
        /// Context that does not change the numbers.
        Note = "note",
    }
}

/// The possible effect of a doubt's cause on the utilisation and the rates of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// They can only be too high.
    Raised,
    /// They can only be too low.
    Lowered,
    /// They can be too high or too low, or the run is not the requested one.
    Either,
    /// Only rates of checkpoints can be wrong.
    Checkpoints,
    /// They are right; other numbers may mislead.
    Unaffected,
}

/// A doubt about a run, of feedrate or of another program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Doubt {
    /// Name of its kind.
    pub name: String,
    /// Severity.
    pub severity: Severity,
    /// The possible effect of the cause on the run's utilisation and rates.
    #[serde(skip)]
    pub bias: Bias,
    /// The facts in a sentence.
    pub evidence: String,
    /// How to remove the cause.
    pub advice: String,
    /// The facts. Empty if the doubt was recorded as text, by a plan or by an older version.
    pub facts: Facts,
}

/// All doubts about a record, most severe first: those found from the record, and those reported while planning or running.
pub fn doubts(derived: &Derived) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    for row in DOUBTS {
        let facts = row.check.and_then(|check| check(derived));
        found.extend(facts.map(|facts| row.kind.with_facts(facts)));
    }
    for reported in derived.record.doubts.iter().chain(&derived.record.plan.doubts) {
        if found.iter().all(|doubt| doubt.name != reported.name) {
            found.push(from_report(reported));
        }
    }
    found.sort_by_key(|doubt| (doubt.severity, table_position(&doubt.name)));
    found
}

/// The doubt about where the bytes of a run came from: from the page cache, or from an unknown place.
pub fn find_origin_doubt(doubts: &[Doubt]) -> Option<&Doubt> {
    let names = [page_cache::NAME, device_bytes_unknown::NAME];
    doubts.iter().find(|doubt| names.contains(&&*doubt.name))
}

/// Finds a kind of doubt by its name.
pub fn find(name: &str) -> Option<&'static DoubtKind> {
    DOUBTS.iter().map(|row| &row.kind).find(|kind| kind.name == name)
}

/// Whether the doubt with this name depends on the number of batches that the loader holds.
pub fn needs_loader(name: &str) -> bool {
    DOUBTS.iter().any(|row| row.kind.name == name && row.needs_loader)
}

/// Position of a doubt in the table; unknown names come last.
pub fn table_position(name: &str) -> usize {
    DOUBTS.iter().position(|row| row.kind.name == name).unwrap_or(DOUBTS.len())
}

/// Converts a reported doubt. A name that is not in the table comes from another version and counts as a warning.
fn from_report(reported: &PlanDoubt) -> Doubt {
    let kind = find(&reported.name);
    Doubt {
        name: reported.name.clone(),
        severity: kind.map_or(Severity::Warning, |kind| kind.severity),
        bias: kind.map_or(Bias::Either, |kind| kind.bias),
        evidence: reported.evidence.clone(),
        advice: reported.advice.clone(),
        facts: Facts::new(),
    }
}
