//! `feedrate plan`: what would run, before it runs.

use super::mlperf;
use crate::cli::DataArguments;
use crate::exit::Exit;
use crate::progress::TERMINAL;
use crate::{messages, text};
use clap::{Args, value_parser};
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_report::output::{OpenObject, Schema};
use feedrate_session::dataset::{self, Files};
use feedrate_session::folder;
use feedrate_session::mlperf::{Hosts, MlperfOutput, Requirement, with_enough_files};
use feedrate_session::request::Request;
use feedrate_session::resolve::IneffectiveKey;
use feedrate_session::resolve::{
    Resolved, ineffective_keys, ineffective_keys_of_user, mlperf_status,
};
use feedrate_session::{catalog, room};
use feedrate_spec::plan::{CheckpointPlan, Estimate, EvaluationPlan, LoaderPlan, Plan, PlanDoubt};
use feedrate_spec::units;
use feedrate_spec::workload::resolved_yaml;
use schemars::JsonSchema;
use serde::Serialize;

/// `feedrate plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Memory of a client host, for the size of an MLPerf dataset [default: this machine's].
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = HEADING)]
    memory: Option<u64>,
    /// Client hosts of such memory.
    #[arg(long, value_name = "H", default_value_t = 1, value_parser = value_parser!(u32).range(1..), help_heading = HEADING)]
    hosts: u32,
}

const HEADING: &str = "MLPerf Storage";

fn bytes(text: &str) -> Result<u64, String> {
    let found = units::parse_bytes(text).filter(|&bytes| bytes >= 1.0);
    found.map(|bytes| bytes as u64).ok_or_else(|| "write a size, as in `256GiB`".into())
}

/// Print the plan.
pub(crate) fn plan(arguments: &PlanArguments) -> anyhow::Result<Exit> {
    let hosts = Hosts { memory_bytes: arguments.memory, count: arguments.hosts };
    let request = &arguments.data.request();
    let json = arguments.data.json;
    match folder::resolve(request, &TERMINAL) {
        Ok(resolved) => show(resolved, request, hosts, None, json),
        // How many files the accelerators need is what a plan is to say.
        Err(refusal) => match with_enough_files(request, hosts) {
            Some((enough, own_files)) => {
                let resolved = folder::resolve(&enough, &TERMINAL)?;
                show(resolved, &enough, hosts, Some(own_files), json)
            }
            None => Err(refusal),
        },
    }
}

/// The same as a command with such a request would make it.
pub(super) fn dry_run(request: &Request, json: bool) -> anyhow::Result<Exit> {
    let resolved = folder::resolve(request, &TERMINAL)?;
    show(resolved, request, Hosts { memory_bytes: None, count: 1 }, None, json)
}

/// Output of `plan --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct PlanOutput<'a> {
    /// All that is decided before the run.
    #[schemars(with = "OpenObject")]
    plan: &'a Plan,
    /// Consequences: bytes, memory, times, the required rate.
    #[schemars(with = "OpenObject")]
    estimate: Estimate,
    /// Free bytes of the file system of the data.
    free_bytes: Option<u64>,
    /// Checkpoints; `null` for none.
    #[schemars(with = "Option<OpenObject>")]
    checkpoint: Option<&'a CheckpointPlan>,
    /// MLPerf Storage's rules for the workload: the least files, and utilisation; `null` if it has none.
    mlperf: Option<MlperfOutput>,
    /// Keys that are given and change nothing.
    without_effect: Vec<IneffectiveKey>,
    /// The workload with every override, as YAML.
    config: String,
}

/// Print it. `own_files` is the workload's number of files where the plan has another one.
fn show(
    resolved: Resolved,
    request: &Request,
    hosts: Hosts,
    own_files: Option<u64>,
    json: bool,
) -> anyhow::Result<Exit> {
    if resolved.workload.dataset_foreign {
        let names = tempfile::tempdir()?;
        let files = Files::Foreign { names: &names.path().join(NAMES_FILE), probed: None };
        dataset::choose(&resolved.plan, &resolved.data_root, files, &TERMINAL)?;
    }
    let Resolved { plan, data_root, .. } = &resolved;
    let is_ours = !plan.is_checkpoint_only() && !resolved.workload.dataset_foreign;
    // A plan needs no storage, until one is named or it is that of a run.
    let has_storage = request.data.is_some() || request.processes.is_some();
    let short = (is_ours && has_storage)
        .then(|| room::shortage(plan, data_root, &room::Reserved::default()))
        .flatten();
    // A folder's name makes no workload of MLPerf's.
    let is_foreign = resolved.workload.dataset_foreign;
    let requirement =
        if is_foreign { None } else { Requirement::new(plan, request, hosts, own_files) };
    if json {
        let output = PlanOutput {
            plan,
            estimate: catalog::estimate(plan),
            free_bytes: room::free_bytes(plan, data_root),
            checkpoint: plan.checkpoint.as_ref(),
            mlperf: requirement.as_ref().map(Requirement::output),
            without_effect: Vec::from_iter(ineffective_keys(&resolved.workload)),
            config: resolved_yaml(&resolved.workload),
        };
        messages::print_json(Schema::Plan, &output)?;
    } else {
        let mut page = page(&resolved, request);
        let needed = catalog::estimate(plan).needed_bytes_per_second;
        page.extend(
            requirement.iter().flat_map(|rules| ["\n".to_string(), mlperf::page(rules, needed)]),
        );
        if let Some(short) = short {
            let hint = room::hint(request, &short);
            page += &format!("\nno room: {short}\n  {hint}");
        }
        messages::print_page(&page)?;
    }
    Ok(Exit::Fine)
}

/// All that is decided, a line each.
pub(super) fn page(resolved: &Resolved, request: &Request) -> String {
    let (plan, estimate) = (&resolved.plan, catalog::estimate(&resolved.plan));
    let mut rows: Vec<(&str, String)> = vec![
        ("workload", format!("{} (model {})", plan.workload, plan.model)),
        ("accelerators", units::count(plan.accelerators.into())),
    ];
    let status = mlperf_status(request);
    rows.extend(status.map(|status| ("MLPerf status", status.sentence())));
    if !plan.is_checkpoint_only() {
        rows.extend(training(resolved, &estimate));
    }
    rows.extend(plan.evaluation.as_ref().map(|plan| ("evaluation", evaluation(plan))));
    rows.extend(plan.checkpoint.as_ref().map(|plan| ("checkpoint", checkpoint(plan))));
    let mut out = text::rows(&rows);
    for PlanDoubt { name, evidence, advice, .. } in &plan.doubts {
        out += &format!("\ndoubt {name}: {evidence}\n  {advice}");
    }
    for key in ineffective_keys_of_user(&resolved.workload, request) {
        out += &format!("\nno effect: {key}");
    }
    out
}

/// The data to be read, and the rate at which it must come.
fn training(resolved: &Resolved, estimate: &Estimate) -> Vec<(&'static str, String)> {
    let Plan { dataset, loader, train, .. } = &resolved.plan;
    // How much is saved by packing depends on the content.
    let about = if estimate.packs { "about " } else { "" };
    let dataset = format!(
        "{} of {} ({} to evaluate), {about}{} on storage, under {}",
        units::counted(estimate.files, &format!("{} file", dataset.format)),
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
        sample += &format!(" decoded, about {stored} on storage");
    }
    let loader = format!(
        "{}, batches of {}, {} each, at most {} in flight",
        loader.kind,
        loader.batch_size,
        units::counted(loader.workers.into(), "worker"),
        units::counted(loader.batches_in_flight.into(), "batch"),
    );
    let mut schedule = format!(
        "{} of {}, {} in all, {} of compute a step",
        units::counted(train.epochs_run().into(), "epoch"),
        units::counted(estimate.steps_per_epoch, "step"),
        units::counted(estimate.steps, "step"),
        units::seconds(train.compute.mean_s()),
    );
    if estimate.dropped_samples > 0 {
        let dropped = units::counted(estimate.dropped_samples, "sample");
        schedule += &format!("; dropped, as too few for a step: {dropped}");
    }
    let each = units::bytes(estimate.accelerator_epoch_bytes as u64);
    let epoch = units::seconds(estimate.epoch_least_s);
    let of_storage = if estimate.client.is_some() { " for storage" } else { "" };
    let mut rows = vec![
        ("dataset", dataset),
        ("sample", sample),
        ("loader", loader),
        ("schedule", schedule),
        ("each accelerator", format!("reads {about}{each} in an epoch")),
    ];
    rows.extend(client(&resolved.plan.loader, estimate).map(|client| ("client", client)));
    rows.push((
        "an epoch takes",
        format!("at least {epoch}, if no accelerator ever waits{of_storage}"),
    ));
    rows.extend(estimate.needed_bytes_per_second.map(|needed| {
        let each = needed / f64::from(resolved.plan.accelerators);
        let [all, each] = [needed, each].map(units::bytes_per_second);
        let each = match resolved.plan.accelerators {
            1 => String::new(),
            _ => format!(", {each} for each accelerator"),
        };
        ("required rate", format!("{about}{all} from the storage{each}"))
    }));
    if let Some(rate) = resolved.plan.storage.throttle_bytes_per_second {
        rows.push(("throttle", format!("reads are held to {}", units::bytes_per_second(rate))));
        let all = estimate.accelerator_epoch_bytes * f64::from(resolved.plan.accelerators);
        let least = units::seconds((all / rate).max(estimate.epoch_least_s));
        rows.push(("so an epoch takes", format!("at least {least}")));
    }
    let memory = units::bytes(estimate.loader_memory_bytes as u64);
    rows.push(("own buffers", format!("about {memory}")));
    rows
}

/// Its name, and the processor time that it needs.
fn client(loader: &LoaderPlan, estimate: &Estimate) -> Option<String> {
    let (client, times) = (loader.client.as_ref()?, estimate.client?);
    let name = client.name.as_deref().unwrap_or("calibrated");
    let [worker, receive, start] =
        [times.worker_batch_s, times.receive_batch_s, times.start_s].map(units::seconds);
    Some(match loader.workers {
        0 => format!("{name}: the training's process needs {worker} for a batch"),
        _ => format!(
            "{name}: for a batch workers need {worker}, the training's process {receive}; {start} to start an epoch"
        ),
    })
}

fn evaluation(plan: &EvaluationPlan) -> String {
    format!(
        "{} of {} with batches of {}, {} of compute a step, the first after epoch {}",
        units::counted(plan.train.epochs.into(), "evaluation"),
        units::counted(plan.train.steps_per_epoch, "step"),
        plan.loader.batch_size,
        units::seconds(plan.train.compute.mean_s()),
        plan.after_epoch,
    )
}

fn checkpoint(plan: &CheckpointPlan) -> String {
    let times = plan.alone.as_ref().map_or(String::new(), |alone| {
        let [writes, reads] =
            [alone.writes, alone.reads].map(|times| units::counted(times, "time"));
        format!(", {writes} written and {reads} read")
    });
    let all = units::bytes_binary(plan.total_bytes);
    let files = units::counted(plan.total_files, "file");
    let writers = match plan.state.writers() {
        1 => String::new(),
        ranks => format!(
            " of {}, at most {} of one",
            units::counted(ranks, "rank"),
            units::bytes_binary(plan.rank_bytes_max)
        ),
    };
    format!("{all} in {files}{writers}{times}")
}
