//! The machines of a DLIO run, as `summary.json` or the files of ranks tell them. DLIO has a list with a place for each host, and adds up there what the first rank of
//! each host tells, at rank ÷ ranks of a host: where ranks are not placed so, one place has the sum of several hosts, and others have 0.

use super::reported::Reported;
use super::steps::MachineOfRanks;
use feedrate_measure::record::System;
use feedrate_spec::units::{self, GIB};

/// Hosts are alike as far as anybody knows: rank 0's stands for them, and its rows tell of all.
pub(super) fn system(reported: Option<&Reported>, ranks: &MachineOfRanks) -> System {
    let [hostname, processor] = ["hostname", "host_processor_name"]
        .map(|key| reported.and_then(|reported| reported.text(key)));
    let hostname = hostname.or_else(|| ranks.hostnames.first().cloned());
    let processor = processor.or_else(|| ranks.processor.clone());
    let hosts = hosts(reported, ranks);
    let own_gib = reported.and_then(Reported::memory_gib).or(ranks.memory_gib);
    let memory = PerHost::new(reported, "host_memory_GB", own_gib, hosts);
    let own_cpus = ranks.cpus.map(|count| count as f64);
    let cpus = PerHost::new(reported, "host_cpu_count", own_cpus, hosts).placed_like(&memory);
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

/// A share by which hosts that are alike may differ: firmware takes more or less.
const ALIKE: f64 = 0.02;

/// A number of each host that told one.
#[derive(Debug, PartialEq)]
struct PerHost {
    /// Memory of each host; empty where the places cannot be told apart.
    each: Vec<f64>,
    /// As DLIO has them, without those that are 0.
    places: Vec<f64>,
    /// Hosts that were added up in each place, where that is known.
    hosts_of: Option<Vec<f64>>,
}

impl PerHost {
    /// `own`: of the host of rank 0.
    fn new(reported: Option<&Reported>, key: &str, own: Option<f64>, hosts: Option<u64>) -> Self {
        let is_number = |value: &f64| value.is_finite() && 0.0 < *value;
        let own = own.filter(is_number);
        let told = reported.map(|reported| reported.numbers(key)).filter(|all| !all.is_empty());
        let places = told.unwrap_or_else(|| own.into_iter().collect());
        let places: Vec<f64> = places.into_iter().filter(is_number).collect();
        // Each place has one at least.
        let is_each = hosts.is_none_or(|hosts| hosts <= places.len() as u64);
        let hosts_of = own.and_then(|own| whole_parts(&places, own));
        let wanted = hosts.unwrap_or_default();
        let each = match &hosts_of {
            _ if is_each => places.clone(),
            Some(parts) if parts.iter().all(|&part| part == 1.0) => places.clone(),
            Some(parts) if parts.iter().sum::<f64>() as u64 == wanted => {
                vec![places.iter().sum::<f64>() / wanted as f64; wanted as usize]
            }
            _ => own.into_iter().collect(),
        };
        PerHost { each, places, hosts_of }
    }

    /// The same hosts were added up as in `other`, which knows how many.
    fn placed_like(mut self, other: &PerHost) -> Self {
        let Some(hosts_of) = other.hosts_of.as_ref().filter(|all| all.len() == self.places.len())
        else {
            return self;
        };
        let each = self.places.iter().zip(hosts_of).map(|place| place.0 / place.1);
        let each: Vec<f64> = each.collect();
        let is_alike = each.iter().all(|&one| one.fract() == 0.0 && one == each[0]);
        if is_alike && other.each.len() > self.each.len() {
            self.each = vec![each[0]; other.each.len()];
        }
        self
    }

    /// Sum over all hosts; `None` where one of them did not tell.
    fn sum(&self, hosts: Option<u64>) -> Option<f64> {
        let is_whole = hosts.is_none_or(|hosts| hosts == self.each.len() as u64);
        (is_whole && !self.each.is_empty()).then(|| self.each.iter().sum())
    }

    /// `of` what they are.
    fn text(&self, hosts: Option<u64>, of: &str, text: impl Fn(f64) -> String) -> Option<String> {
        let least = self.each.iter().copied().reduce(f64::min)?;
        let most = self.each.iter().copied().reduce(f64::max)?;
        let (least, most) = (text(least), text(most));
        let each = if least == most { least } else { format!("{least} to {most}") } + of;
        Some(match hosts {
            Some(hosts) if hosts != self.each.len() as u64 => {
                format!("{each} (told by {} of {hosts} hosts)", self.each.len())
            }
            Some(hosts) if 1 < hosts => format!("{each} a host"),
            _ => each,
        })
    }
}

/// How many times `own` each place has, where all have whole times of it.
fn whole_parts(places: &[f64], own: f64) -> Option<Vec<f64>> {
    let parts: Vec<f64> = places.iter().map(|place| (place / own).round()).collect();
    let mut pairs = parts.iter().zip(places);
    pairs
        .all(|(part, place)| *part >= 1.0 && (place / (part * own) - 1.0).abs() < ALIKE)
        .then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A summary's words on its hosts, and the rows and the sum of memory in GiB that come of it.
    fn check(summary: &serde_json::Value, rows: [&str; 2], sum_gib: Option<u64>) {
        let reported = Reported::new(summary.as_object().unwrap().clone());
        let ranks = MachineOfRanks::default();
        let system = system(Some(&reported), &ranks);
        let found = |name: &str| {
            let row = system.components.iter().find(|row| row.0 == name);
            row.map_or("", |row| row.1.as_str()).to_string()
        };
        assert_eq!([found("CPU"), found("Memory")], rows, "{summary}");
        assert_eq!(system.memory_bytes.map(|bytes| bytes >> 30), sum_gib, "{summary}");
    }

    /// Ten hosts of 64 GiB: four were added up in one place, six in another.
    #[test]
    fn hosts_that_were_added_up_are_told_apart() {
        let summary = |memory: serde_json::Value, total: &str| {
            json!({
                "num_hosts": 10, "host_memory_GB": memory,
                "host_cpu_count": [128, 192, 0, 0, 0, 0, 0, 0, 0, 0],
                "host_meminfo": {"MemTotal": total},
            })
        };
        let placed = json!([256.0, 384.0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let own = "67108864 kB";
        check(&summary(placed.clone(), own), ["32 a host", "64 GiB a host"], Some(640));
        // Not whole times of rank 0's: hosts differ, and which is which is not known.
        let mixed = json!([256.0, 350.0, 0, 0, 0, 0, 0, 0, 0, 0]);
        check(&summary(mixed, own), ["", "64 GiB (told by 1 of 10 hosts)"], None);
        // Without rank 0's own nothing is known.
        check(&summary(placed, ""), ["", ""], None);
    }

    #[test]
    fn a_place_for_each_host_is_believed() {
        let summary = json!({
            "num_hosts": 2, "host_memory_GB": [64.0, 128.0], "host_cpu_count": [32, 64],
            "host_meminfo": {"MemTotal": "67108864 kB"},
        });
        check(&summary, ["32 to 64 a host", "64 GiB to 128 GiB a host"], Some(192));
    }
}
