//! Pages compressed by gzip. They are made and packed in small pieces, however long they are: a page's header stands
//! before it and says how long it became, so that it is patched.

use super::super::deflate::DeflateSink;
use super::super::packed;
use super::layout::{Chunk, Column, Group, LABEL_BYTES, Layout};
use super::thrift::Writer;
use super::{Content, FileSink, MAGIC, SinkError};

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
            pages.gzip.write(0, &layout.image_prefix())?;
            packed::write_sample(0, sample, layout.shape, content, &mut pages.gzip, &mut |_| {})?;
            sample += 1;
            Ok(())
        })?;
        let labels = pages.chunk(&layout.labels, plain.rows, &mut |pages| {
            pages.gzip.write(0, &[0; LABEL_BYTES as usize])
        })?;
        groups.push(Group { start, images, labels, ..plain });
    }
    Ok(groups)
}

/// Packs one page after another.
struct Pages<'s> {
    gzip: DeflateSink<'s>,
    /// Offset in the file.
    at: u64,
    writer: Writer,
}

impl<'s> Pages<'s> {
    fn new(level: u32, sink: &'s mut dyn FileSink) -> Self {
        Pages {
            gzip: DeflateSink::new(level, sink),
            at: MAGIC.len() as u64,
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
            self.gzip.inner().reserve(0, header_bytes)?;
            self.gzip.begin_gzip()?;
            for _ in 0..rows {
                value(self)?;
            }
            self.gzip.finish_gzip()?;
            let page_bytes = column.page_bytes(rows);
            let packed_bytes = self.gzip.packed_bytes();
            let header = column.header(rows, Some(packed_bytes), &mut self.writer);
            self.gzip.inner().patch(0, start, header)?;
            self.at += header_bytes as u64 + packed_bytes;
            chunk.bytes += self.at - start;
            chunk.unpacked_bytes += header_bytes as u64 + page_bytes;
            Ok(())
        })?;
        Ok(chunk)
    }
}
