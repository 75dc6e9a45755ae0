//! Where payload goes: nowhere, into memory, or against what generation wrote.

use feedrate_data::content::Content;
use feedrate_data::format::{FormatError, PayloadSink};
use feedrate_spec::plan::order::SampleId;
use feedrate_spec::shape::Element;

/// One worker's sink.
pub(super) struct Sink {
    check: Option<(Content, Element)>,
    sample: u64,
    kept: Option<Vec<u8>>,
}

impl Sink {
    /// `check`: the content and element type to compare with.
    pub(super) fn new(check: Option<(Content, Element)>) -> Self {
        Sink { check, sample: 0, kept: None }
    }

    /// The next payload is of this sample; it is kept in `memory` where some is given.
    pub(super) fn begin(&mut self, id: SampleId, memory: Option<Vec<u8>>) {
        self.sample = id.sample;
        self.kept = memory;
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
        if let Some((content, _)) = &mut self.check {
            content.start(id.file);
        }
    }

    /// The memory given at `begin`, filled.
    pub(super) fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }
}

impl PayloadSink for Sink {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        if let Some(kept) = &mut self.kept {
            // Payload comes in order. Memory is claimed once: a slot is used again and again.
            kept.extend_from_slice(bytes);
        }
        let Some((content, element)) = &mut self.check else { return Ok(()) };
        content.matches(self.sample, offset, *element, bytes).map_err(|at| {
            FormatError::new(
                at,
                format!("payload of sample {} differs from what was generated", self.sample),
            )
        })
    }
}
