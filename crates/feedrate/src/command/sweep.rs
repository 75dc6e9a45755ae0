//! Refuses a `feedrate run` that asks for several runs in Hydra's syntax. The hint has the commands of the equivalent study.

use super::run::RunArguments;
use super::study::StudyRunSettings;
use crate::cli::{CacheArguments, given_options};
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, FromArgMatches};
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::refuse;
use feedrate_spec::workload::Override;
use std::ffi::OsString;
use std::path::Path;

/// Refuses comma-separated workloads or values of a key, and `--multirun`.
pub(super) fn refuse_several(arguments: &RunArguments, matches: &ArgMatches) -> anyhow::Result<()> {
    let data = &arguments.request(1);
    let are_workloads = data.workload.contains(',') && !Path::new(&data.workload).exists();
    let mut several: Vec<&str> = if are_workloads { vec![&data.workload] } else { Vec::new() };
    let sweeps = data.overrides.iter().filter(|text| Override::sweep(text).is_some());
    several.extend(sweeps.map(String::as_str));
    match several.as_slice() {
        [] if !arguments.multirun => Ok(()),
        [] => refuse(
            "`--multirun` was given, but no key has several values",
            "leave it out, or give several values: `reader.read_threads=1,2,4`",
        ),
        several => refuse(
            format!("`{}` means several runs, but `feedrate run` makes one", several.join(" ")),
            format!(
                "create a study for several runs:\n    {}\n    {}",
                bash_command(&study_new_command(arguments, are_workloads)),
                bash_command(&study_run_command(arguments, matches)),
            ),
        ),
    }
}

/// Refuses `-n 1,2,4`, `--batch 1,2,4` and `--workers 1,2,4` likewise. These options take one number, so clap reports them as an error.
pub(super) fn refuse_numbers(
    usage: &clap::Error,
    words: &[OsString],
    program: &clap::Command,
) -> anyhow::Result<()> {
    let text = |kind| match usage.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let option = text(ContextKind::InvalidArg);
    let values = text(ContextKind::InvalidValue);
    let Some((first, _)) = values.split_once(',') else { return Ok(()) };
    let words = words.iter().map(|word| word.to_string_lossy().replace(values, first));
    let Ok(matches) = program.clone().try_get_matches_from(words) else { return Ok(()) };
    let Some(run_matches) = matches.subcommand_matches("run") else { return Ok(()) };
    let mut run = RunArguments::from_arg_matches(run_matches)?;
    let key = match option.split(' ').next() {
        Some("--accelerators") if run.data.accelerators.take().is_some() => "accelerators",
        Some("--batch") if run.step.batch.take().is_some() => "reader.batch_size",
        Some("--workers") if run.step.workers.take().is_some() => "reader.read_threads",
        _ => return Ok(()),
    };
    run.data.overrides.push(format!("{key}={values}"));
    refuse_several(&run, run_matches)
}

/// The `feedrate study new` command that creates all combinations.
fn study_new_command(arguments: &RunArguments, are_workloads: bool) -> Vec<String> {
    let data = &arguments.request(1);
    let words = ["feedrate", "study", "new", "--design", "full_factorial"];
    let mut words: Vec<String> = words.map(str::to_string).into();
    let first = data.workload.split(',').next().unwrap_or_default();
    let model = if are_workloads { first } else { &data.workload };
    words.extend(["--model".into(), model.to_string()]);
    if are_workloads {
        words.extend(["--factor".into(), format!("model={}", data.workload)]);
    }
    words.extend(data.accelerators.iter().flat_map(|n| ["-n".into(), n.to_string()]));
    for text in &data.overrides {
        let prefixed = text.trim_start_matches('+');
        let setting = prefixed.strip_prefix("workload.").unwrap_or(prefixed);
        // A study has separate columns for these.
        let (key, value) = match setting.split_once('=').unwrap_or((setting, "")) {
            ("train.epochs", value) => ("epochs", value),
            ("accelerators", value) => ("processes", value),
            other => other,
        };
        words.extend(match (Override::sweep(setting), key) {
            (Some(_), _) => ["--factor".into(), format!("{key}={value}")],
            (None, "epochs" | "processes") => [format!("--{key}"), value.into()],
            (None, _) => ["--set".into(), setting.into()],
        });
    }
    for (is_given, setting) in
        [(data.foreign, "dataset.foreign=true"), (arguments.verify, "reader.verify=true")]
    {
        words.extend(is_given.then(|| ["--set".into(), setting.into()]).into_iter().flatten());
    }
    words
}

/// The `feedrate study run` command with the options that apply to all runs.
fn study_run_command(arguments: &RunArguments, matches: &ArgMatches) -> Vec<String> {
    let mut words: Vec<String> =
        ["feedrate", "study", "run", "study.csv"].map(str::to_string).into();
    for (name, value) in given_options::<StudyRunSettings>(matches) {
        words.push(name);
        words.extend(value);
    }
    let CacheArguments { cold, warm } = arguments.cache;
    let cache = [(cold, "cold"), (warm, "warm")].into_iter().filter(|(is_given, _)| *is_given);
    words.extend(cache.flat_map(|(_, cache)| ["--cache".into(), cache.into()]));
    words
}
