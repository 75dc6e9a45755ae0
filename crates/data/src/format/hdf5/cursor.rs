//! Reads a sample: length, metadata as far as it is needed, then its bytes in each dataset, chunk by chunk.

use super::blocks::{Blocks, Parsed, Stop, bad};
use super::filter::{self, Inflate, Unfilter};
use super::index::Lookup;
use super::message::{Dataset, Filter, Layout};
use super::open::{self, Contents};
use super::piece::Cut;
use super::{
    Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, RANK_MAX, cut_off, piece_len,
};

/// Chunks and bands that must be whole in memory, at most.
const WHOLE_BYTES_MAX: u64 = 256 << 20;

/// Made once per worker.
pub(super) struct Hdf5Cursor {
    options: CursorOptions,
    file: Option<u64>,
    expected: Option<FileShape>,
    sample: u64,
    phase: Phase,
    blocks: Blocks,
    contents: Contents,
    shape: Option<FileShape>,
    walk: Walk,
    piece: Piece,
    /// Bytes of the piece that have come.
    come: u64,
    asked: usize,
    /// Bytes of payload given.
    given: u64,
    inflate: Inflate,
    unfilter: Unfilter,
    band: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Length,
    Open,
    /// Find the next piece.
    Find,
    Piece,
    Done,
}

/// Position in the sample.
#[derive(Clone, Copy, Default)]
struct Walk {
    dataset: usize,
    /// Position of the chunk, without the samples' axis.
    grid: [u64; RANK_MAX],
}

/// Bytes of the file, and what is to be done with them.
#[derive(Clone, Copy)]
struct Piece {
    offset: u64,
    bytes: u64,
    /// The part of a chunk that is wanted.
    cut: Option<Cut>,
    work: Work,
}

#[derive(Clone, Copy)]
enum Work {
    /// The bytes are payload.
    Pass,
    /// The bytes inflate to a chunk, of which a range is payload.
    Inflate { from: u64, to: u64 },
    /// A chunk with filters other than those with a bit in here, or a sample's share of one without.
    Gather { skipped: u32, is_share: bool },
}

impl Hdf5Cursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        Hdf5Cursor {
            options: options.clone(),
            file: None,
            expected: None,
            sample: 0,
            phase: Phase::Length,
            blocks: Blocks::new(),
            contents: Contents::default(),
            shape: None,
            walk: Walk::default(),
            piece: Piece { offset: 0, bytes: 0, cut: None, work: Work::Pass },
            come: 0,
            asked: 0,
            given: 0,
            inflate: Inflate::new(),
            unfilter: Unfilter::new(options.check_crc),
            band: Vec::new(),
        }
    }

    fn open(&mut self) -> Parsed<()> {
        let found = self.contents.open(&mut self.blocks)?;
        let agreed = open::agree(found, self.expected.as_ref(), self.sample).map_err(Stop::Bad)?;
        self.shape = Some(agreed);
        self.walk = Walk::default();
        self.phase = Phase::Find;
        Ok(())
    }

    /// The piece at which the walk is.
    fn find(&mut self) -> Parsed<()> {
        let Some(dataset) = self.contents.datasets.get(self.walk.dataset) else {
            self.phase = Phase::Done;
            return Ok(());
        };
        self.piece = match &dataset.layout {
            Layout::Contiguous { offset: None, .. } => return never_written(self.sample),
            Layout::Contiguous { offset: Some(offset), .. } => {
                let bytes = dataset.bytes() / dataset.dims[0];
                let offset = offset + self.sample * bytes;
                Piece { offset, bytes, cut: None, work: Work::Pass }
            }
            Layout::Chunked { .. } => self.find_chunk(dataset)?,
        };
        if let Work::Inflate { .. } = self.piece.work {
            self.inflate.begin();
        }
        self.unfilter.bytes.clear();
        self.come = 0;
        self.phase = Phase::Piece;
        Ok(())
    }

    fn find_chunk(&self, dataset: &Dataset) -> Parsed<Piece> {
        let Layout::Chunked { dims, index, keeps_edges } = &dataset.layout else {
            return bad(0, "a dataset without chunks");
        };
        let cut = Cut::new(dataset, dims)?;
        let mut grid = [0; RANK_MAX];
        grid[0] = self.sample / cut.samples;
        grid[1..].copy_from_slice(&self.walk.grid[..RANK_MAX - 1]);
        let chunk = &dims[..dataset.rank];
        let lookup = Lookup { blocks: &self.blocks, dataset, chunk, chunk_bytes: cut.chunk_bytes };
        let Some(place) = lookup.find(*index, &grid[..dataset.rank])? else {
            return never_written(self.sample);
        };
        let filters = dataset.filters();
        let ends_within = (grid[0] + 1).saturating_mul(cut.samples) > dataset.dims[0];
        let is_edge = *keeps_edges && (ends_within || cut.is_edge(&self.walk.grid));
        let skipped = if is_edge { u32::MAX } else { place.skipped };
        let is_plain = filter::applied(filters, skipped).next().is_none();
        let packed_bytes = if is_plain { None } else { place.stored };
        let stored = packed_bytes.unwrap_or(cut.chunk_bytes);
        if place.offset.checked_add(stored).is_none_or(|end| end > self.blocks.file_bytes) {
            return bad(place.offset, format!("a chunk of {stored} bytes lies beyond the end"));
        }
        let first = self.sample % cut.samples * cut.slab_bytes;
        let band_bytes = cut.band_bytes(&self.walk.grid);
        let (skip, bytes, work) = match (is_plain, cut.is_straight()) {
            (true, true) => (first, band_bytes, Work::Pass),
            (true, false) => (first, cut.slab_bytes, Work::Gather { skipped, is_share: true }),
            (false, true) if filter::applied(filters, skipped).eq([(0, Filter::Deflate)]) => {
                (0, stored, Work::Inflate { from: first, to: first + band_bytes })
            }
            (false, _) => (0, stored, Work::Gather { skipped, is_share: false }),
        };
        if let Work::Gather { is_share, .. } = work {
            let chunk_bytes = if is_share { 0 } else { cut.chunk_bytes };
            let most = bytes.max(band_bytes).max(chunk_bytes);
            if most > WHOLE_BYTES_MAX {
                let message = format!(
                    "`{most}` bytes of chunks would have to be in memory at once, more than {WHOLE_BYTES_MAX}"
                );
                return bad(place.offset, message);
            }
        }
        if bytes == 0 {
            return bad(place.offset, "a chunk of no bytes");
        }
        Ok(Piece { offset: place.offset + skip, bytes, cut: Some(cut), work })
    }

    fn feed_piece(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let offset = self.piece.offset + self.come;
        self.come += bytes.len() as u64;
        match self.piece.work {
            Work::Pass => {
                sink.payload(self.given, bytes)?;
                self.given += bytes.len() as u64;
            }
            Work::Inflate { from, to } => {
                let given = &mut self.given;
                let total = self.piece.cut.map_or(0, |cut| cut.chunk_bytes);
                self.inflate.feed(bytes, offset, total, &mut |at, made| {
                    let end = at + made.len() as u64;
                    if at.max(from) < end.min(to) {
                        let wanted = (at.max(from) - at) as usize..(end.min(to) - at) as usize;
                        let wanted = &made[wanted];
                        sink.payload(*given, wanted)?;
                        *given += wanted.len() as u64;
                    }
                    Ok(())
                })?;
            }
            Work::Gather { .. } => self.unfilter.bytes.extend_from_slice(bytes),
        }
        if bytes.len() < self.asked {
            return Err(cut_off(self.piece.offset + self.come, self.piece.bytes - self.come));
        }
        if self.come == self.piece.bytes { self.finish_piece(sink) } else { Ok(()) }
    }

    fn finish_piece(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.phase = Phase::Find;
        let Some(cut) = self.piece.cut else {
            self.walk.dataset += 1;
            return Ok(());
        };
        match self.piece.work {
            Work::Pass => {}
            Work::Inflate { .. } => {
                self.inflate.finish(self.piece.offset, cut.chunk_bytes)?;
            }
            Work::Gather { skipped, is_share } => self.gather(&cut, skipped, is_share, sink)?,
        }
        if !cut.advance(&mut self.walk.grid) {
            self.walk = Walk { dataset: self.walk.dataset + 1, grid: [0; RANK_MAX] };
        }
        Ok(())
    }

    /// A chunk has come: put it into its band, and give the band on if that is whole.
    fn gather(
        &mut self,
        cut: &Cut,
        skipped: u32,
        is_share: bool,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let grid = &self.walk.grid;
        let mut slab = 0..cut.slab_bytes as usize;
        if !is_share {
            let filters = self.contents.datasets[self.walk.dataset].filters();
            let (offset, total) = (self.piece.offset, cut.chunk_bytes);
            self.unfilter.undo(filters, skipped, &mut self.inflate, offset, total)?;
            let first = (self.sample % cut.samples * cut.slab_bytes) as usize;
            slab = first..first + slab.end;
        }
        let slab = &self.unfilter.bytes[slab];
        let band_bytes = cut.band_bytes(grid);
        if cut.is_straight() {
            sink.payload(self.given, &slab[..band_bytes as usize])?;
        } else if self.options.wants_payload {
            self.band.resize(band_bytes as usize, 0);
            cut.scatter(grid, slab, &mut self.band);
            if cut.ends_band(grid) {
                sink.payload(self.given, &self.band)?;
            }
        }
        if cut.ends_band(grid) {
            self.given += band_bytes;
        }
        Ok(())
    }

    /// Parse until something is missing, which is then being fetched.
    fn parse(&mut self) -> Result<(), FormatError> {
        let parsed = if self.phase == Phase::Open { self.open() } else { self.find() };
        match parsed {
            Ok(()) => Ok(()),
            Err(Stop::Missing { offset, bytes }) => self.blocks.want(offset, bytes),
            Err(Stop::Bad(error)) => Err(error),
        }
    }
}

fn never_written<T>(sample: u64) -> Parsed<T> {
    bad(0, format!("sample {sample} was never written: the file has no place for it"))
}

impl Cursor for Hdf5Cursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        // Metadata that made sense for a sample before is not fetched again.
        let is_known = self.file == Some(file)
            && self.expected.as_ref() == expected
            && self.shape.is_some()
            && self.blocks.again();
        self.phase = if is_known { Phase::Open } else { Phase::Length };
        self.file = Some(file);
        self.expected = expected.copied();
        self.sample = sample;
        self.shape = None;
        self.given = 0;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        loop {
            let fetched = match self.phase {
                Phase::Open | Phase::Find => self.blocks.need(self.options.piece_bytes),
                _ => None,
            };
            if let Some((offset, len)) = fetched {
                return Ok(Need::Bytes { part: 0, offset, len });
            }
            match self.phase {
                Phase::Length => return Ok(Need::Length { part: 0 }),
                Phase::Open | Phase::Find => self.parse()?,
                Phase::Piece => {
                    let offset = self.piece.offset + self.come;
                    let left = self.piece.bytes - self.come;
                    self.asked = piece_len(self.options.piece_bytes, offset, left);
                    return Ok(Need::Bytes { part: 0, offset, len: self.asked });
                }
                Phase::Done => return Ok(Need::Done),
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            Phase::Length => {
                let length = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
                self.blocks.begin(length);
                self.phase = Phase::Open;
                Ok(())
            }
            Phase::Open | Phase::Find => self.blocks.feed(bytes),
            Phase::Piece => self.feed_piece(bytes, sink),
            Phase::Done => Ok(()),
        }
    }

    fn found(&self) -> Option<FileShape> {
        self.shape
    }
}
