//! From the command line to a plan: find the workload, apply the overrides, plan.

use crate::bundled::{Bundled, WORKLOADS};
use crate::catalog::catalog;
use crate::cli::DataArguments;
use crate::exit::UsageError;
use crate::messages;
use feedrate_results::place::model_name;
use feedrate_run::{compute, system};
use feedrate_spec::catalog::Catalog;
use feedrate_spec::plan::{self, Cache, Context, Plan, Request};
use feedrate_spec::problem::{Problem, Problems, Severity};
use feedrate_spec::workload::{self, Effect, Override, Strictness, Workload};
use std::path::{Path, PathBuf};

/// A workload and its plan.
pub(crate) struct Resolved {
    /// The workload as asked for.
    pub(crate) workload: Workload,
    /// The plan made of it.
    pub(crate) plan: Plan,
    /// The members to choose from.
    pub(crate) catalog: Catalog,
    /// Where datasets lie.
    pub(crate) data_root: PathBuf,
}

/// The part of a plan that a command needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanOptions {
    /// Folder of the run; `None` where nothing is run now.
    pub(crate) processes: Option<u32>,
    /// `--cold`, `--warm`.
    pub(crate) cache: Cache,
    /// `--verify`.
    pub(crate) verify: bool,
    /// Nothing is trained.
    pub(crate) generate_only: bool,
}

/// Resolve `arguments`. Warnings are said on stderr.
pub(crate) fn resolve(arguments: &DataArguments, options: PlanOptions) -> anyhow::Result<Resolved> {
    resolve_for(arguments, arguments.accelerators, options)
}

/// As [`resolve`], for so many accelerators, whatever the arguments say.
pub(crate) fn resolve_for(
    arguments: &DataArguments,
    accelerators: Option<u32>,
    options: PlanOptions,
) -> anyhow::Result<Resolved> {
    let (resolved, warnings) = resolve_silently(arguments, accelerators, options)?;
    warn(&warnings);
    Ok(resolved)
}

/// As [`resolve_for`]; warnings are the caller's to say.
pub(crate) fn resolve_silently(
    arguments: &DataArguments,
    accelerators: Option<u32>,
    options: PlanOptions,
) -> anyhow::Result<(Resolved, Problems)> {
    if arguments.foreign && (arguments.scale != 1.0 || arguments.shrink_records != 1.0) {
        return Err(UsageError::new("`--foreign` files are as many and as large as they are", "leave `--scale` and `--shrink-records` out; `train.total_training_steps` makes a run shorter")
        .into());
    }
    let (name, file, yaml) = find(&arguments.workload)?;
    let overrides = overrides(&arguments.overrides, Override::parse)?;
    let (workload, mut warnings) = workload::parse(&file, &yaml, &overrides, Strictness::Error)?;
    let request = Request {
        name,
        accelerators,
        processes: options.processes,
        scale: arguments.scale,
        shrink_records: arguments.shrink_records,
        cache: options.cache,
        verify: options.verify,
        generate_only: options.generate_only,
    };
    let catalog = catalog();
    let (plan, of_plan) = plan_of(&workload, &request, &catalog)?;
    warnings.0.extend(of_plan.0);
    let data_root = arguments.data.clone().unwrap_or_else(|| data_root(&workload));
    Ok((Resolved { workload, plan, catalog, data_root }, warnings))
}

/// The plan of a workload on this machine, and its warnings.
pub(crate) fn plan_of(
    workload: &Workload,
    request: &Request,
    catalog: &Catalog,
) -> Result<(Plan, Problems), Problems> {
    let compute = workload.compute.as_deref();
    let devices =
        if request.generate_only { None } else { compute.and_then(compute::count_devices) };
    let checkpoints = Path::new(&workload.checkpoint_checkpoint_folder);
    let context = Context {
        memory_bytes: system::memory_bytes(),
        checkpoint_free_bytes: system::mount_of(checkpoints).map(|mount| mount.free_bytes),
        devices: devices.as_ref().map(|known| known.as_ref().copied().map_err(String::as_str)),
        entropy: entropy(),
    };
    plan::build(workload, request, catalog, context)
}

/// Where a workload's datasets lie.
pub(crate) fn data_root(workload: &Workload) -> PathBuf {
    Path::new(&workload.storage_storage_root).join(&workload.dataset_data_folder)
}

/// Whether a workload's name is that of a file.
pub(crate) fn is_file(workload: &str) -> bool {
    let extension = Path::new(workload).extension();
    workload.contains('/') || extension.is_some_and(|e| e == "yaml" || e == "yml")
}

/// (name, what places call the file, text).
pub(crate) fn find(wanted: &str) -> anyhow::Result<(String, String, String)> {
    if !is_file(wanted) {
        let bundled = WORKLOADS.iter().find(|w| w.name == wanted).ok_or_else(|| unknown(wanted))?;
        return Ok(of_bundled(bundled));
    }
    let yaml = std::fs::read_to_string(wanted).map_err(|error| {
        UsageError::new(
            format!("cannot read workload `{wanted}`: {error}"),
            "give a YAML file, or a name from `feedrate list workloads`",
        )
    })?;
    Ok((model_name(wanted), wanted.to_string(), yaml))
}

/// A bundled workload as [`resolve`] takes it.
pub(crate) fn of_bundled(bundled: &Bundled) -> (String, String, String) {
    (bundled.name.into(), format!("{}.yaml", bundled.name), bundled.yaml.into())
}

fn unknown(wanted: &str) -> UsageError {
    UsageError::unknown(
        format!("there is no bundled workload `{wanted}`"),
        wanted,
        WORKLOADS.iter().map(|w| w.name),
        "see `feedrate list workloads`, or give a YAML file as `./NAME.yaml`",
    )
}

/// Overrides as `read` takes each; all that is wrong with them.
pub(crate) fn overrides(
    texts: &[String],
    read: fn(&str) -> Result<Override, Problem>,
) -> Result<Vec<Override>, Problems> {
    let mut problems = Problems::default();
    let mut overrides = Vec::new();
    for text in texts {
        match read(text) {
            Ok(parsed) => overrides.push(parsed),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.has_errors() { Err(problems) } else { Ok(overrides) }
}

fn warn(problems: &Problems) {
    for problem in problems.0.iter().filter(|p: &&Problem| p.severity == Severity::Warning) {
        messages::say(problem);
    }
}

/// A seed for orders that the user wants random; kept in the plan.
pub(crate) fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// A key that was given and changes nothing in this run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Unheeded {
    /// `reader.pin_memory`.
    pub(crate) key: &'static str,
    /// The reason.
    pub(crate) reason: &'static str,
}

impl std::fmt::Display for Unheeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.key, self.reason)
    }
}

/// The given keys of a plan that was made, of which each that matters was heeded.
pub(crate) fn unheeded(workload: &Workload) -> impl Iterator<Item = Unheeded> {
    workload.given_without_effect().map(|key| {
        let reason = match key.effect {
            Effect::Nothing { reason } => reason,
            Effect::NotYet { .. } | Effect::Now => "this plan does not reach it",
        };
        Unheeded { key: key.path, reason }
    })
}
