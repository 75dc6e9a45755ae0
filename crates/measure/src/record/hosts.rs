//! Combines the records of several processes and machines into one record.

use super::{EpochRecord, HostEpoch, Process, StepCauses, System};
use feedrate_spec::transfers::TransferCounts;

impl HostEpoch {
    /// Combines the processes of one machine: figures of processes are added, figures of the machine are taken from the first.
    pub fn from_processes(parts: &[HostEpoch]) -> HostEpoch {
        HostEpoch {
            process_device_read_bytes: sum(parts, |part| part.process_device_read_bytes),
            process_cpu_ns: sum(parts, |part| part.process_cpu_ns),
            major_page_faults: sum(parts, |part| part.major_page_faults),
            ..parts.first().cloned().unwrap_or_default()
        }
    }

    /// Combines several machines. `cpus` are their numbers of CPUs. Bytes are added, busy shares are averaged over all CPUs, and the largest
    /// clock step is taken.
    pub fn from_machines(parts: &[HostEpoch], cpus: &[u32]) -> HostEpoch {
        let steps_ns = parts.iter().filter_map(|part| part.clock_step_ns);
        let sampled_shares = parts.iter().map(|part| part.resident_sampled_share);
        let opened_files = parts.iter().filter_map(|part| part.metadata_opened_files);
        let others = parts.iter().filter_map(|part| part.busiest_other.as_ref());
        let dropped = parts.iter().filter_map(|part| part.metadata_dropped);
        HostEpoch {
            device_read_bytes: sum(parts, |part| part.device_read_bytes),
            device_reads: sum(parts, |part| part.device_reads),
            device_write_bytes: sum(parts, |part| part.device_write_bytes),
            resident_before_bytes: sum(parts, |part| part.resident_before_bytes),
            resident_after_bytes: sum(parts, |part| part.resident_after_bytes),
            resident_sampled_share: sampled_shares.reduce(f64::min).unwrap_or_default(),
            // The machine that had opened the most files has the warmest metadata.
            metadata_opened_files: opened_files.max(),
            metadata_dropped: dropped.min(),
            process_cpu_ns: sum(parts, |part| part.process_cpu_ns),
            major_page_faults: sum(parts, |part| part.major_page_faults),
            rank_major_page_faults: Vec::new(),
            process_device_read_bytes: sum(parts, |part| part.process_device_read_bytes),
            cpu_busy_share: busy_share(parts, cpus),
            busiest_other: others.max_by_key(|other| other.cpu_ns).cloned(),
            clock_step_ns: steps_ns.max_by_key(|step_ns| step_ns.unsigned_abs()),
            meminfo: parts.first().map(|part| part.meminfo.clone()).unwrap_or_default(),
        }
    }
}

/// Sum of a counter; `None` if it is unknown for a part.
fn sum(parts: &[HostEpoch], counter: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
    parts.iter().map(counter).sum()
}

fn busy_share(parts: &[HostEpoch], cpus: &[u32]) -> Option<f64> {
    let total: u32 = cpus.iter().sum();
    let busy: Option<f64> = parts
        .iter()
        .zip(cpus)
        .map(|(part, cpus)| Some(part.cpu_busy_share? * f64::from(*cpus)))
        .sum();
    (total > 0).then_some(busy? / f64::from(total))
}

/// Figures of the machines of a run during an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct CombinedHosts {
    /// All machines together.
    pub host: HostEpoch,
    /// Each machine; empty if there is only one.
    pub nodes: Vec<HostEpoch>,
}

impl CombinedHosts {
    /// Combines the figures of all processes.
    pub fn new(parts: &[HostEpoch], processes: &[Process], machines: &[System]) -> Self {
        let mut parts_by_node = vec![Vec::new(); machines.len()];
        for (part, process) in parts.iter().zip(processes) {
            if let Some(node_parts) = parts_by_node.get_mut(process.node as usize) {
                node_parts.push(part.clone());
            }
        }
        let mut nodes: Vec<HostEpoch> =
            parts_by_node.iter().map(|parts| HostEpoch::from_processes(parts)).collect();
        let mut combined = if nodes.len() == 1 {
            CombinedHosts { host: nodes.remove(0), nodes: Vec::new() }
        } else {
            let cpus: Vec<u32> = machines.iter().map(System::all_cpus).collect();
            CombinedHosts { host: HostEpoch::from_machines(&nodes, &cpus), nodes }
        };
        if 1 < parts.len() {
            combined.host.rank_major_page_faults =
                parts.iter().map(|part| part.major_page_faults).collect();
        }
        combined
    }
}

impl EpochRecord {
    /// Combines the records of one epoch by all processes, in the order of ranks.
    pub fn from_processes(
        parts: Vec<EpochRecord>,
        processes: &[Process],
        machines: &[System],
    ) -> Self {
        let hosts: Vec<HostEpoch> = parts.iter().map(|part| part.host.clone()).collect();
        let CombinedHosts { host, nodes } = CombinedHosts::new(&hosts, processes, machines);
        let start_ns = parts.iter().map(|part| part.start_ns).min();
        let end_ns = parts.iter().map(|part| part.end_ns).max();
        let number = parts.first().map_or(1, |part| part.number);
        let causes = StepCauses::from_processes(&parts);
        let transfers = TransferCounts::sum(parts.iter().map(|part| part.transfers.as_ref()));
        EpochRecord {
            number,
            start_ns: start_ns.unwrap_or_default(),
            end_ns: end_ns.unwrap_or_default(),
            started: String::new(),
            ended: String::new(),
            accelerators: parts.into_iter().flat_map(|part| part.accelerators).collect(),
            causes,
            files_read: None,
            transfers,
            host,
            nodes,
            checkpoints: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::AcceleratorEpoch;

    fn part(start_ns: u64, device: Option<u64>, cpu_ns: u64, busy: f64) -> EpochRecord {
        EpochRecord {
            number: 3,
            start_ns,
            end_ns: start_ns + 100,
            started: "there".into(),
            ended: String::new(),
            accelerators: vec![AcceleratorEpoch::default(); 2],
            causes: None,
            files_read: None,
            transfers: Some(TransferCounts { requests: cpu_ns, ..TransferCounts::default() }),
            host: HostEpoch {
                device_read_bytes: device,
                process_cpu_ns: Some(cpu_ns),
                major_page_faults: Some(10 * cpu_ns),
                cpu_busy_share: Some(busy),
                clock_step_ns: Some(-(start_ns as i64)),
                ..HostEpoch::default()
            },
            nodes: Vec::new(),
            checkpoints: Vec::new(),
        }
    }

    fn process(node: u32) -> Process {
        Process { node, id: 1, accelerators: 2, clock_offset_ns: 0, clock_error_ns: 0 }
    }

    #[test]
    fn figures_of_processes_are_added_and_figures_of_machines_count_once() {
        let machine = |cpus| System { cpus, ..System::default() };
        let parts =
            vec![part(10, Some(5), 1, 0.5), part(20, Some(6), 2, 0.6), part(30, Some(7), 4, 1.0)];
        let processes = [process(0), process(0), process(1)];
        let epoch =
            EpochRecord::from_processes(parts.clone(), &processes, &[machine(1), machine(3)]);
        assert_eq!((epoch.number, epoch.start_ns, epoch.end_ns), (3, 10, 130));
        assert_eq!(epoch.accelerators.len(), 6);
        // The first process of a machine counts for the machine.
        assert_eq!(epoch.host.device_read_bytes, Some(5 + 7));
        assert_eq!(epoch.host.process_cpu_ns, Some(7));
        assert_eq!(epoch.transfers.unwrap().requests, 7);
        assert_eq!(epoch.host.major_page_faults, Some(70));
        assert_eq!(epoch.host.rank_major_page_faults, [Some(10), Some(20), Some(40)]);
        assert_eq!(epoch.host.cpu_busy_share, Some((0.5 + 3.0) / 4.0));
        assert_eq!(epoch.host.clock_step_ns, Some(-30));
        assert_eq!(epoch.nodes.len(), 2);
        let on_one_machine = [process(0), process(0), process(0)];
        let epoch = EpochRecord::from_processes(parts, &on_one_machine, &[machine(1)]);
        assert_eq!(epoch.host.device_read_bytes, Some(5));
        assert!(epoch.nodes.is_empty());
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let parts = vec![part(10, Some(5), 1, 0.5), part(20, None, 2, 0.6)];
        let machines =
            [System { cpus: 1, ..System::default() }, System { cpus: 1, ..System::default() }];
        let epoch = EpochRecord::from_processes(parts, &[process(0), process(1)], &machines);
        assert_eq!(epoch.host.device_read_bytes, None);
        assert_eq!(epoch.host.process_cpu_ns, Some(3));
    }
}
