//! `feedrate run --repeat`: several runs of one plan in a new folder, and their means with intervals.

use super::run::RunArguments;
use super::study::conclusion::{
    REPEAT, conclude, interrupted, lines_of, relative_to_working_folder,
};
use super::study::runner_host;
use crate::exit::Exit;
use crate::export::{self, CaseState, MetricSet, RUN_CASE, TestCase, TestSuite};
use crate::gate::{self, GateResult};
use crate::progress::TERMINAL;
use crate::{launched, messages, text};
use anyhow::Context;
use feedrate_analysis::answer::{AnsweredSummary, relevant_doubts};
use feedrate_analysis::repeat::RepeatedAnswer;
use feedrate_measure::metric::{DELIVERED_WHOLE, DURATION_S, Metric, SAMPLES_WHOLE};
use feedrate_measure::record::Record;
use feedrate_report::words::repeat;
use feedrate_results::conclusion::{Conclusion, ConclusionLine};
use feedrate_results::load_run;
use feedrate_session::folder;
use feedrate_session::launch;
use feedrate_session::request::Request;
use feedrate_session::resolve::STDIN;
use feedrate_session::result_folder;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_study::chooser::{Observation, RepeatedRuns};
use feedrate_study::chosen::{self, ChosenStudy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Result of repeated runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct RepeatResult {
    /// The workload's name.
    workload: String,
    /// Number of emulated accelerators.
    accelerators: u32,
    /// Number of runs before the others, which do not count.
    warm_ups: u16,
    /// The answer by the means over the runs.
    answer: RepeatedAnswer,
    /// The runs that count, in their order.
    runs: Vec<RepeatedRun>,
    /// The conditions on the means, which decide the exit code.
    gates: Vec<GateResult>,
    /// The folder of the runs.
    results: String,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct RepeatedRun {
    /// Its folder.
    run_dir: String,
    /// Its answer, such as `no`.
    answer: String,
    /// The deciding utilisation; `null` if there is none.
    au_percent: Option<f64>,
    /// Bytes that its reads returned per second.
    delivered_bytes_per_second: Option<f64>,
    /// Samples per second.
    samples_per_second: Option<f64>,
    /// Its verdict.
    verdict: String,
    /// Names of the doubts that could change its answer.
    doubts: Vec<String>,
}

/// Makes the runs, and prints their result.
pub(super) fn repeat(given: &RunArguments, runs: u16) -> anyhow::Result<Exit> {
    launch::refuse_if_several(launched().as_ref(), || {
        Refusal::new(
            "`--repeat` starts its runs itself, but several processes were started",
            "create a study with `feedrate study new --replicates N`; `feedrate study run --launch mpirun` starts each run in several processes",
        )
    })?;
    let request = repeatable_request(given)?;
    let resolved = folder::resolve(&request, &TERMINAL)?;
    // Measuring the client takes a while, so it follows the checks.
    let arguments = &given.with_measured_client()?;
    let request = repeatable_request(arguments)?;
    let root = resolved.results_root(arguments.results.as_deref())?;
    let name = result_folder::file_name(&resolved.plan.workload);
    let folder = result_folder::make_folder(&root, &format!("repeat-{name}-"))?;
    let mut study = ChosenStudy::open_in(&folder, &request, runner_host())?;
    let row = chosen::row(&request, resolved.plan.accelerators)?;
    let warm_ups = arguments.warmup.unwrap_or(0);
    let mut chooser = RepeatedRuns::new(&row, runs.into(), warm_ups.into());
    let end = study.run(&mut chooser, |_| Observation::default())?;
    if let Some((name, reason)) = chooser.failure(&end.history) {
        let folder = relative_to_working_folder(&folder);
        anyhow::bail!("{name} failed: {reason}\n  the complete runs are in {folder}");
    }
    let run_dirs = chooser.counted_run_dirs(&end.history);
    if run_dirs.len() < runs.into() {
        let total = units::counted(runs.into(), "run");
        messages::note(format!("note: {} of {total} complete", run_dirs.len()));
        return Err(interrupted(&study));
    }
    let repeated = Repeated::read(arguments, &run_dirs, &folder)?;
    conclude(&study, &repeated.conclusion()?, arguments.data.json)?;
    let exit = gate::exit(&repeated.result.gates);
    arguments.exports.write(&repeated.test_suite(), std::slice::from_ref(&repeated.metrics))?;
    Ok(exit)
}

/// The request of a row, in which `--verify` is an override.
fn repeatable_request(arguments: &RunArguments) -> anyhow::Result<Request> {
    let mut request = arguments.request(1);
    if request.workload.is_empty() {
        return refuse(
            "`--repeat` needs a workload",
            "write that of the folder with `feedrate run --data DIR --write-yaml FILE`, and repeat FILE",
        );
    }
    if request.workload == STDIN {
        return refuse(
            "`--repeat` reads the workload several times, which is not possible from stdin",
            "save the workload to a file",
        );
    }
    if std::mem::take(&mut request.verify) {
        request.overrides.push("reader.verify=true".into());
    }
    Ok(request)
}

/// The result of repeated runs in all forms.
struct Repeated {
    result: RepeatResult,
    /// Lines of the answer.
    lines: Vec<String>,
    metrics: MetricSet,
}

impl Repeated {
    /// Reads the runs, one after another, since records may be large.
    fn read(arguments: &RunArguments, run_dirs: &[PathBuf], folder: &Path) -> anyhow::Result<Self> {
        let mut runs = Vec::new();
        let mut last: Option<Record> = None;
        for run_dir in run_dirs {
            let record = load_run(run_dir)?;
            let target_percent = arguments.gates.target_percent(&record.plan.metric.expect);
            let mut run = AnsweredSummary::with_target(&record, target_percent);
            run.summary.run_dir = Some(relative_to_working_folder(run_dir));
            runs.push(run);
            last = Some(record);
        }
        let record = last.context("no run has a record")?;
        let gates = arguments.gates.judge(&record.plan.metric.expect, &runs);
        let answer = RepeatedAnswer::new(&runs);
        Ok(Repeated {
            lines: repeat::lines(&answer, &runs),
            metrics: MetricSet::for_runs(export::labels(&record), &runs, &gates),
            result: RepeatResult {
                workload: record.plan.workload.clone(),
                accelerators: record.plan.accelerators,
                warm_ups: arguments.warmup.unwrap_or(0),
                answer,
                runs: runs.iter().map(RepeatedRun::new).collect(),
                gates,
                results: relative_to_working_folder(folder),
            },
        })
    }

    fn conclusion(&self) -> anyhow::Result<Conclusion> {
        let answer = ConclusionLine { name: "Answer".into(), value: self.lines.join("; ") };
        Ok(Conclusion {
            lines: vec![answer],
            schema: REPEAT.into(),
            answer: self.lines.clone(),
            rest: lines_of(&self.result.rest()),
            object: serde_json::to_value(&self.result)?,
        })
    }

    fn test_suite(&self) -> TestSuite {
        let RepeatResult { workload, answer, gates, .. } = &self.result;
        let complete = TestCase {
            subject: workload.clone(),
            name: RUN_CASE.into(),
            duration_s: answer.value(DURATION_S.id.name()).map(|run| run.values.iter().sum()),
            state: CaseState::Passed,
            says: format!("{} complete", units::counted(answer.runs, "run")),
        };
        let gates = gates.iter().map(|gate| TestCase::for_gate(workload, gate));
        let cases = [complete].into_iter().chain(gates).collect();
        TestSuite { name: format!("feedrate run {workload}"), cases }
    }
}

impl RepeatResult {
    /// The table of runs, the doubts and the folder.
    fn rest(&self) -> String {
        let mut parts = vec![self.table()];
        let mut doubts: BTreeMap<&str, u64> = BTreeMap::new();
        for name in self.runs.iter().flat_map(|run| &run.doubts) {
            *doubts.entry(name).or_default() += 1;
        }
        let doubts = doubts
            .into_iter()
            .map(|(name, runs)| format!("{name} ({})", units::counted(runs, "run")));
        let doubts: Vec<String> = doubts.collect();
        parts.push(if doubts.is_empty() {
            "Doubts: none could change the answer of a run".into()
        } else {
            format!("Doubts that could change the answer: {}", doubts.join(", "))
        });
        let results = &self.results;
        parts.push(format!("Results: {results}"));
        parts.join("\n\n")
    }

    fn table(&self) -> String {
        let header = ["Run", "AU", "Reads", "Samples", "Verdict", "Folder"];
        let rows = self.runs.iter().zip(1..).map(|(run, number)| {
            let folder = Path::new(&run.run_dir).file_name().unwrap_or_default();
            [
                number.to_string(),
                text::known(run.au_percent, |au| format!("{au:.1} %")),
                text::known(run.delivered_bytes_per_second, units::bytes_per_second),
                text::known(run.samples_per_second, |rate| units::per_second(rate, "samples")),
                run.verdict.clone(),
                folder.to_string_lossy().into_owned(),
            ]
        });
        text::table_with_numbers(header, rows, &[1, 2, 3])
    }
}

impl RepeatedRun {
    fn new(run: &AnsweredSummary) -> Self {
        let AnsweredSummary { summary, answer } = run;
        let value = |metric: &Metric| summary.figures.value(metric);
        let doubts = relevant_doubts(Some(answer), &summary.doubts);
        RepeatedRun {
            run_dir: summary.run_dir.clone().unwrap_or_default(),
            answer: answer.kind.name().into(),
            au_percent: answer.au_percent,
            delivered_bytes_per_second: value(&DELIVERED_WHOLE),
            samples_per_second: value(&SAMPLES_WHOLE),
            verdict: answer.verdict.name().into(),
            doubts: doubts.into_iter().map(|doubt| doubt.name.clone()).collect(),
        }
    }
}
