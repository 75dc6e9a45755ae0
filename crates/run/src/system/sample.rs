//! The machine during an epoch: device bytes, CPU time, page cache, clock.

use super::facts::meminfo;
use super::proc::{Proc, Totals};
use crate::clock::Clock;
use feedrate_data::storage::{Storage, StorageError};
use feedrate_measure::record::HostEpoch;
use feedrate_spec::plan::layout::Layout;

/// Files looked at for residency, at most; a larger dataset is sampled evenly.
const RESIDENCY_FILES_MAX: u64 = 2048;
/// A clock may wander so far in an epoch without having been stepped.
const CLOCK_STEP_MIN_NS: u64 = 1_000_000;

/// Counters at the start of an epoch.
pub struct Sampler {
    proc: Proc,
    at_start: Totals,
    meminfo: Vec<(String, String)>,
    clock: Clock,
    clock_step_ns: i64,
}

/// Dataset bytes in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residency {
    /// Scaled up from the files looked at; `None` where it cannot be known.
    pub bytes: Option<u64>,
    /// Share of the files looked at.
    pub sampled_share: f64,
}

impl Sampler {
    /// Start counting. `device` is the `major:minor` under the dataset.
    pub fn start(device: Option<&str>, clock: Clock) -> Self {
        let mut proc = Proc::open(device);
        Sampler {
            at_start: proc.totals(),
            proc,
            meminfo: meminfo(),
            clock,
            clock_step_ns: clock.wall_step_ns(),
        }
    }

    /// The epoch so far; residency is left to the caller.
    pub fn finish(mut self) -> HostEpoch {
        let added = self.proc.totals().since(self.at_start);
        let step_ns = self.clock.wall_step_ns() - self.clock_step_ns;
        let is_stepped = step_ns.unsigned_abs() >= CLOCK_STEP_MIN_NS;
        HostEpoch {
            process_device_read_bytes: added.counts.process_device_read_bytes,
            device_read_bytes: added.counts.device_read_bytes,
            device_write_bytes: added.counts.device_written_bytes,
            process_cpu_ns: added.counts.process_cpu_ns,
            cpu_busy_share: added.cpu_busy_share(),
            clock_step_ns: Some(if is_stepped { step_ns } else { 0 }),
            meminfo: self.meminfo,
            ..HostEpoch::default()
        }
    }
}

/// How much of the training files is in the page cache.
///
/// # Errors
/// A file could not be looked at.
pub fn residency(storage: &dyn Storage, layout: &Layout) -> Result<Residency, StorageError> {
    sampled(layout, |path| storage.resident_bytes(path))
}

/// How long the training files are, counted as [`residency`] counts.
///
/// # Errors
/// A file could not be looked at.
pub fn file_bytes(storage: &dyn Storage, layout: &Layout) -> Result<Option<u64>, StorageError> {
    sampled(layout, |path| storage.stat(path)).map(|sampled| sampled.bytes)
}

fn sampled(
    layout: &Layout,
    bytes_of: impl Fn(&str) -> Result<Option<u64>, StorageError>,
) -> Result<Residency, StorageError> {
    let files = layout.files_train();
    let looked = files.min(RESIDENCY_FILES_MAX);
    if looked == 0 {
        return Ok(Residency::default());
    }
    let mut path = String::new();
    let mut bytes: u64 = 0;
    for i in 0..looked {
        layout
            .write_path((u128::from(i) * u128::from(files) / u128::from(looked)) as u64, &mut path);
        match bytes_of(&path)? {
            Some(of_file) => bytes += of_file,
            None => return Ok(Residency::default()),
        }
    }
    let sampled_share = looked as f64 / files as f64;
    Ok(Residency { bytes: Some((bytes as f64 / sampled_share) as u64), sampled_share })
}
