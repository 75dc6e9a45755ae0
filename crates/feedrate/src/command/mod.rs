//! The commands: one file each with its arguments, dispatched here.

mod run;
mod generate;
mod plan;
mod scan;
mod calibrate;
mod import;
mod verify;
mod show;
mod whatif;
mod tune;
mod advise;
mod postprocess;
mod analyze;
mod groups;
mod compare;
mod compare_logs;
mod report;
mod scale;
mod diagnose;
mod plot;
mod list;
mod describe;
mod system;
mod slurm;
mod study;
mod clean;
mod shell;
mod supervise;
mod bench;
#[cfg(test)]
mod reference;

use crate::cli::DataArguments;
use crate::exit::Exit;
use crate::launch;
use clap::{ArgMatches, Parser, Subcommand};

/// Can this storage feed these accelerators, and if not, why not and what would help?
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 the run failed; 2 bad usage or workload; 3 done, but what was asked for does not hold; 4 not decided; 130 interrupted.";

/// The command.
#[derive(Debug, Subcommand)]
enum Command {
    /// Generate what is missing, train, and say whether the storage kept up.
    Run(run::RunArguments),
    /// Make the dataset only.
    Generate(generate::GenerateArguments),
    /// Say what a folder of files holds, and of which format they are.
    Scan(scan::ScanArguments),
    /// Measure what the loader of a PyTorch training costs its processors, as `client:` of a workload.
    Calibrate(calibrate::CalibrateArguments),
    /// Say how the job of a log (strace, DFTracer, Darshan) read its data, and make the workload that emulates it.
    Import(import::ImportArguments),
    /// Show what would run: files, bytes, steps, memory, doubts.
    Plan(DataArguments),
    /// Read the whole dataset and compare every byte with what generation wrote.
    Verify(DataArguments),
    /// Summarise a finished run again from its record.
    Show(show::ShowArguments),
    /// Predict from the record of a run what a change would bring.
    Whatif(whatif::WhatifArguments),
    /// Find the cheapest setting of reading that is as good as the best.
    Tune(tune::TuneArguments),
    /// Say what would help a run, the best first, each with its evidence and what it is predicted to bring.
    Advise(advise::AdviseArguments),
    /// Write the report that DLIO's postprocessor makes of a run.
    Postprocess(postprocess::PostprocessArguments),
    /// Make a study: a design of many runs, and run what is pending in it.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Recompute the numbers of result folders, ours, DLIO's or MLPerf Storage's, and say what is wrong with them.
    Analyze(analyze::AnalyzeArguments),
    /// Say whether two results, or two studies, are the same, with intervals and an exit code.
    Compare(compare::CompareArguments),
    /// Say what results show, what is doubtful about them and how they were made, as a page, a document or tables.
    Report(report::ReportArguments),
    /// Find the largest number of accelerators that the storage feeds for certain, and why it feeds no more.
    Scale(scale::ScaleArguments),
    /// Measure the ceilings of storage, loader and decoding, beside what is needed, and name the largest drop.
    Diagnose(diagnose::DiagnoseArguments),
    /// Draw a plot of runs or of a study, as SVG or PNG.
    Plot(plot::PlotArguments),
    /// List workloads, formats, storages, engines, loaders, launches, designs, plots, keys, metrics or doubts.
    List(list::ListArguments),
    /// Describe one workload, format, storage, loader, key, metric or doubt.
    Describe(describe::DescribeArguments),
    /// Show this machine as a table of component and specification.
    System(system::SystemArguments),
    /// Write a batch script for Slurm that generates and runs a workload.
    Slurm(slurm::SlurmArguments),
    /// Show the datasets and results of feedrate below some folders, and remove them if told so.
    Clean(clean::CleanArguments),
    /// Print the script by which a shell completes commands and options.
    Completions(shell::CompletionsArguments),
    /// Write manual pages, one for each command.
    Man(shell::ManArguments),
    /// Run a script and end all that it started with it; the end of stdin is the word to stop.
    #[command(hide = true)]
    Supervise(supervise::SuperviseArguments),
    /// Measure a checksum on this machine, for the benchmarks.
    #[command(hide = true)]
    BenchCrc(bench::BenchArguments),
}

impl Arguments {
    /// Whether the command is done with storage that is tested, which may not answer.
    pub(crate) fn waits_for_storage(&self) -> bool {
        matches!(
            &self.command,
            Command::Run(_)
                | Command::Scan(_)
                | Command::Generate(_)
                | Command::Verify(_)
                | Command::Scale(_)
                | Command::Tune(_)
                | Command::Diagnose(_)
                | Command::Advise(_)
                | Command::Study(study::StudyCommand::Run(_))
        )
    }

    /// The name of a command that makes its runs by itself, one at a time.
    fn lone(&self) -> Option<&'static str> {
        match &self.command {
            Command::Scale(_) => Some("scale"),
            Command::Tune(_) => Some("tune"),
            Command::Diagnose(_) => Some("diagnose"),
            Command::Advise(_) => Some("advise"),
            _ => None,
        }
    }
}

/// Do what was asked; `matches` tell what of it the user gave, and what is a default.
pub(crate) fn dispatch(arguments: &Arguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    if let Some(command) = arguments.lone()
        && let Some(exit) = launch::refuse_company(command)?
    {
        return Ok(exit);
    }
    match &arguments.command {
        Command::Run(a) => run::run(a),
        Command::Generate(a) => generate::generate(a),
        Command::Scan(a) => scan::scan(a),
        Command::Calibrate(a) => calibrate::calibrate(a),
        Command::Import(a) => import::import(a),
        Command::Plan(a) => plan::plan(a),
        Command::Verify(a) => verify::verify(a),
        Command::Show(a) => show::show(a),
        Command::Whatif(a) => whatif::whatif(a),
        Command::Tune(a) => tune::tune(a),
        Command::Advise(a) => advise::advise(a),
        Command::Postprocess(a) => postprocess::postprocess(a),
        Command::Analyze(a) => analyze::analyze(a),
        Command::Compare(a) => compare::compare(a),
        Command::Report(a) => report::report(a),
        Command::Scale(a) => scale::scale(a),
        Command::Diagnose(a) => diagnose::diagnose(a),
        Command::Plot(a) => plot::plot(a),
        Command::List(a) => list::list(a),
        Command::Describe(a) => describe::describe(a),
        Command::System(a) => system::system(a),
        Command::Slurm(a) => slurm::slurm(a, innermost(matches)),
        Command::Study(a) => study::study(a, innermost(matches)),
        Command::Clean(a) => clean::clean(a),
        Command::Completions(a) => shell::completions(a),
        Command::Man(a) => shell::man(a),
        Command::Supervise(a) => supervise::supervise(a),
        Command::BenchCrc(a) => bench::crc(a),
    }
}

/// Those of the command, below the names of the commands that it is one of.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}
