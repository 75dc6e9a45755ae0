//! The figures of a plan before it is run: bytes, steps, least times, memory.

use super::layout::Layout;
use super::{ClientTimes, FileAccess, Plan, Shuffle, schedule};
use crate::catalog::{Ability, Catalog, FormatEntry};
use serde::Serialize;

/// The figures of a plan. Bytes and seconds; `None` where there is no compute to be fed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Files, training and evaluation.
    pub files: u64,
    /// Bytes on storage, headers and sidecars included.
    pub file_bytes: u64,
    /// Payload bytes of the training files.
    pub train_payload_bytes: u64,
    /// Payload of one sample, decoded; mean over the training files.
    pub sample_bytes_mean: f64,
    /// Bytes of one that are read: those of its file where they are packed, else its payload.
    pub sample_read_bytes_mean: f64,
    /// Files are as long as their content packs.
    pub packs: bool,
    /// Smallest and largest sample.
    pub sample_bytes_range: (u64, u64),
    /// Bytes one accelerator reads in a whole epoch: samples, and the heads of files.
    pub accelerator_epoch_bytes: f64,
    /// Steps of a whole epoch, each accelerator.
    pub steps_per_epoch: u64,
    /// Steps over the run.
    pub steps: u64,
    /// Samples dropped at the end of an epoch because they fill no batch.
    pub dropped_samples: u64,
    /// The least an epoch can take, all waits for storage hidden: compute, and the client's work that is not done meanwhile.
    pub epoch_least_s: f64,
    /// Processor time of the client; `None` of an ideal one.
    pub client: Option<ClientTimes>,
    /// Bytes per second that all accelerators together need to wait for nothing.
    pub needed_bytes_per_second: Option<f64>,
    /// Memory of the loaders: reading buffers, and whole batches where they are kept.
    pub loader_memory_bytes: f64,
}

/// Bytes that a sample kept in memory takes beside its payload.
const SLOT_BYTES: u64 = 40;

/// Reading buffer of a worker where neither workload nor format says how large.
pub const PIECE_BYTES: u64 = 1 << 20;

/// The figures of `plan`.
pub fn estimate(plan: &Plan, catalog: &Catalog) -> Estimate {
    estimate_with(plan, catalog, &Layout::new(&plan.dataset))
}

/// The same with the layout at hand, which may have many sizes to draw.
pub(super) fn estimate_with(plan: &Plan, catalog: &Catalog, layout: &Layout) -> Estimate {
    let dataset = &plan.dataset;
    let file_bytes = catalog.format(&dataset.format).map_or(0, |format| {
        layout.sum(layout.files(), |shape| dataset.file_bytes(format, shape)) as u64
    });
    let payload = layout.sum(layout.files_train(), |shape| shape.payload_bytes()) as u64;
    let samples = dataset.files_train.saturating_mul(dataset.samples_per_file);
    let sample_bytes_mean = payload as f64 / samples.max(1) as f64;
    let accelerators = u64::from(plan.accelerators);
    let step_samples = accelerators.saturating_mul(plan.loader.batch_size);
    let batch_bytes = sample_bytes_mean * plan.loader.batch_size as f64;
    // Files may hold less than their samples, and memory gives what it has.
    let file_bytes_each = file_bytes as f64 / (layout.files() as f64).max(1.0);
    let head_bytes = head_sample_bytes(plan, catalog, file_bytes_each);
    let sample_read_bytes_mean = train_bytes(plan, catalog, layout) as f64 / samples.max(1) as f64;
    let asked_bytes = (sample_read_bytes_mean + head_bytes) * plan.loader.batch_size as f64;
    let compute_s = plan.train.compute.mean_s();
    let sample_bytes_range = sample_range(layout);
    let buffer_bytes = match plan.loader.file_access {
        FileAccess::Mpio => whole_read_bytes(plan, catalog, layout),
        _ => plan.loader.buffer_bytes(),
    };
    let buffers = u64::from(plan.loader.workers.max(1)).saturating_mul(buffer_bytes);
    let batches = f64::from(plan.loader.batches_in_flight) + 1.0;
    let slots_bytes = plan.loader.batch_size.saturating_mul(SLOT_BYTES) as f64;
    let kept = if plan.loader.materialize { batches * (batch_bytes + slots_bytes) } else { 0.0 };
    let readers = u64::from(plan.readers());
    let in_memory = if plan.loader.in_memory {
        let read = schedule::samples_of_epoch(dataset, &plan.loader, plan.accelerators);
        let copies = memory_copies(plan, readers) as f64 * read as f64 / samples.max(1) as f64;
        let scratch = readers as f64 * f64::from(plan.loader.workers.max(1));
        copies * (payload as f64 + samples as f64 * SLOT_BYTES as f64)
            + scratch * sample_bytes_range.1 as f64
    } else {
        0.0
    };
    let read_bytes = if plan.loader.in_memory {
        0.0
    } else {
        sample_read_bytes_mean.min(file_bytes_each / dataset.samples_per_file.max(1) as f64)
    };
    let client = plan.loader.client_times(read_bytes * plan.loader.batch_size as f64);
    let times = client.unwrap_or_default();
    Estimate {
        files: layout.files(),
        file_bytes,
        train_payload_bytes: payload,
        sample_bytes_mean,
        sample_read_bytes_mean,
        packs: packed(plan, catalog).is_some(),
        sample_bytes_range,
        accelerator_epoch_bytes: plan.train.steps_per_epoch as f64 * asked_bytes,
        steps_per_epoch: plan.train.steps_per_epoch,
        steps: plan.train.steps(),
        dropped_samples: schedule::samples_of_epoch(dataset, &plan.loader, plan.accelerators)
            .saturating_sub(plan.train.steps_per_epoch.saturating_mul(step_samples)),
        epoch_least_s: times.start_s
            + plan.train.steps_per_epoch as f64
                * times.step_s(compute_s, plan.loader.workers, f64::INFINITY),
        client,
        needed_bytes_per_second: (compute_s > 0.0)
            .then(|| asked_bytes * f64::from(plan.accelerators) / compute_s),
        loader_memory_bytes: readers as f64 * buffers as f64
            + f64::from(plan.accelerators) * kept
            + in_memory,
    }
}

/// The format of files that are as long as their content packs: pictures, numbers as text, all that is compressed.
fn packed<'a>(plan: &Plan, catalog: &'a Catalog) -> Option<&'a FormatEntry> {
    let format = catalog.format(&plan.dataset.format)?;
    if format.knows_bytes(&plan.dataset.encoding) { None } else { Some(format) }
}

/// Bytes that are read of all files to train on: of packed ones all, else the payload.
pub(super) fn train_bytes(plan: &Plan, catalog: &Catalog, layout: &Layout) -> u64 {
    let format = packed(plan, catalog);
    let bytes = layout.sum(layout.files_train(), |shape| match format {
        Some(format) => plan.dataset.file_bytes(format, shape),
        None => shape.payload_bytes(),
    });
    bytes as u64
}

/// Longest read where a sample is read at once: the whole file, in formats that cannot read it by itself.
pub(super) fn whole_read_bytes(plan: &Plan, catalog: &Catalog, layout: &Layout) -> u64 {
    let format = catalog.format(&plan.dataset.format);
    let alone = format.is_some_and(|format| format.member.has(Ability::RandomAccess));
    if alone { sample_range(layout).1 } else { file_bytes_max(plan, catalog, layout) }
}

/// Longest file, with what lies beside it.
pub(super) fn file_bytes_max(plan: &Plan, catalog: &Catalog, layout: &Layout) -> u64 {
    let Some(format) = catalog.format(&plan.dataset.format) else { return 0 };
    let shapes = layout.shapes(layout.files());
    shapes.map(|(shape, _)| plan.dataset.file_bytes(format, &shape)).max().unwrap_or(0)
}

/// How often a sample comes to be in memory: each that reads it keeps it.
fn memory_copies(plan: &Plan, readers: u64) -> u64 {
    let loader = &plan.loader;
    let shuffled =
        [loader.file_shuffle, loader.sample_shuffle].iter().any(|&shuffle| shuffle != Shuffle::Off);
    match loader.file_access {
        FileAccess::Same => readers,
        // Others' samples come with each new order.
        _ if shuffled && loader.seed_change_epoch => readers.min(plan.train.epochs_run().into()),
        _ => 1,
    }
}

/// Bytes of heads for a sample. A file is opened for each run of samples that lie in it; by several workers more often.
fn head_sample_bytes(plan: &Plan, catalog: &Catalog, file_bytes: f64) -> f64 {
    let (dataset, loader) = (&plan.dataset, &plan.loader);
    let Some(head) = loader.head else { return 0.0 };
    if loader.in_memory {
        return 0.0;
    }
    let format = catalog.format(&dataset.format);
    let stays_open = format.is_some_and(|format| format.member.has(Ability::KeepsOpen));
    let in_a_row = match (stays_open, loader.shuffles_samples() && dataset.files_train > 1) {
        (false, _) => 1,
        (true, false) => dataset.samples_per_file,
        (true, true) => loader.shuffle_block.unwrap_or(1).min(dataset.samples_per_file),
    };
    (f64::from(head.reads) * head.bytes as f64).min(file_bytes) / in_a_row.max(1) as f64
}

/// The smallest and the largest sample.
fn sample_range(layout: &Layout) -> (u64, u64) {
    let sizes = layout.shapes(layout.files_train()).map(|(shape, _)| shape.sample_bytes());
    sizes.fold((u64::MAX, 0), |(least, most), bytes| (least.min(bytes), most.max(bytes)))
}
