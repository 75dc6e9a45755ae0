//! `feedrate run --rehearse`: makes the runs of a submission to MLPerf Storage, judges them by its rules, and prints each rule, each run and the
//! verdict.

use super::mlperf::PlannedCommand;
use super::plan;
use super::run::RunArguments;
use super::study::conclusion::{
    REHEARSAL, conclude, interrupted, lines_of, relative_to_working_folder,
};
use super::study::runner_host;
use crate::exit::Exit;
use crate::{messages, text};
use anyhow::Context;
use feedrate_analysis::answer::Answer;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};
use feedrate_report::words;
use feedrate_report::words::mlperf::{RuleSummary, summaries};
use feedrate_report::words::number::list;
use feedrate_results::conclusion::Conclusion;
use feedrate_results::index::{ReadOptions, RunIndex};
use feedrate_results::run::{Activity, REHEARSAL as REHEARSAL_FOLDER, Run, SCALED_REHEARSAL};
use feedrate_results::submissions::{MlperfWorkload, judge_workloads};
use feedrate_run::system;
use feedrate_session::catalog;
use feedrate_session::launch;
use feedrate_session::rehearsal::Rehearsal;
use feedrate_session::request::Request;
use feedrate_session::resolve::mlperf_status;
use feedrate_session::{result_folder, room, threads};
use feedrate_spec::bundled::MlperfStatus;
use feedrate_spec::escape::{bash_word, path_text};
use feedrate_spec::mlperf::rules::{keeps_all, tenths};
use feedrate_spec::plan::{Plan, duration};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use feedrate_study::chooser::{Observation, RepeatedRuns};
use feedrate_study::chosen::{self, ChosenStudy, StudyIdentity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Result of a rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct RehearsalResult {
    /// The workload's name.
    workload: String,
    /// Number of emulated accelerators.
    accelerators: u32,
    /// Edition of the rules, such as `v3.0`.
    edition: String,
    /// Status of the workload if it is not official: it cannot be submitted, or has figures that feedrate chose; else `null`.
    status: Option<String>,
    /// `--scale`. Below 1, the rehearsal is no submission.
    scale: f64,
    /// `--shrink-records`, likewise.
    shrink_records: f64,
    /// Whether all rules are kept; `null` if none is broken, but some are unknown or a scored run must not be used. A scaled rehearsal never
    /// keeps them.
    keeps: Option<bool>,
    /// The rules, with their outcomes over all scored runs.
    rules: Vec<RehearsedRule>,
    /// The runs, in their order.
    runs: Vec<RehearsedRun>,
    /// Whether the storage fed the accelerators in the scored runs; `null` for checkpoints.
    answer: Option<String>,
    /// The folder of the rehearsal.
    results: String,
    /// Whether the runs only write and read checkpoints.
    is_checkpoint_only: bool,
}

/// A rule in a rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct RehearsedRule {
    /// The rule and its outcome.
    #[serde(flatten)]
    summary: RuleSummary,
    /// Its outcome at full size, as far as the plan decides it; `null` in rehearsals at full size, and for rules on several runs.
    full_size: Option<RuleSummary>,
    /// Whether only the scale breaks it. A scaled run is short, so the gap between runs may be too long for it.
    is_broken_by_scale: bool,
}

/// A run of a rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct RehearsedRun {
    /// Its folder.
    run_dir: String,
    /// Whether it warms up, and does not count.
    is_warm_up: bool,
    /// Utilisation by which MLPerf Storage judges; `null` for checkpoints.
    au_windowed_percent: Option<f64>,
    /// Utilisation over all steps; `null` for checkpoints.
    au_all_steps_percent: Option<f64>,
    /// Required utilisation.
    #[serde(skip)]
    target_percent: f64,
    /// Rate of writing checkpoints; `null` for training.
    written_bytes_per_second: Option<f64>,
    /// Rate of reading checkpoints; `null` for training.
    read_bytes_per_second: Option<f64>,
    /// Reason that its numbers must not be used; `null` if they may.
    unusable: Option<String>,
}

/// Makes the runs that are missing, and prints the result.
pub(super) fn rehearse(arguments: &RunArguments) -> anyhow::Result<Exit> {
    launch::refuse_several_processes(crate::launched().as_ref(), "run --rehearse")?;
    let request = arguments.request(1);
    // First, since it matters more than any error in the size.
    if let Some(status) = unofficial_status(&request).filter(|_| !arguments.dry_run) {
        messages::note(format!("status: {}", status.sentence()));
    }
    let rehearsal = Rehearsal::new(&request)?;
    let Rehearsal { request, resolved, runs, has_warm_up, .. } = &rehearsal;
    if arguments.dry_run {
        let exit = plan::dry_run(request, PlannedCommand::Rehearsal, arguments.data.json)?;
        // Below the plan, which may be longer than the terminal.
        announce(&rehearsal);
        return Ok(exit);
    }
    rehearsal.refuse_lack_of_space()?;
    resolved.report_warnings(&crate::progress::TERMINAL);
    let root = resolved.results_root(arguments.results.as_deref())?;
    let identity = StudyIdentity::new("rehearse", resolved, request, Vec::new());
    let mut study = ChosenStudy::open(&identity, &root, request, arguments.again, runner_host())?;
    study.use_mlperf_folder(&system_folder(request.is_shrunk()).join(&rehearsal.folder));
    announce(&rehearsal);
    let row = chosen::row(request, resolved.plan.accelerators)?;
    let mut chooser = RepeatedRuns::for_submission(&row, *runs, *has_warm_up);
    let end = study.run(&mut chooser, |_| Observation::default())?;
    if let Some((name, reason)) = chooser.failure(&end.history) {
        anyhow::bail!("{name} failed: {reason}");
    }
    let finished = chooser.finished(&end.history);
    if (finished as u64) < *runs {
        messages::note(format!(
            "note: {finished} of {} complete. The same command makes the others; with `--again`, it makes all of them, without a gap",
            units::counted(*runs, "run")
        ));
        return Err(interrupted(&study));
    }
    let result = RehearsalResult::read(&rehearsal, &study.folder)?;
    conclude(&study, &result.conclusion()?, arguments.data.json)?;
    Ok(result.exit())
}

/// Folder of the system in the tree of a submission. Its name tells rehearsals from submissions.
fn system_folder(is_scaled: bool) -> PathBuf {
    let submitter = if is_scaled { SCALED_REHEARSAL } else { REHEARSAL_FOLDER };
    let host = result_folder::file_name(&system::hostname());
    ["closed", submitter, "results", &host].iter().collect()
}

/// Notes what is run, how long it takes at least, and the space for its data.
fn announce(rehearsal: &Rehearsal) {
    let Rehearsal { request, resolved, runs, has_warm_up, .. } = rehearsal;
    let plan = &resolved.plan;
    let estimate = catalog::estimate(plan);
    // Without limit by the storage.
    let least = duration(plan, &estimate, f64::INFINITY).total_s();
    let names = match (has_warm_up, runs) {
        (true, runs) => format!("a warm-up and {}", units::counted(runs - 1, "run")),
        (false, runs) => units::counted(*runs, "run"),
    };
    let each = if *runs == 1 { "" } else { " each" };
    let scaled = if request.is_shrunk() { ", scaled: not a submission" } else { "" };
    messages::note(format!("rehearsal: {names}, at least {}{each}{scaled}", units::seconds(least)));
    if !plan.is_checkpoint_only() {
        let missing = room::missing_bytes(plan, &resolved.data_root);
        let state = if missing == 0 { "existing" } else { "to generate" };
        messages::note(format!(
            "data: {}, {}, {state} in {}",
            units::counted(estimate.files, "file"),
            units::bytes(estimate.file_bytes),
            room::describe_location(plan, &resolved.data_root),
        ));
    }
    announce_checkpoints(plan);
    if rehearsal.drops_cache {
        messages::note("cache: dropped before reading, since memory could hold the data");
    }
}

/// Notes the folder and the space of checkpoints, and the pauses between them.
fn announce_checkpoints(plan: &Plan) {
    let Some(checkpoint) = plan.checkpoint.as_ref().filter(|_| plan.is_checkpoint_only()) else {
        return;
    };
    let count = checkpoint.count(&plan.train);
    let total = units::bytes(checkpoint.total_bytes.saturating_mul(count));
    let each = units::bytes(checkpoint.total_bytes);
    let folder = &checkpoint.folder;
    messages::note(format!("checkpoints: {count} of {each}, {total} in all, in {folder}"));
    let wait_s = checkpoint.alone.as_ref().map_or(0.0, |alone| alone.wait_s);
    if 0.0 < wait_s {
        let wait = units::seconds(wait_s);
        messages::note(format!(
            "waits: {wait} before each checkpoint (`checkpoint.time_between_checkpoints`)"
        ));
    }
}

/// The status of a workload that cannot be submitted, or has figures that feedrate chose.
fn unofficial_status(request: &Request) -> Option<MlperfStatus> {
    mlperf_status(request).filter(|status| *status != MlperfStatus::Official)
}

/// The answers of the scored runs in one line.
fn answer(workload: &MlperfWorkload) -> Option<String> {
    let runs = workload.results.iter().flat_map(|result| &result.runs);
    let runs = runs.filter(|run| run.activity == Activity::Training);
    let answers: Vec<Answer> = runs.filter_map(|run| Answer::from_run(run)).collect();
    words::answer::summary(&answers.iter().collect::<Vec<_>>())
}

/// What a submission needs beside the runs that a rehearsal makes.
const ALSO_NEEDED: &str = "A submission also needs: the runs of `mlpstorage` with their `provenance.json`, `datasize/` and `datagen/` beside `run/` (training), \
     and `systems/` beside `results/`";

impl RehearsalResult {
    /// Judges the runs in the folder of the rehearsal.
    fn read(rehearsal: &Rehearsal, folder: &Path) -> anyhow::Result<Self> {
        let options = ReadOptions { threads: threads(), ..ReadOptions::default() };
        let mut found = RunIndex::read(&[folder.into()], &options).map_err(Refusal::from)?;
        found.runs.retain(|run| run.put_aside.is_none());
        found.runs.sort_by(|a, b| a.start_key().cmp(&b.start_key()));
        let judged = judge_workloads(found.runs.iter());
        let mut judged = judged.iter().filter(|workload| !workload.results.is_empty());
        let workload = judged.next().context("the rules judge none of the runs")?;
        let is_scored = |run: &Run| {
            let mut scored = workload.results.iter().flat_map(|result| &result.runs);
            scored.any(|scored| std::ptr::eq(*scored, run))
        };
        let request = &rehearsal.request;
        let mut result = RehearsalResult {
            workload: workload.workload.into(),
            accelerators: rehearsal.resolved.plan.accelerators,
            edition: workload.results.first().map_or("", |result| result.check.edition).into(),
            status: unofficial_status(request).map(MlperfStatus::sentence),
            scale: request.scale,
            shrink_records: request.shrink_records,
            keeps: None,
            rules: rehearsed_rules(rehearsal, workload, found.runs.len() as u64),
            runs: found.runs.iter().map(|run| RehearsedRun::new(run, !is_scored(run))).collect(),
            answer: answer(workload),
            results: relative_to_working_folder(folder),
            is_checkpoint_only: rehearsal.resolved.plan.is_checkpoint_only(),
        };
        result.keeps = result.keeps_rules();
        Ok(result)
    }

    fn keeps_rules(&self) -> Option<bool> {
        if self.is_scaled() {
            return Some(false);
        }
        let rules = self.rules.iter().map(|rule| rule.summary.keeps);
        keeps_all(rules.chain(self.has_unusable_run().then_some(None)))
    }

    /// Whether a run that counts must not be used.
    fn has_unusable_run(&self) -> bool {
        self.runs.iter().any(|run| !run.is_warm_up && run.unusable.is_some())
    }

    fn is_scaled(&self) -> bool {
        self.scale != 1.0 || self.shrink_records != 1.0
    }

    /// Names of the rules with this outcome. Rules that only the scale breaks are left out.
    fn names(&self, keeps: Option<bool>) -> Option<String> {
        let rules = self.rules.iter().filter(|rule| rule.summary.keeps == keeps);
        let rules = rules.filter(|rule| !rule.is_broken_by_scale);
        let mut names: Vec<String> = rules.map(|rule| rule.summary.title()).collect();
        if keeps.is_none() && self.has_unusable_run() {
            names.push("a run must not be used".into());
        }
        (!names.is_empty()).then(|| list(names.iter().map(String::as_str)))
    }

    fn verdict(&self) -> String {
        let accelerators = units::counted(self.accelerators.into(), "accelerator");
        let subject = format!("rehearsal of {} on {accelerators}", self.workload);
        let status = self.status.iter().map(|status| format!("; {status}"));
        let edition = self.edition.clone() + &status.collect::<String>();
        let broken = self.names(Some(false));
        let unknown = self.names(None);
        match (&broken, &unknown) {
            _ if self.is_scaled() => {
                let shares = [("--scale", self.scale), ("--shrink-records", self.shrink_records)];
                let given = shares.iter().filter(|(_, share)| *share != 1.0);
                let given: Vec<String> =
                    given.map(|(flag, share)| format!("`{flag} {share}`")).collect();
                let scale = list(given.iter().map(String::as_str));
                let broken = broken.as_deref().unwrap_or("no rule");
                let unknown = unknown.map(|unknown| format!("; not decided: {unknown}"));
                format!(
                    "SCALED {subject}: no submission ({scale}); apart from the scale it breaks {broken}{} ({edition})",
                    unknown.unwrap_or_default()
                )
            }
            (Some(broken), _) => format!("BROKEN RULES in the {subject}: {broken} ({edition})"),
            (None, Some(unknown)) => {
                format!("NOT DECIDED for the {subject}: {unknown} ({edition})")
            }
            (None, None) => format!("RULES KEPT in the {subject} ({edition})"),
        }
    }

    /// A line for each rule, and a table of the runs.
    fn rest(&self) -> String {
        let rules = self.rules.iter().map(|rule| (rule.word(), rule.sentence()));
        let mut parts = vec![text::rows(&rules.collect::<Vec<_>>()), self.table()];
        let unusable = self.runs.iter().filter_map(|run| {
            Some(format!("{} must not be used: {}", run.name(), run.unusable.as_ref()?))
        });
        parts.extend(unusable);
        parts.extend(self.answer.as_ref().map(|answer| format!("Answer: {answer}")));
        parts.push(ALSO_NEEDED.into());
        parts.push(format!(
            "Results: {}\nTo judge them again: feedrate analyze {}",
            self.results,
            bash_word(&self.results)
        ));
        parts.join("\n\n")
    }

    fn table(&self) -> String {
        let header = if self.is_checkpoint_only {
            ["Run", "Written (bytes ÷ time)", "Read (bytes ÷ time)"]
        } else {
            ["Run", "Windowed AU", "AU over all steps"]
        };
        let mut scored = 0;
        let rows = self.runs.iter().map(|run| {
            scored += u32::from(!run.is_warm_up);
            let number = if run.is_warm_up { String::new() } else { format!("{scored}: ") };
            let percent = |au: Option<f64>| {
                text::known(au, |au| format!("{} %", tenths(au, run.target_percent)))
            };
            let rate = |rate: Option<f64>| text::known(rate, units::bytes_per_second);
            let [first, second] = if self.is_checkpoint_only {
                [rate(run.written_bytes_per_second), rate(run.read_bytes_per_second)]
            } else {
                [percent(run.au_windowed_percent), percent(run.au_all_steps_percent)]
            };
            [number + &run.name(), first, second]
        });
        text::table_with_numbers(header, rows, &[1, 2])
    }

    fn conclusion(&self) -> anyhow::Result<Conclusion> {
        Ok(Conclusion {
            // Empty, since reports judge the runs themselves.
            lines: Vec::new(),
            schema: REHEARSAL.into(),
            answer: lines_of(&self.verdict()),
            rest: lines_of(&self.rest()),
            object: serde_json::to_value(self)?,
        })
    }

    /// A scaled rehearsal is not judged, so it is fine if it was made.
    fn exit(&self) -> Exit {
        match self.keeps {
            _ if self.is_scaled() => Exit::Fine,
            Some(true) => Exit::Fine,
            Some(false) => Exit::Unmet,
            None => Exit::Undecided,
        }
    }
}

/// The rules of all scored runs, each with its outcome at full size. Only if all `runs` were made can the scale break rules on several runs.
fn rehearsed_rules(rehearsal: &Rehearsal, found: &MlperfWorkload, runs: u64) -> Vec<RehearsedRule> {
    let full_size = rehearsal.full_size.iter().flat_map(|check| &check.rules);
    let full_size: Vec<RuleSummary> =
        full_size.filter_map(|rule| RuleSummary::new(&[rule])).collect();
    let may_scale_break = rehearsal.request.is_shrunk() && runs == rehearsal.runs;
    let rules = summaries(found).into_iter().map(|summary| {
        let is_same = |full: &&RuleSummary| full.title() == summary.title();
        let full_size = full_size.iter().find(is_same).cloned();
        let mut on_several_runs = found.submissions.iter();
        let is_on_several_runs =
            on_several_runs.any(|rule| rule.rule == summary.rule && rule.name == summary.name);
        RehearsedRule::new(summary, full_size, may_scale_break && is_on_several_runs)
    });
    rules.collect()
}

impl RehearsedRule {
    /// Creates a rule. `is_on_scaled_runs`: it judges several runs together, which the scale makes short.
    fn new(summary: RuleSummary, full_size: Option<RuleSummary>, is_on_scaled_runs: bool) -> Self {
        let would_keep = full_size.as_ref().and_then(|full| full.keeps) == Some(true);
        RehearsedRule {
            is_broken_by_scale: summary.keeps == Some(false) && (would_keep || is_on_scaled_runs),
            summary,
            full_size,
        }
    }

    fn word(&self) -> &'static str {
        match self.summary.keeps {
            _ if self.is_broken_by_scale => "scaled",
            Some(true) => "kept",
            Some(false) => "broken",
            None => "unknown",
        }
    }

    fn sentence(&self) -> String {
        let sentence = self.summary.sentence();
        match (&self.full_size, self.is_broken_by_scale) {
            (Some(RuleSummary { value: Some(value), .. }), true) => {
                format!("{sentence}; at full size {value}")
            }
            (None, true) => {
                format!("{sentence}; runs are longer at full size, but an interruption counts too")
            }
            _ => sentence,
        }
    }
}

impl RehearsedRun {
    fn new(run: &Run, is_warm_up: bool) -> Self {
        // Of other runs, it is the reason that they did not train.
        let is_training = run.activity == Activity::Training;
        RehearsedRun {
            run_dir: path_text(&run.path),
            is_warm_up,
            au_windowed_percent: run.metric(&AU_WINDOWED),
            au_all_steps_percent: run.metric(&AU_ALL_STEPS),
            target_percent: run.bar_percent.unwrap_or_default(),
            written_bytes_per_second: run.written_bytes_per_second(),
            read_bytes_per_second: run.read_bytes_per_second(),
            unusable: run
                .unusable
                .as_ref()
                .filter(|_| is_training && !is_warm_up)
                .map(ToString::to_string),
        }
    }

    /// `20261121_100000`, the name of its folder.
    fn name(&self) -> String {
        let folder = Path::new(&self.run_dir).file_name().unwrap_or_default().to_string_lossy();
        let warm_up = if self.is_warm_up { "warm-up: " } else { "" };
        format!("{warm_up}{folder}")
    }
}

#[cfg(test)]
mod tests;
