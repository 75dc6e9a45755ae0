//! Compares the arguments of a run's processes. Rank 0 decides for all, so all must have the same.

use crate::cli::LaunchArguments;
use crate::exit::UsageError;
use feedrate_run::comm::RankList;
use feedrate_spec::workload::{Workload, given_values};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Differences that are told, at most.
const TOLD_MAX: usize = 8;

/// Arguments of a process, by the names that users know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Asked {
    options: BTreeMap<String, String>,
    /// Keys of the workload; `None` where this process cannot read it.
    keys: Option<BTreeMap<String, String>>,
}

impl Asked {
    /// By this program, with these options.
    pub(crate) fn new<'a>(
        launch: &LaunchArguments,
        options: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Self {
        let engine = if cfg!(feature = "libhdf5") { " with libhdf5" } else { "" };
        let own = [
            ("version", Some(format!("{}{engine}", env!("CARGO_PKG_VERSION")))),
            ("--accelerators-per-rank", launch.accelerators_per_rank.map(|each| each.to_string())),
        ];
        let given = own.into_iter().chain(options);
        let given = given.filter_map(|(name, value)| Some((name.to_string(), value?)));
        Asked { options: given.collect(), keys: None }
    }

    /// For this workload. One that is bad is so on all ranks, or differs.
    pub(crate) fn workload(mut self, workload: anyhow::Result<Option<Workload>>) -> Self {
        match workload {
            Ok(workload) => self.keys = workload.as_ref().map(given_values),
            Err(error) => drop(self.options.insert("workload".into(), error.to_string())),
        }
        self
    }
}

/// Refuse ranks, in their order, that were asked for something else than the first.
///
/// # Errors
/// The differences, and the ranks that have each.
pub(crate) fn compare(ranks: &[Asked]) -> Result<(), UsageError> {
    let mut differences: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (rank, asked) in (0..).zip(ranks).skip(1) {
        let first = &ranks[0];
        let mut told = different(&asked.options, &first.options);
        if let (Some(own), Some(first)) = (&asked.keys, &first.keys) {
            told.extend(different(own, first));
        }
        told.into_iter().for_each(|told| differences.entry(told).or_default().push(rank));
    }
    if differences.is_empty() {
        return Ok(());
    }
    let told = differences.iter().map(|(told, ranks)| format!("{told} on {}", RankList(ranks)));
    let mut told: Vec<String> = told.take(TOLD_MAX).collect();
    if differences.len() > told.len() {
        told.push(format!("and {} more", differences.len() - told.len()));
    }
    Err(UsageError::new(
        format!("the ranks were not asked for the same: {}", told.join("; ")),
        "start all with the same program, arguments and workload",
    ))
}

fn different(own: &BTreeMap<String, String>, first: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = own.keys().chain(first.keys()).collect();
    let differ = names.into_iter().filter(|&name| own.get(name) != first.get(name));
    let told = differ.map(|name| {
        let [first, own] = [first, own].map(|of| {
            let value = of.get(name);
            value.map_or("not given".to_string(), |value| format!("`{}`", value.trim_end()))
        });
        format!("`{name}` is {first} on rank 0 and {own}")
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::workload::{Strictness, parse};

    fn asked(yaml: &str, data: Option<&str>) -> Asked {
        let (workload, _) = parse("w.yaml", yaml, &[], Strictness::Error).unwrap();
        let options = [("--data", data.map(str::to_string))];
        Asked::new(&LaunchArguments::default(), options).workload(Ok(Some(workload)))
    }

    #[test]
    fn ranks_that_differ_are_named_with_their_keys() {
        let first = asked("train:\n  epochs: 1\nreader:\n  batch_size: 4\n", None);
        let same = asked("reader: {batch_size: 4}\ntrain: {epochs: 1}\n", None);
        assert!(compare(&[first.clone(), same.clone()]).is_ok());
        let unread = Asked { keys: None, ..same.clone() };
        assert!(compare(&[first.clone(), unread]).is_ok(), "rank 0 has the workload");
        let other = asked("train:\n  epochs: 3\nreader:\n  batch_size: 4\n", Some("d"));
        let told = compare(&[first, other.clone(), same, other]).unwrap_err().message;
        assert_eq!(
            told,
            "the ranks were not asked for the same: `--data` is not given on rank 0 and `d` on ranks 1, 3; \
             `train.epochs` is `1` on rank 0 and `3` on ranks 1, 3"
        );
    }

    #[test]
    fn a_workload_that_is_bad_on_one_rank_alone_is_told() {
        let first = asked("train:\n  epochs: 1\n", None);
        let bad =
            Asked::new(&LaunchArguments::default(), []).workload(Err(anyhow::anyhow!("a: b")));
        let told = compare(&[first, bad.clone()]).unwrap_err().message;
        assert!(told.ends_with("`workload` is not given on rank 0 and `a: b` on rank 1"), "{told}");
        assert!(compare(&[bad.clone(), bad]).is_ok(), "rank 0 tells of it");
    }
}
