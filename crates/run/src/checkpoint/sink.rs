//! Sinks for the output of checkpoint formats: [`PieceWriter`] writes large aligned pieces and computes the checksum, [`LengthCounter`]
//! only counts bytes.

use super::content::StateContent;
use super::output::OutputFile;
use crate::buffer::AlignedBuffer;
use crc32fast::Hasher;
use feedrate_spec::plan::state::Tensor;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Size of each write except the last one of a file. Each writing thread uses as much memory.
pub(super) const PIECE_BYTES: usize = 4 << 20;
/// Bytes that are generated and checksummed at a time; few enough to stay in a core's cache.
const CHUNK_BYTES: u64 = 128 << 10;

/// Receives the content of a file from a format, in order.
pub trait CheckpointSink {
    /// Appends `bytes`.
    ///
    /// # Errors
    /// The file system refused.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends the content of tensor number `number` and returns its CRC-32.
    ///
    /// # Errors
    /// The file system refused.
    fn put_tensor(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32>;

    /// Like [`CheckpointSink::put_tensor`], but returns the CRC-32C.
    ///
    /// # Errors
    /// The file system refused.
    fn put_tensor_crc32c(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32>;

    /// Appends `len` zeros, which are patched later.
    ///
    /// # Errors
    /// The file system refused.
    fn reserve(&mut self, len: usize) -> io::Result<()> {
        self.put(&vec![0; len])
    }

    /// Replaces reserved zeros at `offset` with `bytes`.
    ///
    /// # Errors
    /// The file system refused.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A sink that counts the bytes of a file.
#[derive(Default)]
pub(super) struct LengthCounter {
    pub(super) bytes: u64,
}

impl CheckpointSink for LengthCounter {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn put_tensor(&mut self, _: u64, tensor: &Tensor) -> io::Result<u32> {
        self.bytes += tensor.bytes();
        Ok(0)
    }

    fn put_tensor_crc32c(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32> {
        self.put_tensor(number, tensor)
    }

    fn patch(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// A sink that writes a file in pieces.
pub(super) struct PieceWriter<'o> {
    output: &'o mut dyn OutputFile,
    done: &'o AtomicU64,
    content: StateContent,
    piece: AlignedBuffer,
    filled: usize,
    written: u64,
    crc: Hasher,
}

impl<'o> PieceWriter<'o> {
    /// Creates a sink that writes pieces of `piece_bytes` to `output` and adds the written bytes to `done`.
    pub(super) fn new(
        content: StateContent,
        piece_bytes: usize,
        output: &'o mut dyn OutputFile,
        done: &'o AtomicU64,
    ) -> io::Result<Self> {
        Ok(PieceWriter {
            output,
            done,
            content,
            piece: AlignedBuffer::new(piece_bytes)?,
            filled: 0,
            written: 0,
            crc: Hasher::new(),
        })
    }

    /// Writes the last piece. Returns the length and CRC-32 of the file.
    pub(super) fn finish(mut self) -> io::Result<(u64, u32)> {
        self.flush()?;
        self.output.finish()?;
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

    /// Returns the next bytes of the piece to fill, up to `wanted`, at least one.
    fn space(&mut self, wanted: u64) -> io::Result<&mut [u8]> {
        if self.filled == self.piece.len() {
            self.flush()?;
        }
        let start = self.filled;
        let len = wanted.min((self.piece.len() - start) as u64) as usize;
        self.filled += len;
        Ok(&mut self.piece.aligned_like(0, start + len)[start..])
    }

    /// Appends a tensor, calls `inspect` with its bytes, piece by piece, and returns its CRC-32.
    fn append_tensor(
        &mut self,
        number: u64,
        tensor: &Tensor,
        mut inspect: impl FnMut(&[u8]),
    ) -> io::Result<u32> {
        let mut crc = Hasher::new();
        let mut done = 0;
        while done < tensor.bytes() {
            let start = self.filled % self.piece.len();
            let len = self.space((tensor.bytes() - done).min(CHUNK_BYTES))?.len();
            let chunk = &mut self.piece.aligned_like(0, start + len)[start..];
            self.content.fill(number, tensor, done, chunk);
            crc.update(chunk);
            inspect(chunk);
            done += len as u64;
        }
        self.crc.combine(&crc);
        Ok(crc.finalize())
    }
}

impl CheckpointSink for PieceWriter<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        while !bytes.is_empty() {
            let target = self.space(bytes.len() as u64)?;
            let (head, rest) = bytes.split_at(target.len());
            target.copy_from_slice(head);
            bytes = rest;
        }
        Ok(())
    }

    fn put_tensor(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32> {
        self.append_tensor(number, tensor, |_| {})
    }

    fn put_tensor_crc32c(&mut self, number: u64, tensor: &Tensor) -> io::Result<u32> {
        let mut crc = 0;
        self.append_tensor(number, tensor, |chunk| crc = crc32c::crc32c_append(crc, chunk))?;
        Ok(crc)
    }

    fn reserve(&mut self, len: usize) -> io::Result<()> {
        let start = self.written + self.filled as u64;
        self.output.hold(start..start + len as u64);
        self.put(&vec![0; len])
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let after = self.written + self.filled as u64 - offset - bytes.len() as u64;
        self.crc = patch_checksum(&self.crc, self.written + self.filled as u64, bytes, after);
        // The patched range may be written already, still in the piece, or both.
        let written_len = self.written.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (written, buffered) = bytes.split_at(written_len);
        if !written.is_empty() {
            self.output.write_at(offset, written)?;
        }
        if !buffered.is_empty() {
            let start = (offset + written.len() as u64 - self.written) as usize;
            let end = start + buffered.len();
            self.piece.aligned_like(0, end)[start..].copy_from_slice(buffered);
        }
        self.output.release(offset..offset + bytes.len() as u64);
        Ok(())
    }
}

/// Updates `crc`, the checksum of `total` bytes, for a patch that replaces zeros with `bytes`. `after` bytes follow them. This works
/// because a CRC is linear over GF(2), except for its initial value.
fn patch_checksum(crc: &Hasher, total: u64, bytes: &[u8], after: u64) -> Hasher {
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

    /// Covers patches of written bytes, of buffered bytes, and across both.
    #[test]
    fn checksums_are_correct_after_patches() {
        let tensor = Tensor { name: "a".into(), elements: 300_001, element: StateType::Int8 };
        for (piece, patches) in
            [(4096, vec![0, 4094, 8190]), (1 << 20, vec![0, 4]), (8192, vec![8190])]
        {
            let mut memory = Memory::default();
            let content = StateContent::random(1, 5, "f");
            let done = AtomicU64::new(0);
            let mut writer = PieceWriter::new(content, piece, &mut memory, &done).unwrap();
            writer.reserve(10_000).unwrap();
            for offset in patches {
                writer.patch(offset, b"abcd").unwrap();
            }
            let sum = writer.put_tensor(0, &tensor).unwrap();
            writer.put(b"end").unwrap();
            let (bytes, crc) = writer.finish().unwrap();
            assert_eq!(bytes as usize, memory.bytes.len());
            assert_eq!(done.into_inner(), bytes);
            assert_eq!(crc, crc32fast::hash(&memory.bytes), "{piece}");
            assert_eq!(sum, crc32fast::hash(&memory.bytes[10_000..310_001]));
            let (_, full_writes) = memory.writes.split_last().unwrap();
            assert!(full_writes.iter().all(|&write| write == piece), "{:?}", memory.writes);
        }
    }
}
