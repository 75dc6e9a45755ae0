//! Generates the dataset of a workload in all processes of a launcher, or compares every byte of an existing dataset with the generated
//! content. It does not train.

use crate::agreement::RankArguments;
use crate::catalog::estimate;
use crate::dataset::{self, Files};
use crate::launch::{LaunchOptions, decide_on_rank_0, run_together};
use crate::request::Request;
use crate::resolve::{Resolved, resolve};
use crate::{progress_text, room, store, threads};
use feedrate_data::generate::GenerationSummary;
use feedrate_data::lock::LockAccess;
use feedrate_data::storage;
use feedrate_data::storage::object::Access;
use feedrate_data::verify::{self, BadFile};
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::refusal::refuse;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Output of `generate --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GenerateOutput {
    /// The folder of the dataset.
    pub folder: PathBuf,
    /// Number of files of the dataset.
    pub files: u64,
    /// Bytes of these files.
    pub file_bytes: u64,
    /// Number of files that were generated now.
    pub files_written: u64,
    /// Bytes of the files that were generated now.
    pub bytes_written: u64,
    /// Duration of the generation.
    pub seconds: f64,
}

/// Output of `generate --verify --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifyOutput {
    /// The folder of the dataset.
    pub folder: PathBuf,
    /// Number of files that were compared.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Number of compared files that are correct.
    pub correct_files: u64,
    /// Number of files that differ or are missing.
    pub bad_files: u64,
    /// Names and differences of some files that differ.
    pub bad: Vec<String>,
    /// Number of files of the whole dataset.
    #[serde(skip)]
    pub planned_files: u64,
    /// Whether a signal ended the comparison early.
    #[serde(skip)]
    pub is_interrupted: bool,
}

/// Generates missing files. `page` formats the plan for `--verbose`. Returns `None` in all processes except the first, and for a plan
/// without a dataset.
///
/// # Errors
/// Fails if the workload cannot be planned, or if a file cannot be generated.
pub fn generate(
    request: &Request,
    launch: &LaunchOptions,
    signals: &Signals,
    listener: &Arc<dyn Listener>,
    page: &dyn Fn(&Resolved) -> String,
) -> anyhow::Result<Option<GenerateOutput>> {
    let ranks = || RankArguments::from_request(request, launch.accelerators_per_rank, []);
    run_together(launch, signals, listener, ranks, |comm| {
        generate_on_rank(comm, request, signals, &**listener, page)
    })
}

fn generate_on_rank(
    comm: &Arc<dyn Comm>,
    request: &Request,
    signals: &Signals,
    listener: &dyn Listener,
    page: &dyn Fn(&Resolved) -> String,
) -> anyhow::Result<Option<GenerateOutput>> {
    let start = Instant::now();
    let (plan, choice) = decide_on_rank_0(&**comm, || {
        let resolved = resolve(request)?;
        resolved.report_warnings(listener);
        room::refuse_shortage(&resolved.plan, &resolved.data_root, request)?;
        listener.detail(|| page(&resolved));
        let Resolved { plan, data_root, .. } = resolved;
        let choice = dataset::choose(&plan, &data_root, Files::Checked, listener)?;
        Ok((plan, choice))
    })?;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let dataset = dataset::prepare(&plan, Some(choice), None, &ranks, signals, listener)?;
    let Some(dataset) = dataset.filter(|_| ranks.is_first()) else { return Ok(None) };
    let estimate = estimate(&plan);
    let GenerationSummary { files_written, bytes_written, .. } = dataset.generated;
    Ok(Some(GenerateOutput {
        folder: dataset.folder,
        files: estimate.files,
        file_bytes: estimate.file_bytes,
        files_written,
        bytes_written,
        seconds: start.elapsed().as_secs_f64(),
    }))
}

/// Compares the dataset of a workload with the generated content. The output lists files that differ.
///
/// # Errors
/// Fails if there is no generated dataset, or if it cannot be read.
pub fn verify(
    request: &Request,
    signals: &Signals,
    listener: &dyn Listener,
) -> anyhow::Result<VerifyOutput> {
    let resolved = resolve(request)?;
    resolved.report_warnings(listener);
    let Resolved { plan, data_root, .. } = resolved;
    store::check(&data_root, Access::Read)?;
    let folder = dataset::dataset_folder(&plan, &data_root)?;
    if !dataset::has_manifest(&plan, &folder)? {
        return refuse(
            format!("there is no generated dataset in `{}`", folder.display()),
            "generate it with `feedrate generate`",
        );
    }
    let interrupted = &signals.interrupted;
    let _lock = dataset::lock_dataset(&plan, &folder, LockAccess::Shared, interrupted, listener)?;
    let storage = storage::open(&plan.storage.kind, &folder)?;
    let layout = Layout::new(&plan.dataset);
    let estimate = estimate(&plan);
    let (text, done) = progress_text::files("verifying", estimate.file_bytes);
    let line = listener.show_progress(text);
    let show = |_files: u64, bytes: u64| done.store(bytes, Relaxed);
    let report = verify::verify(&plan.dataset, &layout, &*storage, threads(), &show, interrupted)?;
    drop(line);
    Ok(VerifyOutput {
        folder,
        files: report.files,
        bytes: report.bytes,
        correct_files: report.correct_files,
        bad_files: report.bad_files,
        bad: report.bad.iter().map(describe_difference).collect(),
        planned_files: estimate.files,
        is_interrupted: interrupted.load(Relaxed),
    })
}

fn describe_difference(bad: &BadFile) -> String {
    match bad.offset {
        Some(offset) => format!("`{}`: {} at byte {offset}", bad.path, bad.difference),
        None => format!("`{}`: {}", bad.path, bad.difference),
    }
}
