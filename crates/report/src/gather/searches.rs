//! Finds the searches whose runs are in a report, by the conclusions in folders above the runs.

use crate::opening::Search;
use crate::report::{OpeningLine, ReportedRun};
use feedrate_results::conclusion::Conclusion;
use feedrate_results::files::study_csv;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The searches below `paths` that made some of the runs.
pub(super) fn searches(runs: &[ReportedRun], paths: &[PathBuf]) -> Vec<Search> {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for path in paths {
        let csv = study_csv(path);
        folders.extend(csv.as_deref().and_then(Path::parent).map(Path::to_path_buf));
    }
    for run in runs {
        let above = run.run.path.ancestors().skip(1);
        let below_source = above.take_while(|folder| folder.starts_with(&run.run.source));
        folders.extend(below_source.map(Path::to_path_buf));
    }
    let mut searches = Vec::new();
    for folder in folders {
        let conclusion = Conclusion::read(&folder);
        let Some(Conclusion { lines, .. }) = conclusion.filter(|found| !found.lines.is_empty())
        else {
            continue;
        };
        let absolute = folder.canonicalize();
        let is_own = |run: &ReportedRun| {
            let path = run.run.path.canonicalize();
            absolute.as_ref().is_ok_and(|folder| path.is_ok_and(|path| path.starts_with(folder)))
        };
        let mut lines = lines.into_iter().map(|said| OpeningLine::new(said.name, said.value));
        searches.extend(lines.next().map(|answer| Search {
            name: folder.display().to_string(),
            answer: answer.value,
            runs: (0..runs.len()).filter(|&index| is_own(&runs[index])).collect(),
            lines: lines.collect(),
        }));
    }
    searches
}

/// Whether searches made all of the runs.
pub(super) fn made_all(searches: &[Search], runs: &[ReportedRun]) -> bool {
    (0..runs.len()).all(|run| searches.iter().any(|search| search.runs.contains(&run)))
}
