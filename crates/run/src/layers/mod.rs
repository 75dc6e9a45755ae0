//! Storages around a storage: of known cost, or with other processes behind them. Each works with any storage and any format.

mod recorded;
mod throttle;
mod delay;
mod slots;
mod once;
mod collective;
mod together;

pub use collective::{Collective, GroupStorages, share_read};
pub use delay::Delayed;
pub use recorded::Recorded;
pub use throttle::Throttled;
pub use together::Together;

use self::once::{Kept, Once};
use crate::clock::Clock;
use feedrate_data::storage::Storage;
use feedrate_spec::plan::StoragePlan;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// `storage` with the plan's layers around it. Their waits end early once `stop` is set.
pub fn layered(
    plan: &StoragePlan,
    storage: Arc<dyn Storage>,
    clock: Clock,
    stop: &Arc<AtomicBool>,
) -> Arc<dyn Storage> {
    let mut storage = storage;
    if plan.throttle_bytes_per_second.is_some() || plan.throttle_latency_s > 0.0 {
        storage = Arc::new(Throttled::new(
            storage,
            clock,
            plan.throttle_bytes_per_second,
            plan.throttle_latency_s,
            Arc::clone(stop),
        ));
    }
    if plan.delay_s > 0.0 {
        storage = Arc::new(Delayed::new(storage, clock, plan.delay_s, Arc::clone(stop)));
    }
    storage
}

/// `storage` for a group of `takers` accelerators of this process that all read the same: each read is made once.
pub fn read_once(storage: &Arc<dyn Storage>, takers: u32) -> Arc<dyn Storage> {
    Arc::new(Once::new(Arc::clone(storage), Kept::new(takers)))
}

/// Implements [`Storage`] for a layer by passing on all but `open` and `read_at`.
macro_rules! pass_on {
    () => {
        pass_on_but_reading!();
        fn len(&self, file: Handle) -> Result<u64, StorageError> {
            self.inner.len(file)
        }
        fn close(&self, file: Handle) {
            self.inner.close(file);
        }
    };
}
use pass_on;

/// Implements [`Storage`] for a layer by passing on all that needs no open file.
macro_rules! pass_on_but_reading {
    () => {
        fn member(&self) -> &'static feedrate_spec::catalog::Member {
            self.inner.member()
        }
        fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
            self.inner.stat(path)
        }
        fn make_dir(&self, path: &str) -> Result<(), StorageError> {
            self.inner.make_dir(path)
        }
        fn create(
            &self,
            path: &str,
        ) -> Result<Box<dyn feedrate_data::storage::WriteFile>, StorageError> {
            self.inner.create(path)
        }
        fn remove(&self, path: &str) -> Result<(), StorageError> {
            self.inner.remove(path)
        }
        fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
            self.inner.list(path)
        }
        fn sync_all(&self) -> Result<(), StorageError> {
            self.inner.sync_all()
        }
        fn evict(&self, path: &str) -> Result<(), StorageError> {
            self.inner.evict(path)
        }
        fn warm(&self, path: &str) -> Result<(), StorageError> {
            self.inner.warm(path)
        }
        fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
            self.inner.resident_bytes(path)
        }
    };
}
use pass_on_but_reading;
