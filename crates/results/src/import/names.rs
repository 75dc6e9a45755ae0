//! Names of the files in the folder of a DLIO run.

use feedrate_measure::plot_data;
use feedrate_measure::record::file::RECORD_FILE;

/// The run's report of itself.
pub(super) const SUMMARY: &str = "summary.json";
pub(super) const LOG: &str = "dlio.log";
/// Steps of one rank, whose number the name begins with.
pub(super) const OUTPUT: &str = "_output.json";
/// When its blocks began and ended, likewise.
pub(super) const STATS: &str = "_per_epoch_stats.json";
/// The one file for all ranks that older DLIO writes.
pub(super) const STATS_OF_ALL: &str = "per_epoch_stats.json";

/// The rank that a file belongs to.
pub(super) fn rank_of(name: &str) -> Option<u32> {
    name.strip_suffix(OUTPUT).or_else(|| name.strip_suffix(STATS))?.parse().ok()
}

/// Whether a run leaves a file of this name, whoever makes it.
pub(super) fn is_of_run(name: &str) -> bool {
    let of_rank = name
        .split_once('_')
        .is_some_and(|(rank, rest)| rank.parse::<u32>().is_ok() && rest.ends_with(".json"));
    let of_all = [RECORD_FILE, SUMMARY, LOG, STATS_OF_ALL, "iostat.json"];
    let is_report = name.starts_with("DLIO_") && name.ends_with("_report.txt");
    of_rank || is_report || of_all.contains(&name) || plot_data::NAMES.contains(&name)
}
