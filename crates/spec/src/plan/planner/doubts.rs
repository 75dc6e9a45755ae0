//! Doubts that are known before a run, with the observation and a remedy.

use super::{Builder, Context};
use crate::catalog::Ability;
use crate::plan::explain::train_bytes;
use crate::plan::latency::idle_workers;
use crate::plan::layout::Layout;
use crate::plan::state::Layers;
use crate::plan::{Cache, ClientProfile, Plan, PlanDoubt, WorkerSplit};
use crate::units::{self, counted};

/// Name of the doubt that memory can hold the dataset.
pub const FITS_PAGE_CACHE: &str = "dataset_fits_page_cache";

/// Assumed minimum throughput of a page cache. With a slower throttle, the page cache has no effect.
const PAGE_CACHE_BYTES_PER_SECOND: f64 = 1e9;

impl Builder<'_> {
    /// Returns the doubts of a plan, in the order in which they are shown.
    pub(super) fn doubts(&self, plan: &Plan, layout: &Layout, context: Context) -> Vec<PlanDoubt> {
        if plan.is_checkpoint_only() {
            let found = [
                self.state_scaled(plan),
                self.raw_checkpoint(plan),
                checkpoints_exceed_disk(plan, context),
            ];
            return found.into_iter().flatten().collect();
        }
        let found = [
            no_steps(plan),
            window_shorter_than_stock(plan),
            self.fits_page_cache(plan, layout, context),
            self.dataset_scaled(plan),
            self.state_scaled(plan),
            self.records_shrunk(plan),
            self.checkpoint_not_reached(plan),
            self.evaluation_not_reached(plan),
            self.raw_checkpoint(plan),
            checkpoints_exceed_disk(plan, context),
            samples_in_memory(plan),
            dataset_is_staged(plan),
            emulated_storage(plan, self.options.processes.unwrap_or(1)),
            workers_outnumber_shards(plan),
            shared_gpu(plan, context),
            client_mismatch(plan),
        ];
        found.into_iter().flatten().collect()
    }

    fn fits_page_cache(&self, plan: &Plan, layout: &Layout, context: Context) -> Option<PlanDoubt> {
        let storage = self.catalog.storage(&plan.storage.kind)?;
        let throttle = plan.storage.throttle_bytes_per_second;
        let is_throttled = throttle.is_some_and(|rate| rate < PAGE_CACHE_BYTES_PER_SECOND);
        if !storage.has(Ability::PageCache)
            || plan.storage.passes_page_cache
            || plan.train.cache != Cache::AsIs
            || is_throttled
        {
            return None;
        }
        let bytes = train_bytes(plan, self.catalog, layout);
        let memory = context.memory_bytes.filter(|&memory| bytes < memory)?;
        Some(doubt(
            FITS_PAGE_CACHE,
            format!("the dataset has {}, the memory {}", units::bytes(bytes), units::bytes(memory)),
            "use a dataset of at least five times the memory, or `--cold`",
        ))
    }

    fn dataset_scaled(&self, plan: &Plan) -> Option<PlanDoubt> {
        let scale = self.options.scale;
        let file_factor =
            if self.w.dataset_scaling == "weak" { u64::from(plan.accelerators) } else { 1 };
        let files = plan.dataset.files_train;
        let full_files = self.w.dataset_num_files_train.saturating_mul(file_factor);
        let samples = plan.dataset.samples_per_file;
        let full_samples = self.w.dataset_num_samples_per_file;
        let evidence = if samples == full_samples {
            format!("`--scale {scale}`: {} instead of {full_files}", counted(files, "file"))
        } else {
            format!(
                "`--scale {scale}`: {} of {} instead of {full_files} of {full_samples}",
                counted(files, "file"),
                counted(samples, "sample")
            )
        };
        let advice = "epochs are shorter: compare only with runs of the same scale";
        (scale != 1.0).then(|| doubt("scaled", evidence, advice))
    }

    fn state_scaled(&self, plan: &Plan) -> Option<PlanDoubt> {
        let scale = self.options.scale;
        let state = &plan.checkpoint.as_ref()?.state;
        let is_shrunk = state.layers != Layers::None || !state.optimization_groups.is_empty();
        let evidence = format!("`--scale {scale}`: tensors of layers and optimizer in checkpoints");
        let advice = "checkpoints are smaller: compare only with runs of the same scale";
        (scale != 1.0 && is_shrunk).then(|| doubt("scaled", evidence, advice))
    }

    fn records_shrunk(&self, plan: &Plan) -> Option<PlanDoubt> {
        let shrink = self.options.shrink_records;
        let bytes = units::bytes(plan.dataset.record_bytes as u64);
        let full_bytes = units::bytes(self.w.dataset_record_length_bytes as u64);
        let evidence =
            format!("`--shrink-records {shrink}`: records of {bytes} instead of {full_bytes}");
        let advice = "do not compare with the full workload: this is a different one";
        (shrink != 1.0).then(|| doubt("records_shrunk", evidence, advice))
    }

    fn checkpoint_not_reached(&self, plan: &Plan) -> Option<PlanDoubt> {
        let is_missed = self.w.workflow_checkpoint && plan.checkpoint.is_none();
        let evidence = "checkpoints are configured, but the run ends before the first";
        let advice = "use more epochs to measure checkpoints";
        is_missed.then(|| doubt("checkpoint_not_reached", evidence.into(), advice))
    }

    fn raw_checkpoint(&self, plan: &Plan) -> Option<PlanDoubt> {
        let checkpoint = plan.checkpoint.as_ref()?;
        let format = self.catalog.checkpoint(&checkpoint.format)?;
        let is_raw = checkpoint.state.file_sizes.is_empty() && format.has(Ability::Undescribed);
        let evidence = "checkpoints contain only the bytes of the tensors";
        let advice = "the size is correct; use `checkpoint.format=pt` for files that torch can load, or `tf`";
        is_raw.then(|| doubt("raw_checkpoint", evidence.into(), advice))
    }

    fn evaluation_not_reached(&self, plan: &Plan) -> Option<PlanDoubt> {
        let is_missed = self.w.workflow_evaluation
            && plan.dataset.files_eval > 0
            && self.w.evaluation_eval_after_epoch > plan.train.epochs_run();
        let evidence = "evaluations are configured, but the run ends before the first";
        let advice = "use more epochs to measure evaluations";
        is_missed.then(|| doubt("evaluation_not_reached", evidence.into(), advice))
    }
}

fn window_shorter_than_stock(plan: &Plan) -> Option<PlanDoubt> {
    if plan.train.steps_per_epoch == 0 {
        return None;
    }
    let excluded = plan.metric.exclude_start_steps.saturating_add(plan.metric.exclude_end_steps);
    let window = plan.train.steps_in_epoch(1).saturating_sub(excluded);
    let batches = plan.stock_batches();
    let steps = if window == 1 { "1 step is".to_string() } else { format!("{window} steps are") };
    let held_batches = counted(batches, "batch");
    let evidence = format!("{steps} judged, and the loader may hold {held_batches} by then");
    let advice =
        "use more files, fewer accelerators, or fewer reading threads; believe au_all_steps";
    (window <= batches).then(|| doubt("window_shorter_than_stock", evidence, advice))
}

fn checkpoints_exceed_disk(plan: &Plan, context: Context) -> Option<PlanDoubt> {
    let checkpoint = plan.checkpoint.as_ref()?;
    let count = checkpoint.count(&plan.train);
    let needed = checkpoint.total_bytes.saturating_mul(count);
    let free = context.checkpoint_free_bytes.filter(|&free| free < needed)?;
    Some(doubt(
        "checkpoints_exceed_disk",
        format!(
            "{} of {} each ({}) are written, and the file system of `{}` has {} free",
            units::counted(count, "checkpoint"),
            units::bytes(checkpoint.total_bytes),
            units::bytes(needed),
            checkpoint.folder,
            units::bytes(free),
        ),
        "point `checkpoint.checkpoint_folder` at a larger file system, or write fewer checkpoints",
    ))
}

/// Returns a doubt if settings slow down the storage or the accelerators. A throttle allows each reading process at least one read at a
/// time, even if this exceeds the configured number.
fn emulated_storage(plan: &Plan, processes: u32) -> Option<PlanDoubt> {
    let storage = &plan.storage;
    let train = &plan.train;
    let keys = [
        ("storage.throttle.bytes_per_second", storage.throttle_bytes_per_second.is_some()),
        ("storage.throttle.latency_seconds", storage.throttle_latency_s > 0.0),
        ("storage.throttle.concurrency", storage.throttle_concurrency.is_some()),
        ("storage.delay_seconds", storage.delay_s > 0.0),
        ("storage.delay.open_seconds", storage.open_delay_s > 0.0),
        ("storage.delay.read_seconds", storage.read_delay_s > 0.0),
        ("train.slow_accelerators", !train.slow_accelerators.is_empty()),
    ];
    let given_keys: Vec<String> =
        keys.iter().filter(|key| key.1).map(|key| format!("`{}`", key.0)).collect();
    let readers = processes.min(plan.readers());
    let concurrency_note = match storage.throttle_concurrency {
        Some(reads) if reads < readers => {
            format!(
                "; {readers} processes have at least one read each at a time, not {reads} in total"
            )
        }
        _ => String::new(),
    };
    let evidence = format!("set: {}{concurrency_note}", given_keys.join(", "));
    let advice =
        "compare only with runs with the same settings; leave them out to judge the real storage";
    (!given_keys.is_empty()).then(|| doubt("emulated", evidence, advice))
}

fn shared_gpu(plan: &Plan, context: Context) -> Option<PlanDoubt> {
    let name = plan.train.on_devices.as_ref()?;
    let devices = context.devices?.ok().filter(|&devices| devices < plan.accelerators)?;
    let accelerators = plan.accelerators;
    let gpus = units::counted(devices.into(), "GPU");
    Some(doubt(
        "shared_gpu",
        format!("{accelerators} emulated accelerators shared {gpus} with `compute: {name}`"),
        "use one accelerator per GPU, or interpret a GPU's utilisation as that of several accelerators",
    ))
}

/// Returns a doubt if the client was measured with another loader or format.
fn client_mismatch(plan: &Plan) -> Option<PlanDoubt> {
    let name = plan.loader.client.as_ref()?.name.as_ref()?;
    let matching = ClientProfile::name_for(plan);
    let evidence = format!("the client is `{name}`, but loader and format match `{matching}`");
    let advice = "measure the client with `feedrate calibrate`";
    (*name != matching).then(|| doubt("client_of_others", evidence, advice))
}

fn workers_outnumber_shards(plan: &Plan) -> Option<PlanDoubt> {
    let idle = idle_workers(plan);
    let workers = u64::from(plan.accelerators) * u64::from(plan.loader.workers.max(1));
    let files = units::counted(plan.dataset.files_train, "file");
    let evidence = format!(
        "{idle} of {workers} workers have nothing to read: each reads whole files, and there are {files}"
    );
    let advice = match plan.loader.split {
        WorkerSplit::Shards => {
            "use fewer workers or more files, or `dataset.split=samples`, with which workers share files and read each more than once"
        }
        WorkerSplit::Samples => "use fewer workers or more files",
    };
    (idle > 0).then(|| doubt("workers_outnumber_shards", evidence, advice))
}

/// Returns a doubt if nothing is trained, which only `dlio_benchmark` allows.
fn no_steps(plan: &Plan) -> Option<PlanDoubt> {
    let samples = units::counted(plan.dataset.samples_train(), "sample");
    let accelerators = units::counted(plan.accelerators.into(), "accelerator");
    let batch_size = plan.loader.batch_size;
    let evidence =
        format!("{samples} for {accelerators} with batches of {batch_size} are too few for a step");
    let is_empty = plan.train.epochs > 0 && plan.train.steps_per_epoch == 0;
    is_empty.then(|| doubt("no_steps", evidence, "use more files, a smaller batch or fewer ranks"))
}

fn samples_in_memory(plan: &Plan) -> Option<PlanDoubt> {
    let is_kept = plan.loader.in_memory && plan.train.epochs_run() > 1;
    let evidence = "`reader.read_type: memory`: only the first epoch reads from storage";
    let advice = "to judge the storage, use the first epoch or `reader.read_type=on_demand`";
    is_kept.then(|| doubt("samples_in_memory", evidence.into(), advice))
}

fn dataset_is_staged(plan: &Plan) -> Option<PlanDoubt> {
    let stage = plan.stage.as_ref()?;
    let advice =
        "the results describe the copy: leave `reader.stage` out to judge the dataset's storage";
    Some(doubt("staged", format!("samples are read from a copy in `{}`", stage.folder), advice))
}

fn doubt(name: &str, evidence: String, advice: &str) -> PlanDoubt {
    PlanDoubt { name: name.into(), evidence, advice: advice.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ClientProfile;

    #[test]
    fn a_client_of_another_format_is_a_doubt() {
        let mut plan = Plan::default();
        plan.loader.kind = "pytorch".into();
        plan.dataset.format = "npz".into();
        plan.loader.client = ClientProfile::find("pytorch-npz").map(ClientProfile::plan);
        assert_eq!(client_mismatch(&plan), None);
        plan.dataset.format = "jpeg".into();
        let expected = "the client is `pytorch-npz`, but loader and format match `pytorch-jpeg`";
        assert_eq!(client_mismatch(&plan).unwrap().evidence, expected);
        plan.loader.client.as_mut().unwrap().name = None;
        assert_eq!(client_mismatch(&plan), None);
    }

    #[test]
    fn more_processes_than_concurrent_reads_are_a_doubt() {
        let mut plan = Plan { accelerators: 4, ..Plan::default() };
        assert_eq!(emulated_storage(&plan, 4), None);
        plan.storage.throttle_concurrency = Some(2);
        let evidence = |processes| emulated_storage(&plan, processes).unwrap().evidence;
        assert_eq!(evidence(2), "set: `storage.throttle.concurrency`");
        assert_eq!(
            evidence(4),
            "set: `storage.throttle.concurrency`; 4 processes have at least one read each at a time, not 2 in total"
        );
    }
}
