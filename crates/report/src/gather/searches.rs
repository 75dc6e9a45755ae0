//! Finds the searches whose runs are in a report, by the conclusions in folders above the runs.

use crate::opening::Search;
use crate::report::{OpeningLine, ReportedRun};
use feedrate_measure::metric::Metric;
use feedrate_results::conclusion::Conclusion;
use feedrate_results::files::study_csv;
use feedrate_results::run::Run;
use std::collections::{BTreeMap, BTreeSet};
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

/// The metric of the searches that made all of the runs; `None` if there are other runs, or if the searches have different metrics.
pub(super) fn common_response<'r>(
    runs: impl IntoIterator<Item = &'r Run>,
) -> Option<&'static Metric> {
    let mut by_folder: BTreeMap<PathBuf, Option<&'static Metric>> = BTreeMap::new();
    let mut common: Option<&'static Metric> = None;
    for run in runs {
        let source = Path::new(&run.source);
        let csv = study_csv(source);
        let root = csv.as_deref().and_then(Path::parent).unwrap_or(source);
        let mut above = run.path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
        let response = above.find_map(|folder| {
            *by_folder.entry(folder.to_path_buf()).or_insert_with(|| response_of_search(folder))
        })?;
        if common.is_some_and(|first| first.id != response.id) {
            return None;
        }
        common = Some(response);
    }
    common
}

/// The metric of the search that was concluded in `folder`; `None` if there is none.
fn response_of_search(folder: &Path) -> Option<&'static Metric> {
    let conclusion = Conclusion::read(folder)?;
    Metric::find(conclusion.object.get("response")?.as_str()?).ok()
}

/// Whether searches made all of the runs.
pub(super) fn made_all(searches: &[Search], runs: &[ReportedRun]) -> bool {
    (0..runs.len()).all(|run| searches.iter().any(|search| search.runs.contains(&run)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_search_have_its_metric() {
        let folder = tempfile::tempdir().unwrap();
        let run = |path: &str| Run {
            path: folder.path().join(path),
            source: folder.path().display().to_string(),
            ..Run::default()
        };
        let response = |runs: &[Run]| common_response(runs).map(|metric| metric.id.name());
        for (name, metric) in [("a", "au_sustained_percent"), ("b", "au_all_steps_percent")] {
            let object = serde_json::json!({ "response": metric });
            std::fs::create_dir(folder.path().join(name)).unwrap();
            let conclusion = Conclusion { object, ..Conclusion::default() };
            conclusion.write(&folder.path().join(name)).unwrap();
        }
        assert_eq!(response(&[run("a/x/1"), run("a/x/2")]), Some("au_sustained_percent"));
        assert_eq!(response(&[run("a/x/1"), run("b/x/1")]), None, "different metrics");
        assert_eq!(response(&[run("a/x/1"), run("c/x/1")]), None, "no search made one of them");
    }
}
