//! `npy`: one numpy array per file, with the samples along the last axis, as `numpy.save` writes it.

use super::npy_stream::{self, ArrayStream};
use super::{
    Cursor, Format, FormatError, Need, PayloadSink, PieceSizes, npy_header, piece_len, truncated,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::FileShape;

static MEMBER: Member = Member {
    name: "npy",
    summary: "One numpy array per file; reading a sample reads the whole file.",
    abilities: &[Ability::EvenReads],
};

pub(super) static FORMAT: Format = Format {
    is_recognised: |head| head.starts_with(npy_header::MAGIC),
    ..Format::new(
        FormatEntry {
            library: Some(Library::NumpyNpy),
            ..FormatEntry::new(&MEMBER, |shape, _| npy_header::array_bytes(shape))
        },
        |shape, _, content, sink| {
            sink.write(0, &npy_header::write(shape))?;
            npy_stream::write_payload(shape, content, sink, &mut |_| {})?;
            Ok(())
        },
        |options| {
            Box::new(NpyCursor {
                sizes: options.piece_sizes(),
                array: ArrayStream::new(options.wants_payload),
                offset: 0,
                expected_bytes: None,
                requested: 0,
            })
        },
    )
};

struct NpyCursor {
    sizes: PieceSizes,
    array: ArrayStream,
    offset: u64,
    expected_bytes: Option<u64>,
    requested: usize,
}

impl NpyCursor {
    /// End of the array, from its header or else from the plan. `u64::MAX` if both are unknown.
    fn end(&self) -> u64 {
        let guess = self.expected_bytes.filter(|&end| end > self.offset).unwrap_or(u64::MAX);
        self.array.bytes().unwrap_or(guess)
    }
}

impl Cursor for NpyCursor {
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        self.array.begin(sample, expected);
        self.offset = 0;
        self.expected_bytes = expected.map(npy_header::array_bytes);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        if self.array.is_done() {
            return Ok(Need::Done);
        }
        let end = self.end();
        self.requested = piece_len(self.sizes, self.offset, end - self.offset);
        Ok(Need::Bytes { part: 0, offset: self.offset, len: self.requested, end })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.array.feed(bytes, sink)?;
        self.offset += bytes.len() as u64;
        if bytes.len() < self.requested {
            self.array.end_pickled();
        }
        if bytes.len() < self.requested && !self.array.is_done() {
            let missing = match self.end() {
                u64::MAX => self.array.missing_bytes(),
                end => end - self.offset,
            };
            return Err(truncated(self.offset, missing));
        }
        Ok(())
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.array.shape()
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.array.is_pickled().then_some(npy_header::PICKLED)
    }
}
