//! Assembles a report: reads folders that feedrate or DLIO wrote, and collects findings, doubts, figures and tables. Decides nothing about the meaning of
//! a number.
//!
//! Long because a report has many parts.

mod searches;

use crate::advice;
use crate::ceilings;
use crate::comparison::build_comparison;
use crate::conclusions::{finding_texts, recommendation_texts};
use crate::figures::figures;
use crate::methods;
use crate::opening::{SINGLE_SOURCE_LINES, group_answers, opening};
use crate::plot::Needs;
use crate::plot::data::{Data, FolderRun, PROCESSES_MAX};
use crate::report::{
    FigureUse, OpeningLine, Report, ReportAdvice, ReportAnswer, ReportedRun, Seen, SeenDoubt,
    Source,
};
use crate::run_page::answer_lines;
use crate::words;
use feedrate_analysis::advice::{Case, SampleRequests, advise, advise_without_plans};
use feedrate_analysis::answer::{Answer, relevant_doubts};
use feedrate_analysis::design::{DeclaredFactors, HOST, SOURCE, designs};
use feedrate_analysis::predict::Pipeline;
use feedrate_measure::derived::Derived;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_results::diagnosis::Diagnosis;
use feedrate_results::files::{StudyFiles, study_csv};
use feedrate_results::groups::{CheckpointGroup, checkpoint_groups};
use feedrate_results::import::RunOrigin;
use feedrate_results::index::{LeftOut, ReadOptions, RunIndex, RunsError};
use feedrate_results::overview::{Overview, StatusCounts};
use feedrate_results::replan::{NO_CHANGES, ReplanOf};
use feedrate_results::row::Row;
use feedrate_results::run::{Reason, Run, Settings};
use feedrate_results::state::StudyState;
use feedrate_results::trials::TrialsResult;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Maximum number of runs whose complete records are kept for figures.
const DETAILED_MAX: usize = 64;

/// Makes a report of all results below `paths`, which are folders or CSVs of studies, with `threads` reading threads. Links to records are relative to the
/// folder `from`; without it there are no links. Changes that `replan` can plan get predictions. `figure_use` selects the parts of figures.
///
/// # Errors
/// There is nothing to report on.
pub fn results_report(
    paths: &[PathBuf],
    from: Option<&Path>,
    threads: usize,
    replan: ReplanOf<'_>,
    figure_use: FigureUse,
) -> Result<Report, RunsError> {
    let options = ReadOptions { threads, records_max: DETAILED_MAX, ..ReadOptions::default() };
    let mut found = FoundRuns::read(paths, &options)?;
    found.data.overview = overview(paths)?;
    let (figures, not_drawn) = figures(&found.data, figure_use);
    let overview = found.data.overview.clone();
    let mut report = build_report(found, paths, from, replan);
    report.comparison = build_comparison(paths, threads);
    let compared = report.comparison.as_ref();
    let compared = compared.map(|comparison| OpeningLine::new("Compared", comparison.says.clone()));
    if compared.is_some() {
        report.opening.retain(|line| !SINGLE_SOURCE_LINES.contains(&&*line.name));
    }
    report.opening.splice(0..0, compared);
    let after = after_answers(&report.opening);
    report.opening.splice(after..after, overview.as_ref().and_then(rows_without_result));
    Ok(Report { figures, not_drawn, ..report })
}

/// The position after the answers.
fn after_answers(opening: &[OpeningLine]) -> usize {
    opening.iter().rposition(|line| line.name == "Answer").map_or(0, |index| index + 1)
}

/// A line on the rows of a study without a result.
fn rows_without_result(overview: &Overview) -> Option<OpeningLine> {
    let StatusCounts { done, running, pending, failed } = overview.counts;
    let elsewhere = overview.done_elsewhere;
    let done = done - elsewhere;
    let states = [
        (running, "running"),
        (pending, "pending"),
        (failed, "failed"),
        (elsewhere, "marked `Y` without a result here"),
    ];
    let states = states.into_iter().filter(|(count, _)| *count > 0);
    let states: Vec<String> = states.map(|(count, state)| format!("{count} {state}")).collect();
    let all = overview.counts.total();
    let says = || format!("{} of {all} rows have no result: {}", all - done, states.join(", "));
    (!states.is_empty()).then(|| OpeningLine::new("Not run", says()))
}

/// Makes a report of runs that were already read, without figures.
///
/// # Errors
/// The CSV of their study cannot be read.
pub fn index_report(index: RunIndex, paths: &[PathBuf]) -> Result<Report, RunsError> {
    Ok(build_report(FoundRuns::new(index, paths)?, paths, None, NO_CHANGES))
}

/// The report of runs, without figures and comparison.
fn build_report(
    found: FoundRuns,
    paths: &[PathBuf],
    from: Option<&Path>,
    replan: ReplanOf<'_>,
) -> Report {
    let FoundRuns { data, others, checkpoints, left_out, order } = found;
    let levels: Vec<_> = (0..data.runs.len()).map(|index| run_levels(&data, index)).collect();
    let designs = data.designs;
    let diagnoses = data.diagnoses;
    let results = data.runs.into_iter().zip(levels);
    let all = results.chain(others.into_iter().map(|run| (run, BTreeMap::new())));
    let mut runs: Vec<ReportedRun> = all
        .map(|(run, factors)| ReportedRun {
            link: from.and_then(|from| link(from, &result_file(&run))),
            source: source_index(&run, paths),
            answer: Answer::from_run(&run),
            factors,
            run,
        })
        .collect();
    runs.sort_by(|a, b| a.run.start_key().cmp(&b.run.start_key()));
    let mut sources = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let count = runs.iter().filter(|run| run.source == index).count();
        sources.push(Source { path: path.display().to_string(), runs: count });
    }
    let results = runs.iter().map(|run| &run.run).filter(|run| run.has_result());
    let results: Vec<&Run> = results.collect();
    let made: Vec<&ReportedRun> = runs.iter().filter(|run| run.run.is_result()).collect();
    let used: Vec<&ReportedRun> = runs.iter().filter(|run| run.unused().is_none()).collect();
    let trials =
        TrialsResult::find(runs.iter().filter(|run| run.run.is_from_feedrate()).map(|run| {
            let plan = run.run.record.as_ref().map(|record| &record.plan);
            (run.run.path.as_path(), plan)
        }));
    let (answer, predicted) = single_run(&runs, &trials, replan);
    let mut report = Report {
        answer,
        advice: trials.iter().map(advice::tried_advice).chain(predicted).collect(),
        findings: finding_texts(&runs, &designs, &results),
        recommendations: recommendation_texts(&designs, &results),
        doubts: doubts(&runs),
        checkpoints,
        left_out,
        methods: methods::methods(&used, &made, &sources, order.as_deref()),
        setups: methods::setups(&used),
        configuration: methods::configuration(&used),
        sources,
        runs,
        ..Report::default()
    };
    let searches = searches::searches(&report.runs, paths);
    let tried = trials.iter().map(|result| {
        let sentences = words::trials::tried(result).join("; ");
        OpeningLine::new("Advice", format!("{}: {sentences}", result.workload))
    });
    if !searches.is_empty() {
        report.answer = None;
        if searches::made_all(&searches, &report.runs) {
            // A search decides which runs to repeat, so it leaves other questions open.
            report.findings.retain(|finding| finding.support.is_shown());
        }
    }
    report.answers = group_answers(&report, &searches);
    report.opening = opening(&report, &searches, tried.collect());
    let ceilings = diagnoses
        .iter()
        .map(|diagnosis| format!("{}: {}", diagnosis.workload, ceilings::answer(diagnosis)));
    let after = after_answers(&report.opening);
    report.opening.splice(after..after, ceilings.map(|says| OpeningLine::new("Ceilings", says)));
    report
}

/// Reads the data for a plot of all results below `paths`, and lists the runs that must not be drawn.
///
/// # Errors
/// There is nothing to draw.
pub fn plot_data(
    paths: &[PathBuf],
    needs: Needs,
    threads: usize,
) -> Result<(Data, Vec<LeftOut>), RunsError> {
    let overview = if needs == Needs::Progress { overview(paths)? } else { None };
    if overview.is_some() {
        return Ok((Data { overview, ..Data::default() }, Vec::new()));
    }
    let needs_records = matches!(needs, Needs::Records | Needs::Diagnosis);
    let records_max = if needs_records { usize::MAX } else { 0 };
    let FoundRuns { data, others, mut left_out, .. } =
        FoundRuns::read(paths, &ReadOptions { threads, records_max, ..ReadOptions::default() })?;
    let mut unused: Vec<&Run> = data.runs.iter().chain(&others).collect();
    unused.sort_by(|a, b| a.start_key().cmp(&b.start_key()));
    for run in unused {
        let why = match &run.unusable {
            None | Some(Reason::CheckpointsOnly) => continue,
            Some(Reason::Invalid { doubt, evidence }) => {
                format!("{doubt}: {}", evidence.split(';').next().unwrap_or_default())
            }
            Some(reason) => reason.name().into(),
        };
        left_out.push(LeftOut { path: run.path.clone(), why });
    }
    Ok((data, left_out))
}

/// All runs below some folders.
struct FoundRuns {
    /// Runs with results, including invalid ones, in the order of their start. Their settings include workload, host and, with several sources, the source.
    data: Data,
    /// Runs without results.
    others: Vec<Run>,
    checkpoints: Vec<CheckpointGroup>,
    /// Folders that cannot be read.
    left_out: Vec<LeftOut>,
    /// The order of rows as a study's CSV describes it.
    order: Option<String>,
}

impl FoundRuns {
    fn read(paths: &[PathBuf], options: &ReadOptions) -> Result<Self, RunsError> {
        Self::new(RunIndex::read(paths, options)?, paths)
    }

    fn new(index: RunIndex, paths: &[PathBuf]) -> Result<Self, RunsError> {
        let unread = index.unread.iter();
        let unread = unread.filter_map(|folder| FolderRun::from_names(&folder.path));
        let folders = index.runs.iter().filter_map(FolderRun::from_run).chain(unread).collect();
        let mut all = index.runs;
        all.sort_by(|a, b| a.start_key().cmp(&b.start_key()));
        let names = if paths.len() > 1 { source_names(paths) } else { Vec::new() };
        for run in &mut all {
            run.accelerators = run.accelerators.filter(|count| (1..=PROCESSES_MAX).contains(count));
            if run.parameter == "processes" && run.accelerators.is_none() {
                run.value.clear();
            }
            // Each system of a submission is a source, and each unknown workload counts as a different one.
            let system = run.submission.as_ref().map(ToString::to_string);
            let parts = names.get(source_index(run, paths)).cloned().into_iter().chain(system);
            let parts: Vec<String> = parts.collect();
            let source = (!parts.is_empty()).then(|| parts.join(", "));
            let workload = if run.is_workload_known() {
                run.workload.clone()
            } else {
                format!("{} ({})", run.workload, run.short_path())
            };
            let more = [
                ("workload", Some(workload)),
                (HOST, run.hostname.clone()),
                ("hosts", run.hosts.map(|count| count.to_string())),
                (SOURCE, source),
            ];
            run.settings
                .extend(more.into_iter().filter_map(|(key, value)| Some((key.into(), value?))));
        }
        let checkpoints = checkpoint_groups(&all);
        let (runs, others): (Vec<Run>, Vec<Run>) = all.into_iter().partition(Run::has_result);
        let checkpoint_runs =
            others.iter().filter(|run| run.unusable == Some(Reason::CheckpointsOnly)).cloned();
        let checkpoint_runs = checkpoint_runs.collect();
        let settings: Vec<&Settings> = runs.iter().map(|run| &run.settings).collect();
        // Factors as the study's CSV declares them.
        let declared = match study_of(paths)? {
            Some(files) => {
                let runs: Vec<&Run> = runs.iter().collect();
                DeclaredFactors::from_table(&files.table()?).with_settings(&runs)
            }
            None => DeclaredFactors::default(),
        };
        let designs = designs(&settings, &declared);
        // Paths that are not UTF-8 are shown with replacement characters.
        let left_out = index.unread.into_iter().map(|folder| {
            let path = folder.path.display().to_string().into();
            LeftOut { path, ..folder }
        });
        let left_out = left_out.collect();
        Ok(FoundRuns {
            data: Data {
                diagnoses: diagnoses(&runs),
                search_response: searches::common_response(&runs),
                runs,
                checkpoint_runs,
                designs,
                folders,
                ..Data::default()
            },
            others,
            checkpoints,
            left_out,
            order: declared.order,
        })
    }
}

/// The diagnoses stored beside runs, each once.
fn diagnoses(runs: &[Run]) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for run in runs.iter().filter(|run| run.is_from_feedrate()) {
        let record = run.record.as_ref();
        let diagnosis = record.and_then(|record| Diagnosis::find_for_run(&run.path, &record.plan));
        found.extend(diagnosis.filter(|diagnosis| !found.contains(diagnosis)));
    }
    found
}

/// The index of the path below which a run was found.
fn source_index(run: &Run, paths: &[PathBuf]) -> usize {
    paths.iter().position(|path| path.display().to_string() == run.source).unwrap_or(0)
}

/// The levels of a run's factors, and its source if there are several.
fn run_levels(data: &Data, index: usize) -> BTreeMap<String, String> {
    let mut levels = BTreeMap::new();
    for design in &data.designs {
        if let Some(cell) = design.cells.iter().find(|cell| cell.runs.contains(&index)) {
            levels = design.levels_of(cell);
        }
    }
    let source = data.runs[index].settings.get(SOURCE);
    levels.extend(source.map(|source| (SOURCE.to_string(), source.clone())));
    levels
}

/// A name for each path: its last part, or the complete path if several have the same last part.
fn source_names(paths: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    for path in paths {
        let alike = paths.iter().filter(|other| other.file_name() == path.file_name()).count();
        let name = if alike == 1 { path.file_name() } else { None };
        let name = name.unwrap_or(path.as_os_str());
        names.push(name.to_string_lossy().into_owned());
    }
    names
}

/// The files of a study if the only path is a study.
fn study_of(paths: &[PathBuf]) -> Result<Option<StudyFiles>, RunsError> {
    match paths {
        [path] => Ok(study_csv(path).map(|csv| StudyFiles::new(&csv)).transpose()?),
        _ => Ok(None),
    }
}

/// The state of a study if the only path is a study.
fn overview(paths: &[PathBuf]) -> Result<Option<Overview>, RunsError> {
    let Some(files) = study_of(paths)? else { return Ok(None) };
    let table = files.table()?;
    let rows: Vec<Row> = table.rows().cloned().collect();
    let mut overview = Overview::new(&rows, &StudyState::read(&files)?);
    DeclaredFactors::from_table(&table).sort_levels(&mut overview);
    Ok(Some(overview))
}

/// The file with the numbers of a run.
fn result_file(run: &Run) -> PathBuf {
    let file = match run.origin {
        RunOrigin::Feedrate => Some(RECORD_FILE),
        _ => ["summary.json", "dlio.log"].into_iter().find(|name| run.path.join(name).is_file()),
    };
    file.map_or(run.path.clone(), |name| run.path.join(name))
}

/// The answer of a single run with a record, and its predicted advice unless trials of its workload exist. Excludes changes that trials withdrew.
fn single_run(
    runs: &[ReportedRun],
    trials: &[TrialsResult],
    replan: ReplanOf<'_>,
) -> (Option<ReportAnswer>, Option<ReportAdvice>) {
    let [ReportedRun { run, answer: Some(answer), .. }] = runs else { return (None, None) };
    let Some(record) = run.record.as_deref() else { return (None, None) };
    let derived = Derived::new(record);
    let case = Case::new(&derived, answer, &run.doubts);
    let replanned = replan(run);
    let advice = replanned.as_ref();
    let advice = advice.map(|replanned| advise(&case, &|overrides| replanned.plan(overrides)));
    let mut helps = advice.clone().unwrap_or_else(|| advise_without_plans(&case));
    // Trials of other workloads say nothing about this one.
    let is_same_plan = |result: &&TrialsResult| result.plan.as_ref() == Some(&record.plan);
    let own_trials: Vec<_> = trials.iter().filter(is_same_plan).collect();
    let withdrawn: Vec<&Vec<String>> = own_trials
        .iter()
        .flat_map(|result| &result.advice)
        .filter(|row| row.is_withdrawn())
        .map(|row| &row.overrides)
        .collect();
    helps.retain(|advice| {
        let overrides = &advice.proposal.overrides;
        overrides.is_empty() || !withdrawn.contains(&overrides)
    });
    let client_line = words::client::line(&derived, Pipeline::with_ideal_client(&derived).as_ref());
    let requests = SampleRequests::if_they_matter(&case);
    let says = answer_lines(answer, &run.doubts, requests.as_ref(), &helps, client_line);
    let untried = if own_trials.is_empty() { replanned.zip(advice) } else { None };
    let run_dir = run.path.display().to_string();
    let predicted = untried.and_then(|(replanned, advice)| {
        advice::predicted_advice(&record.plan.workload, &run_dir, &advice, &*replanned)
    });
    (Some(ReportAnswer { says, answer: answer.clone() }), predicted)
}

/// Each doubt once: those that make an answer unknown first, then by severity, then by its number of runs.
fn doubts(runs: &[ReportedRun]) -> Vec<SeenDoubt> {
    let mut found: Vec<SeenDoubt> = Vec::new();
    let all = runs.iter().enumerate().flat_map(|(index, run)| {
        let (doubts, answer) = (&run.run.doubts, run.answer.as_ref());
        let causes = answer.map_or_else(Vec::new, |answer| answer.causes_of_unknown(doubts));
        doubts.iter().map(move |doubt| (index, doubt, causes.contains(&doubt)))
    });
    for (index, doubt, is_decisive) in all {
        let answer = runs[index].answer.as_ref();
        let is_relevant = !relevant_doubts(answer, std::slice::from_ref(doubt)).is_empty();
        let evidence = doubt.evidence.clone();
        let seen = Seen { run: Some(index), evidence, advice: doubt.advice.clone() };
        let is_same =
            |known: &&mut SeenDoubt| known.name == doubt.name && known.severity == doubt.severity;
        match found.iter_mut().find(is_same) {
            Some(known) => {
                known.seen.push(seen);
                known.is_relevant |= is_relevant;
                known.is_decisive |= is_decisive;
            }
            None => found.push(SeenDoubt {
                name: doubt.name.clone(),
                severity: doubt.severity,
                is_relevant,
                is_decisive,
                seen: vec![seen],
            }),
        }
    }
    found.sort_by_key(|doubt| (!doubt.is_decisive, doubt.severity, Reverse(doubt.seen.len())));
    found
}

/// The relative URL of the file `to` from the folder `from`. Both paths may be relative to the working folder. `None` if the working folder is unknown.
fn link(from: &Path, to: &Path) -> Option<String> {
    let from = std::path::absolute(from).ok()?;
    let to = std::path::absolute(to).ok()?;
    let from_parts: Vec<Component> = from.components().collect();
    let to_parts: Vec<Component> = to.components().collect();
    let common = from_parts.iter().zip(&to_parts).take_while(|(a, b)| a == b).count();
    let up = vec!["..".to_string(); from_parts.len() - common];
    let down =
        to_parts[common..].iter().map(|part| percent_encode(part.as_os_str().as_encoded_bytes()));
    Some(up.into_iter().chain(down).collect::<Vec<_>>().join("/"))
}

/// Percent-encodes a name (RFC 3986): no character keeps a special meaning in a URL.
fn percent_encode(name: &[u8]) -> String {
    let bytes = name.iter().map(|byte| match byte {
        b'-' | b'_' | b'.' | b'~' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::import::fake::Fake;

    #[test]
    fn systems_and_runs_of_unknown_workloads_are_not_pooled() {
        let folder = tempfile::tempdir().unwrap();
        for (start_s, system) in [(900.0, "one"), (1900.0, "two")] {
            let name = format!("closed/x/results/{system}/w/run_1/c1");
            let run = Fake { start_s, ..Fake::default() }.publish(folder.path(), &name);
            std::fs::remove_dir_all(run.join("dlio_config")).unwrap();
        }
        let found = FoundRuns::read(&[folder.path().into()], &ReadOptions::default()).unwrap();
        let settings = |key: &str| {
            let runs = found.data.runs.iter();
            runs.map(|run| run.settings[key].clone()).collect::<Vec<String>>()
        };
        assert_eq!(settings(SOURCE), ["closed/x/one", "closed/x/two"]);
        let workloads = ["unknown (one/w/run_1/c1)", "unknown (two/w/run_1/c1)"];
        assert_eq!(settings("workload"), workloads);
    }

    #[test]
    fn rows_without_a_result_are_counted_by_state() {
        let not_run_line = |pending, failed| {
            let counts = StatusCounts { done: 36, running: 0, pending, failed };
            rows_without_result(&Overview {
                counts,
                done_elsewhere: 0,
                factors: Vec::new(),
                matrix: Vec::new(),
            })
        };
        let says = "18 of 54 rows have no result: 12 pending, 6 failed";
        assert_eq!(not_run_line(12, 6).unwrap().value, says);
        assert_eq!(not_run_line(0, 0), None);
    }

    #[test]
    fn a_link_leads_from_the_report_to_the_record() {
        for (from, to, expected) in [
            ("/a/b", "/a/b/r/record.json", "r/record.json"),
            ("/a/out", "/a/res ults/<x>/record.json", "../res%20ults/%3Cx%3E/record.json"),
            ("/", "/r.json", "r.json"),
            ("/a", "/a/javascript:1", "javascript%3A1"),
        ] {
            assert_eq!(link(Path::new(from), Path::new(to)).unwrap(), expected);
        }
    }
}
