//! Refuses a dataset with fewer samples than a step needs, and says how many files or which scale would suffice.

use super::Builder;
use super::dataset::scale_by;
use crate::plan::explain::train_bytes;
use crate::plan::layout::Layout;
use crate::plan::{DatasetPlan, LoaderPlan, Plan};
use crate::units::{self, counted};

impl Builder<'_> {
    /// Refuses a dataset whose samples do not suffice for one step.
    pub(super) fn refuse_too_few_samples(
        &mut self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        accelerators: u32,
    ) {
        let samples = dataset.samples_train();
        let batch_size = loader.batch_size;
        let step_samples = u128::from(batch_size) * u128::from(accelerators);
        let requirement = format!(
            "{} with batches of `{batch_size}` need {step_samples} samples for one step",
            counted(accelerators.into(), "accelerator")
        );
        if self.options.scale < 1.0 {
            // The problem has no key, since the scale is an option of the command line.
            let scale = self.options.scale;
            let remaining = counted(samples, "sample");
            let sizes = self.sufficient_sizes(dataset, loader, step_samples);
            let hint = format!(
                "{sizes}; or use fewer accelerators (`-n`) or a smaller `reader.batch_size`"
            );
            self.error(
                "",
                format!("`--scale {scale}` leaves {remaining}, and {requirement}"),
                &hint,
            );
        } else if u64::from(accelerators) > samples {
            self.error(
                "accelerators",
                format!(
                    "`{accelerators}` accelerators share {}: some would have none",
                    counted(samples, "sample")
                ),
                &format!("use fewer accelerators or {}", self.more_files(step_samples)),
            );
        } else {
            self.error(
                "reader.batch_size",
                format!("{requirement}, the dataset has {samples}"),
                &format!(
                    "use a smaller batch, fewer accelerators or {}",
                    self.more_files(step_samples)
                ),
            );
        }
    }

    /// Returns advice on the smallest dataset whose steps are judged without doubt, with its bytes. If it exceeds the workload's, the advice
    /// also names the scale that suffices for one step.
    fn sufficient_sizes(
        &self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        step_samples: u128,
    ) -> String {
        let plan = Plan { dataset: dataset.clone(), loader: loader.clone(), ..Plan::default() };
        let excluded =
            [self.w.output_metric_exclude_start_steps, self.w.output_metric_exclude_end_steps];
        // More steps are judged than batches are held when the first of them begins.
        let judged_steps = excluded.into_iter().fold(plan.stock_batches() + 1, u64::saturating_add);
        let judged_samples = step_samples.saturating_mul(u128::from(judged_steps));
        let size = |files, samples_per_file| {
            let dataset = DatasetPlan { files_train: files, samples_per_file, ..dataset.clone() };
            if dataset.limit_violation().is_some() {
                return "too many files".into();
            }
            let layout = Layout::new(&dataset);
            let plan = Plan { dataset, ..Plan::default() };
            units::bytes(train_bytes(&plan, self.catalog, &layout))
        };
        let scaled = |samples| {
            let scale = self.scale_min(samples)?;
            let (files, samples_per_file) = self.scale_own_files(scale);
            Some(format!("`--scale {scale}` or more ({})", size(files, samples_per_file)))
        };
        if let Some(text) = scaled(judged_samples) {
            return format!("give {text}");
        }
        let mut more = self.more_files(judged_samples);
        if let Some(files) = self.files_needed(judged_samples) {
            more += &format!(" ({})", size(files, self.w.dataset_num_samples_per_file));
        }
        match scaled(step_samples) {
            Some(text) => format!("give {text} for one step, or for a certain answer {more}"),
            None => format!("leave `--scale` out and use {more}"),
        }
    }

    /// Returns the numbers of files and of samples per file that `scale` leaves of the workload's.
    fn scale_own_files(&self, scale: f64) -> (u64, u64) {
        scale_by(scale, self.w.dataset_num_files_train, self.w.dataset_num_samples_per_file)
    }

    /// Returns advice to use more files, with the number of files for `samples` samples if it is known.
    fn more_files(&self, samples: u128) -> String {
        match self.files_needed(samples) {
            Some(files) => format!("more files: `dataset.num_files_train={files}` or more"),
            None => "more files".into(),
        }
    }

    /// Returns the number of files with `samples` samples; `None` if the workload does not set the number for all accelerators.
    fn files_needed(&self, samples: u128) -> Option<u64> {
        if self.w.dataset_foreign || self.w.dataset_scaling == "weak" {
            return None;
        }
        let files = samples.div_ceil(self.w.dataset_num_samples_per_file.max(1).into());
        u64::try_from(files).ok()
    }

    /// Returns the smallest `--scale` with two digits that leaves `samples` samples; `None` if the whole dataset has fewer samples.
    fn scale_min(&self, samples: u128) -> Option<f64> {
        let files = self.w.dataset_num_files_train;
        let samples_per_file = self.w.dataset_num_samples_per_file;
        let share = samples as f64 / (files as f64 * samples_per_file as f64);
        let digit = 10_f64.powf(share.log10().floor() - 1.0);
        let digits_min = (share / digit).ceil() as u32;
        // Scaling may round the number of files down, but twice the share always suffices.
        let texts =
            (digits_min..=2 * digits_min).map(|digits| format!("{:.9}", f64::from(digits) * digit));
        let mut scales = texts.filter_map(|text| text.parse().ok());
        scales.find(|&scale| {
            let (scaled_files, scaled_samples) = self.scale_own_files(scale);
            scale <= 1.0 && samples <= u128::from(scaled_files) * u128::from(scaled_samples)
        })
    }
}
