//! Results of MLPerf Storage's workloads, judged by its rules: which runs count, whether they keep the rules, and whether each submission has enough
//! of them.

use crate::import::PROVENANCE;
use crate::run::{Activity, MlperfCheck, RuleOutcome, Run, Submission, has_warm_up};
use feedrate_measure::dlio::micros;
use feedrate_spec::mlperf::rules::{Edition, SubmissionFacts, judge_submission};
use feedrate_spec::units::counted;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All results of one workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MlperfWorkload<'a> {
    /// Name of the workload.
    pub workload: &'a str,
    /// Number of results that keep all rules. A result is a training run, or the one or two runs that wrote and read checkpoints.
    pub kept: usize,
    /// Number of results that break a rule.
    pub not_kept: usize,
    /// Number of results that break no rule, but could not be checked completely.
    pub unknown: usize,
    /// Outcomes of the rules on all runs of a submission, for each submission.
    pub submissions: Vec<RuleOutcome>,
    /// The results.
    #[serde(skip)]
    pub results: Vec<MlperfResult<'a>>,
    /// Runs without a result, which no rule can judge, for each system.
    #[serde(skip)]
    pub unusable: Vec<UnusableRuns<'a>>,
}

/// Runs of a submitted system that left no result.
#[derive(Clone, Debug)]
pub struct UnusableRuns<'a> {
    /// The runs; at least one.
    pub runs: Vec<&'a Run>,
    /// Number of runs of the workload on this system with a result.
    pub usable: usize,
    /// Edition whose rules apply.
    pub edition: Edition,
}

/// A training run, or the runs that wrote and read checkpoints.
#[derive(Clone, Debug)]
pub struct MlperfResult<'a> {
    /// The runs.
    pub runs: Vec<&'a Run>,
    /// The outcomes of the rules.
    pub check: MlperfCheck,
}

/// A run with the outcomes of the rules for it alone.
struct JudgedRun<'a> {
    run: &'a Run,
    check: MlperfCheck,
}

/// The runs of a workload on one system.
#[derive(Default)]
struct SystemRuns<'a> {
    /// Number of runs with a result.
    usable: usize,
    /// Runs without a result.
    unusable: Vec<&'a Run>,
}

/// Judges the runs of MLPerf Storage's workloads, sorted by workload. The warm-up runs of submissions do not count.
pub fn judge_workloads<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<MlperfWorkload<'a>> {
    let mut groups: BTreeMap<_, Vec<JudgedRun>> = BTreeMap::new();
    let mut systems: BTreeMap<_, SystemRuns> = BTreeMap::new();
    for run in runs {
        let check = run.mlperf();
        if check.is_none() && !run.lacks_result() {
            continue;
        }
        let ((source, submission, workload), accelerators, parameter, value) = run.experiment_key();
        // Runs that are named one by one may be those of a submission.
        let source = Path::new(source);
        let root = if run.path == source { source.parent() } else { Some(source) };
        let study = (root, submission, workload);
        let system = systems.entry((&*run.workload, study)).or_default();
        let Some(check) = check else {
            system.unusable.push(run);
            continue;
        };
        system.usable += 1;
        // Writing and reading have different settings. A run with other settings is still one of its submission.
        let is_varied = run.activity == Activity::Training && run.submission.is_none();
        let setting = is_varied.then_some((parameter, value));
        groups
            .entry((&*run.workload, study, accelerators, setting))
            .or_default()
            .push(JudgedRun { run, check });
    }
    let mut workloads: Vec<MlperfWorkload> = Vec::new();
    for ((workload, ..), mut members) in groups {
        members.sort_by(|a, b| a.run.start_key().cmp(&b.run.start_key()));
        if workloads.last().is_none_or(|last| last.workload != workload) {
            workloads.push(MlperfWorkload::new(workload));
        }
        let Some(found) = workloads.last_mut() else { continue };
        let first = members[0].run;
        let is_training = first.activity == Activity::Training;
        let edition = first.mlperf_edition().filter(|_| is_training);
        // A run that is named alone is judged without the others of its submission.
        let is_alone = members.len() == 1 && first.path == Path::new(&first.source);
        let is_whole = first.submission.is_some() && !is_alone;
        if let Some(edition) = edition.filter(|_| is_whole) {
            let facts = submission_facts(&members);
            found.judge_submission(facts, edition, first.submission.as_ref());
            if has_warm_up(edition, facts.runs) {
                members.remove(0);
            }
        }
        let results = if is_training {
            members.into_iter().map(|judged| vec![judged]).collect()
        } else {
            paired_invocations(members)
        };
        for mut judged in results {
            let runs: Vec<&Run> = judged.iter().map(|judged| judged.run).collect();
            let check = match runs.len() {
                1 => judged.pop().map(|judged| judged.check),
                _ => MlperfCheck::for_checkpoints(&runs),
            };
            let Some(check) = check else { continue };
            *match check.keeps {
                Some(true) => &mut found.kept,
                Some(false) => &mut found.not_kept,
                None => &mut found.unknown,
            } += 1;
            found.results.push(MlperfResult { runs, check });
        }
    }
    for ((workload, _), SystemRuns { usable, unusable }) in systems {
        let Some(first) = unusable.first() else { continue };
        let Some(edition) = first.mlperf_edition() else { continue };
        let is_alone = unusable.len() == 1 && first.path == Path::new(&first.source);
        let index = workloads.iter().position(|found| found.workload == workload);
        let index = index.unwrap_or_else(|| {
            workloads.push(MlperfWorkload::new(workload));
            workloads.len() - 1
        });
        let found = &mut workloads[index];
        // Otherwise the runs with a result are counted.
        if usable == 0 && !is_alone {
            let submission = first.submission.as_ref();
            found.judge_submission(SubmissionFacts::default(), edition, submission);
        }
        found.unusable.push(UnusableRuns { runs: unusable, usable, edition });
    }
    workloads.sort_by_key(|found| found.workload);
    workloads
}

impl<'a> MlperfWorkload<'a> {
    fn new(workload: &'a str) -> Self {
        MlperfWorkload {
            workload,
            kept: 0,
            not_kept: 0,
            unknown: 0,
            submissions: Vec::new(),
            results: Vec::new(),
            unusable: Vec::new(),
        }
    }

    /// Adds the outcomes of the rules on all runs of a submission.
    fn judge_submission(
        &mut self,
        facts: SubmissionFacts,
        edition: Edition,
        submission: Option<&Submission>,
    ) {
        let outcomes = judge_submission(facts, edition).into_iter().map(RuleOutcome::from);
        let submission = submission.map(ToString::to_string);
        self.submissions.extend(
            outcomes.map(|outcome| RuleOutcome { submission: submission.clone(), ..outcome }),
        );
    }
}

/// Finds the parts that submissions of 3.0 need beside the steps of their runs, and that their folders lack. Rehearsals need none.
pub fn missing_parts<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let mut missing = BTreeSet::new();
    let mut without_provenance = 0;
    for run in runs {
        let submission = run.submission.as_ref().filter(|submission| !submission.is_rehearsal());
        let edition = run.mlperf_edition().or(run.rules_edition).unwrap_or(Edition::V3_0);
        if submission.is_none() || edition != Edition::V3_0 {
            continue;
        }
        let mut above = run.path.ancestors().skip(1);
        let workload = above.next().filter(|folder| folder.ends_with("run")).and(above.next());
        for (workload, part) in workload.into_iter().flat_map(|w| [(w, "datasize"), (w, "datagen")])
        {
            let name = workload.file_name().unwrap_or_default().display();
            if !workload.join(part).is_dir() {
                missing.insert(format!("`{part}/` of {name}"));
            }
        }
        let results = run.path.ancestors().find(|folder| folder.ends_with("results"));
        let submitter = results.and_then(Path::parent);
        if submitter.is_some_and(|submitter| !submitter.join("systems").is_dir()) {
            missing.insert("`systems/` beside `results/`".into());
        }
        without_provenance += u64::from(!run.path.join(PROVENANCE).is_file());
    }
    let provenance = (0 < without_provenance).then(|| {
        let runs = counted(without_provenance, "run");
        format!("`{PROVENANCE}` of {runs}, which only `mlpstorage` writes")
    });
    missing.into_iter().chain(provenance).collect()
}

/// Collects the facts of the runs of a submission, which are in the order of their starts.
fn submission_facts(judged: &[JudgedRun]) -> SubmissionFacts {
    let runs = judged.iter().map(|judged| judged.run);
    let times =
        runs.map(|run| Some([micros(run.started.as_ref()?)?, micros(run.ended.as_ref()?)?]));
    let times: Option<Vec<[i64; 2]>> = times.collect();
    let times = times.unwrap_or_default();
    let longest_gap = times.windows(2).map(|pair| pair[1][0] - pair[0][0]).max();
    let shortest_run = times.iter().map(|[start, end]| end - start).min().filter(|us| 0 < *us);
    SubmissionFacts {
        runs: judged.len() as u64,
        start_gap_ratio: longest_gap.zip(shortest_run).map(|(gap, run)| gap as f64 / run as f64),
    }
}

/// Joins a run that only wrote checkpoints with the next one, if that only read them.
fn paired_invocations(runs: Vec<JudgedRun>) -> Vec<Vec<JudgedRun>> {
    let counts = |judged: &JudgedRun| {
        judged.run.checkpoints.map(|all| [all.alone, all.reads].map(|n| 0 < n.unwrap_or(0)))
    };
    let mut results: Vec<Vec<JudgedRun>> = Vec::new();
    for judged in runs {
        match results.last_mut() {
            Some(last)
                if last.len() == 1
                    && counts(&last[0]) == Some([true, false])
                    && counts(&judged) == Some([false, true]) =>
            {
                last.push(judged);
            }
            _ => results.push(vec![judged]),
        }
    }
    results
}

#[cfg(test)]
mod tests;
