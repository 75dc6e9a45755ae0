//! Results without the files of steps.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::{Bound, CountedSteps};
use feedrate_measure::metric::AU_ALL_STEPS;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "no_step_files",
        severity: Severity::Note,
        meaning: "Ranks left no `<rank>_output.json`, as submitters of MLPerf Storage publish their results: utilisation over all steps is steps × compute of a step ÷ length of the blocks of rank 0, and nothing is known of single steps and of ranks.",
        evidence: "[steps of {step_ranks:.0} of {ranks} are there|there are no steps of {ranks:.0}]; [{epoch_steps} an epoch|it is not known how many steps an epoch has][ of {compute_s} compute][: AU {au_all_steps_percent:.2} % over all steps|: AU over all steps is not known][, which is {bound}][; the reported rate counts {counted}]",
        advice: "keep the files of all ranks, from all hosts, with the results",
    },
    check: Check::OfImport(|run, imported| {
        let totals = imported.totals.as_ref()?;
        let known = imported.ranks.len();
        let facts = Facts::new().with_known("step_ranks", (0 < known).then_some(known));
        let facts = facts.with("ranks", imported.ranks_expected.unwrap_or_default());
        let facts = facts.with_known("epoch_steps", (0 < run.steps).then_some(run.steps));
        let facts = facts.with_known("compute_s", run.step_times.compute_s_per_step);
        let facts = facts.with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS));
        let bound = totals.bound.map(|bound| match bound {
            Bound::AtMost => "an upper bound, as the config alone tells how many steps there were",
            Bound::AtLeast => "a lower bound, as compute is drawn and only its mean is known",
        });
        let counted = totals.counted.map(|counted| match counted {
            CountedSteps::All => "all steps, as DLIO of MLPerf Storage 1.0 and before did",
            CountedSteps::AllButTwo => "all steps but two, in the time of the window",
            CountedSteps::Window => "the steps of the window, in its time",
        });
        let facts = facts.with_known("bound", run.bound.and(bound));
        Some(facts.with_known("counted", counted))
    }),
    #[cfg(test)]
    fires: |root| {
        let run = tests::good().write(root, "w/4/a");
        (0..4).for_each(|rank| {
            std::fs::remove_file(run.join(format!("{rank}_output.json"))).unwrap()
        });
    },
};
