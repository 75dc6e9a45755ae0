//! `feedrate generate`: make the dataset, and nothing else.

use crate::cli::DataArguments;
use crate::dataset::{self, Want};
use crate::exit::{Exit, UsageError};
use crate::interrupt;
use crate::messages;
use crate::resolve::{Wish, resolve};
use feedrate_spec::{plan, units};
use std::time::Instant;

/// Make what is missing.
pub(crate) fn generate(arguments: &DataArguments) -> anyhow::Result<Exit> {
    refuse_foreign(arguments, "generate")?;
    let resolved = resolve(arguments, Wish { generate_only: true, ..Wish::default() })?;
    let interrupted = interrupt::flag();
    let want = Want {
        root: &resolved.data_root,
        foreign: false,
        check_files: true,
        quiet: arguments.quiet,
        interrupted: &interrupted,
    };
    let estimate = plan::estimate(&resolved.plan, &resolved.catalog);
    let start = Instant::now();
    let (dataset, generated) = dataset::ready(&resolved.plan, &want, estimate.file_bytes)?;
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
    Err(UsageError {
        message: format!(
            "`{command}` is about files that feedrate makes, `--foreign` about others"
        ),
        hint: Some("leave `--foreign` out; `feedrate run … --foreign` probes and reads".into()),
    })
}
