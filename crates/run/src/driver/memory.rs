//! Keeps samples in memory after their first read. Each accelerator, or group of accelerators, has a separate memory, like
//! each process of a real job.

use feedrate_spec::plan::order::SampleId;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The samples read by the workers of each group.
pub(super) struct SampleMemory {
    groups: Vec<RwLock<HashMap<SampleId, Arc<[u8]>>>>,
}

impl SampleMemory {
    /// Creates an empty memory for each group.
    pub(super) fn new(groups: usize) -> Self {
        SampleMemory { groups: (0..groups).map(|_| RwLock::default()).collect() }
    }

    /// Returns the payload of a sample, if it was read before.
    pub(super) fn get(&self, group: usize, id: SampleId) -> Option<Arc<[u8]>> {
        let samples = self.groups[group].read().unwrap_or_else(PoisonError::into_inner);
        samples.get(&id).cloned()
    }

    /// Stores the payload of a sample.
    pub(super) fn keep(&self, group: usize, id: SampleId, bytes: &[u8]) {
        let bytes = Arc::from(bytes);
        let mut samples = self.groups[group].write().unwrap_or_else(PoisonError::into_inner);
        samples.insert(id, bytes);
    }
}
