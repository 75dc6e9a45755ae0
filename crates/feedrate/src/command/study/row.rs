//! From a row of a study to what `feedrate run` is asked for, and to its plan. Runs nothing.

use crate::cli::DataArguments;
use crate::dataset::{self, DatasetRequest};
use crate::messages;
use crate::resolve::{PlanOptions, Resolved, resolve_silently};
use feedrate_data::manifest::Manifest;
use feedrate_data::storage;
use feedrate_results::hook::HOOK_PREFIX;
use feedrate_results::row::Row;
use feedrate_results::setting::Setting;
use feedrate_results::state::StudySettings;
use feedrate_spec::plan::{self, Cache};
use feedrate_spec::problem::Problem;
use feedrate_spec::workload::nearest;
use feedrate_study::keys::{CACHE, CACHE_LEVELS, DATA};
use feedrate_study::runner::{DatasetPlan, RowPlan};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Assumed rate of a storage until runs have measured it.
const BYTES_PER_SECOND: f64 = 500e6;

/// Each file, and the manifest, fills up to a block more than it holds.
const BLOCK_BYTES: u64 = 4096;

/// Settings of a row for the runner itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfStudy {
    /// `cold`, `warm` or `as-is`.
    pub(super) cache: String,
    /// Another folder for datasets.
    pub(super) data: Option<PathBuf>,
    /// Hooks to run, each with its level.
    pub(super) hooks: Vec<(String, String)>,
}

/// A row that is planned.
pub(super) struct Planned {
    pub(super) plan: RowPlan,
    /// All of the dataset is there.
    pub(super) is_whole: bool,
}

/// Read a row's settings of the study.
pub(super) fn of_study(
    row: &Row,
    settings: &StudySettings,
    hooks: &BTreeMap<String, String>,
) -> Result<OfStudy, Problem> {
    let mut found =
        OfStudy { cache: settings.cache.clone(), data: settings.data.clone(), hooks: Vec::new() };
    for Setting { key, value } in row.settings.iter().filter(|setting| setting.is_of_study()) {
        let value = value.clone().unwrap_or_default();
        match (key.as_str(), key.strip_prefix(HOOK_PREFIX)) {
            (DATA, _) => found.data = Some(settings.folder.join(value)),
            (CACHE, _) if CACHE_LEVELS.contains(&value.as_str()) => found.cache = value,
            (CACHE, _) => {
                return Err(Problem::error(CACHE, format!("there is no cache state `{value}`"))
                    .hint("it is `cold`, `warm` or `as-is`"));
            }
            (_, Some(name)) if hooks.contains_key(name) => found.hooks.push((name.into(), value)),
            (_, Some(name)) => {
                return Err(Problem::error(key, format!("there is no hook `{name}`")).hint(
                    format!("say its command in the study's CSV: `# hook {name}: COMMAND`"),
                ));
            }
            _ => {
                let near = nearest(key, [DATA, CACHE]).unwrap_or(CACHE);
                return Err(Problem::error(key, "a study has no such setting")
                    .hint(format!("did you mean `{near}`?")));
            }
        }
    }
    Ok(found)
}

/// Arguments of a row's run.
pub(super) fn data_arguments(
    row: &Row,
    of_study: &OfStudy,
    settings: &StudySettings,
    csv: &Path,
) -> DataArguments {
    let mut overrides = Vec::new();
    overrides.extend(row.epochs.map(|epochs| format!("++workload.train.epochs={epochs}")));
    overrides.extend(row.seed.map(|seed| format!("++workload.train.seed={seed}")));
    let of_workload = row.settings.iter().filter(|setting| !setting.is_of_study());
    overrides.extend(of_workload.map(Setting::text));
    DataArguments {
        workload: workload(&row.model, csv),
        overrides,
        accelerators: Some(row.accelerators),
        data: of_study.data.clone(),
        scale: row.scale.unwrap_or(settings.scale),
        shrink_records: settings.shrink_records,
        foreign: false,
        json: false,
        quiet: true,
    }
}

/// A file that is not there may lie beside the one that names it: the CSV, or a design.
pub(super) fn workload(model: &str, named_in: &Path) -> String {
    let beside = named_in.parent().map(|folder| folder.join(model));
    match beside.filter(|beside| !Path::new(model).exists() && beside.is_file()) {
        Some(beside) => beside.display().to_string(),
        None => model.into(),
    }
}

/// The same as words of a command line, without the number of accelerators.
pub(super) fn words(data: &DataArguments) -> Vec<String> {
    let mut words = vec![data.workload.clone()];
    words.extend(data.overrides.iter().cloned());
    if let Some(folder) = &data.data {
        words.extend(["--data".into(), folder.display().to_string()]);
    }
    for (flag, share) in [("--scale", data.scale), ("--shrink-records", data.shrink_records)] {
        if share != 1.0 {
            words.extend([flag.into(), share.to_string()]);
        }
    }
    words.push("--quiet".into());
    words
}

/// Plan a row; what is wrong with it, in words.
pub(super) fn plan(data: &DataArguments, cache: &str) -> Result<Planned, String> {
    let cache = match cache {
        "cold" => Cache::Cold,
        "warm" => Cache::Warm,
        _ => Cache::AsIs,
    };
    let wish = PlanOptions { cache, ..PlanOptions::default() };
    let told = |error: anyhow::Error| messages::told(&error);
    let (resolved, _) = resolve_silently(data, data.accelerators, wish).map_err(told)?;
    let estimate = plan::estimate(&resolved.plan, &resolved.catalog);
    let duration = plan::duration(&resolved.plan, &estimate, BYTES_PER_SECOND);
    let mut row_plan = RowPlan {
        dataset: None,
        run_s: duration.total_s() - duration.generation_s,
        generation_s: 0.0,
    };
    let mut is_whole = true;
    if needs_dataset(&resolved).map_err(told)? {
        let want = DatasetRequest { root: &resolved.data_root, foreign: false, check_files: false };
        let choice = dataset::choose(&resolved.plan, &want).map_err(told)?;
        is_whole = !choice.incomplete;
        row_plan.generation_s = duration.generation_s;
        row_plan.dataset = Some(DatasetPlan {
            folder: std::path::absolute(&choice.folder).unwrap_or(choice.folder),
            fingerprint: Manifest::fingerprint_of(&resolved.plan.dataset),
            bytes: estimate.file_bytes + (estimate.files + 1) * BLOCK_BYTES,
        });
    }
    Ok(Planned { plan: row_plan, is_whole })
}

/// Whether files are made for it in a folder.
fn needs_dataset(resolved: &Resolved) -> anyhow::Result<bool> {
    let plan = &resolved.plan;
    if plan.is_checkpoints_alone() || !dataset::is_in_folder(plan) {
        return Ok(false);
    }
    let storage = storage::open(&plan.storage.kind, &resolved.data_root)?;
    Ok(dataset::needs_files(plan, &*storage))
}
