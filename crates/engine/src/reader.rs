//! Decides which storage operation a sample needs next. The cursor of the sample's format says which bytes it needs.
//!
//! Both drivers execute the operations: the real one with blocking calls, the simulated one in virtual time.

use feedrate_data::format::{
    Cursor, CursorOptions, Format, FormatError, Need, Part, PayloadSink, ShareCursor,
};
use feedrate_data::storage::Handle;
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::access::ReadPosition;
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::order::SampleId;
use feedrate_spec::plan::{HeadReads, Library, OpeningRequest};

/// Upper limit of the parts of a format's file (data and its indexes).
const PARTS_MAX: usize = 4;

/// The state of one worker's reads.
pub struct SampleReader {
    cursor: Box<dyn Cursor>,
    parts: &'static [Part],
    keeps_open: bool,
    trusts_plan: bool,
    /// Whether samples are verified, so that a broken one is an error.
    verifies: bool,
    /// Whether the boundaries of samples within a file are known only from the plan.
    needs_plan: bool,
    file: Option<u64>,
    data_path: String,
    path: String,
    handles: [Option<Handle>; PARTS_MAX],
    /// End of the last read of each open part.
    ends: [Option<u64>; PARTS_MAX],
    /// Additional reads of the head of a file after it is opened.
    head: Option<HeadReads>,
    /// Remaining head reads of the current file.
    head_left: u32,
    /// Offset of the next head read.
    head_offset: u64,
    /// Requests of the format's library after a file is opened.
    opening: &'static [OpeningRequest],
    /// Number of these requests that were made, or that are beyond the end of the file.
    opened: usize,
    /// Part of the last operation.
    part: usize,
    /// For each part, the number of the file that was opened last.
    part_files: [u64; PARTS_MAX],
    /// Payload of the sample, if the plan determines it.
    payload_bytes: Option<u64>,
    /// Whether a file holds one sample, even if the first axis of its array could be a sample axis.
    is_single_sample: bool,
    pending: Pending,
    /// Whether the further samples of a broken file cannot be found.
    is_container: bool,
    /// The last broken file.
    broken_file: Option<u64>,
    /// Reads the further samples of a broken container.
    shares: ShareCursor,
    state: SampleState,
    broken_samples: u64,
    complete_samples: u64,
}

/// Kind of foreign samples whose content contradicts their format.
const BROKEN: &str = "broken file";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleState {
    Sound,
    /// The sample is broken, so the rest of it is not read.
    Broken,
    /// A sample before it in the same container was broken, so an equal share of the file is read instead.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    Open(usize),
    Cursor,
}

/// The next operation of a sample.
#[derive(Debug)]
pub enum Op {
    /// Open [`SampleReader::path`], then call [`SampleReader::set_handle`].
    Open,
    /// Get the length of [`SampleReader::handle`], then pass it to [`SampleReader::feed`] as 8 little-endian bytes.
    Length,
    /// Read from [`SampleReader::handle`], then pass the bytes to [`SampleReader::feed`].
    Read {
        /// Offset in the file.
        offset: u64,
        /// Largest number of bytes.
        len: usize,
        /// As in [`Need::Bytes`].
        end: u64,
    },
    /// Pass bytes of the last read to [`SampleReader::feed`] again, without another read.
    Again {
        /// Offset in the file.
        offset: u64,
        /// Number of bytes.
        len: usize,
    },
    /// Pass an empty slice to [`SampleReader::feed`]; the cursor has kept the needed bytes from earlier reads.
    Kept,
    /// Close the file.
    Close(Handle),
    /// The sample is complete.
    Done,
}

impl Op {
    /// A read that no other one continues.
    fn read(offset: u64, bytes: u64) -> Self {
        Op::Read { offset, len: bytes as usize, end: offset + bytes }
    }
}

impl SampleReader {
    /// Creates a reader of samples in `format`. If `trusts_plan` is set, the plan gives the shapes of files; otherwise their headers do.
    pub fn new(format: &Format, options: &CursorOptions, trusts_plan: bool) -> Self {
        assert!(format.parts.len() <= PARTS_MAX, "a format of more than {PARTS_MAX} parts");
        SampleReader {
            cursor: format.reader(options),
            parts: format.parts,
            keeps_open: format.member().has(Ability::KeepsOpen),
            trusts_plan,
            verifies: false,
            needs_plan: format.member().has(Ability::NeedsPlan),
            file: None,
            data_path: String::with_capacity(256),
            path: String::with_capacity(256),
            handles: Default::default(),
            ends: [None; PARTS_MAX],
            head: None,
            head_left: 0,
            head_offset: 0,
            opening: &[],
            opened: 0,
            part: 0,
            part_files: [0; PARTS_MAX],
            payload_bytes: None,
            is_single_sample: false,
            pending: Pending::Nothing,
            is_container: format.member().has(Ability::HoldsFiles),
            broken_file: None,
            shares: ShareCursor::new(options),
            state: SampleState::Sound,
            broken_samples: 0,
            complete_samples: 0,
        }
    }

    /// Adds reads of the head of each opened file. Their bytes are discarded.
    pub fn with_head(self, head: Option<HeadReads>) -> Self {
        SampleReader { head, ..self }
    }

    /// Adds the requests of the format's library after a file is opened. Their bytes are discarded.
    pub fn with_library(self, library: Option<Library>) -> Self {
        let opening = library.map_or(&[][..], |library| library.requests().opening);
        SampleReader { opened: opening.len(), opening, ..self }
    }

    /// Makes a broken sample an error if samples are verified.
    pub fn with_verification(self, verifies: bool) -> Self {
        SampleReader { verifies, ..self }
    }

    /// Starts a sample. If it is in another file, the next operations close the parts that are still open.
    pub fn begin(&mut self, id: SampleId, layout: &Layout) {
        if self.file != Some(id.file) {
            debug_assert!(self.keeps_open || self.handles.iter().all(Option::is_none));
            layout.write_path(id.file, &mut self.data_path);
            self.path.clone_from(&self.data_path);
        }
        let trusts_plan = self.trusts_plan || self.needs_plan && layout.samples_per_file() > 1;
        let shape = trusts_plan.then(|| layout.shape(id.file));
        self.payload_bytes = shape.map(|shape| shape.sample_bytes());
        self.is_single_sample = !self.keeps_open && layout.samples_per_file() == 1;
        self.cursor.begin(id.file, id.sample, shape.as_ref());
        self.state = SampleState::Sound;
        if self.is_container && self.broken_file == Some(id.file) {
            self.state = SampleState::Lost;
            self.broken_samples += 1;
            self.shares.begin(id.file, id.sample, Some(&layout.shape(id.file)));
        }
        self.pending = if self.file == Some(id.file) { Pending::Cursor } else { Pending::Nothing };
        self.file = Some(id.file);
    }

    /// Returns the next operation. Execute it before the next call.
    ///
    /// # Errors
    /// The file contradicts its format.
    pub fn next_op(&mut self) -> Result<Op, FormatError> {
        if let Some(request) = self.opening.get(self.opened) {
            self.part = 0;
            return Ok(Op::read(request.offset, request.bytes));
        }
        if let Some(head) = self.head_to_read() {
            self.part = 0;
            return Ok(Op::read(self.head_offset, head.bytes));
        }
        if self.pending == Pending::Nothing {
            if let Some(handle) = self.take_open_handle() {
                return Ok(Op::Close(handle));
            }
            self.pending = Pending::Cursor;
        }
        let needed = match self.state {
            SampleState::Sound => self.cursor.need(),
            SampleState::Broken => Ok(Need::Done),
            SampleState::Lost => self.shares.need(),
        };
        let need = match needed {
            Ok(need) => need,
            Err(error) => {
                self.tolerate(error)?;
                Need::Done
            }
        };
        let part = match need {
            Need::Bytes { part, .. } | Need::Again { part, .. } | Need::Length { part } => part,
            Need::Buffered => return Ok(Op::Kept),
            Need::Done => {
                let handle = if self.keeps_open { None } else { self.take_open_handle() };
                if let Some(handle) = handle {
                    return Ok(Op::Close(handle));
                }
                if !self.keeps_open {
                    self.file = None;
                }
                self.complete_samples += u64::from(!self.is_broken());
                return Ok(Op::Done);
            }
        };
        self.part = part;
        if self.handles[part].is_none() {
            self.pending = Pending::Open(part);
            self.part_files[part] = self.file.unwrap_or_default();
            self.parts[part].write_path(&self.data_path, &mut self.path);
            return Ok(Op::Open);
        }
        Ok(match need {
            Need::Bytes { offset, len, end, .. } => Op::Read { offset, len, end },
            Need::Again { offset, len, .. } => Op::Again { offset, len },
            _ => Op::Length,
        })
    }

    /// Returns the path of the file to open, or of the file being read.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the handle of the file of the last operation.
    pub fn handle(&self) -> &Handle {
        self.handles[self.part].as_ref().expect("a part is opened before it is read")
    }

    /// Returns the number of the file being read.
    pub fn file(&self) -> Option<u64> {
        self.file
    }

    /// Returns the number of the last operation's part among the parts of all files.
    pub fn part(&self) -> u64 {
        self.part_files[self.part] * self.parts.len() as u64 + self.part as u64
    }

    /// Reports that [`Op::Open`] was executed.
    pub fn set_handle(&mut self, handle: Handle) {
        if let Pending::Open(part) = self.pending {
            self.handles[part] = Some(handle);
            self.ends[part] = None;
            self.pending = Pending::Cursor;
            if part == 0 {
                self.head_left = self.head.map_or(0, |head| head.reads);
                self.head_offset = 0;
                self.opened = 0;
            }
        }
    }

    /// Reports that [`Op::Read`] was executed. Returns its position relative to the previous read.
    pub fn record_read(&mut self, offset: u64, bytes: u64) -> ReadPosition {
        let end = &mut self.ends[self.part];
        ReadPosition::new(end.replace(offset + bytes), offset)
    }

    /// Returns the payload bytes of the complete sample; `None` if neither the plan nor the file gives them.
    fn payload_bytes(&self) -> Option<u64> {
        self.payload_bytes.or_else(|| {
            if self.state == SampleState::Lost {
                return self.shares.payload_bytes();
            }
            let file = if self.is_single_sample { self.cursor.file_shape() } else { None };
            file.map_or_else(|| self.cursor.payload_bytes(), |file| Some(file.payload_bytes()))
        })
    }

    /// Returns the kind of the complete sample if it should have been decoded but could not be decoded.
    fn undecoded(&self) -> Option<&'static str> {
        if self.is_broken() { Some(BROKEN) } else { self.cursor.undecoded_type() }
    }

    /// Counts the complete sample. `file` is the name of its file in messages.
    pub fn count_sample(&self, counters: &mut IoCounters, file: &str) {
        self.count_samples(1, self.payload_bytes(), counters, file);
    }

    /// Returns the number of samples after the complete one in its file that [`SampleReader::take_ready`] can take.
    pub fn ready_samples(&self) -> u64 {
        if self.is_broken() { 0 } else { self.cursor.ready_samples() }
    }

    /// Completes the next `samples` samples, at most [`SampleReader::ready_samples`], and counts them.
    pub fn take_ready(&mut self, samples: u64, counters: &mut IoCounters, file: &str) {
        let payload_bytes = self.cursor.take_ready(samples);
        self.complete_samples += samples;
        self.count_samples(samples, Some(payload_bytes), counters, file);
    }

    /// Counts samples that are like the complete one, with `payload_bytes` bytes together.
    fn count_samples(
        &self,
        samples: u64,
        payload_bytes: Option<u64>,
        counters: &mut IoCounters,
        file: &str,
    ) {
        counters.access.count_samples(samples, payload_bytes);
        counters.count_undecoded(self.undecoded(), samples, file);
        // Files with a planned payload contain nothing else.
        let is_foreign = self.payload_bytes.is_none() && !self.is_broken();
        if let Some(name) = self.cursor.elsewhere().filter(|_| is_foreign) {
            counters.note_elsewhere(name);
        }
        if let Some(stored) = self.cursor.stored_sample().filter(|_| is_foreign) {
            let samples = samples as f64;
            counters.count_stored(samples * stored.bytes, samples * stored.file_bytes);
        }
    }

    /// Passes the requested bytes to the cursor. At the end of the file, `bytes` may be shorter than requested.
    ///
    /// # Errors
    /// The file contradicts its format, or the sink refused the payload.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if let Some(request) = self.opening.get(self.opened) {
            let end = request.offset + bytes.len() as u64;
            let reached_end = (bytes.len() as u64) < request.bytes;
            self.opened += 1;
            let is_beyond = |next: &&OpeningRequest| reached_end && end <= next.offset;
            self.opened += self.opening[self.opened..].iter().take_while(is_beyond).count();
            return Ok(());
        }
        if let Some(head) = self.head_to_read() {
            let reached_end = (bytes.len() as u64) < head.bytes;
            self.head_left = if reached_end { 0 } else { self.head_left - 1 };
            self.head_offset += bytes.len() as u64;
            return Ok(());
        }
        let fed = match self.state {
            SampleState::Lost => self.shares.feed(bytes, sink),
            _ => self.cursor.feed(bytes, sink),
        };
        fed.or_else(|error| self.tolerate(error))
    }

    /// Ends a foreign sample that is broken, so that one file in a large folder does not end a run. Returns the error if most of the
    /// samples are broken, if the file has no such sample, or if samples are verified.
    fn tolerate(&mut self, error: FormatError) -> Result<(), FormatError> {
        let is_missing = error.samples.is_some();
        let is_planned = self.payload_bytes.is_some();
        if is_planned || is_missing || self.verifies || self.complete_samples < self.broken_samples
        {
            return Err(error);
        }
        self.broken_samples += 1;
        self.broken_file = self.file;
        self.state = SampleState::Broken;
        Ok(())
    }

    /// Whether the current sample is not read as a sample of its format.
    fn is_broken(&self) -> bool {
        self.state != SampleState::Sound
    }

    /// Returns the head reads if one of them is the next operation.
    fn head_to_read(&self) -> Option<HeadReads> {
        if self.head_left > 0 { self.head } else { None }
    }

    /// Takes the handle of a part that is still open.
    pub fn take_open_handle(&mut self) -> Option<Handle> {
        self.part = self.handles.iter().position(Option::is_some)?;
        self.handles[self.part].take()
    }
}
