//! Resolves a request to a plan: finds the workload, applies the overrides, and calls the planner.

use crate::catalog::{catalog, estimate};
use crate::output::is_root;
use crate::recognise::refuse_other;
use crate::request::Request;
use crate::store;
use crate::surroundings::ProcessSurroundings;
use feedrate_measure::record::file::{RECORD_FILE, read_text, read_text_bounded};
use feedrate_results::file_kind::FileKind;
use feedrate_results::import::{HYDRA_FOLDERS, RunOrigin, find as find_runs};
use feedrate_results::load_run;
use feedrate_results::place::model_name;
use feedrate_run::{compute, system};
use feedrate_spec::bundled::{self, MlperfStatus, WORKLOADS};
use feedrate_spec::catalog::Ability;
use feedrate_spec::escape::path_text;
use feedrate_spec::listener::Listener;
use feedrate_spec::mlperf::{Division, division_for_key};
use feedrate_spec::plan::{self, Context, Plan, PlanOptions};
use feedrate_spec::problem::{Location, Problem, ProblemSeverity, Problems};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{
    self, Effect, Override, Strictness, Surroundings, Workload, alternatives, overridden_key,
};
use std::path::{Path, PathBuf};

/// A workload and its plan.
#[derive(Clone)]
pub struct Resolved {
    /// The workload with its overrides.
    pub workload: Workload,
    /// Plan of the workload.
    pub plan: Plan,
    /// Folder of the datasets.
    pub data_root: PathBuf,
    /// Warnings about the workload and its plan.
    pub warnings: Problems,
}

impl Resolved {
    /// Returns the maximum utilisation in percent that this client reaches on this machine's cores with the fastest storage. `None` for an ideal
    /// client, and for an unknown compute time.
    pub fn client_utilisation_max_percent(&self) -> Option<f64> {
        let Plan { loader, train, accelerators, .. } = &self.plan;
        let times = if self.workload.dataset_foreign {
            // The sizes of samples in foreign files are unknown before reading.
            loader.client_times(0.0, *accelerators)
        } else {
            estimate(&self.plan).client
        };
        let compute_s = train.slowest_compute_s();
        let cores = crate::threads() as f64 / f64::from((*accelerators).max(1));
        let percent = times?.utilisation_max_percent(compute_s, loader.workers, cores);
        (compute_s > 0.0).then_some(percent)
    }

    /// Reports the warnings.
    pub fn report_warnings(&self, listener: &dyn Listener) {
        for warning in warnings(&self.warnings) {
            listener.important(warning);
        }
    }
}

/// Returns the warnings among problems.
pub fn warnings(problems: &Problems) -> impl Iterator<Item = &Problem> {
    problems.0.iter().filter(|problem| problem.severity == ProblemSeverity::Warning)
}

/// Name that stands for a workload on standard input.
pub const STDIN: &str = "-";

/// Resolves a request. Its workload may be on standard input.
///
/// # Errors
/// Fails if the workload does not exist or cannot be planned.
pub fn resolve(request: &Request) -> anyhow::Result<Resolved> {
    resolve_source(&read(&request.workload)?, request)
}

/// Resolves a request whose workload is not on standard input. Can be called again, unlike [`resolve`].
///
/// # Errors
/// Fails if the workload does not exist or cannot be planned.
pub fn resolve_named(request: &Request) -> anyhow::Result<Resolved> {
    resolve_source(&find(&request.workload)?, request)
}

/// Resolves a request for a workload whose text was already read.
///
/// # Errors
/// Fails if the workload cannot be planned.
pub fn resolve_source(source: &WorkloadSource, request: &Request) -> anyhow::Result<Resolved> {
    let (mut workload, mut warnings) =
        parse(source, request, &ProcessSurroundings::for_request(request)?)?;
    place_checkpoints(&mut workload, request);
    if workload.dataset_foreign && request.is_shrunk() {
        return refuse(
            "`--scale` and `--shrink-records` cannot change foreign files",
            "leave them out; `train.total_training_steps` makes a run shorter",
        );
    }
    let (mut plan, plan_warnings) =
        plan_workload(&workload, &request.plan_options(source.name.clone()))?;
    warnings.0.extend(plan_warnings.0);
    let data_root = request.data.clone().unwrap_or_else(|| data_root(&workload));
    warnings.0.extend(store::configure(&mut plan, &workload, &data_root));
    Ok(Resolved { workload, plan, data_root, warnings })
}

/// Moves the checkpoints into the folder of the datasets that the request names, unless the user chose a folder for them or the data are the
/// user's own. Relative folders of workloads refer to the working folder, which may be on another file system than the one to measure.
fn place_checkpoints(workload: &mut Workload, request: &Request) {
    let folder = Path::new(&workload.checkpoint_checkpoint_folder);
    let location = workload.location("checkpoint.checkpoint_folder");
    let is_chosen = folder.is_absolute()
        || store::is_url(folder)
        || matches!(location, Some(Location::Override(_)));
    let is_ours = !workload.dataset_foreign && has_folder(workload);
    let Some(data) = request.data.as_ref().filter(|_| is_ours && !is_chosen) else { return };
    let folder = data.join(folder.strip_prefix(".").unwrap_or(folder));
    if let Ok(absolute) = std::path::absolute(folder) {
        workload.checkpoint_checkpoint_folder = absolute.to_string_lossy().into_owned();
    }
}

fn parse(
    source: &WorkloadSource,
    request: &Request,
    surroundings: &dyn Surroundings,
) -> anyhow::Result<(Workload, Problems)> {
    let foreign = request.foreign.then(|| "++workload.dataset.foreign=True".to_string());
    let texts: Vec<String> = request.overrides.iter().cloned().chain(foreign).collect();
    let overrides = parse_overrides(&texts, Override::parse)?;
    let WorkloadSource { file, yaml, .. } = source;
    let (mut workload, warnings) =
        workload::parse_in(file, yaml, &overrides, Strictness::Error, surroundings)?;
    store::take_storage(&mut workload, request.data.as_deref())?;
    Ok((workload, warnings))
}

/// Whether the dataset consists of files in a folder. True if the workload cannot be read.
pub fn is_in_folder(request: &Request) -> bool {
    let source = if request.workload == STDIN { None } else { find(&request.workload).ok() };
    let Some((workload, _)) = source.and_then(|source| {
        parse(&source, request, &ProcessSurroundings::for_request(request).ok()?).ok()
    }) else {
        return true;
    };
    has_folder(&workload)
}

/// Whether the storage of a workload does not use the folder `data`.
pub fn ignores(workload: &Workload, data: &Path) -> bool {
    !has_folder(workload) && !store::is_url(data)
}

/// Whether the storage of a workload keeps the dataset in a folder. True if the storage is unknown.
fn has_folder(workload: &Workload) -> bool {
    let storage = catalog().storage(&workload.storage_storage_type);
    storage.is_none_or(|storage| storage.has(Ability::InFolder))
}

/// Returns the workload of a request, without the time in its interpolations. Returns `None` if this process has no access to it: its
/// machine lacks the file, or the workload is on standard input, which only one rank has.
///
/// # Errors
/// Fails if the workload is invalid.
pub fn workload_if_present(request: &Request) -> anyhow::Result<Option<Workload>> {
    let name = &request.workload;
    let is_absent =
        name.is_empty() || name == STDIN || is_file(name) && std::fs::File::open(name).is_err();
    if is_absent {
        return Ok(None);
    }
    Ok(Some(parse(&find(name)?, request, &ProcessSurroundings::at_no_time())?.0))
}

/// Plans a workload on this machine. Returns the plan with its warnings.
///
/// # Errors
/// Fails if the workload cannot be planned.
pub fn plan_workload(
    workload: &Workload,
    options: &PlanOptions,
) -> Result<(Plan, Problems), Problems> {
    let compute = workload.compute.as_deref();
    let devices =
        if options.generate_only { None } else { compute.and_then(compute::count_devices) };
    let checkpoints = Path::new(&workload.checkpoint_checkpoint_folder);
    let context = Context {
        memory_bytes: system::memory_bytes(),
        checkpoint_free_bytes: if store::is_url(checkpoints) {
            None
        } else {
            system::free_bytes(checkpoints)
        },
        devices: devices.as_ref().map(|known| known.as_ref().copied().map_err(String::as_str)),
        entropy: entropy(),
    };
    let (plan, problems) = plan::build(workload, options, &catalog(), context)?;
    if plan.checkpoint.is_some() && is_root(checkpoints) {
        let message = "is the root of the file system";
        let problem = Problem::error("checkpoint.checkpoint_folder", message);
        return Err(Problems(vec![problem.hint("name a folder in it")]));
    }
    Ok((plan, problems))
}

/// Returns the folder of a workload's datasets, or their URL in a store.
pub fn data_root(workload: &Workload) -> PathBuf {
    if let Some(url) = store::data_url(workload) {
        return url;
    }
    Path::new(&workload.storage_storage_root).join(&workload.dataset_data_folder)
}

/// Returns the name of a folder. The workload for the files in the folder has this name.
pub fn stem(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_default();
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "folder".into())
}

/// Returns the name that the workload of a request has in results. The workload may not exist.
pub fn workload_name(request: &Request) -> String {
    match (&*request.workload, &request.data) {
        ("", Some(data)) => stem(data),
        (STDIN, _) => "stdin".into(),
        (wanted, _) => find(wanted).map_or_else(|_| model_name(wanted), |source| source.name),
    }
}

/// Whether a workload is named by a file, rather than by the name of a bundled workload.
pub fn is_file(workload: &str) -> bool {
    let extension = Path::new(workload).extension();
    workload.contains('/')
        || extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Returns the MLPerf status of a request's workload. `None` if it has no status, or if it is official but the request shrinks it or
/// changes a setting that closed submissions may not change.
pub fn mlperf_status(request: &Request) -> Option<MlperfStatus> {
    let name = &request.workload;
    let bundled = if is_file(name) { None } else { bundled::find(name) };
    let is_forbidden_change =
        |given: &String| division_for_key(overridden_key(given)) != Division::Closed;
    let is_changed = request.is_shrunk() || request.overrides.iter().any(is_forbidden_change);
    bundled?.status.filter(|status| *status != MlperfStatus::Official || !is_changed)
}

/// The text of a workload.
pub struct WorkloadSource {
    /// Name of a bundled workload, or the file's stem.
    pub name: String,
    /// Name of the file for messages.
    pub file: String,
    /// Text of the workload.
    pub yaml: String,
}

/// Like [`find`], but also reads standard input, which is possible only once.
///
/// # Errors
/// Fails if the workload cannot be read.
pub fn read(wanted: &str) -> anyhow::Result<WorkloadSource> {
    if wanted != STDIN {
        return find(wanted);
    }
    let yaml = read_text(Path::new("/dev/stdin")).map_err(|error| {
        Refusal::new(
            format!("cannot read the workload from stdin: {error}"),
            "give its YAML, as in `feedrate run - < my.yaml`",
        )
    })?;
    Ok(WorkloadSource { name: "stdin".into(), file: "<stdin>".into(), yaml })
}

/// Finds the workload that `wanted` names: a bundled workload, a file, or the folder of a run.
///
/// # Errors
/// Fails if there is none, or if the path is something else.
pub fn find(wanted: &str) -> anyhow::Result<WorkloadSource> {
    let bundled = if is_file(wanted) { None } else { bundled::find(wanted) };
    if let Some(bundled) = bundled {
        let name = wanted.into();
        return Ok(WorkloadSource { name, file: bundled.file(), yaml: bundled.yaml.into() });
    }
    if is_run(wanted) {
        return run_source(wanted, load_run(Path::new(wanted))?.plan.workload);
    }
    if wanted.is_empty() {
        return refuse(
            "which workload?",
            "name one; `feedrate run --data DIR --write-yaml FILE` writes one for a folder",
        );
    }
    let file = Path::new(wanted);
    let text = file.is_file().then(|| read_text(file));
    let kind = text.iter().flatten().find_map(|text| FileKind::from_text(text));
    if let Some(other_kind) = kind.filter(|kind| *kind != FileKind::Workload) {
        let (message, hint) = other_kind.mismatch(FileKind::Workload, file);
        return refuse(message, hint);
    }
    if let [newest, ..] = &runs_below(file)[..] {
        let newest_run = path_text(newest);
        return refuse(
            format!("`{wanted}` contains runs, but is not a run"),
            format!(
                "name a run; the newest is `{newest_run}`; `feedrate analyze {wanted}` reads all"
            ),
        );
    }
    if file.exists() {
        refuse_other(file)?;
    } else if !is_file(wanted) {
        return Err(unknown_workload(wanted).into());
    }
    let yaml = text.unwrap_or_else(|| read_text(file)).map_err(|error| {
        Refusal::new(
            format!("cannot read workload `{wanted}`: {error}"),
            "give a YAML file, or a name from `feedrate list workloads`",
        )
    })?;
    Ok(WorkloadSource { name: model_name(wanted), file: wanted.to_string(), yaml })
}

/// Whether the user wrote the workload, rather than naming a bundled workload or an earlier run.
pub fn is_users_file(workload: &str) -> bool {
    workload == STDIN || is_file(workload) && !is_run(workload)
}

/// Whether `wanted` is the folder of a run.
pub fn is_run(wanted: impl AsRef<Path>) -> bool {
    wanted.as_ref().join(RECORD_FILE).is_file()
}

/// Returns the folder of the run that `wanted` names: `wanted` itself, or the newest run below it. Reports which run was chosen.
pub fn run_folder(wanted: &Path, listener: &dyn Listener) -> PathBuf {
    let mut runs = if is_run(wanted) { Vec::new() } else { runs_below(wanted) };
    if runs.is_empty() {
        return wanted.into();
    }
    let count = runs.len();
    let newest = runs.swap_remove(0);
    let folder = path_text(wanted);
    let name = path_text(&newest);
    listener.note(match count {
        1 => format!("the run in `{folder}`: {name}"),
        count => format!("the newest of {count} runs in `{folder}`: {name}"),
    });
    newest
}

/// Returns the folders of feedrate's runs below a folder, the newest first.
pub fn runs_below(folder: &Path) -> Vec<PathBuf> {
    let (found, _) = find_runs(folder).unwrap_or_default();
    let ours = found.into_iter().filter(|run| run.origin == RunOrigin::Feedrate);
    let modified =
        |run: &Path| std::fs::metadata(run.join(RECORD_FILE)).and_then(|file| file.modified()).ok();
    let mut runs: Vec<_> = ours.map(|run| (modified(&run.path), run.path)).collect();
    runs.sort_by(|a, b| b.cmp(a));
    runs.into_iter().map(|(_, run)| run).collect()
}

/// Reads the workload of the run in `folder`, including its overrides, and calls it `name`.
///
/// # Errors
/// Fails if the workload cannot be read.
pub fn run_source(folder: &str, name: String) -> anyhow::Result<WorkloadSource> {
    let files = HYDRA_FOLDERS.map(|name| Path::new(folder).join(name).join("config.yaml"));
    let file = files.iter().find(|file| file.is_file()).unwrap_or(&files[0]);
    let yaml = read_text_bounded(file).map_err(|error| {
        Refusal::new(
            format!("cannot read the workload of the run in `{folder}`: {error}"),
            "give the workload as a file or by its name",
        )
    })?;
    Ok(WorkloadSource { name, file: file.display().to_string(), yaml })
}

fn unknown_workload(wanted: &str) -> Refusal {
    let message = format!("there is no bundled workload `{wanted}`");
    if let Some(current) = bundled::current_name(wanted) {
        // A former name without an accelerator stands for all of them.
        let model = current.split('_').next().unwrap_or(current);
        let others = WORKLOADS.iter().map(|workload| workload.name);
        let others: Vec<&str> = others
            .filter(|name| *name != current && name.split('_').next() == Some(model))
            .collect();
        let others = match alternatives(&others) {
            Some(others) => format!("; there is also {others}"),
            None => String::new(),
        };
        return Refusal::new(message, format!("it is called `{current}` now{others}"));
    }
    Refusal::unknown_name(
        message,
        wanted,
        WORKLOADS.iter().map(|workload| workload.name),
        "`feedrate list` shows all; the name of a YAML file includes its extension, such as `my.yaml`",
    )
}

/// Parses overrides with `read`.
///
/// # Errors
/// Returns the problems of all overrides.
pub fn parse_overrides(
    texts: &[String],
    read: fn(&str) -> Result<Override, Problem>,
) -> Result<Vec<Override>, Problems> {
    let problems: Vec<Problem> = texts.iter().filter_map(|text| read(text).err()).collect();
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    Ok(texts.iter().filter_map(|text| read(text).ok()).collect())
}

/// Returns a seed for random orders. The plan records it.
pub fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// A given key without effect in this run.
#[derive(Clone, Copy, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct IneffectiveKey {
    /// The key, such as `reader.pin_memory`.
    pub key: &'static str,
    /// The reason.
    pub reason: &'static str,
}

impl std::fmt::Display for IneffectiveKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.key, self.reason)
    }
}

/// Returns the keys without effect that the user wrote. Keys of a bundled workload do not count.
pub fn ineffective_keys_of_user<'w>(
    workload: &'w Workload,
    request: &Request,
) -> impl Iterator<Item = IneffectiveKey> + use<'w> {
    let is_users_file = is_users_file(&request.workload);
    ineffective_keys(workload).filter(move |key| {
        is_users_file || matches!(workload.location(key.key), Some(Location::Override(_)))
    })
}

/// Returns the given keys of a workload that have no effect on its plan.
pub fn ineffective_keys(workload: &Workload) -> impl Iterator<Item = IneffectiveKey> {
    workload.given_without_effect().map(|key| {
        let reason = match key.effect {
            Effect::Nothing { reason } => reason,
            Effect::NotYet { .. } => "not built yet",
            Effect::Now => "this plan does not need it",
        };
        IneffectiveKey { key: key.path, reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_loaders_is_that_of_one_host() {
        let overrides = ["dataset.num_files_train=56", "reader.read_type=memory"];
        let request = Request {
            accelerators: Some(8),
            processes: Some(8),
            overrides: overrides.map(String::from).into(),
            ..Request::for_workload("unet3d_b200")
        };
        let source = find(&request.workload).unwrap();
        let workload = parse(&source, &request, &ProcessSurroundings::at_no_time()).unwrap().0;
        let plan = |host_processes: Option<u32>, memory_bytes: u64| {
            let request = Request { host_processes, ..request.clone() };
            let options = request.plan_options("unet3d_b200".into());
            let context = Context { memory_bytes: Some(memory_bytes), ..Context::default() };
            plan::build(&workload, &options, &catalog(), context)
        };
        let needed = estimate(&plan(None, u64::MAX).unwrap().0).loader_memory_bytes as u64;
        assert!(56 * 140_000_000 < needed, "{needed}");
        for (host_processes, host_bytes) in [
            (None, needed),
            (Some(8), needed),
            (Some(7), needed / 8 * 7),
            (Some(4), needed / 2),
            (Some(1), needed / 8),
        ] {
            assert!(plan(host_processes, host_bytes + 10).is_ok(), "{host_processes:?}");
            let refused = plan(host_processes, host_bytes - 10).unwrap_err().to_string();
            assert!(refused.contains("the loaders on a machine need"), "{refused}");
        }
    }
}
