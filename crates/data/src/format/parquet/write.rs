//! Writes a file: the pages of each row group, then the footer that says where they lie.

use super::deflate;
use super::layout::{LABEL_BYTES, Layout};
use super::thrift::Writer;
use super::unpack::Codec;
use super::{Content, Encoding, FileShape, FileSink, MAGIC, SinkError, packed};

static ZEROS: [u8; 4096] = [0; 4096];

/// Write a file of this shape.
pub(super) fn file(
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let layout = Layout::new(shape, encoding);
    sink.write(0, MAGIC)?;
    let packed = match layout.codec {
        Codec::Gzip => Some(deflate::groups(&layout, encoding.compression_level, content, sink)?),
        _ => None,
    };
    let mut footer_bytes = 0;
    let mut take = |sink: &mut dyn FileSink, bytes: &[u8]| {
        footer_bytes += bytes.len() as u32;
        sink.write(0, bytes)
    };
    match packed {
        Some(groups) => layout.footer(groups.into_iter(), &mut |bytes| take(sink, bytes))?,
        None => {
            plain_groups(&layout, content, sink)?;
            layout.footer(layout.groups(), &mut |bytes| take(sink, bytes))?;
        }
    }
    sink.write(0, &footer_bytes.to_le_bytes())?;
    sink.write(0, MAGIC)
}

fn plain_groups(
    layout: &Layout,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let shape = layout.shape;
    let mut writer = Writer::default();
    for group in layout.groups() {
        let mut sample = group.first;
        layout.images.pages(group.rows, &mut |rows| {
            sink.write(0, layout.images.header(rows, None, &mut writer))?;
            for _ in 0..rows {
                sink.write(0, &layout.image_prefix())?;
                packed::write_sample(0, sample, shape, content, sink, &mut |_| {})?;
                sample += 1;
            }
            Ok(())
        })?;
        layout.labels.pages(group.rows, &mut |rows| {
            sink.write(0, layout.labels.header(rows, None, &mut writer))?;
            let mut left = (rows * LABEL_BYTES) as usize;
            while left > 0 {
                let now = left.min(ZEROS.len());
                sink.write(0, &ZEROS[..now])?;
                left -= now;
            }
            Ok(())
        })?;
    }
    Ok(())
}
