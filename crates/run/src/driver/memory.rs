//! Samples that were read once and stay in memory. Each accelerator, or group of them, has a memory of its own, as each process
//! of a real job has.

use feedrate_spec::plan::order::SampleId;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Samples that the workers of each group have read.
pub(super) struct SampleMemory {
    groups: Vec<RwLock<HashMap<SampleId, Arc<[u8]>>>>,
}

impl SampleMemory {
    /// With nothing in it.
    pub(super) fn new(groups: usize) -> Self {
        SampleMemory { groups: (0..groups).map(|_| RwLock::default()).collect() }
    }

    /// Payload of a sample that was read.
    pub(super) fn get(&self, group: usize, id: SampleId) -> Option<Arc<[u8]>> {
        let samples = self.groups[group].read().unwrap_or_else(PoisonError::into_inner);
        samples.get(&id).cloned()
    }

    /// Keep what was read.
    pub(super) fn keep(&self, group: usize, id: SampleId, bytes: &[u8]) {
        let bytes = Arc::from(bytes);
        let mut samples = self.groups[group].write().unwrap_or_else(PoisonError::into_inner);
        samples.insert(id, bytes);
    }
}
