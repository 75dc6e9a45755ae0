//! `feedrate analyze`: result folders, ours or others', with the numbers that follow from their steps and what is wrong with them.

use crate::exit::Exit;
use crate::gate::percentage;
use crate::messages;
use clap::Args;
use feedrate_measure::doubt::Doubt;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, Metric, NOMINAL_WHOLE,
    NOMINAL_WINDOWED, Provenance, SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use feedrate_report::gather::index_report;
use feedrate_report::output::Schema;
use feedrate_report::report::FigureUse;
use feedrate_results::groups::{CheckpointGroup, ResultGroup, checkpoint_groups, result_groups};
use feedrate_results::import::{Bound, FoundRun, RunOrigin, find_within};
use feedrate_results::index::{ReadOptions, RunIndex};
use feedrate_results::run::{Activity, MlperfCheck, Run, Submission, WorkloadSource};
use feedrate_session::threads;
use feedrate_spec::escape::{bash_word, shown_path};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units::{self, MIB};
use schemars::JsonSchema;
use serde::Serialize;
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

/// Analyse, and print.
pub(crate) fn analyze(arguments: &AnalyzeArguments) -> anyhow::Result<Exit> {
    let options = ReadOptions { threads: threads(), ..ReadOptions::default() };
    let mut found = RunIndex::read(&arguments.sources, &options).map_err(Refusal::from)?;
    if !arguments.json {
        // Runs have the numbers that they have in a report.
        found.runs.sort_by(|a, b| a.start_key().cmp(&b.start_key()));
    }
    if arguments.bar.is_some() {
        found.runs.iter_mut().for_each(|run| run.bar_percent = arguments.bar);
    }
    if arguments.json {
        let sources = arguments.sources.iter().map(|source| shown_path(source));
        let left_out = found.unread.iter();
        let left_out =
            left_out.map(|one| LeftOutFolder { path: shown_path(&one.path), why: &one.why });
        let output = AnalyzeOutput {
            sources: sources.collect(),
            runs: found.runs.iter().map(AnalyzedRun::new).collect(),
            groups: result_groups(&found.runs),
            checkpoints: checkpoint_groups(&found.runs),
            left_out: left_out.collect(),
        };
        messages::print_json(Schema::Analyze, &output)?;
        return Ok(Exit::Fine);
    }
    let beside = runs_beside(&arguments.sources, &found);
    let report = index_report(found, &arguments.sources).map_err(Refusal::from)?;
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

/// Output of `analyze --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct AnalyzeOutput<'a> {
    /// Folders that were searched.
    sources: Vec<String>,
    /// Each run: numbers with provenance, settings, doubts.
    runs: Vec<AnalyzedRun<'a>>,
    /// Runs of the same experiment, together.
    groups: Vec<ResultGroup>,
    /// Runs of checkpoints alone.
    checkpoints: Vec<CheckpointGroup>,
    /// Folders that are no usable run, and why.
    left_out: Vec<LeftOutFolder<'a>>,
}

/// A folder that is no usable run.
#[derive(Serialize, JsonSchema)]
struct LeftOutFolder<'a> {
    /// The folder.
    path: String,
    /// The reason.
    why: &'a str,
}

/// One run; what is not known is `null`.
#[derive(Serialize, JsonSchema)]
struct AnalyzedRun<'a> {
    /// Its folder.
    path: String,
    /// The argument it was found under.
    source: &'a str,
    /// The program that made it.
    kind: RunOrigin,
    /// Training, or something else.
    activity: Activity,
    /// `incomplete` or `superseded`, if a study put it aside.
    put_aside: Option<&'a str>,
    /// The system whose results they are, in a tree of MLPerf Storage's results.
    submission: Option<&'a Submission>,
    /// The workload's name.
    workload: &'a str,
    /// The source of that name.
    workload_from: Option<WorkloadSource>,
    /// The least utilisation that the workload requires.
    bar_percent: Option<f64>,
    /// Emulated accelerators; DLIO's ranks.
    accelerators: Option<u32>,
    /// The parameter that was varied.
    parameter: &'a str,
    /// Its value.
    value: &'a str,
    /// Number among the runs of its experiment.
    replicate: Option<u32>,
    /// Overrides as they were given.
    overrides: &'a [String],
    /// Local wall-clock start.
    started: Option<&'a str>,
    /// Local wall-clock end.
    ended: Option<&'a str>,
    /// The machine of rank 0.
    hostname: Option<&'a str>,
    /// Number of machines.
    hosts: Option<u64>,
    /// Epochs with steps.
    epochs: u64,
    /// Steps of the longest epoch.
    steps: u64,
    /// File format.
    format: Option<&'a str>,
    /// Bytes of a sample as configured.
    record_length_bytes: Option<f64>,
    /// Bytes of a sample in the mean.
    mean_sample_bytes: Option<f64>,
    /// Training files.
    files: Option<u64>,
    /// Samples in each.
    samples_per_file: Option<u64>,
    /// Samples in a batch.
    batch_size: Option<u64>,
    /// Reading threads of each accelerator.
    read_threads: Option<u32>,
    /// Compute time of a step, in the mean.
    compute_s_per_step: Option<f64>,
    /// Load and compute time of the first step of a block, in the mean.
    first_step_s: Option<f64>,
    /// Utilisations.
    au: AnalyzedAu,
    /// Rates.
    throughput: AnalyzedThroughput,
    /// Numbers of DLIO's `summary.json`, by DLIO's names.
    reported: &'a BTreeMap<String, f64>,
    /// Waits.
    stall: AnalyzedStall,
    /// How far accelerators differ.
    skew: AnalyzedSkew,
    /// Whether it keeps the rules of MLPerf Storage; `null` for a workload without rules.
    mlperf: Option<MlperfCheck>,
    /// Reasons not to believe its numbers, the worst first.
    doubts: &'a [Doubt],
}

/// Utilisations in percent.
#[derive(Serialize, JsonSchema)]
struct AnalyzedAu {
    /// As `summary.json` reports it.
    reported_percent: Option<f64>,
    /// DLIO's formula over the steps.
    windowed_percent: Option<f64>,
    /// Over all steps.
    all_steps_percent: Option<f64>,
    /// The side of the true value on which that lies, if it is a bound.
    all_steps_bound: Option<Bound>,
    /// How it is known.
    all_steps_provenance: Option<Provenance>,
    /// The sustained utilisation.
    sustained_percent: Option<f64>,
}

/// Rates of samples and bytes.
#[derive(Serialize, JsonSchema)]
struct AnalyzedThroughput {
    /// As `summary.json` reports it.
    reported_samples_per_second: Option<f64>,
    /// As `summary.json` reports it.
    reported_mib_per_second: Option<f64>,
    /// In DLIO's window.
    windowed_samples_per_second: Option<f64>,
    /// In DLIO's window, by the nominal size of a sample.
    windowed_mib_per_second: Option<f64>,
    /// Over whole epochs.
    whole_samples_per_second: Option<f64>,
    /// Over whole epochs, by the nominal size of a sample.
    whole_mib_per_second: Option<f64>,
    /// Bytes that were read, over whole epochs.
    whole_read_mib_per_second: Option<f64>,
    /// How these are known.
    whole_read_provenance: Option<Provenance>,
}

/// Waits for data.
#[derive(Serialize, JsonSchema)]
struct AnalyzedStall {
    /// Wait for the data of a step, in the mean.
    load_s_per_step: Option<f64>,
    /// Wait for data, of the time of the blocks.
    load_percent: Option<f64>,
    /// Part of the wait in steps that `au_windowed` leaves out.
    excluded_percent: Option<f64>,
    /// Neither loading nor computing, of the time of the blocks.
    barrier_percent: Option<f64>,
}

/// Differences between accelerators.
#[derive(Serialize, JsonSchema)]
struct AnalyzedSkew {
    /// The lowest `au_windowed` of an accelerator.
    windowed_lowest_percent: Option<f64>,
    /// The highest.
    windowed_highest_percent: Option<f64>,
    /// Longest ÷ shortest time of an accelerator without waits for others, less 1.
    own_time_percent: Option<f64>,
}

impl<'a> AnalyzedRun<'a> {
    fn new(run: &'a Run) -> Self {
        let times = &run.step_times;
        AnalyzedRun {
            path: shown_path(&run.path),
            source: &run.source,
            kind: run.origin,
            activity: run.activity,
            put_aside: run.put_aside.as_deref(),
            submission: run.submission.as_ref(),
            workload: &run.workload,
            workload_from: run.workload_from,
            bar_percent: run.bar_percent,
            accelerators: run.accelerators,
            parameter: &run.parameter,
            value: &run.value,
            replicate: run.replicate,
            overrides: &run.overrides,
            started: run.started.as_deref(),
            ended: run.ended.as_deref(),
            hostname: run.hostname.as_deref(),
            hosts: run.hosts,
            epochs: run.epochs,
            steps: run.steps,
            format: run.format.as_deref(),
            record_length_bytes: run.record_length_bytes,
            mean_sample_bytes: run.mean_sample_bytes,
            files: run.files,
            samples_per_file: run.samples_per_file,
            batch_size: run.batch_size,
            read_threads: run.read_threads,
            compute_s_per_step: times.compute_s_per_step,
            first_step_s: times.first_step_s,
            au: AnalyzedAu {
                reported_percent: run.reported_au_percent(),
                windowed_percent: run.metric(&AU_WINDOWED),
                all_steps_percent: run.metric(&AU_ALL_STEPS),
                all_steps_bound: run.bound,
                all_steps_provenance: run.provenance(&AU_ALL_STEPS),
                sustained_percent: run.metric(&AU_SUSTAINED),
            },
            throughput: AnalyzedThroughput {
                reported_samples_per_second: run.reported_samples_per_second(),
                reported_mib_per_second: run.reported_mib_per_second(),
                windowed_samples_per_second: run.metric(&SAMPLES_WINDOWED),
                windowed_mib_per_second: mib_per_second(run, &NOMINAL_WINDOWED),
                whole_samples_per_second: run.metric(&SAMPLES_WHOLE),
                whole_mib_per_second: mib_per_second(run, &NOMINAL_WHOLE),
                whole_read_mib_per_second: mib_per_second(run, &DELIVERED_WHOLE),
                whole_read_provenance: run.provenance(&DELIVERED_WHOLE),
            },
            reported: &run.reported,
            stall: AnalyzedStall {
                load_s_per_step: times.load_s_per_step,
                load_percent: times.load_percent,
                excluded_percent: times.excluded_percent,
                barrier_percent: times.barrier_percent,
            },
            skew: AnalyzedSkew {
                windowed_lowest_percent: times.windowed_lowest_percent,
                windowed_highest_percent: times.windowed_highest_percent,
                own_time_percent: times.own_time_percent,
            },
            mlperf: run.mlperf(),
            doubts: &run.doubts,
        }
    }
}

fn mib_per_second(run: &Run, metric: &Metric) -> Option<f64> {
    run.metric(metric).map(|bytes| bytes / MIB)
}
