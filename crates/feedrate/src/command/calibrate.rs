//! `feedrate calibrate`: what the loader of a training costs its processors, as `client:` of a workload. Nothing is measured here: the
//! user's own Python does it, or the record of a loop that was watched tells.

use crate::exit::Exit;
use crate::{messages, time};
use anyhow::Context;
use clap::Args;
use feedrate_analysis::watched_client::{NoWatchedClient, watched_client};
use feedrate_measure::record::file::read_text;
use feedrate_report::output::Schema;
use feedrate_results::load_run;
use feedrate_run::system;
use feedrate_session::output::write_output;
use feedrate_session::request::Request;
use feedrate_session::resolve::resolve_named;
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

const HELPER: &str = include_str!("calibrate.py");
const HELPER_FILE: &str = "feedrate_calibrate.py";
const TOLD_FILE: &str = "told.json";
/// Begins each comment above the section that is written, so that it goes with the section.
const COMMENT: &str = "# calibrate: ";

/// `feedrate calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
The function takes no arguments and returns a PyTorch Dataset or DataLoader. Its samples are read again and again, so that they come from memory. \
The costs are printed as the `client:` section of a workload.

Examples:
  feedrate calibrate train.py:make_dataset --batch 32
  feedrate calibrate train.py:make_loader -o my.yaml
  feedrate calibrate results/train/RUN")]
pub(super) struct CalibrateArguments {
    /// A Python file and the function in it that makes the dataset, or the results of a loop that `feedrate.watch` watched.
    #[arg(value_name = "SCRIPT.py:FUNCTION|RUN")]
    made_by: String,
    /// Samples in a batch [default: the DataLoader's, else 32].
    #[arg(long, value_name = "N")]
    batch: Option<u32>,
    /// Worker processes [default: the DataLoader's, else 2].
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Measure for about this long.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "12s")]
    time: f64,
    /// The Python that the training uses.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Append the section to this workload, instead of printing it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the workload's `client:` section where it has one, as after a change of your code.
    #[arg(long, requires = "output")]
    force: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Answer of the helper.
#[derive(Debug, Deserialize)]
struct Calibration {
    client: ClientCosts,
    /// The cost of a sample and that of its bytes were told apart by samples of several sizes.
    told_apart: bool,
    /// Different ones that were read.
    samples: u64,
    sample_bytes: f64,
    batch_size: u64,
    workers: u32,
    /// That the costs of workers are the mean of.
    batches: u64,
    /// Processor time of a batch in its worker, by the number of workers.
    batch_cpu_seconds: BTreeMap<u32, f64>,
}

/// Output of `calibrate --json`. What was not measured has no key.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct CalibrateOutput {
    /// Costs by the keys of `client`; `null` is not known.
    client: BTreeMap<String, Option<f64>>,
    /// They follow from a run that was watched, and were not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_estimate: Option<bool>,
    /// The cost of a sample and that of its bytes were separated.
    #[serde(skip_serializing_if = "Option::is_none")]
    told_apart: Option<bool>,
    /// Different samples that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    /// Bytes of a sample, in the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bytes: Option<f64>,
    /// Samples in a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_size: Option<u64>,
    /// Worker processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<u32>,
    /// Batches that the costs of workers are the mean of.
    #[serde(skip_serializing_if = "Option::is_none")]
    batches: Option<u64>,
    /// Processor time of a batch in its worker, by the number of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_cpu_seconds: Option<BTreeMap<u32, f64>>,
}

impl Calibration {
    fn output(&self) -> CalibrateOutput {
        CalibrateOutput {
            client: self.client.0.clone(),
            is_estimate: None,
            told_apart: Some(self.told_apart),
            samples: Some(self.samples),
            sample_bytes: Some(self.sample_bytes),
            batch_size: Some(self.batch_size),
            workers: Some(self.workers),
            batches: Some(self.batches),
            batch_cpu_seconds: Some(self.batch_cpu_seconds.clone()),
        }
    }
}

/// Costs by their keys of `client:`; `None` is not known.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct ClientCosts(BTreeMap<String, Option<f64>>);

/// Measure, and say or write it.
pub(super) fn calibrate(arguments: &CalibrateArguments) -> anyhow::Result<Exit> {
    // Whatever is wrong with it is said before it has cost a measurement.
    let before = arguments.output.as_deref();
    let before = before.map(|file| workload_text(file, arguments.force)).transpose()?;
    if resolve::is_run(&arguments.made_by) {
        let told = estimate(&arguments.made_by)?;
        return finish(arguments, before, &told.output(), &told.section(&arguments.made_by), 0.0);
    }
    let Some((script, function)) = arguments.made_by.rsplit_once(':') else {
        return refuse(
            format!("`{}` names no function", arguments.made_by),
            "name the one that makes the dataset: `train.py:make_dataset`",
        );
    };
    if !Path::new(script).is_file() {
        return refuse(
            format!("there is no file `{script}`"),
            "name the Python file of a training",
        );
    }
    let told = measure(arguments, script, function)?;
    finish(arguments, before, &told.output(), &told.section(&arguments.made_by), told.sample_bytes)
}

/// The command that measures somebody's code as `loader` is used, into the workload `file` where there is one.
pub(super) fn command(loader: &LoaderPlan, file: &str) -> String {
    let [batch, workers] = [loader.batch_size, loader.workers.into()].map(|of| of.to_string());
    let mut words = vec!["feedrate", "calibrate", "train.py:make_dataset", "--batch", &batch];
    if loader.workers > 0 {
        words.extend(["--workers", &workers]);
    }
    let output = ["-o", file];
    bash_command(&[&words[..], if file.is_empty() { &[] } else { &output }].concat())
}

/// Say it, or write it into a workload.
fn finish(
    arguments: &CalibrateArguments,
    before: Option<String>,
    output: &CalibrateOutput,
    section: &str,
    sample_bytes: f64,
) -> anyhow::Result<Exit> {
    match (&arguments.output, before) {
        (Some(file), Some(before)) => {
            let whole = with_section(&before, section);
            parse(file, &whole)?;
            write_output(file, whole.as_bytes(), Some(true))?;
            messages::note(written(file, sample_bytes));
        }
        _ if arguments.json => messages::print_json(Schema::Calibrate, output)?,
        _ => messages::print(section.trim_end())?,
    }
    Ok(Exit::Fine)
}

/// Says what rate the client in `file` leaves on this machine, whatever the storage.
fn written(file: &Path, sample_bytes: f64) -> String {
    let name = file.display().to_string();
    let next = bash_command(&["feedrate", "diagnose", &name]);
    let resolved = resolve_named(&Request::for_workload(&name));
    let rate = resolved.ok().and_then(|resolved| client_rate(&resolved.plan, sample_bytes));
    let rate = rate.map_or_else(
        || "your code is in it".to_string(),
        |rate| format!("with your code at most {rate}, whatever the storage"),
    );
    format!("{name}: {rate}; `{next}` measures the parts beside it")
}

/// `310 of 1280 samples/s that are needed`.
fn client_rate(plan: &Plan, sample_bytes: f64) -> Option<String> {
    let Plan { loader, train, accelerators, .. } = plan;
    let times = loader.client_times(sample_bytes * loader.batch_size as f64)?;
    let (compute_s, all) = (train.slowest_compute_s(), f64::from((*accelerators).max(1)));
    let step_s = times.step_s(compute_s, loader.workers, threads() as f64 / all);
    let samples = loader.batch_size as f64 * all;
    let rate = |step_s: f64| units::per_second(samples / step_s, "samples");
    if compute_s == 0.0 {
        return (0.0 < step_s).then(|| rate(step_s));
    }
    let own = rate(step_s);
    Some(format!("{} of {} that are needed", own.trim_end_matches(" samples/s"), rate(compute_s)))
}

/// An estimate, from a record.
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
    let told = watched_client(&load_run(Path::new(folder))?).map_err(|why| {
        let (message, hint) = not_told(why);
        Refusal::new(format!("`{folder}` has no cost of its loader: {message}"), hint)
    })?;
    let mut client: BTreeMap<String, Option<f64>> =
        client_costs().map(|key| (key.to_string(), None)).collect();
    client.insert("per_sample".into(), Some(told.per_sample_s));
    client.insert("start_per_epoch".into(), Some(told.start_per_epoch_s));
    Ok(Estimate { client: ClientCosts(client) })
}

const SCRIPT_INSTEAD: &str = "`feedrate calibrate SCRIPT.py:FUNCTION` measures it";

fn not_told(why: NoWatchedClient) -> (&'static str, &'static str) {
    match why {
        NoWatchedClient::NotWatched => ("it is no loop that was watched", SCRIPT_INSTEAD),
        NoWatchedClient::NoWorkers => ("it has no workers, or no size of a batch", SCRIPT_INSTEAD),
        NoWatchedClient::TooManyWorkers => ("it has more workers than cores", SCRIPT_INSTEAD),
        NoWatchedClient::NotCached => {
            ("no epoch read from memory alone", "watch two epochs of files that memory holds")
        }
        NoWatchedClient::NotWaiting => {
            ("its steps hardly wait for it", "watch a loop that computes nothing")
        }
    }
}

/// Text of a workload without the costs of a client, which are left out of it if `replaces`.
fn workload_text(file: &Path, replaces: bool) -> anyhow::Result<String> {
    let name = file.display();
    let text = read_text(file).map_err(|error| {
        let hint =
            "name a workload of yours; `feedrate run --data DIR --write-yaml FILE` makes one";
        Refusal::new(format!("cannot read workload `{name}`: {error}"), hint)
    })?;
    parse(file, &text)?;
    let without = without_section(&text);
    if without != text && !replaces {
        return refuse(
            format!("`{name}` has a `client:` section already"),
            "`--force` replaces it by what is measured now",
        );
    }
    if parse(file, &with_section(&without, "client: {}\n")).is_err() {
        return refuse(
            format!("`client:` cannot be added to `{name}`"),
            "leave `-o` out and paste what is printed",
        );
    }
    Ok(without)
}

/// The text without its section `client:`, and our comments right above that.
fn without_section(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if inside.is_some_and(|of| indent > of || line.trim().is_empty()) {
            continue;
        }
        inside = line.trim_start().starts_with("client:").then_some(indent);
        if inside.is_some() {
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
    workload::parse(&file.display().to_string(), text, &[], Strictness::Error)?;
    Ok(())
}

fn with_section(text: &str, section: &str) -> String {
    let text = text.trim_end();
    let is_below = text.lines().any(|line| line.trim_end() == "workload:");
    let indent = if is_below { "  " } else { "" };
    let section: String = section.lines().map(|line| format!("{indent}{line}\n")).collect();
    format!("{text}\n{section}")
}

fn measure(
    arguments: &CalibrateArguments,
    script: &str,
    function: &str,
) -> anyhow::Result<Calibration> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let helper = folder.path().join(HELPER_FILE);
    let told = folder.path().join(TOLD_FILE);
    std::fs::write(&helper, HELPER).context("cannot write the helper")?;
    let numbers = [arguments.batch, arguments.workers].map(|of| of.unwrap_or(0).to_string());
    let python = &arguments.python;
    let mut command = Command::new(python);
    command
        .arg(&helper)
        .args([script, function])
        .args(numbers)
        .arg(arguments.time.to_string())
        .arg(&told);
    let status = command.stdin(Stdio::null()).status().map_err(|error| {
        let message = format!("cannot start `{}`: {error}", python.display());
        Refusal::new(message, "name the Python of your training with `--python`")
    })?;
    if !status.success() {
        anyhow::bail!("`{}` could not be timed: its Python said why above", arguments.made_by);
    }
    let bytes = std::fs::read(&told).context("the helper left no answer")?;
    Ok(serde_json::from_slice(&bytes)?)
}

impl Estimate {
    fn section(&self, folder: &str) -> String {
        format!(
            "{COMMENT}an estimate from {folder}: the time between its steps, times its workers; hand-over and bytes are in it.\n{}",
            self.client.section()
        )
    }
}

impl ClientCosts {
    /// As a workload has it: what is known.
    fn section(&self) -> String {
        let known = client_costs().filter_map(|key| Some((key, (*self.0.get(key)?)?)));
        let lines: String =
            known.map(|(key, cost)| format!("  {key}: {}\n", in_yaml(cost))).collect();
        format!("client:\n{lines}")
    }
}

impl Calibration {
    fn section(&self, made_by: &str) -> String {
        let mut lines = self.measured(made_by).to_vec();
        if !self.told_apart {
            lines.push(
                "Of one size: what a sample costs and what its bytes do cannot be told apart."
                    .into(),
            );
        }
        let lines: String = lines.iter().map(|line| format!("{COMMENT}{line}\n")).collect();
        lines + &self.client.section()
    }

    fn measured(&self, made_by: &str) -> [String; 2] {
        let machine = system::system(None, None);
        let processor = machine.cpuinfo.iter().find(|(key, _)| key == "model name");
        let processor = processor.map_or("processor unknown", |(_, name)| name);
        let costs: Vec<String> = self
            .batch_cpu_seconds
            .iter()
            .map(|(workers, cpu)| format!("{} with {}", units::seconds(*cpu), counted(*workers)))
            .collect();
        let measured = format!(
            "{made_by} on {processor}, {} cores: {} of {}, batches of {}, {}.",
            machine.cpus,
            units::counted(self.samples, "sample"),
            units::bytes(self.sample_bytes as u64),
            self.batch_size,
            counted(self.workers),
        );
        [measured, format!("Processor time of a batch in its worker: {}.", costs.join(", "))]
    }
}

fn counted(workers: u32) -> String {
    units::counted(workers.into(), "worker")
}

/// A number that every reader of YAML takes for one.
fn in_yaml(number: f64) -> String {
    match number {
        number if number == 0.0 || number >= 1e3 => number.round().to_string(),
        number => format!("{number:.3e}"),
    }
}
