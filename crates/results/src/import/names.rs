//! Names of the files in the folder of a DLIO run.

use feedrate_measure::plot_data;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_spec::plan::LOG_FILE;

/// Summary of the run.
pub(crate) const SUMMARY: &str = "summary.json";
/// Stamp of `mlpstorage` with the versions that made the run.
pub(crate) const PROVENANCE: &str = "provenance.json";
/// Suffix of the file with the steps of one rank; the rank's number precedes it.
pub(super) const OUTPUT: &str = "_output.json";
/// Suffix of the file with the start and end times of a rank's blocks; the rank's number precedes it.
pub(super) const STATS: &str = "_per_epoch_stats.json";
/// File with the start and end times of blocks for all ranks, as older versions of DLIO write it.
pub(super) const SHARED_STATS: &str = "per_epoch_stats.json";

/// Returns the rank that a file belongs to.
pub(super) fn rank_of(name: &str) -> Option<u32> {
    name.strip_suffix(OUTPUT).or_else(|| name.strip_suffix(STATS))?.parse().ok()
}

/// Returns whether runs of DLIO or feedrate leave a file of this name.
pub(super) fn is_result_file(name: &str) -> bool {
    let is_rank_file = name
        .split_once('_')
        .is_some_and(|(rank, rest)| rank.parse::<u32>().is_ok() && rest.ends_with(".json"));
    let fixed_names = [RECORD_FILE, SUMMARY, LOG_FILE, SHARED_STATS, "iostat.json"];
    let is_report = name.starts_with("DLIO_") && name.ends_with("_report.txt");
    is_rank_file || is_report || fixed_names.contains(&name) || plot_data::NAMES.contains(&name)
}
