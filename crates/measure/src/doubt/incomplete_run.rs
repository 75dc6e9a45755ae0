//! The run did not reach its end.

use super::{Doubt, Severity, found};
use crate::window::Scope;
use feedrate_spec::units;

pub(super) static DOUBT: Doubt = Doubt {
    name: "incomplete_run",
    severity: Severity::Invalid,
    meaning: "The run was interrupted or failed: what it measured is kept, and is no result.",
    check: |facts| {
        let record = facts.record;
        if record.complete {
            return None;
        }
        let why =
            record.stopped_because.as_deref().unwrap_or("it was killed, or is still going on");
        let planned = record.plan.train.epochs_run();
        let evidence = match record.plan.is_checkpoints_alone() {
            true => {
                let done = record.epochs.iter().map(|epoch| epoch.checkpoints.len()).sum::<usize>();
                format!(
                    "{} were written and read: {why}",
                    units::counted(done as u64, "checkpoint")
                )
            }
            false => {
                format!("{} of {planned} epochs are there: {why}", Scope::all(record).count())
            }
        };
        found(evidence, "run again to the end")
    },
};
