//! Finds the records of a file: at computed offsets with a plan, or one after another in foreign files. A sample is the feature of
//! bytes of its record, or the whole message if it has only numbers or is not a `tf.train.Example`.

use super::super::Discard;
use super::super::encoded::RECORD;
use super::ahead::{ByteCollector, Finder, ReadOrder, WantedSample, check_length};
use super::example::{ScanEnd, Scanner};
use super::{
    CRC_BYTES, CursorOptions, FRAME_BYTES, FileShape, FormatError, IMAGE, PayloadSink,
    check_sample, data_bytes, decode_length, mask_crc, record_bytes, shape_of_bytes, truncated,
};

/// Upper limit on the length of a message without a feature of bytes, which is kept in memory.
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// [`Finder`] of the format.
pub(super) struct Records {
    piece_bytes: u64,
    check_crc: bool,
    expected: Option<FileShape>,
    wanted: u64,
    length: u64,
    /// Number of the current record.
    record: u64,
    /// Offset of the current record.
    start: u64,
    /// Length of the current record with its frame; 0 before the first.
    record_bytes: u64,
    offset: u64,
    phase: RecordPhase,
    frame: ByteCollector,
    scanner: Scanner,
    crc: u32,
    has_renamed_feature: bool,
    /// Whether messages are kept, because one of the file had no feature of bytes.
    keeps_message: bool,
    /// Whether the current message is not an example, so that its contents are unknown.
    is_opaque: bool,
    message: Vec<u8>,
    /// Length of the message, if it is the sample.
    whole_message_bytes: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordPhase {
    Frame,
    Message,
    Crc,
    Done,
}

impl Records {
    pub(super) fn new(options: &CursorOptions) -> Self {
        Records {
            piece_bytes: options.piece_bytes as u64,
            check_crc: options.check_crc,
            expected: None,
            wanted: 0,
            length: 0,
            record: 0,
            start: 0,
            record_bytes: 0,
            offset: 0,
            phase: RecordPhase::Frame,
            frame: ByteCollector::default(),
            scanner: Scanner::new(IMAGE),
            crc: 0,
            has_renamed_feature: false,
            keeps_message: false,
            is_opaque: false,
            message: Vec::new(),
            whole_message_bytes: None,
        }
    }

    /// Goes to the frame of a record.
    fn go_to(&mut self, record: u64, start: u64) {
        (self.record, self.start, self.offset) = (record, start, start);
        self.phase = RecordPhase::Frame;
        self.frame.begin(FRAME_BYTES);
    }

    fn message_end(&self) -> u64 {
        self.start + self.record_bytes - CRC_BYTES
    }

    fn read_frame(&mut self) -> Result<(), FormatError> {
        let (length, crc) = self.frame.bytes.split_at(FRAME_BYTES - CRC_BYTES as usize);
        if mask_crc(crc32c::crc32c(length)).to_le_bytes() != crc {
            let message = "no record begins here: the checksum of its length is wrong";
            return Err(FormatError::new(self.start, message));
        }
        let length = decode_length(length);
        let bytes = length.checked_add(FRAME_BYTES as u64 + CRC_BYTES);
        let left = self.length - self.start;
        let Some(record_bytes) = bytes.filter(|&bytes| bytes <= left) else {
            let available = left.saturating_sub(FRAME_BYTES as u64);
            let message = format!(
                "a record of {length} bytes, but the file ends {available} bytes after its length"
            );
            return Err(FormatError::new(self.start, message));
        };
        if self.expected.is_some() && self.record_bytes != record_bytes {
            let planned = self.record_bytes;
            let message =
                format!("a record of {record_bytes} bytes in all, but the plan says {planned}");
            return Err(FormatError::new(self.start, message));
        }
        self.record_bytes = record_bytes;
        if self.record < self.wanted {
            self.go_to(self.record + 1, self.start + record_bytes);
            return Ok(());
        }
        let planned = self.expected.map(|shape| shape.sample_bytes());
        self.scanner.begin(self.offset, self.message_end() - self.offset, planned);
        self.crc = 0;
        self.message.clear();
        self.is_opaque = false;
        self.phase = RecordPhase::Message;
        // A message without bytes needs no sink.
        self.check_end(&mut Discard)
    }

    fn read_message(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let len = (self.message_end() - self.offset).min(bytes.len() as u64);
        let piece = &bytes[..len as usize];
        if self.check_crc {
            self.crc = crc32c::crc32c_append(self.crc, piece);
        }
        if self.can_keep_message() {
            self.message.extend_from_slice(piece);
        }
        if !self.is_opaque
            && let Err(error) = self.scanner.scan(piece, sink)
        {
            self.make_opaque(error)?;
            if !self.ensure_kept() {
                return Ok(());
            }
        }
        self.offset += len;
        self.check_end(sink)
    }

    fn message_bytes(&self) -> u64 {
        self.record_bytes - CRC_BYTES - FRAME_BYTES as u64
    }

    fn can_keep_message(&self) -> bool {
        self.keeps_message && self.message_bytes() <= KEPT_BYTES_MAX
    }

    /// Returns whether the message is kept. If not, goes back to its record; it and later messages of the file are kept then.
    fn ensure_kept(&mut self) -> bool {
        let is_kept = std::mem::replace(&mut self.keeps_message, true);
        if !is_kept {
            self.go_to(self.record, self.start);
        }
        is_kept
    }

    /// Stops scanning a foreign message that is not an example. Returns the error if it has the start of one, or is too long to be kept.
    fn make_opaque(&mut self, error: FormatError) -> Result<(), FormatError> {
        let is_too_long = KEPT_BYTES_MAX < self.message_bytes();
        if self.expected.is_some() || self.scanner.has_bytes() || is_too_long {
            return Err(error);
        }
        self.is_opaque = true;
        Ok(())
    }

    /// Checks at the end of the message whether the sample was found.
    fn check_end(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.offset < self.message_end() {
            return Ok(());
        }
        let unknown = ScanEnd::Missing(String::new());
        let end = match self.scanner.end() {
            _ if self.is_opaque => unknown,
            Ok(end) => end,
            Err(error) => {
                self.make_opaque(error)?;
                unknown
            }
        };
        match end {
            ScanEnd::Found => {
                self.begin_crc();
                Ok(())
            }
            // The name of the sample's feature is known now, so the record is read again.
            ScanEnd::Renamed if self.expected.is_none() && !self.has_renamed_feature => {
                self.has_renamed_feature = true;
                self.go_to(self.record, self.start);
                Ok(())
            }
            ScanEnd::Renamed => {
                Err(FormatError::new(self.start, format!("a record without `{IMAGE}`")))
            }
            ScanEnd::Missing(names)
                if self.expected.is_none() && self.message_bytes() <= KEPT_BYTES_MAX =>
            {
                if !self.ensure_kept() {
                    return Ok(());
                }
                if names.is_empty() {
                    sink.begin_encoded(RECORD);
                }
                sink.payload(0, &self.message)?;
                self.whole_message_bytes = Some(self.message_bytes());
                self.begin_crc();
                Ok(())
            }
            ScanEnd::Missing(names) => {
                let names = if names.is_empty() { "none" } else { &names };
                let message = format!("a record without a feature of bytes; its features: {names}");
                Err(FormatError::new(self.start, message))
            }
        }
    }

    fn begin_crc(&mut self) {
        self.phase = RecordPhase::Crc;
        self.frame.begin(CRC_BYTES as usize);
    }

    fn read_crc(&mut self) -> Result<(), FormatError> {
        let stored = self.frame.bytes.first_chunk().copied().map_or(0, u32::from_le_bytes);
        let computed = mask_crc(self.crc);
        if self.check_crc && stored != computed {
            let message = format!(
                "record {} has the checksum `{stored:08x}`, but its bytes have `{computed:08x}`",
                self.record
            );
            return Err(FormatError::new(self.start, message));
        }
        self.record += 1;
        self.start = self.offset;
        self.phase = RecordPhase::Done;
        Ok(())
    }
}

impl Finder for Records {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        self.expected = wanted.expected;
        self.wanted = wanted.sample;
        self.has_renamed_feature = false;
        self.whole_message_bytes = None;
        self.keeps_message &= order != ReadOrder::NewFile;
        match &wanted.expected {
            Some(shape) => {
                self.scanner.request(IMAGE);
                self.record_bytes = record_bytes(shape);
                self.go_to(wanted.sample, wanted.sample.saturating_mul(self.record_bytes));
            }
            None if order == ReadOrder::Forward => self.go_to(self.record, self.start),
            None => {
                // Another file may use another name for the feature.
                if order == ReadOrder::NewFile {
                    self.scanner.request(IMAGE);
                }
                self.record_bytes = 0;
                self.go_to(0, 0);
            }
        }
    }

    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.length = bytes;
        let Some(shape) = &self.expected else { return Ok(()) };
        check_length(bytes, shape, data_bytes(shape))?;
        check_sample(shape, self.wanted)
    }

    fn offset(&self) -> Option<u64> {
        (self.phase != RecordPhase::Done).then_some(self.offset)
    }

    fn end(&self) -> u64 {
        match self.phase {
            RecordPhase::Done => self.offset,
            RecordPhase::Frame if self.expected.is_none() => {
                let is_passed_over =
                    self.record < self.wanted && self.record_bytes >= self.piece_bytes;
                if is_passed_over { self.start + FRAME_BYTES as u64 } else { u64::MAX }
            }
            _ => self.start + self.record_bytes,
        }
    }

    fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.phase == RecordPhase::Message {
            return self.read_message(bytes, sink);
        }
        self.offset += self.frame.take(bytes) as u64;
        match self.phase {
            RecordPhase::Frame if self.frame.missing_bytes() == 0 => self.read_frame(),
            RecordPhase::Crc if self.frame.missing_bytes() == 0 => self.read_crc(),
            _ => Ok(()),
        }
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        if self.phase == RecordPhase::Frame && self.offset == self.start {
            let contents = format!("{} records", self.record);
            return Err(FormatError::no_sample(self.offset, self.record, contents, self.wanted));
        }
        let end = self.start + self.record_bytes.max(FRAME_BYTES as u64);
        Err(truncated(self.offset, end.saturating_sub(self.offset).max(1)))
    }

    /// Samples of foreign files are bytes. The number of records is known only at the last one.
    fn file_shape(&self) -> Option<FileShape> {
        let (end, samples) = match self.phase {
            RecordPhase::Frame => return None,
            RecordPhase::Done => (self.offset, self.record),
            _ => (self.start + self.record_bytes, self.record + 1),
        };
        if self.expected.is_some() {
            return self.expected;
        }
        let shape = shape_of_bytes(self.payload_bytes()?, samples);
        (end == self.length).then_some(shape)
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.whole_message_bytes.or_else(|| self.scanner.payload_bytes())
    }
}
