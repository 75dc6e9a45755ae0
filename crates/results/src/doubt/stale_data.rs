//! The run may have read the dataset of another.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(crate) const NAME: &str = "stale_data";

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        // Of our own runs the record proves it: there it is invalid.
        severity: Severity::Warning,
        meaning: "By logs and configs, the run read files that another run had made with other settings, unless the data was made again without a log: its numbers may be those of another dataset, and its MB/s of a size that it did not read.",
        evidence: "the last generation with a log in its data folder before it was `{maker}`[ ({made})], with {differs:.99}[; it ran on `{host}`, and the run on `{own_host}`][; {unfinished}]",
        advice: "make the dataset again before each run whose settings change it, in a folder of its own, and repeat the run",
    },
    check: Check::AmongRuns(|relations, index| {
        let stale = relations.stale(index)?;
        let (run, maker) = (&relations.runs[index], &relations.runs[stale.maker]);
        let differs = stale.differs.iter().map(|setting| {
            format!("{} {}, and the run has {}", setting.key, setting.files, setting.run)
        });
        let facts = Facts::new().with("maker", maker.short_path());
        let facts = facts.with_known("made", maker.started.clone());
        let mut facts = facts.with("differs", differs.collect::<Vec<_>>());
        if let (Some(own_host), Some(host)) = (&run.hostname, &maker.hostname)
            && own_host != host
        {
            facts = facts.with("host", host.clone()).with("own_host", own_host.clone());
        }
        let is_unfinished = run.dataset_use.is_generation_unfinished;
        let unfinished = "its log does not say that its own generation was done";
        Some(facts.with_known("unfinished", is_unfinished.then_some(unfinished)))
    }),
    #[cfg(test)]
    fires: |root| {
        let large = |start_s| tests::Fake { start_s, ..tests::large() };
        tests::Fake { generate: true, train: false, ..large(900.0) }.write(root, "w/4_x/made");
        tests::Fake { start_s: 1800.0, slower: 4.0, ..tests::Fake::default() }.write(root, "w/4/a");
    },
};
