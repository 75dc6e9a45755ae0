//! The run read the dataset of another.

use super::{Check, Doubt, Severity, alike, found, unlike};
use crate::relations::{Evidence, Relations, Stale};
use feedrate_measure::metric::SAMPLES_WHOLE;
use feedrate_spec::units::MIB;

pub(super) static DOUBT: Doubt = Doubt {
    name: "stale_data",
    severity: Severity::Invalid,
    meaning: "The run read files that another run had made with other settings: its numbers are those of another dataset, and its MB/s are of a size it did not read.",
    check: Check::OfSet(|relations, index| {
        let stale = relations.stale(index)?;
        let mut parts = vec![rests_on(relations, stale)];
        parts.extend(stale.like.as_ref().map(|like| alike(relations, index, like)));
        parts.extend(stale.unlike.map(|twin| unlike(relations, twin)));
        parts.extend(stale.fits.filter(|(own, other)| other < own).map(|(own, other)| {
            format!(
                "the ranks' waits for first batches miss the bytes of that dataset by {:.1} %, those of its own by {:.1} %",
                other * 100.0,
                own * 100.0
            )
        }));
        parts.extend(rates(relations, index, stale));
        parts.extend(besides(relations, index, stale));
        found(
            parts.join("; "),
            "make the dataset again before each run whose settings change it, in a folder of its own, and run this one again",
        )
    }),
};

fn rests_on(relations: &Relations, stale: &Stale) -> String {
    let differs: Vec<String> = stale
        .differs
        .iter()
        .map(|(key, own, other)| format!("{key} {other}, and the run is said to have {own}"))
        .collect();
    let other = relations.runs[stale.of].short_path();
    match stale.evidence {
        Evidence::Generation => format!(
            "the files were made last by `{other}`{}, with {}",
            relations.runs[stale.of]
                .started
                .as_ref()
                .map_or(String::new(), |at| format!(" ({at})")),
            differs.join("; ")
        ),
        Evidence::Results => {
            format!("it waited for data as `{other}` did, which has {}", differs.join("; "))
        }
    }
}

/// What the rest of it rests on.
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

/// What it reported, and what it read.
fn rates(relations: &Relations, index: usize, stale: &Stale) -> Option<String> {
    let run = &relations.runs[index];
    let reported = run.reported_mib_per_second()?;
    let read = run.metric(&SAMPLES_WHOLE)? * relations.runs[stale.of].mean_sample_bytes? / MIB;
    Some(format!("{reported:.0} MiB/s are reported, over whole epochs it read {read:.0} MiB/s"))
}
