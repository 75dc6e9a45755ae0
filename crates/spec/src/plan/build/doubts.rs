//! Doubts that are known before running.

use super::{Builder, Context};
use crate::catalog::Ability;
use crate::plan::layout::Layout;
use crate::plan::{Plan, PlanDoubt};
use crate::units;

impl Builder<'_> {
    pub(super) fn doubts(&self, plan: &Plan, context: Context) -> Vec<PlanDoubt> {
        let mut doubts = Vec::new();
        let mut doubt = |name: &str, evidence: String, advice: &str| {
            doubts.push(PlanDoubt { name: name.into(), evidence, advice: advice.into() });
        };
        let steps = plan.train.steps_in_epoch(1);
        let stock = u64::from(plan.loader.stock_batches);
        let window =
            steps.saturating_sub(plan.metric.exclude_start_steps + plan.metric.exclude_end_steps);
        if window <= stock {
            doubt(
                "window_shorter_than_stock",
                format!(
                    "{window} steps are judged, and the loader may hold {stock} batches by then"
                ),
                "use more files, fewer accelerators, or fewer reading threads; believe au_all_steps",
            );
        }
        let layout = Layout::new(&plan.dataset);
        let bytes = layout.sum(layout.files_train(), |shape| shape.payload_bytes()) as u64;
        let keeps =
            self.catalog.storage(&plan.storage.kind).is_some_and(|m| m.has(Ability::PageCache));
        if let Some(memory) = context.memory_bytes.filter(|&memory| keeps && bytes < memory) {
            doubt(
                "dataset_fits_page_cache",
                format!(
                    "the dataset is {}, the memory {}",
                    units::bytes(bytes),
                    units::bytes(memory)
                ),
                "use a dataset of at least five times the memory, or `--cold`",
            );
        }
        if self.request.scale != 1.0 {
            doubt(
                "scaled",
                format!(
                    "`--scale {}`: {} files instead of {}",
                    self.request.scale, plan.dataset.files_train, self.w.dataset_num_files_train
                ),
                "shorter epochs: compare only with runs of the same scale",
            );
        }
        if self.request.shrink_records != 1.0 {
            doubt(
                "records_shrunk",
                format!(
                    "`--shrink-records {}`: records of {} instead of {}",
                    self.request.shrink_records,
                    units::bytes(plan.dataset.record_bytes as u64),
                    units::bytes(self.w.dataset_record_length_bytes as u64)
                ),
                "this is another workload: do not compare it with the full one",
            );
        }
        if self.w.workflow_checkpoint && plan.checkpoint.is_none() {
            doubt(
                "checkpoint_not_reached",
                "checkpoints are asked for, and this plan ends before the first".into(),
                "use more epochs to see what they cost",
            );
        }
        if plan.checkpoint.is_some() {
            doubt(
                "raw_checkpoint",
                "checkpoints are written as the bytes of the model alone".into(),
                "their size and rate are right; torch cannot load them yet",
            );
        }
        doubts
    }
}
