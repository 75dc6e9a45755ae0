//! `feedrate plan`: prints the plan of a run and what it requires, without running it.

use super::mlperf::{self, PlannedCommand};
use crate::cli::{DataArguments, parse_count, parse_size};
use crate::exit::Exit;
use crate::progress::TERMINAL;
use crate::{messages, text};
use clap::Args;
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_report::output::{OpenObject, Schema};
use feedrate_report::words::{self, schedule};
use feedrate_results::run::{CheckpointSchedule, MlperfClass};
use feedrate_session::dataset::{self, Files};
use feedrate_session::folder;
use feedrate_session::mlperf::{
    CheckpointRequirement, Hosts, MlperfOutput, Requirement, enlarge_dataset,
};
use feedrate_session::request::Request;
use feedrate_session::resolve::IneffectiveKey;
use feedrate_session::resolve::{
    Resolved, ineffective_keys, ineffective_keys_of_user, mlperf_status,
};
use feedrate_session::{catalog, room};
use feedrate_spec::plan::{
    CheckpointPlan, DatasetPlan, Estimate, EvaluationPlan, LoaderPlan, ObjectPlan, Plan, PlanDoubt,
    ReadAhead, ReadUnit, RequiredLatency, emulated_epoch_s, may_share_reads, required_latency,
};
use feedrate_spec::units;
use feedrate_spec::workload::resolved_yaml;
use schemars::JsonSchema;
use serde::Serialize;

/// `feedrate plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Memory of each client host [default: this machine's]. It determines the size of an MLPerf dataset. The "GB" of `mlpstorage` are GiB: write
    /// `256GiB` for its 256.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING)]
    memory: Option<u64>,
    /// Number of client hosts.
    #[arg(long, value_name = "H", default_value_t = 1, value_parser = parse_count::<u32>, help_heading = HEADING)]
    hosts: u32,
}

const HEADING: &str = "MLPerf Storage";
/// Smallest share by which the mean of drawn sizes differs noticeably from that of their distribution.
const DRAWN_DIFFERENCE_MIN: f64 = 0.01;

/// Prints the plan.
pub(crate) fn plan(arguments: &PlanArguments) -> anyhow::Result<Exit> {
    let hosts = Hosts { memory_bytes: arguments.memory, count: arguments.hosts };
    let request = &arguments.data.request();
    let json = arguments.data.json;
    let options = |own_files| PageOptions { hosts, own_files, command: PlannedCommand::Run, json };
    match folder::resolve(request, &TERMINAL) {
        Ok(resolved) => show(resolved, request, &options(None)),
        // If the workload has too few files, the plan reports how many MLPerf's rules require.
        Err(refusal) => match enlarge_dataset(request, hosts) {
            Some((enough, own_files)) => {
                let resolved = folder::resolve(&enough, &TERMINAL)?;
                show(resolved, &enough, &options(Some(own_files)))
            }
            None => Err(refusal),
        },
    }
}

/// Prints the plan for the `--dry-run` of another command.
pub(super) fn dry_run(
    request: &Request,
    command: PlannedCommand,
    json: bool,
) -> anyhow::Result<Exit> {
    let resolved = folder::resolve(request, &TERMINAL)?;
    let hosts = Hosts { memory_bytes: None, count: 1 };
    show(resolved, request, &PageOptions { hosts, own_files: None, command, json })
}

/// What the page of a plan contains.
struct PageOptions {
    /// The hosts of the accelerators.
    hosts: Hosts,
    /// The workload's number of files; `None` if the plan uses this number.
    own_files: Option<u64>,
    command: PlannedCommand,
    /// Whether the plan is printed as JSON.
    json: bool,
}

/// Output of `plan --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct PlanOutput<'a> {
    /// All decisions that are made before the run.
    #[schemars(with = "OpenObject")]
    plan: &'a Plan,
    /// Estimated bytes, memory, times and required rate.
    #[schemars(with = "OpenObject")]
    estimate: Estimate,
    /// Free bytes on the data folder's file system.
    free_bytes: Option<u64>,
    /// Plan of checkpoints; `null` without checkpoints.
    #[schemars(with = "Option<OpenObject>")]
    checkpoint: Option<&'a CheckpointPlan>,
    /// MLPerf Storage's requirements on files and utilisation; `null` if it has none for the workload.
    mlperf: Option<MlperfOutput>,
    /// The memory that MLPerf Storage's checkpoints need, and the rules; `null` for other workloads.
    mlperf_checkpoint: Option<CheckpointRequirement>,
    /// The official class of the configuration; `null` for a workload whose model has no classes.
    mlperf_class: Option<MlperfClass>,
    /// Keys that were set and have no effect.
    without_effect: Vec<IneffectiveKey>,
    /// The workload with all overrides, as YAML.
    config: String,
}

/// Prints a plan.
fn show(resolved: Resolved, request: &Request, options: &PageOptions) -> anyhow::Result<Exit> {
    let PageOptions { hosts, own_files, command, json } = *options;
    if resolved.workload.dataset_foreign {
        let names = tempfile::tempdir()?;
        let names = &names.path().join(NAMES_FILE);
        let files = Files::Foreign { names, probed: None, members: None };
        dataset::choose(&resolved.plan, &resolved.data_root, files, &TERMINAL)?;
    }
    let Resolved { plan, data_root, .. } = &resolved;
    let is_ours = !plan.is_checkpoint_only() && !resolved.workload.dataset_foreign;
    // Free space is checked only if the user named the storage, or for `run --dry-run`.
    let has_storage = request.data.is_some() || request.processes.is_some();
    let short = (is_ours && has_storage)
        .then(|| room::shortage(plan, data_root, &room::Reserved::default()))
        .flatten();
    // MLPerf's rules do not apply to the user's own files, even if the workload has MLPerf's name.
    let is_foreign = resolved.workload.dataset_foreign;
    let requirement =
        if is_foreign { None } else { Requirement::new(plan, request, hosts, own_files) };
    let checkpoint_requirement = CheckpointRequirement::new(plan, request, hosts);
    if json {
        let output = PlanOutput {
            plan,
            estimate: catalog::estimate(plan),
            free_bytes: room::free_bytes(plan, data_root),
            checkpoint: plan.checkpoint.as_ref(),
            mlperf: requirement.as_ref().map(Requirement::output),
            mlperf_checkpoint: checkpoint_requirement,
            mlperf_class: mlperf_class(plan),
            without_effect: Vec::from_iter(ineffective_keys(&resolved.workload)),
            config: resolved_yaml(&resolved.workload),
        };
        messages::print_json(Schema::Plan, &output)?;
    } else {
        let mut page = page(&resolved, request);
        let estimate = catalog::estimate(plan);
        let rules = requirement
            .iter()
            .map(|rules| mlperf::page(rules, rules.needed_bytes_per_second(&estimate), command));
        let rules = rules.chain(
            checkpoint_requirement.iter().map(|rules| mlperf::checkpoint_page(rules, command)),
        );
        page.extend(rules.flat_map(|rules| ["\n".to_string(), rules]));
        if let Some(short) = short {
            let hint = room::hint(request, &short);
            page += &format!("\nnot enough space: {short}\n  {hint}");
        }
        messages::print_page(&page)?;
    }
    Ok(Exit::Fine)
}

/// The official class of the plan's configuration.
fn mlperf_class(plan: &Plan) -> Option<MlperfClass> {
    MlperfClass::new(Some(plan.core_config.as_ref()?), &plan.workload)
}

/// The plan as text, with a line for each decision.
pub(super) fn page(resolved: &Resolved, request: &Request) -> String {
    let plan = &resolved.plan;
    let estimate = catalog::estimate(plan);
    let mut rows: Vec<(&str, String)> = vec![
        ("workload", format!("{} (model {})", plan.workload, plan.model)),
        ("accelerators", units::count(plan.accelerators.into())),
    ];
    let status = mlperf_status(request);
    rows.extend(status.map(|status| ("MLPerf status", status.sentence())));
    let class = mlperf_class(plan).map(|class| words::mlperf_class::statement(&class));
    rows.extend(class.map(|class| (words::mlperf_class::NAME, class)));
    if !plan.is_checkpoint_only() {
        rows.extend(training(resolved, &estimate));
    }
    rows.extend(plan.evaluation.as_ref().map(|plan| ("evaluation", evaluation(plan))));
    rows.extend(plan.checkpoint.as_ref().map(|plan| ("checkpoint", checkpoint(plan))));
    let checkpoint_object = plan.checkpoint.as_ref().and_then(|plan| plan.object.as_ref());
    rows.extend(checkpoint_object.map(|object| ("checkpoint store", store(object))));
    let mut out = text::rows(&rows);
    for PlanDoubt { name, evidence, advice, .. } in &plan.doubts {
        out += &format!("\ndoubt {name}: {evidence}\n  {advice}");
    }
    for key in ineffective_keys_of_user(&resolved.workload, request) {
        out += &format!("\nno effect: {key}");
    }
    out
}

/// Describes how a store of objects is reached, and that options of local storage do not apply.
fn store(object: &ObjectPlan) -> String {
    let ObjectPlan { bucket, endpoint, endpoint_source, region, credentials_source } = object;
    let source = endpoint_source.as_ref().map_or(String::new(), |source| format!(" ({source})"));
    let endpoint = endpoint.as_deref().unwrap_or("the cloud's endpoint");
    let region = region.as_ref().map_or(String::new(), |region| format!(", region {region}"));
    format!(
        "{bucket} at {endpoint}{source}{region}, credentials from {credentials_source}; no page cache, no known free space"
    )
}

/// Rows on the dataset, loader and schedule, and the required rate.
fn training(resolved: &Resolved, estimate: &Estimate) -> Vec<(&'static str, String)> {
    let Plan { dataset, loader, train, .. } = &resolved.plan;
    // The compressed size depends on the content; the files of other programs were measured.
    let is_estimated = estimate.packs && dataset.stored_sample_bytes.is_none();
    let about = if is_estimated { "about " } else { "" };
    let mean = if dataset.unequal_samples().is_some() { " on average" } else { "" };
    let given_format = &resolved.workload.dataset_format;
    let reading = if *given_format == dataset.format { "" } else { ", read as plain bytes" };
    let dataset = format!(
        "{} of {}{mean} ({} to evaluate){reading}, {about}{} on storage, under {}",
        units::counted(estimate.files, &format!("{given_format} file")),
        units::counted(dataset.samples_per_file, "sample"),
        units::count(dataset.files_eval),
        units::bytes(estimate.file_bytes),
        resolved.data_root.display(),
    );
    let mut sample = units::bytes(estimate.sample_bytes_mean as u64);
    let (least, most) = estimate.sample_bytes_range;
    if least != most {
        sample += &format!(" on average, from {} to {}", units::bytes(least), units::bytes(most));
    }
    if estimate.packs {
        let stored = units::bytes(estimate.sample_read_bytes_mean as u64);
        sample += &format!(" decoded, {about}{stored} on storage");
    }
    let loader = format!(
        "{}, batches of {}, {} per accelerator, at most {} in flight",
        loader.kind,
        loader.batch_size,
        units::counted(loader.workers.into(), "worker"),
        units::counted(loader.batches_in_flight.into(), "batch"),
    ) + &requests(loader, &resolved.plan.dataset, estimate);
    let mut schedule = format!(
        "{} of {}, {} in total, {} of compute per step",
        units::counted(train.epochs_run().into(), "epoch"),
        units::counted(estimate.steps_per_epoch, "step"),
        units::counted(estimate.steps, "step"),
        units::seconds(train.compute.mean_s()),
    );
    if estimate.dropped_samples > 0 {
        let dropped = units::counted(estimate.dropped_samples, "sample");
        schedule += &format!("; dropped, too few for a step: {dropped}");
    }
    let each = units::bytes(estimate.accelerator_epoch_bytes as u64);
    let epoch = units::seconds(estimate.epoch_least_s);
    let for_storage = if estimate.client.is_some() { " for storage" } else { "" };
    let mut rows = vec![
        ("dataset", dataset),
        ("sample", sample),
        ("loader", loader),
        ("schedule", schedule),
        ("each accelerator", format!("reads {about}{each} per epoch")),
    ];
    rows.extend(resolved.plan.storage.object.as_ref().map(|object| ("store", store(object))));
    rows.extend(client(&resolved.plan.loader, estimate).map(|client| ("client", client)));
    rows.push((
        "an epoch takes",
        format!("at least {epoch}, if no accelerator ever waits{for_storage}"),
    ));
    rows.extend(estimate.needed_bytes_per_second.map(|needed| {
        let total = units::bytes_per_second(needed);
        let accelerators = resolved.plan.accelerators;
        let share = match accelerators {
            1 => String::new(),
            _ => {
                let each = units::bytes_per_second(needed / f64::from(accelerators));
                format!(", {each} for each accelerator")
            }
        };
        let files = files_per_second(&resolved.plan).map_or(String::new(), |rate| match rate {
            100.0.. => format!("; {} files/s", units::count(rate.round() as u64)),
            _ => format!("; {}", units::per_second(rate, "files")),
        });
        let many = rate_with_many_files(&resolved.plan.dataset, estimate);
        let many = many.map_or(String::new(), |rate| {
            format!("; {} with many files, whose mean size differs", units::bytes_per_second(rate))
        });
        ("required rate", format!("{about}{total} from the storage{share}{files}{many}"))
    }));
    let latency = match required_latency(&resolved.plan, estimate) {
        Some(required) => Some(latency_text(&required)),
        None => (estimate.needed_bytes_per_second.is_some() && may_share_reads(&resolved.plan))
            .then(|| "unknown: a read may serve several samples; request the rate only".into()),
    };
    rows.extend(latency.map(|latency| ("required latency", latency)));
    if let Some(rate) = resolved.plan.storage.throttle_bytes_per_second {
        let limit = units::bytes_per_second(rate);
        rows.push(("throttle", format!("reads are limited to {limit}")));
    }
    let emulated_s = emulated_epoch_s(&resolved.plan, estimate);
    rows.extend(emulated_s.map(|least_s| {
        ("emulated epoch", format!("at least {} with the emulated limits", units::seconds(least_s)))
    }));
    let memory = units::bytes(estimate.loader_memory_bytes as u64);
    rows.push(("own buffers", format!("about {memory}")));
    rows.extend(real_loader(&resolved.plan, estimate).map(|real| ("real loader", real)));
    rows
}

/// The required rate if samples have the mean size of their distribution; `None` if the mean of this dataset is close to it. The mean of few drawn
/// sizes may differ by several percent.
fn rate_with_many_files(dataset: &DatasetPlan, estimate: &Estimate) -> Option<f64> {
    let (least, most) = estimate.sample_bytes_range;
    let is_drawn = least < most && dataset.record_stdev_bytes > 0.0;
    let ratio = dataset.record_bytes / estimate.sample_bytes_mean;
    let is_other = is_drawn && ratio.is_finite() && (ratio - 1.0).abs() >= DRAWN_DIFFERENCE_MIN;
    is_other.then_some(estimate.needed_bytes_per_second? * ratio)
}

/// How long reads may take, with the numbers from which this follows.
fn latency_text(required: &RequiredLatency) -> String {
    let noun = match required.unit {
        ReadUnit::Read => "read",
        ReadUnit::Request => "request",
    };
    format!(
        "{noun}s of {} take at most {} on average: {}, {} (without decoding)",
        units::bytes(required.bytes as u64),
        units::seconds(required.latency_s),
        match required.unit {
            ReadUnit::Read => units::counted(required.in_flight, "reader"),
            ReadUnit::Request => format!("{} in flight", units::count(required.in_flight)),
        },
        units::per_second(required.per_second, &format!("{noun}s")),
    )
}

/// The rate at which files are opened if no accelerator ever waits. `None` if files have several samples.
fn files_per_second(plan: &Plan) -> Option<f64> {
    let samples = plan.loader.batch_size as f64 * f64::from(plan.accelerators);
    let compute_s = plan.train.compute.mean_s();
    let is_file = plan.dataset.samples_per_file == 1 && 0.0 < compute_s;
    is_file.then(|| samples / compute_s)
}

/// The memory of the loader of the framework, whose batches feedrate does not keep. `None` if samples stay in memory, as in both.
fn real_loader(plan: &Plan, estimate: &Estimate) -> Option<String> {
    let memory = units::bytes(estimate.real_loader_memory_bytes? as u64);
    let batch_bytes = estimate.sample_bytes_mean * plan.loader.batch_size as f64;
    let batches = units::counted(plan.loader.batches_in_flight.max(1).into(), "batch");
    let accelerators = match plan.accelerators {
        1 => String::new(),
        count => format!(" for each of {} accelerators", units::count(count.into())),
    };
    Some(format!("about {memory}: {batches} of {}{accelerators}", units::bytes(batch_bytes as u64)))
}

/// What a worker's requests read, and how far they read ahead; empty if samples are read one by one in large requests.
fn requests(loader: &LoaderPlan, dataset: &DatasetPlan, estimate: &Estimate) -> String {
    let Some(requests) = loader.requests else {
        return library_requests(loader, dataset, estimate);
    };
    let ahead = match requests.ahead {
        ReadAhead::None => String::new(),
        ReadAhead::Windows(files) => {
            format!(" in windows of {}, the next one behind", units::count(files.into()))
        }
        ReadAhead::Sliding(groups) => format!(", {} ahead", units::count(groups.into())),
    };
    let in_flight = units::counted(requests.in_flight.into(), "request");
    let unit = requests.unit.plural();
    format!("; {in_flight} in flight per worker: {unit}{ahead}, not decoded")
}

/// The requests of the format's library, with their number if a file is a sample: `; 70 requests a sample, as numpy reads npz`. Empty if none
/// determines the requests.
fn library_requests(loader: &LoaderPlan, dataset: &DatasetPlan, estimate: &Estimate) -> String {
    let Some(library) = loader.library else { return String::new() };
    let requests = library.requests();
    let name = requests.library;
    let format = &dataset.format;
    if dataset.samples_per_file != 1 {
        return format!("; requests as {name} reads {format}");
    }
    let count = requests.file_requests(estimate.sample_read_bytes_mean as u64);
    let counted = units::counted(count, "request");
    format!("; about {counted} a sample, as {name} reads {format}")
}

/// The emulated client's name and processor time; `None` without one.
fn client(loader: &LoaderPlan, estimate: &Estimate) -> Option<String> {
    let client = loader.client.as_ref()?;
    let times = estimate.client?;
    let name = client.name.as_deref().unwrap_or("calibrated");
    let worker = units::seconds(times.worker_batch_s);
    if loader.workers == 0 {
        return Some(format!("{name}: the training process needs {worker} per batch"));
    }
    let receive = units::seconds(times.receive_batch_s);
    let start = units::seconds(times.start_s);
    let interval = match times.batch_interval_s {
        0.0 => String::new(),
        seconds => format!("; at most one batch every {}", units::seconds(seconds)),
    };
    Some(format!(
        "{name}: a worker needs {worker} per batch, the training process {receive}; {start} to start an epoch{interval}"
    ))
}

fn evaluation(plan: &EvaluationPlan) -> String {
    format!(
        "{} of {} with batches of {}, {} of compute per step, the first after epoch {}",
        units::counted(plan.train.epochs.into(), "evaluation"),
        units::counted(plan.train.steps_per_epoch, "step"),
        plan.loader.batch_size,
        units::seconds(plan.train.compute.mean_s()),
        plan.after_epoch,
    )
}

fn checkpoint(plan: &CheckpointPlan) -> String {
    let during_training = || format!(", {}", schedule::times(&CheckpointSchedule::from_plan(plan)));
    let times = plan.alone.as_ref().map_or_else(during_training, |alone| {
        let writes = units::counted(alone.writes, "time");
        let reads = units::counted(alone.reads, "time");
        let space = match alone.writes {
            0 | 1 => String::new(),
            count => format!(" ({})", units::bytes(plan.total_bytes.saturating_mul(count))),
        };
        format!(", {writes} written{space} and {reads} read")
    });
    let total = units::bytes(plan.total_bytes);
    let files = units::counted(plan.total_files, "file");
    let writers = match plan.state.writers() {
        1 => String::new(),
        ranks => format!(
            " of {}, at most {} per rank",
            units::counted(ranks, "rank"),
            units::bytes(plan.rank_bytes_max)
        ),
    };
    format!("{total} in {files}{writers}{times}")
}
