//! Reads a sample: the length of the file, the metadata that is needed, then the sample's bytes in each dataset, chunk by
//! chunk. As the HDF5 library does, it reads a chunk that holds several samples completely, and keeps it for the next samples.
//!
//! Long because finding, reading, decoding and keeping a chunk share the state of one sample.

use super::super::Discard;
use super::super::ahead::WantedSample;
use super::super::payload_range::PayloadRange;
use super::blocks::{FileBlocks, ParseResult, ParseStop, invalid};
use super::cache::ChunkCache;
use super::filter::{ChunkInflate, Unfilter, applied_filters};
use super::index;
use super::message::{Filter, RecordDataset};
use super::open::Contents;
use super::piece::ChunkGeometry;
use super::references::References;
use super::{
    Cursor, CursorOptions, FileShape, FormatError, MEMORY_BYTES_MAX, Need, PayloadSink, RANK_MAX,
    decode_length,
};
use crate::format::{FileMember, StoredSample};

/// Upper limits on the parts of a sample that were never written, so that a short file cannot stand for endless zeros.
const ZERO_BYTES_MAX: u64 = 1 << 30;
const ZERO_CHUNKS_MAX: u64 = 1 << 17;
static ZEROS: [u8; 4096] = [0; 4096];
/// Length of the piece of a contiguous dataset that the HDF5 library keeps (`sieve_buf_size`).
const SIEVE_BYTES: u64 = 64 << 10;

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
    sent_bytes: u64,
    /// The sample's share of the stored chunks.
    stored_bytes: f64,
    /// Chunks and bytes of the sample that were never written.
    zero_chunks: u64,
    zero_bytes: u64,
    /// Filter that could not be reversed, or type that is not decoded.
    undecoded: Option<&'static str>,
    references: References,
    inflate: ChunkInflate,
    unfilter: Unfilter,
    band: Vec<u8>,
    /// Kept chunks of each dataset.
    caches: Vec<ChunkCache>,
    /// Kept piece of each contiguous dataset.
    sieves: Vec<Sieve>,
    /// Number of samples that were begun.
    sample_count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SamplePhase {
    Length,
    Open,
    /// The next piece must be found.
    Find,
    Piece,
    /// The piece is not read: it is in memory, or was never written.
    Memory,
    /// The data that the elements of a dataset refer to.
    References,
    Done,
}

/// A range of the file in memory.
#[derive(Default)]
struct Sieve {
    offset: u64,
    bytes: Vec<u8>,
}

impl Sieve {
    fn get(&self, offset: u64, bytes: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
    }
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
    /// Length of the chunk in the file; 0 if it was never written.
    stored_bytes: u64,
    geometry: ChunkGeometry,
    work: ChunkWork,
    /// Whether the chunk is kept for other samples after it was read.
    is_kept: bool,
}

#[derive(Clone, Copy, Default)]
enum ChunkWork {
    /// The bytes are payload.
    #[default]
    PassThrough,
    /// The bytes are kept. The first ones are payload.
    FillSieve,
    /// The bytes are payload that was kept.
    Sieved,
    /// The bytes are inflated, and a range of the result is payload.
    Inflate { from: u64, to: u64 },
    /// The bytes are a sample's share of an unfiltered chunk, which is copied into a band.
    CopyShare,
    /// The bytes are a filtered chunk. Filters whose bit is set in `skipped` were not applied.
    Unfilter { skipped: u32 },
    /// The bytes are passed on as they are stored, because a filter cannot be reversed.
    Undecoded(&'static str),
    /// The chunk was never written.
    Zeros,
    /// The chunk is in memory, unfiltered.
    Kept,
}

impl Hdf5Cursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        Hdf5Cursor {
            options: options.clone(),
            wanted: WantedSample::default(),
            phase: SamplePhase::Length,
            blocks: FileBlocks::default(),
            contents: Contents::new(options),
            shape: None,
            walk: SampleWalk::default(),
            piece: ChunkPiece::default(),
            range: PayloadRange::default(),
            sent_bytes: 0,
            stored_bytes: 0.0,
            zero_chunks: 0,
            zero_bytes: 0,
            undecoded: None,
            references: References::default(),
            inflate: ChunkInflate::new(),
            unfilter: Unfilter::new(options.check_crc),
            band: Vec::new(),
            caches: Vec::new(),
            sieves: Vec::new(),
            sample_count: 0,
        }
    }

    fn open(&mut self) -> ParseResult<()> {
        let found = self.contents.open(&mut self.blocks)?;
        let shape = self.contents.check_plan(found, &self.wanted).map_err(ParseStop::Invalid)?;
        self.shape = Some(shape);
        let datasets = self.contents.datasets.len();
        self.caches.resize_with(datasets, ChunkCache::default);
        self.caches.iter_mut().for_each(|cache| cache.set_share(datasets));
        self.sieves.resize_with(datasets, Sieve::default);
        self.walk = SampleWalk::default();
        self.phase = SamplePhase::Find;
        Ok(())
    }

    /// Finds the piece at the current position of the walk.
    fn find(&mut self) -> ParseResult<()> {
        let Some(dataset) = self.contents.datasets.get(self.walk.dataset) else {
            self.phase = SamplePhase::Done;
            return Ok(());
        };
        let dataset_filter = dataset.unknown_filter();
        self.piece = self.find_piece(dataset)?;
        let samples = self.piece.geometry.sharing_samples(self.wanted.sample);
        self.stored_bytes += self.piece.stored_bytes as f64 / samples as f64;
        self.phase = SamplePhase::Piece;
        match self.piece.work {
            ChunkWork::Inflate { .. } => self.inflate.begin(),
            ChunkWork::Undecoded(kind) => self.undecoded = Some(kind),
            ChunkWork::Zeros | ChunkWork::Sieved => self.phase = SamplePhase::Memory,
            ChunkWork::FillSieve => {
                let sieve = &mut self.sieves[self.walk.dataset];
                sieve.bytes.clear();
                sieve.offset = self.piece.offset;
            }
            ChunkWork::Kept => {
                self.phase = SamplePhase::Memory;
                self.undecoded = self.undecoded.or(dataset_filter);
            }
            _ => {}
        }
        self.unfilter.bytes.clear();
        self.range = PayloadRange::new(self.piece.offset, self.piece.bytes);
        Ok(())
    }

    fn find_piece(&self, dataset: &RecordDataset) -> ParseResult<ChunkPiece> {
        let geometry = ChunkGeometry::new(dataset)?;
        let mut grid = [0; RANK_MAX];
        grid[0] = self.wanted.sample / geometry.samples;
        grid[1..].copy_from_slice(&self.walk.grid[..RANK_MAX - 1]);
        let found =
            index::find(&self.blocks, dataset, &grid[..dataset.rank], geometry.chunk_bytes)?;
        let band_bytes = geometry.band_bytes(&self.walk.grid);
        let Some(location) = found else {
            let memory_bytes = geometry.slab_bytes.max(band_bytes);
            if !geometry.is_contiguous() && memory_bytes > MEMORY_BYTES_MAX {
                return invalid(0, memory_message(memory_bytes));
            }
            return Ok(ChunkPiece { geometry, work: ChunkWork::Zeros, ..ChunkPiece::default() });
        };
        let filters = &dataset.filters;
        let is_last = (grid[0] + 1).saturating_mul(geometry.samples) > dataset.dims[0];
        let is_edge =
            dataset.has_unfiltered_edges && (is_last || geometry.is_edge(&self.walk.grid));
        let skipped = if is_edge { u32::MAX } else { location.skipped_filters };
        let is_plain = applied_filters(filters, skipped).next().is_none();
        let packed_bytes = if is_plain { None } else { location.stored_bytes };
        let stored = packed_bytes.unwrap_or(geometry.chunk_bytes);
        if location.offset.checked_add(stored).is_none_or(|end| end > self.blocks.file_bytes) {
            return invalid(
                location.offset,
                format!("a chunk of {stored} bytes extends beyond the end"),
            );
        }
        let share_start = self.wanted.sample % geometry.samples * geometry.slab_bytes;
        let is_deflated = applied_filters(filters, skipped).eq([(0, Filter::Deflate)]);
        let unknown_filter = dataset.unknown_filter();
        let cache = &self.caches[self.walk.dataset];
        // Filters can make a chunk longer.
        let fits = cache.keeps(geometry.chunk_bytes) && cache.keeps(stored / 2);
        let is_kept = dataset.is_chunked() && geometry.samples > 1 && fits;
        if is_kept && cache.has(location.offset, self.sample_count) {
            let offset = location.offset;
            let work = ChunkWork::Kept;
            return Ok(ChunkPiece {
                offset,
                bytes: 0,
                stored_bytes: stored,
                geometry,
                work,
                is_kept,
            });
        }
        // A piece is kept of files that feedrate did not write, as their library does.
        let is_sieved = self.wanted.expected.is_none() && !dataset.is_chunked();
        if is_sieved && geometry.is_contiguous() && band_bytes < SIEVE_BYTES {
            let offset = location.offset + share_start;
            let is_in_sieve = self.sieves[self.walk.dataset].get(offset, band_bytes).is_some();
            let bytes = SIEVE_BYTES.min(stored - share_start);
            let work = if is_in_sieve { ChunkWork::Sieved } else { ChunkWork::FillSieve };
            return Ok(ChunkPiece { offset, bytes, stored_bytes: stored, geometry, work, is_kept });
        }
        let (skip, bytes, work, in_memory) = match (is_plain, geometry.is_contiguous()) {
            _ if unknown_filter.is_some() => {
                (0, stored, ChunkWork::Undecoded(unknown_filter.unwrap_or_default()), 0)
            }
            _ if is_kept => {
                (0, stored, ChunkWork::Unfilter { skipped }, stored.max(geometry.chunk_bytes))
            }
            (true, true) => (share_start, band_bytes, ChunkWork::PassThrough, 0),
            (true, false) => {
                (share_start, geometry.slab_bytes, ChunkWork::CopyShare, geometry.slab_bytes)
            }
            (false, true) if is_deflated => {
                let to = share_start + band_bytes;
                (0, stored, ChunkWork::Inflate { from: share_start, to }, 0)
            }
            (false, _) => {
                (0, stored, ChunkWork::Unfilter { skipped }, stored.max(geometry.chunk_bytes))
            }
        };
        let memory_bytes = if in_memory > 0 { in_memory.max(band_bytes) } else { 0 };
        if memory_bytes > MEMORY_BYTES_MAX {
            return invalid(location.offset, memory_message(memory_bytes));
        }
        if bytes == 0 {
            return invalid(location.offset, "an empty chunk");
        }
        let offset = location.offset + skip;
        Ok(ChunkPiece { offset, bytes, stored_bytes: stored, geometry, work, is_kept })
    }

    fn feed_piece(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let ChunkPiece { geometry, work, is_kept, .. } = self.piece;
        match work {
            ChunkWork::PassThrough | ChunkWork::Undecoded(_) => {
                sink.payload(self.sent_bytes, bytes)?;
                self.sent_bytes += bytes.len() as u64;
                if is_kept {
                    self.unfilter.bytes.extend_from_slice(bytes);
                }
            }
            ChunkWork::Inflate { from, to } => {
                let sent_bytes = &mut self.sent_bytes;
                self.inflate.feed(
                    bytes,
                    self.range.position(),
                    geometry.chunk_bytes,
                    &mut |start, output| {
                        let end = start + output.len() as u64;
                        if start.max(from) < end.min(to) {
                            let range =
                                (start.max(from) - start) as usize..(end.min(to) - start) as usize;
                            let payload = &output[range];
                            sink.payload(*sent_bytes, payload)?;
                            *sent_bytes += payload.len() as u64;
                        }
                        Ok(())
                    },
                )?;
            }
            ChunkWork::CopyShare | ChunkWork::Unfilter { .. } => {
                self.unfilter.bytes.extend_from_slice(bytes);
            }
            ChunkWork::FillSieve => {
                self.sieves[self.walk.dataset].bytes.extend_from_slice(bytes);
            }
            ChunkWork::Zeros | ChunkWork::Kept | ChunkWork::Sieved => {}
        }
        self.range.feed(bytes, &mut Discard)?;
        if self.range.remaining() == 0 { self.finish_piece(sink) } else { Ok(()) }
    }

    fn finish_piece(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.phase = SamplePhase::Find;
        let ChunkPiece { offset, geometry, work, is_kept, .. } = self.piece;
        match work {
            ChunkWork::PassThrough | ChunkWork::Zeros | ChunkWork::Kept => {}
            ChunkWork::FillSieve | ChunkWork::Sieved => {
                let bytes = geometry.band_bytes(&self.walk.grid);
                let kept = self.sieves[self.walk.dataset].get(offset, bytes).unwrap_or_default();
                sink.payload(self.sent_bytes, kept)?;
                self.sent_bytes += bytes;
            }
            ChunkWork::Undecoded(_) if is_kept => self.keep_chunk(),
            ChunkWork::Undecoded(_) => {}
            ChunkWork::Inflate { .. } => self.inflate.finish(offset, geometry.chunk_bytes)?,
            ChunkWork::CopyShare => self.copy_to_band(0, sink)?,
            ChunkWork::Unfilter { skipped } => {
                let filters = &self.contents.datasets[self.walk.dataset].filters;
                let total = geometry.chunk_bytes;
                self.unfilter.undo(filters, skipped, &mut self.inflate, offset, total)?;
                self.copy_to_band(self.share_start(), sink)?;
                if is_kept {
                    self.keep_chunk();
                }
            }
        }
        if !geometry.advance(&mut self.walk.grid) {
            if self.collects_references() {
                self.references.element = self.contents.datasets[self.walk.dataset].element;
                self.phase = SamplePhase::References;
            }
            self.walk = SampleWalk { dataset: self.walk.dataset + 1, grid: [0; RANK_MAX] };
        }
        Ok(())
    }

    /// Start of the sample's share of the unfiltered chunk.
    fn share_start(&self) -> usize {
        let geometry = &self.piece.geometry;
        (self.wanted.sample % geometry.samples * geometry.slab_bytes) as usize
    }

    /// Keeps the unfiltered chunk for the next samples.
    fn keep_chunk(&mut self) {
        let ChunkPiece { offset, geometry, .. } = self.piece;
        let content = std::mem::take(&mut self.unfilter.bytes);
        let cache = &mut self.caches[self.walk.dataset];
        self.unfilter.bytes = cache.keep(offset, geometry.chunk_bytes, self.sample_count, content);
    }

    /// Passes on the sample's share of a kept chunk.
    fn feed_kept(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let offset = self.piece.offset;
        let content = self.caches[self.walk.dataset].take(offset, self.sample_count);
        let memory = std::mem::replace(&mut self.unfilter.bytes, content);
        let is_undecoded = self.contents.datasets[self.walk.dataset].unknown_filter().is_some();
        let copied = if is_undecoded {
            let sent_bytes = self.sent_bytes;
            self.sent_bytes += self.unfilter.bytes.len() as u64;
            sink.payload(sent_bytes, &self.unfilter.bytes)
        } else {
            self.copy_to_band(self.share_start(), sink)
        };
        let content = std::mem::replace(&mut self.unfilter.bytes, memory);
        self.caches[self.walk.dataset].put_back(offset, content);
        copied?;
        self.finish_piece(sink)
    }

    /// Whether the elements of the current dataset refer to data elsewhere in the file, and can be decoded.
    fn collects_references(&self) -> bool {
        let dataset = self.contents.datasets.get(self.walk.dataset);
        dataset.is_some_and(|dataset| {
            dataset.element.is_reference() && dataset.unknown_filter().is_none()
        })
    }

    /// Passes bytes of the piece on, or to the references if its elements are references.
    fn feed_part(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if !self.collects_references() {
            return self.feed_chunk(bytes, sink);
        }
        let sent_bytes = self.sent_bytes;
        let mut elements = std::mem::take(&mut self.references.elements);
        let fed = self.feed_chunk(bytes, &mut elements);
        self.references.elements = elements;
        self.sent_bytes = sent_bytes;
        self.undecoded = Some("variable-length");
        fed
    }

    fn feed_chunk(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match (self.phase, self.piece.work) {
            (SamplePhase::Memory, ChunkWork::Kept) => self.feed_kept(sink),
            (SamplePhase::Memory, ChunkWork::Sieved) => self.finish_piece(sink),
            (SamplePhase::Memory, _) => self.feed_zeros(sink),
            _ => self.feed_piece(bytes, sink),
        }
    }

    /// Passes on the zeros of a chunk that was never written.
    fn feed_zeros(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let geometry = self.piece.geometry;
        let mut left = geometry.band_bytes(&self.walk.grid);
        self.zero_chunks += 1;
        self.zero_bytes = self.zero_bytes.saturating_add(left);
        if self.zero_chunks > ZERO_CHUNKS_MAX || self.zero_bytes > ZERO_BYTES_MAX {
            let message = "a sample with too many chunks that were never written";
            return Err(FormatError::new(0, message));
        }
        let dataset = &self.contents.datasets[self.walk.dataset];
        if dataset.unknown_filter().is_some() {
            return self.finish_piece(sink);
        }
        if geometry.is_contiguous() {
            while left > 0 {
                let zeros = &ZEROS[..left.min(ZEROS.len() as u64) as usize];
                sink.payload(self.sent_bytes, zeros)?;
                self.sent_bytes += zeros.len() as u64;
                left -= zeros.len() as u64;
            }
        } else {
            self.unfilter.bytes.resize(geometry.slab_bytes as usize, 0);
            self.copy_to_band(0, sink)?;
        }
        self.finish_piece(sink)
    }

    /// Passes on pieces until the next one must be read, or until metadata is missing.
    fn feed_memory(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        while self.phase == SamplePhase::Memory {
            self.feed_part(&[], sink)?;
            if self.phase == SamplePhase::Find {
                match self.find() {
                    Ok(()) => {}
                    Err(ParseStop::Missing { .. }) => return Ok(()),
                    Err(ParseStop::Invalid(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Copies the sample's share of the current chunk into its band, and passes the band on when it is complete. The share
    /// begins at `first` of the unfiltered chunk.
    fn copy_to_band(
        &mut self,
        first: usize,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let geometry = &self.piece.geometry;
        let grid = &self.walk.grid;
        let slab = &self.unfilter.bytes[first..first + geometry.slab_bytes as usize];
        let band_bytes = geometry.band_bytes(grid);
        if geometry.is_contiguous() {
            sink.payload(self.sent_bytes, &slab[..band_bytes as usize])?;
        } else if self.options.wants_payload || self.collects_references() {
            self.band.resize(band_bytes as usize, 0);
            geometry.scatter(grid, slab, &mut self.band);
            if geometry.ends_band(grid) {
                sink.payload(self.sent_bytes, &self.band)?;
            }
        }
        if geometry.ends_band(grid) {
            self.sent_bytes += band_bytes;
        }
        Ok(())
    }

    /// Parses until metadata is missing, and requests it.
    fn parse(&mut self) -> Result<(), FormatError> {
        let parsed = if self.phase == SamplePhase::Open { self.open() } else { self.find() };
        match parsed {
            Ok(()) => Ok(()),
            Err(ParseStop::Missing { offset, bytes }) => self.blocks.request(offset, bytes),
            Err(ParseStop::Invalid(error)) => Err(error),
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
        self.sample_count += 1;
        self.shape = None;
        self.sent_bytes = 0;
        self.stored_bytes = 0.0;
        self.zero_chunks = 0;
        self.zero_bytes = 0;
        self.undecoded = None;
        self.references.begin();
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
                SamplePhase::Piece => {
                    let piece_bytes = self.options.piece_bytes;
                    // The library reads each piece in one call.
                    let is_at_once =
                        self.wanted.expected.is_none() || self.options.library.is_some();
                    return Ok(if is_at_once {
                        self.range.need_at_once(0, piece_bytes)
                    } else {
                        self.range.need(0, piece_bytes)
                    });
                }
                SamplePhase::Memory => return Ok(Need::Buffered),
                SamplePhase::References => {
                    match self.references.need(&self.blocks, self.options.piece_bytes)? {
                        Need::Done => self.phase = SamplePhase::Find,
                        need => return Ok(need),
                    }
                }
                SamplePhase::Done => return Ok(Need::Done),
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            SamplePhase::Length => {
                self.blocks.begin(decode_length(bytes));
                self.contents.begin();
                self.references.begin_file();
                self.caches.iter_mut().for_each(ChunkCache::clear);
                self.sieves.iter_mut().for_each(|sieve| sieve.bytes.clear());
                self.phase = SamplePhase::Open;
                Ok(())
            }
            SamplePhase::Open | SamplePhase::Find => self.blocks.feed(bytes),
            SamplePhase::Piece => self.feed_part(bytes, sink),
            SamplePhase::Memory => self.feed_memory(sink),
            SamplePhase::References => {
                self.references.feed(&self.blocks, bytes, &mut self.sent_bytes, sink)
            }
            SamplePhase::Done => Ok(()),
        }
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.shape
    }

    fn payload_bytes(&self) -> Option<u64> {
        let shape = self.shape?;
        let datasets = &self.contents.datasets;
        let has_references = datasets.iter().any(|dataset| dataset.element.is_reference());
        Some(if has_references { self.sent_bytes } else { shape.sample_bytes() })
    }

    fn members(&self) -> Vec<FileMember> {
        self.contents.members(self.blocks.file_bytes)
    }

    fn elsewhere(&self) -> Option<&str> {
        self.contents.elsewhere()
    }

    /// Unknown for elements of variable length, because they share heaps.
    fn stored_sample(&self) -> Option<StoredSample> {
        let first = self.contents.datasets.first()?;
        if self.contents.datasets.iter().any(|dataset| dataset.element.is_reference()) {
            return None;
        }
        let samples = first.dims[0].max(1) as f64;
        let file_bytes = self.blocks.file_bytes as f64 / samples;
        let with_metadata = self.stored_bytes + self.blocks.metadata_bytes() as f64 / samples;
        let bytes = if self.contents.are_all { file_bytes } else { with_metadata.min(file_bytes) };
        Some(StoredSample { bytes, file_bytes })
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.undecoded
    }
}

fn memory_message(bytes: u64) -> String {
    format!(
        "`{bytes}` bytes of chunks would have to be in memory at once, more than {MEMORY_BYTES_MAX}"
    )
}
