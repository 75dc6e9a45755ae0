//! The place of a run in the results of MLPerf Storage: `ROUND/closed|open/SUBMITTER/results/SYSTEM/…`.

use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The submitter and system of results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Submission {
    /// The folders above the division, where runs lie below several: a system has one name in each round of submissions.
    pub round: Option<PathBuf>,
    pub division: String,
    pub submitter: String,
    pub system: String,
}

impl Submission {
    /// By a run's path; `None` elsewhere.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let names: Vec<_> = absolute.iter().map(|name| name.to_string_lossy()).collect();
        let at = names.windows(4).rposition(|names| {
            let division = names[0].to_ascii_lowercase();
            ["closed", "open"].contains(&division.as_str())
                && names[2].eq_ignore_ascii_case("results")
        })?;
        let found = &names[at..];
        Some(Submission {
            // Of names that are not UTF-8 what can be shown.
            round: Some(names[..at].iter().map(|name| &**name).collect()),
            division: found[0].to_ascii_lowercase(),
            submitter: found[1].to_string(),
            system: found[3].to_string(),
        })
    }

    /// Leave of the rounds of `all` only what tells them apart.
    pub(crate) fn shorten_rounds<'a>(all: impl Iterator<Item = &'a mut Submission>) {
        let mut all: Vec<&mut Submission> = all.collect();
        let rounds = all.iter().filter_map(|one| one.round.as_deref());
        let rounds: Vec<Vec<&OsStr>> = rounds.map(|round| round.iter().collect()).collect();
        let Some((first, others)) = rounds.split_first() else { return };
        let parts = first.iter().enumerate();
        let common = parts
            .take_while(|(at, part)| others.iter().all(|other| other.get(*at) == Some(part)))
            .count();
        for one in &mut all {
            let own: Option<PathBuf> =
                one.round.as_ref().map(|of| of.iter().skip(common).collect());
            one.round = own.filter(|round| !round.as_os_str().is_empty());
        }
    }
}

/// As in the tree: `closed/X/fast-1`.
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
    fn submitter_and_system_are_told_by_the_tree() {
        let found = |path: &str| {
            Submission::new(Path::new(path)).map(|of| (of.division, of.submitter, of.system))
        };
        let expected = ("closed".into(), "X".into(), "fast-1".into());
        assert_eq!(found("/r/Closed/X/results/fast-1/unet3d/run_1/2024"), Some(expected));
        assert_eq!(found("/perf/results/unet3d/4/2025"), None);
    }

    #[test]
    fn a_round_of_any_name_can_be_written_as_json() {
        let path = OsStr::from_bytes(b"/r/v\xff/closed/X/results/s/1");
        let found = Submission::new(Path::new(path)).unwrap();
        assert!(serde_json::to_string(&found).unwrap().contains("v\u{fffd}"));
    }

    #[test]
    fn a_system_of_two_rounds_is_two() {
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
