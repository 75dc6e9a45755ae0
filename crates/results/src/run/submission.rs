//! The place of a run in the results of MLPerf Storage: `closed|open/SUBMITTER/results/SYSTEM/…`.

use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The submitter and system of results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Submission {
    pub division: String,
    pub submitter: String,
    pub system: String,
}

impl Submission {
    /// By a run's path; `None` elsewhere.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let names: Vec<_> = absolute.iter().map(|name| name.to_string_lossy()).collect();
        let found = names.windows(4).rev().find(|names| {
            let division = names[0].to_ascii_lowercase();
            ["closed", "open"].contains(&division.as_str()) && names[2] == "results"
        })?;
        Some(Submission {
            division: found[0].to_ascii_lowercase(),
            submitter: found[1].to_string(),
            system: found[3].to_string(),
        })
    }
}

/// As in the tree: `closed/X/fast-1`.
impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}/{}", self.division, self.submitter, self.system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submitter_and_system_are_told_by_the_tree() {
        let found = |path: &str| {
            Submission::new(Path::new(path)).map(|of| (of.division, of.submitter, of.system))
        };
        let expected = ("closed".into(), "X".into(), "fast-1".into());
        assert_eq!(found("/r/Closed/X/results/fast-1/unet3d/run_1/2024"), Some(expected));
        assert_eq!(found("/perf/results/unet3d/4/2025"), None);
    }
}
