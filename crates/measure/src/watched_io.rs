//! Decides whether the storage is the problem of a watched training loop, from its waits, the use of processors and the block device.
//!
//! A loader that computes does not wait for storage, and nothing waits for a device that does not read. So the share of the loader's time
//! without computing, and the share of time with reads in progress at the device, are upper limits of the share of time that the storage
//! took. The storage is named only if both are known, and the device read mostly for the loop.

use crate::derived::Derived;
use crate::file_system;
use crate::io_problem::{IoProblem, PARTLY_MIN};
use crate::noise;
use crate::record::{Record, Watched};
use crate::window::seconds;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// What decides whether the storage is the problem of a watched loop.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum WatchedIoReason {
        /// The loop reached its target.
        Fed = "fed",
        /// The cores of the machine were busy: with the loop's own work, or with that of others, which leaves the question open.
        CoresBusy = "cores-busy",
        /// The loader computed for most of its time.
        LoaderBusy = "loader-busy",
        /// The device of the data rarely read.
        DeviceIdle = "device-idle",
        /// The device read while the loader did not compute.
        DeviceBusy = "device-busy",
        /// The folder of the data was not given.
        FolderUnknown = "folder-unknown",
        /// The device of the data is unknown, or the system does not measure its reads.
        DeviceUnknown = "device-unknown",
        /// The device read mostly for other processes.
        OtherProcesses = "other-processes",
        /// The processor time of the loader is unknown.
        LoaderUnknown = "loader-unknown",
    }
}

/// Whether the storage is the problem of a watched loop, and the measurements that show it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WatchedIo {
    /// Whether the storage is the problem.
    pub kind: IoProblem,
    /// What decides this.
    pub reason: WatchedIoReason,
    /// Share of the steps' time that the loop waited for batches, in percent.
    pub waited_percent: f64,
    /// Share of the loader's time in which it computed, in percent: of all worker processes, or without them of the loop's thread in its waits.
    /// `null` if unknown.
    pub loader_busy_percent: Option<f64>,
    /// Bytes that the processes of the loop read from the device, per second of the steps; `null` if unknown.
    pub device_bytes_per_second: Option<f64>,
    /// Mean number of reads in progress at the device of the data, of all processes; `null` if unknown.
    pub device_reads_in_flight: Option<f64>,
}

/// Share of the bytes of a device from which it read mostly for the loop.
const OWN_SHARE_MIN: f64 = 0.5;

impl WatchedIo {
    /// Analyses a watched loop, which is `is_fed` if it reached its target. `None` for other records and without a finished step.
    pub fn new(derived: &Derived, is_fed: bool) -> Option<Self> {
        let record = derived.record;
        let watched = record.watched.as_ref()?;
        let times = StepTimes::new(record)?;
        let has_counter = |counts: fn(&str) -> bool| {
            let mut mounts = record.machines().iter().map(|machine| machine.data_mount.as_ref());
            mounts.all(|mount| mount.is_some_and(|mount| counts(&mount.file_system)))
        };
        let device_bytes =
            derived.device_bytes.filter(|_| has_counter(file_system::counts_device_reads));
        let reads_in_flight = if has_counter(file_system::is_in_memory) {
            Some(0.0)
        } else {
            watched.device_read_ns.map(|ns| seconds(ns) / times.machines_s)
        };
        let loader = LoaderUse::new(derived, watched, &times);
        let evidence = Evidence {
            is_fed,
            has_folder: record.system.data_mount.is_some(),
            busy_cores: noise::are_mostly_busy(record).then(|| noise::are_used_by_others(derived)),
            // A loader without workers reads only while the loop waits.
            device_share_max: reads_in_flight.map(|reads| match watched.workers {
                Some(0) => (reads / times.waited_share).min(1.0),
                _ => reads.min(1.0),
            }),
            idle_shares: loader.map(|loader| loader.idle_shares),
            own_device_share: device_bytes
                .zip(derived.disk_bytes())
                .map(|(own, all)| own as f64 / all.max(1) as f64),
        };
        let Decision { kind, reason } = evidence.decide();
        Some(WatchedIo {
            kind,
            reason,
            waited_percent: 100.0 * times.waited_share,
            loader_busy_percent: loader
                .and_then(|loader| loader.busy_share)
                .map(|share| 100.0 * share),
            device_bytes_per_second: device_bytes.map(|bytes| bytes as f64 / times.mean_s),
            device_reads_in_flight: reads_in_flight,
        })
    }
}

/// Times of all steps.
struct StepTimes {
    /// Mean over accelerators.
    mean_s: f64,
    /// Sum over accelerators.
    sum_s: f64,
    /// Sum over machines.
    machines_s: f64,
    /// Share of waits for batches, 0 to 1.
    waited_share: f64,
}

impl StepTimes {
    /// `None` if no step took any time.
    fn new(record: &Record) -> Option<Self> {
        let epochs = record.epochs.iter();
        let blocks = epochs.flat_map(|epoch| &epoch.accelerators).flat_map(|each| &each.blocks);
        let mut load_ns = 0u64;
        let mut compute_ns = 0u64;
        for block in blocks {
            load_ns = load_ns.saturating_add(block.load_ns.iter().sum());
            compute_ns = compute_ns.saturating_add(block.compute_ns.iter().sum());
        }
        let sum_s = seconds(load_ns.saturating_add(compute_ns));
        let mean_s = sum_s / f64::from(record.plan.accelerators.max(1));
        (0.0 < sum_s).then(|| StepTimes {
            mean_s,
            sum_s,
            machines_s: mean_s * record.machines().len() as f64,
            waited_share: seconds(load_ns) / sum_s,
        })
    }
}

/// How much a loader used processors.
#[derive(Clone, Copy)]
struct LoaderUse {
    /// Share of the loader's time in which it computed; `None` if its threads are unknown.
    busy_share: Option<f64>,
    /// Limits of the share of the loader's time in which it did not compute.
    idle_shares: [f64; 2],
}

impl LoaderUse {
    fn new(derived: &Derived, watched: &Watched, times: &StepTimes) -> Option<Self> {
        let busy_ns = watched.loader_cpu_ns.zip(watched.loader_time_ns.filter(|&ns| 0 < ns));
        let busy_share = busy_ns.map(|(busy, all)| (busy as f64 / all as f64).min(1.0));
        if watched.workers.is_some() {
            let busy_share = busy_share?;
            return Some(LoaderUse {
                busy_share: Some(busy_share),
                idle_shares: [1.0 - busy_share; 2],
            });
        }
        // Threads and processes that are unknown may have computed for the whole of the processes' time.
        let cpu_ns = derived.sum_over_epochs(|host| host.process_cpu_ns)?;
        let all_busy_share = (cpu_ns as f64 / 1e9 / times.sum_s).min(1.0);
        let idle_max = 1.0 - busy_share.unwrap_or(0.0);
        let idle_shares = [(1.0 - all_busy_share).min(idle_max), idle_max];
        Some(LoaderUse { busy_share: None, idle_shares })
    }
}

/// What is known about a loop. `None` means unknown.
struct Evidence {
    is_fed: bool,
    /// Whether the folder of the data was given.
    has_folder: bool,
    /// Whether other processes kept the cores busy; `None` if the cores were not busy.
    busy_cores: Option<bool>,
    /// Upper limit of the share of the loader's time with reads in progress at the device, 0 to 1.
    device_share_max: Option<f64>,
    /// Limits of the share of the loader's time in which it did not compute, 0 to 1.
    idle_shares: Option<[f64; 2]>,
    /// Share of the device's bytes that the loop read.
    own_device_share: Option<f64>,
}

struct Decision {
    kind: IoProblem,
    reason: WatchedIoReason,
}

impl Evidence {
    fn decide(&self) -> Decision {
        let no = |reason| Decision { kind: IoProblem::No, reason };
        let unknown = |reason| Decision { kind: IoProblem::Unknown, reason };
        let is_small = |share: f64| share < PARTLY_MIN;
        if self.is_fed {
            return no(WatchedIoReason::Fed);
        }
        // Work that occupies all cores is no faster with other storage.
        if self.busy_cores == Some(false) {
            return no(WatchedIoReason::CoresBusy);
        }
        if self.idle_shares.is_some_and(|[_, high]| is_small(high)) {
            return no(WatchedIoReason::LoaderBusy);
        }
        if self.device_share_max.is_some_and(is_small) {
            return no(WatchedIoReason::DeviceIdle);
        }
        // The loader may have waited for a core.
        if self.busy_cores == Some(true) {
            return unknown(WatchedIoReason::CoresBusy);
        }
        let device_unknown = unknown(if self.has_folder {
            WatchedIoReason::DeviceUnknown
        } else {
            WatchedIoReason::FolderUnknown
        });
        let Some(device_share) = self.device_share_max else {
            return device_unknown;
        };
        match (self.idle_shares, self.own_device_share) {
            (_, None) => device_unknown,
            (_, Some(own)) if own < OWN_SHARE_MIN => unknown(WatchedIoReason::OtherProcesses),
            (None, _) => unknown(WatchedIoReason::LoaderUnknown),
            (Some([low, _]), _) if is_small(low) => unknown(WatchedIoReason::LoaderUnknown),
            (Some([low, _]), _) => Decision {
                kind: IoProblem::from_share(low.min(device_share)),
                reason: WatchedIoReason::DeviceBusy,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Mount;
    use crate::tests::example::simple;

    /// Ten steps of a loop on ext4 that waits for 6 s and computes for 4 s. The device reads 4.8 GB for it, always with a read in progress, and its
    /// two workers compute for 2 s each.
    fn loop_on_slow_device() -> Record {
        let mut record = simple(&[(600, 400, 0, 0); 10]);
        record.watched = Some(Watched {
            workers: Some(2),
            device_read_ns: Some(12_000_000_000),
            loader_cpu_ns: Some(4_000_000_000),
            loader_time_ns: Some(20_000_000_000),
            ..Watched::default()
        });
        record.system.data_mount = Some(Mount { file_system: "ext4".into(), ..Mount::default() });
        let host = &mut record.epochs[0].host;
        host.process_device_read_bytes = Some(4_800_000_000);
        host.device_read_bytes = Some(5_000_000_000);
        host.process_cpu_ns = Some(4_500_000_000);
        host.cpu_busy_share = Some(0.3);
        record
    }

    #[track_caller]
    fn check(kind: IoProblem, reason: WatchedIoReason, change: impl Fn(&mut Record)) -> WatchedIo {
        let mut record = loop_on_slow_device();
        change(&mut record);
        let derived = Derived::new(&record);
        let io = WatchedIo::new(&derived, crate::verdict::is_fed(&derived)).unwrap();
        assert_eq!((io.kind, io.reason), (kind, reason), "{io:?}");
        io
    }

    fn watched(record: &mut Record) -> &mut Watched {
        record.watched.as_mut().unwrap()
    }

    fn set_file_system(record: &mut Record, name: &str) {
        record.system.data_mount.as_mut().unwrap().file_system = name.into();
    }

    #[test]
    fn a_device_that_reads_while_the_loader_is_idle_is_the_problem() {
        let io = check(IoProblem::Yes, WatchedIoReason::DeviceBusy, |_| {});
        assert_eq!(
            (io.device_bytes_per_second, io.device_reads_in_flight),
            (Some(480e6), Some(1.2))
        );
        assert_eq!((io.loader_busy_percent, io.waited_percent.round()), (Some(20.0), 60.0));
        check(IoProblem::Partly, WatchedIoReason::DeviceBusy, |r| {
            watched(r).device_read_ns = Some(3_000_000_000);
        });
        check(IoProblem::Partly, WatchedIoReason::DeviceBusy, |r| {
            watched(r).loader_cpu_ns = Some(12_000_000_000);
        });
        // Without workers, reads take place only in the 6 s of waits.
        check(IoProblem::Yes, WatchedIoReason::DeviceBusy, |r| {
            let watched = watched(r);
            (watched.workers, watched.device_read_ns) = (Some(0), Some(3_000_000_000));
        });
    }

    #[test]
    fn an_idle_device_and_a_busy_loader_rule_the_storage_out() {
        check(IoProblem::No, WatchedIoReason::DeviceIdle, |r| {
            watched(r).device_read_ns = Some(1_900_000_000);
        });
        check(IoProblem::No, WatchedIoReason::DeviceIdle, |r| set_file_system(r, "tmpfs"));
        check(IoProblem::No, WatchedIoReason::LoaderBusy, |r| {
            watched(r).loader_cpu_ns = Some(17_000_000_000);
        });
        // A loader that computes does not wait for storage, even if that is not measured.
        check(IoProblem::No, WatchedIoReason::LoaderBusy, |r| {
            let watched = watched(r);
            (watched.loader_cpu_ns, watched.device_read_ns) = (Some(17_000_000_000), None);
        });
        // The eight cores were busy, by the processes of the loop or by others.
        let busy = |r: &mut Record, own_ns| {
            let host = &mut r.epochs[0].host;
            (host.cpu_busy_share, host.process_cpu_ns) = (Some(0.97), Some(own_ns));
        };
        check(IoProblem::No, WatchedIoReason::CoresBusy, |r| busy(r, 70_000_000_000));
        check(IoProblem::Unknown, WatchedIoReason::CoresBusy, |r| busy(r, 4_000_000_000));
        check(IoProblem::No, WatchedIoReason::DeviceIdle, |r| {
            busy(r, 4_000_000_000);
            watched(r).device_read_ns = Some(0);
        });
        check(IoProblem::No, WatchedIoReason::Fed, |r| r.plan.metric.au_target_percent = 40.0);
    }

    #[test]
    fn without_measurements_the_problem_is_unknown() {
        check(IoProblem::Unknown, WatchedIoReason::DeviceUnknown, |r| {
            watched(r).device_read_ns = None;
        });
        for file_system in ["fuse.sshfs", "lustre", "of_the_future"] {
            let io = check(IoProblem::Unknown, WatchedIoReason::DeviceUnknown, |r| {
                set_file_system(r, file_system);
            });
            assert_eq!(io.device_bytes_per_second, None);
        }
        check(IoProblem::Unknown, WatchedIoReason::FolderUnknown, |r| r.system.data_mount = None);
        check(IoProblem::Unknown, WatchedIoReason::OtherProcesses, |r| {
            r.epochs[0].host.process_device_read_bytes = Some(1_000_000_000);
        });
        check(IoProblem::Unknown, WatchedIoReason::LoaderUnknown, |r| {
            watched(r).loader_cpu_ns = None;
        });
    }

    #[test]
    fn threads_of_an_unknown_loader_may_have_computed_for_all_time_of_the_processes() {
        let unknown = |r: &mut Record, cpu_ns| {
            watched(r).workers = None;
            r.epochs[0].host.process_cpu_ns = Some(cpu_ns);
        };
        let io = check(IoProblem::Yes, WatchedIoReason::DeviceBusy, |r| unknown(r, 4_500_000_000));
        assert_eq!(io.loader_busy_percent, None);
        check(IoProblem::Unknown, WatchedIoReason::LoaderUnknown, |r| unknown(r, 9_000_000_000));
        // The thread of the loop itself computed in its waits.
        check(IoProblem::No, WatchedIoReason::LoaderBusy, |r| {
            unknown(r, 9_000_000_000);
            let watched = watched(r);
            (watched.loader_cpu_ns, watched.loader_time_ns) =
                (Some(5_500_000_000), Some(6_000_000_000));
        });
    }
}
