//! The commands. Each command has a file with its arguments. This file has the table of commands, the program's help and the dispatch.

mod mlperf;
mod plan;
mod generate;
mod calibrate;
mod run;
mod scan;
mod import;
mod study;
mod rehearse;
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
mod suggestions;
#[cfg(test)]
mod reference;

use crate::cli::{DataArguments, GeneralArguments, note_completed_keys};
use crate::exit::Exit;
use clap::builder::Styles;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use feedrate_session::launch;
use feedrate_session::resolve::{self, STDIN};
use feedrate_session::store;
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
Exit codes: 0 fine; 1 the run failed; 2 bad usage or workload; 3 done, but a condition was not met; 4 not decided; 130 interrupted.";

const EXAMPLES: &str = "
  feedrate run quickstart                         a first answer in a minute
  feedrate run unet3d_h100 -n 4 --data /mnt/fs    enough for 4 accelerators?
  feedrate advise results/unet3d/RUN              what would help this run?";

/// Commands that have a line each in the program's help.
const MAIN_COMMANDS: [&str; 6] = ["run", "scale", "plan", "advise", "study", "report"];

/// All other visible commands, by group.
const MORE_COMMANDS: [(&str, &[&str]); 3] = [
    ("Measure", &["diagnose", "generate", "scan", "import", "calibrate"]),
    ("Results", &["show", "analyze", "compare", "plot"]),
    ("Other", &["list", "system", "slurm", "clean"]),
];

/// The command.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload and report whether the storage kept up.
    Run(run::RunArguments),
    /// Find how many accelerators the storage can feed, and what limits it.
    Scale(scale::ScaleArguments),
    /// Measure storage, loader and decoding separately, and name the bottleneck.
    Diagnose(diagnose::DiagnoseArguments),
    /// Recommend changes, best first, or predict the effect of a change.
    Advise(advise::AdviseArguments),
    /// Show what a run would do: required rate, files, bytes, MLPerf's rules.
    #[command(after_help = "\
Examples:
  feedrate plan unet3d_b200 -n 4
  feedrate plan unet3d_b200 --memory 256GiB --hosts 2   MLPerf's dataset
  feedrate plan my.yaml --json | jq .estimate")]
    Plan(plan::PlanArguments),
    /// Generate the dataset of a workload, or verify every byte of it.
    Generate(generate::GenerateArguments),
    /// Report the number, size and format of the files in a folder.
    Scan(scan::ScanArguments),
    /// Create a workload from the I/O log of a real job.
    Import(import::ImportArguments),
    /// Measure the processor time of a PyTorch data loader.
    Calibrate(calibrate::CalibrateArguments),
    /// Create and run a study: many runs of one experimental design.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Summarise a finished run.
    Show(show::ShowArguments),
    /// Recompute and check the numbers in result folders.
    Analyze(analyze::AnalyzeArguments),
    /// Test whether two results or two studies are equivalent.
    Compare(compare::CompareArguments),
    /// Write a report on results: HTML, Markdown, LaTeX, CSV or JSON.
    Report(report::ReportArguments),
    /// Plot runs or a study as SVG or PNG.
    Plot(plot::PlotArguments),
    /// List workloads, formats, keys, metrics, doubts and more, or explain one.
    List(list::ListArguments),
    /// Describe this machine: processors, memory, storage, GPUs.
    System(system::SystemArguments),
    /// Write a Slurm batch script that runs a workload or a study.
    Slurm(Box<slurm::SlurmArguments>),
    /// List datasets and results of feedrate in folders, and remove them on request.
    Clean(clean::CleanArguments),
    /// Print the JSON Schema of the `--json` output.
    #[command(hide = true)]
    Schema(schema::SchemaArguments),
    /// Print the completion script for a shell.
    #[command(hide = true)]
    Completions(shell::CompletionsArguments),
    /// Write a manual page for each command.
    #[command(hide = true)]
    Man(shell::ManArguments),
    /// Run a script and end all processes that it started; closing stdin stops it.
    #[command(hide = true)]
    Supervise(supervise::SuperviseArguments),
    /// Measure the rate of a checksum, for the benchmarks.
    #[command(hide = true)]
    BenchCrc(bench::BenchArguments),
}

impl Arguments {
    /// clap's definition of the program, with a help page of its own, since clap cannot group commands.
    pub(crate) fn program() -> clap::Command {
        let program = Self::command();
        let help = overview(&program);
        program
            .help_template("{about}\n\n{usage-heading} {usage}\n{before-help}")
            .before_long_help(format!("{help}\n\n{GENERAL_OPTIONS}\n{EXIT_CODES}"))
            .before_help(help)
    }

    /// Whether the command accesses the storage under test, which may hang.
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

    /// Refuses a missing data folder instead of creating it: its name may be misspelt, or the storage not mounted. If there are
    /// several processes, only the first prints the message.
    fn refuse_missing_data(&self, matches: &ArgMatches) -> anyhow::Result<()> {
        let data = matches.try_get_one::<PathBuf>("data").ok().flatten();
        let is_plan = matches.try_get_one("dry_run").is_ok_and(|value| value == Some(&true));
        let is_read = self.waits_for_storage();
        let is_missing = |data: &&PathBuf| is_read && !data.is_dir() && !store::is_url(data);
        let Some(data) = data.filter(is_missing) else { return Ok(()) };
        let has_workload = matches.try_contains_id("workload").is_ok();
        if has_workload
            && !resolve::is_in_folder(&DataArguments::from_arg_matches(matches)?.request())
        {
            return Ok(());
        }
        let folder = data.display();
        if is_plan {
            let state = if data.exists() { "is not a folder" } else { "does not exist" };
            crate::messages::note(format!(
                "note: `--data {folder}` {state}, so without `--dry-run` this command is refused"
            ));
            return Ok(());
        }
        if !is_first_process() {
            return Err(launch::leave_report_to_rank_0());
        }
        if data.exists() {
            return refuse(
                format!("`--data {folder}` is not a folder"),
                "give the folder that contains it",
            );
        }
        let mkdir = bash_command(&["mkdir", "-p", &data.to_string_lossy()]);
        refuse(
            format!("`--data {folder}` does not exist"),
            format!("is the storage mounted? To create the folder: `{mkdir}`"),
        )
    }
}

/// Whether this process prints messages on behalf of all processes that a launcher started.
fn is_first_process() -> bool {
    crate::launched().is_none_or(|launched| launched.rank == 0)
}

/// Commands that cannot run under a launcher, since they start their runs themselves.
const SINGLE_PROCESS_COMMANDS: [&str; 3] = ["scale", "diagnose", "advise"];

/// Runs the command. `matches` show which arguments the user gave.
pub(crate) fn dispatch(arguments: &Arguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    if let Some(command) =
        matches.subcommand_name().filter(|name| SINGLE_PROCESS_COMMANDS.contains(name))
    {
        launch::refuse_several_processes(crate::launched().as_ref(), command)?;
    }
    refuse_stdin(&arguments.command, matches)?;
    if is_first_process() {
        note_completed_keys(innermost(matches));
    }
    arguments.refuse_missing_data(innermost(matches))?;
    match &arguments.command {
        Command::Run(a) => {
            sweep::refuse_several(a, innermost(matches))?;
            if a.rehearse { rehearse::rehearse(a) } else { run::run(a) }
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

/// Refuses a command line that clap rejects, with a suggestion; does nothing if clap shows help.
pub(crate) fn refuse_usage(usage: &clap::Error, words: &[OsString]) -> anyhow::Result<()> {
    let program = Arguments::command();
    sweep::refuse_numbers(usage, words, &program)?;
    match suggestions::usage_refusal(usage, words, &program) {
        Some(refusal) if usage.use_stderr() => Err(refusal.into()),
        _ => Ok(()),
    }
}

/// Refuses a workload from stdin for commands that read it several times.
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
        "this command reads the workload several times, which is not possible from stdin",
        "save the workload to a file",
    )
}

/// Formats a heading in clap's style, on a new line.
fn heading(text: &str) -> String {
    let header = *Styles::default().get_header();
    format!("{header}\n{text}:{header:#}")
}

/// The program's help: the main commands with a line each, the other commands by group, and examples. It fits on a screen.
fn overview(program: &clap::Command) -> String {
    let lines = MAIN_COMMANDS.map(|name| {
        let about = program.find_subcommand(name).and_then(clap::Command::get_about);
        format!("  {name:8} {}\n", about.map(ToString::to_string).unwrap_or_default())
    });
    let groups =
        MORE_COMMANDS.map(|(name, commands)| format!("  {name:8} {}\n", commands.join(", ")));
    format!(
        "{}\n{}{}\n{}{}{EXAMPLES}\n\n`feedrate COMMAND --help` explains a command and its options.",
        heading("Commands"),
        lines.concat(),
        heading("More commands"),
        groups.concat(),
        heading("Examples"),
    )
}

/// Matches of the innermost subcommand.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Width of a small terminal.
    const HELP_COLUMNS: usize = 79;

    /// Collects all visible commands with their names.
    fn collect_visible(
        command: &clap::Command,
        name: &str,
        all: &mut Vec<(String, clap::Command)>,
    ) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            if inner.has_subcommands() {
                collect_visible(inner, &name, all);
            } else {
                all.push((name, inner.clone()));
            }
        }
    }

    #[test]
    fn single_process_commands_are_commands() {
        let program = Arguments::program();
        let names = SINGLE_PROCESS_COMMANDS;
        assert!(names.iter().all(|name| program.find_subcommand(name).is_some()));
    }

    #[test]
    fn every_example_is_a_valid_command() {
        let mut all = Vec::new();
        collect_visible(&Arguments::program(), "feedrate", &mut all);
        for (name, command) in &all {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = text.split_once("Examples:\n").unwrap_or_default();
            let lines = examples.lines().take_while(|line| !line.is_empty());
            assert!(lines.clone().all(|line| line.len() <= HELP_COLUMNS), "{name}: {text}");
            let lines = lines.collect::<Vec<_>>().join("\n").replace("\\\n", "");
            let examples: Vec<&str> = lines.lines().map(str::trim).collect();
            assert!((1..=3).contains(&examples.len()), "{name}: {text}");
            examples.into_iter().for_each(check_example);
        }
        EXAMPLES.lines().skip(1).map(str::trim).for_each(check_example);
    }

    /// Parses each command of an example, without its comment, redirection and launcher.
    #[track_caller]
    fn check_example(example: &str) {
        for call in example.split(" && ") {
            let ends = ["   ", " > ", " | "].iter().filter_map(|end| call.find(end));
            let call = &call[..ends.min().unwrap_or(call.len())];
            let start = call.find("feedrate ").unwrap_or_else(|| panic!("{example}"));
            let words = call[start..].split_whitespace().map(|word| word.trim_matches('\''));
            let parsed = Arguments::program().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{call}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn options_of_run_are_grouped_by_headings() {
        let program = Arguments::program().term_width(80);
        let help = program.try_get_matches_from(["feedrate", "run", "--help"]);
        let help = help.unwrap_err().to_string();
        let headings =
            ["Workload:", "Storage:", "Output:", "Cache:", "MPI:", "General:", "Examples:"];
        let found: Vec<&str> = help.lines().filter(|line| headings.contains(line)).collect();
        assert_eq!(found, headings, "{help}");
        assert!(!help.contains("\nOptions:"), "each has a heading: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    #[test]
    fn the_overview_lists_every_visible_command_once() {
        let program = Arguments::program();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        let visible: BTreeSet<&str> = visible.map(clap::Command::get_name).collect();
        let others = MORE_COMMANDS.iter().flat_map(|(_, commands)| commands.iter().copied());
        let listed: Vec<&str> = MAIN_COMMANDS.into_iter().chain(others).collect();
        assert_eq!(BTreeSet::from_iter(listed.iter().copied()), visible);
        assert_eq!(listed.len(), visible.len(), "each once");
        let mut all = Vec::new();
        collect_visible(&program, "feedrate", &mut all);
        assert!(all.len() <= 25, "{}", all.len());
    }
}
