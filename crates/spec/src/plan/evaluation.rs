//! Evaluation between epochs: files, batches and compute of its own, read by the same kind of loader. One evaluation is an epoch.

use super::{LoaderPlan, Plan, TrainPlan};
use serde::{Deserialize, Serialize};

/// Evaluations of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationPlan {
    /// The first comes after this epoch, and after its checkpoint.
    pub after_epoch: u32,
    /// Epochs from one to the next.
    pub epochs_between: u32,
    /// How its samples are read.
    pub loader: LoaderPlan,
    /// Its steps and their compute.
    pub train: TrainPlan,
}

impl EvaluationPlan {
    /// Whether one comes after `epoch`.
    pub fn is_due(&self, epoch: u32) -> bool {
        is_due(epoch, self.after_epoch, self.epochs_between)
    }
}

/// Whether what comes after epoch `first` and every `between` epochs from then on comes after `epoch`.
pub(super) fn is_due(epoch: u32, first: u32, between: u32) -> bool {
    epoch >= first && (epoch - first).is_multiple_of(between.max(1))
}

impl Plan {
    /// The evaluations as a plan of their own: its training files are the evaluation's, numbered from 0.
    pub fn of_evaluations(&self) -> Option<Plan> {
        let evaluation = self.evaluation.as_ref()?;
        let mut plan = self.clone();
        plan.dataset.files_train = self.dataset.files_eval;
        plan.loader = evaluation.loader.clone();
        plan.train = evaluation.train.clone();
        (plan.checkpoint, plan.evaluation) = (None, None);
        plan.doubts.clear();
        Some(plan)
    }
}
