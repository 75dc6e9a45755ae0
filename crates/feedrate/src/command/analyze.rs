//! `feedrate analyze`: result folders, ours or others', with the numbers that follow from their steps and what is wrong with them.

use crate::exit::Exit;
use crate::gate::percentage;
use crate::messages;
use clap::Args;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, Metric, NOMINAL_WHOLE,
    NOMINAL_WINDOWED, SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use feedrate_report::gather::of_index;
use feedrate_report::output::Schema;
use feedrate_report::report::FigureUse;
use feedrate_results::groups::{checkpoint_groups, result_groups};
use feedrate_results::import::{FoundRun, find_within};
use feedrate_results::index::{ReadOptions, RunIndex};
use feedrate_results::run::Run;
use feedrate_session::threads;
use feedrate_spec::escape::{bash_word, shown_path};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units::{self, MIB};
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
    if arguments.json {
        let sources = arguments.sources.iter().map(|source| shown_path(source));
        let left_out = found.unread.iter();
        let left_out = left_out.map(|one| json!({ "path": shown_path(&one.path), "why": one.why }));
        messages::print_json(Schema::Analyze.object(json!({
            "sources": sources.collect::<Value>(),
            "runs": found.runs.iter().map(object).collect::<Value>(),
            "groups": result_groups(&found.runs),
            "checkpoints": checkpoint_groups(&found.runs),
            "left_out": left_out.collect::<Value>(),
        })))?;
        return Ok(Exit::Fine);
    }
    let beside = runs_beside(&arguments.sources, &found);
    let report = of_index(found, &arguments.sources).map_err(Refusal::from)?;
    let mut document = report.document(FigureUse::Nothing);
    document.glance = beside.into_iter().chain([document.glance]).collect::<Vec<_>>().join("\n");
    messages::print_document(&document, arguments.all)?;
    Ok(Exit::Fine)
}

/// Sentences on runs beside those that were given by themselves: some doubts need several runs.
fn runs_beside(sources: &[PathBuf], found: &RunIndex) -> Vec<String> {
    let is_run = |source: &&PathBuf| found.runs.iter().any(|run| run.path == **source);
    let parents: BTreeSet<&Path> =
        sources.iter().filter(is_run).filter_map(|source| source.parent()).collect();
    let sentences = parents.into_iter().filter_map(|parent| {
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let (all, _) = find_within(folder, 1).ok()?;
        let is_other = |other: &&FoundRun| {
            let is_beside = other.path.parent() == Some(folder);
            is_beside && found.runs.iter().all(|run| run.path.file_name() != other.path.file_name())
        };
        let others = all.iter().filter(is_other).count() as u64;
        let others = (others > 0).then(|| units::counted(others, "more run"))?;
        Some(format!(
            "{others} in the same folder: only `feedrate analyze {}` finds copies, stale data and noise between runs",
            bash_word(&shown_path(folder))
        ))
    });
    sentences.collect()
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
