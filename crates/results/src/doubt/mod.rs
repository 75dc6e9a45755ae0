//! Doubts about imported results and about sets of runs. A doubt is a named reason not to trust a number. `measure::doubt` has the doubts about
//! single records. Each doubt has one file and one row in [`DOUBTS`].
//!
//! To add a doubt: write its file with a `pub(super) static DOUBT`, add its `mod` line and its row here, and to `tests` a run where it fires
//! and a run where it does not. `feedrate list` reads the table.

mod stale_data;
mod duplicate_results;
mod unreadable_files;
mod incomplete_run;
mod missing_ranks;
mod mixed_ranks;
mod time_runs_backwards;
mod empty_window;
mod config_disagrees;
mod wrong_step_count;
mod au_misreported;
mod mean_misreported;
mod throughput_misreported;
mod impossible_values;
mod generated_in_same_process;
mod nominal_bytes;
mod cache_unseen;
mod not_all_data_read;
mod eval_divided_by_ranks;
mod ignored_setting;
mod settings_differ;
mod hosts_apart;
mod no_step_files;
mod checkpoint_too_small;
mod no_config;
mod cores_short;
mod no_replicates;
mod outlier;
#[cfg(test)]
mod tests;

pub use ignored_setting::NAME as IGNORED_SETTING;
pub(crate) use nominal_bytes::NAME as NOMINAL_BYTES;
pub use stale_data::NAME as STALE_DATA;

use crate::import::Imported;
use crate::relations::Relations;
use crate::run::Run;
use feedrate_measure::doubt::{
    Bias, Doubt, DoubtKind, Severity, table_position as position_in_records,
};
use feedrate_measure::facts::Facts;
#[cfg(test)]
use std::path::Path;

/// All doubts of results and sets, in display order within a severity.
pub static DOUBTS: &[&RunDoubt] = &[
    &stale_data::DOUBT,
    &duplicate_results::DOUBT,
    &unreadable_files::DOUBT,
    &incomplete_run::DOUBT,
    &missing_ranks::DOUBT,
    &mixed_ranks::DOUBT,
    &time_runs_backwards::DOUBT,
    &empty_window::DOUBT,
    &config_disagrees::DOUBT,
    &wrong_step_count::DOUBT,
    &au_misreported::DOUBT,
    &mean_misreported::DOUBT,
    &throughput_misreported::DOUBT,
    &impossible_values::DOUBT,
    &generated_in_same_process::DOUBT,
    &nominal_bytes::DOUBT,
    &cache_unseen::DOUBT,
    &not_all_data_read::DOUBT,
    &eval_divided_by_ranks::DOUBT,
    &ignored_setting::DOUBT,
    &settings_differ::DOUBT,
    &outlier::DOUBT,
    &hosts_apart::DOUBT,
    &no_step_files::DOUBT,
    &checkpoint_too_small::DOUBT,
    &no_config::DOUBT,
    &cores_short::DOUBT,
    &no_replicates::DOUBT,
];

/// A row of [`DOUBTS`].
pub struct RunDoubt {
    /// Name, severity and texts. Doubts with the same meaning have the same name here and in `measure::doubt`.
    pub kind: DoubtKind,
    /// Decides whether a run has the doubt.
    pub check: Check,
    /// Writes results in which one run has the doubt.
    #[cfg(test)]
    fires: fn(&Path),
}

/// The check of a doubt, by its input. It returns the facts of the doubt if the run has it.
#[derive(Clone, Copy)]
pub enum Check {
    /// Checks one run.
    Run(fn(&Run) -> Option<Facts>),
    /// Checks one run and the contents of its DLIO folder.
    Import(fn(&Run, &Imported) -> Option<Facts>),
    /// Checks one run, given by its index, together with the other runs.
    Set(fn(&Relations, usize) -> Option<Facts>),
}

/// Returns the doubts that follow from a run alone. `imported` is the content of its DLIO folder, if it has no record.
pub fn run_doubts(run: &Run, imported: Option<&Imported>) -> Vec<Doubt> {
    let rows = DOUBTS.iter().filter_map(|row| match row.check {
        Check::Run(check) => Some(row.kind.with_facts(check(run)?)),
        Check::Import(check) => Some(row.kind.with_facts(check(run, imported?)?)),
        Check::Set(_) => None,
    });
    rows.collect()
}

/// Returns the doubts that follow from comparing a run with other runs.
pub fn set_doubts(relations: &Relations, index: usize) -> Vec<Doubt> {
    let rows = DOUBTS.iter().filter_map(|row| match row.check {
        Check::Set(check) => Some(row.kind.with_facts(check(relations, index)?)),
        _ => None,
    });
    rows.collect()
}

/// Sorts doubts by severity, the worst first, and keeps the first doubt of each name.
pub fn sort(doubts: &mut Vec<Doubt>) {
    doubts.sort_by_key(|doubt| (doubt.severity, display_position(&doubt.name)));
    doubts.dedup_by(|later, first| later.name == first.name);
}

fn display_position(name: &str) -> usize {
    let position = DOUBTS.iter().position(|row| row.kind.name == name);
    position.unwrap_or_else(|| DOUBTS.len() + position_in_records(name))
}
