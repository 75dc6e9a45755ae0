//! Reads the messages of a dataset: dimensions, element type, layout and filters.
//!
//! Long because element types and layouts have several versions each.

use super::blocks::{FieldReader, FileBlocks, ParseResult, ParseStop, invalid};
use super::header::{self, HeaderMessage};
use super::metadata::datatype;
use super::variable::VariableFields;
use super::{DEFLATE, Element, RANK_MAX, product};

/// Upper limit on the filters of one dataset.
const FILTERS_MAX: usize = 8;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
/// Filters that are registered with the HDF Group.
const LZ4: u16 = 32004;
const ZSTD: u16 = 32015;
/// Classes of element types.
const FLOAT: u8 = 1;
const ENUMERATION: u8 = 8;
/// Upper limit on the length of a dataset. No file is that long.
const BYTES_MAX: u64 = 1 << 62;

/// A dataset that can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordDataset {
    pub(super) rank: usize,
    /// The axis of samples first; 1 beyond the rank.
    pub(super) dims: [u64; RANK_MAX],
    /// Largest dimensions that the dataset may have; `u64::MAX` without limit.
    pub(super) dims_max: [u64; RANK_MAX],
    pub(super) element: ElementType,
    /// Dimensions of a chunk. A contiguous dataset is one chunk.
    pub(super) chunk: [u64; RANK_MAX],
    pub(super) index: ChunkIndex,
    /// Offset and length of the data of a contiguous dataset.
    contiguous: Option<(u64, u64)>,
    /// Whether chunks at the edge of the dataset are not filtered.
    pub(super) has_unfiltered_edges: bool,
    /// Filters in the order in which they were applied.
    pub(super) filters: Filters,
}

/// Type of a dataset's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ElementType {
    /// Length of an element in the dataset.
    pub(super) bytes: u64,
    /// The plain number with this length and meaning, in either byte order; `None` for compounds, strings and other types.
    pub(super) number: Option<Element>,
    /// Fields that refer to data of variable length in a heap.
    pub(super) variable: VariableFields,
}

impl ElementType {
    /// Whether elements refer to data in a heap that is read.
    pub(super) fn is_reference(&self) -> bool {
        !self.variable.list().is_empty()
    }
}

pub(super) type Filters = [Option<Filter>; FILTERS_MAX];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Deflate,
    /// Shuffled bytes of elements of this length.
    Shuffle(usize),
    Fletcher32,
    Lz4,
    Zstd,
    /// A filter that cannot be reversed, with its name.
    Unknown(&'static str),
}

/// Index of a dataset's chunks, with its address.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChunkIndex {
    /// No chunk was ever written.
    Nothing,
    BTree(u64),
    /// One chunk. `stored` is its length and skipped filters, if it is filtered.
    Single {
        address: u64,
        stored: Option<(u64, u32)>,
    },
    /// No index: chunks follow one another.
    Implicit(u64),
    FixedArray(u64),
    ExtensibleArray(u64),
    /// A version 2 B-tree.
    BTree2(u64),
}

/// Position of a chunk in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkLocation {
    pub(super) offset: u64,
    /// Stored length, if the index contains it.
    pub(super) stored_bytes: Option<u64>,
    /// A bit for each filter that was skipped.
    pub(super) skipped_filters: u32,
}

impl RecordDataset {
    pub(super) fn dims(&self) -> &[u64] {
        &self.dims[..self.rank]
    }

    /// Bytes of all samples, saturating.
    pub(super) fn bytes(&self) -> u64 {
        product(self.dims()).saturating_mul(self.element.bytes)
    }

    /// Length of the data with the parts of chunks that extend beyond the dataset, saturating.
    fn allocated_bytes(&self) -> u64 {
        if !self.is_chunked() {
            return self.bytes();
        }
        let dims = self.dims().iter().zip(&self.chunk);
        let lengths = dims.map(|(dim, chunk)| dim.div_ceil((*chunk).max(1)).saturating_mul(*chunk));
        lengths.fold(self.element.bytes, u64::saturating_mul)
    }

    /// Whether the data is stored in chunks.
    pub(super) fn is_chunked(&self) -> bool {
        self.contiguous.is_none()
    }

    /// Name of the first filter that cannot be reversed.
    pub(super) fn unknown_filter(&self) -> Option<&'static str> {
        self.filters.iter().flatten().find_map(|filter| match filter {
            Filter::Unknown(name) => Some(*name),
            _ => None,
        })
    }

    /// Whether elements refer to data that is not read.
    pub(super) fn has_unread_references(&self) -> bool {
        let is_undecoded = self.element.is_reference() && self.unknown_filter().is_some();
        self.element.variable.has_others || is_undecoded
    }

    /// Length of the data in the file without an index of chunks; `None` if it depends on the filtered chunks.
    pub(super) fn unfiltered_bytes(&self) -> Option<u64> {
        match self.index {
            ChunkIndex::Nothing => Some(0),
            _ if self.filters.iter().all(Option::is_none) => Some(self.allocated_bytes()),
            _ => None,
        }
    }

    /// Returns an error if a file of `file_bytes` bytes cannot contain the dataset.
    pub(super) fn check(&self, file_bytes: u64) -> ParseResult<()> {
        let bytes = self.bytes();
        if bytes > BYTES_MAX {
            return invalid(
                0,
                format!("a dataset of `{:?}`, more than a file can hold", self.dims()),
            );
        }
        let Some((address, stored)) = self.contiguous else { return Ok(()) };
        if stored < bytes {
            return invalid(address, format!("{stored} bytes of data instead of {bytes}"));
        }
        if address.checked_add(bytes).is_none_or(|end| end > file_bytes) {
            return invalid(address, format!("{bytes} bytes of data extend beyond the end"));
        }
        Ok(())
    }
}

/// Types of the messages that are read: dimensions, element type, layout and filters.
const KINDS: [u16; 4] = [0x01, 0x03, 0x08, 0x0b];
/// Type of the message that lists external data files.
const EXTERNAL: u16 = 0x07;
const EXTERNAL_DATA: &str = "its data is in external files, which are not followed; train on those files, or copy the data into HDF5 files";

/// Types of the messages of groups: link information, links and symbol tables.
const GROUP_KINDS: [u16; 3] = [0x02, 0x06, 0x11];

/// Kind of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Group,
    Dataset,
    Other,
}

/// The kind of the object whose header is at `address`.
pub(super) fn read_kind(blocks: &FileBlocks, address: u64) -> ParseResult<ObjectKind> {
    let mut kind = ObjectKind::Other;
    header::for_each_message(blocks, address, &mut |message| {
        if message.kind == KINDS[2] {
            kind = ObjectKind::Dataset;
        } else if GROUP_KINDS.contains(&message.kind) {
            kind = ObjectKind::Group;
        }
        Ok(())
    })?;
    Ok(kind)
}

/// Reads the dataset whose object header is at `address`.
pub(super) fn read_dataset(blocks: &FileBlocks, address: u64) -> ParseResult<RecordDataset> {
    let mut bodies = [const { None }; 4];
    header::for_each_message(blocks, address, &mut |HeaderMessage { kind, is_shared, body }| {
        let offset = body.offset();
        if kind == EXTERNAL {
            return invalid(offset, EXTERNAL_DATA);
        }
        let Some(i) = KINDS.iter().position(|known| *known == kind) else { return Ok(()) };
        bodies[i] = Some(if is_shared { read_shared(blocks, body, kind)? } else { body });
        Ok(())
    })?;
    let [Some(space), element_type, Some(layout), filters_applied] = bodies else {
        return invalid(address, "no dataset: it has no dimensions or no layout");
    };
    let Some(element_type) = element_type else {
        return invalid(address, "a dataset without an element type");
    };
    let mut dataset = read_dataspace(space, read_element(element_type)?)?;
    dataset.read_layout(layout)?;
    if let Some(body) = filters_applied {
        dataset.filters = read_filters(body)?;
    }
    Ok(dataset)
}

/// Follows a shared message to the message of type `kind` in another object header, such as a named datatype.
fn read_shared<'b>(
    blocks: &'b FileBlocks,
    mut body: FieldReader<'b>,
    kind: u16,
) -> ParseResult<FieldReader<'b>> {
    let offset = body.offset();
    let version = body.u8()?;
    let location = body.u8()?;
    body.skip(if version == 1 { 6 } else { 0 })?;
    if !matches!((version, location), (1 | 2, _) | (3, 2)) {
        return invalid(offset, "a message in the heap of shared messages: it is not followed");
    }
    let Some(address) = body.address()? else {
        return invalid(offset, "a shared message without an address");
    };
    let mut found = None;
    header::for_each_message(blocks, address, &mut |message| {
        if message.kind == kind && !message.is_shared {
            found = Some(message.body);
        }
        Ok(())
    })?;
    match found {
        Some(body) => Ok(body),
        None => invalid(address, "no datatype where a shared message says"),
    }
}

/// Length of the dataset at `address`, even if it cannot be read. `u64::MAX` if the metadata does not contain the
/// length; `None` for objects without an array, such as groups and scalars. Elements of a shared datatype count as 8
/// bytes.
pub(super) fn array_bytes(blocks: &FileBlocks, address: u64) -> ParseResult<Option<u64>> {
    let mut elements = None;
    let mut element_bytes = 8;
    let mut has_layout = false;
    let walked = header::for_each_message(blocks, address, &mut |message| {
        let HeaderMessage { kind, is_shared, mut body } = message;
        match kind {
            0x01 if is_shared => elements = Some(u64::MAX),
            0x01 => {
                let (rank, _) = read_dataspace_head(&mut body)?;
                for _ in 0..rank {
                    elements = Some(elements.unwrap_or(1u64).saturating_mul(body.length()?));
                }
            }
            0x03 if !is_shared => {
                body.skip(4)?;
                element_bytes = body.u32()?.into();
            }
            0x08 => has_layout = true,
            _ => {}
        }
        Ok(())
    });
    match walked {
        Ok(()) if !has_layout => Ok(None),
        Ok(()) => Ok(elements.map(|elements| elements.saturating_mul(element_bytes))),
        Err(ParseStop::Invalid(_)) => Ok(Some(u64::MAX)),
        Err(missing) => Err(missing),
    }
}

/// Reads the rank and the flags of a dataspace message.
fn read_dataspace_head(body: &mut FieldReader) -> ParseResult<(usize, u8)> {
    let offset = body.offset();
    let version = body.u8()?;
    let rank = usize::from(body.u8()?);
    let flags = body.u8()?;
    match version {
        1 => body.skip(5)?,
        2 => body.skip(1)?,
        _ => return invalid(offset, format!("dataspace of version `{version}`, not 1 or 2")),
    }
    Ok((rank, flags))
}

/// Reads a dataspace message into a dataset without layout.
fn read_dataspace(mut body: FieldReader, element: ElementType) -> ParseResult<RecordDataset> {
    let offset = body.offset();
    let (rank, flags) = read_dataspace_head(&mut body)?;
    let mut dims = [1; RANK_MAX];
    let Some(used) = dims.get_mut(..rank) else {
        return invalid(offset, format!("a dataset of `{rank}` dimensions, more than {RANK_MAX}"));
    };
    for dim in used {
        *dim = body.length()?;
    }
    let mut dims_max = dims;
    if flags & 1 != 0 {
        for dim in &mut dims_max[..rank] {
            *dim = body.limit()?;
        }
    }
    Ok(RecordDataset {
        rank,
        dims,
        dims_max,
        element,
        chunk: dims,
        index: ChunkIndex::Nothing,
        contiguous: None,
        has_unfiltered_edges: false,
        filters: Filters::default(),
    })
}

fn read_element(mut body: FieldReader) -> ParseResult<ElementType> {
    let offset = body.offset();
    let variable = VariableFields::read(body.clone());
    let head = body.take(8)?;
    let class = head[0] & 15;
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if size == 0 {
        return invalid(offset, "elements without a length");
    }
    // For integers only the sign flag is compared. The flags of floats repeat information of the other fields. The byte order is
    // not compared: h5py returns the bytes of big-endian numbers as they are.
    let (flags, property_bytes) = if class == FLOAT { (0, 8) } else { (8, 4) };
    let properties = if class <= FLOAT { body.take(property_bytes)? } else { &[] };
    let number = Element::ALL.into_iter().find(|element| {
        let message = datatype(*element).0;
        message[0] & 15 == class
            && message[1] & flags == head[1] & flags
            && message[4..8] == head[4..]
            && message[8..8 + properties.len()] == *properties
    });
    // h5py writes booleans as an enumeration.
    let number = number.or((class == ENUMERATION && size == 1).then_some(Element::Uint8));
    Ok(ElementType { bytes: size.into(), number, variable })
}

impl RecordDataset {
    fn read_layout(&mut self, mut body: FieldReader) -> ParseResult<()> {
        let offset = body.offset();
        let version = body.u8()?;
        let class = match version {
            3..=5 => body.u8()?,
            _ => return invalid(offset, format!("layout of version `{version}`, not 3 to 5")),
        };
        match class {
            0 => {
                let stored = body.u16()?;
                self.set_contiguous(Some(body.offset()), stored.into());
                Ok(())
            }
            1 => {
                self.set_contiguous(body.address()?, body.length()?);
                Ok(())
            }
            2 => self.read_chunks(body, version),
            3 => invalid(offset, "a virtual dataset: its sources are not followed"),
            _ => invalid(offset, format!("layout of class `{class}`")),
        }
    }

    /// Sets the layout of a dataset whose data is contiguous and has `stored` bytes.
    fn set_contiguous(&mut self, address: Option<u64>, stored: u64) {
        self.contiguous = address.map(|address| (address, stored));
        self.index = address
            .map_or(ChunkIndex::Nothing, |address| ChunkIndex::Single { address, stored: None });
    }

    fn read_chunks(&mut self, mut body: FieldReader, version: u8) -> ParseResult<()> {
        let offset = body.offset();
        if version == 3 {
            let rank = body.u8()?;
            let address = body.address()?;
            self.chunk = chunk_dims(&mut body, rank.into(), 4)?;
            self.index = address.map_or(ChunkIndex::Nothing, ChunkIndex::BTree);
        } else {
            let flags = body.u8()?;
            let rank = body.u8()?;
            let width = body.u8()?;
            self.chunk = chunk_dims(&mut body, rank.into(), width.into())?;
            self.index = read_index(body, flags & 2 != 0)?;
            self.has_unfiltered_edges = flags & 1 != 0;
        }
        let chunk = &self.chunk;
        if chunk[self.rank..].iter().any(|dim| *dim != 1) || chunk.contains(&0) {
            let rank = self.rank;
            return invalid(
                offset,
                format!("chunks of `{chunk:?}` in a dataset of {rank} dimensions"),
            );
        }
        Ok(())
    }
}

/// Reads the dimensions of a chunk, `width` bytes each. The last of the `rank` dimensions is the length of an element and
/// is skipped.
fn chunk_dims(body: &mut FieldReader, rank: usize, width: usize) -> ParseResult<[u64; RANK_MAX]> {
    let mut dims = [1; RANK_MAX];
    let offset = body.offset();
    let Some(used) = rank.checked_sub(1).and_then(|rank| dims.get_mut(..rank)) else {
        return invalid(offset, format!("chunks of `{rank}` dimensions"));
    };
    for dim in used {
        *dim = body.number(width)?;
    }
    body.skip(width)?;
    Ok(dims)
}

/// Reads the chunk index of a layout of version 4 or 5.
fn read_index(mut body: FieldReader, is_filtered: bool) -> ParseResult<ChunkIndex> {
    let offset = body.offset();
    let kind = body.u8()?;
    let mut stored = None;
    match kind {
        1 if is_filtered => stored = Some((body.length()?, body.u32()?)),
        1 | 2 => {}
        3 => body.skip(1)?,
        4 => body.skip(5)?,
        5 => body.skip(6)?,
        _ => return invalid(offset, format!("chunk index of type `{kind}`")),
    }
    Ok(match (body.address()?, kind) {
        (None, _) => ChunkIndex::Nothing,
        (Some(address), 1) => ChunkIndex::Single { address, stored },
        (Some(address), 2) => ChunkIndex::Implicit(address),
        (Some(address), 3) => ChunkIndex::FixedArray(address),
        (Some(address), 4) => ChunkIndex::ExtensibleArray(address),
        (Some(address), _) => ChunkIndex::BTree2(address),
    })
}

fn read_filters(mut body: FieldReader) -> ParseResult<Filters> {
    let offset = body.offset();
    let version = body.u8()?;
    let count = usize::from(body.u8()?);
    match version {
        1 => body.skip(6)?,
        2 => {}
        _ => return invalid(offset, format!("filters of version `{version}`, not 1 or 2")),
    }
    let mut filters = [None; FILTERS_MAX];
    let Some(used) = filters.get_mut(..count) else {
        return invalid(offset, format!("`{count}` filters, more than {FILTERS_MAX}"));
    };
    for filter in used {
        let id = body.u16()?;
        let name_bytes = if version == 1 || id >= 256 { body.u16()? } else { 0 };
        body.skip(2)?;
        let values = body.u16()?;
        body.skip(name_bytes.into())?;
        let first = if values > 0 { Some(body.u32()?) } else { None };
        body.skip(4 * usize::from(values.saturating_sub(1)))?;
        if version == 1 && values % 2 == 1 {
            body.skip(4)?;
        }
        *filter = Some(match id {
            DEFLATE => Filter::Deflate,
            SHUFFLE => Filter::Shuffle(first.unwrap_or(1).max(1) as usize),
            FLETCHER32 => Filter::Fletcher32,
            LZ4 => Filter::Lz4,
            ZSTD => Filter::Zstd,
            _ => Filter::Unknown(filter_name(id)),
        });
    }
    Ok(filters)
}

/// Filters that are registered with the HDF Group or belong to the library, and are not reversed.
static FILTER_NAMES: &[(u16, &str)] = &[
    (4, "szip"),
    (5, "nbit"),
    (6, "scaleoffset"),
    (305, "lzo"),
    (307, "bzip2"),
    (32000, "lzf"),
    (32001, "blosc"),
    (32008, "bitshuffle"),
    (32013, "zfp"),
    (32017, "sz"),
    (32018, "fcidecomp"),
    (32019, "jpeg"),
    (32024, "sz3"),
    (32026, "blosc2"),
    (32028, "sperr"),
];

fn filter_name(id: u16) -> &'static str {
    FILTER_NAMES.iter().find(|(known, _)| *known == id).map_or("unknown filter", |(_, name)| name)
}
