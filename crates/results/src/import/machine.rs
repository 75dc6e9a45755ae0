//! The machines of a DLIO run, as `summary.json` or the files of ranks tell them. What DLIO writes of a host that it did not ask is 0, and not known here.

use super::reported::Reported;
use super::steps::MachineOfRanks;
use feedrate_measure::record::System;
use feedrate_spec::units;

const GIB: f64 = (1u64 << 30) as f64;

/// Hosts are alike as far as anybody knows: rank 0's stands for them, and its rows tell of all.
pub(super) fn system(reported: Option<&Reported>, ranks: &MachineOfRanks) -> System {
    let [hostname, processor] = ["hostname", "host_processor_name"]
        .map(|key| reported.and_then(|reported| reported.text(key)));
    let hostname = hostname.or_else(|| ranks.hostnames.first().cloned());
    let processor = processor.or_else(|| ranks.processor.clone());
    let memory = PerHost::new(reported, "host_memory_GB", ranks.memory_gib);
    let cpus = PerHost::new(reported, "host_cpu_count", ranks.cpus.map(|count| count as f64));
    let hosts = hosts(reported, ranks);
    let model = reported.and_then(Reported::cpu_model).or_else(|| processor.clone());
    let several = hosts.filter(|hosts| 1 < *hosts).map(|hosts| match &ranks.hostnames {
        names if names.len() as u64 == hosts => format!("{hosts}: {}", names.join(", ")),
        _ => hosts.to_string(),
    });
    let of_model = model.as_ref().map_or(String::new(), |model| format!(" × {model}"));
    let of_cpus = cpus.text(hosts, &of_model, |count| format!("{count:.0}"));
    let components = [
        ("Hosts", several),
        ("CPU", of_cpus.or(model)),
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

/// Machines of the run.
pub(super) fn hosts(reported: Option<&Reported>, ranks: &MachineOfRanks) -> Option<u64> {
    let told = reported.and_then(|reported| reported.count("num_hosts"));
    // Ranks whose files are not there may have been on others.
    told.or_else(|| reported.is_none().then_some(ranks.hostnames.len() as u64))
        .filter(|hosts| 0 < *hosts)
}

/// A number of each host that told one.
struct PerHost(Vec<f64>);

impl PerHost {
    fn new(reported: Option<&Reported>, key: &str, of_rank: Option<f64>) -> Self {
        let told = reported.map(|reported| reported.numbers(key)).filter(|all| !all.is_empty());
        let all = told.unwrap_or_else(|| of_rank.into_iter().collect());
        PerHost(all.into_iter().filter(|value| value.is_finite() && 0.0 < *value).collect())
    }

    /// Sum over all hosts; `None` where one of them did not tell.
    fn sum(&self, hosts: Option<u64>) -> Option<f64> {
        let is_whole = hosts.is_none_or(|hosts| hosts == self.0.len() as u64);
        (is_whole && !self.0.is_empty()).then(|| self.0.iter().sum())
    }

    /// `of` what they are.
    fn text(&self, hosts: Option<u64>, of: &str, text: impl Fn(f64) -> String) -> Option<String> {
        let least = self.0.iter().copied().reduce(f64::min)?;
        let most = self.0.iter().copied().reduce(f64::max)?;
        let (least, most) = (text(least), text(most));
        let each = if least == most { least } else { format!("{least} to {most}") } + of;
        Some(match hosts {
            Some(hosts) if hosts != self.0.len() as u64 => {
                format!("{each} (told by {} of {hosts} hosts)", self.0.len())
            }
            Some(hosts) if 1 < hosts => format!("{each} a host"),
            _ => each,
        })
    }
}
