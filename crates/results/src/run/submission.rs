//! Submitter and system of a run in a tree of MLPerf Storage results, `ROUND/closed|open/SUBMITTER/results/SYSTEM/…`.

use super::{Run, group_runs};
use feedrate_spec::mlperf::rules::{Edition, SCORED_RUNS, runs_of_submission};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of the submitter in the folders of a rehearsal.
pub const REHEARSAL: &str = "rehearsal";

/// Name of the submitter in the folders of a scaled rehearsal, which is no submission.
pub const SCALED_REHEARSAL: &str = "scaled-rehearsal";

/// Returns whether the first of `runs` runs is a warm-up. Version 2.0 requires one, but does not say whether it is part of the submission.
pub(crate) fn has_warm_up(edition: Edition, runs: u64) -> bool {
    let required = runs_of_submission(edition).unwrap_or(SCORED_RUNS + 1);
    SCORED_RUNS < required && runs == required
}

/// Finds the warm-up runs of submissions, which do not count.
pub(crate) fn warm_ups(runs: &[Run]) -> Vec<usize> {
    let is_member = |run: &Run| run.submission.is_some() && run.is_result();
    let groups = group_runs(runs, is_member, |run| (run.study_key(), run.accelerators));
    let first = groups.into_values().filter_map(|members| {
        let edition = runs[members[0]].mlperf_edition()?;
        let first = members.iter().copied().min_by_key(|&index| runs[index].start_key())?;
        has_warm_up(edition, members.len() as u64).then_some(first)
    });
    first.collect()
}

/// The submitter and system of results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names suffice")]
pub struct Submission {
    /// Folders above the division, if the runs are in several. They distinguish rounds of submissions, which may have systems of the same name.
    pub round: Option<PathBuf>,
    pub division: String,
    pub submitter: String,
    pub system: String,
}

impl Submission {
    /// Parses the path of a run; `None` if the path is not in a tree of MLPerf Storage results.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let names: Vec<_> = absolute.iter().map(|name| name.to_string_lossy()).collect();
        let division_index = names.windows(4).rposition(|names| {
            let division = names[0].to_ascii_lowercase();
            ["closed", "open"].contains(&division.as_str())
                && names[2].eq_ignore_ascii_case("results")
        })?;
        let tree = &names[division_index..];
        Some(Submission {
            // Lossy for names that are not UTF-8.
            round: Some(names[..division_index].iter().map(|name| &**name).collect()),
            division: tree[0].to_ascii_lowercase(),
            submitter: tree[1].to_string(),
            system: tree[3].to_string(),
        })
    }

    /// Whether the runs are those of a rehearsal, which is no submission.
    pub fn is_rehearsal(&self) -> bool {
        [REHEARSAL, SCALED_REHEARSAL].contains(&self.submitter.as_str())
    }

    /// Finds the edition of the rules in the names of the folders above the division, such as `submissions_storage_v3.0`.
    pub(crate) fn edition(&self) -> Option<Edition> {
        let names = self.round.iter().flat_map(|round| round.iter());
        names.filter_map(|name| Edition::in_folder_name(&name.to_string_lossy())).next_back()
    }

    /// Removes the folders that the rounds of all submissions have in common.
    pub(crate) fn shorten_rounds<'a>(submissions: impl Iterator<Item = &'a mut Submission>) {
        let mut submissions: Vec<&mut Submission> = submissions.collect();
        let paths = submissions.iter().filter_map(|submission| submission.round.as_deref());
        let rounds: Vec<Vec<&OsStr>> = paths.map(|path| path.iter().collect()).collect();
        let Some((first, others)) = rounds.split_first() else { return };
        let parts = first.iter().enumerate();
        let common = parts
            .take_while(|(index, part)| others.iter().all(|other| other.get(*index) == Some(part)))
            .count();
        for submission in &mut submissions {
            let round = submission.round.as_ref();
            let shortened: Option<PathBuf> = round.map(|path| path.iter().skip(common).collect());
            submission.round = shortened.filter(|path| !path.as_os_str().is_empty());
        }
    }
}

/// Formats the submission as in the tree, `closed/X/fast-1`.
impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(round) = &self.round {
            write!(f, "{}/", round.display())?;
        }
        write!(f, "{}/{}/{}", self.division, self.submitter, self.system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn submitter_and_system_are_parsed_from_the_path() {
        let found = |path: &str| {
            let submission = Submission::new(Path::new(path))?;
            Some((submission.division, submission.submitter, submission.system))
        };
        let expected = ("closed".into(), "X".into(), "fast-1".into());
        assert_eq!(found("/r/Closed/X/results/fast-1/unet3d/run_1/2024"), Some(expected));
        assert_eq!(found("/perf/results/unet3d/4/2025"), None);
    }

    #[test]
    fn rounds_with_invalid_utf8_can_be_serialized() {
        let path = OsStr::from_bytes(b"/r/v\xff/closed/X/results/s/1");
        let found = Submission::new(Path::new(path)).unwrap();
        assert!(serde_json::to_string(&found).unwrap().contains("v\u{fffd}"));
    }

    #[test]
    fn systems_of_two_rounds_are_distinct() {
        let mut all = ["/r/v1.0/a/closed/X/results/s/1", "/r/v2.0/a/Closed/X/Results/s/1"]
            .map(|path| Submission::new(Path::new(path)).unwrap());
        Submission::shorten_rounds(all.iter_mut());
        assert_eq!(
            all.each_ref().map(ToString::to_string),
            ["v1.0/a/closed/X/s", "v2.0/a/closed/X/s"]
        );
        Submission::shorten_rounds(all[..1].iter_mut());
        assert_eq!(all[0].to_string(), "closed/X/s");
    }
}
