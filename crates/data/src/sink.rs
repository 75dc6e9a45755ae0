//! Where encoders write to: a storage, or a comparison with what already lies there.

use crate::content::first_difference;
use crate::format::{FileSink, Part, SinkError};
use crate::piece::{PIECE_BYTES, Piece};
use crate::storage::{Handle, Storage, StorageError, WriteFile};
use crate::walk::Watch;
use std::io::ErrorKind;

/// Writes the parts of one file after another, in pieces that begin at multiples of their length.
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
    /// For files of these parts.
    pub(crate) fn new(storage: &'w dyn Storage, watch: &'w Watch<'w>, parts: &[Part]) -> Self {
        let parts = parts.iter().map(|&part| {
            let piece = Piece::new(PIECE_BYTES);
            PartWriter { part, file: None, piece, filled: 0, written: 0 }
        });
        WriteSink { storage, watch, path: String::new(), parts: parts.collect() }
    }

    /// Write the file that `encode` makes. It becomes visible once it is whole, the data last.
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
            (part.filled, part.written) = (0, 0);
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
        if self.watch.is_over() {
            return Err(StorageError::new("write", &self.path, ErrorKind::Interrupted));
        }
        let PartWriter { file: Some(file), piece, filled, written, .. } = &mut self.parts[part]
        else {
            return Ok(());
        };
        file.write(&piece[..*filled])?;
        *written += *filled as u64;
        self.watch.bytes_done(std::mem::take(filled) as u64);
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
        self.write(part, &vec![0; len])
    }

    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let PartWriter { file: Some(file), piece, written, .. } = &mut self.parts[part] else {
            return Ok(());
        };
        let outside = (written.saturating_sub(offset) as usize).min(bytes.len());
        let (outside, inside) = bytes.split_at(outside);
        if !outside.is_empty() {
            file.patch(offset, outside)?;
        }
        if !inside.is_empty() {
            let from = (offset + outside.len() as u64 - *written) as usize;
            piece[from..from + inside.len()].copy_from_slice(inside);
        }
        Ok(())
    }
}

/// Extent of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every byte.
    Whole,
    /// Compare the length, the first and the last [`ENDS_BYTES`].
    Ends,
}

/// Compared at each end of a file: a file that a crash left in pieces shows it there.
const ENDS_BYTES: u64 = 64 << 10;

/// The first place where a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstDifference {
    /// Part of the file: an index into its format's parts.
    pub(crate) part: usize,
    /// Offset in the part; `None` where the part as a whole is meant.
    pub(crate) offset: Option<u64>,
    /// A lowercase fragment.
    pub(crate) what: String,
    /// The part is not there, and all that is there of the file is right.
    pub(crate) is_missing: bool,
}

impl FirstDifference {
    fn of_all(part: usize, what: String) -> Self {
        FirstDifference { part, offset: None, what, is_missing: false }
    }
}

/// Compares what an encoder makes with the files that lie on a storage.
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
    at: u64,
    made: Piece,
    read: Piece,
}

impl<'w> CompareSink<'w> {
    /// For files of these parts.
    pub(crate) fn new(
        storage: &'w dyn Storage,
        watch: &'w Watch<'w>,
        parts: &[Part],
        extent: Extent,
    ) -> Self {
        let parts = parts.iter().map(|&part| {
            let (made, read) = (Piece::new(PIECE_BYTES), Piece::new(PIECE_BYTES));
            PartReader { part, file: None, len: 0, at: 0, made, read }
        });
        let parts = parts.collect();
        CompareSink { storage, watch, extent, path: String::new(), parts, found: None }
    }

    /// Compare a file with the one that `encode` makes: the first difference, if there is one.
    pub(crate) fn compare(
        &mut self,
        path: &str,
        encode: impl FnOnce(&mut Self) -> Result<(), SinkError>,
    ) -> Result<Option<FirstDifference>, SinkError> {
        path.clone_into(&mut self.path);
        self.found = None;
        let (parts, mut missing) = (self.parts.len(), Vec::new());
        for part in 0..parts {
            let Err(error) = self.open(part) else { continue };
            if error.source.kind() == ErrorKind::NotFound {
                missing.push(part);
            } else {
                let what = error.to_string();
                self.found.get_or_insert(FirstDifference::of_all(part, what));
            }
        }
        // What is there of it is compared all the same.
        let is_there = missing.len() < parts && self.found.is_none();
        let encoded = if is_there { encode(self) } else { Ok(()) };
        let missing = missing.first().map(|&part| FirstDifference {
            is_missing: true,
            ..FirstDifference::of_all(part, "is missing".to_string())
        });
        let difference = self.finish().or(missing);
        encoded.map(|()| difference)
    }

    /// Bytes of all parts of the file that was compared last.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Close the file: where it first differs, if it does.
    fn finish(&mut self) -> Option<FirstDifference> {
        for (i, part) in self.parts.iter_mut().enumerate() {
            if part.at < part.len {
                let what = format!("{} bytes more than there should be", part.len - part.at);
                let difference = FirstDifference::of_all(i, what);
                self.found.get_or_insert(FirstDifference { offset: Some(part.at), ..difference });
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
        (part.at, part.len) = (0, 0);
        let file = part.file.insert(self.storage.open(&path)?);
        part.len = self.storage.len(file)?;
        Ok(())
    }

    /// Compare `len` bytes made at `skew` of the piece with those at `offset` of the file.
    fn look(&mut self, i: usize, offset: u64, skew: usize, len: usize) -> Option<FirstDifference> {
        let PartReader { file, made, read, .. } = &mut self.parts[i];
        let (made, read) = (&made[skew..skew + len], &mut read[skew..skew + len]);
        let (offset, what) = match self.storage.read_at(file.as_ref()?, offset, read) {
            Err(error) => (None, error.to_string()),
            Ok(came) => match first_difference(&made[..came], &read[..came]) {
                Some(at) => (Some(offset + at as u64), "not what was generated".to_string()),
                None if came < len => {
                    (Some(offset + came as u64), "the file ends too early".to_string())
                }
                None => return None,
            },
        };
        Some(FirstDifference { offset, ..FirstDifference::of_all(i, what) })
    }
}

impl FileSink for CompareSink<'_> {
    fn space(&mut self, part: usize) -> &mut [u8] {
        let PartReader { made, at, .. } = &mut self.parts[part];
        &mut made[skew(*at)..]
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        if self.watch.is_over() {
            return Err(StorageError::new("verify", &self.path, ErrorKind::Interrupted));
        }
        let at = self.parts[part].at;
        if self.found.is_none() {
            self.found = self.look(part, at, skew(at), len);
        }
        self.parts[part].at += len as u64;
        if self.extent == Extent::Whole {
            self.watch.bytes_done(len as u64);
        }
        Ok(())
    }

    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.parts[part].at += len as u64;
        Ok(())
    }

    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let offset = offset + (i * PIECE_BYTES) as u64;
            self.parts[part].made[..piece.len()].copy_from_slice(piece);
            let difference = self.look(part, offset, 0, piece.len());
            // What is patched lies before what was compared since.
            self.found = difference.or(self.found.take());
            if self.extent == Extent::Whole {
                self.watch.bytes_done(piece.len() as u64);
            }
        }
        Ok(())
    }

    /// After a difference nothing more is looked at.
    fn skip(&mut self, part: usize, len: u64) -> bool {
        let PartReader { at, len: file_bytes, .. } = self.parts[part];
        let between =
            at >= ENDS_BYTES && at.saturating_add(len).saturating_add(ENDS_BYTES) <= file_bytes;
        let skips = self.found.is_some() || (self.extent == Extent::Ends && between);
        if skips {
            self.parts[part].at += len;
        }
        skips
    }
}

fn skew(offset: u64) -> usize {
    (offset % PIECE_BYTES as u64) as usize
}
