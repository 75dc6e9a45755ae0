//! The answers of several runs: one for each search, and one for each source, workload and sample size of other runs. No range of utilisations or
//! rates spans several of these.

use super::{Search, target_counts, target_line};
use crate::report::{Report, ReportGroupAnswer, ReportedRun};
use crate::words;
use feedrate_analysis::answer::Answer;
use feedrate_analysis::design::SOURCE;
use feedrate_results::run::{Activity, Run};
use feedrate_spec::units;
use std::collections::{BTreeMap, BTreeSet};

/// The runs of one answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey<'a> {
    /// The runs of a search, by the index of the search.
    Search(usize),
    /// Other runs.
    Runs { source: Option<String>, workload: &'a str, sample_bytes: Option<u64> },
}

impl<'a> GroupKey<'a> {
    fn new(index: usize, reported: &'a ReportedRun, searches: &[Search]) -> Self {
        if let Some(search) = searches.iter().position(|search| search.runs.contains(&index)) {
            return GroupKey::Search(search);
        }
        let run = &reported.run;
        let submission = || run.submission.as_ref().map(ToString::to_string);
        GroupKey::Runs {
            source: run.settings.get(SOURCE).cloned().or_else(submission),
            workload: run.settings.get("workload").unwrap_or(&run.workload),
            // Checkpoints have none.
            sample_bytes: run
                .record_length_bytes
                .filter(|_| run.activity != Activity::Checkpoints)
                .map(|bytes| bytes.round() as u64),
        }
    }

    /// The name of the group by the properties in which groups differ.
    fn name(&self, searches: &[Search], differing: Differing) -> String {
        match self {
            GroupKey::Search(search) => format!("`{}`", searches[*search].name),
            GroupKey::Runs { source, workload, sample_bytes } => {
                let samples = match sample_bytes {
                    Some(bytes) => format!("samples of {} decoded", units::bytes(*bytes)),
                    None => "no known sample size".into(),
                };
                let parts = [
                    (differing.has_sources, source.as_ref().map(|source| format!("`{source}`"))),
                    (differing.has_workloads, Some(format!("`{workload}`"))),
                    (differing.has_sample_sizes, Some(samples)),
                ];
                let parts =
                    parts.into_iter().filter_map(|(differs, part)| part.filter(|_| differs));
                parts.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The properties in which groups of runs differ.
#[derive(Clone, Copy)]
struct Differing {
    has_sources: bool,
    has_workloads: bool,
    has_sample_sizes: bool,
}

impl Differing {
    fn new<'a>(keys: impl Iterator<Item = &'a GroupKey<'a>> + Clone) -> Self {
        fn differs<T: Ord>(values: impl Iterator<Item = T>) -> bool {
            1 < values.collect::<BTreeSet<T>>().len()
        }
        let runs = keys.filter_map(|key| match key {
            GroupKey::Runs { source, workload, sample_bytes } => {
                Some((source, workload, sample_bytes))
            }
            GroupKey::Search(_) => None,
        });
        Differing {
            has_sources: differs(runs.clone().map(|(source, ..)| source)),
            has_workloads: differs(runs.clone().map(|(_, workload, _)| workload)),
            has_sample_sizes: differs(runs.map(|(.., sample_bytes)| sample_bytes)),
        }
    }
}

/// The answers of all used runs, most runs first. A single run's answer is part of the report itself.
pub(crate) fn group_answers(report: &Report, searches: &[Search]) -> Vec<ReportGroupAnswer> {
    // A search has an answer even if none of its runs counts.
    let mut groups: BTreeMap<GroupKey, Vec<usize>> =
        (0..searches.len()).map(|search| (GroupKey::Search(search), Vec::new())).collect();
    let answered = report.runs.iter().enumerate().filter(|(_, run)| run.is_answered());
    for (index, run) in answered {
        let key = GroupKey::new(index, run, searches);
        if report.answer.is_none() || matches!(key, GroupKey::Search(_)) {
            groups.entry(key).or_default().push(index);
        }
    }
    let differing = Differing::new(groups.keys());
    let mut answers: Vec<ReportGroupAnswer> = Vec::new();
    for (key, runs) in &groups {
        let answer = match key {
            GroupKey::Search(search) => Some(searches[*search].answer.clone()),
            GroupKey::Runs { .. } => answer(report, runs),
        };
        let name = if groups.len() == 1 { String::new() } else { key.name(searches, differing) };
        let is_search = matches!(key, GroupKey::Search(_));
        let runs = runs.clone();
        answers.extend(answer.map(|says| ReportGroupAnswer { name, says, runs, is_search }));
    }
    answers.sort_by_key(|group| std::cmp::Reverse(group.runs.len()));
    answers
}

/// The answer of runs of one source, workload and sample size.
fn answer(report: &Report, runs: &[usize]) -> Option<String> {
    let runs: Vec<&ReportedRun> = runs.iter().map(|&index| &report.runs[index]).collect();
    let answers: Vec<&Answer> = runs.iter().filter_map(|run| run.answer.as_ref()).collect();
    let says = words::answer::summary(&answers).into_iter().chain(target_line(&others(&runs)));
    let says: Vec<String> = says.collect();
    (!says.is_empty()).then(|| says.join("; "))
}

/// Runs of other programs, which have no answer.
fn others<'a>(runs: &[&'a ReportedRun]) -> Vec<&'a Run> {
    runs.iter().map(|run| &run.run).filter(|run| !run.is_from_feedrate()).collect()
}

/// Maximum number of answers of runs outside of searches that are shown one by one.
const ANSWERS_MAX: usize = 3;

/// The answers as lines. Each search has its line; many answers of other runs are counted.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let (searches, groups): (Vec<_>, Vec<_>) =
        report.answers.iter().partition(|group| group.is_search);
    let line = |group: &&ReportGroupAnswer| match group.name.as_str() {
        "" => group.says.clone(),
        name => format!("{name}: {}", group.says),
    };
    let searches = searches.iter().map(line);
    if groups.len() <= ANSWERS_MAX {
        return searches.chain(groups.iter().map(line)).collect();
    }
    let runs = groups.iter().flat_map(|group| &group.runs).map(|&index| &report.runs[index]);
    let runs: Vec<&ReportedRun> = runs.collect();
    let kinds: Vec<&Answer> = runs.iter().filter_map(|run| run.answer.as_ref()).collect();
    let counts = words::answer::count_by_kind(&kinds);
    let counts = (!kinds.is_empty()).then_some(counts).into_iter();
    let counts: Vec<String> = counts.chain(target_counts(&others(&runs))).collect();
    let counted = format!(
        "{}, in {} groups (one source, workload and sample size each); see Experiments",
        counts.join("; "),
        groups.len()
    );
    searches.chain([counted]).collect()
}
