//! Finds tensors in one file after another: length, header, then the bytes of the sample. What the header said is kept
//! while samples of the same file follow.

use super::super::ahead::WantedSample;
use super::super::located::{Locator, Lookup};
use super::super::payload_range::PayloadRange;
use super::header::{self, HeaderTensor};
use super::{
    FileShape, FormatError, PREFIX_BYTES, check_sample, compare_shapes, cut_off, length_of,
};

/// The header of one file.
#[derive(Default)]
pub(super) struct Tensors {
    file_bytes: Option<u64>,
    header_bytes: Option<u64>,
    is_read: bool,
    /// Tensors of a file without a plan.
    tensors: Vec<HeaderTensor>,
    /// An entry of the header that the plan wants.
    line: String,
}

impl Tensors {
    fn read(
        &mut self,
        text: &[u8],
        file_bytes: u64,
        expected: Option<&FileShape>,
    ) -> Result<(), FormatError> {
        let data_bytes = file_bytes - PREFIX_BYTES - text.len() as u64;
        match expected {
            Some(expected) if header::matches(text, expected, &mut self.line) => {
                let planned = expected.payload_bytes();
                if data_bytes < planned {
                    return Err(cut_off(file_bytes, planned - data_bytes));
                }
                if data_bytes > planned {
                    let message = format!(
                        "{data_bytes} bytes follow the header, but the plan says {planned}"
                    );
                    return Err(FormatError::new(file_bytes, message));
                }
                Ok(())
            }
            _ => {
                header::read(text, data_bytes, &mut self.tensors)?;
                expected.map_or(Ok(()), |expected| Err(self.unlike(expected)))
            }
        }
    }

    /// The first difference between the plan and a file that was read without it.
    fn unlike(&self, expected: &FileShape) -> FormatError {
        let shapes = self.tensors.iter().map(|tensor| self.shape_of(tensor));
        let first = shapes.map(|shape| compare_shapes(&shape, Some(expected)));
        first.into_iter().find_map(Result::err).unwrap_or_else(|| {
            let message = format!(
                "the header names or orders its {} tensors otherwise, but the plan says as feedrate does",
                self.tensors.len()
            );
            FormatError::new(PREFIX_BYTES, message)
        })
    }

    fn shape_of(&self, tensor: &HeaderTensor) -> FileShape {
        let samples = self.tensors.len() as u64;
        FileShape { dims: tensor.dims, element: tensor.element, samples }
    }

    fn tensor(&self, sample: u64) -> Result<&HeaderTensor, FormatError> {
        let tensor = usize::try_from(sample).ok().and_then(|i| self.tensors.get(i));
        tensor.ok_or_else(|| {
            let count = self.tensors.len();
            let holds = format!("{count} tensors");
            FormatError::no_sample(PREFIX_BYTES, count as u64, holds, sample)
        })
    }
}

impl Locator for Tensors {
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        if self.file_bytes.is_none() {
            return Ok(Lookup::Length { part: 0 });
        }
        let Some(header_bytes) = self.header_bytes else {
            let range = PayloadRange::new(0, PREFIX_BYTES);
            return Ok(Lookup::Bytes { part: 0, range });
        };
        let data = PREFIX_BYTES + header_bytes;
        if !self.is_read {
            let range = PayloadRange::new(PREFIX_BYTES, header_bytes);
            return Ok(Lookup::Bytes { part: 0, range });
        }
        let (payload, shape) = match wanted.expected {
            Some(shape) => {
                check_sample(&shape, wanted.sample)?;
                let bytes = shape.sample_bytes();
                // The file is as long as the plan says, so this does not overflow.
                (PayloadRange::new(data + wanted.sample * bytes, bytes), shape)
            }
            None => {
                let tensor = self.tensor(wanted.sample)?;
                (PayloadRange::new(data + tensor.start, tensor.bytes), self.shape_of(tensor))
            }
        };
        Ok(Lookup::Found { payload, shape: Some(shape) })
    }

    fn learn(&mut self, wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        match (self.file_bytes, self.header_bytes) {
            (None, _) => self.file_bytes = Some(length_of(bytes)),
            (Some(file_bytes), None) => {
                self.header_bytes = Some(header::length(length_of(bytes), file_bytes)?);
            }
            (Some(file_bytes), Some(_)) => {
                self.read(bytes, file_bytes, wanted.expected.as_ref())?;
                self.is_read = true;
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        (self.file_bytes, self.header_bytes, self.is_read) = (None, None, false);
    }
}
