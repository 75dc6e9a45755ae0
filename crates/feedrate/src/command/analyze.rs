//! `feedrate analyze`: result folders, ours or others', with the numbers that follow from their steps and what is wrong with them.

use super::groups;
use crate::exit::Exit;
use crate::gate::percentage;
use crate::{messages, text};
use clap::Args;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, Metric, NOMINAL_WHOLE,
    NOMINAL_WINDOWED, Provenance, SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use feedrate_report::gather::of_index;
use feedrate_report::opening::{FINDINGS_MAX, STEP};
use feedrate_report::output::Schema;
use feedrate_report::report::Report;
use feedrate_results::groups::{ResultGroup, checkpoint_groups, result_groups};
use feedrate_results::import::{FoundRun, find_within};
use feedrate_results::index::{ReadOptions, RunIndex};
use feedrate_results::run::Run;
use feedrate_session::threads;
use feedrate_spec::escape::{bash_word, shown_path};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units::{self, MIB};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// `feedrate analyze`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate analyze results
  feedrate analyze mlps_results --all
  feedrate list page_cache          what a doubt means

Exit codes: 0 done, doubts or not; 2 bad usage, or no run was found.")]
pub(super) struct AnalyzeArguments {
    /// Folders of runs (feedrate's, DLIO's or MLPerf Storage's), folders above them, or CSVs of studies.
    #[arg(required = true, value_name = "DIR")]
    sources: Vec<PathBuf>,
    /// Hold runs to this utilisation in percent, not to that of their configs and of MLPerf Storage.
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    bar: Option<f64>,
    /// Print all findings, all runs, and each doubt with its evidence and advice.
    #[arg(long)]
    all: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Runs that are shown one by one, at most; and where nobody asked for all.
const RUNS_MAX: usize = 200;
const RUNS_FOLDED: usize = 12;
/// Runs that a doubt names, at most.
const NAMED_MAX: usize = 6;

/// Analyse, and print.
pub(crate) fn analyze(arguments: &AnalyzeArguments) -> anyhow::Result<Exit> {
    let options = ReadOptions { threads: threads(), ..ReadOptions::default() };
    let mut found = RunIndex::read(&arguments.sources, &options).map_err(Refusal::from)?;
    if !arguments.json {
        // Runs have the numbers that they have in a report.
        found.runs.sort_by(|a, b| a.by_start().cmp(&b.by_start()));
    }
    if arguments.bar.is_some() {
        found.runs.iter_mut().for_each(|run| run.bar_percent = arguments.bar);
    }
    let groups = result_groups(&found.runs);
    if arguments.json {
        let sources = arguments.sources.iter().map(|source| shown_path(source));
        let left_out = found.unread.iter();
        let left_out = left_out.map(|one| json!({ "path": shown_path(&one.path), "why": one.why }));
        messages::print_json(Schema::Analyze.object(json!({
            "sources": sources.collect::<Value>(),
            "runs": found.runs.iter().map(object).collect::<Value>(),
            "groups": groups,
            "checkpoints": checkpoint_groups(&found.runs),
            "left_out": left_out.collect::<Value>(),
        })))?;
    } else {
        let report = of_index(found.clone(), &arguments.sources).map_err(Refusal::from)?;
        if arguments.all {
            messages::print_page(&page(&found, &groups, &report, Detail::All))?;
        } else {
            let page = page(&found, &groups, &report, Detail::Folded);
            let beside = not_looked_at(&arguments.sources, &found).into_iter();
            let tail: Vec<String> = beside.chain([folded_tail(&found)]).collect();
            messages::print_screen(&page, &tail.join("\n"))?;
        }
    }
    Ok(Exit::Fine)
}

/// Sentences on runs that lie beside those that were named by themselves: what only several runs show nobody sees here.
fn not_looked_at(sources: &[PathBuf], found: &RunIndex) -> Vec<String> {
    let is_run = |source: &&PathBuf| found.runs.iter().any(|run| run.path == **source);
    let parents: BTreeSet<&Path> =
        sources.iter().filter(is_run).filter_map(|of| of.parent()).collect();
    let told = parents.into_iter().filter_map(|parent| {
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let (all, _) = find_within(folder, 1).ok()?;
        let is_other = |of: &&FoundRun| {
            let is_beside = of.path.parent() == Some(folder);
            is_beside && found.runs.iter().all(|run| run.path.file_name() != of.path.file_name())
        };
        let others = all.iter().filter(is_other).count() as u64;
        let (lie, folder) = (if others == 1 { "lies" } else { "lie" }, shown_path(folder));
        let others = (others > 0).then(|| units::counted(others, "more run"))?;
        Some(format!(
            "{others} {lie} beside it: only `feedrate analyze {}` sees copies, stale data and noise between runs",
            bash_word(&folder)
        ))
    });
    told.collect()
}

/// One run; `null` is what is not known.
fn object(run: &Run) -> Value {
    json!({
        "path": shown_path(&run.path),
        "source": run.source,
        "kind": run.origin,
        "activity": run.activity,
        "put_aside": run.put_aside,
        "submission": run.submission,
        "workload": run.workload,
        "workload_from": run.workload_from,
        "bar_percent": run.bar_percent,
        "accelerators": run.accelerators,
        "parameter": run.parameter,
        "value": run.value,
        "replicate": run.replicate,
        "overrides": run.overrides,
        "started": run.started,
        "ended": run.ended,
        "hostname": run.hostname,
        "hosts": run.hosts,
        "epochs": run.epochs,
        "steps": run.steps,
        "format": run.format,
        "record_length_bytes": run.record_length_bytes,
        "mean_sample_bytes": run.mean_sample_bytes,
        "files": run.files,
        "samples_per_file": run.samples_per_file,
        "batch_size": run.batch_size,
        "read_threads": run.read_threads,
        "compute_s_per_step": run.step_times.compute_s_per_step,
        "first_step_s": run.step_times.first_step_s,
        "au": {
            "reported_percent": run.reported_au_percent(),
            "windowed_percent": run.metric(&AU_WINDOWED),
            "all_steps_percent": run.metric(&AU_ALL_STEPS),
            "all_steps_bound": run.bound,
            "all_steps_provenance": run.provenance(&AU_ALL_STEPS),
            "sustained_percent": run.metric(&AU_SUSTAINED),
        },
        "throughput": {
            "reported_samples_per_second": run.reported_samples_per_second(),
            "reported_mib_per_second": run.reported_mib_per_second(),
            "windowed_samples_per_second": run.metric(&SAMPLES_WINDOWED),
            "windowed_mib_per_second": mib_per_second(run, &NOMINAL_WINDOWED),
            "whole_samples_per_second": run.metric(&SAMPLES_WHOLE),
            "whole_mib_per_second": mib_per_second(run, &NOMINAL_WHOLE),
            "whole_read_mib_per_second": mib_per_second(run, &DELIVERED_WHOLE),
            "whole_read_provenance": run.provenance(&DELIVERED_WHOLE),
        },
        "reported": run.reported,
        "stall": {
            "load_s_per_step": run.step_times.load_s_per_step,
            "load_percent": run.step_times.load_percent,
            "excluded_percent": run.step_times.excluded_percent,
            "barrier_percent": run.step_times.barrier_percent,
        },
        "skew": {
            "windowed_lowest_percent": run.step_times.windowed_lowest_percent,
            "windowed_highest_percent": run.step_times.windowed_highest_percent,
            "own_time_percent": run.step_times.own_time_percent,
        },
        "mlperf": run.mlperf(),
        "doubts": run.doubts,
    })
}

fn mib_per_second(run: &Run, metric: &Metric) -> Option<f64> {
    run.metric(metric).map(|bytes| bytes / MIB)
}

/// How much is told.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Folded,
    All,
}

fn page(found: &RunIndex, groups: &[ResultGroup], report: &Report, detail: Detail) -> String {
    let all = &found.runs;
    let mut parts = vec![opening(report, detail)];
    parts.extend(groups::page(groups));
    parts.extend(groups::checkpoints(&checkpoint_groups(all)));
    parts.extend(findings(report, detail));
    match detail {
        Detail::Folded => {
            parts.push(folded_runs(all));
            parts.extend(folded_doubts(all));
        }
        Detail::All => {
            parts.push(runs(all, report.has_several_sources()));
            parts.extend(by_doubt(all).iter().map(|(doubt, runs)| block(all, *doubt, runs)));
            let left_out = found.unread.iter();
            parts.extend(
                left_out.map(|one| format!("Left out: `{}`: {}", one.path.display(), one.why)),
            );
            parts.push(tail(all));
        }
    }
    parts.join("\n\n")
}

/// Characters of a finding, where nobody asked for all.
const SAID_MAX: usize = 230;

/// The same of a line of the opening.
const OPENING_MAX: usize = 132;

fn opening(report: &Report, detail: Detail) -> String {
    let width = report.opening.iter().map(|line| line.name.len()).max().unwrap_or(0);
    let lines = report.opening.iter().map(|line| {
        let head = format!("{}:", line.name);
        // Steps stand below each other.
        let parts = line.value.split(STEP).map(|part| said(part, OPENING_MAX, detail));
        let value = parts.collect::<Vec<_>>().join(&format!("\n{:1$}", "", width + 3));
        format!("{head:<0$}{value}", width + 3)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn said(says: &str, most: usize, detail: Detail) -> String {
    if detail == Detail::All { says.into() } else { text::clauses(says, most) }
}

fn findings(report: &Report, detail: Detail) -> Option<String> {
    let all = report.findings.len();
    let shown = if detail == Detail::All { all } else { text::shown(all, FINDINGS_MAX) };
    let mut lines = vec!["Findings".to_string()];
    for (number, finding) in (1..).zip(report.findings.iter().take(shown)) {
        lines.push(format!("{number:>3}.  {}", said(&finding.says, SAID_MAX, detail)));
    }
    let more = report.findings.len().saturating_sub(shown);
    lines.extend((0 < more).then(|| format!("     and {more} more with `--all`")));
    (!report.findings.is_empty()).then(|| lines.join("\n"))
}

/// A run's name, its utilisation and rate, and its worst doubt.
fn folded_runs(all: &[Run]) -> String {
    let shared = shared(all);
    let has_several = all.iter().any(|run| run.workload != all[0].workload);
    let folded = text::shown(all.len(), RUNS_FOLDED);
    let rows = all.iter().take(folded).enumerate().map(|(index, run)| {
        let workload = has_several.then(|| text::cut(&run.workload, 16));
        let worst = run.doubts.iter().find(|doubt| !shared.contains(&doubt.name.as_str()));
        let worst = worst.map_or("", |worst| worst.name.as_str());
        let cells = [
            (index + 1).to_string(),
            text::known(run.accelerators, |count| count.to_string()),
            text::setting(&run.parameter, &run.value, 24),
            number(run.reported_au_percent(), 1),
            number(run.metric(&AU_ALL_STEPS), 1),
            number(run.metric(&SAMPLES_WHOLE), 1),
            worst.into(),
        ];
        cells.into_iter().chain(workload).collect::<Vec<_>>()
    });
    let worst = if shared.is_empty() { "Worst doubt" } else { "Worst other doubt" };
    let header = ["#", "Acc", "Varied", "AU rep.", "all", "samples/s", worst];
    let header = header.into_iter().chain(has_several.then_some("Workload"));
    let table = text::table_of_numbers(header, rows, &[0, 1, 3, 4, 5]);
    let more = all.len().saturating_sub(folded);
    let more = (0 < more).then(|| format!("\n and {more} more with `--all`"));
    let shared = (!shared.is_empty()).then(|| {
        let trained = all.iter().filter(|run| run.is_result()).count();
        format!("\n Of all {trained} that trained: {}", shared.join(", "))
    });
    table + &more.unwrap_or_default() + &shared.unwrap_or_default()
}

/// Doubts, notes aside, of each of several runs that trained: these tell no run from another.
fn shared(all: &[Run]) -> Vec<&str> {
    let trained: Vec<&Run> = all.iter().filter(|run| run.is_result()).collect();
    let [first, others @ ..] = trained.as_slice() else { return Vec::new() };
    let is_shared = |doubt: &&Doubt| {
        let has = |run: &&Run| run.doubts.iter().any(|own| own.name == doubt.name);
        doubt.severity != Severity::Note && !others.is_empty() && others.iter().all(has)
    };
    first.doubts.iter().filter(is_shared).map(|doubt| doubt.name.as_str()).collect()
}

/// A line for each doubt that is more than a note.
fn folded_doubts(all: &[Run]) -> Option<String> {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for ((severity, name), runs) in by_doubt(all) {
        if severity != Severity::Note {
            let named = text::shown(runs.len(), NAMED_MAX);
            let numbers = runs.iter().take(named).map(|(index, _)| format!("#{}", index + 1));
            let mut numbers: Vec<String> = numbers.collect();
            numbers.extend((named < runs.len()).then(|| "…".to_string()));
            let count = units::counted(runs.len() as u64, "run");
            rows.push([severity.name().into(), name.into(), count, numbers.join(" ")]);
        }
    }
    (!rows.is_empty()).then(|| text::table(["Severity", "Doubt", "In", ""], rows))
}

fn folded_tail(found: &RunIndex) -> String {
    let is_note = |doubt: &&Doubt| doubt.severity == Severity::Note;
    let notes = found.runs.iter().flat_map(|run| run.doubts.iter().filter(is_note)).count();
    let mut parts = vec![units::counted(notes as u64, "note")];
    let unread = found.unread.len() as u64;
    parts.extend((0 < unread).then(|| format!("{} left out", units::counted(unread, "folder"))));
    format!("{}, evidence, advice: `--all`; meanings: `feedrate list NAME`", parts.join(", "))
}

const HEADER: [&str; 13] = [
    "#",
    "Workload",
    "Acc",
    "Parameter",
    "Value",
    "AU reported",
    "window",
    "all steps",
    "sustained",
    "MiB/s reported",
    "window",
    "whole",
    "Doubts",
];

fn runs(all: &[Run], has_sources: bool) -> String {
    let source = has_sources.then_some("Source");
    let most = text::shown(all.len(), RUNS_MAX);
    let rows = all.iter().take(most).enumerate().map(|(index, run)| {
        row(index, run).into_iter().chain(has_sources.then(|| run.source.clone()))
    });
    let numbers = [0, 2, 5, 6, 7, 8, 9, 10, 11];
    let text = text::table_of_numbers(HEADER.into_iter().chain(source), rows, &numbers);
    match all.len().saturating_sub(most) {
        0 => text,
        more => format!("{text}\n and {more} more with `--json`"),
    }
}

fn row(index: usize, run: &Run) -> [String; 13] {
    let read = mib_per_second(run, &DELIVERED_WHOLE);
    let whole = read.or_else(|| mib_per_second(run, &NOMINAL_WHOLE));
    [
        (index + 1).to_string(),
        run.workload.clone(),
        text::known(run.accelerators, |count| count.to_string()),
        run.parameter.clone(),
        run.value.clone(),
        number(run.reported_au_percent(), 1),
        number(run.metric(&AU_WINDOWED), 1),
        number(run.metric(&AU_ALL_STEPS), 1),
        number(run.metric(&AU_SUSTAINED), 1),
        number(run.reported_mib_per_second(), 0),
        number(mib_per_second(run, &NOMINAL_WINDOWED), 0),
        number(whole, 0),
        serious(run),
    ]
}

fn number(value: Option<f64>, digits: usize) -> String {
    text::known(value, |value| format!("{value:.digits$}"))
}

/// The number of doubts, and the name of the worst.
fn serious(run: &Run) -> String {
    let serious = run.doubts.iter().filter(|doubt| doubt.severity != Severity::Note).count();
    match (run.doubts.first(), serious) {
        (None, _) => String::new(),
        (Some(_), 0) => "notes only".into(),
        (Some(worst), 1) => worst.name.clone(),
        (Some(worst), count) => format!("{} and {} more", worst.name, count - 1),
    }
}

/// Each doubt once, with the runs that deserve it: the worst first, then those of most runs.
fn by_doubt(all: &[Run]) -> Vec<((Severity, &str), DoubtedRuns<'_>)> {
    let mut found: BTreeMap<(Severity, &str), DoubtedRuns> = BTreeMap::new();
    for (index, run) in all.iter().enumerate() {
        for doubt in &run.doubts {
            found.entry((doubt.severity, &doubt.name)).or_default().push((index, doubt));
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|((severity, _), runs)| (*severity, Reverse(runs.len())));
    found
}

/// Places of runs, and what is doubted of each.
type DoubtedRuns<'a> = Vec<(usize, &'a Doubt)>;

fn block(all: &[Run], doubt: (Severity, &str), runs: &[(usize, &Doubt)]) -> String {
    let (severity, name) = doubt;
    let head = format!("{}: {name}, {}", severity.name(), units::counted(runs.len() as u64, "run"));
    let mut lines = vec![head];
    for (index, doubt) in runs.iter().take(NAMED_MAX) {
        lines.push(format!("  #{} {}: {}", index + 1, all[*index].short_path(), doubt.evidence));
    }
    if NAMED_MAX < runs.len() {
        let others = runs[NAMED_MAX..].iter().take(40).map(|(index, _)| format!("#{}", index + 1));
        let mut others: Vec<String> = others.collect();
        others.extend((NAMED_MAX + 40 < runs.len()).then(|| "…".to_string()));
        lines.push(format!("  and {}", others.join(" ")));
    }
    lines.extend(runs.first().map(|(_, doubt)| format!("  Advice: {}", doubt.advice)));
    lines.join("\n")
}

fn tail(all: &[Run]) -> String {
    let results: Vec<&Run> = all.iter().filter(|run| run.is_result()).collect();
    let is_invalid = |doubt: &Doubt| doubt.severity == Severity::Invalid;
    let invalid = results.iter().filter(|run| run.doubts.iter().any(is_invalid)).count();
    let mut provenances = all.iter().map(|run| run.provenance(&DELIVERED_WHOLE));
    let estimated = if provenances.any(|of| of == Some(Provenance::Estimated)) {
        " Of DLIO's runs the bytes that were read are estimated by the mean size of samples."
    } else {
        ""
    };
    format!(
        "{}, {} with results of training; {invalid} of these must not be used. AU in percent. MiB/s: as reported; by DLIO's window with the steps counted \
         right; over whole epochs in bytes that were read, as far as these are known.{estimated}",
        units::counted(all.len() as u64, "run"),
        results.len()
    )
}
