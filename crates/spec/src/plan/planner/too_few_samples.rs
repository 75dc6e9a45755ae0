//! Refuses a dataset with fewer samples than a step needs, and says how many files or which scale would suffice.

use super::Builder;
use super::dataset::scale_by;
use crate::units::counted;

/// Steps of an epoch with which its utilisation says something.
const USEFUL_STEPS: u32 = 16;

impl Builder<'_> {
    /// Refuses a dataset whose samples do not suffice for one step.
    pub(super) fn refuse_too_few_samples(
        &mut self,
        samples: u64,
        batch_size: u64,
        accelerators: u32,
    ) {
        let step_samples = u128::from(batch_size) * u128::from(accelerators);
        let requirement = format!(
            "{} with batches of `{batch_size}` need {step_samples} samples for one step",
            counted(accelerators.into(), "accelerator")
        );
        if self.options.scale < 1.0 {
            // The problem has no key, since the scale is an option of the command line.
            let scale = self.options.scale;
            let remaining = counted(samples, "sample");
            let hint = match self.scale_min(step_samples) {
                Some(scale_min) => {
                    let useful = self.scale_min(step_samples * u128::from(USEFUL_STEPS));
                    let useful = useful.map_or(String::new(), |scale| {
                        format!("; `--scale {scale}` gives {USEFUL_STEPS} steps an epoch")
                    });
                    format!("give `--scale {scale_min}` or more{useful}")
                }
                None => "leave `--scale` out, use a smaller batch or fewer accelerators".into(),
            };
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

    /// Returns advice to use more files, with the number of files for `samples` samples if it is known.
    fn more_files(&self, samples: u128) -> String {
        if self.w.dataset_foreign || self.w.dataset_scaling == "weak" {
            return "more files".into();
        }
        let files = samples.div_ceil(self.w.dataset_num_samples_per_file.max(1).into());
        format!("more files: `dataset.num_files_train={files}` or more")
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
            let (scaled_files, scaled_samples) = scale_by(scale, files, samples_per_file);
            scale <= 1.0 && samples <= u128::from(scaled_files) * u128::from(scaled_samples)
        })
    }
}
