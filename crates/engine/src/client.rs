//! The emulated client's work, and the rates that its threads share. Work is the processor time that a worker's thread has to
//! spend on its reads. Actual reading and decoding count towards this time. The caller measures the thread's processor time.

use crate::job::ReadJob;
use feedrate_spec::plan::ClientPlan;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A rate that several threads share. They reserve time on it without a lock, in the order of their calls.
#[derive(Debug)]
pub struct SharedRate {
    ns_per_byte: f64,
    /// When all reserved time has passed.
    free_at_ns: AtomicU64,
}

impl SharedRate {
    /// Creates an unused rate.
    pub fn new(bytes_per_second: f64) -> Self {
        SharedRate { ns_per_byte: 1e9 / bytes_per_second, free_at_ns: AtomicU64::new(0) }
    }

    /// Reserves the time for `bytes` from `from_ns` on and returns when it has passed.
    pub fn reserve(&self, from_ns: u64, bytes: f64) -> u64 {
        self.reserve_time(from_ns, self.service_ns(bytes))
    }

    /// Reserves the time for `bytes` that passed beside work until `end_ns`, and returns when it has passed: at `end_ns` if it was free, or
    /// later.
    fn reserve_until(&self, end_ns: u64, bytes: f64) -> u64 {
        let service_ns = self.service_ns(bytes);
        self.reserve_time(end_ns.saturating_sub(service_ns), service_ns)
    }

    fn service_ns(&self, bytes: f64) -> u64 {
        (bytes * self.ns_per_byte).round() as u64
    }

    fn reserve_time(&self, from_ns: u64, service_ns: u64) -> u64 {
        let reserved = |free_at_ns: u64| free_at_ns.max(from_ns).saturating_add(service_ns);
        let previous = self
            .free_at_ns
            .fetch_update(Relaxed, Relaxed, |free_at_ns| Some(reserved(free_at_ns)))
            .unwrap_or_else(|unchanged| unchanged);
        reserved(previous)
    }
}

/// The rates of the client in a process: what its workers share, and the pinning of batches.
#[derive(Debug, Default)]
pub struct ClientRates {
    shared: Option<SharedRate>,
    /// One for each accelerator; empty without pinning.
    pins: Vec<SharedRate>,
}

impl ClientRates {
    /// Creates the rates of the accelerators of a process. The process gets their share of the rate that all workers of the run share.
    pub fn new(job: &ReadJob) -> Self {
        let Some(client) = &job.plan.loader.client else { return ClientRates::default() };
        let accelerators = job.accelerators();
        let share = f64::from(accelerators) / f64::from(job.plan.accelerators.max(1));
        let pins = client.pin_bytes_per_second.into_iter();
        ClientRates {
            shared: client.shared_bytes_per_second.map(|rate| SharedRate::new(rate * share)),
            pins: pins
                .flat_map(|rate| (0..accelerators).map(move |_| SharedRate::new(rate)))
                .collect(),
        }
    }

    /// Reserves the shared rate for `bytes` whose work ended at `end_ns`. Returns until when their worker waits for it; 0 if workers share
    /// none.
    pub fn shared_until_ns(&self, end_ns: u64, bytes: f64) -> u64 {
        // Reserving nothing would still take all time before `end_ns`.
        let rate = self.shared.as_ref().filter(|_| bytes > 0.0);
        rate.map_or(0, |rate| rate.reserve_until(end_ns, bytes))
    }

    /// Returns when a task that was finished at `now_ns` is pinned; 0 without pinning.
    pub fn pinned_ns(&self, accelerator: u32, now_ns: u64, bytes: u64) -> u64 {
        self.pins.get(accelerator as usize).map_or(0, |rate| rate.reserve(now_ns, bytes as f64))
    }
}

/// Processor time up to which a worker's thread has to work, and the bytes of a task for which it has yet to reserve the shared rate. The rate is
/// reserved as the work proceeds: a part of a sample's bytes after the sample, the rest after the batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWork {
    target_ns: f64,
    /// Bytes read since the last sample.
    sample_bytes: u64,
    /// Bytes to reserve after the batch.
    batch_bytes: f64,
}

impl ClientWork {
    /// Begins a task. `cpu_ns` is the processor time of the thread so far.
    pub fn begin(&mut self, cpu_ns: u64) {
        *self = ClientWork { target_ns: cpu_ns as f64, ..ClientWork::default() };
    }

    /// Adds bytes that were read.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.sample_bytes += bytes;
    }

    /// Ends a sample, of batches of `batch_size`. Returns the bytes to reserve.
    pub fn end_sample(&mut self, client: &ClientPlan, batch_size: u64) -> f64 {
        let bytes = std::mem::take(&mut self.sample_bytes) as f64;
        let sample_bytes = bytes * client.sample_share(batch_size, bytes);
        self.batch_bytes += bytes - sample_bytes;
        sample_bytes
    }

    /// Ends a task. Returns the bytes to reserve.
    pub fn end_task(&mut self) -> f64 {
        std::mem::take(&mut self.batch_bytes)
    }

    /// Excludes processor time that the thread spent on work that is not the client's.
    pub fn exclude(&mut self, ns: u64) {
        self.target_ns += ns as f64;
    }

    /// Adds work and returns the processor time up to which the thread has to run.
    pub fn add_work(&mut self, seconds: f64) -> u64 {
        self.target_ns += seconds * 1e9;
        self.target_ns.round() as u64
    }
}
