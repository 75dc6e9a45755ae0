//! `feedrate verify`: read everything, compare everything.

use crate::cli::DataArguments;
use crate::dataset;
use crate::exit::{Exit, refuse};
use crate::resolve::{Resolved, resolve};
use crate::{catalog, interrupt, messages, progress, threads};
use feedrate_data::lock::LockAccess;
use feedrate_data::verify::{self as data_verify, BadFile};
use feedrate_data::{manifest, storage};
use feedrate_report::output::Schema;
use feedrate_spec::plan::Request;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::units;
use std::sync::atomic::Ordering::Relaxed;

/// Verify the dataset of a workload.
pub(crate) fn verify(arguments: &DataArguments) -> anyhow::Result<Exit> {
    let Resolved { plan, data_root, .. } =
        resolve(arguments, Request { generate_only: true, ..Request::default() })?;
    let folder = dataset::folder(&plan, &data_root)?;
    if !folder.join(manifest::FILE_NAME).exists() {
        return refuse(
            format!("there is no generated dataset in `{}`", folder.display()),
            "make it with `feedrate generate`",
        );
    }
    let (dataset, interrupted) = (&plan.dataset, interrupt::signals().interrupted);
    let _lock = dataset::lock_for(&plan, &folder, LockAccess::Shared, &interrupted)?;
    let (storage, layout) = (storage::open(&plan.storage.kind, &folder)?, Layout::new(dataset));
    let estimate = catalog::estimate(&plan);
    let (line, done) = progress::of_files("verifying", estimate.file_bytes, arguments.viewer());
    let show = |_files: u64, bytes: u64| done.store(bytes, Relaxed);
    let report = data_verify::verify(dataset, &layout, &*storage, threads(), &show, &interrupted)?;
    drop(line);
    if arguments.json {
        messages::print_json(Schema::Verify.object(serde_json::json!({
            "folder": folder, "files": report.files, "bytes": report.bytes,
            "bad_files": report.bad_files, "bad": report.bad.iter().map(text).collect::<Vec<_>>(),
        })))?;
    } else {
        for bad in &report.bad {
            messages::say(format!("error: {}", text(bad)));
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

fn text(bad: &BadFile) -> String {
    match bad.offset {
        Some(offset) => format!("`{}`: {} at byte {offset}", bad.path, bad.what),
        None => format!("`{}`: {}", bad.path, bad.what),
    }
}
