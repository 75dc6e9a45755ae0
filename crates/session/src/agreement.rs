//! Compares the arguments of a run's processes, which must be equal because rank 0 decides for all.

use crate::request::Request;
use crate::resolve;
use feedrate_run::comm::RankList;
use feedrate_spec::plan::Cache;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::workload::{CREDENTIALS, Workload, given_values};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of differences in a report.
const REPORTED_MAX: usize = 8;

/// Arguments of one process, by the names of options and keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankArguments {
    options: BTreeMap<String, String>,
    /// Keys of the workload; `None` if this process cannot read the workload.
    keys: Option<BTreeMap<String, String>>,
}

impl RankArguments {
    /// Collects the version of this program and the given options.
    pub fn new<'a>(
        accelerators_per_rank: Option<u32>,
        more_options: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Self {
        let engine = if cfg!(feature = "libhdf5") { " with libhdf5" } else { "" };
        let version = format!("{}{engine}", env!("CARGO_PKG_VERSION"));
        let per_rank = accelerators_per_rank.map(|number| number.to_string());
        let common = [("version", Some(version)), ("--accelerators-per-rank", per_rank)];
        let given = common
            .into_iter()
            .chain(more_options)
            .filter_map(|(name, value)| Some((name.to_string(), value?)));
        RankArguments { options: given.collect(), keys: None }
    }

    /// Collects the arguments of a request and further options of its command.
    pub fn from_request<'a>(
        request: &Request,
        accelerators_per_rank: Option<u32>,
        options: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Self {
        let data = request.data.as_ref().map(|folder| folder.display().to_string());
        let common = [
            ("--accelerators", request.accelerators.map(|number| number.to_string())),
            ("--data", data),
            ("--scale", Some(request.scale.to_string())),
            ("--shrink-records", Some(request.shrink_records.to_string())),
            ("--foreign", Some(request.foreign.to_string())),
            ("--cold", Some((request.cache == Cache::Cold).to_string())),
            ("--warm", Some((request.cache == Cache::Warm).to_string())),
            ("--verify", Some(request.verify.to_string())),
        ];
        Self::new(accelerators_per_rank, common.into_iter().chain(options))
            .with_workload(resolve::workload_if_present(request))
    }

    /// Adds the keys of the workload, or the error if the workload cannot be read.
    pub fn with_workload(mut self, workload: anyhow::Result<Option<Workload>>) -> Self {
        match workload {
            Ok(workload) => self.keys = workload.as_ref().map(given_values),
            Err(error) => drop(self.options.insert("workload".into(), error.to_string())),
        }
        self
    }
}

/// Compares the arguments of all ranks with rank 0's. `ranks` is sorted by rank.
///
/// # Errors
/// Returns a refusal that lists the differences, each with its ranks.
pub fn compare(ranks: &[RankArguments]) -> Result<(), Refusal> {
    let mut differences: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (rank, arguments) in (0..).zip(ranks).skip(1) {
        let first = &ranks[0];
        let mut found = differences_from_first(&arguments.options, &first.options);
        if let (Some(keys), Some(first)) = (&arguments.keys, &first.keys) {
            found.extend(differences_from_first(keys, first));
        }
        for difference in found {
            differences.entry(difference).or_default().push(rank);
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> = differences
        .iter()
        .map(|(text, ranks)| format!("{text} on {}", RankList(ranks)))
        .take(REPORTED_MAX)
        .collect();
    if differences.len() > lines.len() {
        lines.push(format!("and {} more", differences.len() - lines.len()));
    }
    Err(Refusal::new(
        format!("the ranks have different arguments: {}", lines.join("; ")),
        "start all ranks with the same program, arguments and workload",
    ))
}

/// Describes the values that differ from rank 0's.
fn differences_from_first(
    values: &BTreeMap<String, String>,
    first: &BTreeMap<String, String>,
) -> Vec<String> {
    let describe = |value: Option<&String>| {
        value.map_or("not given".to_string(), |value| format!("`{}`", value.trim_end()))
    };
    let names: BTreeSet<&String> = values.keys().chain(first.keys()).collect();
    let differing = names.into_iter().filter(|&name| values.get(name) != first.get(name));
    differing
        .map(|name| {
            if name.starts_with(CREDENTIALS) {
                return format!("`{name}` is not rank 0's");
            }
            let first_value = describe(first.get(name));
            let other_value = describe(values.get(name));
            format!("`{name}` is {first_value} on rank 0 and {other_value}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::workload::{Strictness, parse};

    fn arguments(yaml: &str, data: Option<&str>) -> RankArguments {
        let (workload, _) = parse("w.yaml", yaml, &[], Strictness::Error).unwrap();
        let options = [("--data", data.map(str::to_string))];
        RankArguments::new(None, options).with_workload(Ok(Some(workload)))
    }

    #[test]
    fn differing_ranks_are_named_with_their_keys() {
        let first = arguments("train:\n  epochs: 1\nreader:\n  batch_size: 4\n", None);
        let same = arguments("reader: {batch_size: 4}\ntrain: {epochs: 1}\n", None);
        assert!(compare(&[first.clone(), same.clone()]).is_ok());
        let without_workload = RankArguments { keys: None, ..same.clone() };
        assert!(compare(&[first.clone(), without_workload]).is_ok(), "rank 0 has the workload");
        let other = arguments("train:\n  epochs: 3\nreader:\n  batch_size: 4\n", Some("d"));
        let message = compare(&[first, other.clone(), same, other]).unwrap_err().message;
        assert_eq!(
            message,
            "the ranks have different arguments: `--data` is not given on rank 0 and `d` on ranks 1, 3; \
             `train.epochs` is `1` on rank 0 and `3` on ranks 1, 3"
        );
    }

    #[test]
    fn differing_secrets_are_not_shown() {
        let [first, other] = ["hunter1", "hunter2"].map(|secret| {
            let options = format!("{{secret_access_key: {secret}}}");
            arguments(&format!("storage:\n  storage_options: {options}\n"), None)
        });
        let message = compare(&[first, other]).unwrap_err().message;
        assert!(message.contains("storage.storage_options"), "{message}");
        assert!(!message.contains("hunter"), "{message}");
    }

    #[test]
    fn a_workload_that_is_bad_on_one_rank_only_is_reported() {
        let first = arguments("train:\n  epochs: 1\n", None);
        let bad = RankArguments::new(None, []).with_workload(Err(anyhow::anyhow!("a: b")));
        let message = compare(&[first, bad.clone()]).unwrap_err().message;
        assert!(
            message.ends_with("`workload` is not given on rank 0 and `a: b` on rank 1"),
            "{message}"
        );
        assert!(compare(&[bad.clone(), bad]).is_ok(), "rank 0 reports it");
    }
}
