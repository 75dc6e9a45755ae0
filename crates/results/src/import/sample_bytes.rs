//! Bytes of a sample as DLIO's generator makes them, which is not what `record_length_bytes` says where sizes are drawn: a draw below 1 is cut.

use super::Config;
use super::abilities::DlioAbility::{IsPlain, KeepsOrder};
use super::abilities::dlio_has;
use super::plan::RECORD_STDEV;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{DatasetPlan, Plan};

/// Mean over the training files; `None` where the settings do not tell it: sizes of too many files, compression, formats that pack.
pub(crate) fn mean_sample_bytes(config: &Config, dataset: &DatasetPlan) -> Option<f64> {
    let is_packed = config.text(&["dataset.compression"]).is_some_and(|name| name != "none");
    let is_drawn = config.number(&RECORD_STDEV).is_some_and(|stdev| stdev > 0.0);
    let is_plain = dlio_has(&dataset.format, IsPlain) && !config.has("dataset.record_dims");
    let is_unknown = is_packed || (is_drawn && dataset.record_stdev_bytes == 0.0);
    if !is_plain || is_unknown || dataset.files_train == 0 {
        return None;
    }
    let layout = Layout::new(&DatasetPlan { samples_per_file: 1, ..dataset.clone() });
    let files = layout.files_train();
    let mean = layout.sum(files, |shape| shape.sample_bytes()) as f64 / files as f64;
    mean.is_finite().then_some(mean)
}

/// Bytes of each rank's first batch, where sizes are drawn and the order is that of the names; else empty.
pub(crate) fn first_batch_bytes(plan: &Plan, ranks: u32) -> Vec<f64> {
    let dataset = &plan.dataset;
    let is_in_order = dlio_has(&plan.loader.kind, KeepsOrder) && plan.loader.workers > 0;
    let is_drawn = dataset.record_stdev_bytes > 0.0 && dataset.samples_per_file == 1;
    if !is_drawn || !is_in_order {
        return Vec::new();
    }
    first_batch_bytes_of(dataset, plan.loader.batch_size, ranks)
}

/// The same of files in the order of their names. With DLIO's loader `pytorch` a rank has its share of the files one after another, and one worker reads a batch. Empty
/// where files are too few.
pub(crate) fn first_batch_bytes_of(dataset: &DatasetPlan, batch: u64, ranks: u32) -> Vec<f64> {
    let ranks = u64::from(ranks);
    let fits = batch.checked_mul(ranks).is_some_and(|first| first <= dataset.files_train);
    if !fits || batch == 0 || ranks == 0 {
        return Vec::new();
    }
    let layout = Layout::new(dataset);
    let each = dataset.files_train.div_ceil(ranks);
    let batches = (0..ranks).map(|rank| {
        let files = rank * each..(rank * each + batch).min(dataset.files_train);
        files.map(|file| layout.shape(file).sample_bytes() as f64).sum()
    });
    batches.collect()
}
