//! Writes the opening line `Applies to`: the levels and conditions for which the answer of several runs holds. Decides nothing about a run.

use crate::methods::conditions;
use crate::report::{Report, ReportedRun};
use crate::words::number::{list, quoted};
use feedrate_analysis::answer::AnswerKind;
use feedrate_results::setting::compare_levels;
use std::collections::BTreeSet;

/// The levels at which runs were fed or not, if one factor separates them, and the conditions of the runs.
pub(super) fn applies_to(report: &Report) -> Option<String> {
    let used: Vec<&ReportedRun> = report.used().collect();
    if report.answer.is_some() || used.is_empty() {
        return None;
    }
    let parts: Vec<String> = by_level(&used).into_iter().chain(conditions(&used)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Maximum number of neighbouring levels that are named one by one.
const NAMED_MAX: usize = 4;

fn kind(run: &ReportedRun) -> Option<AnswerKind> {
    Some(run.answer.as_ref()?.kind)
}

/// The answers by the levels of the factor that separates them: `YES at `processes` 1, NO at 2, for every `read_threads``. Only factors whose levels
/// were run in all combinations are included in `for every`.
fn by_level(used: &[&ReportedRun]) -> Option<String> {
    let names: BTreeSet<&str> =
        used.iter().flat_map(|run| run.factors.keys()).map(String::as_str).collect();
    let first = kind(used.first()?)?;
    if used.iter().all(|run| kind(run) == Some(first)) {
        return None;
    }
    let separating = names.iter().find_map(|name| {
        let mut levels: Vec<(&str, AnswerKind)> = Vec::new();
        for run in used {
            let level = run.factors.get(*name)?.as_str();
            let kind = kind(run)?;
            match levels.iter().find(|(known, _)| *known == level) {
                Some((_, known)) if *known != kind => return None,
                Some(_) => {}
                None => levels.push((level, kind)),
            }
        }
        levels.sort_by(|a, b| compare_levels(a.0, b.0).then(a.0.cmp(b.0)));
        Some((*name, levels))
    });
    let (name, levels) = separating?;
    let parts = levels.chunk_by(|a, b| a.1 == b.1).enumerate().map(|(index, same)| {
        let factor = if index == 0 { format!("`{name}` ") } else { String::new() };
        let levels = match same {
            [(first, _), .., (last, _)] if NAMED_MAX < same.len() => format!("{first} to {last}"),
            _ => list(same.iter().map(|(level, _)| *level)),
        };
        format!("{} at {factor}{levels}", same[0].1.name().to_uppercase())
    });
    let mut says = parts.collect::<Vec<_>>().join(", ");
    let is_varied =
        |other: &str| used.iter().any(|run| run.factors.get(other) != used[0].factors.get(other));
    let mut crossed = vec![name];
    let mut others = Vec::new();
    for other in names.into_iter().filter(|other| *other != name && is_varied(other)) {
        crossed.push(other);
        if !is_crossed(used, &crossed) {
            crossed.pop();
            others.push(quoted(other));
        }
    }
    if 1 < crossed.len() {
        says += &format!(", for every {}", list(crossed[1..].iter().map(|name| quoted(name))));
    }
    if !others.is_empty() {
        says += &format!("; not all combinations with {} were run", list(&others));
    }
    Some(says)
}

/// Whether every combination of the levels of these factors was run.
fn is_crossed(used: &[&ReportedRun], names: &[&str]) -> bool {
    let levels = |run: &&ReportedRun| -> Option<Vec<String>> {
        names.iter().map(|name| run.factors.get(*name).cloned()).collect()
    };
    let Some(cells) = used.iter().map(levels).collect::<Option<BTreeSet<_>>>() else {
        return false;
    };
    let counts = (0..names.len())
        .map(|index| cells.iter().map(|cell| &cell[index]).collect::<BTreeSet<_>>().len());
    cells.len() == counts.product::<usize>()
}

#[cfg(test)]
mod tests {
    use crate::gather::results_report;
    use crate::report::FigureUse;
    use feedrate_measure::example::simple;
    use feedrate_measure::record::file;
    use feedrate_results::replan::NO_CHANGES;
    use feedrate_spec::plan::Cache;
    use std::path::Path;

    /// Saves a run of a format, a number of workers and a load time in ms.
    fn save(folder: &Path, name: usize, (format, workers, load_ms): (&str, u32, u64)) {
        let mut record = simple(&[(load_ms, 1000, 0, 1_000_000); 20]);
        record.plan.dataset.format = format.into();
        record.plan.loader.workers = workers;
        record.plan.storage.throttle_bytes_per_second = Some(16e6);
        let run_dir = folder.join(name.to_string());
        std::fs::create_dir_all(&run_dir).unwrap();
        file::write(&run_dir, &record).unwrap();
    }

    #[test]
    fn the_line_names_levels_and_conditions() {
        let folder = tempfile::tempdir().unwrap();
        let runs = [("npz", 1, 1), ("npz", 2, 2), ("png", 1, 1000), ("png", 2, 1001)];
        for (i, (format, workers, load_ms)) in runs.into_iter().enumerate() {
            save(folder.path(), i, (format, workers, load_ms));
        }
        let applies_to = || {
            let report =
                results_report(&[folder.path().into()], None, 1, NO_CHANGES, FigureUse::Pictures)
                    .unwrap();
            let line = report.opening.into_iter().find(|line| line.name == "Applies to").unwrap();
            line.value
        };
        let conditions = "page cache left as it was; emulated storage: a throttle of 16 MB/s";
        let expected =
            format!("YES at `format` npz, NO at png, for every `read_threads`; {conditions}");
        assert_eq!(applies_to(), expected);
        // A factor is listed separately if some of its combinations were not run.
        save(folder.path(), 4, ("npz", 4, 1));
        let not_crossed = "not all combinations with `read_threads` were run";
        let expected = format!("YES at `format` npz, NO at png; {not_crossed}; {conditions}");
        assert_eq!(applies_to(), expected);
        // No factor is named if none separates fed runs from others.
        save(folder.path(), 5, ("png", 4, 1));
        assert!(!applies_to().contains("`format`"), "{}", applies_to());
    }

    #[test]
    fn conditions_of_some_runs_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        for (i, rate) in [None, Some(16e6), Some(16e6), Some(32e6)].into_iter().enumerate() {
            let run_dir = folder.path().join(i.to_string());
            let mut record = simple(&[(1 + i as u64, 1000, 0, 1_000_000); 20]);
            record.plan.storage.throttle_bytes_per_second = rate;
            if i == 0 {
                record.plan.train.cache = Cache::Cold;
            }
            std::fs::create_dir_all(&run_dir).unwrap();
            file::write(&run_dir, &record).unwrap();
        }
        let report =
            results_report(&[folder.path().into()], None, 1, NO_CHANGES, FigureUse::Pictures)
                .unwrap();
        let line = report.opening.iter().find(|line| line.name == "Applies to").unwrap();
        let expected = "page cache left as it was in 3 of 4 runs and cold in 1 of 4 runs; \
             emulated storage: a throttle of 16 MB/s or 32 MB/s in 3 of 4 runs";
        assert_eq!(line.value, expected);
    }
}
