//! A storage whose every open and read takes a fixed time longer, all readers at once.

use super::{pass_on, pass_on_but_reading};
use crate::clock::Clock;
use feedrate_data::storage::{Handle, Storage, StorageError};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Adds a delay to each open and read.
pub struct Delayed {
    inner: Arc<dyn Storage>,
    clock: Clock,
    delay_ns: u64,
    stop: Arc<AtomicBool>,
}

impl Delayed {
    /// `delay_s` for each operation, until `stop` is set.
    pub fn new(inner: Arc<dyn Storage>, clock: Clock, delay_s: f64, stop: Arc<AtomicBool>) -> Self {
        Delayed { inner, clock, delay_ns: (delay_s * 1e9) as u64, stop }
    }

    fn wait(&self) {
        self.clock.sleep_until(self.clock.now_ns() + self.delay_ns, &self.stop);
    }
}

impl Storage for Delayed {
    pass_on!();

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        self.wait();
        self.inner.open(path)
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        self.wait();
        self.inner.read_at(file, offset, buffer)
    }
}
