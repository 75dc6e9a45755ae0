//! The commands: one file each with its arguments, dispatched here.

mod mlperf;
mod plan;
mod generate;
mod calibrate;
mod run;
mod scan;
mod import;
mod study;
mod scale;
mod diagnose;
mod show;
mod advise;
mod analyze;
mod compare_logs;
mod compare;
mod report;
mod plot;
mod list;
mod system;
mod slurm;
mod sweep;
mod clean;
mod schema;
mod shell;
mod supervise;
mod bench;
mod meant;
#[cfg(test)]
mod reference;

use crate::cli::{DataArguments, GeneralArguments, tell_whole_keys};
use crate::exit::Exit;
use clap::builder::Styles;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use feedrate_session::launch;
use feedrate_session::resolve::{self, STDIN};
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::refuse;
use std::ffi::OsString;
use std::path::PathBuf;

/// Can this storage feed these accelerators? If not, why, and what would help?
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    pub(crate) general: GeneralArguments,
}

const GENERAL_OPTIONS: &str = "Options of every command: -v, --verbose; -q, --quiet; --color WHEN; -h, --help; -V, --version.";

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 the run failed; 2 bad usage or workload; 3 done, but what was asked for does not hold; 4 not decided; 130 interrupted.";

const EXAMPLES: &str = "
  feedrate run quickstart                         a first answer, in a minute
  feedrate run unet3d_h100 -n 4 --data /mnt/fs    does it feed 4 accelerators?
  feedrate advise results/unet3d/RUN              what would help that run?";

/// Commands with a line each in the program's help.
const FIRST: [&str; 6] = ["run", "scale", "plan", "advise", "study", "report"];

/// All other commands, by heading.
const OTHERS: [(&str, &[&str]); 3] = [
    ("Measure", &["diagnose", "generate", "scan", "import", "calibrate"]),
    ("Results", &["show", "analyze", "compare", "plot"]),
    ("Other", &["list", "system", "slurm", "clean"]),
];

/// The command.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload and say whether the storage kept up.
    Run(run::RunArguments),
    /// Find how many accelerators the storage feeds, and what limits it.
    Scale(scale::ScaleArguments),
    /// Measure storage, loader and decoding apart, and name the bottleneck.
    Diagnose(diagnose::DiagnoseArguments),
    /// Say what would help, the best first, or what a change would bring.
    Advise(advise::AdviseArguments),
    /// Show what would run: required rate, files, bytes, MLPerf's rules.
    #[command(after_help = "\
Examples:
  feedrate plan unet3d_h100 -n 4
  feedrate plan unet3d_h100 --memory 256GiB --hosts 2   MLPerf's dataset
  feedrate plan my.yaml --json | jq .estimate")]
    Plan(plan::PlanArguments),
    /// Generate the dataset of a workload, or compare every byte of it.
    Generate(generate::GenerateArguments),
    /// Say what a folder of files holds, and in which format.
    Scan(scan::ScanArguments),
    /// Make a workload from the I/O log of a real job.
    Import(import::ImportArguments),
    /// Measure the processor time that a PyTorch data loader takes.
    Calibrate(calibrate::CalibrateArguments),
    /// Make a study, many runs of one design, and run it.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Summarise a finished run from its record.
    Show(show::ShowArguments),
    /// Recompute the numbers of result folders, and check them.
    Analyze(analyze::AnalyzeArguments),
    /// Test whether two results, or two studies, are the same.
    Compare(compare::CompareArguments),
    /// Write a report of results: a page, a document or tables.
    Report(report::ReportArguments),
    /// Draw a plot of runs or of a study, as SVG or PNG.
    Plot(plot::PlotArguments),
    /// List workloads, formats, keys, metrics, doubts and more, or explain one.
    List(list::ListArguments),
    /// Show this machine: processors, memory, storage, GPUs.
    System(system::SystemArguments),
    /// Write a Slurm batch script that runs a workload or a study.
    Slurm(Box<slurm::SlurmArguments>),
    /// Show what feedrate left in folders, and remove it on request.
    Clean(clean::CleanArguments),
    /// Print the JSON Schema of what `--json` prints.
    #[command(hide = true)]
    Schema(schema::SchemaArguments),
    /// Print a script that completes commands and options in a shell.
    #[command(hide = true)]
    Completions(shell::CompletionsArguments),
    /// Write the manual pages, one for each command.
    #[command(hide = true)]
    Man(shell::ManArguments),
    /// Run a script and end all that it started with it; the end of stdin is the word to stop.
    #[command(hide = true)]
    Supervise(supervise::SuperviseArguments),
    /// Measure a checksum on this machine, for the benchmarks.
    #[command(hide = true)]
    BenchCrc(bench::BenchArguments),
}

impl Arguments {
    /// The program's command line. Its help is written here: clap knows no groups of commands.
    pub(crate) fn program() -> clap::Command {
        let program = Self::command();
        let help = overview(&program);
        program
            .help_template("{about}\n\n{usage-heading} {usage}\n{before-help}")
            .before_long_help(format!("{help}\n\n{GENERAL_OPTIONS}\n{EXIT_CODES}"))
            .before_help(help)
    }

    /// Whether the command is done with storage that is tested, which may not answer.
    pub(crate) fn waits_for_storage(&self) -> bool {
        matches!(
            &self.command,
            Command::Run(_)
                | Command::Scan(_)
                | Command::Generate(_)
                | Command::Scale(_)
                | Command::Diagnose(_)
                | Command::Advise(_)
                | Command::Study(study::StudyCommand::Run(_))
        )
    }

    /// Refuse a folder of data that is not there, which may be a misspelt name or a storage that is not mounted: on another disk nothing is
    /// made. Of several processes one says so.
    fn refuse_missing_data(&self, matches: &ArgMatches) -> anyhow::Result<Option<Exit>> {
        let data = matches.try_get_one::<PathBuf>("data").ok().flatten();
        let is_plan = matches.try_get_one("dry_run").is_ok_and(|of| of == Some(&true));
        let is_read = self.waits_for_storage() && !is_plan;
        let Some(data) = data.filter(|data| is_read && !data.is_dir()) else { return Ok(None) };
        let has_workload = matches.try_contains_id("workload").is_ok();
        if has_workload
            && !resolve::is_in_folder(&DataArguments::from_arg_matches(matches)?.request())
        {
            return Ok(None);
        }
        if !is_first_process() {
            return Ok(Some(Exit::Usage));
        }
        let (folder, words) = (data.display(), ["mkdir", "-p", &data.to_string_lossy()]);
        if data.exists() {
            return refuse(
                format!("`--data {folder}` is no folder"),
                "name the folder that holds it",
            );
        }
        refuse(
            format!("`--data {folder}` is not there"),
            format!("is the storage mounted? A new folder: `{}`", bash_command(&words)),
        )
    }
}

/// Whether this process reports for all that a launcher started.
fn is_first_process() -> bool {
    crate::launched().is_none_or(|launched| launched.rank == 0)
}

/// Commands that make their runs by themselves, one at a time.
const LONE: [&str; 3] = ["scale", "diagnose", "advise"];

/// Do what was asked; `matches` tell what of it the user gave, and what is a default.
pub(crate) fn dispatch(arguments: &Arguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    if let Some(command) = matches.subcommand_name().filter(|name| LONE.contains(name)) {
        launch::refuse_several_processes(crate::launched().as_ref(), command)?;
    }
    refuse_stdin(&arguments.command, matches)?;
    if is_first_process() {
        tell_whole_keys(innermost(matches));
    }
    if let Some(exit) = arguments.refuse_missing_data(innermost(matches))? {
        return Ok(exit);
    }
    match &arguments.command {
        Command::Run(a) => {
            sweep::refuse_several(a, innermost(matches))?;
            run::run(a)
        }
        Command::Generate(a) => generate::generate(a),
        Command::Scan(a) => scan::scan(a),
        Command::Calibrate(a) => calibrate::calibrate(a),
        Command::Import(a) => import::import(a),
        Command::Plan(a) => plan::plan(a),
        Command::Show(a) => show::show(a),
        Command::Advise(a) => advise::advise(a),
        Command::Analyze(a) => analyze::analyze(a),
        Command::Compare(a) => compare::compare(a),
        Command::Report(a) => report::report(a),
        Command::Scale(a) => scale::scale(a),
        Command::Diagnose(a) => diagnose::diagnose(a),
        Command::Plot(a) => plot::plot(a),
        Command::List(a) => list::list(a),
        Command::System(a) => system::system(a),
        Command::Slurm(a) => slurm::slurm(a, innermost(matches)),
        Command::Study(a) => study::study(a),
        Command::Clean(a) => clean::clean(a),
        Command::Schema(a) => schema::schema(a),
        Command::Completions(a) => shell::completions(a, Arguments::program()),
        Command::Man(a) => shell::man(a, Arguments::program()),
        Command::Supervise(a) => supervise::supervise(a),
        Command::BenchCrc(a) => bench::crc(a),
    }
}

/// Refuses a command line that clap does not understand, in our words; `None` for help.
pub(crate) fn refuse_usage(usage: &clap::Error, words: &[OsString]) -> anyhow::Result<()> {
    let program = Arguments::command();
    sweep::refuse_numbers(usage, words, &program)?;
    match meant::complaint(usage, words, &program) {
        Some(complaint) if usage.use_stderr() => Err(complaint.into()),
        _ => Ok(()),
    }
}

/// Refuse stdin for a workload that runs which are started, or a job, ask for again.
fn refuse_stdin(command: &Command, matches: &ArgMatches) -> anyhow::Result<()> {
    let matches = innermost(matches);
    let is_stdin = matches
        .try_get_one::<String>("workload")
        .is_ok_and(|workload| workload.is_some_and(|workload| workload == STDIN));
    let reads_once = matches!(command, Command::Run(_) | Command::Plan(_) | Command::Generate(_));
    if !is_stdin || reads_once {
        return Ok(());
    }
    refuse(
        "stdin can be read once, and this command needs the workload more often",
        "save it to a file, and name that",
    )
}

/// A heading in clap's style, on a new line.
fn heading(text: &str) -> String {
    let header = *Styles::default().get_header();
    format!("{header}\n{text}:{header:#}")
}

/// The commands, those to begin with in a line each, and examples. It fits on a screen.
fn overview(program: &clap::Command) -> String {
    let lines = FIRST.map(|name| {
        let about = program.find_subcommand(name).and_then(clap::Command::get_about);
        format!("  {name:8} {}\n", about.map(ToString::to_string).unwrap_or_default())
    });
    let groups = OTHERS.map(|(name, commands)| format!("  {name:8} {}\n", commands.join(", ")));
    format!(
        "{}\n{}{}\n{}{}{EXAMPLES}\n\n`feedrate COMMAND --help` explains a command and its options.",
        heading("Commands"),
        lines.concat(),
        heading("More commands"),
        groups.concat(),
        heading("Examples"),
    )
}

/// Those of the command, below the names of the commands that it is one of.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Width of a small terminal.
    const HELP_COLUMNS: usize = 79;

    /// All commands that help shows, and the words that call each.
    fn shown(command: &clap::Command, name: &str, all: &mut Vec<(String, clap::Command)>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            if inner.has_subcommands() {
                shown(inner, &name, all);
            } else {
                all.push((name, inner.clone()));
            }
        }
    }

    #[test]
    fn commands_that_run_alone_are_commands() {
        let program = Arguments::program();
        assert!(LONE.iter().all(|name| program.find_subcommand(name).is_some()));
    }

    #[test]
    fn every_example_is_a_command_that_is_understood() {
        let mut all = Vec::new();
        shown(&Arguments::program(), "feedrate", &mut all);
        for (name, command) in &all {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = text.split_once("Examples:\n").unwrap_or_default();
            let lines = examples.lines().take_while(|line| !line.is_empty());
            assert!(lines.clone().all(|line| line.len() <= HELP_COLUMNS), "{name}: {text}");
            let lines = lines.collect::<Vec<_>>().join("\n").replace("\\\n", "");
            let examples: Vec<&str> = lines.lines().map(str::trim).collect();
            assert!((1..=3).contains(&examples.len()), "{name}: {text}");
            examples.into_iter().for_each(understood);
        }
        EXAMPLES.lines().skip(1).map(str::trim).for_each(understood);
    }

    /// Each command of an example, without what it is for, where its output goes, and who starts it.
    #[track_caller]
    fn understood(example: &str) {
        for call in example.split(" && ") {
            let ends = ["   ", " > ", " | "].iter().filter_map(|end| call.find(end));
            let call = &call[..ends.min().unwrap_or(call.len())];
            let at = call.find("feedrate ").unwrap_or_else(|| panic!("{example}"));
            let words = call[at..].split_whitespace().map(|word| word.trim_matches('\''));
            let parsed = Arguments::program().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{call}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn options_of_a_run_stand_below_their_headings() {
        let program = Arguments::program().term_width(80);
        let help = program.try_get_matches_from(["feedrate", "run", "--help"]);
        let help = help.unwrap_err().to_string();
        let headings = ["What:", "Storage:", "Output:", "Cache:", "MPI:", "General:", "Examples:"];
        let found: Vec<&str> = help.lines().filter(|line| headings.contains(line)).collect();
        assert_eq!(found, headings, "{help}");
        assert!(!help.contains("\nOptions:"), "each has a heading: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    #[test]
    fn the_overview_has_every_visible_command_once_and_they_are_few() {
        let program = Arguments::program();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        let visible: BTreeSet<&str> = visible.map(clap::Command::get_name).collect();
        let others = OTHERS.iter().flat_map(|(_, commands)| commands.iter().copied());
        let listed: Vec<&str> = FIRST.into_iter().chain(others).collect();
        assert_eq!(BTreeSet::from_iter(listed.iter().copied()), visible);
        assert_eq!(listed.len(), visible.len(), "each once");
        let mut all = Vec::new();
        shown(&program, "feedrate", &mut all);
        assert!(all.len() <= 25, "{}", all.len());
    }
}
