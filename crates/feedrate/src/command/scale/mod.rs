//! `feedrate scale`: searches for the largest or smallest number of accelerators, or value of a numeric key, at which a metric reaches its
//! target, and explains the limit.

mod plain_read;
mod answer;
mod words;
mod dry_run;

pub(super) use answer::SearchResult;

use super::study::conclusion::{
    SCALE, conclude, interrupted, lines_of, relative_to_working_folder,
};
use super::study::runner_host;
use crate::cli::{CacheArguments, DataArguments, OUTPUT, metric, parse_count, parse_size};
use crate::exit::Exit;
use crate::export::{self, ExportArguments, MetricSet, TestCase, TestSuite};
use crate::gate::GateResult;
use crate::progress::TERMINAL;
use crate::{messages, text, time};
use answer::SearchAnswer;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_results::conclusion::Conclusion;
use feedrate_results::load_run;
use feedrate_session::request::Request;
use feedrate_session::room;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_study::chooser::{NumberRange as _, ScaleEnd, ScaleLimits, ScaleSearch};
use feedrate_study::chosen::{ChosenStudy, StudyIdentity};
use feedrate_study::scale::{ScaleOptions, SearchRange};
use feedrate_study::search::{ACCELERATORS, Certainty, SearchBounds, SearchTarget};
use plain_read::{PlainRead, RunRates};
use std::path::{Path, PathBuf};

/// Help heading of the search's options.
const SEARCH: &str = "Search";

/// `feedrate scale`.
#[derive(Debug, Args)]
#[command(after_help = "\
The number is doubled until the target is missed; then the limit is found by bisection, and the runs next to it are repeated until the answer is \
certain. The same command continues. The dataset grows with the number, unless `--scale` or `dataset.num_files_train` is given. \
`-n` is for another `--key`.

Examples:
  feedrate scale unet3d_h100 --data /mnt/fs --cold
  feedrate scale my.yaml --key reader.read_threads --find smallest

Exit codes: 0 a number was found; 1 a run failed; 2 bad usage or workload; 3 no number reaches the target; 4 not decided; 130 interrupted.")]
pub(super) struct ScaleArguments {
    #[command(flatten)]
    pub(super) data: DataArguments,
    /// Target of the metric [default: `expect.au` or `metric.au`].
    #[arg(long, help_heading = SEARCH, visible_alias = "at-least", value_name = "VALUE")]
    au: Option<f64>,
    /// Metric that must reach the target. If low values are good, the target is an upper limit.
    #[arg(long, help_heading = SEARCH, value_name = "NAME", value_parser = metric, default_value = "au_sustained_percent", hide_short_help = true)]
    response: &'static Metric,
    /// Number to increase: `accelerators`, or a numeric key such as `reader.read_threads`.
    #[arg(long, help_heading = SEARCH, value_name = "KEY", default_value = ACCELERATORS)]
    key: String,
    /// Which number that reaches the target to find.
    #[arg(long, help_heading = SEARCH, value_parser = target_parser(), default_value = "largest")]
    find: SearchTarget,
    /// Smallest number to try.
    #[arg(long, help_heading = SEARCH, value_name = "N", value_parser = parse_count::<u64>, default_value_t = 1, hide_short_help = true)]
    from: u64,
    /// Largest number to try [default: as far as the dataset or its space suffices].
    #[arg(long, help_heading = SEARCH, value_name = "N", value_parser = parse_count::<u64>)]
    max: Option<u64>,
    /// Most new bytes to generate, as `200GB`.
    #[arg(long, help_heading = SEARCH, value_name = "SIZE", value_parser = parse_size)]
    max_data: Option<u64>,
    /// Maximum number of runs.
    #[arg(long, help_heading = SEARCH, value_name = "N", value_parser = parse_count::<u64>, default_value_t = 20, hide_short_help = true)]
    max_runs: u64,
    /// Time for all runs.
    #[arg(long, help_heading = SEARCH, value_name = "TIME", value_parser = time::seconds, default_value = "30m")]
    budget: f64,
    /// Forecast the runs and their time; run nothing.
    #[arg(long, help_heading = SEARCH)]
    pub(super) dry_run: bool,
    /// Folder of all results [default: `output.folder`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    results: Option<PathBuf>,
    /// Repeat runs that exist from before; their results are moved aside.
    #[arg(long, help_heading = SEARCH, hide_short_help = true)]
    again: bool,
    #[command(flatten)]
    pub(super) exports: ExportArguments,
    #[command(flatten)]
    cache: CacheArguments,
}

impl ScaleArguments {
    fn options(&self) -> ScaleOptions {
        ScaleOptions {
            request: Request { cache: self.cache.cache(), ..self.data.request() },
            bound: self.au,
            response: self.response,
            key: self.key.clone(),
            find: self.find,
            from: self.from,
            max: self.max,
            max_data_bytes: self.max_data,
            limits: ScaleLimits { runs_max: self.max_runs, budget_s: self.budget },
        }
    }
}

fn target_parser() -> impl TypedValueParser<Value = SearchTarget> {
    PossibleValuesParser::new(["largest", "smallest"]).map(|text| match text.as_str() {
        "smallest" => SearchTarget::Smallest,
        _ => SearchTarget::Largest,
    })
}

/// Runs the search, and prints its result.
pub(super) fn scale(arguments: &ScaleArguments) -> anyhow::Result<Exit> {
    let options = arguments.options();
    let mut range = SearchRange::find(&options, &TERMINAL)?;
    if arguments.dry_run {
        dry_run::print(&options, &range, arguments.data.json)?;
        return Ok(Exit::Fine);
    }
    if let Some(dataset) = range.dataset()? {
        let files = units::counted(dataset.files, "file");
        let bytes = units::bytes(dataset.bytes);
        let enough = range.describe(range.max);
        let place = room::describe_location(&range.plan(range.max)?, &range.resolved.data_root);
        messages::note(format!("data: {files}, {bytes}, enough for {enough}, in {place}"));
    }
    let root = range.resolved.results_root(arguments.results.as_deref())?;
    let identity = study_identity(&options, &range);
    let mut study =
        ChosenStudy::open(&identity, &root, range.user_request(), arguments.again, runner_host())?;
    let made = study.generated_datasets(&range.dataset_root()?.into_iter().collect())?;
    range.resume(study.files.table()?.rows().next(), made.into_iter().collect())?;
    range.notes.iter().for_each(|note| messages::note(format!("note: {note}")));
    let goal = range.goal(range.bound);
    let mut search = ScaleSearch::new(goal, options.response, options.limits, range);
    let end = study.run(&mut search, answer::observe)?;
    let stopped = if end.report.is_stopped {
        Some("the search was interrupted".into())
    } else {
        stop_reason(&options, &search, &search.end(&end.history))?
    };
    let runs = search.runs(&end.history);
    let mut result = SearchAnswer::new(&options, &search, runs)?.result(stopped, &study);
    if !end.report.is_stopped {
        result.plain_read = measure_plain_read(&result, search.range());
        result.drop_lack_despite_plain_read();
    }
    let conclusion = conclusion(&result, options.response)?;
    if !result.numbers.is_empty() {
        conclude(&study, &conclusion, arguments.data.json)?;
    }
    if end.report.is_stopped {
        return Err(interrupted(&study));
    }
    if let ScaleEnd::Failed { run, reason, .. } = search.end(&end.history) {
        anyhow::bail!("run {run} failed: {reason}");
    }
    let gate = gate(&result, options.response);
    let case = TestCase::for_gate(&result.workload, &gate);
    let suite =
        TestSuite { name: format!("feedrate scale {}", result.workload), cases: vec![case] };
    let metrics =
        if arguments.exports.wants_metrics() { metric_sets(&result, &gate)? } else { Vec::new() };
    arguments.exports.write(&suite, &metrics)?;
    Ok(match gate.is_met {
        None => Exit::Undecided,
        Some(false) => Exit::Unmet,
        Some(true) => Exit::Fine,
    })
}

/// Whether a number reaches the target; not decided if the search ended early or at busy cores.
fn gate(result: &SearchResult, response: &Metric) -> GateResult {
    let is_met = match result.found {
        SearchBounds { not_decided: Some(_), .. } => None,
        SearchBounds { certain: None, .. } if result.ends_at_busy_cores() => None,
        SearchBounds { certain, .. } => Some(certain.is_some()),
    };
    let reached = words::lines(result).into_iter().next().map(|line| line.value);
    let measured = result.mean_at(result.found.certain.or(result.found.fails));
    GateResult {
        name: response.id.name().into(),
        is_met,
        measured,
        limit: Some(result.bound),
        says: reached.unwrap_or_default(),
    }
}

/// The means at each number, with the gate and the number that was found in a set of its own.
fn metric_sets(result: &SearchResult, gate: &GateResult) -> anyhow::Result<Vec<MetricSet>> {
    let mut sets = Vec::new();
    for searched in &result.numbers {
        let records = searched.run_dirs.iter().map(|run_dir| load_run(Path::new(run_dir)));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let Some(record) = records.first() else { continue };
        let runs: Vec<AnsweredSummary> = records.iter().map(AnsweredSummary::new).collect();
        let number = ("number", searched.number.to_string());
        let labels = [export::labels(record), vec![number]].concat();
        sets.push(MetricSet::for_runs(labels, &runs, &[]));
    }
    sets.push(MetricSet {
        labels: vec![("workload", result.workload.clone()), ("key", result.key.clone())],
        gates: vec![gate.clone()],
        found: result.found.certain,
        ..MetricSet::default()
    });
    Ok(sets)
}

/// Measures plain reads for the smallest number that fails or, if none fails, the largest that holds. `None` if no run was made at this number.
fn measure_plain_read(result: &SearchResult, range: &SearchRange<'_>) -> Option<PlainRead> {
    let number = result.found.fails.or(result.found.certain)?;
    let tried = result.numbers.iter().find(|searched| searched.number == number);
    let tried = tried.filter(|searched| !searched.run_dirs.is_empty())?;
    // Without this rate the search still has its result.
    let request = range.request_at(number).ok()?;
    let rates = RunRates {
        needed_bytes_per_second: tried.needed_bytes_per_second,
        delivered_bytes_per_second: tried.delivered_bytes_per_second,
    };
    plain_read::measure(number, request, rates, &TERMINAL)
}

/// Reason that the search stopped early; `None` if everything is decided.
fn stop_reason(
    options: &ScaleOptions,
    search: &ScaleSearch<SearchRange<'_>>,
    end: &ScaleEnd,
) -> anyhow::Result<Option<String>> {
    let words = |number: u64| search.range().describe(number);
    Ok(Some(match end {
        ScaleEnd::Decided => return Ok(None),
        ScaleEnd::OutOfRuns => format!("`--max-runs {}` is reached", options.limits.runs_max),
        ScaleEnd::OutOfTime => {
            let budget = units::seconds(options.limits.budget_s);
            format!("another run would probably exceed the `--budget` of {budget}")
        }
        ScaleEnd::InvalidRun { run, number, reason } => {
            format!("run {run}, {}, does not show the storage's speed: {reason}", words(*number))
        }
        ScaleEnd::NoValue { number } => {
            let name = options.response.id.name();
            let message = format!("the run of {} has no {name}", words(*number));
            let hint =
                "try `--response au_all_steps`; a utilisation needs `train.computation_time`";
            return refuse(message, hint);
        }
        ScaleEnd::Failed { run, reason, .. } => format!("run {run} failed: {reason}"),
    }))
}

/// Identifies the search, so that the same command resumes it. The limits on runs and time are not part of the identity.
fn study_identity<'a>(options: &ScaleOptions, range: &'a SearchRange<'_>) -> StudyIdentity<'a> {
    let ScaleOptions { key, find, from, max, max_data_bytes, .. } = options;
    let details = vec![
        format!("{key} {} from {from}", find.name()),
        format!("{} {}", options.response.id.name(), range.bound),
        format!("max {max:?} {max_data_bytes:?}"),
    ];
    StudyIdentity::new("scale", &range.resolved, range.user_request(), details)
}

fn conclusion(result: &SearchResult, response: &Metric) -> anyhow::Result<Conclusion> {
    Ok(Conclusion {
        lines: words::lines(result),
        schema: SCALE.into(),
        answer: lines_of(&answer(result)),
        rest: lines_of(&rest(result, response)),
        object: serde_json::to_value(result)?,
    })
}

fn answer(result: &SearchResult) -> String {
    let mut lines = Vec::new();
    for (index, line) in words::lines(result).into_iter().enumerate() {
        let named = format!("{}: {}", line.name, line.value);
        lines.push(if index == 0 { line.value } else { named });
    }
    lines.join("\n")
}

fn rest(result: &SearchResult, response: &Metric) -> String {
    let mut parts = vec![table(result, response.unit)];
    if !result.overrides.is_empty() {
        parts.push(format!("Set by the search: {}", result.overrides.join(" ")));
    }
    let runs = units::counted(result.runs, "run");
    let took = units::seconds(result.took_s);
    let results = relative_to_working_folder(Path::new(&result.results));
    parts.push(format!("{runs} in {took}\nResults: {results}"));
    parts.join("\n\n")
}

fn table(result: &SearchResult, unit: Unit) -> String {
    let header = [result.key.as_str(), "Runs", "Mean", "Interval", "", "Verdict"];
    let rows = result.numbers.iter().map(|row| {
        let interval =
            row.interval.map(|i| format!("{} to {}", unit.text(i.low), unit.text(i.high)));
        let state = match row.state {
            Certainty::NotDecided if row.values.is_empty() => "no value",
            Certainty::NotDecided if row.values.len() < 2 => "one run",
            Certainty::NotDecided => "not decided",
            Certainty::Holds => "holds",
            Certainty::Fails => "fails",
        };
        [
            row.number.to_string(),
            row.values.len().to_string(),
            text::known(row.mean, |mean| unit.text(mean)),
            interval.unwrap_or("-".into()),
            state.into(),
            row.verdict.clone(),
        ]
    });
    text::table(header, rows)
}
