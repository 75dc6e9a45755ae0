//! `feedrate generate`: make the dataset of a workload, or check every byte of it.

use super::plan;
use crate::cli::{DataArguments, LaunchArguments, WHAT};
use crate::exit::Exit;
use crate::{interrupt, messages};
use clap::Args;
use feedrate_data::generate::Generated;
use feedrate_data::lock::LockAccess;
use feedrate_data::verify::{self as data_verify, BadFile};
use feedrate_data::{manifest, storage};
use feedrate_report::output::Schema;
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_session::agreement::RankArguments;
use feedrate_session::catalog::estimate;
use feedrate_session::dataset::{self, Files};
use feedrate_session::launch::{decided, together};
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, resolve};
use feedrate_session::{progress_text, room, threads};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// `feedrate generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate generate unet3d_h100 --data /mnt/fs
  mpirun -n 4 feedrate generate unet3d_h100     each process makes a share
  feedrate generate unet3d_h100 --data /mnt/fs --verify

Exit codes: 0 fine; 1 failed, or a file differs; 2 bad usage or workload.")]
pub(super) struct GenerateArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Generate nothing: read the dataset that is there, and compare every byte.
    #[arg(long, help_heading = WHAT)]
    verify: bool,
    #[command(flatten)]
    launch: LaunchArguments,
}

/// Generates the files that are missing, or verifies those that exist.
pub(crate) fn generate(arguments: &GenerateArguments) -> anyhow::Result<Exit> {
    let request = Request { generate_only: true, ..arguments.data.request() };
    let listener = Arc::new(arguments.data.listener()) as Arc<dyn Listener>;
    if arguments.verify {
        return verify(&request, arguments.data.json, &*listener);
    }
    let launch = arguments.launch.options();
    let signals = interrupt::signals();
    let ranks = || RankArguments::of_request(&request, launch.accelerators_per_rank, []);
    together(&launch, &signals, &listener, ranks, |comm| {
        generate_on(comm, &request, arguments.data.json, &signals, &*listener)
    })
}

fn generate_on(
    comm: &Arc<dyn Comm>,
    request: &Request,
    json: bool,
    signals: &Signals,
    listener: &dyn Listener,
) -> anyhow::Result<Exit> {
    let start = Instant::now();
    let (plan, choice) = decided(&**comm, || {
        let resolved = resolve(request)?;
        resolved.report_warnings(listener);
        room::refuse_without(&resolved.plan, &resolved.data_root, request)?;
        messages::detail(|| plan::page(&resolved, request));
        let Resolved { plan, data_root, .. } = resolved;
        let choice = dataset::choose(&plan, &data_root, Files::Checked, listener)?;
        Ok((plan, choice))
    })?;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let dataset = dataset::ready(&plan, Some(choice), None, &ranks, signals, listener)?;
    let (true, Some(dataset)) = (ranks.is_first(), dataset) else { return Ok(Exit::Fine) };
    let estimate = estimate(&plan);
    let seconds = start.elapsed().as_secs_f64();
    let Generated { files_written: files, bytes_written: bytes, .. } = dataset.generated;
    if json {
        let generated = GenerateOutput {
            folder: &dataset.folder,
            files: estimate.files,
            file_bytes: estimate.file_bytes,
            files_written: files,
            bytes_written: bytes,
            seconds,
        };
        messages::print_json(Schema::Generate, &generated)?;
    } else if files == 0 {
        messages::print_page(&format!(
            "{} is whole already: {}, {}",
            dataset.folder.display(),
            units::counted(estimate.files, "file"),
            units::bytes(estimate.file_bytes)
        ))?;
    } else {
        messages::print_page(&format!(
            "{}: {files} of {} written, {} in {} ({})",
            dataset.folder.display(),
            units::counted(estimate.files, "file"),
            units::bytes(bytes),
            units::seconds(seconds),
            units::bytes_per_second(bytes as f64 / seconds.max(1e-9)),
        ))?;
    }
    Ok(Exit::Fine)
}

/// Output of `generate --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct GenerateOutput<'a> {
    /// The folder of the dataset.
    folder: &'a Path,
    /// Files of the dataset.
    files: u64,
    /// Their bytes.
    file_bytes: u64,
    /// Files that were made now.
    files_written: u64,
    /// Their bytes.
    bytes_written: u64,
    /// How long that took.
    seconds: f64,
}

/// Output of `generate --verify --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct VerifyOutput<'a> {
    /// The folder of the dataset.
    folder: &'a Path,
    /// Files that were compared.
    files: u64,
    /// Their bytes.
    bytes: u64,
    /// Files that differ.
    bad_files: u64,
    /// Their names and how they differ.
    bad: Vec<String>,
}

/// Verifies the dataset of a workload.
fn verify(request: &Request, json: bool, listener: &dyn Listener) -> anyhow::Result<Exit> {
    let resolved = resolve(request)?;
    resolved.report_warnings(listener);
    let Resolved { plan, data_root, .. } = resolved;
    let folder = dataset::folder(&plan, &data_root)?;
    if !folder.join(manifest::FILE_NAME).exists() {
        return refuse(
            format!("there is no generated dataset in `{}`", folder.display()),
            "make it with `feedrate generate`",
        );
    }
    let (dataset, interrupted) = (&plan.dataset, interrupt::signals().interrupted);
    let _lock = dataset::lock_for(&plan, &folder, LockAccess::Shared, &interrupted, listener)?;
    let (storage, layout) = (storage::open(&plan.storage.kind, &folder)?, Layout::new(dataset));
    let estimate = estimate(&plan);
    let (text, done) = progress_text::files("verifying", estimate.file_bytes);
    let line = listener.show_progress(text);
    let show = |_files: u64, bytes: u64| done.store(bytes, Relaxed);
    let report = data_verify::verify(dataset, &layout, &*storage, threads(), &show, &interrupted)?;
    drop(line);
    if json {
        let verified = VerifyOutput {
            folder: &folder,
            files: report.files,
            bytes: report.bytes,
            bad_files: report.bad_files,
            bad: report.bad.iter().map(difference).collect(),
        };
        messages::print_json(Schema::Verify, &verified)?;
    } else {
        for bad in &report.bad {
            messages::say(format!("error: {}", difference(bad)));
        }
        messages::print_page(&format!(
            "{}: {} of {} files are as they were generated, {} compared",
            folder.display(),
            report.files - report.bad_files.min(report.files),
            units::count(estimate.files),
            units::bytes(report.bytes),
        ))?;
    }
    if interrupted.load(Relaxed) {
        return Ok(Exit::Interrupted);
    }
    Ok(if report.bad_files == 0 { Exit::Fine } else { Exit::Failed })
}

fn difference(bad: &BadFile) -> String {
    match bad.offset {
        Some(offset) => format!("`{}`: {} at byte {offset}", bad.path, bad.difference),
        None => format!("`{}`: {}", bad.path, bad.difference),
    }
}
