//! A storage of known cost: each open and read takes so much longer, all readers at once, and all of them together are served at
//! most so many bytes per second, first come first served.

use crate::clock::Clock;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use feedrate_spec::plan::StoragePlan;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A delay, then one server of a known rate, and a latency behind it that does not occupy it.
pub(super) struct Emulated {
    inner: Arc<dyn ReadStorage>,
    clock: Clock,
    delay_ns: u64,
    ns_per_byte: f64,
    latency_ns: u64,
    free_at_ns: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Emulated {
    /// As `plan` says, until `stop` is set.
    pub(super) fn new(
        inner: Arc<dyn ReadStorage>,
        plan: &StoragePlan,
        clock: Clock,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        Emulated {
            inner,
            clock,
            delay_ns: (plan.delay_s * 1e9) as u64,
            ns_per_byte: plan.throttle_bytes_per_second.map_or(0.0, |rate| 1e9 / rate),
            latency_ns: (plan.throttle_latency_s * 1e9) as u64,
            free_at_ns: AtomicU64::new(0),
            stop: Arc::clone(stop),
        }
    }

    fn delay(&self) {
        if self.delay_ns > 0 {
            self.clock.sleep_until(self.clock.now_ns() + self.delay_ns, &self.stop);
        }
    }

    /// The time at which a read of `bytes` that arrived at `now_ns` is served.
    fn served_at(&self, now_ns: u64, bytes: usize) -> u64 {
        let service_ns = (bytes as f64 * self.ns_per_byte) as u64;
        let before = self
            .free_at_ns
            .fetch_update(Relaxed, Relaxed, |free_at| Some(free_at.max(now_ns) + service_ns));
        before.unwrap_or_else(|unchanged| unchanged).max(now_ns) + service_ns + self.latency_ns
    }
}

impl ReadStorage for Emulated {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        self.delay();
        self.inner.open(path)
    }

    fn len(&self, file: Handle) -> Result<u64, StorageError> {
        self.inner.len(file)
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        self.delay();
        let arrived_ns = self.clock.now_ns();
        let bytes = self.inner.read_at(file, offset, buffer)?;
        self.clock.sleep_until(self.served_at(arrived_ns, bytes), &self.stop);
        Ok(bytes)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }
}
