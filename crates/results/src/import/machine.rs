//! The machines of a DLIO run, from `summary.json` or the files of ranks.
//!
//! The summary's lists are meant to have one entry per host. DLIO adds the value of each host's first rank to the entry at rank ÷ ranks per host.
//! If ranks are not distributed in that order, an entry is the sum of several hosts, and others are 0.

use super::reported::Reported;
use super::steps::{RankHost, RankMachine};
use feedrate_measure::record::System;
use feedrate_spec::units::{self, GIB};
use std::collections::BTreeMap;

/// Describes the machines of a run. The hostname and processor describe the machine of rank 0; CPU and memory cover all hosts.
pub(super) fn system(reported: Option<&Reported>, ranks: &RankMachine) -> System {
    let reported_text = |key| reported.and_then(|summary: &Reported| summary.text(key));
    let hostname = reported_text("hostname").or_else(|| ranks.hostnames.first().cloned());
    let processor = reported_text("host_processor_name").or_else(|| ranks.processor.clone());
    let hosts = hosts(reported, ranks);
    let rank_0_gib = reported.and_then(Reported::memory_gib).or(ranks.memory_gib);
    let memory = PerHost::new(reported, "host_memory_GB", rank_0_gib, hosts);
    let rank_0_cpus = ranks.cpus.map(|count| count as f64);
    let cpus = PerHost::new(reported, "host_cpu_count", rank_0_cpus, hosts).split_like(&memory);
    let model = reported.and_then(Reported::cpu_model).or_else(|| processor.clone());
    let host_text = hosts.filter(|hosts| 1 < *hosts).map(|hosts| match &ranks.hostnames {
        names if names.len() as u64 == hosts => format!("{hosts}: {}", names.join(", ")),
        _ => hosts.to_string(),
    });
    let model_suffix = model.as_ref().map_or(String::new(), |model| format!(" × {model}"));
    let cpu_text = cpus.text(hosts, &model_suffix, |count| format!("{count:.0}"));
    let components = [
        ("Hosts", host_text),
        ("CPU", cpu_text.or(model)),
        ("Memory", memory.text(hosts, "", |gib| units::bytes_binary((gib * GIB) as u64))),
    ];
    let components = components.into_iter().filter_map(|(name, text)| Some((name.into(), text?)));
    System {
        hostname: hostname.unwrap_or_default(),
        memory_bytes: memory.sum(hosts).map(|gib| (gib * GIB) as u64),
        processor: processor.unwrap_or_default(),
        components: components.collect(),
        ..System::default()
    }
}

/// Returns the most memory that all hosts can have, if the entries of the summary cannot be attributed to hosts. Each host's memory is in one of
/// them, at least once.
pub(super) fn memory_bytes_max(reported: Option<&Reported>, ranks: &RankMachine) -> Option<u64> {
    let hosts = hosts(reported, ranks)?;
    let list = reported?.numbers("host_memory_GB");
    let sum_gib: f64 = list.iter().filter(|gib| gib.is_finite()).sum();
    let rank_0_gib = reported.and_then(Reported::memory_gib).or(ranks.memory_gib)?;
    // A list of another length, or with less memory than one host for each entry, lacks hosts.
    let has_all = list.len() as u64 == hosts
        && (1.0 - EQUAL_TOLERANCE) * hosts as f64 * rank_0_gib <= sum_gib;
    has_all.then_some((sum_gib * GIB) as u64)
}

/// Returns the number of machines of the run.
pub(super) fn hosts(reported: Option<&Reported>, ranks: &RankMachine) -> Option<u64> {
    let reported_hosts = reported.and_then(|reported| reported.count("num_hosts"));
    // With a summary, ranks without files may have been on other hosts.
    reported_hosts
        .or_else(|| reported.is_none().then_some(ranks.hostnames.len() as u64))
        .filter(|hosts| 0 < *hosts)
}

/// Lists facts about machines that contradict each other, in the summary and in the files of ranks.
pub(super) fn contradictions(reported: Option<&Reported>, ranks: &RankMachine) -> Vec<String> {
    let mut found = Vec::new();
    let reported_hosts = reported.and_then(|reported| reported.count("num_hosts"));
    let names = &ranks.hostnames;
    if let Some(hosts) = reported_hosts.filter(|hosts| *hosts < names.len() as u64) {
        let hosts = units::counted(hosts, "host");
        let names = names.join("`, `");
        found.push(format!("`summary.json` has {hosts}, but the files of ranks name `{names}`"));
    }
    let mut first_of_host: BTreeMap<Option<&str>, &RankHost> = BTreeMap::new();
    for host in &ranks.rank_hosts {
        let rank = host.rank;
        let first = *first_of_host.entry(host.hostname.as_deref()).or_insert(host);
        found.extend(different_memory(host.memory_gib, host.memory_total_gib).map(
            |[list, total]| {
                format!(
                    "rank {rank} has {list} of memory in `host_memory_GB`, {total} in `MemTotal`"
                )
            },
        ));
        if host.hostname.is_some() {
            let pair = different_memory(host.memory_total_gib, first.memory_total_gib);
            found.extend(pair.map(|[memory, other]| {
                format!(
                    "the host of ranks {} and {rank} has {other} and {memory} of memory",
                    first.rank
                )
            }));
        }
    }
    let total_gib = reported.and_then(Reported::memory_gib);
    if let Some(rank_0) = ranks.rank_hosts.first().filter(|host| host.rank == 0) {
        found.extend(different_memory(total_gib, rank_0.memory_total_gib).map(
            |[total, rank_0]| {
                format!("rank 0 has {total} of memory in `summary.json`, {rank_0} in its own file")
            },
        ));
    }
    // With several hosts, an entry may be the sum of several.
    let list = reported.map(|reported| reported.numbers("host_memory_GB")).unwrap_or_default();
    if let ([entry], Some(1)) = (&list[..], reported_hosts) {
        found.extend(different_memory(Some(*entry), total_gib).map(|[list, total]| {
            format!("the host has {list} of memory in `host_memory_GB`, {total} in `MemTotal` of `summary.json`")
        }));
    }
    found
}

/// Formats two sizes of the memory of one host, if both are known and differ.
fn different_memory(gib: Option<f64>, other_gib: Option<f64>) -> Option<[String; 2]> {
    let both = [gib?, other_gib?];
    let differs = EQUAL_TOLERANCE * both[1] < (both[0] - both[1]).abs();
    differs.then(|| both.map(|gib| units::bytes_binary((gib * GIB) as u64)))
}

/// Relative difference up to which hosts count as equal. Firmware reserves different amounts of memory.
const EQUAL_TOLERANCE: f64 = 0.02;

/// A quantity of each host, such as its memory, reconstructed from a list of the summary.
#[derive(Debug, PartialEq)]
struct PerHost {
    /// Value of each known host; empty if the entries cannot be attributed to hosts.
    hosts: Vec<f64>,
    /// The list's non-zero entries.
    entries: Vec<f64>,
    /// Number of hosts that each entry sums up, if known.
    hosts_per_entry: Option<Vec<f64>>,
}

impl PerHost {
    /// Reads the list at `key`. `rank_0_value` is the value of rank 0's host.
    fn new(
        reported: Option<&Reported>,
        key: &str,
        rank_0_value: Option<f64>,
        host_count: Option<u64>,
    ) -> Self {
        let is_valid = |value: &f64| value.is_finite() && 0.0 < *value;
        let rank_0_value = rank_0_value.filter(is_valid);
        let list = reported.map(|reported| reported.numbers(key)).filter(|list| !list.is_empty());
        let list = list.unwrap_or_else(|| rank_0_value.into_iter().collect());
        let entries: Vec<f64> = list.into_iter().filter(is_valid).collect();
        // An entry has the value of at least one host.
        let has_entry_per_host = host_count.is_none_or(|count| count <= entries.len() as u64);
        let hosts_per_entry = rank_0_value.and_then(|value| integer_ratios(&entries, value));
        let count = host_count.unwrap_or_default();
        let hosts = match &hosts_per_entry {
            _ if has_entry_per_host => entries.clone(),
            Some(ratios) if ratios.iter().all(|&ratio| ratio == 1.0) => entries.clone(),
            Some(ratios) if ratios.iter().sum::<f64>() as u64 == count => {
                vec![entries.iter().sum::<f64>() / count as f64; count as usize]
            }
            _ => rank_0_value.into_iter().collect(),
        };
        PerHost { hosts, entries, hosts_per_entry }
    }

    /// Divides the entries among hosts as in `other`, whose entries sum up the same hosts.
    fn split_like(mut self, other: &PerHost) -> Self {
        let counts = other.hosts_per_entry.as_ref();
        let Some(counts) = counts.filter(|counts| counts.len() == self.entries.len()) else {
            return self;
        };
        let per_host: Vec<f64> =
            self.entries.iter().zip(counts).map(|(entry, count)| entry / count).collect();
        let is_equal = per_host.iter().all(|&value| value.fract() == 0.0 && value == per_host[0]);
        if is_equal && other.hosts.len() > self.hosts.len() {
            self.hosts = vec![per_host[0]; other.hosts.len()];
        }
        self
    }

    /// Returns the sum over all hosts; `None` if the value of a host is unknown.
    fn sum(&self, host_count: Option<u64>) -> Option<f64> {
        let is_complete = host_count.is_none_or(|count| count == self.hosts.len() as u64);
        (is_complete && !self.hosts.is_empty()).then(|| self.hosts.iter().sum())
    }

    /// Formats the range of values, followed by `suffix`.
    fn text(
        &self,
        host_count: Option<u64>,
        suffix: &str,
        format_value: impl Fn(f64) -> String,
    ) -> Option<String> {
        let least = format_value(self.hosts.iter().copied().reduce(f64::min)?);
        let most = format_value(self.hosts.iter().copied().reduce(f64::max)?);
        let range = if least == most { least } else { format!("{least} to {most}") } + suffix;
        let known = self.hosts.len();
        Some(match host_count {
            Some(count) if count != known as u64 => {
                format!("{range} (reported by {known} of {count} hosts)")
            }
            Some(count) if 1 < count => format!("{range} per host"),
            _ => range,
        })
    }
}

/// Divides entries by `unit`, and returns the ratios if all are integers from 1.
fn integer_ratios(entries: &[f64], unit: f64) -> Option<Vec<f64>> {
    let ratios: Vec<f64> = entries.iter().map(|entry| (entry / unit).round()).collect();
    let mut pairs = ratios.iter().zip(entries);
    let is_integer = |(ratio, entry): (&f64, &f64)| {
        *ratio >= 1.0 && (entry / (ratio * unit) - 1.0).abs() < EQUAL_TOLERANCE
    };
    pairs.all(is_integer).then_some(ratios)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks the CPU and memory rows, and the sum of memory in GiB, that follow from a summary.
    fn check(summary: &serde_json::Value, rows: [&str; 2], sum_gib: Option<u64>) {
        let reported = Reported::new(summary.as_object().unwrap().clone());
        let ranks = RankMachine::default();
        let system = system(Some(&reported), &ranks);
        let found = |name: &str| {
            let row = system.components.iter().find(|row| row.0 == name);
            row.map_or("", |row| row.1.as_str()).to_string()
        };
        assert_eq!([found("CPU"), found("Memory")], rows, "{summary}");
        assert_eq!(system.memory_bytes.map(|bytes| bytes >> 30), sum_gib, "{summary}");
    }

    /// Ten hosts of 64 GiB: one entry sums up four, another six.
    #[test]
    fn hosts_that_were_summed_up_are_separated() {
        let summary = |memory: serde_json::Value, total: &str| {
            json!({
                "num_hosts": 10, "host_memory_GB": memory,
                "host_cpu_count": [128, 192, 0, 0, 0, 0, 0, 0, 0, 0],
                "host_meminfo": {"MemTotal": total},
            })
        };
        let placed = json!([256.0, 384.0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let rank_0_total = "67108864 kB";
        check(
            &summary(placed.clone(), rank_0_total),
            ["32 per host", "64 GiB per host"],
            Some(640),
        );
        // Not multiples of rank 0's memory: hosts differ and cannot be separated.
        let mixed = json!([256.0, 350.0, 0, 0, 0, 0, 0, 0, 0, 0]);
        check(&summary(mixed, rank_0_total), ["", "64 GiB (reported by 1 of 10 hosts)"], None);
        // Nothing is known without rank 0's memory.
        check(&summary(placed, ""), ["", ""], None);
    }

    #[test]
    fn the_sum_of_entries_limits_the_memory_of_all_hosts() {
        let check = |hosts: u64, memory: serde_json::Value, total: &str, expected: Option<u64>| {
            let summary = json!({
                "num_hosts": hosts, "host_memory_GB": memory, "host_meminfo": {"MemTotal": total},
            });
            let reported = Reported::new(summary.as_object().unwrap().clone());
            let found = memory_bytes_max(Some(&reported), &RankMachine::default());
            assert_eq!(found.map(|bytes| bytes >> 30), expected, "{summary}");
        };
        check(3, json!([700.0, 0, 0]), "67108864 kB", Some(700));
        // The list lacks hosts, or rank 0's memory is unknown.
        check(3, json!([64.0, 0, 0]), "67108864 kB", None);
        check(3, json!([700.0]), "67108864 kB", None);
        check(3, json!([700.0, 0, 0]), "", None);
    }

    #[test]
    fn machines_that_contradict_each_other_are_listed() {
        let host = |rank: u32, hostname: &str, gib: f64| RankHost {
            rank,
            hostname: Some(hostname.into()),
            memory_gib: Some(gib),
            memory_total_gib: Some(64.0),
        };
        let check = |memory: f64, rank_hosts: Vec<RankHost>, expected: &[&str]| {
            let summary = json!({
                "num_hosts": 1, "host_memory_GB": [memory],
                "host_meminfo": {"MemTotal": "67108864 kB"},
            });
            let reported = Reported::new(summary.as_object().unwrap().clone());
            let mut hostnames: Vec<String> =
                rank_hosts.iter().filter_map(|host| host.hostname.clone()).collect();
            hostnames.dedup();
            let ranks = RankMachine { hostnames, rank_hosts, ..RankMachine::default() };
            assert_eq!(contradictions(Some(&reported), &ranks), expected);
        };
        check(64.0, vec![host(0, "a", 64.0), host(1, "a", 64.0)], &[]);
        check(
            640.0,
            Vec::new(),
            &[
                "the host has 640 GiB of memory in `host_memory_GB`, 64 GiB in `MemTotal` of `summary.json`",
            ],
        );
        check(
            64.0,
            vec![host(0, "a", 64.0), host(1, "a", 640.0)],
            &["rank 1 has 640 GiB of memory in `host_memory_GB`, 64 GiB in `MemTotal`"],
        );
        check(
            64.0,
            vec![host(0, "a", 64.0), host(1, "b", 64.0)],
            &["`summary.json` has 1 host, but the files of ranks name `a`, `b`"],
        );
        let other = RankHost { memory_total_gib: Some(640.0), ..host(0, "a", 640.0) };
        check(
            64.0,
            vec![other, host(1, "a", 64.0)],
            &[
                "the host of ranks 0 and 1 has 640 GiB and 64 GiB of memory",
                "rank 0 has 64 GiB of memory in `summary.json`, 640 GiB in its own file",
            ],
        );
    }

    #[test]
    fn one_entry_per_host_is_used() {
        let summary = json!({
            "num_hosts": 2, "host_memory_GB": [64.0, 128.0], "host_cpu_count": [32, 64],
            "host_meminfo": {"MemTotal": "67108864 kB"},
        });
        check(&summary, ["32 to 64 per host", "64 GiB to 128 GiB per host"], Some(192));
    }
}
