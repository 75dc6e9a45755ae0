//! Mean size of samples in a dataset of DLIO's generator. It differs from `record_length_bytes` if sizes are drawn at random, because the
//! generator clamps sizes below 1.

use super::Config;
use super::abilities::DlioAbility::IsPlain;
use super::abilities::dlio_has;
use super::plan::RECORD_STDEV;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;

/// Returns the mean sample size of the training files in bytes. `None` if the settings do not determine it: files are compressed, the format
/// packs samples, or there are too many files to draw their sizes one by one.
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
