//! The files of steps were not published.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::{Bound, CountedSteps};
use feedrate_measure::metric::AU_ALL_STEPS;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "no_step_files",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "Files `<rank>_output.json` are missing, as usual in results published by submitters to MLPerf Storage. Utilisation over all steps is therefore computed as steps × compute time of a step ÷ duration of rank 0's blocks, and single steps and differences between ranks are unknown.",
        evidence: "[steps of {step_ranks:.0} of {ranks} are available|steps of all {ranks:.0} ranks are missing]; [{epoch_steps} per epoch|the number of steps per epoch is unknown][ of {compute_s} compute][: AU {au_all_steps_percent:.2} % over all steps|: AU over all steps is unknown][, which is {bound}][; the reported rate counts {counted}]",
        advice: "keep the files of all ranks from all hosts with the results",
    },
    check: Check::Import(|run, imported| {
        let totals = imported.totals.as_ref()?;
        let known = imported.ranks.len();
        let bound = totals.bound.map(|bound| match bound {
            Bound::AtMost => "an upper bound, as only the config has the number of steps",
            Bound::AtLeast => "a lower bound, as compute is random and only its mean is known",
        });
        let counted = totals.counted.map(|counted| match counted {
            CountedSteps::All => "all steps, as DLIO of MLPerf Storage 1.0 and before did",
            CountedSteps::AllButTwo => "all steps but two, over the time of the window",
            CountedSteps::Window => "the steps of the window, over its time",
        });
        let facts = Facts::new()
            .with_known("step_ranks", (0 < known).then_some(known))
            .with("ranks", imported.ranks_expected.unwrap_or_default())
            .with_known("epoch_steps", (0 < run.steps).then_some(run.steps))
            .with_known("compute_s", run.step_times.compute_s_per_step)
            .with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS))
            .with_known("bound", run.bound.and(bound))
            .with_known("counted", counted);
        Some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        let run = tests::good_run().write(root, "w/4/a");
        (0..4).for_each(|rank| {
            std::fs::remove_file(run.join(format!("{rank}_output.json"))).unwrap()
        });
    },
};
