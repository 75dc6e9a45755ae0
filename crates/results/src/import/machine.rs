//! The machines of a DLIO run, from `summary.json` or the files of ranks.
//!
//! The summary's lists are meant to have one entry per host. DLIO adds the value of each host's first rank to the entry at rank ÷ ranks per host.
//! If ranks are not distributed in that order, an entry is the sum of several hosts, and others are 0.

use super::reported::Reported;
use super::steps::RankMachine;
use feedrate_measure::record::System;
use feedrate_spec::units::{self, GIB};

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

/// Returns the number of machines of the run.
pub(super) fn hosts(reported: Option<&Reported>, ranks: &RankMachine) -> Option<u64> {
    let reported_hosts = reported.and_then(|reported| reported.count("num_hosts"));
    // With a summary, ranks without files may have been on other hosts.
    reported_hosts
        .or_else(|| reported.is_none().then_some(ranks.hostnames.len() as u64))
        .filter(|hosts| 0 < *hosts)
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
    fn one_entry_per_host_is_used() {
        let summary = json!({
            "num_hosts": 2, "host_memory_GB": [64.0, 128.0], "host_cpu_count": [32, 64],
            "host_meminfo": {"MemTotal": "67108864 kB"},
        });
        check(&summary, ["32 to 64 per host", "64 GiB to 128 GiB per host"], Some(192));
    }
}
