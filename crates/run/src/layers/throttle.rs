//! A storage that serves at most so many bytes per second, all readers together, first come first served.

use super::{pass_on, pass_on_but_reading};
use crate::clock::Clock;
use feedrate_data::storage::{Handle, Storage, StorageError};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// One server of a known rate, and a latency behind it that does not occupy it.
pub struct Throttled {
    inner: Arc<dyn Storage>,
    clock: Clock,
    ns_per_byte: f64,
    latency_ns: u64,
    free_at_ns: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Throttled {
    /// `bytes_per_second` over all readers (`None`: no limit), `latency_s` for each read, until `stop` is set.
    pub fn new(
        inner: Arc<dyn Storage>,
        clock: Clock,
        bytes_per_second: Option<f64>,
        latency_s: f64,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Throttled {
            inner,
            clock,
            ns_per_byte: bytes_per_second.map_or(0.0, |rate| 1e9 / rate),
            latency_ns: (latency_s * 1e9) as u64,
            free_at_ns: AtomicU64::new(0),
            stop,
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

impl Storage for Throttled {
    pass_on!();

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        self.inner.open(path)
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        let arrived_ns = self.clock.now_ns();
        let bytes = self.inner.read_at(file, offset, buffer)?;
        self.clock.sleep_until(self.served_at(arrived_ns, bytes), &self.stop);
        Ok(bytes)
    }
}
