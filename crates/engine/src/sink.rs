//! Takes payload: drops it, keeps it in memory, or compares it with what generation wrote.

use feedrate_data::content::Content;
use feedrate_data::format::{FormatError, PayloadSink};
use feedrate_spec::plan::order::SampleId;
use feedrate_spec::shape::Element;

/// Where the payload of one worker goes.
pub struct Sink {
    check: Option<(Content, Element)>,
    sample: u64,
    kept: Option<Vec<u8>>,
}

impl Sink {
    /// `check`: the content and element type to compare with.
    pub fn new(check: Option<(Content, Element)>) -> Self {
        Sink { check, sample: 0, kept: None }
    }

    /// The next payload is of this sample; it is kept in `memory` where some is given.
    pub fn begin(&mut self, id: SampleId, memory: Option<Vec<u8>>) {
        self.sample = id.sample;
        self.kept = memory;
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
        if let Some((content, _)) = &mut self.check {
            content.start(id.file);
        }
    }

    /// Keep the payload in `memory`, where it is not kept yet.
    pub fn keep(&mut self, memory: Vec<u8>) {
        let kept = self.kept.get_or_insert(memory);
        kept.clear();
    }

    /// The payload, where it is kept.
    pub fn kept(&self) -> &[u8] {
        self.kept.as_deref().unwrap_or_default()
    }

    /// The memory that was given, filled.
    pub fn take_kept(&mut self) -> Option<Vec<u8>> {
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
