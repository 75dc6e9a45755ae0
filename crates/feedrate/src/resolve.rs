//! From the command line to a plan: find the workload, apply the overrides, plan.

use crate::asked::Asked;
use crate::bundled::{self, MlperfStatus, WORKLOADS};
use crate::catalog::{catalog, estimate};
use crate::cli::{DataArguments, LaunchArguments};
use crate::exit::{UsageError, refuse};
use crate::messages;
use crate::output::is_root;
use crate::recognise::refuse_other;
use clap::ArgMatches;
use feedrate_measure::record::file::{RECORD_FILE, read_text, read_text_bounded};
use feedrate_results::file_kind::FileKind;
use feedrate_results::import::{RunOrigin, find as find_runs};
use feedrate_results::load_run;
use feedrate_results::place::model_name;
use feedrate_run::{compute, system};
use feedrate_spec::catalog::Ability;
use feedrate_spec::escape::shown_path;
use feedrate_spec::mlperf::{Division, division_of};
use feedrate_spec::plan::{self, Context, Plan, Request};
use feedrate_spec::problem::{Place, Problem, ProblemSeverity, Problems};
use feedrate_spec::workload::{self, Effect, Override, Strictness, Workload, overridden_key};
use std::path::{Path, PathBuf};

/// A workload and its plan.
#[derive(Clone)]
pub(crate) struct Resolved {
    /// The workload as asked for.
    pub(crate) workload: Workload,
    /// The plan made of it.
    pub(crate) plan: Plan,
    /// Where datasets lie.
    pub(crate) data_root: PathBuf,
}

impl Resolved {
    /// The highest utilisation that the client alone leaves on the cores of this machine, whatever the storage; `None` of an ideal one, and where the
    /// compute time is not known.
    pub(crate) fn client_leaves_percent(&self) -> Option<f64> {
        let Plan { loader, train, accelerators, .. } = &self.plan;
        let times = if self.workload.dataset_foreign {
            // How long their samples are is not known before they are read.
            loader.client_times(0.0)
        } else {
            estimate(&self.plan).client
        };
        let compute_s = train.slowest_compute_s();
        let cores = crate::threads() as f64 / f64::from((*accelerators).max(1));
        let percent = times?.leaves_percent(compute_s, loader.workers, cores);
        (compute_s > 0.0).then_some(percent)
    }
}

/// The workload that is read from stdin.
pub(crate) const STDIN: &str = "-";

/// Resolve `arguments`, for the rest as `request` says. Warnings are said on stderr.
pub(crate) fn resolve(arguments: &DataArguments, request: Request) -> anyhow::Result<Resolved> {
    let (resolved, warnings) = resolve_source(&read(&arguments.workload)?, arguments, request)?;
    tell_warnings(&warnings);
    Ok(resolved)
}

/// Say them on stderr.
pub(crate) fn tell_warnings(problems: &Problems) {
    for warning in problems.0.iter().filter(|p| p.severity == ProblemSeverity::Warning) {
        messages::say(warning);
    }
}

/// As [`resolve`]; warnings are the caller's to say.
pub(crate) fn resolve_silently(
    arguments: &DataArguments,
    request: Request,
) -> anyhow::Result<(Resolved, Problems)> {
    resolve_source(&find(&arguments.workload)?, arguments, request)
}

/// As [`resolve_silently`], of a text that was read before.
pub(crate) fn resolve_source(
    source: &WorkloadSource,
    arguments: &DataArguments,
    request: Request,
) -> anyhow::Result<(Resolved, Problems)> {
    let (workload, mut warnings) = parse(source, arguments)?;
    if workload.dataset_foreign && (arguments.scale != 1.0 || arguments.shrink_records != 1.0) {
        return refuse(
            "files that others made are as many and as large as they are",
            "leave `--scale` and `--shrink-records` out; `train.total_training_steps` makes a run shorter",
        );
    }
    let name = source.name.clone();
    let (accelerators, scale) = (arguments.accelerators, arguments.scale);
    let shrink_records = arguments.shrink_records;
    let request = Request { name, accelerators, scale, shrink_records, ..request };
    let (plan, of_plan) = plan_of(&workload, &request)?;
    warnings.0.extend(of_plan.0);
    let data_root = arguments.data.clone().unwrap_or_else(|| data_root(&workload));
    Ok((Resolved { workload, plan, data_root }, warnings))
}

fn parse(
    source: &WorkloadSource,
    arguments: &DataArguments,
) -> anyhow::Result<(Workload, Problems)> {
    let foreign = arguments.foreign.then(|| "++workload.dataset.foreign=True".to_string());
    let texts: Vec<String> = arguments.overrides.iter().cloned().chain(foreign).collect();
    let overrides = overrides(&texts, Override::parse)?;
    Ok(workload::parse(&source.file, &source.yaml, &overrides, Strictness::Error)?)
}

/// Whether files are made or read in the folder of the data, as far as the workload can be read.
pub(crate) fn is_in_folder(arguments: &DataArguments) -> bool {
    let source = if arguments.workload == STDIN { None } else { find(&arguments.workload).ok() };
    let Some((workload, _)) = source.and_then(|source| parse(&source, arguments).ok()) else {
        return true;
    };
    let storage = catalog().storage(&workload.storage_storage_type);
    storage.is_none_or(|storage| storage.has(Ability::InFolder))
}

/// Options that all processes of a run have to agree on, beside the workload's keys.
const AGREED: [&str; 11] = [
    "--accelerators",
    "--data",
    "--scale",
    "--shrink-records",
    "--foreign",
    "--results",
    "--run-dir",
    "--cold",
    "--warm",
    "--verify",
    "--trace",
];

/// A process's wishes for a workload; `matches` are those of its command.
pub(crate) fn asked(
    arguments: &DataArguments,
    launch: &LaunchArguments,
    matches: &ArgMatches,
) -> Asked {
    let workload = &arguments.workload;
    let options = AGREED.iter().map(|&option| {
        let id = option.trim_start_matches('-').replace('-', "_");
        let mut values = matches.try_get_raw(&id).ok().flatten().into_iter().flatten();
        (option, values.next().map(|value| value.to_string_lossy().into_owned()))
    });
    // Another machine need not have the file, and stdin is that of one rank.
    let is_absent = workload.is_empty()
        || workload == STDIN
        || is_file(workload) && std::fs::File::open(workload).is_err();
    let parsed = || Ok(Some(parse(&find(workload)?, arguments)?.0));
    let workload = if is_absent { Ok(None) } else { parsed() };
    Asked::new(launch, options).workload(workload)
}

/// The plan of a workload on this machine, and its warnings.
pub(crate) fn plan_of(
    workload: &Workload,
    request: &Request,
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
    let (plan, problems) = plan::build(workload, request, &catalog(), context)?;
    if plan.checkpoint.is_some() && is_root(checkpoints) {
        let problem = "is the root of the file system";
        let problem = Problem::error("checkpoint.checkpoint_folder", problem);
        return Err(Problems(vec![problem.hint("name a folder in it")]));
    }
    Ok((plan, problems))
}

/// Where a workload's datasets lie.
pub(crate) fn data_root(workload: &Workload) -> PathBuf {
    Path::new(&workload.storage_storage_root).join(&workload.dataset_data_folder)
}

/// A folder's own name, for the workload made of it.
pub(crate) fn stem(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_default();
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "folder".into())
}

/// Whether a workload's name is that of a file.
pub(crate) fn is_file(workload: &str) -> bool {
    let extension = Path::new(workload).extension();
    workload.contains('/') || extension.is_some_and(|e| e == "yaml" || e == "yml")
}

/// The status of the workload that `arguments` name. It is not official with settings that submissions may not change.
pub(crate) fn mlperf_status(arguments: &DataArguments) -> Option<MlperfStatus> {
    let name = &arguments.workload;
    let bundled = if is_file(name) { None } else { bundled::find(name) };
    let changes = |given: &String| division_of(overridden_key(given)) != Division::Closed;
    let is_shrunk = arguments.scale != 1.0 || arguments.shrink_records != 1.0;
    let is_changed = is_shrunk || arguments.overrides.iter().any(changes);
    bundled?.status.filter(|status| *status != MlperfStatus::Official || !is_changed)
}

/// The text of a workload.
pub(crate) struct WorkloadSource {
    /// A bundled name, or the file's stem.
    pub(crate) name: String,
    /// Name of the file in places.
    pub(crate) file: String,
    /// Its text.
    pub(crate) yaml: String,
}

/// As [`find`], or from stdin, once.
pub(crate) fn read(wanted: &str) -> anyhow::Result<WorkloadSource> {
    if wanted != STDIN {
        return find(wanted);
    }
    let yaml = read_text(Path::new("/dev/stdin")).map_err(|error| {
        UsageError::new(
            format!("cannot read the workload from stdin: {error}"),
            "give its YAML, as in `feedrate run - < my.yaml`",
        )
    })?;
    Ok(WorkloadSource { name: "stdin".into(), file: "<stdin>".into(), yaml })
}

/// The workload of this name, of this file, or of the run in this folder.
pub(crate) fn find(wanted: &str) -> anyhow::Result<WorkloadSource> {
    let bundled = if is_file(wanted) { None } else { bundled::find(wanted) };
    if let Some(bundled) = bundled {
        let (file, yaml) = (bundled.file(), bundled.yaml.into());
        return Ok(WorkloadSource { name: wanted.into(), file, yaml });
    }
    if is_run(wanted) {
        return of_run(wanted, load_run(Path::new(wanted))?.plan.workload);
    }
    if wanted.is_empty() {
        return refuse(
            "which workload?",
            "name one; `feedrate run --data DIR --write-yaml FILE` makes one of a folder",
        );
    }
    let file = Path::new(wanted);
    let text = file.is_file().then(|| read_text(file));
    let other = text.iter().flatten().find_map(|text| FileKind::from_text(text));
    if let Some(other) = other.filter(|kind| *kind != FileKind::Workload) {
        let (message, hint) = other.instead_of(FileKind::Workload, file);
        return refuse(message, hint);
    }
    if let [newest, ..] = &runs_below(file)[..] {
        let newest = shown_path(newest);
        return refuse(
            format!("`{wanted}` holds runs, and is none itself"),
            format!("name one; the newest is `{newest}`; `feedrate analyze {wanted}` reads all"),
        );
    }
    if file.exists() {
        refuse_other(file)?;
    } else if !is_file(wanted) {
        return Err(unknown(wanted).into());
    }
    let yaml = text.unwrap_or_else(|| read_text(file)).map_err(|error| {
        UsageError::new(
            format!("cannot read workload `{wanted}`: {error}"),
            "give a YAML file, or a name from `feedrate list workloads`",
        )
    })?;
    Ok(WorkloadSource { name: model_name(wanted), file: wanted.to_string(), yaml })
}

/// Whether its keys are the user's own words, not those of a bundled workload or of an earlier run.
pub(crate) fn is_own(workload: &str) -> bool {
    workload == STDIN || is_file(workload) && !is_run(workload)
}

/// Whether a workload's name is the folder of a run.
pub(crate) fn is_run(wanted: impl AsRef<Path>) -> bool {
    wanted.as_ref().join(RECORD_FILE).is_file()
}

/// The folder of the run that `wanted` names: its own, or the newest below it, which is told. Of another name nothing is known.
pub(crate) fn run_folder(wanted: &Path) -> PathBuf {
    let mut runs = if is_run(wanted) { Vec::new() } else { runs_below(wanted) };
    if runs.is_empty() {
        return wanted.into();
    }
    let (all, newest) = (runs.len(), runs.swap_remove(0));
    let (folder, name) = (shown_path(wanted), shown_path(&newest));
    messages::note(match all {
        1 => format!("the run in `{folder}`: {name}"),
        all => format!("the newest of {all} runs in `{folder}`: {name}"),
    });
    newest
}

/// The folders of our runs below a folder, the newest first.
fn runs_below(folder: &Path) -> Vec<PathBuf> {
    let (found, _) = find_runs(folder).unwrap_or_default();
    let own = found.into_iter().filter(|run| run.origin == RunOrigin::Feedrate);
    let begun =
        |run: &Path| std::fs::metadata(run.join(RECORD_FILE)).and_then(|of| of.modified()).ok();
    let mut runs: Vec<_> = own.map(|run| (begun(&run.path), run.path)).collect();
    runs.sort_by(|a, b| b.cmp(a));
    runs.into_iter().map(|(_, run)| run).collect()
}

/// The workload, called `name`, of the run in `folder`, with all that was overridden.
pub(crate) fn of_run(folder: &str, name: String) -> anyhow::Result<WorkloadSource> {
    let file = Path::new(folder).join(".hydra").join("config.yaml");
    let yaml = read_text_bounded(&file).map_err(|error| {
        UsageError::new(
            format!("cannot read the workload of the run in `{folder}`: {error}"),
            "give the workload itself, as a file or by its name",
        )
    })?;
    Ok(WorkloadSource { name, file: file.display().to_string(), yaml })
}

fn unknown(wanted: &str) -> UsageError {
    UsageError::unknown(
        format!("there is no bundled workload `{wanted}`"),
        wanted,
        WORKLOADS.iter().map(|w| w.name),
        "`feedrate list` has all; a YAML file is named with its ending, as in `my.yaml`",
    )
}

/// Overrides as `read` takes each; all that is wrong with them.
pub(crate) fn overrides(
    texts: &[String],
    read: fn(&str) -> Result<Override, Problem>,
) -> Result<Vec<Override>, Problems> {
    let problems: Vec<Problem> = texts.iter().filter_map(|text| read(text).err()).collect();
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    Ok(texts.iter().filter_map(|text| read(text).ok()).collect())
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

/// Those of them that are words of the user: what a bundled workload says is none.
pub(crate) fn unheeded_words<'w>(
    workload: &'w Workload,
    arguments: &DataArguments,
) -> impl Iterator<Item = Unheeded> + use<'w> {
    let is_own = is_own(&arguments.workload);
    unheeded(workload)
        .filter(move |of| is_own || matches!(workload.place(of.key), Some(Place::Override(_))))
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
