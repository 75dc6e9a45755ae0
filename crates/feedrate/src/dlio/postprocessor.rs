//! `dlio_postprocessor`: writes DLIO's report of a run of feedrate or DLIO. It accepts DLIO's arguments.

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

/// Write the report of a run: load and processing times and rates per epoch and phase.
#[derive(Debug, Parser)]
#[command(name = "dlio_postprocessor", version, infer_long_args = true)]
struct PostprocessorArguments {
    /// Folder of a run of DLIO or feedrate (-of).
    #[arg(long, value_name = "DIR", default_value = "./output")]
    output_folder: PathBuf,
    /// Hydra's folder in the output folder (-hf) [default: found automatically].
    #[arg(long, value_name = "DIR")]
    hydra_folder: Option<PathBuf>,
    /// Number of processes (-np). The values of this and the following options, except the name, are read from the folder; a warning names differences.
    #[arg(long, value_name = "N")]
    num_proc: Option<u64>,
    /// Number of epochs (-e).
    #[arg(short, long, value_name = "N")]
    epochs: Option<u64>,
    /// Samples per batch (-bs).
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
    /// Whether there are evaluations (-de).
    #[arg(long, value_name = "BOOL")]
    do_eval: Option<String>,
    /// Samples per batch of evaluations (-bse).
    #[arg(long, value_name = "N")]
    batch_size_eval: Option<u64>,
    /// Whether there are checkpoints (-c).
    #[arg(short = 'c', long, value_name = "BOOL")]
    do_checkpoint: Option<String>,
    /// Accepted for DLIO's scripts, without effect (-d).
    #[arg(short, long, value_name = "BOOL")]
    debug: Option<String>,
    /// Name of the run, used in the file name of the report (-n) [default: the model's].
    #[arg(short, long)]
    name: Option<String>,
    /// Replace an existing report.
    #[arg(long)]
    force: bool,
}

/// Short options of several letters. Python's parser accepts them, but clap does not.
const SHORT: [(&str, &str); 6] = [
    ("-of", "--output-folder"),
    ("-hf", "--hydra-folder"),
    ("-np", "--num-proc"),
    ("-de", "--do-eval"),
    ("-bse", "--batch-size-eval"),
    ("-bs", "--batch-size"),
];

/// Parses the arguments of this process, and writes the report.
pub(super) fn postprocess() -> anyhow::Result<Exit> {
    let parsed = PostprocessorArguments::try_parse_from(std::env::args_os().map(long_option));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        // Exits with 2, like Python's parser.
        Err(usage) if usage.use_stderr() => usage.exit(),
        Err(usage) => return messages::print_usage(&usage),
    };
    let folder = &arguments.output_folder;
    if let Some(hydra) =
        arguments.hydra_folder.as_ref().filter(|hydra| !folder.join(hydra).is_dir())
    {
        let message = format!("there is no folder `{}`", folder.join(hydra).display());
        return refuse(message, "leave out `-hf`: the folder is found automatically");
    }
    let record = load_record(folder, arguments.hydra_folder.as_deref())?;
    for difference in arguments.differences(&record) {
        messages::say(format!("warning: {difference}"));
    }
    let name = arguments.name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| record.plan.model.clone());
    let file = folder.join(report_name(&name));
    write_or_print(Some(&file), &dlio::report(&record), arguments.force)?;
    messages::print(&file.display().to_string())?;
    Ok(Exit::Fine)
}

/// Replaces a short option of several letters, such as `-of` or `-of=VALUE`, by its long name.
fn long_option(word: OsString) -> OsString {
    let Some(text) = word.to_str() else { return word };
    let (flag, value) = text.split_at(text.find('=').unwrap_or(text.len()));
    let long = SHORT.iter().find(|(short, _)| *short == flag);
    long.map_or_else(|| word.clone(), |(_, long)| format!("{long}{value}").into())
}

impl PostprocessorArguments {
    /// Warnings about arguments that differ from the run's files. The values in the files are used.
    fn differences(&self, record: &Record) -> Vec<String> {
        let plan = &record.plan;
        let eval_batch = plan.evaluation.as_ref().map(|evaluation| evaluation.loader.batch_size);
        let epochs = record.epochs.len() as u64;
        let arguments = [
            ("--num-proc", self.num_proc, Some(plan.accelerators.into())),
            ("--epochs", self.epochs, Some(epochs)),
            ("--batch-size", self.batch_size, Some(plan.loader.batch_size)),
            ("--batch-size-eval", self.batch_size_eval, eval_batch),
        ];
        let differences = arguments.into_iter().filter_map(|(flag, given, actual)| {
            let given = given?;
            let actual = actual?;
            (given != actual).then(|| format!("`{flag} {given}`: the run had {actual}"))
        });
        differences.collect()
    }
}

/// Loads the record of a feedrate run, or converts the files of a DLIO run. `hydra` is the folder of Hydra's settings.
fn load_record(folder: &Path, hydra: Option<&Path>) -> anyhow::Result<Record> {
    if folder.is_file() || folder.join(RECORD_FILE).exists() {
        return Ok(load_run(folder)?);
    }
    if !folder.is_dir() {
        let message = format!("`{}` is not a folder", folder.display());
        return refuse(message, "give the folder of a run; it contains `summary.json`");
    }
    let imported = import::load_dlio_with(folder, hydra);
    let Some(record) = imported.record else {
        let problems = [imported.unreadable, imported.missing].concat().join("\n  ");
        return refuse(
            format!("there are no steps in `{}`\n  {problems}", folder.display()),
            "give the folder of a run that trained; its `0_output.json` has the steps",
        );
    };
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_pythons_syntax() {
        let parse = |line: &str| {
            let words = ["dlio_postprocessor"].into_iter().chain(line.split_whitespace());
            PostprocessorArguments::try_parse_from(words.map(|word| long_option(word.into())))
        };
        for line in [
            "-of r -hf .hydra -np 4 -e 2 -bs 7 -de False -bse 1 -c True -d no -n x",
            "--output-folder=r --num-proc 4 --epochs 2 --batch-size 7 --name x",
            "-of=r -np=4 -e=2 -bs=7 --nam=x",
        ] {
            let parsed = parse(line).unwrap();
            assert_eq!(parsed.output_folder, PathBuf::from("r"), "{line}");
            assert_eq!(parsed.num_proc, Some(4), "{line}");
            assert_eq!((parsed.epochs, parsed.batch_size), (Some(2), Some(7)), "{line}");
            assert_eq!(parsed.name.as_deref(), Some("x"), "{line}");
        }
        assert!(parse("-np many").is_err());
    }
}
