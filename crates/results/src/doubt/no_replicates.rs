//! One run shows no spread.

use super::{Check, Doubt, Severity, found};
use feedrate_spec::units;

pub(super) static DOUBT: Doubt = Doubt {
    name: "no_replicates",
    severity: Severity::Note,
    meaning: "The experiment was run once: how far runs vary is not known. Epochs of one run are no replicates, and DLIO's ± is over epochs.",
    check: Check::OfSet(|relations, index| {
        let run = &relations.runs[index];
        let others = relations.replicates(index).iter().filter(|other| **other != index);
        // A copy is no replicate.
        let others = others.filter(|other| {
            relations.copy_of(**other).is_none() && relations.copy_of(index).is_none()
        });
        if !run.is_result() || others.count() > 0 {
            return None;
        }
        found(
            format!(
                "one run of {} is there; a deviation over its {} is not one over runs",
                run.experiment(),
                units::counted(run.epochs, "epoch")
            ),
            "run each experiment at least five times, in random order",
        )
    }),
};
