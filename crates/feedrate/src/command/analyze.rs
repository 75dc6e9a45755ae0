//! `feedrate analyze`: recomputes the metrics of result folders, from feedrate or other programs, and reports doubts about them.

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
use feedrate_results::run::{Activity, MlperfCheck, MlperfClass, Run, Submission, WorkloadSource};
use feedrate_results::submissions::{MlperfWorkload, judge_workloads};
use feedrate_session::threads;
use feedrate_spec::escape::{bash_word, path_text};
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

Exit codes: 0 done, doubts or not; 2 bad usage, or no run was found.")]
pub(super) struct AnalyzeArguments {
    /// Folders of runs (feedrate's, DLIO's or MLPerf Storage's), folders above them, or CSVs of studies.
    #[arg(required = true, value_name = "DIR")]
    sources: Vec<PathBuf>,
    /// Required utilisation in percent, instead of the runs' configs and MLPerf's rules.
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    bar: Option<f64>,
    /// Print all findings and runs, and each doubt with its evidence and advice.
    #[arg(long)]
    all: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Prints everything about a run of another program.
pub(super) fn analyze_run(folder: &Path, json: bool) -> anyhow::Result<Exit> {
    analyze(&AnalyzeArguments { sources: vec![folder.into()], bar: None, all: true, json })
}

/// Analyses the runs, and prints the result.
pub(crate) fn analyze(arguments: &AnalyzeArguments) -> anyhow::Result<Exit> {
    let options = ReadOptions { threads: threads(), ..ReadOptions::default() };
    let mut found = RunIndex::read(&arguments.sources, &options).map_err(Refusal::from)?;
    if !arguments.json {
        // Sorted as in a report, so that both number the runs alike.
        found.runs.sort_by(|a, b| a.start_key().cmp(&b.start_key()));
    }
    if arguments.bar.is_some() {
        found.runs.iter_mut().for_each(|run| run.bar_percent = arguments.bar);
    }
    if arguments.json {
        let sources = arguments.sources.iter().map(|source| path_text(source));
        let left_out = found.unread.iter();
        let left_out = left_out
            .map(|folder| LeftOutFolder { path: path_text(&folder.path), why: &folder.why });
        let output = AnalyzeOutput {
            sources: sources.collect(),
            runs: found.runs.iter().map(AnalyzedRun::new).collect(),
            groups: result_groups(&found.runs),
            checkpoints: checkpoint_groups(&found.runs),
            mlperf: judge_workloads(found.runs.iter()),
            left_out: left_out.collect(),
        };
        messages::print_json(Schema::Analyze, &output)?;
        return Ok(Exit::Fine);
    }
    let siblings = sibling_notes(&arguments.sources, &found);
    let report = index_report(found, &arguments.sources).map_err(Refusal::from)?;
    let mut document = report.document(FigureUse::Nothing);
    document.summary =
        siblings.into_iter().chain([document.summary]).collect::<Vec<_>>().join("\n");
    messages::print_document(&document, arguments.all)?;
    Ok(Exit::Fine)
}

/// Notes on other runs in the parent folder of each given run, since some doubts can be found only by comparing runs.
fn sibling_notes(sources: &[PathBuf], found: &RunIndex) -> Vec<String> {
    let is_run = |source: &&PathBuf| found.runs.iter().any(|run| run.path == **source);
    let parents: BTreeSet<&Path> =
        sources.iter().filter(is_run).filter_map(|source| source.parent()).collect();
    let sentences = parents.into_iter().filter_map(|parent| {
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let (all, _) = find_within(folder, 1).ok()?;
        let is_other = |other: &&FoundRun| {
            let is_sibling = other.path.parent() == Some(folder);
            is_sibling && found.runs.iter().all(|run| run.path.file_name() != other.path.file_name())
        };
        let others = all.iter().filter(is_other).count() as u64;
        let others = (others > 0).then(|| units::counted(others, "more run"))?;
        Some(format!(
            "{others} in the same folder; to check for copied runs, stale data and noise between runs: `feedrate analyze {}`",
            bash_word(&path_text(folder))
        ))
    });
    sentences.collect()
}

/// Output of `analyze --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct AnalyzeOutput<'a> {
    /// Folders that were searched.
    sources: Vec<String>,
    /// Each run with its metrics, settings and doubts.
    runs: Vec<AnalyzedRun<'a>>,
    /// Groups of runs of the same experiment.
    groups: Vec<ResultGroup>,
    /// Groups of runs that only save or load checkpoints.
    checkpoints: Vec<CheckpointGroup>,
    /// For each of MLPerf Storage's workloads, the results that keep the rules.
    mlperf: Vec<MlperfWorkload<'a>>,
    /// Folders without a usable run, and the reasons.
    left_out: Vec<LeftOutFolder<'a>>,
}

/// A folder without a usable run.
#[derive(Serialize, JsonSchema)]
struct LeftOutFolder<'a> {
    /// The folder.
    path: String,
    /// The reason.
    why: &'a str,
}

/// One run. Unknown values are `null`.
#[derive(Serialize, JsonSchema)]
struct AnalyzedRun<'a> {
    /// Folder of the run.
    path: String,
    /// The argument under which the run was found.
    source: &'a str,
    /// The program that made the run.
    kind: RunOrigin,
    /// What was run: training, checkpoints and so on.
    activity: Activity,
    /// `incomplete` or `superseded`, if a study moved the run aside.
    put_aside: Option<&'a str>,
    /// The submitted system, in a folder tree of MLPerf Storage results.
    submission: Option<&'a Submission>,
    /// The workload's name.
    workload: &'a str,
    /// Where the workload's name was found.
    workload_from: Option<WorkloadSource>,
    /// Minimum utilisation that the workload requires, in percent.
    bar_percent: Option<f64>,
    /// Emulated accelerators. In DLIO each rank is one.
    accelerators: Option<u32>,
    /// The parameter that the experiment varies.
    parameter: &'a str,
    /// Value of the varied parameter.
    value: &'a str,
    /// Number of the run within its experiment.
    replicate: Option<u32>,
    /// Overrides on the command line.
    overrides: &'a [String],
    /// Local wall-clock start.
    started: Option<&'a str>,
    /// Local wall-clock end.
    ended: Option<&'a str>,
    /// Name of the machine of rank 0.
    hostname: Option<&'a str>,
    /// Number of machines.
    hosts: Option<u64>,
    /// Number of epochs that have steps.
    epochs: u64,
    /// Number of steps in the longest epoch.
    steps: u64,
    /// File format.
    format: Option<&'a str>,
    /// Configured bytes per sample.
    record_length_bytes: Option<f64>,
    /// Mean bytes per sample.
    mean_sample_bytes: Option<f64>,
    /// Number of training files.
    files: Option<u64>,
    /// Samples per file.
    samples_per_file: Option<u64>,
    /// Samples per batch.
    batch_size: Option<u64>,
    /// Reading threads per accelerator.
    read_threads: Option<u32>,
    /// Mean compute time per step, in seconds.
    compute_s_per_step: Option<f64>,
    /// Mean load and compute time of the first step of a block, in seconds.
    first_step_s: Option<f64>,
    /// Utilisations.
    au: AnalyzedAu,
    /// Rates.
    throughput: AnalyzedThroughput,
    /// Numbers in DLIO's `summary.json`, by DLIO's names.
    reported: &'a BTreeMap<String, f64>,
    /// Waits for data.
    stall: AnalyzedStall,
    /// Differences between accelerators.
    skew: AnalyzedSkew,
    /// Whether the run follows the rules of MLPerf Storage; `null` for a workload without rules.
    mlperf: Option<MlperfCheck>,
    /// Official class of MLPerf Storage; `null` for a workload whose model has no classes, and for runs outside the closed division.
    mlperf_class: Option<MlperfClass>,
    /// Reasons not to trust the numbers, worst first.
    doubts: &'a [Doubt],
}

/// Utilisations in percent.
#[derive(Serialize, JsonSchema)]
struct AnalyzedAu {
    /// Utilisation in `summary.json`.
    reported_percent: Option<f64>,
    /// Utilisation recomputed from the steps by DLIO's formula.
    windowed_percent: Option<f64>,
    /// Utilisation over all steps.
    all_steps_percent: Option<f64>,
    /// Whether `all_steps_percent` is a lower or upper bound; `null` if it is a value.
    all_steps_bound: Option<Bound>,
    /// Provenance of `all_steps_percent`.
    all_steps_provenance: Option<Provenance>,
    /// Sustained utilisation.
    sustained_percent: Option<f64>,
}

/// Rates of samples and bytes.
#[derive(Serialize, JsonSchema)]
struct AnalyzedThroughput {
    /// Sample rate in `summary.json`.
    reported_samples_per_second: Option<f64>,
    /// Byte rate in `summary.json`.
    reported_mib_per_second: Option<f64>,
    /// Sample rate in DLIO's window.
    windowed_samples_per_second: Option<f64>,
    /// Byte rate in DLIO's window, by the nominal sample size.
    windowed_mib_per_second: Option<f64>,
    /// Sample rate over whole epochs.
    whole_samples_per_second: Option<f64>,
    /// Byte rate over whole epochs, by the nominal sample size.
    whole_mib_per_second: Option<f64>,
    /// Byte rate over whole epochs, by the bytes that were read.
    whole_read_mib_per_second: Option<f64>,
    /// Provenance of `whole_read_mib_per_second`.
    whole_read_provenance: Option<Provenance>,
}

/// Waits for data.
#[derive(Serialize, JsonSchema)]
struct AnalyzedStall {
    /// Mean wait for data per step, in seconds.
    load_s_per_step: Option<f64>,
    /// Wait for data as a percentage of the time of all blocks.
    load_percent: Option<f64>,
    /// Percentage of the wait for data that falls into steps outside DLIO's window.
    excluded_percent: Option<f64>,
    /// Time neither loading nor computing, as a percentage of the time of all blocks.
    barrier_percent: Option<f64>,
}

/// Differences between accelerators.
#[derive(Serialize, JsonSchema)]
struct AnalyzedSkew {
    /// Lowest `au_windowed` of an accelerator.
    windowed_lowest_percent: Option<f64>,
    /// Highest `au_windowed` of an accelerator.
    windowed_highest_percent: Option<f64>,
    /// Spread of the accelerators' own times (without waits for others): longest ÷ shortest − 1.
    own_time_percent: Option<f64>,
}

impl<'a> AnalyzedRun<'a> {
    fn new(run: &'a Run) -> Self {
        let times = &run.step_times;
        AnalyzedRun {
            path: path_text(&run.path),
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
            mlperf_class: run.mlperf_class(),
            doubts: &run.doubts,
        }
    }
}

fn mib_per_second(run: &Run, metric: &Metric) -> Option<f64> {
    run.metric(metric).map(|bytes| bytes / MIB)
}
