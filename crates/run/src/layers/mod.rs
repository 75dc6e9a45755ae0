//! Layers: storages that wrap another storage. They record operations, emulate costs, or share reads between accelerators and processes.
//! Each layer works with any storage and any format.

mod recorded;
mod emulated;
mod once;
mod collective;
mod shared_files;

pub use collective::{Collective, GroupStorages, served_accelerators};
pub use recorded::RecordedStorage;
pub use shared_files::SharedFileStorage;

use self::emulated::EmulatedStorage;
use self::once::{KeptReads, ReadOnceStorage};
use crate::clock::Clock;
use feedrate_data::storage::ReadStorage;
use feedrate_spec::plan::StoragePlan;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Wraps `storage` with the limits and delays that the plan emulates, if any. Emulated waits end early once `stop` is set.
pub fn emulate(
    plan: &StoragePlan,
    storage: Arc<dyn ReadStorage>,
    clock: Clock,
    stop: &Arc<AtomicBool>,
) -> Arc<dyn ReadStorage> {
    let is_limited =
        plan.throttle_bytes_per_second.is_some() || plan.throttle_concurrency.is_some();
    let waits_s = [plan.throttle_latency_s, plan.delay_s, plan.open_delay_s, plan.read_delay_s];
    if is_limited || waits_s.iter().any(|&wait_s| wait_s > 0.0) {
        Arc::new(EmulatedStorage::new(storage, plan, clock, stop))
    } else {
        storage
    }
}

/// Wraps `storage` for a group of `group_size` accelerators of this process that read the same data: each read is done once.
pub fn read_once(storage: &Arc<dyn ReadStorage>, group_size: u32) -> Arc<dyn ReadStorage> {
    Arc::new(ReadOnceStorage::new(Arc::clone(storage), KeptReads::new(group_size)))
}
