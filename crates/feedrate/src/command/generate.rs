//! `feedrate generate`: generates the dataset of a workload, or verifies every byte of it.

use super::plan;
use crate::cli::{DataArguments, LaunchArguments, WORKLOAD};
use crate::exit::Exit;
use crate::{interrupt, messages};
use clap::Args;
use feedrate_report::output::Schema;
use feedrate_session::generate as session;
use feedrate_session::generate::{GenerateOutput, VerifyOutput};
use feedrate_session::request::Request;
use feedrate_spec::listener::Listener;
use feedrate_spec::units;
use std::sync::Arc;

/// `feedrate generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate generate unet3d_h100 --data /mnt/fs
  feedrate generate unet3d_h100 --data /mnt/fs --verify

Exit codes: 0 fine; 1 failed, or a file differs; 2 bad usage or workload.")]
pub(super) struct GenerateArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Generate nothing; read the existing dataset and compare every byte.
    #[arg(long, help_heading = WORKLOAD)]
    verify: bool,
    #[command(flatten)]
    launch: LaunchArguments,
}

/// Generates the files that are missing, or verifies those that exist.
pub(crate) fn generate(arguments: &GenerateArguments) -> anyhow::Result<Exit> {
    let request = Request { generate_only: true, ..arguments.data.request() };
    let listener = Arc::new(arguments.data.listener()) as Arc<dyn Listener>;
    let signals = interrupt::signals();
    let json = arguments.data.json;
    if arguments.verify {
        return print_verified(&session::verify(&request, &signals, &*listener)?, json);
    }
    let launch = arguments.launch.options();
    let page = |resolved: &_| plan::page(resolved, &request);
    let generated = session::generate(&request, &launch, &signals, &listener, &page)?;
    generated.iter().try_for_each(|generated| print_generated(generated, json))?;
    Ok(Exit::Fine)
}

fn print_generated(generated: &GenerateOutput, json: bool) -> anyhow::Result<()> {
    if json {
        messages::print_json(Schema::Generate, generated)?;
        return Ok(());
    }
    let GenerateOutput { folder, files, file_bytes, files_written, bytes_written, seconds } =
        generated;
    let folder = folder.display();
    let files = units::counted(*files, "file");
    messages::print_page(&match files_written {
        0 => format!("{folder} is already complete: {files}, {}", units::bytes(*file_bytes)),
        written => format!(
            "{folder}: {written} of {files} written, {} in {} ({})",
            units::bytes(*bytes_written),
            units::seconds(*seconds),
            units::bytes_per_second(*bytes_written as f64 / seconds.max(1e-9)),
        ),
    })?;
    Ok(())
}

fn print_verified(verified: &VerifyOutput, json: bool) -> anyhow::Result<Exit> {
    if json {
        messages::print_json(Schema::Verify, verified)?;
    } else {
        for bad in &verified.bad {
            messages::say(format!("error: {bad}"));
        }
        messages::print_page(&format!(
            "{}: {} of {} files are correct, {} compared",
            verified.folder.display(),
            units::count(verified.correct_files),
            units::count(verified.planned_files),
            units::bytes(verified.bytes),
        ))?;
    }
    Ok(match verified {
        VerifyOutput { is_interrupted: true, .. } => Exit::Interrupted,
        VerifyOutput { bad_files: 0, .. } => Exit::Fine,
        _ => Exit::Failed,
    })
}
