//! `feedrate generate`: make the dataset, and nothing else.

use super::plan;
use crate::catalog::estimate;
use crate::cli::{DataArguments, LaunchArguments};
use crate::dataset::{self, Files};
use crate::exit::Exit;
use crate::launch::{decided, together};
use crate::resolve::{self, Resolved, resolve};
use crate::{messages, room};
use clap::{ArgMatches, Args};
use feedrate_data::generate::Generated;
use feedrate_report::output::Schema;
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::Request;
use feedrate_spec::units;
use std::sync::Arc;
use std::time::Instant;

/// `feedrate generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate generate unet3d_h100 --data /mnt/fs
  mpirun -n 4 feedrate generate unet3d_h100     each process makes a share")]
pub(super) struct GenerateArguments {
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    launch: LaunchArguments,
}

/// Make what is missing.
pub(crate) fn generate(
    arguments: &GenerateArguments,
    matches: &ArgMatches,
) -> anyhow::Result<Exit> {
    let asked = || resolve::asked(&arguments.data, &arguments.launch, matches);
    together(&arguments.launch, asked, |comm, signals| generate_on(comm, &arguments.data, signals))
}

fn generate_on(
    comm: &Arc<dyn Comm>,
    arguments: &DataArguments,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let start = Instant::now();
    let (plan, choice) = decided(&**comm, || {
        let request = Request { generate_only: true, ..Request::default() };
        let resolved = resolve(arguments, request.clone())?;
        room::refuse_without(&resolved.plan, &resolved.data_root, arguments, &request)?;
        messages::detail(|| plan::page(&resolved, arguments));
        let Resolved { plan, data_root, .. } = resolved;
        let choice = dataset::choose(&plan, &data_root, Files::Checked)?;
        Ok((plan, choice))
    })?;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let viewer = arguments.viewer();
    let dataset = dataset::ready(&plan, Some(choice), None, &ranks, viewer, signals)?;
    let (true, Some(dataset)) = (ranks.is_first(), dataset) else { return Ok(Exit::Fine) };
    let estimate = estimate(&plan);
    let seconds = start.elapsed().as_secs_f64();
    let Generated { files_written: files, bytes_written: bytes, .. } = dataset.generated;
    if arguments.json {
        messages::print_json(Schema::Generate.object(serde_json::json!({
            "folder": dataset.folder,
            "files": estimate.files,
            "file_bytes": estimate.file_bytes,
            "files_written": files,
            "bytes_written": bytes,
            "seconds": seconds,
        })))?;
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
