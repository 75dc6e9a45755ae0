//! Converts a row of a study to the arguments of `feedrate run`, and plans the row. Runs nothing.

use crate::keys::{self, DATA};
use crate::runner::{RowDataset, RowPlan};
use feedrate_data::manifest::Manifest;
use feedrate_data::storage;
use feedrate_results::hook::HOOK_PREFIX;
use feedrate_results::row::Row;
use feedrate_results::run::settings;
use feedrate_results::state::StudySettings;
use feedrate_session::catalog;
use feedrate_session::dataset::{self, Files};
use feedrate_session::dlio::WORKLOAD_FOLDER;
use feedrate_session::failure;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, is_file, resolve_named};
use feedrate_spec::bundled;
use feedrate_spec::listener::{Listener, Silent};
use feedrate_spec::plan::{self, Cache, FITS_PAGE_CACHE, Plan};
use feedrate_spec::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Assumed rate of a storage before the first run.
const BYTES_PER_SECOND: f64 = 500e6;

/// Block size of the file system. Each file, including the manifest, may occupy up to one block more than its size.
const BLOCK_BYTES: u64 = 4096;

/// The command that runs a row.
pub struct RowCommand {
    /// `cold`, `warm` or `as-is`.
    pub cache: String,
    /// Hooks to run, each with its level.
    pub hooks: Vec<(String, String)>,
    /// Arguments of `feedrate generate` and `feedrate run`.
    pub request: Request,
}

/// The plan of a row, and the state of its dataset.
pub struct PlannedRow {
    /// The plan, with the dataset and durations.
    pub plan: RowPlan,
    /// Whether all files of the dataset exist.
    pub is_complete: bool,
    /// Whether memory can hold the dataset, and nothing drops it from the page cache.
    pub may_be_cached: bool,
}

impl RowCommand {
    /// Creates the command of a row of the study in `csv`.
    ///
    /// # Errors
    /// A setting of the study in the row is invalid.
    pub fn new(
        row: &Row,
        settings: &StudySettings,
        hooks: &BTreeMap<String, String>,
        csv: &Path,
    ) -> Result<Self, Problem> {
        let mut cache = settings.cache.clone();
        let mut data = settings.data.clone();
        let mut row_hooks = Vec::new();
        let mut overrides = Vec::new();
        overrides.extend(row.epochs.map(|epochs| format!("++workload.train.epochs={epochs}")));
        overrides.extend(row.seed.map(|seed| format!("++workload.train.seed={seed}")));
        for setting in &row.settings {
            if !setting.is_study_setting() {
                overrides.push(setting.text());
                continue;
            }
            let key = setting.key.as_str();
            let value = setting.value.clone().unwrap_or_default();
            if let Some(problem) = keys::check_study_setting(key, &value, hooks) {
                return Err(problem);
            }
            match key.strip_prefix(HOOK_PREFIX) {
                Some(name) => row_hooks.push((name.into(), value)),
                None if key == DATA => data = Some(settings.folder.join(value)),
                None => cache = value,
            }
        }
        let request = Request {
            workload: find_workload(&row.model, csv, settings.config_dir.as_deref()),
            overrides,
            accelerators: Some(row.accelerators),
            data,
            scale: row.scale.unwrap_or(settings.scale),
            shrink_records: settings.shrink_records,
            now_s: settings.now_s,
            ..Request::default()
        };
        Ok(RowCommand { cache, hooks: row_hooks, request })
    }

    /// Plans the row.
    ///
    /// # Errors
    /// The row cannot be planned; returns the reason.
    pub fn plan(&self) -> Result<PlannedRow, String> {
        self.try_plan().map_err(|error| failure::describe(&error))
    }

    /// Finds the least `--scale` of two digits at which the row can be planned; `None` if a scale is not the reason that it cannot.
    pub fn scale_min(&self) -> Option<f64> {
        let given = self.request.scale;
        let can_plan =
            |scale: f64| resolve_named(&Request { scale, ..self.request.clone() }).is_ok();
        if 1.0 <= given || can_plan(given) || !can_plan(1.0) {
            return None;
        }
        let first_decade = given.log10().floor() as i32;
        let scales = (first_decade..0).flat_map(|decade| {
            (10..100).map(move |digits| f64::from(digits) / 10_f64.powi(1 - decade))
        });
        let scales: Vec<f64> = scales.filter(|scale| given < *scale).chain([1.0]).collect();
        scales.get(scales.partition_point(|scale| !can_plan(*scale))).copied()
    }

    fn try_plan(&self) -> anyhow::Result<PlannedRow> {
        let cache = match self.cache.as_str() {
            "cold" => Cache::Cold,
            "warm" => Cache::Warm,
            _ => Cache::AsIs,
        };
        let request = Request { cache, ..self.request.clone() };
        let Resolved { plan, data_root, workload, .. } = resolve_named(&request)?;
        let estimate = catalog::estimate(&plan);
        let duration = plan::duration(&plan, &estimate, BYTES_PER_SECOND);
        let mut row_plan = RowPlan {
            workload: request.workload.clone(),
            dataset: None,
            run_s: duration.total_s() - duration.generation_s,
            generation_s: 0.0,
            fingerprint: plan_fingerprint(&plan)?,
        };
        let needs_files = !plan.is_checkpoint_only()
            && !workload.dataset_foreign
            && dataset::is_in_folder(&plan)
            && dataset::needs_files(&plan, &*storage::open(&plan.storage.kind, &data_root)?);
        if !needs_files {
            return Ok(PlannedRow { plan: row_plan, is_complete: true, may_be_cached: false });
        }
        let choice = dataset::choose(&plan, &data_root, Files::Generated, &Silent)?;
        row_plan.generation_s = duration.generation_s;
        row_plan.dataset = Some(RowDataset {
            folder: std::path::absolute(&choice.folder).unwrap_or(choice.folder),
            fingerprint: Manifest::fingerprint_of(&plan.dataset),
            bytes: estimate.file_bytes + (estimate.files + 1) * BLOCK_BYTES,
        });
        let may_be_cached = plan.doubts.iter().any(|doubt| doubt.name == FITS_PAGE_CACHE);
        Ok(PlannedRow { plan: row_plan, is_complete: !choice.incomplete, may_be_cached })
    }
}

/// Fingerprint of the settings of a plan. Replicates have equal fingerprints.
pub(crate) fn plan_fingerprint(plan: &Plan) -> serde_json::Result<String> {
    let settings = serde_json::to_vec(&settings(plan))?;
    Ok(format!("{:08x}{:08x}", crc32fast::hash(&settings), crc32c::crc32c(&settings)))
}

/// Finds the workload that `model` names in `file`, a CSV or a design: first a file with this path relative to the working directory, then a YAML file
/// in `config_dir/workload`, beside `file`, or in `../config/workload` beside it, then a bundled workload. Returns the path or the name.
pub fn find_workload(model: &str, file: &Path, config_dir: Option<&Path>) -> String {
    if is_file(model) && Path::new(model).exists() {
        return model.into();
    }
    let endings: &[&str] = if is_file(model) { &[""] } else { &[".yaml", ".yml", ""] };
    let beside = file.parent().unwrap_or(Path::new(""));
    let folders = [
        config_dir.map(|folder| folder.join(WORKLOAD_FOLDER)),
        Some(beside.to_path_buf()),
        Some(beside.join("../config").join(WORKLOAD_FOLDER)),
    ];
    let mut paths = folders.iter().flatten().flat_map(|folder| {
        endings.iter().map(move |ending| folder.join(format!("{model}{ending}")))
    });
    match paths.find(|path| path.is_file()) {
        // A name without a folder would be read as a bundled workload.
        Some(path) if path.parent() == Some(Path::new("")) => format!("./{}", path.display()),
        Some(path) => path.display().to_string(),
        None => model.into(),
    }
}

/// Notes each model whose workload is not the bundled one of this name, but a file.
pub fn note_local_workloads<'a>(
    models: impl IntoIterator<Item = &'a str>,
    csv: &Path,
    config_dir: Option<&Path>,
    listener: &dyn Listener,
) {
    let names: BTreeSet<&str> = models.into_iter().collect();
    for model in names.into_iter().filter(|model| bundled::find(model).is_some()) {
        let file = find_workload(model, csv, config_dir);
        if file != model {
            listener.note(format!("workload `{model}` is `{file}`, not the bundled one"));
        }
    }
}
