//! The run read the dataset of another.

use super::{Check, Doubt, Severity, alike, found, unlike};
use crate::set::{Evidence, Set, Stale};
use feedrate_spec::units::MIB;

pub(super) static DOUBT: Doubt = Doubt {
    name: "stale_data",
    severity: Severity::Invalid,
    meaning: "The run read files that another run had made with other settings: its numbers are those of another dataset, and its MB/s are of a size it did not read.",
    check: Check::OfSet(|set, index| {
        let stale = set.stale(index)?;
        let mut parts = vec![rests_on(set, stale)];
        parts.extend(stale.like.as_ref().map(|like| alike(set, index, like)));
        parts.extend(stale.unlike.map(|twin| unlike(set, twin)));
        parts.extend(stale.fits.filter(|(own, other)| other < own).map(|(own, other)| {
            format!(
                "the ranks' waits for first batches miss the bytes of that dataset by {:.1} %, those of its own by {:.1} %",
                other * 100.0,
                own * 100.0
            )
        }));
        parts.extend(rates(set, index, stale));
        parts.extend(besides(set, index, stale));
        found(
            parts.join("; "),
            "make the dataset again before each run whose settings change it, in a folder of its own, and run this one again",
        )
    }),
};

fn rests_on(set: &Set, stale: &Stale) -> String {
    let differs: Vec<String> = stale
        .differs
        .iter()
        .map(|(key, own, other)| format!("{key} {other}, and the run is said to have {own}"))
        .collect();
    let other = set.cases[stale.of].short_path();
    match stale.evidence {
        Evidence::Generation => format!(
            "the files were made last by `{other}`{}, with {}",
            set.cases[stale.of].started.as_ref().map_or(String::new(), |at| format!(" ({at})")),
            differs.join("; ")
        ),
        Evidence::Results => {
            format!("it waited for data as `{other}` did, which has {}", differs.join("; "))
        }
    }
}

/// What the rest of it rests on.
fn besides(set: &Set, index: usize, stale: &Stale) -> Vec<String> {
    let (case, other) = (&set.cases[index], &set.cases[stale.of]);
    let mut parts = Vec::new();
    if case.origin.is_generation_unfinished {
        parts.push("its log does not say that its own generation was done".to_string());
    }
    if let (Some(own), Some(host)) = (&case.hostname, &other.hostname)
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
fn rates(set: &Set, index: usize, stale: &Stale) -> Option<String> {
    let rates = &set.cases[index].throughput;
    let reported = rates.reported_mib_per_second?;
    let read = rates.whole_samples_per_second? * set.cases[stale.of].mean_sample_bytes? / MIB;
    Some(format!("{reported:.0} MiB/s are reported, over whole epochs it read {read:.0} MiB/s"))
}
