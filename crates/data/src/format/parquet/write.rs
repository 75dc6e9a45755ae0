//! Writes a file: the pages of each row group, then the footer with their positions.
//!
//! Compressed pages are generated and compressed in small pieces, so memory does not depend on their length. The header
//! precedes the page and contains its compressed length, so it is reserved and patched.

use super::super::deflate::DeflateSink;
use super::layout::{ChunkBytes, ColumnLayout, FileLayout, GroupLayout, LABEL_BYTES};
use super::unpack::Codec;
use super::{Content, Encoding, FileShape, FileSink, MAGIC, SinkError, packed};

/// Writes a file of this shape.
pub(super) fn write_file(
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let layout = FileLayout::new(shape, encoding);
    sink.write(0, MAGIC)?;
    let mut pages = PageWriter {
        codec: layout.codec,
        deflate: DeflateSink::new(encoding.compression_level, sink),
        offset: MAGIC.len() as u64,
    };
    let mut groups = Vec::new();
    for planned in layout.groups() {
        let start = pages.offset;
        let mut sample = planned.first;
        let images = pages.write_chunk(&layout.images, planned.rows, &mut |sink| {
            sink.write(0, &layout.image_prefix())?;
            packed::write_sample(0, sample, shape, content, sink, &mut |_| {})?;
            sample += 1;
            Ok(())
        })?;
        let labels = pages.write_chunk(&layout.labels, planned.rows, &mut |sink| {
            sink.write(0, &[0; LABEL_BYTES as usize])
        })?;
        groups.push(GroupLayout { start, images, labels, ..planned });
    }
    let footer = layout.footer(groups.into_iter());
    sink.write(0, &footer)?;
    sink.write(0, &(footer.len() as u32).to_le_bytes())?;
    sink.write(0, MAGIC)
}

/// Writes one page after another.
struct PageWriter<'s> {
    codec: Codec,
    deflate: DeflateSink<'s>,
    /// Offset of the next page in the file.
    offset: u64,
}

impl PageWriter<'_> {
    /// Writes the pages of a column chunk. `write_value` writes the next value.
    fn write_chunk(
        &mut self,
        column: &ColumnLayout,
        rows: u64,
        write_value: &mut dyn FnMut(&mut dyn FileSink) -> Result<(), SinkError>,
    ) -> Result<ChunkBytes, SinkError> {
        let mut chunk = ChunkBytes::default();
        for rows in column.pages(rows) {
            let page_bytes = column.page_bytes(rows);
            let (header_bytes, packed_bytes) = if self.codec == Codec::Gzip {
                let header_bytes = column.header(rows, Some(0)).len();
                self.deflate.inner().reserve(0, header_bytes)?;
                self.deflate.begin_gzip()?;
                (0..rows).try_for_each(|_| write_value(&mut self.deflate))?;
                self.deflate.finish_gzip()?;
                let packed_bytes = self.deflate.packed_bytes();
                let header = column.header(rows, Some(packed_bytes));
                self.deflate.inner().patch(0, self.offset, &header)?;
                (header_bytes as u64, packed_bytes)
            } else {
                let header = column.header(rows, None);
                self.deflate.inner().write(0, &header)?;
                (0..rows).try_for_each(|_| write_value(self.deflate.inner()))?;
                (header.len() as u64, page_bytes)
            };
            self.offset += header_bytes + packed_bytes;
            chunk.bytes += header_bytes + packed_bytes;
            chunk.unpacked_bytes += header_bytes + page_bytes;
        }
        Ok(chunk)
    }
}
