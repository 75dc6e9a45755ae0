//! The destination of a sample's payload. A sink drops the payload, keeps it in memory, or compares it with the generated content.

use feedrate_data::content::Content;
use feedrate_data::format::{FormatError, PayloadSink};
use feedrate_spec::plan::order::SampleId;
use feedrate_spec::shape::Element;

/// The payload sink of one worker.
pub struct Sink {
    check: Option<(Content, Element)>,
    sample: u64,
    kept: Option<Vec<u8>>,
}

impl Sink {
    /// Creates a sink. If `check` is given, payload is compared with this content and element type.
    pub fn new(check: Option<(Content, Element)>) -> Self {
        Sink { check, sample: 0, kept: None }
    }

    /// Begins a sample. If `memory` is given, the payload is kept there.
    pub fn begin(&mut self, id: SampleId, memory: Option<Vec<u8>>) {
        self.sample = id.sample;
        self.kept = memory;
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
        if let Some((content, _)) = &mut self.check {
            content.select_file(id.file);
        }
    }

    /// Keeps the payload from now on: in the memory of [`Sink::begin`] if that was given, otherwise in `memory`.
    pub fn keep(&mut self, memory: Vec<u8>) {
        let kept = self.kept.get_or_insert(memory);
        kept.clear();
    }

    /// Returns the kept payload; empty if the payload is not kept.
    pub fn kept_payload(&self) -> &[u8] {
        self.kept.as_deref().unwrap_or_default()
    }

    /// Takes the memory with the kept payload.
    pub fn take_memory(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }
}

impl PayloadSink for Sink {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        if let Some(kept) = &mut self.kept {
            // Payload arrives in order. The memory is reused for later samples.
            kept.extend_from_slice(bytes);
        }
        let Some((content, element)) = &mut self.check else { return Ok(()) };
        content.matches(self.sample, offset, *element, bytes).map_err(|position| {
            FormatError::new(
                position,
                format!("payload of sample {} differs from what was generated", self.sample),
            )
        })
    }
}
