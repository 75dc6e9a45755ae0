//! `feedrate analyze`: result folders, ours or others', with the numbers that follow from their steps and what is wrong with them.

use crate::cli::AnalyzeArguments;
use crate::exit::{Exit, UsageError};
use crate::{messages, text};
use comfy_table::CellAlignment;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_results::all::{Analysis, analyse};
use feedrate_results::case::Case;
use feedrate_spec::units;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Runs that are shown one by one, at most.
const RUNS_MAX: usize = 200;
/// Runs that a doubt names, at most.
const NAMED_MAX: usize = 6;

/// Analyse, and print.
pub(crate) fn analyze(arguments: &AnalyzeArguments) -> anyhow::Result<Exit> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found = analyse(&arguments.sources, threads).map_err(UsageError::from)?;
    if arguments.json {
        let sources = arguments.sources.iter().map(|source| shown(source));
        let left_out = found.left_out.iter();
        let left_out = left_out.map(|one| json!({ "path": shown(&one.path), "why": one.why }));
        messages::print(json!({
            "sources": sources.collect::<Vec<_>>(),
            "runs": serde_json::to_value(&found.runs)?,
            "left_out": left_out.collect::<Vec<_>>(),
        }));
    } else {
        messages::print(page(&found, arguments.sources.len() > 1));
    }
    Ok(Exit::Fine)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn page(found: &Analysis, has_sources: bool) -> String {
    let mut parts = vec![runs(&found.runs, has_sources)];
    parts.extend(by_doubt(&found.runs));
    parts.extend(checkpoints(&found.runs));
    let left_out = found.left_out.iter();
    parts.extend(left_out.map(|one| format!("Left out: `{}`: {}", one.path.display(), one.why)));
    parts.push(tail(&found.runs));
    parts.join("\n\n")
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

fn runs(cases: &[Case], has_sources: bool) -> String {
    let header = HEADER.map(str::to_string).into_iter();
    let source = has_sources.then(|| "Source".to_string());
    let mut table = text::table(header.chain(source).collect::<Vec<_>>());
    for (index, case) in cases.iter().take(RUNS_MAX).enumerate() {
        let source = has_sources.then(|| case.source.clone());
        let cells = row(index, case).into_iter().chain(source);
        table.add_row(cells.collect::<Vec<_>>());
    }
    for column in [0, 2].into_iter().chain(5..12) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = text::lines(&table);
    if RUNS_MAX < cases.len() {
        text.push_str(&format!("\n and {} more with `--json`", cases.len() - RUNS_MAX));
    }
    text
}

fn row(index: usize, case: &Case) -> [String; 13] {
    let (au, rates) = (&case.au, &case.throughput);
    let whole = rates.whole_read_mib_per_second.or(rates.whole_mib_per_second);
    [
        (index + 1).to_string(),
        case.workload.clone(),
        case.accelerators.map_or_else(|| "-".into(), |count| count.to_string()),
        case.parameter.clone(),
        case.value.clone(),
        number(au.reported_percent, 1),
        number(au.windowed_percent, 1),
        number(au.all_steps_percent, 1),
        number(au.sustained_percent, 1),
        number(rates.reported_mib_per_second, 0),
        number(rates.windowed_mib_per_second, 0),
        number(whole, 0),
        serious(case),
    ]
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

/// Reported figures of checkpoints, a line for each run that has some.
fn checkpoints(cases: &[Case]) -> Option<String> {
    let mut lines = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let told = case
            .reported
            .iter()
            .filter(|(name, _)| name.contains("checkpoint") && name.contains("mean"));
        let told: Vec<String> =
            told.map(|(name, value)| format!("{} {value:.3}", name.replace('_', " "))).collect();
        if !told.is_empty() {
            lines.push(format!("  #{} {}: {}", index + 1, case.short_path(), told.join(", ")));
        }
    }
    let more = lines.len().saturating_sub(RUNS_MAX);
    lines.truncate(RUNS_MAX);
    lines.extend((0 < more).then(|| format!("  and {more} more with `--json`")));
    let head = "Checkpoints as reported, whose GB are 2^30 bytes:";
    (!lines.is_empty()).then(|| format!("{head}\n{}", lines.join("\n")))
}

/// The number of doubts, and the name of the worst.
fn serious(case: &Case) -> String {
    let serious = case.doubts.iter().filter(|doubt| doubt.severity != Severity::Note);
    match case.doubts.first() {
        None => String::new(),
        Some(_) if serious.clone().count() == 0 => "notes only".into(),
        Some(worst) => match serious.count() {
            1 => worst.name.clone(),
            count => format!("{} and {} more", worst.name, count - 1),
        },
    }
}

/// Each doubt once, with the runs that deserve it: the worst first, then those of most runs.
fn by_doubt(cases: &[Case]) -> Vec<String> {
    let mut found: BTreeMap<(Severity, &str), Vec<(usize, &Doubt)>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        for doubt in &case.doubts {
            found.entry((doubt.severity, &doubt.name)).or_default().push((index, doubt));
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|((severity, _), runs)| (*severity, std::cmp::Reverse(runs.len())));
    found.iter().map(|((severity, name), runs)| block(cases, *severity, name, runs)).collect()
}

fn block(cases: &[Case], severity: Severity, name: &str, runs: &[(usize, &Doubt)]) -> String {
    let head = format!("{}: {name}, {}", severity.name(), units::counted(runs.len() as u64, "run"));
    let mut lines = vec![head];
    for (index, doubt) in runs.iter().take(NAMED_MAX) {
        lines.push(format!("  #{} {}: {}", index + 1, cases[*index].short_path(), doubt.evidence));
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

fn tail(cases: &[Case]) -> String {
    let results = cases.iter().filter(|case| case.is_result()).count();
    let invalid = cases.iter().filter(|case| {
        case.is_result() && case.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
    });
    format!(
        "{}, {results} with results of training; {} of these must not be used. AU in percent. MiB/s: as reported; by DLIO's window with the steps counted \
         right; over whole epochs in bytes that were read, as far as these are known.",
        units::counted(cases.len() as u64, "run"),
        invalid.count()
    )
}
