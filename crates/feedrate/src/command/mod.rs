//! The commands. Each command has a file with its arguments. This file has the table of commands, the program's help and the dispatch.
//! Long because the table has a row for each command.

mod mlperf;
mod plan;
mod generate;
mod calibrate;
mod run;
mod scan;
mod import;
mod study;
mod rehearse;
mod repeat;
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
use crate::export::{ExportArguments, ExportSubject};
use crate::messages;
use clap::builder::{Resettable, StyledStr, Styles};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use feedrate_measure::record::file::sibling_names;
use feedrate_session::folder;
use feedrate_session::launch;
use feedrate_session::output::refuse_below;
use feedrate_session::resolve::{self, STDIN};
use feedrate_session::store;
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::refuse;
use feedrate_spec::workload::similar_names;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Can this storage feed these accelerators? If not, why, and what would help?
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    pub(crate) general: GeneralArguments,
}

const GENERAL_OPTIONS: &str = "Options of every command: -v, --verbose; -q, --quiet; --color WHEN; -h, --help; -V, --version.";

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 the run failed; 2 bad usage or workload, or a folder is missing or too small; 3 done, but a condition was not met; 4 not decided; 130 interrupted.";

const EXAMPLES: &str = "
  feedrate run quickstart                         a first answer in a minute
  feedrate run unet3d_h100 -n 4 --data /mnt/fs    enough for 4 accelerators?
  feedrate advise results/unet3d/RUN              what would help this run?";

const POINTERS: &str = "
  feedrate COMMAND --help    examples and options of a command
  feedrate help all          the other commands, by purpose";

/// Commands in the program's help.
const MAIN_COMMANDS: [&str; 6] = ["run", "scale", "plan", "advise", "study", "report"];

/// All other commands, by purpose, for `feedrate help all`.
const MORE_COMMANDS: [(&str, &[&str]); 5] = [
    ("Find what is slow", &["diagnose", "calibrate", "system"]),
    ("Start from a real job or folder", &["import", "scan"]),
    ("Manage data and jobs", &["generate", "clean", "slurm"]),
    ("Read results", &["show", "analyze", "compare", "plot"]),
    ("Look up and install", &["list", "schema", "completions", "man"]),
];

/// Layout of a command's help.
const COMMAND_HELP: &str =
    "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";
/// Layout of the program's help.
const PROGRAM_HELP: &str = "{about}\n\n{usage-heading} {usage}\n{before-help}";
/// Option that shows the help with rare options. They are marked by clap's `hide_short_help`.
const HELP_ALL: &str = "--help-all";

/// The command.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload and report whether the storage kept up.
    Run(run::RunArguments),
    /// Find how many accelerators the storage feeds, and what limits it.
    Scale(scale::ScaleArguments),
    /// Measure storage, loader and decoding separately.
    Diagnose(diagnose::DiagnoseArguments),
    /// Recommend changes, best first, or predict the effect of a change.
    Advise(advise::AdviseArguments),
    /// Show what a run would need: rate, files, bytes, MLPerf's rules.
    #[command(after_help = "\
Examples:
  feedrate plan unet3d_b200 -n 4                        required rate
  feedrate plan unet3d_b200 --memory 256GiB --hosts 2   MLPerf's dataset")]
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
    #[command(
        subcommand,
        after_help = "\
Examples:
  feedrate study new studies/quickstart.toml    write the study's CSV
  feedrate study run quickstart.csv             run it, or continue it"
    )]
    Study(study::StudyCommand),
    /// Summarise a finished run.
    Show(show::ShowArguments),
    /// Recompute and check the numbers in result folders.
    Analyze(analyze::AnalyzeArguments),
    /// Test whether two results or two studies are equivalent.
    Compare(compare::CompareArguments),
    /// Write a report on results: HTML, Markdown, LaTeX, CSV or JSON.
    Report(report::ReportArguments),
    /// Plot runs or a study as PDF, SVG or PNG.
    Plot(plot::PlotArguments),
    /// List workloads, formats, keys, metrics, doubts …, or explain one.
    List(list::ListArguments),
    /// Describe this machine: processors, memory, storage, GPUs.
    System(system::SystemArguments),
    /// Write a Slurm batch script that runs a workload or a study.
    Slurm(Box<slurm::SlurmArguments>),
    /// List, and on request remove, datasets and results of feedrate.
    Clean(clean::CleanArguments),
    /// Explain a command, or list all commands by purpose (`help all`).
    #[command(hide = true)]
    Help {
        /// Name of the command, or `all`.
        #[arg(value_name = "COMMAND")]
        path: Vec<OsString>,
    },
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
    /// clap's definition of the program with every option, for manual pages, completions and the reference.
    pub(crate) fn program() -> clap::Command {
        let program = with_rare_options(Self::command(), true);
        let overview = overview(&program);
        program.help_template(PROGRAM_HELP).before_help(overview)
    }

    /// Parses a command line, which starts with the name of the program. Help and wrong usage are errors.
    pub(crate) fn parse(words: &[OsString]) -> clap::error::Result<(Self, ArgMatches)> {
        let shows_all = words.iter().any(|word| word == HELP_ALL);
        let matches = screens(shows_all).try_get_matches_from(words)?;
        Ok((Self::from_arg_matches(&matches)?, matches))
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

    /// The files of other programs that the command writes.
    fn exports(&self) -> Option<&ExportArguments> {
        let (exports, is_plan) = match &self.command {
            Command::Run(a) => (&a.exports, a.dry_run),
            Command::Scale(a) => (&a.exports, a.dry_run),
            Command::Study(study::StudyCommand::Run(a)) => (&a.exports, a.dry_run),
            Command::Compare(a) => (&a.exports, false),
            _ => return None,
        };
        (exports.are_given() && !is_plan && is_first_process()).then_some(exports)
    }

    /// What the command tests.
    fn export_subject(&self) -> ExportSubject {
        match &self.command {
            Command::Run(a) => ExportSubject::for_workload("run", &a.request(1)),
            Command::Scale(a) => ExportSubject::for_workload("scale", &a.data.request()),
            Command::Compare(_) => ExportSubject::new("compare", compare::SUBJECT),
            _ => ExportSubject::new("study run", "study"),
        }
    }

    /// Refuses files in a folder of the user's own data, before they are written.
    fn refuse_exports_in_data(&self, exports: &ExportArguments) -> anyhow::Result<()> {
        let request = match &self.command {
            Command::Run(a) => a.request(1),
            Command::Scale(a) => a.data.request(),
            _ => return Ok(()),
        };
        let Some(data) = folder::foreign_data(&request) else { return Ok(()) };
        exports.files().try_for_each(|(option, file)| refuse_below(file, &data, option))
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
            messages::note(format!(
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
        let similar = similar_folder(data).map(|name| format!("did you mean `{name}`? Or "));
        refuse(
            format!("`--data {folder}` does not exist"),
            format!(
                "{}is the storage mounted? To create the folder: `{mkdir}`",
                similar.unwrap_or_default()
            ),
        )
    }
}

/// The folder beside a missing one whose name is spelt most similarly.
fn similar_folder(missing: &Path) -> Option<String> {
    let name = missing.file_name()?.to_str()?;
    let mut names = sibling_names(missing);
    names.retain(|name| missing.with_file_name(name).is_dir());
    let similar = similar_names(name, names.iter().map(String::as_str));
    let [similar] = similar[..] else { return None };
    Some(missing.with_file_name(similar).display().to_string())
}

/// Whether this process prints messages on behalf of all processes that a launcher started.
fn is_first_process() -> bool {
    crate::launched().is_none_or(|launched| launched.rank == 0)
}

/// Commands that cannot run under a launcher, since they start their runs themselves.
const SINGLE_PROCESS_COMMANDS: [&str; 3] = ["scale", "diagnose", "advise"];

/// Runs a workload once, several times, or as a submission.
fn run_workload(arguments: &run::RunArguments) -> anyhow::Result<Exit> {
    match arguments.repeat {
        _ if arguments.rehearse => rehearse::rehearse(arguments),
        Some(runs) if !arguments.dry_run => repeat::repeat(arguments, runs),
        _ => run::run(arguments),
    }
}

/// Runs the command. `matches` show which arguments the user gave.
pub(crate) fn dispatch(arguments: &Arguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let work = || execute(arguments, matches);
    match arguments.exports() {
        Some(exports) => {
            arguments.refuse_exports_in_data(exports)?;
            exports.keep_current(&arguments.export_subject(), work)
        }
        None => work(),
    }
}

fn execute(arguments: &Arguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
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
            run_workload(a)
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
        Command::Help { path } => help(path),
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

/// Prints the help of a command, or with `all` of all commands.
fn help(path: &[OsString]) -> anyhow::Result<Exit> {
    let words: Vec<OsString> = if path.iter().eq(["all"]) {
        vec!["feedrate".into(), HELP_ALL.into()]
    } else {
        [&["feedrate".into()], path, &["--help".into()]].concat()
    };
    match Arguments::parse(&words) {
        Ok(_) => Ok(Exit::Fine),
        Err(usage) => refuse_usage(&usage, &words).and_then(|()| messages::print_usage(&usage)),
    }
}

/// clap's definition of the program for a terminal: short screens with the examples first.
fn screens(shows_all: bool) -> clap::Command {
    let program = with_rare_options(Arguments::command(), shows_all);
    let help = if shows_all { all_commands(&program) } else { overview(&program) };
    let program = program.mut_subcommands(with_examples_first);
    program.help_template(PROGRAM_HELP).before_help(help)
}

/// The command with its rare options shown or hidden. clap's long help is not used: it needs three lines for each option.
fn with_rare_options(command: clap::Command, are_shown: bool) -> clap::Command {
    let command = command.mut_args(|option| {
        let is_hidden = option.is_hide_set() || option.is_hide_short_help_set() && !are_shown;
        option.hide_short_help(false).hide(is_hidden)
    });
    command.mut_subcommands(|inner| with_rare_options(inner, are_shown))
}

/// The command with the examples of its help before the options.
fn with_examples_first(command: clap::Command) -> clap::Command {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let paragraphs = text.split("\n\n");
    let (examples, notes): (Vec<&str>, Vec<&str>) =
        paragraphs.partition(|paragraph| paragraph.starts_with("Examples:"));
    let command = command.before_help(optional(examples.join("\n\n")));
    let command = command.after_help(optional(notes.join("\n\n")));
    command.help_template(COMMAND_HELP).mut_subcommands(with_examples_first)
}

/// A text for clap, which prints blank lines for an empty one.
fn optional(text: String) -> Resettable<StyledStr> {
    if text.is_empty() { Resettable::Reset } else { Resettable::Value(text.into()) }
}

/// A line for each command: its name and what it does.
fn command_lines(program: &clap::Command, names: &[&str]) -> String {
    let line = |name: &&str| {
        let about = program.find_subcommand(name).and_then(clap::Command::get_about);
        format!("\n  {name:13}{}", about.map(ToString::to_string).unwrap_or_default())
    };
    names.iter().map(line).collect()
}

/// The program's help: the main commands and examples. It fits on a small screen.
fn overview(program: &clap::Command) -> String {
    format!(
        "{}{}\n{}{EXAMPLES}\n{}{POINTERS}",
        heading("Commands"),
        command_lines(program, &MAIN_COMMANDS),
        heading("Examples"),
        heading("More"),
    )
}

/// The text of `feedrate help all`.
fn all_commands(program: &clap::Command) -> String {
    let groups = [("Main commands", &MAIN_COMMANDS[..])].into_iter().chain(MORE_COMMANDS);
    let groups = groups
        .map(|(purpose, names)| format!("{}{}\n", heading(purpose), command_lines(program, names)));
    format!("{}\n{GENERAL_OPTIONS}\n\n{EXIT_CODES}", groups.collect::<String>())
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
            collect_visible(inner, &name, all);
            all.push((name, inner.clone()));
        }
    }

    #[test]
    fn single_process_commands_are_commands() {
        let program = Arguments::program();
        let names = SINGLE_PROCESS_COMMANDS;
        assert!(names.iter().all(|name| program.find_subcommand(name).is_some()));
    }

    #[test]
    fn every_command_has_two_examples_that_are_valid() {
        let mut all = Vec::new();
        let program = Arguments::program().mut_subcommands(|command| {
            let is_listed =
                MORE_COMMANDS.iter().any(|(_, names)| names.contains(&command.get_name()));
            if is_listed { command.hide(false) } else { command }
        });
        collect_visible(&program, "feedrate", &mut all);
        assert!(all.len() > 20);
        for (name, command) in &all {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = text.split_once("Examples:\n").unwrap_or_default();
            let lines = examples.lines().take_while(|line| !line.is_empty());
            assert!(lines.clone().all(|line| line.len() <= HELP_COLUMNS), "{name}: {text}");
            let lines = lines.collect::<Vec<_>>().join("\n").replace("\\\n", "");
            let examples: Vec<&str> = lines.lines().map(str::trim).collect();
            assert_eq!(examples.len(), 2, "{name}: {text}");
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

    /// The help that a command line prints in a terminal of 80 columns.
    fn screen(words: &[&str]) -> String {
        let shows_all = words.contains(&HELP_ALL);
        let help = screens(shows_all).term_width(80).try_get_matches_from(words);
        let help = help.unwrap_err().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        help
    }

    #[test]
    fn the_help_of_run_is_short_and_grouped_by_headings() {
        let help = screen(&["feedrate", "run", "--help"]);
        assert!(help.lines().count() <= 45, "{}\n{help}", help.lines().count());
        let parts =
            ["Examples:", "Usage: ", "Arguments:", "Workload:", "Storage:", "Output:", "General:"];
        let found: Vec<&str> = help
            .lines()
            .filter(|line| !line.starts_with(' '))
            .filter(|line| line.contains(':'))
            .collect();
        assert_eq!(found.len(), parts.len(), "{help}");
        assert!(found.iter().zip(parts).all(|(line, part)| line.starts_with(part)), "{help}");
        for rare in ["--rank-timeout", "--shrink-records", "--color"] {
            assert!(!help.contains(rare), "{rare}: {help}");
            assert!(screen(&["feedrate", "run", HELP_ALL]).contains(rare), "{rare}");
        }
    }

    #[test]
    fn the_help_of_each_command_starts_with_a_sentence_and_examples() {
        let mut all = Vec::new();
        collect_visible(&screens(false), "feedrate", &mut all);
        for (name, _) in &all {
            let words: Vec<&str> = name.split(' ').chain(["--help"]).collect();
            let help = screen(&words);
            let parts: Vec<&str> = help.split("\n\n").take(3).collect();
            assert_eq!(parts[0].lines().count(), 1, "{help}");
            assert!(parts[1].starts_with("Examples:\n"), "{help}");
            assert!(parts[2].starts_with("Usage: "), "{help}");
            assert!(help.lines().count() <= 50, "{}\n{help}", help.lines().count());
        }
    }

    #[test]
    fn the_front_screen_fits_24_lines_and_all_commands_are_listed_once() {
        let front = screen(&["feedrate", "--help"]);
        assert!(front.lines().count() < 24, "{front}");
        let program = Arguments::program();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        let visible: BTreeSet<&str> = visible.map(clap::Command::get_name).collect();
        let others = MORE_COMMANDS.iter().flat_map(|(_, commands)| commands.iter().copied());
        let listed: Vec<&str> = MAIN_COMMANDS.into_iter().chain(others).collect();
        let unique = BTreeSet::from_iter(listed.iter().copied());
        assert_eq!(unique.len(), listed.len(), "each once");
        assert!(unique.is_superset(&visible), "{visible:?}");
        let all = screen(&["feedrate", HELP_ALL]);
        let is_listed = |name: &&&str| all.lines().any(|line| line.trim_start().starts_with(*name));
        assert_eq!(listed.iter().filter(is_listed).count(), listed.len(), "{all}");
        let mut commands = Vec::new();
        collect_visible(&program, "feedrate", &mut commands);
        assert!(commands.len() <= 25, "{}", commands.len());
    }
}
