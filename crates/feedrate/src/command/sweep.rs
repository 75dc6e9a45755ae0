//! Several runs that are asked of `feedrate run`, as Hydra's users do: answered with the study that makes them. Runs nothing.

use super::run::RunArguments;
use super::study::StudyHow;
use crate::cli::{CacheArguments, given};
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, FromArgMatches};
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::refuse;
use feedrate_spec::workload::Override;
use std::ffi::OsString;
use std::path::Path;

/// Refuse values of a key, or workloads, with commas between them, and `--multirun`.
pub(super) fn refuse_several(arguments: &RunArguments, matches: &ArgMatches) -> anyhow::Result<()> {
    let data = &arguments.request(1);
    let are_workloads = data.workload.contains(',') && !Path::new(&data.workload).exists();
    let mut several: Vec<&str> = if are_workloads { vec![&data.workload] } else { Vec::new() };
    let sweeps = data.overrides.iter().filter(|text| Override::sweep(text).is_some());
    several.extend(sweeps.map(String::as_str));
    match several.as_slice() {
        [] if !arguments.multirun => Ok(()),
        [] => refuse(
            "`--multirun` makes several runs, and nothing here has several values",
            "leave it out, or give the values: `reader.read_threads=1,2,4`",
        ),
        several => refuse(
            format!("`{}` asks for several runs, and `feedrate run` makes one", several.join(" ")),
            format!(
                "several runs are a study:\n    {}\n    {}",
                bash_command(&design(arguments, are_workloads)),
                bash_command(&runs(arguments, matches)),
            ),
        ),
    }
}

/// The same of `-n 1,2,4`, `--batch 1,2,4` and `--workers 1,2,4`, which take one number, so that `usage` complains of them.
pub(super) fn refuse_numbers(
    usage: &clap::Error,
    words: &[OsString],
    program: &clap::Command,
) -> anyhow::Result<()> {
    let [option, values] = [ContextKind::InvalidArg, ContextKind::InvalidValue].map(|kind| {
        let Some(ContextValue::String(text)) = usage.get(kind) else { return "" };
        text.as_str()
    });
    let Some((first, _)) = values.split_once(',') else { return Ok(()) };
    let words = words.iter().map(|word| word.to_string_lossy().replace(values, first));
    let Ok(matches) = program.clone().try_get_matches_from(words) else { return Ok(()) };
    let Some(matches) = matches.subcommand_matches("run") else { return Ok(()) };
    let mut run = RunArguments::from_arg_matches(matches)?;
    let key = match option.split(' ').next() {
        Some("--accelerators") if run.data.accelerators.take().is_some() => "accelerators",
        Some("--batch") if run.step.batch.take().is_some() => "reader.batch_size",
        Some("--workers") if run.step.workers.take().is_some() => "reader.read_threads",
        _ => return Ok(()),
    };
    run.data.overrides.push(format!("{key}={values}"));
    refuse_several(&run, matches)
}

/// `feedrate study new` with what is asked for: all combinations.
fn design(arguments: &RunArguments, are_workloads: bool) -> Vec<String> {
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
        let text = text.trim_start_matches('+');
        let text = text.strip_prefix("workload.").unwrap_or(text);
        // A study has columns of its own for these.
        let (key, value) = match text.split_once('=').unwrap_or((text, "")) {
            ("train.epochs", value) => ("epochs", value),
            ("accelerators", value) => ("processes", value),
            other => other,
        };
        words.extend(match (Override::sweep(text), key) {
            (Some(_), _) => ["--factor".into(), format!("{key}={value}")],
            (None, "epochs" | "processes") => [format!("--{key}"), value.into()],
            (None, _) => ["--set".into(), text.into()],
        });
    }
    for (is_asked, setting) in
        [(data.foreign, "dataset.foreign=true"), (arguments.verify, "reader.verify=true")]
    {
        words.extend(is_asked.then(|| ["--set".into(), setting.into()]).into_iter().flatten());
    }
    words
}

/// `feedrate study run` with what is the same for all.
fn runs(arguments: &RunArguments, matches: &ArgMatches) -> Vec<String> {
    let mut words: Vec<String> =
        ["feedrate", "study", "run", "study.csv"].map(str::to_string).into();
    for (name, value) in given::<StudyHow>(matches) {
        words.push(name);
        words.extend(value);
    }
    let CacheArguments { cold, warm } = arguments.cache;
    let cache = [(cold, "cold"), (warm, "warm")].into_iter().filter(|(is_asked, _)| *is_asked);
    words.extend(cache.flat_map(|(_, cache)| ["--cache".into(), cache.into()]));
    words
}
