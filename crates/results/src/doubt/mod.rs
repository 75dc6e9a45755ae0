//! Doubts of results that others wrote, and of sets of runs: named reasons not to believe a number, as `measure::doubt` has them of a record.
//! One file a doubt, one row in [`DOUBTS`].
//!
//! To add one: write its file with a `pub(super) static DOUBT`, add its `mod` line and row here, a case in `tests.rs` where it fires and one
//! where it does not, and its line in docs/guide/analyze.md. `feedrate list` and `describe` read the table.

mod stale_data;
mod duplicate_results;
mod unreadable_files;
mod missing_ranks;
mod time_runs_backwards;
mod empty_window;
mod config_disagrees;
mod sizes_not_seen;
mod wrong_step_count;
mod wait_outside_window;
mod ranks_disagree;
mod au_misreported;
mod throughput_misreported;
mod impossible_values;
mod clocks_differ;
mod generated_in_same_process;
mod nominal_bytes;
mod not_all_data_read;
mod eval_divided_by_ranks;
mod ignored_setting;
mod settings_differ;
mod other_machine;
mod superlinear_scaling;
mod times_of_rank_0;
mod put_aside;
mod generation_only;
mod checkpoint_too_small;
mod undefined_values;
mod no_config;
mod dataset_fits_page_cache;
mod no_replicates;
#[cfg(test)]
mod tests;

pub use ignored_setting::ignored;

use crate::case::Loaded;
use crate::set::{Like, Set};
use feedrate_measure::doubt::{Doubt as SeenDoubt, Severity, place as place_in_records};
use feedrate_measure::facts::Facts;
use feedrate_spec::units;

/// Every doubt of results and sets, in the order they are shown within a severity.
pub static DOUBTS: &[&Doubt] = &[
    &stale_data::DOUBT,
    &duplicate_results::DOUBT,
    &unreadable_files::DOUBT,
    &missing_ranks::DOUBT,
    &time_runs_backwards::DOUBT,
    &empty_window::DOUBT,
    &config_disagrees::DOUBT,
    &sizes_not_seen::DOUBT,
    &wrong_step_count::DOUBT,
    &wait_outside_window::DOUBT,
    &ranks_disagree::DOUBT,
    &au_misreported::DOUBT,
    &throughput_misreported::DOUBT,
    &impossible_values::DOUBT,
    &clocks_differ::DOUBT,
    &generated_in_same_process::DOUBT,
    &nominal_bytes::DOUBT,
    &not_all_data_read::DOUBT,
    &eval_divided_by_ranks::DOUBT,
    &ignored_setting::DOUBT,
    &settings_differ::DOUBT,
    &other_machine::DOUBT,
    &superlinear_scaling::DOUBT,
    &times_of_rank_0::DOUBT,
    &put_aside::DOUBT,
    &generation_only::DOUBT,
    &checkpoint_too_small::DOUBT,
    &undefined_values::DOUBT,
    &no_config::DOUBT,
    &dataset_fits_page_cache::DOUBT,
    &no_replicates::DOUBT,
];

/// A row of the table.
pub struct Doubt {
    /// Stable name in snake_case; that of a doubt of records where it means the same.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is doubted and why, in one sentence.
    pub meaning: &'static str,
    /// Looks for it.
    pub check: Check,
}

/// Text of a doubt whose facts are not told apart yet.
pub struct Finding {
    evidence: String,
    advice: String,
}

/// What a check looks at.
#[derive(Clone, Copy)]
pub enum Check {
    /// One run.
    OfRun(fn(&Loaded) -> Option<Finding>),
    /// One run, by its index, among others.
    OfSet(fn(&Set, usize) -> Option<Finding>),
}

/// Those that a run deserves by itself.
pub fn of_run(loaded: &Loaded) -> Vec<SeenDoubt> {
    seen(|check| match check {
        Check::OfRun(check) => check(loaded),
        Check::OfSet(_) => None,
    })
}

/// Those that a run deserves among others.
pub fn of_set(set: &Set, index: usize) -> Vec<SeenDoubt> {
    seen(|check| match check {
        Check::OfRun(_) => None,
        Check::OfSet(check) => check(set, index),
    })
}

/// The worst first, each name once: what was said first of it stays.
pub fn in_order(doubts: &mut Vec<SeenDoubt>) {
    let place = |name: &str| {
        let own = DOUBTS.iter().position(|doubt| doubt.name == name);
        own.unwrap_or_else(|| DOUBTS.len() + place_in_records(name))
    };
    doubts.sort_by_key(|doubt| (doubt.severity, place(&doubt.name)));
    doubts.dedup_by(|later, first| later.name == first.name);
}

fn seen(check: impl Fn(Check) -> Option<Finding>) -> Vec<SeenDoubt> {
    let of = |doubt: &&'static Doubt| {
        let Finding { evidence, advice } = check(doubt.check)?;
        let (name, severity, facts) = (doubt.name.into(), doubt.severity, Facts::new());
        Some(SeenDoubt { name, severity, evidence, advice, facts })
    };
    DOUBTS.iter().filter_map(of).collect()
}

fn found(evidence: impl Into<String>, advice: &str) -> Option<Finding> {
    Some(Finding { evidence: evidence.into(), advice: advice.into() })
}

/// How alike two runs waited.
fn alike(set: &Set, index: usize, like: &Like) -> String {
    let (is, to) = if like.is_same() { ("is", "to") } else { ("misses", "by") };
    format!(
        "an epoch's waiting for data, step by step, {is} that of `{}` {to} {:.1} % ({} and {})",
        set.cases[like.of].short_path(),
        like.apart * 100.0,
        waited(set, index),
        waited(set, like.of)
    )
}

/// What a third run waited, and for what.
fn unlike(set: &Set, third: usize) -> String {
    let case = &set.cases[third];
    let bytes = case.mean_sample_bytes.or(case.record_length_bytes);
    let of = bytes.map_or(String::new(), |bytes| format!(" of {}", units::bytes(bytes as u64)));
    format!("`{}` waited {} for samples{of}", case.short_path(), waited(set, third))
}

fn waited(set: &Set, index: usize) -> String {
    units::seconds(set.cases[index].origin.waited_s())
}

/// A few of many, the rest counted.
fn some_of(items: &[String], most: usize) -> String {
    let shown = items[..items.len().min(most)].join("; ");
    match items.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
