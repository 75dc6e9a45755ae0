//! The messages of a dataset: its dimensions, element type, layout and filters.

use super::blocks::{Blocks, Fields, Parsed, bad};
use super::header::{self, Message};
use super::{DEFLATE, Element, RANK_MAX};

/// Upper limit on the filters of one dataset.
pub(super) const FILTERS_MAX: usize = 4;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;

/// A dataset that can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dataset {
    pub(super) rank: usize,
    /// The samples' axis first; 1 beyond the rank.
    pub(super) dims: [u64; RANK_MAX],
    /// Limits to which the dimensions may grow; `u64::MAX` where there is none.
    pub(super) dims_max: [u64; RANK_MAX],
    pub(super) element: Element,
    pub(super) layout: Layout,
    filters: [Filter; FILTERS_MAX],
    filter_count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Deflate,
    /// Shuffled bytes of elements of this size.
    Shuffle(usize),
    Fletcher32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    /// One piece, at an offset in the file; `None` where nothing was ever written.
    Contiguous {
        offset: Option<u64>,
        bytes: u64,
    },
    Chunked {
        dims: [u64; RANK_MAX],
        index: Index,
        keeps_edges: bool,
    },
}

/// Index that finds chunks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Index {
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

impl Dataset {
    pub(super) fn dims(&self) -> &[u64] {
        &self.dims[..self.rank]
    }

    /// Filters in the order in which they were applied.
    pub(super) fn filters(&self) -> &[Filter] {
        &self.filters[..self.filter_count]
    }

    /// Bytes of all samples, saturating.
    pub(super) fn bytes(&self) -> u64 {
        let elements = self.dims().iter().fold(1, |product: u64, &dim| product.saturating_mul(dim));
        elements.saturating_mul(self.element.bytes())
    }
}

#[derive(Default)]
struct Found {
    space: Option<(usize, [u64; RANK_MAX], [u64; RANK_MAX])>,
    element: Option<Element>,
    layout: Option<Layout>,
    filters: [Option<Filter>; FILTERS_MAX],
}

/// The dataset whose object header lies at `address`.
pub(super) fn dataset(blocks: &Blocks, address: u64) -> Parsed<Dataset> {
    let mut found = Found::default();
    header::walk(blocks, address, &mut |message| found.take(message))?;
    let Found { space: Some((rank, dims, dims_max)), element, layout: Some(layout), filters } =
        found
    else {
        return bad(address, "no dataset: it has no dimensions or no layout");
    };
    let Some(element) = element else { return bad(address, "a dataset without an element type") };
    if let Layout::Chunked { dims: chunk, .. } = &layout
        && (chunk[rank..].iter().any(|dim| *dim != 1) || chunk.contains(&0))
    {
        return bad(address, format!("chunks of `{chunk:?}` in a dataset of {rank} dimensions"));
    }
    let filter_count = filters.iter().flatten().count();
    let filters = filters.map(|filter| filter.unwrap_or(Filter::Deflate));
    Ok(Dataset { rank, dims, dims_max, element, layout, filters, filter_count })
}

impl Found {
    fn take(&mut self, message: Message) -> Parsed<()> {
        let Message { kind, is_shared, body } = message;
        let offset = body.offset();
        if is_shared && [0x01, 0x03, 0x08, 0x0b].contains(&kind) {
            return bad(offset, "a shared message, such as a named datatype: it is not followed");
        }
        match kind {
            0x01 => self.space = Some(dataspace(body)?),
            0x03 => self.element = Some(element(body)?),
            0x07 => return bad(offset, "the data lies in external files, which are not followed"),
            0x08 => self.layout = Some(layout(body)?),
            0x0b => self.filters = filters(body)?,
            _ => {}
        }
        Ok(())
    }
}

fn dataspace(mut body: Fields) -> Parsed<(usize, [u64; RANK_MAX], [u64; RANK_MAX])> {
    let offset = body.offset();
    let (version, rank, flags) = (body.u8()?, usize::from(body.u8()?), body.u8()?);
    match version {
        1 => body.skip(5)?,
        2 => body.skip(1)?,
        _ => return bad(offset, format!("dataspace of version `{version}`, not 1 or 2")),
    }
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
    Ok((rank, dims, dims_max))
}

fn element(mut body: Fields) -> Parsed<Element> {
    let offset = body.offset();
    let class = body.u8()? & 15;
    let bits = [body.u8()?, body.u8()?, body.u8()?];
    let size = body.u32()?;
    let names = "fixed-point float time string bit-field opaque compound reference enumeration \
                 variable-length array";
    if class > 1 {
        let name = names.split(' ').filter(|name| !name.is_empty()).nth(class.into());
        let name = name.unwrap_or("unknown");
        return bad(offset, format!("elements of class `{name}`, not plain numbers"));
    }
    if bits[0] & 1 != 0 {
        return bad(offset, "big-endian elements: they would have to be turned around");
    }
    let precision = (body.u16()?, body.u16()?);
    let found = if class == 0 {
        let signed = bits[0] & 8 != 0;
        let all = [
            (1, [Element::Uint8, Element::Int8]),
            (2, [Element::Uint16, Element::Int16]),
            (4, [Element::Uint32, Element::Int32]),
            (8, [Element::Uint64, Element::Int64]),
        ];
        all.iter().find(|(bytes, _)| *bytes == size).map(|(_, both)| both[usize::from(signed)])
    } else {
        let fields = [body.u8()?, body.u8()?, body.u8()?, body.u8()?];
        match (size, fields) {
            (2, [10, 5, 0, 10]) => Some(Element::Float16),
            (4, [23, 8, 0, 23]) => Some(Element::Float32),
            (8, [52, 11, 0, 52]) => Some(Element::Float64),
            _ => None,
        }
    };
    let uses_all_bits = precision.0 == 0 && u32::from(precision.1) == size * 8;
    match found {
        Some(element) if uses_all_bits => Ok(element),
        _ => bad(offset, format!("numbers of `{size}` bytes and a form that numpy does not have")),
    }
}

fn layout(mut body: Fields) -> Parsed<Layout> {
    let offset = body.offset();
    let version = body.u8()?;
    let class = match version {
        3..=5 => body.u8()?,
        _ => return bad(offset, format!("layout of version `{version}`, not 3 to 5")),
    };
    match class {
        0 => {
            let bytes = body.u16()?;
            Ok(Layout::Contiguous { offset: Some(body.offset()), bytes: bytes.into() })
        }
        1 => Ok(Layout::Contiguous { offset: body.address()?, bytes: body.length()? }),
        2 if version == 3 => {
            let rank = usize::from(body.u8()?);
            let address = body.address()?;
            let dims = chunk_dims(&mut body, rank, 4)?;
            let index = address.map_or(Index::Nothing, Index::BTree);
            Ok(Layout::Chunked { dims, index, keeps_edges: false })
        }
        2 => new_chunks(body),
        3 => bad(offset, "a virtual dataset: its sources are not followed"),
        _ => bad(offset, format!("layout of class `{class}`")),
    }
}

/// Read the dimensions of a chunk. The last of `rank` dimensions is the size of the element.
fn chunk_dims(body: &mut Fields, rank: usize, width: usize) -> Parsed<[u64; RANK_MAX]> {
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

fn new_chunks(mut body: Fields) -> Parsed<Layout> {
    let offset = body.offset();
    let (flags, rank) = (body.u8()?, usize::from(body.u8()?));
    let width = usize::from(body.u8()?);
    let dims = chunk_dims(&mut body, rank, width)?;
    let kind = body.u8()?;
    let mut stored = None;
    match kind {
        1 if flags & 2 != 0 => stored = Some((body.length()?, body.u32()?)),
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
    let index = match (body.address()?, kind) {
        (None, _) => Index::Nothing,
        (Some(address), 1) => Index::Single { address, stored },
        (Some(address), 2) => Index::Implicit(address),
        (Some(address), 3) => Index::FixedArray(address),
        (Some(address), _) => Index::ExtensibleArray(address),
    };
    Ok(Layout::Chunked { dims, index, keeps_edges: flags & 1 != 0 })
}

fn filters(mut body: Fields) -> Parsed<[Option<Filter>; FILTERS_MAX]> {
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
    let named = known.iter().find(|(known, _)| *known == id).map(|(_, name)| name.to_string());
    let own = String::from_utf8_lossy(name);
    let own = own.trim_end_matches('\0').to_string();
    let name = named.or(Some(own).filter(|own| !own.is_empty())).unwrap_or("unknown".to_string());
    format!("filter `{id}` ({name}), not deflate, shuffle or fletcher32")
}
