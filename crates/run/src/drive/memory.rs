//! Samples that were read once and stay in memory, for all accelerators of the process.

use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::order::SampleId;
use std::sync::OnceLock;

/// A place for each training sample.
pub(super) struct SampleMemory {
    samples_per_file: u64,
    samples: Vec<OnceLock<Box<[u8]>>>,
}

impl SampleMemory {
    /// With nothing in it.
    pub(super) fn new(dataset: &DatasetPlan) -> Self {
        let samples = dataset.files_train * dataset.samples_per_file;
        SampleMemory {
            samples_per_file: dataset.samples_per_file,
            samples: (0..samples).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Payload of a sample that was read.
    pub(super) fn get(&self, id: SampleId) -> Option<&[u8]> {
        self.place(id)?.get().map(|bytes| &bytes[..])
    }

    /// Keep what was read. Where another worker was quicker, its bytes stay.
    pub(super) fn keep(&self, id: SampleId, bytes: &[u8]) {
        if let Some(place) = self.place(id) {
            place.get_or_init(|| bytes.into());
        }
    }

    fn place(&self, id: SampleId) -> Option<&OnceLock<Box<[u8]>>> {
        self.samples.get((id.file * self.samples_per_file + id.sample) as usize)
    }
}
