//! Pages compressed by gzip. They are made and packed in small pieces, however long they are: a page's header stands
//! before it and says how long it became, so that it is patched.

use super::thrift::Writer;
use super::write::{Chunk, Column, Group, LABEL_BYTES, Layout};
use super::{Content, FileSink, MAGIC, SinkError};
use flate2::{Compress, Compression, FlushCompress, Status};

/// What is packed at once. What comes out depends on it without compression, at level 0.
const PIECE_BYTES: usize = 64 << 10;
/// RFC 1952, without name and time, of no known system.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Write the pages of all row groups, and tell where they lie.
pub(super) fn groups(
    layout: &Layout,
    level: u32,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<Vec<Group>, SinkError> {
    let mut pages = Pages::new(level, sink);
    let mut groups = Vec::new();
    for plain in layout.groups() {
        let start = pages.at;
        let mut sample = plain.first;
        let images = pages.chunk(&layout.images, plain.rows, &mut |pages| {
            pages.copy(&layout.image_prefix())?;
            let (mut at, total) = (0, layout.shape.sample_bytes());
            while at < total {
                let len = (total - at).min(PIECE_BYTES as u64) as usize;
                content.fill(sample, at, layout.shape.element, &mut pages.made[..len]);
                pages.pack(len, FlushCompress::None)?;
                at += len as u64;
            }
            sample += 1;
            Ok(())
        })?;
        let labels =
            pages.chunk(&layout.labels, plain.rows, &mut |p| p.copy(&[0; LABEL_BYTES as usize]))?;
        groups.push(Group { start, images, labels, ..plain });
    }
    Ok(groups)
}

/// Packs one page after another.
struct Pages<'s> {
    sink: &'s mut dyn FileSink,
    /// Of the file.
    at: u64,
    deflate: Compress,
    crc: crc32fast::Hasher,
    made: Vec<u8>,
    packed: Vec<u8>,
    writer: Writer,
}

impl<'s> Pages<'s> {
    fn new(level: u32, sink: &'s mut dyn FileSink) -> Self {
        Pages {
            sink,
            at: MAGIC.len() as u64,
            deflate: Compress::new(Compression::new(level), false),
            crc: crc32fast::Hasher::new(),
            made: vec![0; PIECE_BYTES],
            packed: vec![0; PIECE_BYTES],
            writer: Writer::default(),
        }
    }

    /// Write the pages of a column chunk, each value by `value`.
    fn chunk(
        &mut self,
        column: &Column,
        rows: u64,
        value: &mut dyn FnMut(&mut Self) -> Result<(), SinkError>,
    ) -> Result<Chunk, SinkError> {
        let mut chunk = Chunk::default();
        column.pages(rows, &mut |rows| {
            let start = self.at;
            let header_bytes = column.header(rows, Some(0), &mut self.writer).len();
            self.sink.reserve(0, header_bytes)?;
            self.at += header_bytes as u64;
            self.write(&GZIP_HEAD)?;
            self.deflate.reset();
            self.crc.reset();
            for _ in 0..rows {
                value(self)?;
            }
            self.pack(0, FlushCompress::Finish)?;
            let page_bytes = column.page_bytes(rows);
            self.write(&self.crc.clone().finalize().to_le_bytes())?;
            self.write(&(page_bytes as u32).to_le_bytes())?;
            let packed_bytes = self.at - start - header_bytes as u64;
            let header = column.header(rows, Some(packed_bytes), &mut self.writer);
            self.sink.patch(0, start, header)?;
            chunk.bytes += self.at - start;
            chunk.unpacked_bytes += header_bytes as u64 + page_bytes;
            Ok(())
        })?;
        Ok(chunk)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.at += bytes.len() as u64;
        self.sink.write(0, bytes)
    }

    fn copy(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.made[..bytes.len()].copy_from_slice(bytes);
        self.pack(bytes.len(), FlushCompress::None)
    }

    /// Pack the first `len` bytes of `made`.
    fn pack(&mut self, len: usize, flush: FlushCompress) -> Result<(), SinkError> {
        self.crc.update(&self.made[..len]);
        let mut used = 0;
        loop {
            let (before_in, before_out) = (self.deflate.total_in(), self.deflate.total_out());
            let status = self.deflate.compress(&self.made[used..len], &mut self.packed, flush);
            let status = status.unwrap_or_else(|_| unreachable!("memory to memory does not fail"));
            used += (self.deflate.total_in() - before_in) as usize;
            let out = (self.deflate.total_out() - before_out) as usize;
            self.at += out as u64;
            self.sink.write(0, &self.packed[..out])?;
            let is_over = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => used == len,
            };
            if is_over {
                return Ok(());
            }
        }
    }
}
