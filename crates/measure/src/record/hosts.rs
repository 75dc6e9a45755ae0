//! Several processes and machines, as if they were one.

use super::{EpochRecord, HostEpoch, Process, StepCauses, System};

impl HostEpoch {
    /// Add up processes of one machine: what is a process's adds up, what is the machine's is told by the first.
    pub fn of_processes(parts: &[HostEpoch]) -> HostEpoch {
        HostEpoch {
            process_device_read_bytes: sum(parts, |part| part.process_device_read_bytes),
            process_cpu_ns: sum(parts, |part| part.process_cpu_ns),
            ..parts.first().cloned().unwrap_or_default()
        }
    }

    /// Add up machines, each with its number of CPUs: bytes add up, shares are means over all CPUs, the clock is the worst one.
    pub fn of_machines(parts: &[HostEpoch], cpus: &[u32]) -> HostEpoch {
        let steps_ns = parts.iter().filter_map(|part| part.clock_step_ns);
        let files = parts.iter().map(|part| part.resident_sampled_share);
        let opened_files = parts.iter().filter_map(|part| part.metadata_opened_files);
        let others = parts.iter().filter_map(|part| part.busiest_other.as_ref());
        let dropped = parts.iter().filter_map(|part| part.metadata_dropped);
        HostEpoch {
            device_read_bytes: sum(parts, |part| part.device_read_bytes),
            device_reads: sum(parts, |part| part.device_reads),
            device_write_bytes: sum(parts, |part| part.device_write_bytes),
            resident_before_bytes: sum(parts, |part| part.resident_before_bytes),
            resident_after_bytes: sum(parts, |part| part.resident_after_bytes),
            resident_sampled_share: files.reduce(f64::min).unwrap_or_default(),
            // Each machine is to open them for the first time.
            metadata_opened_files: opened_files.max(),
            metadata_dropped: dropped.min(),
            process_cpu_ns: sum(parts, |part| part.process_cpu_ns),
            process_device_read_bytes: sum(parts, |part| part.process_device_read_bytes),
            cpu_busy_share: busy_share(parts, cpus),
            busiest_other: others.max_by_key(|other| other.cpu_ns).cloned(),
            clock_step_ns: steps_ns.max_by_key(|step_ns| step_ns.unsigned_abs()),
            meminfo: parts.first().map(|part| part.meminfo.clone()).unwrap_or_default(),
        }
    }
}

/// Unknown if it is of one.
fn sum(parts: &[HostEpoch], of: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
    parts.iter().map(of).sum()
}

fn busy_share(parts: &[HostEpoch], cpus: &[u32]) -> Option<f64> {
    let busy =
        parts.iter().zip(cpus).map(|(part, cpus)| Some(part.cpu_busy_share? * f64::from(*cpus)));
    let all: u32 = cpus.iter().sum();
    let busy = busy.sum::<Option<f64>>()?;
    (all > 0).then(|| busy / f64::from(all))
}

impl EpochRecord {
    /// All processes and machines together, and of several machines each.
    pub fn hosts(
        parts: &[HostEpoch],
        processes: &[Process],
        machines: &[System],
    ) -> (HostEpoch, Vec<HostEpoch>) {
        let mut by_node = vec![Vec::new(); machines.len()];
        for (part, process) in parts.iter().zip(processes) {
            if let Some(own) = by_node.get_mut(process.node as usize) {
                own.push(part.clone());
            }
        }
        let mut nodes: Vec<HostEpoch> =
            by_node.iter().map(|parts| HostEpoch::of_processes(parts)).collect();
        let cpus: Vec<u32> = machines.iter().map(System::all_cpus).collect();
        match nodes.len() {
            1 => (nodes.remove(0), Vec::new()),
            _ => (HostEpoch::of_machines(&nodes, &cpus), nodes),
        }
    }

    /// One epoch as each process wrote it down, in their order.
    pub fn of_processes(
        parts: Vec<EpochRecord>,
        processes: &[Process],
        machines: &[System],
    ) -> Self {
        let hosts: Vec<HostEpoch> = parts.iter().map(|part| part.host.clone()).collect();
        let (host, nodes) = EpochRecord::hosts(&hosts, processes, machines);
        let start_ns = parts.iter().map(|part| part.start_ns).min();
        let end_ns = parts.iter().map(|part| part.end_ns).max();
        let number = parts.first().map_or(1, |part| part.number);
        let causes = StepCauses::from_processes(&parts);
        EpochRecord {
            number,
            start_ns: start_ns.unwrap_or_default(),
            end_ns: end_ns.unwrap_or_default(),
            started: String::new(),
            ended: String::new(),
            accelerators: parts.into_iter().flat_map(|part| part.accelerators).collect(),
            causes,
            files_read: None,
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
            host: HostEpoch {
                device_read_bytes: device,
                process_cpu_ns: Some(cpu_ns),
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
    fn processes_add_up_and_machines_are_counted_once() {
        let machine = |cpus| System { cpus, ..System::default() };
        let parts =
            vec![part(10, Some(5), 1, 0.5), part(20, Some(6), 2, 0.6), part(30, Some(7), 4, 1.0)];
        let processes = [process(0), process(0), process(1)];
        let epoch = EpochRecord::of_processes(parts.clone(), &processes, &[machine(1), machine(3)]);
        assert_eq!((epoch.number, epoch.start_ns, epoch.end_ns), (3, 10, 130));
        assert_eq!(epoch.accelerators.len(), 6);
        // The first process of the first machine tells what that machine read.
        assert_eq!(epoch.host.device_read_bytes, Some(5 + 7));
        assert_eq!(epoch.host.process_cpu_ns, Some(7));
        assert_eq!(epoch.host.cpu_busy_share, Some((0.5 + 3.0) / 4.0));
        assert_eq!(epoch.host.clock_step_ns, Some(-30));
        assert_eq!(epoch.nodes.len(), 2);
        let one = [process(0), process(0), process(0)];
        let epoch = EpochRecord::of_processes(parts, &one, &[machine(1)]);
        assert_eq!(epoch.host.device_read_bytes, Some(5));
        assert!(epoch.nodes.is_empty());
    }

    #[test]
    fn what_one_does_not_know_is_unknown() {
        let parts = vec![part(10, Some(5), 1, 0.5), part(20, None, 2, 0.6)];
        let machines =
            [System { cpus: 1, ..System::default() }, System { cpus: 1, ..System::default() }];
        let epoch = EpochRecord::of_processes(parts, &[process(0), process(1)], &machines);
        assert_eq!(epoch.host.device_read_bytes, None);
        assert_eq!(epoch.host.process_cpu_ns, Some(3));
    }
}
