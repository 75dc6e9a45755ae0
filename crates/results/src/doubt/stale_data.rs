//! The run may have read a dataset that another run generated.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

/// Name of the doubt.
pub const NAME: &str = "stale_data";

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        // The doubt of records with this name is invalid, since a record proves it.
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "According to logs and configs, the run read files that another run had generated with other settings, unless the dataset was generated again without a log. Its numbers may be those of another dataset, and its MB/s may be computed from a wrong size.",
        evidence: "the last logged generation in its data folder before the run was `{maker}`[ ({made})], where {differs:.99}[; the generation ran on `{host}`, the run on `{own_host}`][; {unfinished}]",
        advice: "generate a dataset in a separate folder for each set of dataset settings, and repeat the run",
    },
    check: Check::Set(|relations, index| {
        let stale = relations.stale_dataset(index)?;
        let run = &relations.runs[index];
        let maker = &relations.runs[stale.maker];
        let differs = stale.differs.iter().map(|setting| {
            format!("{} was {} and is {} in the run", setting.key, setting.files, setting.run)
        });
        let mut facts = Facts::new()
            .with("maker", maker.short_path())
            .with_known("made", maker.started.clone())
            .with("differs", differs.collect::<Vec<_>>());
        if let (Some(own_host), Some(host)) = (&run.hostname, &maker.hostname)
            && own_host != host
        {
            facts = facts.with("host", host.clone()).with("own_host", own_host.clone());
        }
        let is_unfinished = run.dataset_use.is_generation_unfinished;
        let unfinished = "the run's log does not show that it finished generating its own dataset";
        Some(facts.with_known("unfinished", is_unfinished.then_some(unfinished)))
    }),
    #[cfg(test)]
    fires: |root| {
        let large = |start_s| tests::Fake { start_s, ..tests::large_run() };
        tests::Fake { generate: true, train: false, ..large(900.0) }.write(root, "w/4_x/made");
        tests::Fake { start_s: 1800.0, slower: 4.0, ..tests::Fake::default() }.write(root, "w/4/a");
    },
};
