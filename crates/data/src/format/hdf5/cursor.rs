//! Reads a sample: the length of the file, the metadata that is needed, then the sample's bytes in each dataset, chunk by
//! chunk.

use super::super::Discard;
use super::super::ahead::WantedSample;
use super::super::payload_range::PayloadRange;
use super::blocks::{FileBlocks, ParseStop, Parsed, bad};
use super::filter::{ChunkInflate, Unfilter, applied};
use super::index;
use super::message::{Filter, RecordDataset};
use super::open::Contents;
use super::piece::Cut;
use super::{
    Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, RANK_MAX, length_of,
};

/// Upper limit on a chunk or band that must be in memory at once.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The cursor of the format. Created once per worker.
pub(super) struct Hdf5Cursor {
    options: CursorOptions,
    wanted: WantedSample,
    phase: SamplePhase,
    blocks: FileBlocks,
    contents: Contents,
    shape: Option<FileShape>,
    walk: SampleWalk,
    piece: ChunkPiece,
    /// Bytes of the piece that are still missing.
    range: PayloadRange,
    /// Bytes of payload passed to the sink.
    sent: u64,
    inflate: ChunkInflate,
    unfilter: Unfilter,
    band: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SamplePhase {
    Length,
    Open,
    /// The next piece must be found.
    Find,
    Piece,
    Done,
}

/// Position in the sample.
#[derive(Clone, Copy, Default)]
struct SampleWalk {
    dataset: usize,
    /// Position of the chunk, without the axis of samples.
    grid: [u64; RANK_MAX],
}

/// A range of the file, and how it is processed.
#[derive(Clone, Copy, Default)]
struct ChunkPiece {
    offset: u64,
    bytes: u64,
    cut: Cut,
    work: ChunkWork,
}

#[derive(Clone, Copy, Default)]
enum ChunkWork {
    /// The bytes are payload.
    #[default]
    Pass,
    /// The bytes are inflated, and a range of the result is payload.
    Inflate { from: u64, to: u64 },
    /// The bytes are a sample's share of an unfiltered chunk, which is copied into a band.
    Share,
    /// The bytes are a filtered chunk. Filters whose bit is set in `skipped` were not applied.
    Gather { skipped: u32 },
}

impl Hdf5Cursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        Hdf5Cursor {
            options: options.clone(),
            wanted: WantedSample::default(),
            phase: SamplePhase::Length,
            blocks: FileBlocks::default(),
            contents: Contents::default(),
            shape: None,
            walk: SampleWalk::default(),
            piece: ChunkPiece::default(),
            range: PayloadRange::default(),
            sent: 0,
            inflate: ChunkInflate::new(),
            unfilter: Unfilter::new(options.check_crc),
            band: Vec::new(),
        }
    }

    fn open(&mut self) -> Parsed<()> {
        let found = self.contents.open(&mut self.blocks)?;
        let shape = self.contents.check_plan(found, &self.wanted).map_err(ParseStop::Bad)?;
        self.shape = Some(shape);
        self.walk = SampleWalk::default();
        self.phase = SamplePhase::Find;
        Ok(())
    }

    /// Finds the piece at the current position of the walk.
    fn find(&mut self) -> Parsed<()> {
        let Some(dataset) = self.contents.datasets.get(self.walk.dataset) else {
            self.phase = SamplePhase::Done;
            return Ok(());
        };
        self.piece = self.find_piece(dataset)?;
        if let ChunkWork::Inflate { .. } = self.piece.work {
            self.inflate.begin();
        }
        self.unfilter.bytes.clear();
        self.range = PayloadRange::new(self.piece.offset, self.piece.bytes);
        self.phase = SamplePhase::Piece;
        Ok(())
    }

    fn find_piece(&self, dataset: &RecordDataset) -> Parsed<ChunkPiece> {
        let cut = Cut::new(dataset)?;
        let mut grid = [0; RANK_MAX];
        grid[0] = self.wanted.sample / cut.samples;
        grid[1..].copy_from_slice(&self.walk.grid[..RANK_MAX - 1]);
        let found = index::find(&self.blocks, dataset, &grid[..dataset.rank], cut.chunk_bytes)?;
        let Some(place) = found else {
            let sample = self.wanted.sample;
            let message =
                format!("sample {sample} was never written: the file has no place for it");
            return bad(0, message);
        };
        let filters = &dataset.filters;
        let ends_within = (grid[0] + 1).saturating_mul(cut.samples) > dataset.dims[0];
        let is_edge = dataset.keeps_edges && (ends_within || cut.is_edge(&self.walk.grid));
        let skipped = if is_edge { u32::MAX } else { place.skipped };
        let is_plain = applied(filters, skipped).next().is_none();
        let packed_bytes = if is_plain { None } else { place.stored };
        let stored = packed_bytes.unwrap_or(cut.chunk_bytes);
        if place.offset.checked_add(stored).is_none_or(|end| end > self.blocks.file_bytes) {
            return bad(place.offset, format!("a chunk of {stored} bytes extends beyond the end"));
        }
        let share_start = self.wanted.sample % cut.samples * cut.slab_bytes;
        let band_bytes = cut.band_bytes(&self.walk.grid);
        let is_deflated = applied(filters, skipped).eq([(0, Filter::Deflate)]);
        let (skip, bytes, work, in_memory) = match (is_plain, cut.is_straight()) {
            (true, true) => (share_start, band_bytes, ChunkWork::Pass, 0),
            (true, false) => (share_start, cut.slab_bytes, ChunkWork::Share, cut.slab_bytes),
            (false, true) if is_deflated => {
                let to = share_start + band_bytes;
                (0, stored, ChunkWork::Inflate { from: share_start, to }, 0)
            }
            (false, _) => (0, stored, ChunkWork::Gather { skipped }, stored.max(cut.chunk_bytes)),
        };
        let memory_bytes = if in_memory > 0 { in_memory.max(band_bytes) } else { 0 };
        if memory_bytes > MEMORY_BYTES_MAX {
            let message = format!(
                "`{memory_bytes}` bytes of chunks would have to be in memory at once, more than {MEMORY_BYTES_MAX}"
            );
            return bad(place.offset, message);
        }
        if bytes == 0 {
            return bad(place.offset, "a chunk of no bytes");
        }
        Ok(ChunkPiece { offset: place.offset + skip, bytes, cut, work })
    }

    fn feed_piece(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let ChunkPiece { cut, work, .. } = self.piece;
        match work {
            ChunkWork::Pass => {
                sink.payload(self.sent, bytes)?;
                self.sent += bytes.len() as u64;
            }
            ChunkWork::Inflate { from, to } => {
                let sent = &mut self.sent;
                self.inflate.feed(
                    bytes,
                    self.range.position(),
                    cut.chunk_bytes,
                    &mut |at, output| {
                        let end = at + output.len() as u64;
                        if at.max(from) < end.min(to) {
                            let range = (at.max(from) - at) as usize..(end.min(to) - at) as usize;
                            let payload = &output[range];
                            sink.payload(*sent, payload)?;
                            *sent += payload.len() as u64;
                        }
                        Ok(())
                    },
                )?;
            }
            ChunkWork::Share | ChunkWork::Gather { .. } => {
                self.unfilter.bytes.extend_from_slice(bytes);
            }
        }
        self.range.feed(bytes, &mut Discard)?;
        if self.range.remaining() == 0 { self.finish_piece(sink) } else { Ok(()) }
    }

    fn finish_piece(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.phase = SamplePhase::Find;
        let ChunkPiece { offset, cut, work, .. } = self.piece;
        match work {
            ChunkWork::Pass => {}
            ChunkWork::Inflate { .. } => self.inflate.finish(offset, cut.chunk_bytes)?,
            ChunkWork::Share => self.gather(0, sink)?,
            ChunkWork::Gather { skipped } => {
                let filters = &self.contents.datasets[self.walk.dataset].filters;
                let total = cut.chunk_bytes;
                self.unfilter.undo(filters, skipped, &mut self.inflate, offset, total)?;
                self.gather((self.wanted.sample % cut.samples * cut.slab_bytes) as usize, sink)?;
            }
        }
        if !cut.advance(&mut self.walk.grid) {
            self.walk = SampleWalk { dataset: self.walk.dataset + 1, grid: [0; RANK_MAX] };
        }
        Ok(())
    }

    /// Copies the sample's share of the current chunk into its band, and passes the band on when it is complete. The share
    /// begins at `first` of the unfiltered chunk.
    fn gather(&mut self, first: usize, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let cut = &self.piece.cut;
        let grid = &self.walk.grid;
        let slab = &self.unfilter.bytes[first..first + cut.slab_bytes as usize];
        let band_bytes = cut.band_bytes(grid);
        if cut.is_straight() {
            sink.payload(self.sent, &slab[..band_bytes as usize])?;
        } else if self.options.wants_payload {
            self.band.resize(band_bytes as usize, 0);
            cut.scatter(grid, slab, &mut self.band);
            if cut.ends_band(grid) {
                sink.payload(self.sent, &self.band)?;
            }
        }
        if cut.ends_band(grid) {
            self.sent += band_bytes;
        }
        Ok(())
    }

    /// Parses until metadata is missing, and requests it.
    fn parse(&mut self) -> Result<(), FormatError> {
        let parsed = if self.phase == SamplePhase::Open { self.open() } else { self.find() };
        match parsed {
            Ok(()) => Ok(()),
            Err(ParseStop::Missing { offset, bytes }) => self.blocks.want(offset, bytes),
            Err(ParseStop::Bad(error)) => Err(error),
        }
    }
}

impl Cursor for Hdf5Cursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        // Metadata that was valid for an earlier sample of the file is not fetched again.
        let wanted = WantedSample::new(file, sample, expected);
        let is_known = WantedSample { sample, ..self.wanted } == wanted
            && self.shape.is_some()
            && self.blocks.restart();
        self.phase = if is_known { SamplePhase::Open } else { SamplePhase::Length };
        self.wanted = wanted;
        self.shape = None;
        self.sent = 0;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        loop {
            match self.phase {
                SamplePhase::Length => return Ok(Need::Length { part: 0 }),
                SamplePhase::Open | SamplePhase::Find => {
                    match self.blocks.need(self.options.piece_bytes) {
                        Need::Done => self.parse()?,
                        need => return Ok(need),
                    }
                }
                SamplePhase::Piece => return Ok(self.range.need(0, self.options.piece_bytes)),
                SamplePhase::Done => return Ok(Need::Done),
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            SamplePhase::Length => {
                self.blocks.begin(length_of(bytes));
                self.phase = SamplePhase::Open;
                Ok(())
            }
            SamplePhase::Open | SamplePhase::Find => self.blocks.feed(bytes),
            SamplePhase::Piece => self.feed_piece(bytes, sink),
            SamplePhase::Done => Ok(()),
        }
    }

    fn found(&self) -> Option<FileShape> {
        self.shape
    }
}
