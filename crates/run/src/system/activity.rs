//! Measures how busy a disk and the processors are before a run, and raises a doubt if other processes use them.

use super::mount::{block_device, mount_of};
use super::proc::{DeviceReads, Proc, Totals};
use crate::clock::Clock;
use feedrate_spec::plan::PlanDoubt;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Activity during a measurement. The values of the disk are unknown for a folder without a local device (tmpfs, NFS).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineActivity {
    /// Duration of the measurement.
    pub duration_s: f64,
    /// Kernel name of the disk.
    pub device: Option<String>,
    /// Share of the time in which the disk was busy.
    pub device_busy_share: Option<f64>,
    /// Bytes read from the disk per second.
    pub device_read_bytes_per_second: Option<f64>,
    /// Bytes written to the disk per second.
    pub device_written_bytes_per_second: Option<f64>,
    /// Busy share of all processors.
    pub cpu_busy_share: Option<f64>,
}

/// Busy share of the disk above which a run is doubted. Background writes of the system stay below it.
const DEVICE_BUSY_SHARE_MAX: f64 = 0.05;
/// Busy share of the processors above which a run is doubted. The daemons of the system stay below it.
const CPU_BUSY_SHARE_MAX: f64 = 0.25;

/// Measures the activity of the disk that contains `folder` and of the processors for `duration`, or until `stop` is set.
pub fn activity(
    folder: &Path,
    duration: Duration,
    clock: &Clock,
    stop: &AtomicBool,
) -> MachineActivity {
    let disk = mount_of(folder).and_then(|mount| disk_of_partition(&mount.device));
    let (name, device) = disk.unzip();
    let mut proc = Proc::open(device.as_deref(), DeviceReads::Counted);
    let before = proc.totals();
    let start_ns = clock.now_ns();
    clock.sleep_until(start_ns + duration.as_nanos() as u64, stop);
    let added = proc.totals().since(before);
    let duration_s = (clock.now_ns() - start_ns) as f64 / 1e9;
    MachineActivity { device: name, ..MachineActivity::new(added, duration_s) }
}

impl MachineActivity {
    fn new(added: Totals, duration_s: f64) -> Self {
        let per_second = |total: Option<u64>| total.map(|total| total as f64 / duration_s);
        MachineActivity {
            duration_s,
            device: None,
            device_busy_share: per_second(added.device_busy_ms).map(|ms| ms / 1000.0),
            device_read_bytes_per_second: per_second(added.counts.device_read_bytes),
            device_written_bytes_per_second: per_second(added.counts.device_written_bytes),
            cpu_busy_share: added.cpu_busy_share(),
        }
    }

    /// Returns a doubt if other processes use the disk or the processors when the run starts. Unknown shares raise no doubt.
    pub fn doubt(&self) -> Option<PlanDoubt> {
        let mut facts = Vec::new();
        if let Some(share) = self.cpu_busy_share.filter(|share| CPU_BUSY_SHARE_MAX < *share) {
            facts.push(format!("the processors were {}", busy_text(share)));
        }
        if let Some(share) = self.device_busy_share.filter(|share| DEVICE_BUSY_SHARE_MAX < *share) {
            let device = self.device.as_deref().unwrap_or("the device");
            facts.push(format!("{device} was {}{}", busy_text(share), self.rates()));
        }
        (!facts.is_empty()).then(|| PlanDoubt {
            name: "device_not_quiet".into(),
            evidence: format!("before the run, {}", facts.join(", ")),
            advice: "find out which other processes use the machine, and run again: in a study, mark the rows as pending (`N`); otherwise, `--again`"
                .into(),
        })
    }

    /// Formats the rates of the disk: " (2 MB/s read, 0 B/s written)".
    fn rates(&self) -> String {
        let (Some(read), Some(written)) =
            (self.device_read_bytes_per_second, self.device_written_bytes_per_second)
        else {
            return String::new();
        };
        format!(
            " ({} read, {} written)",
            units::bytes_per_second(read),
            units::bytes_per_second(written)
        )
    }
}

fn busy_text(share: f64) -> String {
    format!("busy {:.0} % of the time", share * 100.0)
}

/// Returns the name and the `major:minor` number of the disk that contains a partition.
fn disk_of_partition(device: &str) -> Option<(String, String)> {
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
    fn activity_is_the_difference_of_counters_over_time() {
        let totals = |busy_ms, read, [busy_ticks, ticks]: [u64; 2]| Totals {
            device_busy_ms: Some(busy_ms),
            counts: Sample {
                device_read_bytes: Some(read),
                device_written_bytes: Some(5000),
                cpu_busy_ticks: Some(busy_ticks),
                cpu_ticks: Some(ticks),
                ..Sample::default()
            },
            ..Totals::default()
        };
        let before = totals(1000, 0, [10, 100]);
        let after = totals(1500, 4000, [60, 300]);
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
    fn only_known_activity_above_the_limits_is_doubted() {
        let check = |device_busy_share, cpu_busy_share, expected| {
            let activity =
                MachineActivity { device_busy_share, cpu_busy_share, ..MachineActivity::default() };
            assert_eq!(activity.doubt().is_some(), expected, "{activity:?}");
        };
        check(None, None, false);
        check(Some(0.05), Some(0.25), false);
        check(Some(0.06), None, true);
        check(None, Some(0.26), true);
    }

    #[test]
    fn a_doubt_about_a_busy_device_has_its_rates() {
        let activity = MachineActivity {
            device: Some("vda".into()),
            device_busy_share: Some(0.5),
            device_read_bytes_per_second: Some(2e6),
            device_written_bytes_per_second: Some(0.0),
            cpu_busy_share: Some(0.9),
            ..MachineActivity::default()
        };
        let evidence = "before the run, the processors were busy 90 % of the time, vda was busy 50 % of the time (2 MB/s read, 0 B/s written)";
        assert_eq!(activity.doubt().unwrap().evidence, evidence);
    }

    #[test]
    fn a_measurement_ends_when_stopped() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let measure = |seconds, is_stopped| {
            let stop = AtomicBool::new(is_stopped);
            activity(here, Duration::from_secs_f64(seconds), &Clock::new(), &stop)
        };
        let measured = measure(0.03, false);
        assert!(0.03 <= measured.duration_s && measured.cpu_busy_share.is_some(), "{measured:?}");
        assert!(measure(3600.0, true).duration_s < 3600.0);
    }
}
