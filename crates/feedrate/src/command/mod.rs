//! The commands: one file each, dispatched here.

mod run;
mod generate;
mod plan;
mod verify;
mod show;
mod postprocess;
mod analyze;
mod compare;
mod report;
mod scale;
mod plot;
mod list;
mod describe;
mod system;
mod slurm;
mod study;
mod supervise;
mod bench;

use crate::cli::{Arguments, Command};
use crate::exit::Exit;

/// Do what was asked.
pub(crate) fn dispatch(arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::Run(a) => run::run(a),
        Command::Generate(a) => generate::generate(a),
        Command::Plan(a) => plan::plan(a),
        Command::Verify(a) => verify::verify(a),
        Command::Show(a) => show::show(a),
        Command::Postprocess(a) => postprocess::postprocess(a),
        Command::Analyze(a) => analyze::analyze(a),
        Command::Compare(a) => compare::compare(a),
        Command::Report(a) => report::report(a),
        Command::Scale(a) => scale::scale(a),
        Command::Plot(a) => plot::plot(a),
        Command::List(a) => list::list(a),
        Command::Describe(a) => describe::describe(a),
        Command::System(a) => system::system(a),
        Command::Slurm(a) => slurm::slurm(a),
        Command::Study(a) => study::study(a),
        Command::Supervise(a) => supervise::supervise(a),
        Command::BenchCrc(a) => bench::crc(a),
    }
}
