//! Reads one sample after another through a format's cursor: which operation comes next, without doing it.
//!
//! Both drivers carry the operations out: the real one with blocking calls, the simulated one in virtual time.

use feedrate_data::format::{Cursor, CursorOptions, Format, FormatError, Need, Part, PayloadSink};
use feedrate_data::storage::Handle;
use feedrate_measure::record::access::Follows;
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::HeadReads;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::order::SampleId;

/// The most parts a format's file has (data and its indexes).
const PARTS_MAX: usize = 4;

/// The state of one worker's reading.
pub struct SampleReader {
    cursor: Box<dyn Cursor>,
    parts: &'static [Part],
    keeps_open: bool,
    trusts_plan: bool,
    /// Only the plan tells several samples of a file apart.
    needs_plan: bool,
    file: Option<u64>,
    data_path: String,
    path: String,
    handles: [Option<Handle>; PARTS_MAX],
    /// Where the last read of each open part ended.
    ends: [Option<u64>; PARTS_MAX],
    /// Reads of the first part where it is opened, and where they go on.
    head: Option<HeadReads>,
    head_left: u32,
    head_at: u64,
    /// The part that the last operation is of.
    part: usize,
    /// Numbers of the files whose parts were opened last.
    numbers: [u64; PARTS_MAX],
    /// Payload of a sample, where the plan says.
    payload_bytes: Option<u64>,
    /// A file is one sample, though its array may have an axis that could be one of samples.
    is_whole: bool,
    pending: Pending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    Open(usize),
    Cursor,
}

/// An operation of the storage, to be done next.
#[derive(Debug)]
pub enum Op {
    /// Open [`SampleReader::path`], then [`SampleReader::opened`].
    Open,
    /// Ask the length of [`SampleReader::handle`], then [`SampleReader::feed`] it as 8 little-endian bytes.
    Length,
    /// Read of [`SampleReader::handle`], then [`SampleReader::feed`] what came.
    Read {
        /// From its start.
        offset: u64,
        /// At most this many bytes.
        len: usize,
    },
    /// [`SampleReader::feed`] bytes out of the last that were read, without reading them once more.
    Again {
        /// From its start.
        offset: u64,
        /// This many bytes.
        len: usize,
    },
    /// [`SampleReader::feed`] an empty slice: what comes next was read before.
    Kept,
    /// Close.
    Close(Handle),
    /// The sample is whole.
    Done,
}

impl SampleReader {
    /// For samples in `format`. `trusts_plan`: files must be what the plan says; else what their headers say.
    pub fn new(format: &Format, options: &CursorOptions, trusts_plan: bool) -> Self {
        assert!(format.parts.len() <= PARTS_MAX, "a format of more than {PARTS_MAX} parts");
        SampleReader {
            cursor: format.reader(options),
            parts: format.parts,
            keeps_open: format.member().has(Ability::KeepsOpen),
            trusts_plan,
            needs_plan: format.member().has(Ability::NeedsPlan),
            file: None,
            data_path: String::with_capacity(256),
            path: String::with_capacity(256),
            handles: Default::default(),
            ends: [None; PARTS_MAX],
            head: None,
            head_left: 0,
            head_at: 0,
            part: 0,
            numbers: [0; PARTS_MAX],
            payload_bytes: None,
            is_whole: false,
            pending: Pending::Nothing,
        }
    }

    /// With reads of the head of each file that is opened, of which nothing is made.
    pub fn with_head(self, head: Option<HeadReads>) -> Self {
        SampleReader { head, ..self }
    }

    /// Start on a sample. Files kept open from another file are closed by the next operations.
    pub fn begin(&mut self, id: SampleId, layout: &Layout) {
        if self.file != Some(id.file) {
            debug_assert!(self.keeps_open || self.handles.iter().all(Option::is_none));
            layout.write_path(id.file, &mut self.data_path);
            self.path.clone_from(&self.data_path);
        }
        let trusts_plan = self.trusts_plan || self.needs_plan && layout.samples_per_file() > 1;
        let shape = trusts_plan.then(|| layout.shape(id.file));
        self.payload_bytes = shape.map(|shape| shape.sample_bytes());
        self.is_whole = !self.keeps_open && layout.samples_per_file() == 1;
        self.cursor.begin(id.file, id.sample, shape.as_ref());
        self.pending = if self.file == Some(id.file) { Pending::Cursor } else { Pending::Nothing };
        self.file = Some(id.file);
    }

    /// The next operation. Call again only after the last was completed.
    ///
    /// # Errors
    /// The file is not what its format says.
    pub fn next_op(&mut self) -> Result<Op, FormatError> {
        if let Some(head) = self.head_to_read() {
            self.part = 0;
            return Ok(Op::Read { offset: self.head_at, len: head.bytes as usize });
        }
        if self.pending == Pending::Nothing {
            if let Some(handle) = self.take_open() {
                return Ok(Op::Close(handle));
            }
            self.pending = Pending::Cursor;
        }
        let need = self.cursor.need()?;
        let part = match need {
            Need::Bytes { part, .. } | Need::Again { part, .. } | Need::Length { part } => part,
            Need::Kept => return Ok(Op::Kept),
            Need::Done if self.keeps_open => return Ok(Op::Done),
            Need::Done => {
                return Ok(match self.take_open() {
                    Some(handle) => Op::Close(handle),
                    None => {
                        self.file = None;
                        Op::Done
                    }
                });
            }
        };
        self.part = part;
        if self.handles[part].is_none() {
            self.pending = Pending::Open(part);
            self.numbers[part] = self.file.unwrap_or_default();
            self.parts[part].write_path(&self.data_path, &mut self.path);
            return Ok(Op::Open);
        }
        Ok(match need {
            Need::Bytes { offset, len, .. } => Op::Read { offset, len },
            Need::Again { offset, len, .. } => Op::Again { offset, len },
            _ => Op::Length,
        })
    }

    /// The file to open, or the one being read.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file being read, by the operation that was asked for last.
    pub fn handle(&self) -> &Handle {
        self.handles[self.part].as_ref().expect("what is read was opened by the operation before")
    }

    /// Number of the file being read.
    pub fn file(&self) -> Option<u64> {
        self.file
    }

    /// Number of what the last operation is of among all files, each part of a format a file of its own.
    pub fn part(&self) -> u64 {
        self.numbers[self.part] * self.parts.len() as u64 + self.part as u64
    }

    /// [`Op::Open`] was done.
    pub fn opened(&mut self, handle: Handle) {
        if let Pending::Open(part) = self.pending {
            self.handles[part] = Some(handle);
            self.ends[part] = None;
            self.pending = Pending::Cursor;
            if part == 0 {
                (self.head_left, self.head_at) = (self.head.map_or(0, |head| head.reads), 0);
            }
        }
    }

    /// [`Op::Read`] was done: what it was to the read before it.
    pub fn has_read(&mut self, offset: u64, bytes: u64) -> Follows {
        let end = &mut self.ends[self.part];
        Follows::new(end.replace(offset + bytes), offset)
    }

    /// Payload of the sample that is whole; `None` where neither the plan nor the file says.
    pub fn payload_bytes(&self) -> Option<u64> {
        self.payload_bytes.or_else(|| match self.cursor.found() {
            Some(shape) if self.is_whole => Some(shape.payload_bytes()),
            _ => self.cursor.payload_bytes(),
        })
    }

    /// Kind of the sample that is whole, where it should have been decoded and could not.
    pub fn undecoded(&self) -> Option<&'static str> {
        self.cursor.undecoded()
    }

    /// The bytes that were asked for; fewer where the file ends.
    ///
    /// # Errors
    /// The file is not what its format says, or the sink refused the payload.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if let Some(head) = self.head_to_read() {
            let is_end = (bytes.len() as u64) < head.bytes;
            self.head_left = if is_end { 0 } else { self.head_left - 1 };
            self.head_at += bytes.len() as u64;
            return Ok(());
        }
        self.cursor.feed(bytes, sink)
    }

    /// Reads of the file's head, while one of them is the next operation.
    fn head_to_read(&self) -> Option<HeadReads> {
        if self.head_left > 0 { self.head } else { None }
    }

    /// A file still open, to be closed at the end of the run.
    pub fn take_open(&mut self) -> Option<Handle> {
        self.part = self.handles.iter().position(Option::is_some)?;
        self.handles[self.part].take()
    }
}
