//! Whether others leave a device and the processors alone, looked at for a while before a run. Waits, and changes nothing.

use super::mount::{block_device, mount_of};
use super::sample::{busy_share, cpu_ticks, disk_busy_ms, disk_bytes};
use crate::clock::Clock;
use feedrate_spec::plan::PlanDoubt;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What moved during a look. Where a folder lies on no device of this machine (tmpfs, NFS), only the processors are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// How long it was looked at.
    pub duration_s: f64,
    /// The disk, as the kernel calls it.
    pub device: Option<String>,
    /// Share of the time in which the disk had something to do.
    pub device_busy_share: Option<f64>,
    /// Read from the disk.
    pub device_read_bytes_per_second: Option<f64>,
    /// Written to the disk.
    pub device_written_bytes_per_second: Option<f64>,
    /// Share of the time of all processors.
    pub cpu_busy_share: Option<f64>,
}

/// What is quiet enough. What is not known disturbs nobody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Of the disk's time.
    pub device_busy_share_max: f64,
    /// Of the time of all processors.
    pub cpu_busy_share_max: f64,
}

/// The system's own writes and daemons stay below these.
pub const BOUNDS: Bounds = Bounds { device_busy_share_max: 0.05, cpu_busy_share_max: 0.25 };

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// How long it took.
    pub waited_s: f64,
    /// What the last look showed.
    pub activity: Activity,
    /// Whether that was quiet enough.
    pub is_quiet: bool,
}

/// Look at the disk below `folder` and at the processors, `look` at a time, until they are quiet, `limit` is over or `stop` is set.
pub fn wait_until_quiet(
    folder: &Path,
    (look, limit): (Duration, Duration),
    bounds: &Bounds,
    clock: &Clock,
    stop: &AtomicBool,
) -> Quiet {
    let begun_ns = clock.now_ns();
    loop {
        let activity = activity(folder, look, clock, stop);
        let is_quiet = activity.is_within(bounds);
        let waited_ns = clock.now_ns() - begun_ns;
        let is_over = Duration::from_nanos(waited_ns) >= limit || stop.load(Relaxed);
        if is_quiet || is_over {
            return Quiet { waited_s: waited_ns as f64 / 1e9, activity, is_quiet };
        }
    }
}

/// What moves on the disk below `folder` and on the processors during `look`, which ends early when `stop` is set.
pub fn activity(folder: &Path, look: Duration, clock: &Clock, stop: &AtomicBool) -> Activity {
    let device = mount_of(folder).and_then(|mount| whole_disk(&mount.device));
    let before = Counters::now(device.as_ref());
    let begun_ns = clock.now_ns();
    clock.sleep_until(begun_ns + look.as_nanos() as u64, stop);
    let after = Counters::now(device.as_ref());
    let duration_ns = clock.now_ns() - begun_ns;
    Activity { device: device.map(|disk| disk.name), ..before.until(&after, duration_ns) }
}

impl Activity {
    /// Whether nothing that is known moves more than `bounds` allow.
    pub fn is_within(&self, bounds: &Bounds) -> bool {
        let is_within = |share: Option<f64>, max: f64| share.is_none_or(|share| share <= max);
        is_within(self.device_busy_share, bounds.device_busy_share_max)
            && is_within(self.cpu_busy_share, bounds.cpu_busy_share_max)
    }
}

impl Quiet {
    /// What a run deserves that began in spite of noise.
    pub fn doubt(&self) -> Option<PlanDoubt> {
        let percent = |share: f64| format!("busy {:.0} % of the time", share * 100.0);
        let Activity { device, cpu_busy_share, .. } = &self.activity;
        let rates = self.activity.device_read_bytes_per_second;
        let rates = rates.zip(self.activity.device_written_bytes_per_second);
        let rates = rates.map(|(read, written)| {
            let (read, written) = (units::bytes_per_second(read), units::bytes_per_second(written));
            format!(" ({read} read, {written} written)")
        });
        let disk = self.activity.device_busy_share.map(|share| {
            let device = device.as_deref().unwrap_or("the device");
            format!("{device} was {}{}", percent(share), rates.unwrap_or_default())
        });
        let cpus = cpu_busy_share.map(|share| format!("the processors were {}", percent(share)));
        let seen: Vec<String> = disk.into_iter().chain(cpus).collect();
        (!self.is_quiet).then(|| PlanDoubt {
            name: "device_not_quiet".into(),
            evidence: format!(
                "before the run, after a wait of {}, {}",
                units::seconds(self.waited_s),
                seen.join(", ")
            ),
            advice: "find out who else uses the machine, or wait longer; then run again".into(),
        })
    }
}

struct Disk {
    name: String,
    /// `major:minor`.
    device: String,
}

/// Of a partition, the disk that it shares with others.
fn whole_disk(device: &str) -> Option<Disk> {
    let folder = block_device(device)?;
    let name = Path::new(&folder).file_name()?.to_string_lossy().into_owned();
    let device = fs::read_to_string(format!("{folder}/dev")).ok()?.trim().to_string();
    Some(Disk { name, device })
}

/// Since the machine was started.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    disk_busy_ms: Option<u64>,
    disk_bytes: Option<(u64, u64)>,
    cpu_ticks: Option<(u64, u64)>,
}

impl Counters {
    fn now(disk: Option<&Disk>) -> Self {
        let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Counters {
            disk_busy_ms: disk.and_then(|disk| disk_busy_ms(&disks, &disk.device)),
            disk_bytes: disk.and_then(|disk| disk_bytes(&disks, &disk.device)),
            cpu_ticks: cpu_ticks(&stat),
        }
    }

    fn until(&self, after: &Counters, duration_ns: u64) -> Activity {
        let duration_s = duration_ns as f64 / 1e9;
        let rate = |before: Option<u64>, after: Option<u64>| {
            let added = after?.checked_sub(before?)?;
            (duration_ns > 0).then(|| added as f64 / duration_s)
        };
        let read = |counters: &Counters| counters.disk_bytes.map(|(read, _)| read);
        let written = |counters: &Counters| counters.disk_bytes.map(|(_, written)| written);
        Activity {
            duration_s,
            device: None,
            device_busy_share: rate(self.disk_busy_ms, after.disk_busy_ms)
                .map(|ms_per_second| ms_per_second / 1000.0),
            device_read_bytes_per_second: rate(read(self), read(after)),
            device_written_bytes_per_second: rate(written(self), written(after)),
            cpu_busy_share: busy_share(self.cpu_ticks, after.cpu_ticks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_the_difference_of_counters_over_time() {
        let before = Counters {
            disk_busy_ms: Some(1000),
            disk_bytes: Some((0, 5000)),
            cpu_ticks: Some((10, 100)),
        };
        let after = Counters {
            disk_busy_ms: Some(1500),
            disk_bytes: Some((4000, 5000)),
            cpu_ticks: Some((60, 300)),
        };
        let expected = Activity {
            duration_s: 2.0,
            device: None,
            device_busy_share: Some(0.25),
            device_read_bytes_per_second: Some(2000.0),
            device_written_bytes_per_second: Some(0.0),
            cpu_busy_share: Some(0.25),
        };
        assert_eq!(before.until(&after, 2_000_000_000), expected);
        let unknown = Counters::default().until(&after, 1);
        assert_eq!((unknown.device_busy_share, unknown.cpu_busy_share), (None, None));
    }

    #[test]
    fn what_is_known_and_moves_is_not_quiet() {
        let check = |device_busy_share, cpu_busy_share, expected| {
            let activity = Activity { device_busy_share, cpu_busy_share, ..Activity::default() };
            assert_eq!(activity.is_within(&BOUNDS), expected, "{activity:?}");
        };
        check(None, None, true);
        check(Some(0.05), Some(0.25), true);
        check(Some(0.06), None, false);
        check(None, Some(0.26), false);
    }

    #[test]
    fn a_noisy_device_is_doubted_with_its_figures() {
        let activity = Activity {
            device: Some("vda".into()),
            device_busy_share: Some(0.5),
            device_read_bytes_per_second: Some(2e6),
            device_written_bytes_per_second: Some(0.0),
            cpu_busy_share: Some(0.9),
            ..Activity::default()
        };
        let quiet = |is_quiet| Quiet { waited_s: 30.0, activity: activity.clone(), is_quiet };
        assert_eq!(quiet(true).doubt(), None);
        assert_eq!(
            quiet(false).doubt().unwrap().evidence,
            "before the run, after a wait of 30 s, vda was busy 50 % of the time (2 MB/s read, 0 B/s written), \
             the processors were busy 90 % of the time"
        );
    }

    #[test]
    fn a_wait_ends_at_its_limit_and_when_told_to() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let never = Bounds { device_busy_share_max: -1.0, cpu_busy_share_max: -1.0 };
        let (look, clock) = (Duration::from_millis(30), Clock::new());
        let go_on = AtomicBool::new(false);
        let noisy = wait_until_quiet(here, (look, Duration::ZERO), &never, &clock, &go_on);
        assert!(!noisy.is_quiet && noisy.activity.cpu_busy_share.is_some(), "{noisy:?}");
        let stop = AtomicBool::new(true);
        let limit = Duration::from_secs(3600);
        assert!(!wait_until_quiet(here, (limit, limit), &never, &clock, &stop).is_quiet);
    }
}
