//! Emulates a storage of known cost: delays of opens and reads, a limit of concurrent reads, and a throughput limit of all readers
//! together, served in the order of arrival.

use crate::clock::Clock;
use crate::gate::Gate;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use feedrate_engine::client::SharedRate;
use feedrate_spec::plan::StoragePlan;
use feedrate_spec::transfers::TransferCounts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A storage with emulated costs: a delay, then a single server with a known rate, then a latency that does not occupy the server.
pub(super) struct EmulatedStorage {
    inner: Arc<dyn ReadStorage>,
    clock: Clock,
    open_delay_ns: u64,
    read_delay_ns: u64,
    /// Limits concurrent reads, if the plan does.
    concurrency: Option<Gate>,
    rate: SharedRate,
    latency_ns: u64,
    stop: Arc<AtomicBool>,
}

impl EmulatedStorage {
    /// Wraps `inner` with the costs of `plan`. Waits end early once `stop` is set.
    pub(super) fn new(
        inner: Arc<dyn ReadStorage>,
        plan: &StoragePlan,
        clock: Clock,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        EmulatedStorage {
            inner,
            clock,
            open_delay_ns: ((plan.delay_s + plan.open_delay_s) * 1e9) as u64,
            read_delay_ns: ((plan.delay_s + plan.read_delay_s) * 1e9) as u64,
            concurrency: plan.throttle_concurrency.map(Gate::new),
            rate: SharedRate::new(plan.throttle_bytes_per_second.unwrap_or(f64::INFINITY)),
            latency_ns: (plan.throttle_latency_s * 1e9) as u64,
            stop: Arc::clone(stop),
        }
    }

    fn delay(&self, delay_ns: u64) {
        if delay_ns > 0 {
            self.clock.sleep_until(self.clock.now_ns() + delay_ns, &self.stop);
        }
    }

    /// Executes a read at its emulated cost. `read_bytes` returns the bytes of a result.
    fn serve<T>(
        &self,
        read: impl FnOnce() -> Result<T, StorageError>,
        read_bytes: impl FnOnce(&T) -> usize,
    ) -> Result<T, StorageError> {
        // The gate needs no check of `stop`: after a stop, the waits of admitted readers end early and release their permits.
        let _permit = self.concurrency.as_ref().map(Gate::enter);
        self.delay(self.read_delay_ns);
        let arrived_ns = self.clock.now_ns();
        let result = read()?;
        self.clock.sleep_until(self.served_at_ns(arrived_ns, read_bytes(&result)), &self.stop);
        Ok(result)
    }

    /// Returns the time at which a read of `bytes` that arrived at `now_ns` is finished.
    fn served_at_ns(&self, now_ns: u64, bytes: usize) -> u64 {
        self.rate.reserve(now_ns, bytes as f64).saturating_add(self.latency_ns)
    }
}

impl ReadStorage for EmulatedStorage {
    fn look_up(&self, path: &str, name: &mut String) -> Result<bool, StorageError> {
        self.inner.look_up(path, name)
    }

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        self.delay(self.open_delay_ns);
        self.inner.open(path)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        self.inner.len(file)
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        self.serve(|| self.inner.read_piece(file, offset, buffer, end), |bytes| *bytes)
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        self.serve(|| self.inner.read_over(file, offset, len, buffer), |bytes| *bytes as usize)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }

    fn transfers(&self) -> Option<TransferCounts> {
        self.inner.transfers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage::{self, Storage};
    use std::path::Path;
    use std::sync::atomic::Ordering::Relaxed;

    fn null() -> Arc<dyn Storage> {
        Arc::from(storage::open("null", Path::new("/")).unwrap())
    }

    fn plan(bytes_per_second: Option<f64>, latency_s: f64, delay_s: f64) -> StoragePlan {
        let plan = feedrate_measure::example::plan(1, 1).storage;
        StoragePlan {
            throttle_bytes_per_second: bytes_per_second,
            throttle_latency_s: latency_s,
            delay_s,
            ..plan
        }
    }

    #[test]
    fn readers_are_served_one_after_another_and_latencies_overlap() {
        let plan = plan(Some(1e6), 0.5, 0.0);
        let emulated = EmulatedStorage::new(null(), &plan, Clock::new(), &Arc::default());
        assert_eq!(emulated.served_at_ns(1_000, 3_000), 1_000 + 3_000_000 + 500_000_000);
        assert_eq!(emulated.served_at_ns(2_000, 1_000), 1_000 + 4_000_000 + 500_000_000);
        let idle_ns = 1_000_000_000;
        assert_eq!(emulated.served_at_ns(idle_ns, 0), idle_ns + 500_000_000);
    }

    #[test]
    fn opens_and_reads_are_delayed_and_concurrency_is_limited() {
        let clock = Clock::new();
        let stop = Arc::new(AtomicBool::new(false));
        let plan = StoragePlan {
            open_delay_s: 0.001,
            read_delay_s: 0.002,
            throttle_concurrency: Some(2),
            ..plan(None, 0.0, 0.004)
        };
        let emulated = EmulatedStorage::new(null(), &plan, clock, &stop);
        assert_eq!((emulated.open_delay_ns, emulated.read_delay_ns), (5_000_000, 6_000_000));
        let storage = crate::layers::emulate(&plan, null(), clock, &stop);
        let file = storage.open("a").unwrap();
        let start_ns = clock.now_ns();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| storage.read_at(&file, 0, &mut [0; 8]).unwrap());
            }
        });
        assert!(clock.now_ns() - start_ns >= 3 * 6_000_000, "two at a time");
    }

    #[test]
    fn opens_and_reads_are_delayed_until_the_stop() {
        let clock = Clock::new();
        let stop = Arc::new(AtomicBool::new(false));
        let storage = crate::layers::emulate(&plan(None, 0.0, 0.002), null(), clock, &stop);
        let file = storage.open("a").unwrap();
        storage.read_at(&file, 0, &mut [0; 8]).unwrap();
        assert!(clock.now_ns() >= 4_000_000);
        let storage = crate::layers::emulate(&plan(Some(1.0), 0.0, 1000.0), null(), clock, &stop);
        stop.store(true, Relaxed);
        storage.read_at(&file, 0, &mut [0; 8]).unwrap();
    }
}
