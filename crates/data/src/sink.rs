//! Destinations of encoders: [`WriteSink`] writes files to a storage, [`CompareSink`] compares with existing files.

use crate::content::first_difference;
use crate::format::{FileSink, Part, SinkError};
use crate::piece::{PIECE_BYTES, Piece};
use crate::storage::{Handle, Storage, StorageError, WriteFile};
use crate::walk::Watch;
use std::io::ErrorKind;

/// Writes one file after another to a storage, in pieces of [`PIECE_BYTES`].
pub(crate) struct WriteSink<'w> {
    storage: &'w dyn Storage,
    watch: &'w Watch<'w>,
    path: String,
    parts: Vec<PartWriter>,
}

struct PartWriter {
    part: Part,
    file: Option<Box<dyn WriteFile>>,
    piece: Piece,
    filled: usize,
    written: u64,
}

impl<'w> WriteSink<'w> {
    /// A sink for files with these parts.
    pub(crate) fn new(storage: &'w dyn Storage, watch: &'w Watch<'w>, parts: &[Part]) -> Self {
        let parts = parts.iter().map(|&part| {
            let piece = Piece::new(PIECE_BYTES);
            PartWriter { part, file: None, piece, filled: 0, written: 0 }
        });
        WriteSink { storage, watch, path: String::new(), parts: parts.collect() }
    }

    /// Writes the file that `encode` produces. The file becomes visible when it is complete, the data part last.
    pub(crate) fn write_file(
        &mut self,
        path: &str,
        encode: impl FnOnce(&mut Self) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let written = self.begin(path).and_then(|()| encode(self)).and_then(|()| self.commit());
        if written.is_err() {
            self.parts.iter_mut().for_each(|part| part.file = None);
        }
        written
    }

    fn begin(&mut self, path: &str) -> Result<(), SinkError> {
        for part in &mut self.parts {
            part.part.write_path(path, &mut self.path);
            part.file = Some(self.storage.create(&self.path)?);
            part.filled = 0;
            part.written = 0;
        }
        path.clone_into(&mut self.path);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SinkError> {
        for part in 0..self.parts.len() {
            self.flush(part)?;
        }
        for part in self.parts.iter_mut().rev() {
            if let Some(file) = part.file.take() {
                file.commit()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, part: usize) -> Result<(), SinkError> {
        if self.watch.should_stop() {
            return Err(StorageError::new("write", &self.path, ErrorKind::Interrupted));
        }
        let PartWriter { file: Some(file), piece, filled, written, .. } = &mut self.parts[part]
        else {
            return Ok(());
        };
        file.write(&piece[..*filled])?;
        *written += *filled as u64;
        self.watch.add_bytes(std::mem::take(filled) as u64);
        Ok(())
    }
}

impl FileSink for WriteSink<'_> {
    fn space(&mut self, part: usize) -> &mut [u8] {
        let PartWriter { piece, filled, .. } = &mut self.parts[part];
        &mut piece[*filled..]
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.parts[part].filled += len;
        if self.parts[part].filled < PIECE_BYTES { Ok(()) } else { self.flush(part) }
    }

    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        if let PartWriter { file: Some(file), filled, written, .. } = &mut self.parts[part] {
            let start = *written + *filled as u64;
            file.hold(start..start + len as u64);
        }
        self.write(part, &vec![0; len])
    }

    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let PartWriter { file: Some(file), piece, written, .. } = &mut self.parts[part] else {
            return Ok(());
        };
        // The patch may overlap both bytes that were written and bytes that are still in the piece.
        let split = (written.saturating_sub(offset) as usize).min(bytes.len());
        let (in_file, in_piece) = bytes.split_at(split);
        if !in_file.is_empty() {
            file.patch(offset, in_file)?;
        }
        if !in_piece.is_empty() {
            let start = (offset + in_file.len() as u64 - *written) as usize;
            piece[start..start + in_piece.len()].copy_from_slice(in_piece);
        }
        file.release(offset..offset + bytes.len() as u64);
        Ok(())
    }
}

/// Which bytes of a file are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every byte.
    Whole,
    /// The length, and [`ENDS_BYTES`] at the start and at the end.
    Ends,
}

/// Number of bytes compared at each end of a file. A file that a crash damaged usually differs there.
const ENDS_BYTES: u64 = 64 << 10;

/// The first place where a file differs from its expected bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstDifference {
    /// Index into the format's parts.
    pub(crate) part: usize,
    /// Offset in the part; `None` if the difference concerns the whole part.
    pub(crate) offset: Option<u64>,
    /// The difference, a lowercase fragment.
    pub(crate) description: String,
    /// Whether the only difference is that the part is missing.
    pub(crate) is_missing: bool,
}

impl FirstDifference {
    /// A difference that concerns the whole part.
    fn in_whole_part(part: usize, description: String) -> Self {
        FirstDifference { part, offset: None, description, is_missing: false }
    }
}

/// Compares the output of an encoder with the files on a storage.
pub(crate) struct CompareSink<'w> {
    storage: &'w dyn Storage,
    watch: &'w Watch<'w>,
    extent: Extent,
    path: String,
    parts: Vec<PartReader>,
    found: Option<FirstDifference>,
}

struct PartReader {
    part: Part,
    file: Option<Handle>,
    len: u64,
    offset: u64,
    /// Bytes that the encoder produced.
    expected: Piece,
    /// Bytes that were read from the storage.
    read: Piece,
}

impl<'w> CompareSink<'w> {
    /// A sink for files with these parts.
    pub(crate) fn new(
        storage: &'w dyn Storage,
        watch: &'w Watch<'w>,
        parts: &[Part],
        extent: Extent,
    ) -> Self {
        let parts = parts.iter().map(|&part| PartReader {
            part,
            file: None,
            len: 0,
            offset: 0,
            expected: Piece::new(PIECE_BYTES),
            read: Piece::new(PIECE_BYTES),
        });
        CompareSink {
            storage,
            watch,
            extent,
            path: String::new(),
            parts: parts.collect(),
            found: None,
        }
    }

    /// Compares a file with the output of `encode` and returns the first difference, if any.
    pub(crate) fn compare(
        &mut self,
        path: &str,
        encode: impl FnOnce(&mut Self) -> Result<(), SinkError>,
    ) -> Result<Option<FirstDifference>, SinkError> {
        path.clone_into(&mut self.path);
        self.found = None;
        let mut missing = Vec::new();
        for part in 0..self.parts.len() {
            let Err(error) = self.open(part) else { continue };
            if error.source.kind() == ErrorKind::NotFound {
                missing.push(part);
            } else {
                let difference = FirstDifference::in_whole_part(part, error.to_string());
                self.found.get_or_insert(difference);
            }
        }
        // The existing parts are compared even if others are missing.
        let is_comparable = missing.len() < self.parts.len() && self.found.is_none();
        let encoded = if is_comparable { encode(self) } else { Ok(()) };
        let missing_part = missing.first().map(|&part| FirstDifference {
            is_missing: true,
            ..FirstDifference::in_whole_part(part, "is missing".to_string())
        });
        let difference = self.finish().or(missing_part);
        encoded.map(|()| difference)
    }

    /// Length of all parts of the last compared file.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Closes all parts and returns the first difference, if any.
    fn finish(&mut self) -> Option<FirstDifference> {
        for (i, part) in self.parts.iter_mut().enumerate() {
            if part.offset < part.len {
                let description = format!("{} bytes more than expected", part.len - part.offset);
                let difference = FirstDifference::in_whole_part(i, description);
                self.found
                    .get_or_insert(FirstDifference { offset: Some(part.offset), ..difference });
            }
            if let Some(file) = part.file.take() {
                self.storage.close(file);
            }
        }
        self.found.take()
    }

    fn open(&mut self, part: usize) -> Result<(), StorageError> {
        let part = &mut self.parts[part];
        let mut path = String::new();
        part.part.write_path(&self.path, &mut path);
        part.offset = 0;
        part.len = 0;
        let file = part.file.insert(self.storage.open(&path)?);
        part.len = self.storage.len(file)?;
        Ok(())
    }

    /// Compares `len` expected bytes, from `start` of the piece on, with those at `offset` of the file.
    fn compare_piece(
        &mut self,
        part: usize,
        offset: u64,
        start: usize,
        len: usize,
    ) -> Option<FirstDifference> {
        let PartReader { file, expected, read, .. } = &mut self.parts[part];
        let expected = &expected[start..start + len];
        let read = &mut read[start..start + len];
        let (offset, description) = match self.storage.read_at(file.as_ref()?, offset, read) {
            Err(error) => (None, error.to_string()),
            Ok(read_bytes) => {
                match first_difference(&expected[..read_bytes], &read[..read_bytes]) {
                    Some(i) => {
                        (Some(offset + i as u64), "differs from the generated data".to_string())
                    }
                    None if read_bytes < len => {
                        (Some(offset + read_bytes as u64), "the file ends too early".to_string())
                    }
                    None => return None,
                }
            }
        };
        Some(FirstDifference { offset, ..FirstDifference::in_whole_part(part, description) })
    }
}

impl FileSink for CompareSink<'_> {
    fn space(&mut self, part: usize) -> &mut [u8] {
        let PartReader { expected, offset, .. } = &mut self.parts[part];
        &mut expected[offset_in_piece(*offset)..]
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        if self.watch.should_stop() {
            return Err(StorageError::new("verify", &self.path, ErrorKind::Interrupted));
        }
        let offset = self.parts[part].offset;
        if self.found.is_none() {
            self.found = self.compare_piece(part, offset, offset_in_piece(offset), len);
        }
        self.parts[part].offset += len as u64;
        if self.extent == Extent::Whole {
            self.watch.add_bytes(len as u64);
        }
        Ok(())
    }

    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.parts[part].offset += len as u64;
        Ok(())
    }

    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let offset = offset + (i * PIECE_BYTES) as u64;
            self.parts[part].expected[..piece.len()].copy_from_slice(piece);
            let difference = self.compare_piece(part, offset, 0, piece.len());
            // The patch is compared after bytes that follow it in the file, so its difference comes first.
            self.found = difference.or(self.found.take());
            if self.extent == Extent::Whole {
                self.watch.add_bytes(piece.len() as u64);
            }
        }
        Ok(())
    }

    /// Skips everything after the first difference, and the middle of the file if only its ends are compared.
    fn skip(&mut self, part: usize, len: u64) -> bool {
        let PartReader { offset, len: file_bytes, .. } = self.parts[part];
        let is_middle = offset >= ENDS_BYTES
            && offset.saturating_add(len).saturating_add(ENDS_BYTES) <= file_bytes;
        let is_skipped = self.found.is_some() || (self.extent == Extent::Ends && is_middle);
        if is_skipped {
            self.parts[part].offset += len;
        }
        is_skipped
    }
}

fn offset_in_piece(offset: u64) -> usize {
    (offset % PIECE_BYTES as u64) as usize
}
