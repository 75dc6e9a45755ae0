//! The run read the dataset of another.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity, with_like, with_third};
use crate::relations::{Evidence, Relations, Stale};
use feedrate_measure::metric::SAMPLES_WHOLE;
use feedrate_spec::units::MIB;

pub(crate) const NAME: &str = "stale_data";

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Invalid,
        meaning: "The run read files that another run had made with other settings: its numbers are those of another dataset, and its MB/s are of a size it did not read.",
        evidence: "[the files were made last by `{maker}` ({made}), with {differs:.99}|the files were made last by `{maker}`, with {differs:.99}|it waited for data as `{other}` did, which has {differs:.99}][; an epoch's waiting for data, step by step, is that of `{same_as}` to {apart_percent} ({waited_s} and {like_waited_s})|; an epoch's waiting for data, step by step, misses that of `{near}` by {apart_percent} ({waited_s} and {like_waited_s})][; `{third}` waited {third_waited_s} for samples of {third_sample_bytes}|; `{third}` waited {third_waited_s} for samples][; the ranks' waits for first batches miss the bytes of that dataset by {misses_other_percent}, those of its own by {misses_own_percent}][; {reported_mib_per_second} are reported, over whole epochs it read {read_mib_per_second}][; {besides}]",
        advice: "make the dataset again before each run whose settings change it, in a folder of its own, and repeat the run",
    },
    check: Check::AmongRuns(|relations, index| {
        let stale = relations.stale(index)?;
        let (run, other) = (&relations.runs[index], &relations.runs[stale.of]);
        let differs = stale.differs.iter();
        let differs = differs
            .map(|(key, own, other)| format!("{key} {other}, and the run is said to have {own}"));
        let name = match stale.evidence {
            Evidence::Generation => "maker",
            Evidence::Results => "other",
        };
        let mut facts = Facts::new().with(name, other.short_path());
        facts = facts.with_known("made", other.started.clone());
        facts = facts.with("differs", differs.collect::<Vec<_>>());
        if let Some(like) = &stale.like {
            facts = with_like(facts, relations, index, like);
        }
        facts = with_third(facts, relations, stale.unlike);
        if let Some((misses_own, misses_other)) = stale.fits.filter(|(own, other)| other < own) {
            facts = facts.with("misses_own_percent", misses_own * 100.0);
            facts = facts.with("misses_other_percent", misses_other * 100.0);
        }
        let read = run.metric(&SAMPLES_WHOLE).zip(other.mean_sample_bytes);
        facts = facts.with_known("reported_mib_per_second", run.reported_mib_per_second());
        facts =
            facts.with_known("read_mib_per_second", read.map(|(rate, bytes)| rate * bytes / MIB));
        let besides = besides(relations, index, stale);
        Some(facts.with_known("besides", (!besides.is_empty()).then_some(besides)))
    }),
    #[cfg(test)]
    fires: |root| {
        let large = |start_s| tests::Fake { start_s, ..tests::large() };
        tests::Fake { generate: true, train: false, ..large(900.0) }.write(root, "w/4_x/made");
        tests::Fake { start_s: 1800.0, slower: 4.0, ..tests::Fake::default() }.write(root, "w/4/a");
    },
};

/// Weaknesses of the evidence.
fn besides(relations: &Relations, index: usize, stale: &Stale) -> Vec<String> {
    let (run, other) = (&relations.runs[index], &relations.runs[stale.of]);
    let mut parts = Vec::new();
    if run.dataset_use.is_generation_unfinished {
        parts.push("its log does not say that its own generation was done".to_string());
    }
    if let (Some(own), Some(host)) = (&run.hostname, &other.hostname)
        && own != host
    {
        parts.push(format!("it ran on `{own}`, the other on `{host}`, in one folder by its path"));
    }
    if stale.is_assumed {
        parts.push(
            "it has no config: what it asks for is told by its folder's name, its log and the runs beside it"
                .to_string(),
        );
    }
    parts
}
