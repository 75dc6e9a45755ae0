//! Figures that follow from a plan before its run: bytes, steps, minimum times and memory.

use super::layout::Layout;
use super::{ClientTimes, DatasetPlan, FileAccess, Plan, Shuffle, schedule};
use crate::catalog::{Ability, Catalog, FormatEntry};
use serde::Serialize;

/// Figures of a plan in bytes and seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of training and evaluation files.
    pub files: u64,
    /// Bytes on storage, including headers and sidecars.
    pub file_bytes: u64,
    /// Payload bytes of the training files.
    pub train_payload_bytes: u64,
    /// Mean payload of a decoded sample over the training files.
    pub sample_bytes_mean: f64,
    /// Mean bytes read for a sample: its share of the file if the file's size depends on its content, else its payload.
    pub sample_read_bytes_mean: f64,
    /// Whether the size of files depends on their content, as with compression.
    pub packs: bool,
    /// Payload of the smallest and the largest sample.
    pub sample_bytes_range: (u64, u64),
    /// Bytes that one accelerator reads in a complete epoch: samples and heads of files.
    pub accelerator_epoch_bytes: f64,
    /// Steps of each accelerator in a complete epoch.
    pub steps_per_epoch: u64,
    /// Steps of each accelerator in the run.
    pub steps: u64,
    /// Samples dropped at the end of an epoch because they do not fill a batch.
    pub dropped_samples: u64,
    /// Minimum duration of an epoch if no step waits for storage: compute, and client work that does not overlap with compute.
    pub epoch_least_s: f64,
    /// Processor times of the client; `None` for an ideal client.
    pub client: Option<ClientTimes>,
    /// Bytes per second at which no accelerator waits, for all accelerators together; `None` without compute.
    pub needed_bytes_per_second: Option<f64>,
    /// Memory of the loaders: read buffers, and complete batches if they are kept.
    pub loader_memory_bytes: f64,
    /// Memory that the emulated framework's loader needs for the batches in flight of all accelerators. `None` if samples stay in memory, since
    /// then both need the same.
    pub real_loader_memory_bytes: Option<f64>,
}

/// Memory of a sample in addition to its payload.
const SLOT_BYTES: u64 = 40;

/// Default size of a worker's read buffer, if neither the workload nor the format sets it.
pub const PIECE_BYTES: u64 = 1 << 20;

/// Computes the figures of `plan`.
pub fn estimate(plan: &Plan, catalog: &Catalog) -> Estimate {
    estimate_with(plan, catalog, &Layout::new(&plan.dataset))
}

/// Like [`estimate`], with an existing layout: it is expensive to create if many sizes are drawn.
pub(super) fn estimate_with(plan: &Plan, catalog: &Catalog, layout: &Layout) -> Estimate {
    let dataset = &plan.dataset;
    let file_bytes = catalog.format(&dataset.format).map_or(0, |format| {
        layout.sum(layout.files(), |shape| dataset.file_bytes(format, shape)) as u64
    });
    let payload = layout.sum(layout.files_train(), |shape| shape.payload_bytes()) as u64;
    let samples = dataset.samples_train();
    let sample_bytes_mean = payload as f64 / samples.max(1) as f64;
    let batch_size = plan.loader.batch_size;
    let step_samples = u64::from(plan.accelerators).saturating_mul(batch_size);
    let file_bytes_mean = file_bytes as f64 / (layout.files() as f64).max(1.0);
    let head_bytes = head_sample_bytes(plan, catalog, file_bytes_mean);
    let sample_read_bytes_mean = train_bytes(plan, catalog, layout) as f64 / samples.max(1) as f64;
    let step_read_bytes = (sample_read_bytes_mean + head_bytes) * batch_size as f64;
    let compute_s = plan.train.compute.mean_s();
    let sample_bytes_range = sample_range(layout);
    // The client's costs depend on the bytes from storage: 0 if samples come from memory, at most the bytes of the file.
    let client_sample_bytes = if plan.loader.in_memory {
        0.0
    } else {
        sample_read_bytes_mean.min(file_bytes_mean / dataset.samples_per_file.max(1) as f64)
    };
    let client =
        plan.loader.client_times(client_sample_bytes * batch_size as f64, plan.accelerators);
    let times = client.unwrap_or_default();
    Estimate {
        files: layout.files(),
        file_bytes,
        train_payload_bytes: payload,
        sample_bytes_mean,
        sample_read_bytes_mean,
        packs: content_sized_format(plan, catalog).is_some(),
        sample_bytes_range,
        accelerator_epoch_bytes: plan.train.steps_per_epoch as f64 * step_read_bytes,
        steps_per_epoch: plan.train.steps_per_epoch,
        steps: plan.train.steps(),
        dropped_samples: schedule::samples_of_epoch(dataset, &plan.loader, plan.accelerators)
            .saturating_sub(plan.train.steps_per_epoch.saturating_mul(step_samples)),
        epoch_least_s: times.start_s
            + plan.train.steps_per_epoch as f64
                * times.step_s(compute_s, plan.loader.workers, f64::INFINITY),
        client,
        needed_bytes_per_second: (compute_s > 0.0)
            .then(|| step_read_bytes * f64::from(plan.accelerators) / compute_s),
        loader_memory_bytes: loader_memory_bytes(plan, catalog, layout, payload),
        real_loader_memory_bytes: (!plan.loader.in_memory && !plan.is_checkpoint_only()).then(
            || {
                let batches = f64::from(plan.loader.batches_in_flight.max(1));
                batches * sample_bytes_mean * batch_size as f64 * f64::from(plan.accelerators)
            },
        ),
    }
}

/// Memory of the loaders over all accelerators: read buffers, complete batches, and samples that are kept. `payload` is the payload
/// of all training files.
fn loader_memory_bytes(plan: &Plan, catalog: &Catalog, layout: &Layout, payload: u64) -> f64 {
    let dataset = &plan.dataset;
    let loader = &plan.loader;
    let samples = dataset.samples_train();
    let readers = u64::from(plan.readers());
    let buffer_bytes = match loader.file_access {
        FileAccess::Mpio => whole_read_bytes(dataset, catalog, layout),
        _ => loader.buffer_bytes(),
    };
    let buffers_bytes = u64::from(loader.streams()).saturating_mul(buffer_bytes);
    let batches_bytes = if loader.materialize {
        let batches = f64::from(loader.batches_in_flight) + 1.0;
        let sample_bytes_mean = payload as f64 / samples.max(1) as f64;
        let batch_bytes = sample_bytes_mean * loader.batch_size as f64;
        let slots_bytes = loader.batch_size.saturating_mul(SLOT_BYTES) as f64;
        batches * (batch_bytes + slots_bytes)
    } else {
        0.0
    };
    let samples_bytes = if loader.in_memory {
        let read_samples = schedule::samples_of_epoch(dataset, loader, plan.accelerators);
        let copies =
            memory_copies(plan, readers) as f64 * read_samples as f64 / samples.max(1) as f64;
        let scratch = readers as f64 * f64::from(loader.workers.max(1));
        copies * (payload as f64 + samples as f64 * SLOT_BYTES as f64)
            + scratch * sample_range(layout).1 as f64
    } else {
        0.0
    };
    readers as f64 * buffers_bytes as f64
        + f64::from(plan.accelerators) * batches_bytes
        + samples_bytes
}

/// Returns the plan's format if the size of its files depends on their content, as for images, text and compressed files.
fn content_sized_format<'a>(plan: &Plan, catalog: &'a Catalog) -> Option<&'a FormatEntry> {
    let format = catalog.format(&plan.dataset.format)?;
    if format.has_exact_size(&plan.dataset.encoding) { None } else { Some(format) }
}

/// Returns the bytes read from all training files: the whole files if their size depends on the content, else the payload.
pub(super) fn train_bytes(plan: &Plan, catalog: &Catalog, layout: &Layout) -> u64 {
    let format = content_sized_format(plan, catalog);
    let bytes = layout.sum(layout.files_train(), |shape| match format {
        Some(format) => plan.dataset.file_bytes(format, shape),
        None => shape.payload_bytes(),
    });
    bytes as u64
}

/// Returns the length of the longest read if each sample takes one read: a sample, or a whole file in formats without random access.
pub(super) fn whole_read_bytes(dataset: &DatasetPlan, catalog: &Catalog, layout: &Layout) -> u64 {
    let format = catalog.format(&dataset.format);
    let reads_samples = format.is_some_and(|format| format.member.has(Ability::RandomAccess));
    if reads_samples { sample_range(layout).1 } else { file_bytes_max(dataset, catalog, layout) }
}

/// Returns the bytes of the largest file, including its sidecars.
pub(super) fn file_bytes_max(dataset: &DatasetPlan, catalog: &Catalog, layout: &Layout) -> u64 {
    let Some(format) = catalog.format(&dataset.format) else { return 0 };
    let shapes = layout.shapes(layout.files());
    shapes.map(|(shape, _)| dataset.file_bytes(format, &shape)).max().unwrap_or(0)
}

/// Returns the number of copies of a sample in memory: each accelerator that reads the sample keeps a copy.
fn memory_copies(plan: &Plan, readers: u64) -> u64 {
    let loader = &plan.loader;
    let shuffled =
        [loader.file_shuffle, loader.sample_shuffle].iter().any(|&shuffle| shuffle != Shuffle::Off);
    match loader.file_access {
        FileAccess::Same => readers,
        // With a new order in each epoch, an accelerator also reads samples that others read before.
        _ if shuffled && loader.seed_change_epoch => readers.min(plan.train.epochs_run().into()),
        _ => 1,
    }
}

/// Returns the bytes of file heads per sample. A file is opened once for each sequence of consecutive samples from it; the estimate ignores
/// that with several workers it is opened more often.
fn head_sample_bytes(plan: &Plan, catalog: &Catalog, file_bytes: f64) -> f64 {
    let dataset = &plan.dataset;
    let loader = &plan.loader;
    let Some(head) = loader.head else { return 0.0 };
    if loader.in_memory {
        return 0.0;
    }
    let format = catalog.format(&dataset.format);
    let stays_open = format.is_some_and(|format| format.member.has(Ability::KeepsOpen));
    let consecutive_samples =
        match (stays_open, loader.shuffles_samples() && dataset.files_train > 1) {
            (false, _) => 1,
            (true, false) => dataset.samples_per_file,
            (true, true) => loader.shuffle_block.unwrap_or(1).min(dataset.samples_per_file),
        };
    (f64::from(head.reads) * head.bytes as f64).min(file_bytes) / consecutive_samples.max(1) as f64
}

/// Returns the payload of the smallest and the largest sample.
fn sample_range(layout: &Layout) -> (u64, u64) {
    let sizes = layout.shapes(layout.files_train()).map(|(shape, _)| shape.sample_bytes());
    sizes.fold((u64::MAX, 0), |(min, max), bytes| (min.min(bytes), max.max(bytes)))
}
