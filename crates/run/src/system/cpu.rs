//! Reads the number and the model of the machine's processors.

use super::mount::read_line;
use feedrate_measure::record::file::{FolderEntry, read_folder};
use feedrate_spec::units::counted;
use std::collections::BTreeSet;
use std::path::Path;

/// Numbers of sockets and cores, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTopology {
    pub(super) sockets: Option<u32>,
    pub(super) cores: Option<u32>,
}

impl CpuTopology {
    /// Reads the topology from the CPUs in `/sys/devices/system/cpu`. Offline CPUs have no topology.
    pub(super) fn read(cpus: &Path) -> Self {
        let entries = read_folder(cpus).into_iter().flatten().flatten();
        let number =
            |cpu: &Path, name| read_line(&cpu.join("topology").join(name))?.parse::<u32>().ok();
        let mut sockets = BTreeSet::new();
        let mut cores = BTreeSet::new();
        let is_cpu = |entry: &FolderEntry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.strip_prefix("cpu")?.parse::<u32>().ok())
                .is_some()
        };
        for entry in entries.filter(is_cpu) {
            let cpu = entry.path();
            // Some machines report -1, which is not a socket number and fails to parse.
            let Some(socket) = number(&cpu, "physical_package_id") else { continue };
            sockets.insert(socket);
            let die = number(&cpu, "die_id").unwrap_or(0);
            cores.extend(number(&cpu, "core_id").map(|core| (socket, die, core)));
        }
        let nonzero = |count: usize| (count > 0).then_some(count as u32);
        CpuTopology { sockets: nonzero(sockets.len()), cores: nonzero(cores.len()) }
    }

    /// Formats the topology: `2 sockets of 16 cores`.
    pub(super) fn text(self) -> Option<String> {
        let sockets = self.sockets?;
        let cores = self.cores?;
        let each = counted((cores / sockets).into(), "core");
        Some(match cores % sockets {
            0 => format!("{} of {each}", counted(sockets.into(), "socket")),
            _ => format!("{sockets} sockets, {cores} cores"),
        })
    }
}

/// Returns the model of a CPU of `/proc/cpuinfo`. ARM processors have no name there, so their names come from a table.
pub(super) fn model(cpuinfo: &[(String, String)]) -> String {
    let value = |key: &str| cpuinfo.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
    let named =
        ["model name", "Model", "cpu model", "Processor", "cpu"].into_iter().find_map(value);
    if let Some(name) = named {
        return name.to_string();
    }
    let number = |key| u32::from_str_radix(value(key)?.trim_start_matches("0x"), 16).ok();
    let (Some(implementer), Some(part)) = (number("CPU implementer"), number("CPU part")) else {
        return "unknown model".into();
    };
    let arm_part = ARM_PARTS.iter().find(|row| (row.0, row.1) == (implementer, part));
    arm_part.map_or_else(
        || format!("ARM part {part:#x} of implementer {implementer:#x}"),
        |(_, _, name)| (*name).to_string(),
    )
}

/// Implementer, part and name of ARM processors of servers and developers' machines (Linux, arch/arm64/include/asm/cputype.h, and
/// lscpu).
const ARM_PARTS: &[(u32, u32, &str)] = &[
    (0x41, 0xd03, "ARM Cortex-A53"),
    (0x41, 0xd05, "ARM Cortex-A55"),
    (0x41, 0xd07, "ARM Cortex-A57"),
    (0x41, 0xd08, "ARM Cortex-A72"),
    (0x41, 0xd09, "ARM Cortex-A73"),
    (0x41, 0xd0a, "ARM Cortex-A75"),
    (0x41, 0xd0b, "ARM Cortex-A76"),
    (0x41, 0xd0c, "ARM Neoverse-N1"),
    (0x41, 0xd40, "ARM Neoverse-V1"),
    (0x41, 0xd41, "ARM Cortex-A78"),
    (0x41, 0xd42, "ARM Cortex-A78AE"),
    (0x41, 0xd49, "ARM Neoverse-N2"),
    (0x41, 0xd4a, "ARM Neoverse-E1"),
    (0x41, 0xd4f, "ARM Neoverse-V2"),
    (0x41, 0xd83, "ARM Neoverse-V3AE"),
    (0x41, 0xd84, "ARM Neoverse-V3"),
    (0x41, 0xd8e, "ARM Neoverse-N3"),
    (0x42, 0x516, "Broadcom ThunderX2"),
    (0x43, 0x0a1, "Cavium ThunderX"),
    (0x43, 0x0af, "Cavium ThunderX2"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0x46, 0x003, "Fujitsu MONAKA"),
    (0x48, 0xd01, "HiSilicon TaiShan v110"),
    (0x48, 0xd02, "HiSilicon TaiShan v120"),
    (0x4e, 0x004, "NVIDIA Carmel"),
    (0x50, 0x000, "APM X-Gene"),
    (0x51, 0x001, "Qualcomm Oryon"),
    (0x51, 0xc00, "Qualcomm Falkor"),
    (0x61, 0x022, "Apple M1 Icestorm"),
    (0x61, 0x023, "Apple M1 Firestorm"),
    (0x61, 0x032, "Apple M2 Blizzard"),
    (0x61, 0x033, "Apple M2 Avalanche"),
    (0x70, 0x662, "Phytium FTC662"),
    (0x70, 0x663, "Phytium FTC663"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn processors_have_the_names_of_their_makers() {
        let check = |lines: &[(&str, &str)], name: &str| {
            let lines = lines.iter().map(|(key, value)| (key.to_string(), value.to_string()));
            assert_eq!(model(&lines.collect::<Vec<_>>()), name);
        };
        check(&[("model", "17"), ("model name", "AMD EPYC")], "AMD EPYC");
        check(&[("CPU implementer", "0x41"), ("CPU part", "0xd0c")], "ARM Neoverse-N1");
        check(&[("CPU implementer", "0x46"), ("CPU part", "0x001")], "Fujitsu A64FX");
        let unknown = "ARM part 0xfff of implementer 0x41";
        check(&[("CPU implementer", "0x41"), ("CPU part", "0xfff")], unknown);
        check(&[("isa", "rv64imafdc")], "unknown model");
        let mut parts: Vec<_> =
            ARM_PARTS.iter().map(|(implementer, part, _)| (implementer, part)).collect();
        parts.dedup();
        assert!(parts.len() == ARM_PARTS.len() && parts.is_sorted());
    }

    #[test]
    fn sockets_and_cores_are_counted_from_their_cpus() {
        let check = |cpus: &[(&str, &str)], sockets, cores, text: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            for (number, (socket, core)) in cpus.iter().enumerate() {
                let topology = folder.path().join(format!("cpu{number}/topology"));
                fs::create_dir_all(&topology).unwrap();
                fs::write(topology.join("physical_package_id"), socket).unwrap();
                fs::write(topology.join("core_id"), core).unwrap();
            }
            fs::create_dir(folder.path().join("cpufreq")).unwrap();
            let read = CpuTopology::read(folder.path());
            assert_eq!(read, CpuTopology { sockets, cores });
            assert_eq!(read.text().as_deref(), text);
        };
        let threads = [("0", "0"), ("1", "0"), ("0", "1"), ("1", "1"), ("0", "0"), ("1", "0")];
        check(&threads, Some(2), Some(4), Some("2 sockets of 2 cores"));
        check(&[("0", "0")], Some(1), Some(1), Some("1 socket of 1 core"));
        check(&[("0", "0"), ("0", "1"), ("1", "0")], Some(2), Some(3), Some("2 sockets, 3 cores"));
        check(&[("-1", "0")], None, None, None);
        check(&[], None, None, None);
    }
}
