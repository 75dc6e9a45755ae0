//! What a plan would reach and cannot do yet. Where it would not be reached, it is accepted.

use super::Builder;

impl Builder<'_> {
    /// Ways of reading that are not built.
    pub(super) fn unbuilt_reading(&mut self) {
        if self.w.workflow_profiling {
            self.error("workflow.profiling", "is not supported yet".into(), "set it to false");
        }
    }
}
