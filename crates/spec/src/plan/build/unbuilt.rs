//! What a plan would reach and cannot do yet. Where it would not be reached, it is accepted.

use super::Builder;

impl Builder<'_> {
    /// Ways of reading that are not built.
    pub(super) fn unbuilt_reading(&mut self) {
        if self.w.workflow_profiling {
            self.error("workflow.profiling", "is not supported yet".into(), "set it to false");
        }
    }

    /// What this plan would reach and cannot do yet.
    pub(super) fn unbuilt_features(&mut self) {
        if !self.trains() {
            return;
        }
        let w = self.w;
        if !w.workflow_train {
            let (what, hint) = if w.workflow_checkpoint {
                ("a run of checkpoints only is not supported yet", "set `workflow.train=true`")
            } else {
                (
                    "nothing is trained",
                    "use `feedrate generate` to make the data only, or set `workflow.train=true`",
                )
            };
            self.error("workflow.train", what.into(), hint);
        }
    }
}
