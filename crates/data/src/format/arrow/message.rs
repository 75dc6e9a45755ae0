//! Reads the metadata of a message: a FlatBuffer with the table `Message` of Arrow's `Message.fbs`.

/// What is read of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) header: Header,
    /// Length of the body after the metadata.
    pub(super) body_bytes: u64,
}

/// Types of Hugging Face's features that are the contents of files.
const FILE_FEATURES: [&str; 3] = ["Image", "Audio", "Video"];

/// The names of Hugging Face's features that are the contents of files, from the metadata of a schema.
pub(super) fn file_features(schema: &[u8]) -> Vec<String> {
    let description = |start: usize| -> Option<serde_json::Value> {
        let length = schema[..start].last_chunk().copied().map(u32::from_le_bytes)?;
        serde_json::from_slice(schema[start..].get(..length as usize)?).ok()
    };
    let mut starts = schema.windows(DESCRIPTION.len()).enumerate();
    let start = starts.find(|(_, window)| *window == DESCRIPTION);
    let description = start.and_then(|(start, _)| description(start)).unwrap_or_default();
    let features = description["info"]["features"].as_object().into_iter().flatten();
    let is_file = |feature: &serde_json::Value| {
        feature["_type"].as_str().is_some_and(|kind| FILE_FEATURES.contains(&kind))
    };
    features.filter(|(_, feature)| is_file(feature)).map(|(name, _)| name.clone()).collect()
}

/// Start of Hugging Face's description of a table.
const DESCRIPTION: &[u8] = br#"{"info":"#;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Schema,
    RecordBatch {
        rows: u64,
        /// Whether all values of a column are null.
        has_null_column: bool,
    },
    /// Dictionaries, and kinds without rows.
    Other,
}

/// Numbers of the fields in the tables.
const HEADER_TYPE: usize = 1;
const HEADER: usize = 2;
const BODY_LENGTH: usize = 3;
const ROWS: usize = 0;
const NODES: usize = 1;
/// Length of a node: the number of values of a column, and of those that are null.
const NODE_BYTES: usize = 16;
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
                let batch = Table { metadata, start };
                let rows = match batch.field(ROWS)? {
                    Some(offset) => read_length(metadata, offset)?,
                    None => 0,
                };
                let nodes = batch.field(NODES)?;
                let has_null_column =
                    0 < rows && nodes.is_some_and(|nodes| has_null_column(metadata, nodes, rows));
                Header::RecordBatch { rows, has_null_column }
            }
            _ => Header::Other,
        };
        Some(Message { header, body_bytes })
    }
}

/// Whether all values of a column with a value for each of `rows` rows are null. The vector of nodes is at `offset`.
fn has_null_column(metadata: &[u8], offset: usize, rows: u64) -> bool {
    let nodes = || {
        let relative = u32::from_le_bytes(*metadata.get(offset..)?.first_chunk()?);
        let vector = metadata.get(offset.checked_add(relative as usize)?..)?;
        let count = u32::from_le_bytes(*vector.first_chunk()?) as usize;
        vector[4..].get(..count.checked_mul(NODE_BYTES)?)
    };
    let is_null = |node: &[u8]| [0, 8].iter().all(|field| read_length(node, *field) == Some(rows));
    nodes().is_some_and(|nodes| nodes.chunks_exact(NODE_BYTES).any(is_null))
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
