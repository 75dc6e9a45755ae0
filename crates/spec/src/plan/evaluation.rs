//! Evaluations between epochs. They have their own files, batches and compute times, and use the loader of training. Each evaluation is
//! one epoch.

use super::{LoaderPlan, Plan, TrainPlan};
use serde::{Deserialize, Serialize};

/// The evaluations of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationPlan {
    /// Epoch after which the first evaluation takes place, after a checkpoint of the same epoch.
    pub after_epoch: u32,
    /// Number of epochs from one evaluation to the next.
    pub epochs_between: u32,
    /// The loader of an evaluation.
    pub loader: LoaderPlan,
    /// Steps of an evaluation and their compute.
    pub train: TrainPlan,
}

impl EvaluationPlan {
    /// Whether an evaluation takes place after `epoch`.
    pub fn is_due(&self, epoch: u32) -> bool {
        is_due(epoch, self.after_epoch, self.epochs_between)
    }
}

/// Whether an event is due after `epoch`, if it occurs after epoch `first` and then every `between` epochs.
pub(super) fn is_due(epoch: u32, first: u32, between: u32) -> bool {
    epoch >= first && (epoch - first).is_multiple_of(between.max(1))
}

impl Plan {
    /// Returns the evaluations as a plan: the evaluation files, numbered from 0, are its training files. `None` if the run has none.
    pub fn evaluation_plan(&self) -> Option<Plan> {
        let evaluation = self.evaluation.as_ref()?;
        let mut plan = self.clone();
        plan.dataset.files_train = self.dataset.files_eval;
        plan.dataset.file_samples.clear();
        plan.loader = evaluation.loader.clone();
        plan.train = evaluation.train.clone();
        plan.checkpoint = None;
        plan.evaluation = None;
        plan.doubts.clear();
        Some(plan)
    }
}
