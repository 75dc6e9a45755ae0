//! Doubts of results that others wrote, and of sets of runs: named reasons not to believe a number, as `measure::doubt` has them of a record.
//! One file a doubt, one row in [`DOUBTS`].
//!
//! To add one: write its file with a `pub(super) static DOUBT`, add its `mod` line and row here, a run in `tests.rs` where it fires and one
//! where it does not, and its line in docs/guide/analyze.md. `feedrate list` reads the table.

mod stale_data;
mod duplicate_results;
mod unreadable_files;
mod incomplete_run;
mod missing_ranks;
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
#[cfg(test)]
mod tests;

pub use ignored_setting::NAME as IGNORED_SETTING;
pub(crate) use nominal_bytes::NAME as NOMINAL_BYTES;
pub(crate) use stale_data::NAME as STALE_DATA;

use crate::import::Imported;
use crate::relations::Relations;
use crate::run::Run;
use feedrate_measure::doubt::{Doubt, DoubtKind, Severity, place as place_in_records};
use feedrate_measure::facts::Facts;
#[cfg(test)]
use std::path::Path;

/// Every doubt of results and sets, in the order they are shown within a severity.
pub static DOUBTS: &[&RunDoubt] = &[
    &stale_data::DOUBT,
    &duplicate_results::DOUBT,
    &unreadable_files::DOUBT,
    &incomplete_run::DOUBT,
    &missing_ranks::DOUBT,
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
    &hosts_apart::DOUBT,
    &no_step_files::DOUBT,
    &checkpoint_too_small::DOUBT,
    &no_config::DOUBT,
    &cores_short::DOUBT,
    &no_replicates::DOUBT,
];

/// A row of the table.
pub struct RunDoubt {
    /// Name, severity and text; the name is that of a doubt of records where it means the same.
    pub kind: DoubtKind,
    /// Looks for it.
    pub check: Check,
    /// Writes results of which one run deserves it.
    #[cfg(test)]
    fires: fn(&Path),
}

/// The runs that a check looks at.
#[derive(Clone, Copy)]
pub enum Check {
    /// One run.
    OfRun(fn(&Run) -> Option<Facts>),
    /// One run with the contents of its DLIO folder.
    OfImport(fn(&Run, &Imported) -> Option<Facts>),
    /// One run, by its index, among others.
    AmongRuns(fn(&Relations, usize) -> Option<Facts>),
}

/// Those that a run deserves by itself. `imported`: its DLIO folder, where it has no record.
pub fn of_run(run: &Run, imported: Option<&Imported>) -> Vec<Doubt> {
    let rows = DOUBTS.iter().filter_map(|row| match row.check {
        Check::OfRun(check) => Some(row.kind.with_facts(check(run)?)),
        Check::OfImport(check) => Some(row.kind.with_facts(check(run, imported?)?)),
        Check::AmongRuns(_) => None,
    });
    rows.collect()
}

/// Those that a run deserves among others.
pub fn among_runs(relations: &Relations, index: usize) -> Vec<Doubt> {
    let rows = DOUBTS.iter().filter_map(|row| match row.check {
        Check::AmongRuns(check) => Some(row.kind.with_facts(check(relations, index)?)),
        _ => None,
    });
    rows.collect()
}

/// The worst first, each name once: the first of a name stays.
pub fn in_order(doubts: &mut Vec<Doubt>) {
    doubts.sort_by_key(|doubt| (doubt.severity, place(&doubt.name)));
    doubts.dedup_by(|later, first| later.name == first.name);
}

fn place(name: &str) -> usize {
    let own = DOUBTS.iter().position(|row| row.kind.name == name);
    own.unwrap_or_else(|| DOUBTS.len() + place_in_records(name))
}
