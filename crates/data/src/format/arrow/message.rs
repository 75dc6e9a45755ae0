//! Reads the metadata of a message: a FlatBuffer with the table `Message` of Arrow's `Message.fbs`.

/// What is read of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'m> {
    pub(super) header: Header<'m>,
    /// Length of the body after the metadata.
    pub(super) body_bytes: u64,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header<'m> {
    Schema(Table<'m>),
    RecordBatch {
        rows: u64,
        nodes: Nodes<'m>,
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
const FIELDS: usize = 1;
const NAME: usize = 0;
const DICTIONARY: usize = 4;
const CHILDREN: usize = 5;
/// Length of a node: the number of values of a field, and of those that are null.
const NODE_BYTES: usize = 16;
/// Length of a reference to a table.
const REFERENCE_BYTES: usize = 4;
/// Names of the two fields of a file, as Hugging Face's images and sounds have them.
const FILE_FIELDS: [&[u8]; 2] = [b"bytes", b"path"];
/// Upper limits on the fields of a schema and of those with files, on their nesting, and on the length of a name that is kept.
const NODES_MAX: usize = 1 << 16;
const FILES_MAX: usize = 1024;
const DEPTH_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 256;
/// Values of the union of headers.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;

impl<'m> Message<'m> {
    /// Parses metadata, of which a schema may be cut after its root; `None` if it is invalid.
    pub(super) fn parse(metadata: &'m [u8]) -> Option<Self> {
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
            SCHEMA => Header::Schema(Table { metadata, start: table.target(HEADER)? }),
            RECORD_BATCH => {
                let batch = Table { metadata, start: table.target(HEADER)? };
                let rows = match batch.field(ROWS)? {
                    Some(offset) => read_length(metadata, offset)?,
                    None => 0,
                };
                let nodes = Nodes(batch.vector(NODES, NODE_BYTES).unwrap_or_default());
                Header::RecordBatch { rows, nodes }
            }
            _ => Header::Other,
        };
        Some(Message { header, body_bytes })
    }
}

/// The nodes of a record batch: one for each field of the schema, a field before those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nodes<'m>(&'m [u8]);

impl Nodes<'_> {
    /// Number of values of the first column; `None` without columns.
    pub(super) fn first_rows(self) -> Option<u64> {
        read_length(self.0, 0)
    }
}

/// A field with the content of files: `bytes` beside `path`.
#[derive(Debug, Default)]
pub(super) struct FileContent {
    /// Name of the outermost field that contains it.
    pub(super) name: String,
    node: usize,
    /// Whether a batch that was counted has paths of files that it does not contain.
    pub(super) is_elsewhere: bool,
}

impl FileContent {
    /// Adds the values of a batch.
    pub(super) fn count(&mut self, nodes: Nodes<'_>) {
        let nulls = |number: usize| {
            let node = nodes.0.chunks_exact(NODE_BYTES).nth(number);
            node.and_then(|node| read_length(node, 8)).unwrap_or(0)
        };
        // The group precedes its content, and the path follows, because contents have no fields.
        let [groups, contents, paths] = [self.node - 1, self.node, self.node + 1].map(nulls);
        // Files that are missing have no paths. A group that is null hides its path; Hugging Face's saved datasets have such groups
        // exactly where they have no content.
        self.is_elsewhere |= paths < contents && contents != groups;
    }
}

/// Finds the contents of files in the fields of a schema. Fields beyond the upper limits are left out.
pub(super) fn find_files(schema: Table<'_>) -> Vec<FileContent> {
    let mut walk = FieldWalk::default();
    // An invalid field ends the walk.
    let _ = schema.tables(FIELDS).try_for_each(|field| walk.pass(field, field.bytes(NAME), 0));
    walk.files
}

/// Position in the fields of a schema, in the order of nodes.
#[derive(Default)]
struct FieldWalk {
    nodes: usize,
    files: Vec<FileContent>,
}

impl FieldWalk {
    /// Passes a field and those inside it, which are all inside the field `outermost`.
    fn pass(&mut self, field: Table<'_>, outermost: &[u8], depth: usize) -> Option<()> {
        if self.nodes == NODES_MAX || self.files.len() == FILES_MAX || depth == DEPTH_MAX {
            return None;
        }
        self.nodes += 1;
        // Batches contain the indexes into a dictionary, and not its fields.
        if field.field(DICTIONARY)?.is_some() {
            return Some(());
        }
        let is_file = field.tables(CHILDREN).take(3).map(|child| child.bytes(NAME)).eq(FILE_FIELDS);
        for (number, child) in field.tables(CHILDREN).enumerate() {
            if is_file && number == 0 {
                let name = &outermost[..outermost.len().min(NAME_BYTES_MAX)];
                let name = String::from_utf8_lossy(name).into_owned();
                self.files.push(FileContent { name, node: self.nodes, ..FileContent::default() });
            }
            self.pass(child, outermost, depth + 1)?;
        }
        Some(())
    }
}

/// A number of 64 bits; `None` if it is negative or outside the metadata.
fn read_length(metadata: &[u8], offset: usize) -> Option<u64> {
    u64::try_from(i64::from_le_bytes(*metadata.get(offset..)?.first_chunk()?)).ok()
}

/// A table of a FlatBuffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table<'m> {
    metadata: &'m [u8],
    start: usize,
}

impl<'m> Table<'m> {
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

    /// Start of what a field refers to; `None` if it has its default or is invalid.
    fn target(&self, number: usize) -> Option<usize> {
        self.follow(self.field(number)??)
    }

    /// Start of what the reference at `offset` refers to.
    fn follow(&self, offset: usize) -> Option<usize> {
        let relative = u32::from_le_bytes(*self.metadata.get(offset..)?.first_chunk()?);
        offset.checked_add(relative as usize)
    }

    /// A vector of items of `item_bytes` bytes; `None` if it is missing or invalid.
    fn vector(&self, number: usize, item_bytes: usize) -> Option<&'m [u8]> {
        let vector = self.metadata.get(self.target(number)?..)?;
        let count = u32::from_le_bytes(*vector.first_chunk()?) as usize;
        vector[4..].get(..count.checked_mul(item_bytes)?)
    }

    /// Bytes or text; empty if it is missing or invalid.
    fn bytes(&self, number: usize) -> &'m [u8] {
        self.vector(number, 1).unwrap_or_default()
    }

    /// A vector of tables; empty if it is missing or invalid.
    fn tables(self, number: usize) -> impl Iterator<Item = Table<'m>> {
        let references = self.vector(number, REFERENCE_BYTES).unwrap_or_default();
        let first = self.target(number).unwrap_or(0).saturating_add(REFERENCE_BYTES);
        (0..references.len() / REFERENCE_BYTES).map_while(move |i| {
            let start = self.follow(first + REFERENCE_BYTES * i)?;
            Some(Table { start, ..self })
        })
    }
}
