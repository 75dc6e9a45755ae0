//! The messages of a dataset: its dimensions, element type, layout and filters.

use super::blocks::{FieldReader, FileBlocks, ParseStop, Parsed, bad};
use super::header::{self, HeaderMessage};
use super::metadata::datatype;
use super::{DEFLATE, Element, RANK_MAX, product};

/// Upper limit on the filters of one dataset.
const FILTERS_MAX: usize = 4;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
/// More bytes than any file has.
const BYTES_MAX: u64 = 1 << 62;

/// A dataset that can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordDataset {
    pub(super) rank: usize,
    /// The samples' axis first; 1 beyond the rank.
    pub(super) dims: [u64; RANK_MAX],
    /// Limits to which the dimensions may grow; `u64::MAX` where there is none.
    pub(super) dims_max: [u64; RANK_MAX],
    pub(super) element: Element,
    /// Dimensions of a chunk. A dataset in one piece is a chunk.
    pub(super) chunk: [u64; RANK_MAX],
    pub(super) index: ChunkIndex,
    /// Where all data lies in one piece: its offset and bytes.
    piece: Option<(u64, u64)>,
    /// Chunks that the dataset's edge cuts are not filtered.
    pub(super) keeps_edges: bool,
    /// In the order in which they were applied.
    pub(super) filters: Filters,
}

pub(super) type Filters = [Option<Filter>; FILTERS_MAX];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Deflate,
    /// Shuffled bytes of elements of this size.
    Shuffle(usize),
    Fletcher32,
}

/// Index that finds chunks.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChunkIndex {
    /// No chunk was ever written.
    Nothing,
    BTree(u64),
    /// Its address, its size if it is filtered, and the filters that it skipped.
    Single {
        address: u64,
        stored: Option<(u64, u32)>,
    },
    Implicit(u64),
    FixedArray(u64),
    ExtensibleArray(u64),
}

/// A chunk in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkPlace {
    pub(super) offset: u64,
    /// Bytes as it is stored, where the index says them.
    pub(super) stored: Option<u64>,
    /// A bit for each filter that was skipped.
    pub(super) skipped: u32,
}

impl RecordDataset {
    pub(super) fn dims(&self) -> &[u64] {
        &self.dims[..self.rank]
    }

    /// Bytes of all samples, saturating.
    pub(super) fn bytes(&self) -> u64 {
        product(self.dims()).saturating_mul(self.element.bytes())
    }

    /// An error if a file of `file_bytes` bytes cannot hold it.
    pub(super) fn check(&self, file_bytes: u64) -> Parsed<()> {
        let bytes = self.bytes();
        if bytes > BYTES_MAX {
            return bad(0, format!("a dataset of `{:?}`, more than any file", self.dims()));
        }
        let Some((address, stored)) = self.piece else { return Ok(()) };
        if stored < bytes {
            return bad(address, format!("{stored} bytes of data, where {bytes} belong"));
        }
        if address.checked_add(bytes).is_none_or(|end| end > file_bytes) {
            return bad(address, format!("{bytes} bytes of data lie beyond the end"));
        }
        Ok(())
    }
}

/// Kinds of the messages that make a dataset: its dimensions, element type, layout and filters.
const KINDS: [u16; 4] = [0x01, 0x03, 0x08, 0x0b];
/// A list of files beside this one.
const EXTERNAL: u16 = 0x07;

/// The dataset whose object header lies at `address`.
pub(super) fn dataset(blocks: &FileBlocks, address: u64) -> Parsed<RecordDataset> {
    let mut bodies = [const { None }; 4];
    header::walk(blocks, address, &mut |HeaderMessage { kind, is_shared, body }| {
        let offset = body.offset();
        if kind == EXTERNAL {
            return bad(offset, "the data lies in external files, which are not followed");
        }
        let Some(i) = KINDS.iter().position(|known| *known == kind) else { return Ok(()) };
        if is_shared {
            return bad(offset, "a shared message, such as a named datatype: it is not followed");
        }
        bodies[i] = Some(body);
        Ok(())
    })?;
    let [Some(space), element_type, Some(layout), filters_applied] = bodies else {
        return bad(address, "no dataset: it has no dimensions or no layout");
    };
    let Some(element_type) = element_type else {
        return bad(address, "a dataset without an element type");
    };
    let mut dataset = dataspace(space, element(element_type)?)?;
    dataset.read_layout(layout)?;
    if let Some(body) = filters_applied {
        dataset.filters = filters(body)?;
    }
    Ok(dataset)
}

/// Bytes of the dataset at `address`, which need not be readable: the largest number where its metadata does not say. `None` for
/// objects that hold no array, such as groups and scalars. Elements of a type that is stored elsewhere count as numbers of 8 bytes.
pub(super) fn array_bytes(blocks: &FileBlocks, address: u64) -> Parsed<Option<u64>> {
    let (mut elements, mut element_bytes, mut has_layout) = (None, 8, false);
    let walked = header::walk(blocks, address, &mut |message| {
        let HeaderMessage { kind, is_shared, mut body } = message;
        match kind {
            0x01 if is_shared => elements = Some(u64::MAX),
            0x01 => {
                let (rank, _) = dataspace_head(&mut body)?;
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
        Err(ParseStop::Bad(_)) => Ok(Some(u64::MAX)),
        Err(missing) => Err(missing),
    }
}

/// Rank and flags of a dataspace.
fn dataspace_head(body: &mut FieldReader) -> Parsed<(usize, u8)> {
    let offset = body.offset();
    let (version, rank, flags) = (body.u8()?, usize::from(body.u8()?), body.u8()?);
    match version {
        1 => body.skip(5)?,
        2 => body.skip(1)?,
        _ => return bad(offset, format!("dataspace of version `{version}`, not 1 or 2")),
    }
    Ok((rank, flags))
}

/// A dataset of no layout yet.
fn dataspace(mut body: FieldReader, element: Element) -> Parsed<RecordDataset> {
    let offset = body.offset();
    let (rank, flags) = dataspace_head(&mut body)?;
    let mut dims = [1; RANK_MAX];
    let Some(own) = dims.get_mut(..rank) else {
        return bad(offset, format!("a dataset of `{rank}` dimensions, more than {RANK_MAX}"));
    };
    for dim in own {
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
        piece: None,
        keeps_edges: false,
        filters: Filters::default(),
    })
}

fn element(mut body: FieldReader) -> Parsed<Element> {
    let offset = body.offset();
    let head = body.take(8)?;
    let class = head[0] & 15;
    let names = "fixed-point float time string bit-field opaque compound reference enumeration \
                 variable-length array";
    if class > 1 {
        let name = names.split_whitespace().nth(class.into()).unwrap_or("unknown");
        return bad(offset, format!("elements of class `{name}`, not plain numbers"));
    }
    if head[1] & 1 != 0 {
        return bad(offset, "big-endian elements: they would have to be turned around");
    }
    // Of integers one bit says whether there is a sign; of floats others say what precision and fields say too.
    let (flags, rest) = if class == 0 { (8, body.take(4)?) } else { (0, body.take(8)?) };
    let alike = Element::ALL.into_iter().find(|element| {
        let own = datatype(*element).0;
        own[0] & 15 == class
            && own[1] & flags == head[1] & flags
            && own[4..8] == head[4..]
            && own[8..8 + rest.len()] == *rest
    });
    match alike {
        Some(element) => Ok(element),
        None => {
            let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
            bad(offset, format!("numbers of `{size}` bytes and a form that numpy does not have"))
        }
    }
}

impl RecordDataset {
    fn read_layout(&mut self, mut body: FieldReader) -> Parsed<()> {
        let offset = body.offset();
        let version = body.u8()?;
        let class = match version {
            3..=5 => body.u8()?,
            _ => return bad(offset, format!("layout of version `{version}`, not 3 to 5")),
        };
        match class {
            0 => {
                let stored = body.u16()?;
                self.set_piece(Some(body.offset()), stored.into());
                Ok(())
            }
            1 => {
                self.set_piece(body.address()?, body.length()?);
                Ok(())
            }
            2 => self.read_chunks(body, version),
            3 => bad(offset, "a virtual dataset: its sources are not followed"),
            _ => bad(offset, format!("layout of class `{class}`")),
        }
    }

    /// All data lies in one piece of `stored` bytes.
    fn set_piece(&mut self, address: Option<u64>, stored: u64) {
        self.piece = address.map(|address| (address, stored));
        self.index = address
            .map_or(ChunkIndex::Nothing, |address| ChunkIndex::Single { address, stored: None });
    }

    fn read_chunks(&mut self, mut body: FieldReader, version: u8) -> Parsed<()> {
        let offset = body.offset();
        if version == 3 {
            let rank = body.u8()?;
            let address = body.address()?;
            self.chunk = chunk_dims(&mut body, rank.into(), 4)?;
            self.index = address.map_or(ChunkIndex::Nothing, ChunkIndex::BTree);
        } else {
            let (flags, rank, width) = (body.u8()?, body.u8()?, body.u8()?);
            self.chunk = chunk_dims(&mut body, rank.into(), width.into())?;
            self.index = new_index(body, flags & 2 != 0)?;
            self.keeps_edges = flags & 1 != 0;
        }
        let (chunk, rank) = (&self.chunk, self.rank);
        if chunk[rank..].iter().any(|dim| *dim != 1) || chunk.contains(&0) {
            return bad(offset, format!("chunks of `{chunk:?}` in a dataset of {rank} dimensions"));
        }
        Ok(())
    }
}

/// Read the dimensions of a chunk. The last of `rank` dimensions is the size of the element.
fn chunk_dims(body: &mut FieldReader, rank: usize, width: usize) -> Parsed<[u64; RANK_MAX]> {
    let mut dims = [1; RANK_MAX];
    let offset = body.offset();
    let Some(own) = rank.checked_sub(1).and_then(|rank| dims.get_mut(..rank)) else {
        return bad(offset, format!("chunks of `{rank}` dimensions"));
    };
    for dim in own {
        *dim = body.number(width)?;
    }
    body.skip(width)?;
    Ok(dims)
}

fn new_index(mut body: FieldReader, is_filtered: bool) -> Parsed<ChunkIndex> {
    let offset = body.offset();
    let kind = body.u8()?;
    let mut stored = None;
    match kind {
        1 if is_filtered => stored = Some((body.length()?, body.u32()?)),
        1 | 2 => {}
        3 => body.skip(1)?,
        4 => body.skip(5)?,
        5 => {
            let message = "chunks in a version 2 B-tree, as with several axes without limit: \
                           it is not read";
            return bad(offset, message);
        }
        _ => return bad(offset, format!("chunk index of type `{kind}`")),
    }
    Ok(match (body.address()?, kind) {
        (None, _) => ChunkIndex::Nothing,
        (Some(address), 1) => ChunkIndex::Single { address, stored },
        (Some(address), 2) => ChunkIndex::Implicit(address),
        (Some(address), 3) => ChunkIndex::FixedArray(address),
        (Some(address), _) => ChunkIndex::ExtensibleArray(address),
    })
}

fn filters(mut body: FieldReader) -> Parsed<Filters> {
    let offset = body.offset();
    let (version, count) = (body.u8()?, usize::from(body.u8()?));
    match version {
        1 => body.skip(6)?,
        2 => {}
        _ => return bad(offset, format!("filters of version `{version}`, not 1 or 2")),
    }
    let mut filters = [None; FILTERS_MAX];
    let Some(own) = filters.get_mut(..count) else {
        return bad(offset, format!("`{count}` filters, more than {FILTERS_MAX}"));
    };
    for filter in own {
        let id = body.u16()?;
        let name_bytes = if version == 1 || id >= 256 { body.u16()? } else { 0 };
        body.skip(2)?;
        let values = body.u16()?;
        let name = body.take(name_bytes.into())?;
        let first = if values > 0 { Some(body.u32()?) } else { None };
        body.skip(4 * usize::from(values.saturating_sub(1)))?;
        if version == 1 && values % 2 == 1 {
            body.skip(4)?;
        }
        *filter = Some(match id {
            DEFLATE => Filter::Deflate,
            SHUFFLE => Filter::Shuffle(first.unwrap_or(1).max(1) as usize),
            FLETCHER32 => Filter::Fletcher32,
            _ => return bad(offset, unknown_filter(id, name)),
        });
    }
    Ok(filters)
}

fn unknown_filter(id: u16, name: &[u8]) -> String {
    let known = [(4, "szip"), (5, "nbit"), (6, "scaleoffset"), (32000, "lzf"), (32001, "blosc")];
    let own = String::from_utf8_lossy(name);
    let name = match known.iter().find(|(known, _)| *known == id) {
        Some((_, name)) => name,
        None if name.is_empty() => "unknown",
        None => own.trim_end_matches('\0'),
    };
    format!("filter `{id}` ({name}), not deflate, shuffle or fletcher32")
}
