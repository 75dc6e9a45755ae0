//! `dlio_postprocessor`: DLIO's arguments, and its report of a run in a folder of ours or of DLIO's.

use crate::exit::Exit;
use crate::messages;
use crate::messages::write_or_print;
use clap::Parser;
use feedrate_measure::dlio;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_results::{import, load_run};
use feedrate_session::dlio::report_name;
use feedrate_spec::refusal::refuse;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Write the report of a run: load and processing times and rates, by epoch and phase.
#[derive(Debug, Parser)]
#[command(name = "dlio_postprocessor", version, infer_long_args = true)]
struct PostprocessorArguments {
    /// The folder of a run of DLIO's or feedrate's (-of).
    #[arg(long, value_name = "DIR", default_value = "./output")]
    output_folder: PathBuf,
    /// Hydra's folder in it (-hf) [default: the one that is there].
    #[arg(long, value_name = "DIR")]
    hydra_folder: Option<PathBuf>,
    /// Processes (-np); the folder tells, as all that follow but the name.
    #[arg(long, value_name = "N")]
    num_proc: Option<u64>,
    /// Epochs (-e).
    #[arg(short, long, value_name = "N")]
    epochs: Option<u64>,
    /// Samples of a batch (-bs).
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
    /// Whether there are evaluations (-de).
    #[arg(long, value_name = "BOOL")]
    do_eval: Option<String>,
    /// Samples of a batch of evaluations (-bse).
    #[arg(long, value_name = "N")]
    batch_size_eval: Option<u64>,
    /// Whether there are checkpoints (-c).
    #[arg(short = 'c', long, value_name = "BOOL")]
    do_checkpoint: Option<String>,
    /// Whether DLIO's program tells more (-d).
    #[arg(short, long, value_name = "BOOL")]
    debug: Option<String>,
    /// The run's name, which names the report (-n) [default: the model's].
    #[arg(short, long)]
    name: Option<String>,
    /// Replace a report that says something else.
    #[arg(long)]
    force: bool,
}

/// Python's short options of several letters, which are none to others.
const SHORT: [(&str, &str); 6] = [
    ("-of", "--output-folder"),
    ("-hf", "--hydra-folder"),
    ("-np", "--num-proc"),
    ("-de", "--do-eval"),
    ("-bse", "--batch-size-eval"),
    ("-bs", "--batch-size"),
];

/// Read the arguments of this process, and write the report.
pub(super) fn postprocess() -> anyhow::Result<Exit> {
    let parsed = PostprocessorArguments::try_parse_from(std::env::args_os().map(in_full));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        // As Python's parser, with 2.
        Err(usage) if usage.use_stderr() => usage.exit(),
        Err(usage) => return messages::print_usage(&usage),
    };
    let folder = &arguments.output_folder;
    if let Some(hydra) =
        arguments.hydra_folder.as_ref().filter(|hydra| !folder.join(hydra).is_dir())
    {
        let message = format!("there is no folder `{}`", folder.join(hydra).display());
        return refuse(message, "leave `-hf` out: the folder that is there is found");
    }
    let record = record_in(folder, arguments.hydra_folder.as_deref())?;
    for told in arguments.that_differ(&record) {
        messages::say(format!("warning: {told}"));
    }
    let name = arguments.name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| record.plan.model.clone());
    let file = folder.join(report_name(&name));
    write_or_print(Some(&file), &dlio::report(&record), arguments.force)?;
    messages::print(&file.display().to_string())?;
    Ok(Exit::Fine)
}

/// `-of` and its like, also with `=VALUE`, as their long names.
fn in_full(word: OsString) -> OsString {
    let Some(text) = word.to_str() else { return word };
    let (flag, value) = text.split_at(text.find('=').unwrap_or(text.len()));
    let long = SHORT.iter().find(|(short, _)| *short == flag);
    long.map_or_else(|| word.clone(), |(_, long)| format!("{long}{value}").into())
}

impl PostprocessorArguments {
    /// Arguments that say other than the run's files, which count.
    fn that_differ(&self, record: &Record) -> Vec<String> {
        let plan = &record.plan;
        let eval_batch = plan.evaluation.as_ref().map(|evaluation| evaluation.loader.batch_size);
        let epochs = record.epochs.len() as u64;
        let all = [
            ("--num-proc", self.num_proc, Some(plan.accelerators.into())),
            ("--epochs", self.epochs, Some(epochs)),
            ("--batch-size", self.batch_size, Some(plan.loader.batch_size)),
            ("--batch-size-eval", self.batch_size_eval, eval_batch),
        ];
        let told = all.into_iter().filter_map(|(flag, given, there)| Some((flag, given?, there?)));
        let told = told.filter(|(_, given, there)| given != there);
        told.map(|(flag, given, there)| format!("`{flag} {given}`: the run had {there}")).collect()
    }
}

/// The record in a folder, or that which the files of a DLIO run make, with settings of `hydra` where that is given.
fn record_in(folder: &Path, hydra: Option<&Path>) -> anyhow::Result<Record> {
    if folder.is_file() || folder.join(RECORD_FILE).exists() {
        return Ok(load_run(folder)?);
    }
    if !folder.is_dir() {
        let message = format!("`{}` is no folder", folder.display());
        return refuse(message, "give the folder of a run, with `summary.json` in it");
    }
    let imported = import::load_dlio_with(folder, hydra);
    let Some(record) = imported.record else {
        let problems = [imported.unreadable, imported.missing].concat().join("\n  ");
        return refuse(
            format!("there are no steps in `{}`\n  {problems}", folder.display()),
            "give the folder of a run that trained: its `0_output.json` has them",
        );
    };
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_pythons() {
        let parse = |line: &str| {
            let words = ["dlio_postprocessor"].into_iter().chain(line.split_whitespace());
            PostprocessorArguments::try_parse_from(words.map(|word| in_full(word.into())))
        };
        for line in [
            "-of r -hf .hydra -np 4 -e 2 -bs 7 -de False -bse 1 -c True -d no -n x",
            "--output-folder=r --num-proc 4 --epochs 2 --batch-size 7 --name x",
            "-of=r -np=4 -e=2 -bs=7 --nam=x",
        ] {
            let all = parse(line).unwrap();
            assert_eq!(all.output_folder, PathBuf::from("r"), "{line}");
            assert_eq!((all.num_proc, all.epochs, all.batch_size), (Some(4), Some(2), Some(7)));
            assert_eq!(all.name.as_deref(), Some("x"), "{line}");
        }
        assert!(parse("-np many").is_err());
    }
}
