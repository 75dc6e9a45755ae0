//! Doubts that are known before running.

use super::{Builder, Context};
use crate::catalog::Ability;
use crate::plan::explain::train_bytes;
use crate::plan::layout::Layout;
use crate::plan::shards::FileSplit;
use crate::plan::state::Layers;
use crate::plan::{Cache, ClientProfile, Plan, PlanDoubt, WorkerSplit};
use crate::units::{self, counted};

/// Lower limit of a page cache's throughput: a slower throttle hides it.
const PAGE_CACHE_BYTES_PER_SECOND: f64 = 1e9;

impl Builder<'_> {
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
            window_shorter_than_stock(plan),
            self.fits_page_cache(plan, layout, context),
            self.scaled_down(plan),
            self.state_scaled(plan),
            self.records_shrunk(plan),
            self.checkpoint_not_reached(plan),
            self.evaluation_not_reached(plan),
            self.raw_checkpoint(plan),
            checkpoints_exceed_disk(plan, context),
            samples_in_memory(plan),
            staged(plan),
            emulated(plan, self.options.processes.unwrap_or(1)),
            workers_outnumber_shards(plan),
            shared_gpu(plan, context),
            client_of_others(plan),
        ];
        found.into_iter().flatten().collect()
    }

    fn fits_page_cache(&self, plan: &Plan, layout: &Layout, context: Context) -> Option<PlanDoubt> {
        let storage = self.catalog.storage(&plan.storage.kind)?;
        let throttle = plan.storage.throttle_bytes_per_second;
        let throttled = throttle.is_some_and(|rate| rate < PAGE_CACHE_BYTES_PER_SECOND);
        if !storage.has(Ability::PageCache)
            || plan.storage.passes_page_cache
            || plan.train.cache != Cache::AsIs
            || throttled
        {
            return None;
        }
        let bytes = train_bytes(plan, self.catalog, layout);
        let memory = context.memory_bytes.filter(|&memory| bytes < memory)?;
        Some(doubt(
            "dataset_fits_page_cache",
            format!("the dataset is {}, the memory {}", units::bytes(bytes), units::bytes(memory)),
            "use a dataset of at least five times the memory, or `--cold`",
        ))
    }

    fn scaled_down(&self, plan: &Plan) -> Option<PlanDoubt> {
        let scale = self.options.scale;
        let grows = if self.w.dataset_scaling == "weak" { u64::from(plan.accelerators) } else { 1 };
        let files = plan.dataset.files_train;
        let of = self.w.dataset_num_files_train.saturating_mul(grows);
        let (samples, of_samples) =
            (plan.dataset.samples_per_file, self.w.dataset_num_samples_per_file);
        let evidence = if samples == of_samples {
            format!("`--scale {scale}`: {} instead of {of}", counted(files, "file"))
        } else {
            format!(
                "`--scale {scale}`: {} of {} instead of {of} of {of_samples}",
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
        let (bytes, of) = (plan.dataset.record_bytes, self.w.dataset_record_length_bytes);
        let (bytes, of) = (units::bytes(bytes as u64), units::bytes(of as u64));
        let evidence = format!("`--shrink-records {shrink}`: records of {bytes} instead of {of}");
        let advice = "this is another workload: do not compare it with the full one";
        (shrink != 1.0).then(|| doubt("records_shrunk", evidence, advice))
    }

    fn checkpoint_not_reached(&self, plan: &Plan) -> Option<PlanDoubt> {
        let missed = self.w.workflow_checkpoint && plan.checkpoint.is_none();
        let evidence = "checkpoints are asked for, and this plan ends before the first";
        let advice = "use more epochs to see what they cost";
        missed.then(|| doubt("checkpoint_not_reached", evidence.into(), advice))
    }

    fn raw_checkpoint(&self, plan: &Plan) -> Option<PlanDoubt> {
        let checkpoint = plan.checkpoint.as_ref()?;
        let format = self.catalog.checkpoint(&checkpoint.format)?;
        let is_raw = checkpoint.state.file_sizes.is_empty() && format.has(Ability::Undescribed);
        let evidence = "checkpoints are written as the bytes of the tensors alone";
        let advice = "their size is right; for files that torch loads, use `checkpoint.format=pt`";
        is_raw.then(|| doubt("raw_checkpoint", evidence.into(), advice))
    }

    fn evaluation_not_reached(&self, plan: &Plan) -> Option<PlanDoubt> {
        let missed = self.w.workflow_evaluation
            && plan.dataset.files_eval > 0
            && self.w.evaluation_eval_after_epoch > plan.train.epochs_run();
        let evidence = "evaluation is asked for, and this plan ends before the first";
        let advice = "use more epochs to see what it costs";
        missed.then(|| doubt("evaluation_not_reached", evidence.into(), advice))
    }
}

fn window_shorter_than_stock(plan: &Plan) -> Option<PlanDoubt> {
    let excluded = plan.metric.exclude_start_steps.saturating_add(plan.metric.exclude_end_steps);
    let window = plan.train.steps_in_epoch(1).saturating_sub(excluded);
    let stock = u64::from(plan.loader.batches_in_flight);
    let judged = if window == 1 { "1 step is".to_string() } else { format!("{window} steps are") };
    let held = counted(stock, "batch");
    let evidence = format!("{judged} judged, and the loader may hold {held} by then");
    let advice =
        "use more files, fewer accelerators, or fewer reading threads; believe au_all_steps";
    (window <= stock).then(|| doubt("window_shorter_than_stock", evidence, advice))
}

fn checkpoints_exceed_disk(plan: &Plan, context: Context) -> Option<PlanDoubt> {
    let checkpoint = plan.checkpoint.as_ref()?;
    let count = checkpoint.count(&plan.train);
    let needed = checkpoint.total_bytes.saturating_mul(count);
    let free = context.checkpoint_free_bytes.filter(|&free| free < needed)?;
    Some(doubt(
        "checkpoints_exceed_disk",
        format!(
            "{} of {} each are written, and {} are free where `{}` lies",
            units::counted(count, "checkpoint"),
            units::bytes_binary(checkpoint.total_bytes),
            units::bytes_binary(free),
            checkpoint.folder,
        ),
        "point `checkpoint.checkpoint_folder` at a larger file system, or write fewer checkpoints",
    ))
}

/// Doubt whatever is emulated; of so many processes each that reads has a place in the throttle.
fn emulated(plan: &Plan, processes: u32) -> Option<PlanDoubt> {
    let (storage, train) = (&plan.storage, &plan.train);
    let keys = [
        ("storage.throttle.bytes_per_second", storage.throttle_bytes_per_second.is_some()),
        ("storage.throttle.latency_seconds", storage.throttle_latency_s > 0.0),
        ("storage.throttle.concurrency", storage.throttle_concurrency.is_some()),
        ("storage.delay_seconds", storage.delay_s > 0.0),
        ("storage.delay.open_seconds", storage.open_delay_s > 0.0),
        ("storage.delay.read_seconds", storage.read_delay_s > 0.0),
        ("train.slow_accelerators", !train.slow_accelerators.is_empty()),
    ];
    let set: Vec<String> =
        keys.iter().filter(|key| key.1).map(|key| format!("`{}`", key.0)).collect();
    let readers = processes.min(plan.readers());
    let places = match storage.throttle_concurrency {
        Some(places) if places < readers => {
            format!("; {readers} processes read, each at least one at a time, not {places} in all")
        }
        _ => String::new(),
    };
    let evidence = format!("set: {}{places}", set.join(", "));
    let advice =
        "compare only with runs that emulate the same; leave it out to judge what is there";
    (!set.is_empty()).then(|| doubt("emulated", evidence, advice))
}

fn shared_gpu(plan: &Plan, context: Context) -> Option<PlanDoubt> {
    let name = plan.train.on_devices.as_ref()?;
    let devices = context.devices?.ok().filter(|&devices| devices < plan.accelerators)?;
    let (accelerators, gpus) = (plan.accelerators, units::counted(devices.into(), "GPU"));
    Some(doubt(
        "shared_gpu",
        format!("{accelerators} emulated accelerators shared {gpus} with `compute: {name}`"),
        "use as many accelerators as there are GPUs, or read a GPU's utilisation as that of several",
    ))
}

/// A client that was measured with another loader, or on files of another format.
fn client_of_others(plan: &Plan) -> Option<PlanDoubt> {
    let name = plan.loader.client.as_ref()?.name.as_ref()?;
    let own = ClientProfile::name_for(plan);
    let evidence = format!("the costs of `{name}`, where loader and format are those of `{own}`");
    let advice = "measure this one: `feedrate calibrate`";
    (*name != own).then(|| doubt("client_of_others", evidence, advice))
}

fn workers_outnumber_shards(plan: &Plan) -> Option<PlanDoubt> {
    let splits = (0..plan.accelerators).filter_map(|accelerator| FileSplit::new(plan, accelerator));
    let idle: u64 = splits.map(|split| split.idle_workers()).sum();
    let workers = u64::from(plan.accelerators) * u64::from(plan.loader.workers.max(1));
    let files = units::counted(plan.dataset.files_train, "file");
    let evidence = format!(
        "{idle} of {workers} workers have nothing to read: each reads whole files, and there are {files}"
    );
    let advice = match plan.loader.split {
        WorkerSplit::Shards => {
            "use fewer workers or more files; with `dataset.split=samples` workers share files, each of which is then read more than once"
        }
        WorkerSplit::Samples => "use fewer workers or more files",
    };
    (idle > 0).then(|| doubt("workers_outnumber_shards", evidence, advice))
}

fn samples_in_memory(plan: &Plan) -> Option<PlanDoubt> {
    let kept = plan.loader.in_memory && plan.train.epochs_run() > 1;
    let evidence = "`reader.read_type: memory`: what was read once is not read again";
    let advice =
        "look at the first epoch, or use `reader.read_type=on_demand`, to judge the storage";
    kept.then(|| doubt("samples_in_memory", evidence.into(), advice))
}

fn staged(plan: &Plan) -> Option<PlanDoubt> {
    let stage = plan.stage.as_ref()?;
    let advice = "the numbers are those of the copy: leave `reader.stage` out to judge where the dataset lies";
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
    fn a_client_of_another_format_is_told() {
        let mut plan = Plan::default();
        plan.loader.kind = "pytorch".into();
        plan.dataset.format = "npz".into();
        plan.loader.client = ClientProfile::find("pytorch-npz").map(ClientProfile::plan);
        assert_eq!(client_of_others(&plan), None);
        plan.dataset.format = "jpeg".into();
        let told =
            "the costs of `pytorch-npz`, where loader and format are those of `pytorch-jpeg`";
        assert_eq!(client_of_others(&plan).unwrap().evidence, told);
        plan.loader.client.as_mut().unwrap().name = None;
        assert_eq!(client_of_others(&plan), None);
    }

    #[test]
    fn more_processes_than_places_are_told() {
        let mut plan = Plan { accelerators: 4, ..Plan::default() };
        assert_eq!(emulated(&plan, 4), None);
        plan.storage.throttle_concurrency = Some(2);
        let evidence = |processes| emulated(&plan, processes).unwrap().evidence;
        assert_eq!(evidence(2), "set: `storage.throttle.concurrency`");
        assert_eq!(
            evidence(4),
            "set: `storage.throttle.concurrency`; 4 processes read, each at least one at a time, not 2 in all"
        );
    }
}
