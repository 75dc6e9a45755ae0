//! Reads the metadata of a message: a FlatBuffer with the table `Message` of Arrow's `Message.fbs`.

/// What is read of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) header: Header,
    /// Length of the body after the metadata.
    pub(super) body_bytes: u64,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Schema,
    RecordBatch {
        rows: u64,
    },
    /// Dictionaries, and kinds without rows.
    Other,
}

/// Numbers of the fields in the tables.
const HEADER_TYPE: usize = 1;
const HEADER: usize = 2;
const BODY_LENGTH: usize = 3;
const ROWS: usize = 0;
/// Values of the union of headers.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;

impl Message {
    /// Parses metadata, of which a schema may be cut after its root; `None` if it is invalid.
    pub(super) fn parse(metadata: &[u8]) -> Option<Self> {
        let root = u32::from_le_bytes(*metadata.first_chunk()?);
        let table = Table { metadata, start: root as usize };
        let body_bytes = match table.field(BODY_LENGTH)? {
            Some(offset) => read_length(metadata, offset)?,
            None => 0,
        };
        let kind = match table.field(HEADER_TYPE)? {
            Some(offset) => *metadata.get(offset)?,
            None => 0,
        };
        let header = match kind {
            SCHEMA => Header::Schema,
            RECORD_BATCH => {
                let offset = table.field(HEADER)??;
                let relative = u32::from_le_bytes(*metadata.get(offset..)?.first_chunk()?);
                let start = offset.checked_add(relative as usize)?;
                let rows = match (Table { metadata, start }).field(ROWS)? {
                    Some(offset) => read_length(metadata, offset)?,
                    None => 0,
                };
                Header::RecordBatch { rows }
            }
            _ => Header::Other,
        };
        Some(Message { header, body_bytes })
    }
}

/// A number of 64 bits; `None` if it is negative or outside the metadata.
fn read_length(metadata: &[u8], offset: usize) -> Option<u64> {
    u64::try_from(i64::from_le_bytes(*metadata.get(offset..)?.first_chunk()?)).ok()
}

/// A table of a FlatBuffer.
struct Table<'m> {
    metadata: &'m [u8],
    start: usize,
}

impl Table<'_> {
    /// Offset of a field in the metadata; `Some(None)` if it has its default, `None` if the table is invalid.
    fn field(&self, number: usize) -> Option<Option<usize>> {
        let to_vtable = i32::from_le_bytes(*self.metadata.get(self.start..)?.first_chunk()?);
        let vtable = i64::try_from(self.start).ok()?.checked_sub(i64::from(to_vtable))?;
        let vtable = self.metadata.get(usize::try_from(vtable).ok()?..)?;
        let read = |offset: usize| {
            vtable.get(offset..)?.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)))
        };
        let entry = 4 + 2 * number;
        if entry + 2 > read(0)? {
            return Some(None);
        }
        match read(entry)? {
            0 => Some(None),
            offset => Some(Some(self.start.checked_add(offset)?)),
        }
    }
}
