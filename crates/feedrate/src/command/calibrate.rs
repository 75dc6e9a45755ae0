//! `feedrate calibrate`: finds the processor time that the data loader of a training needs, and writes it as the `client:` section of a
//! workload. A helper in the user's own Python measures it, or it is estimated from the record of a loop that `feedrate.watch` recorded.
//!
//! Long because measured and estimated costs are written in the same way.

use crate::cli::{StepArguments, parse_count};
use crate::exit::Exit;
use crate::progress::{Progress, Terminal};
use crate::{messages, time};
use anyhow::Context;
use clap::Args;
use feedrate_analysis::watched_client::{NoWatchedClient, watched_client};
use feedrate_measure::record::file::read_text;
use feedrate_report::output::Schema;
use feedrate_results::load_run;
use feedrate_run::system;
use feedrate_session::output::write_output;
use feedrate_session::progress_text::{join, rough_seconds, whole_seconds};
use feedrate_session::request::Request;
use feedrate_session::resolve::resolve_named;
use feedrate_session::surroundings::ProcessSurroundings;
use feedrate_session::{resolve, threads};
use feedrate_spec::escape::bash_command;
use feedrate_spec::plan::{LoaderPlan, Plan};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::{self, Strictness, client_costs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HELPER: &str = include_str!("calibrate.py");
const HELPER_FILE: &str = "feedrate_calibrate.py";
const RESULT_FILE: &str = "result.json";
/// File in which the helper names what the user can correct.
const REFUSAL_FILE: &str = "refusal";
/// File in which the helper names what it measures.
const PROGRESS_FILE: &str = "progress";
/// Prefix of the comments above the section. It marks the comments that are replaced together with the section.
const COMMENT: &str = "# calibrate: ";

/// `feedrate calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
The function takes no arguments and returns a PyTorch Dataset or DataLoader. The same samples are read repeatedly, so that they are served from memory.

Examples:
  feedrate calibrate train.py:make_dataset --batch 32 -o my.yaml
  feedrate calibrate results/train/RUN    a loop that `feedrate.watch` recorded")]
pub(super) struct CalibrateArguments {
    /// Python file and the function in it that makes the dataset, or results of `feedrate.watch`.
    #[arg(value_name = "SCRIPT.py:FUNCTION|RUN")]
    source: String,
    /// Samples per batch [default: the DataLoader's, else 32].
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>)]
    batch: Option<u64>,
    /// Worker processes [default: the DataLoader's, else 2].
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>)]
    workers: Option<u64>,
    /// Duration of the measurement, in addition to starting Python and importing its modules.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = DEFAULT_TIME)]
    time: f64,
    /// Python interpreter of the training.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Append the `client:` section to this workload instead of printing it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing `client:` section of the workload.
    #[arg(long, requires = "output")]
    force: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// The result that the Python helper writes.
#[derive(Debug, Deserialize)]
struct Calibration {
    client: ClientCosts,
    /// Whether samples of several sizes allowed separating the cost per sample from the cost per byte.
    #[serde(rename = "told_apart")]
    is_separated: bool,
    /// Number of different samples that were read.
    samples: u64,
    sample_bytes: f64,
    batch_size: u64,
    workers: u32,
    /// Batches that the user's loader reads ahead for each worker; `None` if the user gave no loader with workers.
    prefetch_factor: Option<u32>,
    /// Number of batches over which the workers' costs are averaged.
    batches: u64,
    /// Worker's processor time per batch, by the number of workers.
    batch_cpu_seconds: BTreeMap<u32, f64>,
    measuring_seconds: f64,
    /// Time of Python for everything else.
    #[serde(skip)]
    import_seconds: f64,
    /// Mean number of cores that other processes used; `None` if unknown.
    other_cores: Option<f64>,
    /// Whether other processes used too many cores for a reliable measurement.
    is_disturbed: bool,
}

/// What the helper refuses.
#[derive(Debug, Deserialize)]
struct HelperRefusal {
    message: String,
    hint: String,
}

/// Output of `calibrate --json`. Values that were not measured are left out.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct CalibrateOutput {
    /// Costs by the keys of `client`; `null` if unknown.
    client: BTreeMap<String, Option<f64>>,
    /// Whether the costs are estimated from the results of `feedrate.watch` rather than measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_estimate: Option<bool>,
    /// Whether the cost per sample was separated from the cost per byte.
    #[serde(rename = "told_apart", skip_serializing_if = "Option::is_none")]
    is_separated: Option<bool>,
    /// Number of different samples that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    /// Mean bytes per sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bytes: Option<f64>,
    /// Samples per batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_size: Option<u64>,
    /// Worker processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<u32>,
    /// Number of batches over which the workers' costs are averaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    batches: Option<u64>,
    /// Worker's processor time per batch, by the number of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_cpu_seconds: Option<BTreeMap<u32, f64>>,
    /// Duration of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    measuring_seconds: Option<f64>,
    /// Time for starting Python, importing its modules and making the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    import_seconds: Option<f64>,
    /// Mean number of cores that other processes used during the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_cores: Option<f64>,
    /// Whether other processes used too many cores for a reliable measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_disturbed: Option<bool>,
}

impl Calibration {
    fn output(&self) -> CalibrateOutput {
        CalibrateOutput {
            client: self.client.0.clone(),
            is_estimate: None,
            is_separated: Some(self.is_separated),
            samples: Some(self.samples),
            sample_bytes: Some(self.sample_bytes),
            batch_size: Some(self.batch_size),
            workers: Some(self.workers),
            batches: Some(self.batches),
            batch_cpu_seconds: Some(self.batch_cpu_seconds.clone()),
            measuring_seconds: Some(self.measuring_seconds),
            import_seconds: Some(self.import_seconds),
            other_cores: self.other_cores,
            is_disturbed: Some(self.is_disturbed),
        }
    }
}

/// Costs by the keys of `client:`; `None` if unknown.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct ClientCosts(BTreeMap<String, Option<f64>>);

/// Code of the user to calibrate, with its batch size and workers if they are given.
struct ClientSource<'a> {
    /// `SCRIPT.py:FUNCTION`.
    source: &'a str,
    batch: Option<u64>,
    workers: Option<u64>,
    /// Duration of the measurement in seconds.
    time_s: f64,
    python: &'a Path,
}

/// Default duration of a measurement.
const DEFAULT_TIME: &str = "15s";

/// Measures or estimates the costs, and prints them or writes them into a workload.
pub(super) fn calibrate(arguments: &CalibrateArguments) -> anyhow::Result<Exit> {
    // Checked first, so that an unsuitable workload is reported before the measurement.
    let output = arguments.output.as_deref();
    let workload = output.map(|file| workload_text(file, arguments.force)).transpose()?;
    if resolve::is_run(&arguments.source) {
        let found = estimate(&arguments.source)?;
        let section = found.section(&arguments.source);
        return finish(arguments, workload, &found.output(), &section, 0.0);
    }
    let found = measure(&ClientSource {
        source: &arguments.source,
        batch: arguments.batch,
        workers: arguments.workers,
        time_s: arguments.time,
        python: &arguments.python,
    })?;
    let section = found.section(&arguments.source);
    finish(arguments, workload, &found.output(), &section, found.sample_bytes)
}

/// The `feedrate calibrate` command that measures the user's code with the batch size and workers of `loader`. It writes into the
/// workload `file`, unless that is empty.
pub(super) fn command(loader: &LoaderPlan, file: &str) -> String {
    let batch = loader.batch_size.to_string();
    let workers = loader.workers.to_string();
    let mut words = vec!["feedrate", "calibrate", "train.py:make_dataset", "--batch", &batch];
    if loader.workers > 0 {
        words.extend(["--workers", &workers]);
    }
    let output = ["-o", file];
    bash_command(&[&words[..], if file.is_empty() { &[] } else { &output }].concat())
}

/// Prints the costs, or writes them into the text of a workload.
fn finish(
    arguments: &CalibrateArguments,
    workload: Option<String>,
    output: &CalibrateOutput,
    section: &str,
    sample_bytes: f64,
) -> anyhow::Result<Exit> {
    match (&arguments.output, workload) {
        (Some(file), Some(text)) => {
            let text = with_section(&text, section);
            parse(file, &text)?;
            write_output(file, text.as_bytes(), Some(true))?;
            messages::note(written_note(file, sample_bytes));
        }
        _ if arguments.json => messages::print_json(Schema::Calibrate, output)?,
        _ => messages::print(section.trim_end())?,
    }
    Ok(Exit::Fine)
}

/// Note on the written workload, with the highest rate that its client allows on this machine with any storage.
fn written_note(file: &Path, sample_bytes: f64) -> String {
    let name = file.display().to_string();
    let next = bash_command(&["feedrate", "diagnose", &name]);
    let resolved = resolve_named(&Request::for_workload(&name));
    let rate = resolved.ok().and_then(|resolved| client_rate(&resolved.plan, sample_bytes));
    let rate = rate.map_or_else(
        || "the costs of your code are written".to_string(),
        |rate| format!("your code allows at most {rate}, with any storage"),
    );
    format!("{name}: {rate}; `{next}` compares it with the other parts")
}

/// The rate that the client allows, such as `310 of the required 1280 samples/s`.
fn client_rate(plan: &Plan, sample_bytes: f64) -> Option<String> {
    let Plan { loader, train, accelerators, .. } = plan;
    let times = loader.client_times(sample_bytes * loader.batch_size as f64, *accelerators)?;
    let compute_s = train.slowest_compute_s();
    let accelerators = f64::from((*accelerators).max(1));
    let step_s = times.step_s(compute_s, loader.workers, threads() as f64 / accelerators);
    let samples = loader.batch_size as f64 * accelerators;
    let rate = |step_s: f64| units::per_second(samples / step_s, "samples");
    if compute_s == 0.0 {
        return (0.0 < step_s).then(|| rate(step_s));
    }
    let allowed = rate(step_s);
    let allowed = allowed.trim_end_matches(" samples/s");
    Some(format!("{allowed} of the required {}", rate(compute_s)))
}

/// Costs estimated from the record of a watched loop.
struct Estimate {
    client: ClientCosts,
}

impl Estimate {
    fn output(&self) -> CalibrateOutput {
        let is_estimate = Some(true);
        CalibrateOutput { client: self.client.0.clone(), is_estimate, ..CalibrateOutput::default() }
    }
}

fn estimate(folder: &str) -> anyhow::Result<Estimate> {
    let watched = watched_client(&load_run(Path::new(folder))?).map_err(|why| {
        let (message, hint) = explain(why);
        let message = format!("cannot estimate the cost of the loader from `{folder}`: {message}");
        Refusal::new(message, hint)
    })?;
    let mut client: BTreeMap<String, Option<f64>> =
        client_costs().map(|key| (key.to_string(), None)).collect();
    client.insert("per_sample".into(), Some(watched.per_sample_s));
    client.insert("start_per_epoch".into(), Some(watched.start_per_epoch_s));
    Ok(Estimate { client: ClientCosts(client) })
}

const SCRIPT_INSTEAD: &str = "measure it by `feedrate calibrate SCRIPT.py:FUNCTION`";

/// Message and hint for a loop whose costs cannot be estimated.
fn explain(why: NoWatchedClient) -> (&'static str, &'static str) {
    match why {
        NoWatchedClient::NotWatched => ("it is not from `feedrate.watch`", SCRIPT_INSTEAD),
        NoWatchedClient::NoWorkers => ("it has no workers or no batch size", SCRIPT_INSTEAD),
        NoWatchedClient::TooManyWorkers => ("it has more workers than cores", SCRIPT_INSTEAD),
        NoWatchedClient::BusyCores => {
            ("other programs kept the cores busy", "watch it again on an idle machine")
        }
        NoWatchedClient::NotCached => {
            ("no epoch read from memory only", "watch two epochs of files that fit into memory")
        }
        NoWatchedClient::NotWaiting => {
            ("its steps hardly wait for the loader", "watch a loop that computes nothing")
        }
    }
}

/// Reads a workload and removes its `client:` section. If `replaces` is false, refuses a workload that has this section.
fn workload_text(file: &Path, replaces: bool) -> anyhow::Result<String> {
    let name = file.display();
    let text = read_text(file).map_err(|error| {
        let hint = "give a workload file; `feedrate run --data DIR --write-yaml FILE` writes one";
        Refusal::new(format!("cannot read workload `{name}`: {error}"), hint)
    })?;
    parse(file, &text)?;
    let without = without_section(&text);
    if without != text && !replaces {
        return refuse(
            format!("`{name}` has a `client:` section already"),
            "`--force` replaces it",
        );
    }
    if parse(file, &with_section(&without, "client: {}\n")).is_err() {
        return refuse(
            format!("`client:` cannot be added to `{name}`"),
            "leave out `-o`, and paste the printed section into the file",
        );
    }
    Ok(without)
}

/// Removes the section `client:` and feedrate's comments directly above it.
fn without_section(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut section_indent = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if section_indent.is_some_and(|section| indent > section || line.trim().is_empty()) {
            continue;
        }
        section_indent = line.trim_start().starts_with("client:").then_some(indent);
        if section_indent.is_some() {
            while kept.last().is_some_and(|line| line.trim_start().starts_with(COMMENT)) {
                kept.pop();
            }
        } else {
            kept.push(line);
        }
    }
    if kept.len() == text.lines().count() { text.into() } else { kept.join("\n") + "\n" }
}

fn parse(file: &Path, text: &str) -> anyhow::Result<()> {
    let name = file.display().to_string();
    workload::parse_in(&name, text, &[], Strictness::Error, &ProcessSurroundings::now())?;
    Ok(())
}

fn with_section(text: &str, section: &str) -> String {
    let text = text.trim_end();
    let is_nested = text.lines().any(|line| line.trim_end() == "workload:");
    let indent = if is_nested { "  " } else { "" };
    let indented: String = section.lines().map(|line| format!("{indent}{line}\n")).collect();
    format!("{text}\n{indented}")
}

/// Measures a client, and returns overrides of a workload: its costs, which replace the whole section `client:`, the batch size and number of
/// workers with which it was measured, and the prefetching of its loader.
pub(super) fn client_overrides(
    source: &str,
    step: &StepArguments,
    python: &Path,
) -> anyhow::Result<Vec<String>> {
    let time_s = time::seconds(DEFAULT_TIME).map_err(anyhow::Error::msg)?;
    let StepArguments { batch, workers, .. } = *step;
    let found = measure(&ClientSource { source, batch, workers, time_s, python })?;
    let mut overrides = vec!["++workload.client.name=null".to_string()];
    overrides.extend(client_costs().map(|key| {
        let cost = found.client.0.get(key).copied().flatten();
        format!("++workload.client.{key}={}", cost.map_or("null".into(), yaml_number))
    }));
    overrides.push(format!("reader.batch_size={}", found.batch_size));
    overrides.push(format!("reader.read_threads={}", found.workers));
    overrides.extend(
        found
            .prefetch_factor
            .map(|factor| format!("reader.prefetch_size={}", factor.saturating_mul(found.workers))),
    );
    Ok(overrides)
}

/// Measures the user's code, and reports the duration and whether other processes disturbed the measurement.
fn measure(client: &ClientSource) -> anyhow::Result<Calibration> {
    let Some((script, function)) = client.source.rsplit_once(':') else {
        return refuse(
            format!("`{}` names no function", client.source),
            "add the function that makes the dataset: `train.py:make_dataset`",
        );
    };
    if !Path::new(script).is_file() {
        return refuse(
            format!("there is no file `{script}`"),
            "give a Python file of the training",
        );
    }
    let found = run_helper(client, script, function)?;
    messages::note(format!(
        "measured for {}, after {} of imports",
        units::seconds(found.measuring_seconds),
        units::seconds(found.import_seconds)
    ));
    if let Some(disturbance) = found.disturbance() {
        messages::say(format!("warning: {disturbance}"));
    }
    Ok(found)
}

fn run_helper(client: &ClientSource, script: &str, function: &str) -> anyhow::Result<Calibration> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let helper = folder.path().join(HELPER_FILE);
    let result = folder.path().join(RESULT_FILE);
    std::fs::write(&helper, HELPER).context("cannot write the helper")?;
    let numbers = [client.batch, client.workers].map(|given| given.unwrap_or(0).to_string());
    let python = client.python;
    let mut command = Command::new(python);
    command
        .arg(&helper)
        .args([script, function])
        .args(numbers)
        .arg(client.time_s.to_string())
        .arg(&result);
    let start = Instant::now();
    let progress_file = folder.path().join(PROGRESS_FILE);
    let terminal = Terminal::new(Progress::Shown);
    let time_s = client.time_s;
    let mut imports_s = None;
    let progress = terminal.start(Box::new(move |elapsed| {
        let phase = std::fs::read_to_string(&progress_file).ok();
        if phase.is_some() {
            imports_s.get_or_insert(elapsed.as_secs_f64());
        }
        let left_s = imports_s.map(|imports_s| imports_s + time_s - elapsed.as_secs_f64());
        progress_line(phase.as_deref().unwrap_or("imports"), elapsed, left_s)
    }));
    // Python's messages would be cleared with the progress line below them.
    let is_drawn = progress.is_drawn();
    command.stderr(if is_drawn { Stdio::piped() } else { Stdio::inherit() });
    let mut child = command.stdin(Stdio::null()).spawn().map_err(|error| {
        let message = format!("cannot start `{}`: {error}", python.display());
        Refusal::new(message, "give the Python interpreter of your training by `--python`")
    })?;
    if let Some(stderr) = child.stderr.take() {
        terminal.copy_above(stderr);
    }
    let status = child.wait().context("cannot wait for Python")?;
    if let Ok(text) = std::fs::read(folder.path().join(REFUSAL_FILE)) {
        let HelperRefusal { message, hint } = serde_json::from_slice(&text)?;
        return refuse(message, hint);
    }
    if !status.success() {
        anyhow::bail!("`{}` could not be measured; see Python's message above", client.source);
    }
    drop(progress);
    let bytes = std::fs::read(&result).context("the helper wrote no result")?;
    let mut found: Calibration = serde_json::from_slice(&bytes)?;
    found.import_seconds = start.elapsed().as_secs_f64() - found.measuring_seconds;
    Ok(found)
}

/// The line about a phase. `left_s`: time left; `None` before the first measurement.
fn progress_line(phase: &str, elapsed: Duration, left_s: Option<f64>) -> String {
    let left = left_s.filter(|left_s| 1.0 <= *left_s);
    let left = left.map_or(String::new(), |left_s| format!("≈ {} left", rough_seconds(left_s)));
    join([format!("calibrate: {phase}"), left, whole_seconds(elapsed)])
}

impl Estimate {
    fn section(&self, folder: &str) -> String {
        format!(
            "{COMMENT}an estimate from {folder}: time between steps × workers, including hand-over and the cost of bytes.\n{}",
            self.client.section()
        )
    }
}

impl ClientCosts {
    /// The known costs with their keys.
    fn known(&self) -> impl Iterator<Item = (&'static str, f64)> {
        client_costs().filter_map(|key| Some((key, (*self.0.get(key)?)?)))
    }

    /// The known costs as a section of a workload.
    fn section(&self) -> String {
        let lines: String =
            self.known().map(|(key, cost)| format!("  {key}: {}\n", yaml_number(cost))).collect();
        format!("client:\n{lines}")
    }
}

impl Calibration {
    fn section(&self, source: &str) -> String {
        let mut lines = self.measurement_sentences(source).to_vec();
        lines.extend(self.disturbance().map(|disturbance| format!("Warning: {disturbance}.")));
        if !self.is_separated {
            lines.push(
                "All samples have the same size: the costs per sample and per byte cannot be separated."
                    .into(),
            );
        }
        let comments: String = lines.iter().map(|line| format!("{COMMENT}{line}\n")).collect();
        comments + &self.client.section()
    }

    /// A sentence on the other processes, if they disturbed the measurement.
    fn disturbance(&self) -> Option<String> {
        let other_cores = self.other_cores.filter(|_| self.is_disturbed)?;
        Some(format!(
            "other processes used {other_cores:.1} cores meanwhile: do not trust these costs, and measure again on an idle machine"
        ))
    }

    /// Two sentences: the measured code with its processor, and the processor times.
    fn measurement_sentences(&self, source: &str) -> [String; 2] {
        let machine = system::system(None, None);
        let processor = machine.cpuinfo.iter().find(|(key, _)| key == "model name");
        let processor = processor.map_or("processor unknown", |(_, name)| name);
        let costs: Vec<String> = self
            .batch_cpu_seconds
            .iter()
            .map(|(workers, cpu)| {
                format!("{} with {}", units::seconds(*cpu), worker_count(*workers))
            })
            .collect();
        let measured = format!(
            "{source} on {processor}, {} cores: {} of {}, batches of {}, {}.",
            machine.cpus,
            units::counted(self.samples, "sample"),
            units::bytes(self.sample_bytes as u64),
            self.batch_size,
            worker_count(self.workers),
        );
        [measured, format!("Processor time of a worker per batch: {}.", costs.join(", "))]
    }
}

fn worker_count(workers: u32) -> String {
    units::counted(workers.into(), "worker")
}

/// Formats a number so that every YAML parser reads it as a number.
fn yaml_number(number: f64) -> String {
    match number {
        number if number == 0.0 || number >= 1e3 => number.round().to_string(),
        number => format!("{number:.3e}"),
    }
}
