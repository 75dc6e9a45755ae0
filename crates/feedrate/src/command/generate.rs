//! `feedrate generate`: make the dataset, and nothing else.

use crate::catalog::catalog;
use crate::cli::{DataArguments, GenerateArguments};
use crate::dataset::{self, DatasetRequest};
use crate::exit::{Exit, UsageError};
use crate::interrupt;
use crate::launch::{Launch, decided, together};
use crate::messages;
use crate::resolve::{PlanOptions, Resolved, resolve_for};
use feedrate_run::comm::Comm;
use feedrate_run::driver::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::{plan, units};
use std::sync::Arc;
use std::time::Instant;

/// Make what is missing.
pub(crate) fn generate(arguments: &GenerateArguments) -> anyhow::Result<Exit> {
    refuse_foreign(&arguments.data, "generate")?;
    let launch = Launch::try_from(&arguments.launch)?;
    let signals = Signals { interrupted: interrupt::flag(), ..Signals::default() };
    together(&launch, &signals, |comm| generate_on(comm, arguments, &signals))
}

fn generate_on(
    comm: &Arc<dyn Comm>,
    arguments: &GenerateArguments,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let arguments = &arguments.data;
    let start = Instant::now();
    let (plan, choice) = decided(&**comm, || {
        let options = PlanOptions { generate_only: true, ..PlanOptions::default() };
        let Resolved { plan, data_root, .. } =
            resolve_for(arguments, arguments.accelerators, options)?;
        let request = DatasetRequest { root: &data_root, foreign: false, check_files: true };
        let choice = dataset::choose(&plan, &request)?;
        Ok((plan, choice))
    })?;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let interrupted = &signals.interrupted;
    let (dataset, generated) = dataset::ready(&plan, choice, &ranks, arguments.quiet, interrupted)?;
    if !ranks.is_first() {
        return Ok(Exit::Fine);
    }
    let estimate = plan::estimate(&plan, &catalog());
    let seconds = start.elapsed().as_secs_f64();
    let (files, bytes) = generated.as_ref().map_or((0, 0), |g| (g.files_written, g.bytes_written));
    if arguments.json {
        messages::print(serde_json::json!({
            "folder": dataset.folder,
            "files": estimate.files,
            "file_bytes": estimate.file_bytes,
            "files_written": files,
            "bytes_written": bytes,
            "seconds": seconds,
        }));
    } else if files == 0 {
        messages::print(format!(
            "{} is whole already: {} files, {}",
            dataset.folder.display(),
            estimate.files,
            units::bytes(estimate.file_bytes)
        ));
    } else {
        messages::print(format!(
            "{}: {files} of {} files written, {} in {} ({})",
            dataset.folder.display(),
            estimate.files,
            units::bytes(bytes),
            units::seconds(seconds),
            units::bytes_per_second(bytes as f64 / seconds.max(1e-9)),
        ));
    }
    Ok(Exit::Fine)
}

/// Commands about what feedrate generates have nothing to do with files of others.
pub(super) fn refuse_foreign(arguments: &DataArguments, command: &str) -> Result<(), UsageError> {
    if !arguments.foreign {
        return Ok(());
    }
    Err(UsageError::new(
        format!("`{command}` is about files that feedrate makes, `--foreign` about others"),
        "leave `--foreign` out; `feedrate run … --foreign` probes and reads",
    ))
}
