//! Plans evaluations: schedule, batches and compute.

use super::{Builder, RECORDED_STEPS_MAX, sharing_accelerators};
use crate::plan::{Barrier, DatasetPlan, EvaluationPlan, LoaderPlan, TrainPlan, schedule};
use crate::units::counted;

impl Builder<'_> {
    /// Returns the evaluations of the run; `None` if it has none.
    pub(super) fn evaluation(
        &mut self,
        dataset: &DatasetPlan,
        loader: &LoaderPlan,
        train: &TrainPlan,
        accelerators: u32,
    ) -> Option<EvaluationPlan> {
        let w = self.w;
        let after_epoch = w.evaluation_eval_after_epoch.max(1);
        let epochs_between = w.evaluation_epochs_between_evals.max(1);
        let epochs = train.epochs_run();
        if !w.workflow_evaluation || !self.trains() || after_epoch > epochs {
            return None;
        }
        if dataset.files_eval == 0 {
            let message = "there are no evaluation files, so nothing is evaluated".to_string();
            self.warning("workflow.evaluation", message, "set `dataset.num_files_eval`");
            return None;
        }
        let batch_size = w.reader_batch_size_eval;
        let samples = dataset.files_eval.saturating_mul(dataset.samples_per_file);
        let batches_per_step = sharing_accelerators(loader, accelerators);
        let steps = schedule::steps_per_epoch(samples, batch_size, batches_per_step);
        if steps == 0 {
            let needed = u128::from(batch_size) * u128::from(batches_per_step);
            let message = format!(
                "an evaluation step of {} of `{batch_size}` samples needs {needed}, and the files have {samples}",
                counted(batches_per_step.into(), "batch")
            );
            let hint = "use a smaller batch, of at least 1, or more evaluation files";
            self.error("reader.batch_size_eval", message, hint);
            return None;
        }
        let evaluations = (epochs - after_epoch) / epochs_between + 1;
        let recorded_steps =
            steps.saturating_mul(evaluations.into()).saturating_mul(accelerators.into());
        if recorded_steps > RECORDED_STEPS_MAX {
            let message = format!("a record of `{recorded_steps}` evaluation steps would not fit");
            let hint = "use fewer evaluation files, or a larger `epochs_between_evals`";
            self.error("evaluation.epochs_between_evals", message, hint);
        }
        let evaluation_train = TrainPlan {
            epochs: evaluations,
            steps_per_epoch: steps,
            total_steps: None,
            compute: self.step_time(w.evaluation_eval_time),
            barrier: Barrier::AtEnd,
            ..train.clone()
        };
        let loader = self.evaluation_loader(loader, &evaluation_train, batch_size);
        Some(EvaluationPlan { after_epoch, epochs_between, loader, train: evaluation_train })
    }

    /// Returns the loader of training, adapted to the batch size of evaluations.
    fn evaluation_loader(
        &self,
        loader: &LoaderPlan,
        train: &TrainPlan,
        batch_size: u64,
    ) -> LoaderPlan {
        let entry = self.catalog.loader(&loader.kind);
        let batches_in_flight = entry.map_or(1, |entry| {
            (entry.batches_in_flight)(loader.workers, loader.prefetch_size, batch_size)
        });
        // A second accelerator rereads only training files.
        let mut evaluation_loader =
            LoaderPlan { batch_size, batches_in_flight, reread_share: 0.0, ..loader.clone() };
        self.set_held_batches(&mut evaluation_loader, train);
        evaluation_loader
    }
}
