//! Whether others leave a device and the processors alone, looked at for a while before a run. Waits, and changes nothing.

use super::mount::{block_device, mount_of};
use super::proc::{DeviceReads, Proc, Totals};
use crate::clock::Clock;
use feedrate_spec::plan::PlanDoubt;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The activity seen during a look. Where a folder lies on no device of this machine (tmpfs, NFS), only the processors are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineActivity {
    /// Length of the look.
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

/// Limits of what is quiet enough. What is not known disturbs nobody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Share of the disk's time.
    pub device_busy_share_max: f64,
    /// Share of the time of all processors.
    pub cpu_busy_share_max: f64,
}

/// The system's own writes and daemons stay below these.
pub const BOUNDS: Bounds = Bounds { device_busy_share_max: 0.05, cpu_busy_share_max: 0.25 };

/// The end of a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// Until the last look began: one look is no wait.
    pub waited_s: f64,
    /// Seen in the last look.
    pub activity: MachineActivity,
    /// Whether that was quiet enough.
    pub is_quiet: bool,
}

/// Look at the disk below `folder` and at the processors, `look` at a time, until they are quiet, `limit` is over or `stop` is set.
/// `on_wait` is told after each look but the last what it saw.
pub fn wait_until_quiet(
    folder: &Path,
    look: Duration,
    limit: Duration,
    bounds: &Bounds,
    clock: &Clock,
    stop: &AtomicBool,
    on_wait: &mut dyn FnMut(&MachineActivity),
) -> Quiet {
    let begun_ns = clock.now_ns();
    let mut waited_ns = 0;
    loop {
        let activity = activity(folder, look, clock, stop);
        let is_quiet = activity.is_within(bounds);
        let passed = Duration::from_nanos(clock.now_ns() - begun_ns);
        let is_over = passed >= limit || stop.load(Relaxed);
        if is_quiet || is_over {
            return Quiet { waited_s: waited_ns as f64 / 1e9, activity, is_quiet };
        }
        on_wait(&activity);
        waited_ns = clock.now_ns() - begun_ns;
    }
}

/// The activity of the disk below `folder` and of the processors during `look`, which ends early when `stop` is set.
pub fn activity(
    folder: &Path,
    look: Duration,
    clock: &Clock,
    stop: &AtomicBool,
) -> MachineActivity {
    let disk = mount_of(folder).and_then(|mount| whole_disk(&mount.device));
    let (name, device) = disk.unzip();
    let mut proc = Proc::open(device.as_deref(), DeviceReads::Counted);
    let (before, begun_ns) = (proc.totals(), clock.now_ns());
    clock.sleep_until(begun_ns + look.as_nanos() as u64, stop);
    let added = proc.totals().since(before);
    let duration_s = (clock.now_ns() - begun_ns) as f64 / 1e9;
    MachineActivity { device: name, ..MachineActivity::new(added, duration_s) }
}

impl MachineActivity {
    fn new(added: Totals, duration_s: f64) -> Self {
        let per_second = |added: Option<u64>| added.map(|added| added as f64 / duration_s);
        MachineActivity {
            duration_s,
            device: None,
            device_busy_share: per_second(added.device_busy_ms).map(|ms| ms / 1000.0),
            device_read_bytes_per_second: per_second(added.counts.device_read_bytes),
            device_written_bytes_per_second: per_second(added.counts.device_written_bytes),
            cpu_busy_share: added.cpu_busy_share(),
        }
    }

    /// Whether nothing that is known moves more than `bounds` allow.
    pub fn is_within(&self, bounds: &Bounds) -> bool {
        self.device_busy_share.is_none_or(|share| share <= bounds.device_busy_share_max)
            && self.cpu_busy_share.is_none_or(|share| share <= bounds.cpu_busy_share_max)
    }

    /// `vda busy 50 %, processors busy 90 %`: what is known.
    pub fn busy(&self) -> String {
        let device = self.device.as_deref().unwrap_or("the device");
        let both = [(device, self.device_busy_share), ("processors", self.cpu_busy_share)];
        let known = both.into_iter().filter_map(|(name, share)| Some((name, share?)));
        let told: Vec<String> =
            known.map(|(name, share)| format!("{name} busy {:.0} %", 100.0 * share)).collect();
        told.join(", ")
    }

    /// " (2 MB/s read, 0 B/s written)".
    fn rates(&self) -> String {
        let (Some(read), Some(written)) =
            (self.device_read_bytes_per_second, self.device_written_bytes_per_second)
        else {
            return String::new();
        };
        let (read, written) = (units::bytes_per_second(read), units::bytes_per_second(written));
        format!(" ({read} read, {written} written)")
    }
}

impl Quiet {
    /// The doubt of a run that began in spite of noise.
    pub fn doubt(&self) -> Option<PlanDoubt> {
        if self.is_quiet {
            return None;
        }
        let MachineActivity { device, device_busy_share, cpu_busy_share, .. } = &self.activity;
        let mut seen = Vec::new();
        if let Some(share) = device_busy_share {
            let device = device.as_deref().unwrap_or("the device");
            seen.push(format!("{device} was {}{}", busy(*share), self.activity.rates()));
        }
        if let Some(share) = cpu_busy_share {
            seen.push(format!("the processors were {}", busy(*share)));
        }
        let waited = match self.waited_s {
            0.0 => String::new(),
            waited_s => format!(", after a wait of {}", units::seconds(waited_s)),
        };
        let seen = seen.join(", ");
        Some(PlanDoubt {
            name: "device_not_quiet".into(),
            evidence: format!("before the run{waited}, {seen}"),
            advice: "find out who else uses the machine, or wait longer (`--quiet-wait 60s`); set the rows back to `N` and run again".into(),
        })
    }
}

fn busy(share: f64) -> String {
    format!("busy {:.0} % of the time", share * 100.0)
}

/// Name and `major:minor` of the disk that a partition shares with others.
fn whole_disk(device: &str) -> Option<(String, String)> {
    let folder = block_device(device)?;
    let name = Path::new(&folder).file_name()?.to_string_lossy().into_owned();
    let device = fs::read_to_string(format!("{folder}/dev")).ok()?.trim().to_string();
    Some((name, device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::record::timeline::Sample;

    #[test]
    fn a_look_is_the_difference_of_counters_over_time() {
        let totals = |busy_ms, read, [busy_ticks, ticks]: [u64; 2]| Totals {
            device_reads: None,
            device_busy_ms: Some(busy_ms),
            counts: Sample {
                device_read_bytes: Some(read),
                device_written_bytes: Some(5000),
                cpu_busy_ticks: Some(busy_ticks),
                cpu_ticks: Some(ticks),
                ..Sample::default()
            },
        };
        let (before, after) = (totals(1000, 0, [10, 100]), totals(1500, 4000, [60, 300]));
        let expected = MachineActivity {
            duration_s: 2.0,
            device: None,
            device_busy_share: Some(0.25),
            device_read_bytes_per_second: Some(2000.0),
            device_written_bytes_per_second: Some(0.0),
            cpu_busy_share: Some(0.25),
        };
        assert_eq!(MachineActivity::new(after.since(before), 2.0), expected);
        let unknown = MachineActivity::new(after.since(Totals::default()), 1.0);
        assert_eq!((unknown.device_busy_share, unknown.cpu_busy_share), (None, None));
    }

    #[test]
    fn what_is_known_and_moves_is_not_quiet() {
        let check = |device_busy_share, cpu_busy_share, expected| {
            let activity =
                MachineActivity { device_busy_share, cpu_busy_share, ..MachineActivity::default() };
            assert_eq!(activity.is_within(&BOUNDS), expected, "{activity:?}");
        };
        check(None, None, true);
        check(Some(0.05), Some(0.25), true);
        check(Some(0.06), None, false);
        check(None, Some(0.26), false);
    }

    #[test]
    fn a_noisy_device_is_doubted_with_its_figures() {
        let activity = MachineActivity {
            device: Some("vda".into()),
            device_busy_share: Some(0.5),
            device_read_bytes_per_second: Some(2e6),
            device_written_bytes_per_second: Some(0.0),
            cpu_busy_share: Some(0.9),
            ..MachineActivity::default()
        };
        let doubt = |waited_s, is_quiet| {
            Quiet { waited_s, activity: activity.clone(), is_quiet }.doubt().map(|of| of.evidence)
        };
        assert_eq!(doubt(30.0, true), None);
        let seen = "vda was busy 50 % of the time (2 MB/s read, 0 B/s written), the processors were busy 90 % of the time";
        assert_eq!(
            doubt(30.0, false).unwrap(),
            format!("before the run, after a wait of 30 s, {seen}")
        );
        assert_eq!(doubt(0.0, false).unwrap(), format!("before the run, {seen}"));
    }

    #[test]
    fn a_wait_ends_at_its_limit_and_when_told_to() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let never = Bounds { device_busy_share_max: -1.0, cpu_busy_share_max: -1.0 };
        let (look, clock) = (Duration::from_millis(30), Clock::new());
        let go_on = AtomicBool::new(false);
        let mut waits = 0;
        let mut wait = |look, limit, stop: &AtomicBool| {
            wait_until_quiet(here, look, limit, &never, &clock, stop, &mut |_| waits += 1)
        };
        let noisy = wait(look, Duration::ZERO, &go_on);
        assert_eq!(noisy.waited_s, 0.0, "one look is no wait");
        assert!(!noisy.is_quiet && noisy.activity.cpu_busy_share.is_some(), "{noisy:?}");
        let stop = AtomicBool::new(true);
        let limit = Duration::from_secs(3600);
        assert!(!wait(limit, limit, &stop).is_quiet);
        let waited = wait(look, 3 * look, &go_on);
        assert!(!waited.is_quiet && 0.03 <= waited.waited_s, "{waited:?}");
        assert!(waits > 0, "who looks twice waits");
    }
}
