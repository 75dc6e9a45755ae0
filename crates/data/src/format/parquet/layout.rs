//! The layout of a generated file: its row groups and pages, and the footer with their positions. Without compression the
//! layout follows from the shape alone.

use super::thrift::{BINARY, I32, STRUCT, ThriftWriter};
use super::unpack::Codec;
use super::{
    BYTE_ARRAY, CREATED_BY, Compression, DIMS_KEY, ELEMENT_KEY, Encoding, FileShape, GROUPS_MAX,
    INT64, MAGIC, PLAIN, RLE, TAIL_BYTES,
};

/// A page ends when its values have at least this length, as in files of pyarrow.
pub(super) const PAGE_BYTES: u64 = 1 << 20;
pub(super) const LABEL_BYTES: u64 = 8;
/// Length of the prefix that states the length of a value.
const LENGTH_BYTES: u64 = 4;
/// Estimated length of a group's entry in the footer, for files with too many groups, which are refused.
const GROUP_BYTES: u64 = 120;
const REQUIRED: i64 = 0;
const DATA_PAGE: i64 = 0;
const VERSION: i64 = 2;

/// Length of a file without compression.
pub(super) fn file_bytes(shape: &FileShape, encoding: &Encoding) -> u64 {
    let layout = FileLayout::new(shape, encoding);
    let groups = shape.samples.div_ceil(layout.group_rows);
    if groups > GROUPS_MAX {
        return shape.payload_bytes().saturating_add(groups.saturating_mul(GROUP_BYTES));
    }
    let footer_bytes = layout.footer(layout.groups()).len() as u64;
    let end = layout.groups().last().map_or(MAGIC.len() as u64, |group| group.end());
    end.saturating_add(footer_bytes + TAIL_BYTES)
}

/// Layout of a whole file.
pub(super) struct FileLayout<'s> {
    pub(super) shape: &'s FileShape,
    pub(super) codec: Codec,
    group_rows: u64,
    pub(super) images: ColumnLayout,
    pub(super) labels: ColumnLayout,
}

/// A row group.
pub(super) struct GroupLayout {
    /// Number of its first sample.
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) start: u64,
    pub(super) images: ChunkBytes,
    pub(super) labels: ChunkBytes,
}

/// Length of a column chunk, including page headers.
#[derive(Clone, Copy, Default)]
pub(super) struct ChunkBytes {
    /// Length in the file.
    pub(super) bytes: u64,
    pub(super) unpacked_bytes: u64,
}

impl GroupLayout {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.images.bytes).saturating_add(self.labels.bytes)
    }
}

impl<'s> FileLayout<'s> {
    pub(super) fn new(shape: &'s FileShape, encoding: &Encoding) -> Self {
        let value_bytes = shape.sample_bytes().saturating_add(LENGTH_BYTES);
        let codec = match encoding.compression {
            Compression::Gzip => Codec::Gzip,
            _ => Codec::Uncompressed,
        };
        FileLayout {
            shape,
            codec,
            // 0 is refused by `find_unsupported_setting`, but the length may be computed before that check.
            group_rows: encoding.row_group_samples.max(1),
            images: ColumnLayout::new(value_bytes),
            labels: ColumnLayout::new(LABEL_BYTES),
        }
    }

    /// The length field before the bytes of a sample.
    pub(super) fn image_prefix(&self) -> [u8; LENGTH_BYTES as usize] {
        (self.shape.sample_bytes() as u32).to_le_bytes()
    }

    /// The row groups of a file without compression.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupLayout> {
        let full_rows = self.group_rows.min(self.shape.samples);
        let full_chunks = [&self.images, &self.labels].map(|column| column.chunk(full_rows));
        let mut first = 0;
        let mut start = MAGIC.len() as u64;
        std::iter::from_fn(move || {
            let rows = full_rows.min(self.shape.samples - first);
            if rows == 0 {
                return None;
            }
            let [images, labels] = if rows == full_rows {
                full_chunks
            } else {
                [&self.images, &self.labels].map(|column| column.chunk(rows))
            };
            let group = GroupLayout { first, rows, start, images, labels };
            first += rows;
            start = group.end();
            Some(group)
        })
    }

    /// The footer, `FileMetaData`.
    pub(super) fn footer(&self, groups: impl Iterator<Item = GroupLayout>) -> Vec<u8> {
        let mut writer = ThriftWriter::default();
        writer.begin();
        writer.i32(1, VERSION);
        writer.list(2, STRUCT, 3);
        writer.begin();
        writer.i32(3, REQUIRED);
        writer.text(4, "schema");
        writer.i32(5, 2);
        writer.end();
        for (physical, name) in [(BYTE_ARRAY, "image"), (INT64, "label")] {
            writer.begin();
            writer.i32(1, physical);
            writer.i32(3, REQUIRED);
            writer.text(4, name);
            writer.end();
        }
        writer.i64(3, self.shape.samples);
        writer.list(4, STRUCT, self.shape.samples.div_ceil(self.group_rows));
        groups.for_each(|group| row_group(&mut writer, self.codec, &group));
        writer.list(5, STRUCT, 2);
        let dims: Vec<String> = self.shape.dims.as_slice().iter().map(u64::to_string).collect();
        for (key, value) in [(DIMS_KEY, &*dims.join(",")), (ELEMENT_KEY, self.shape.element.name())]
        {
            writer.begin();
            writer.text(1, key);
            writer.text(2, value);
            writer.end();
        }
        writer.text(6, CREATED_BY);
        writer.end();
        writer.bytes
    }
}

fn row_group(writer: &mut ThriftWriter, codec: Codec, group: &GroupLayout) {
    let GroupLayout { rows, start, images, labels, .. } = *group;
    writer.begin();
    writer.list(1, STRUCT, 2);
    let labels_start = start.saturating_add(images.bytes);
    for (physical, name, start, chunk) in
        [(BYTE_ARRAY, "image", start, images), (INT64, "label", labels_start, labels)]
    {
        writer.begin();
        // `file_offset` of a copy of the metadata: there is none.
        writer.i64(2, 0);
        writer.begin_field(3);
        writer.i32(1, physical);
        writer.list(2, I32, 1);
        writer.zigzag(PLAIN);
        writer.list(3, BINARY, 1);
        writer.binary(name);
        writer.i32(4, codec as i64);
        writer.i64(5, rows);
        writer.i64(6, chunk.unpacked_bytes);
        writer.i64(7, chunk.bytes);
        writer.i64(9, start);
        writer.end();
        writer.end();
    }
    writer.i64(2, images.unpacked_bytes.saturating_add(labels.unpacked_bytes));
    writer.i64(3, rows);
    writer.end();
}

/// A column whose values have the same length.
pub(super) struct ColumnLayout {
    value_bytes: u64,
    page_rows: u64,
}

impl ColumnLayout {
    fn new(value_bytes: u64) -> Self {
        ColumnLayout { value_bytes, page_rows: PAGE_BYTES.div_ceil(value_bytes) }
    }

    /// Number of rows in each page of a chunk.
    pub(super) fn pages(&self, rows: u64) -> impl Iterator<Item = u64> {
        let page_rows = self.page_rows;
        (0..rows.div_ceil(page_rows)).map(move |page| page_rows.min(rows - page * page_rows))
    }

    /// Length of the values in a page.
    pub(super) fn page_bytes(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.value_bytes)
    }

    fn chunk(&self, rows: u64) -> ChunkBytes {
        let full_pages = rows / self.page_rows;
        let rest_rows = rows % self.page_rows;
        let full_headers = full_pages.saturating_mul(self.header_bytes(self.page_rows));
        let rest_header = if rest_rows > 0 { self.header_bytes(rest_rows) } else { 0 };
        let headers = full_headers.saturating_add(rest_header);
        let bytes = self.page_bytes(rows).saturating_add(headers);
        ChunkBytes { bytes, unpacked_bytes: bytes }
    }

    fn header_bytes(&self, rows: u64) -> u64 {
        self.header(rows, None).len() as u64
    }

    /// The `PageHeader` of a page with `rows` rows. If a compressed length is given, the length of the header does not depend
    /// on its value.
    pub(super) fn header(&self, rows: u64, packed_bytes: Option<u64>) -> Vec<u8> {
        let bytes = saturating_i32(self.page_bytes(rows));
        let mut writer = ThriftWriter::default();
        writer.begin();
        writer.i32(1, DATA_PAGE);
        writer.i32(2, bytes);
        match packed_bytes {
            Some(packed_bytes) => writer.wide_i32(3, saturating_i32(packed_bytes)),
            None => writer.i32(3, bytes),
        }
        writer.begin_field(5);
        writer.i32(1, rows as i64);
        writer.i32(2, PLAIN);
        // Encodings of levels, which are required although there are no levels.
        writer.i32(3, RLE);
        writer.i32(4, RLE);
        writer.end();
        writer.end();
        writer.bytes
    }
}

pub(super) fn saturating_i32(bytes: u64) -> i64 {
    bytes.min(i32::MAX as u64) as i64
}
