//! Takes what formats write: in large aligned pieces, summed up on the way; or only counts, to learn how long a file is.
//! Shared by the formats. Knows no format.

use super::content::StateContent;
use super::output::OutputFile;
use crate::buffer::AlignedBuffer;
use crc32fast::Hasher;
use feedrate_spec::plan::state::Tensor;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Written at once, but for the end of a file. What a writing thread holds in memory.
pub(super) const PIECE_BYTES: usize = 4 << 20;
/// Made and summed up at once: it stays in a core's cache between the two.
const CHUNK_BYTES: u64 = 128 << 10;

/// Takes a file from its start, as a format writes it.
pub trait CheckpointSink {
    /// Bytes that the format knows.
    ///
    /// # Errors
    /// The file system refused.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The content of tensor number `number`; returns its CRC-32.
    ///
    /// # Errors
    /// The file system refused.
    fn tensor(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32>;

    /// Write `bytes` over the zeros that were put at `offset`.
    ///
    /// # Errors
    /// The file system refused.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// Counts.
#[derive(Default)]
pub(super) struct Length {
    pub(super) bytes: u64,
}

impl CheckpointSink for Length {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn tensor(&mut self, _: u64, tensor: &Tensor) -> io::Result<u32> {
        self.bytes += tensor.bytes();
        Ok(0)
    }

    fn patch(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a file in pieces.
pub(super) struct Pieces<'o> {
    output: &'o mut dyn OutputFile,
    done: &'o AtomicU64,
    content: StateContent,
    piece: AlignedBuffer,
    filled: usize,
    written: u64,
    crc: Hasher,
}

impl<'o> Pieces<'o> {
    /// In pieces of `piece_bytes`, which are added to `done` as they are written.
    pub(super) fn new(
        content: StateContent,
        piece_bytes: usize,
        output: &'o mut dyn OutputFile,
        done: &'o AtomicU64,
    ) -> io::Result<Self> {
        Ok(Pieces {
            output,
            done,
            content,
            piece: AlignedBuffer::new(piece_bytes)?,
            filled: 0,
            written: 0,
            crc: Hasher::new(),
        })
    }

    /// Length and CRC-32 of the file.
    pub(super) fn finish(mut self) -> io::Result<(u64, u32)> {
        self.flush()?;
        self.output.end()?;
        Ok((self.written, self.crc.finalize()))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.filled > 0 {
            self.output.write(self.piece.aligned_like(0, self.filled))?;
            self.written += self.filled as u64;
            self.done.fetch_add(self.filled as u64, Relaxed);
            self.filled = 0;
        }
        Ok(())
    }

    /// Room for up to `wanted` bytes.
    fn room(&mut self, wanted: u64) -> io::Result<&mut [u8]> {
        if self.filled == self.piece.len() {
            self.flush()?;
        }
        let (filled, left) = (self.filled, self.piece.len() - self.filled);
        let len = wanted.min(left as u64) as usize;
        self.filled += len;
        Ok(&mut self.piece.aligned_like(0, filled + len)[filled..])
    }
}

impl CheckpointSink for Pieces<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        while !bytes.is_empty() {
            let room = self.room(bytes.len() as u64)?;
            let (now, later) = bytes.split_at(room.len());
            room.copy_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn tensor(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32> {
        let mut crc = Hasher::new();
        let mut done = 0;
        while done < tensor.bytes() {
            let start = self.filled % self.piece.len();
            let len = self.room((tensor.bytes() - done).min(CHUNK_BYTES))?.len();
            let chunk = &mut self.piece.aligned_like(0, start + len)[start..];
            self.content.fill(number, tensor, done, chunk);
            crc.update(chunk);
            done += len as u64;
        }
        self.crc.combine(&crc);
        Ok(crc.finalize())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let after = self.written + self.filled as u64 - offset - bytes.len() as u64;
        self.crc = patched(&self.crc, self.written + self.filled as u64, bytes, after);
        // A part may be out already.
        let out = self.written.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (out, here) = bytes.split_at(out);
        if !out.is_empty() {
            self.output.write_at(offset, out)?;
        }
        if !here.is_empty() {
            let start = (offset + out.len() as u64 - self.written) as usize;
            let end = start + here.len();
            self.piece.aligned_like(0, end)[start..].copy_from_slice(here);
        }
        Ok(())
    }
}

/// The sum of what `crc` summed up, `total` bytes, with `bytes` for the zeros before its last `after`. A CRC of a sum
/// modulo 2 is the sum of the CRCs, but for the constant that it begins with.
fn patched(crc: &Hasher, total: u64, bytes: &[u8], after: u64) -> Hasher {
    let zeros = vec![0; bytes.len()];
    let change = crc32fast::hash(bytes) ^ crc32fast::hash(&zeros);
    let mut shifted = Hasher::new_with_initial_len(change, 0);
    shifted.combine(&Hasher::new_with_initial_len(0, after));
    Hasher::new_with_initial_len(crc.clone().finalize() ^ shifted.finalize(), total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::state::StateType;

    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        writes: Vec<usize>,
    }

    impl OutputFile for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.bytes.extend(bytes);
            self.writes.push(bytes.len());
            Ok(())
        }

        fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Patches that are out, in the piece, and across both.
    #[test]
    fn sums_are_those_of_the_bytes_whatever_is_patched() {
        let tensor = Tensor { name: "a".into(), elements: 300_001, element: StateType::Int8 };
        for (piece, patches) in
            [(4096, vec![0, 4094, 8190]), (1 << 20, vec![0, 4]), (8192, vec![8190])]
        {
            let mut memory = Memory::default();
            let (content, done) = (StateContent::random(1, 5, "f"), AtomicU64::new(0));
            let mut pieces = Pieces::new(content, piece, &mut memory, &done).unwrap();
            pieces.put(&[0; 10_000]).unwrap();
            for offset in patches {
                pieces.patch(offset, b"abcd").unwrap();
            }
            let sum = pieces.tensor(0, &tensor).unwrap();
            pieces.put(b"end").unwrap();
            let (bytes, crc) = pieces.finish().unwrap();
            assert_eq!(bytes as usize, memory.bytes.len());
            assert_eq!(done.into_inner(), bytes);
            assert_eq!(crc, crc32fast::hash(&memory.bytes), "{piece}");
            assert_eq!(sum, crc32fast::hash(&memory.bytes[10_000..310_001]));
            let (_, whole) = memory.writes.split_last().unwrap();
            assert!(whole.iter().all(|&write| write == piece), "{:?}", memory.writes);
        }
    }
}
