//! Scans one `tf.train.Example`, which arrives in pieces of any length, and passes on the sample in it without a copy.
//!
//! The structure is `Example { features: Features { feature: map<string, Feature> } }`. A `Feature` is a list of bytes, of
//! floats or of integers. Map entries may have any order. Unknown fields are skipped.

use super::{FormatError, PayloadSink};

/// Name of the feature with an image in TensorFlow's datasets. There may be other features of bytes.
const ENCODED: &[u8] = b"image/encoded";
/// Upper limit on the length of a feature name.
const NAME_BYTES_MAX: usize = 1024;
/// Upper limit on the length of the names kept for an error.
const NAMES_BYTES_MAX: usize = 512;

/// Levels of nested messages that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageLevel {
    Example,
    Features,
    Entry,
    Feature,
    BytesList,
}

const LEVELS: [MessageLevel; 5] = [
    MessageLevel::Example,
    MessageLevel::Features,
    MessageLevel::Entry,
    MessageLevel::Feature,
    MessageLevel::BytesList,
];

/// Meaning of the next bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextBytes {
    Tag,
    /// Length of the field with this number.
    Length(u64),
    Integer,
    /// This number of bytes of a field's content.
    Bytes(FieldContent, u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldContent {
    Name,
    Payload,
    Unknown,
}

/// Result of a message that has ended.
pub(super) enum ScanEnd {
    Found,
    /// There is no feature with the requested name, but another one of bytes. Its name is requested from now on.
    Renamed,
    /// There is no feature of bytes. Contains the names of all features; none if the message is not an example.
    Missing(String),
}

/// Scanner of one message.
pub(super) struct Scanner {
    /// The name of the feature that is the sample.
    wanted: Vec<u8>,
    /// Name of the feature of bytes to use if the requested one is missing: the feature with an image, or else the largest one.
    fallback: Vec<u8>,
    fallback_bytes: u64,
    /// Offset of the message in the file.
    origin: u64,
    /// Offset in the message.
    offset: u64,
    next: NextBytes,
    /// End of each open level.
    ends: [u64; LEVELS.len()],
    depth: usize,
    varint: u64,
    shift: u32,
    /// Name of the current feature.
    name: Vec<u8>,
    /// Names of all features, for errors.
    names: Vec<u8>,
    /// Whether the requested feature was found.
    is_found: bool,
    /// Planned length of the payload.
    expected: Option<u64>,
    /// Number of payload bytes passed to the sink.
    sent_bytes: u64,
    /// Length of the payload, once known.
    total: Option<u64>,
}

impl Scanner {
    /// A scanner for the feature called `name`.
    pub(super) fn new(name: &str) -> Self {
        Scanner {
            wanted: name.as_bytes().to_vec(),
            fallback: Vec::with_capacity(NAME_BYTES_MAX),
            fallback_bytes: 0,
            origin: 0,
            offset: 0,
            next: NextBytes::Tag,
            ends: [0; LEVELS.len()],
            depth: 0,
            varint: 0,
            shift: 0,
            name: Vec::with_capacity(NAME_BYTES_MAX),
            names: Vec::with_capacity(NAMES_BYTES_MAX),
            is_found: false,
            expected: None,
            sent_bytes: 0,
            total: None,
        }
    }

    /// Requests the feature called `name` instead of one found in an earlier file.
    pub(super) fn request(&mut self, name: &str) {
        self.wanted.clear();
        self.wanted.extend_from_slice(name.as_bytes());
    }

    /// Starts reading a message of `bytes` bytes at offset `origin` of the file.
    pub(super) fn begin(&mut self, origin: u64, bytes: u64, expected: Option<u64>) {
        self.origin = origin;
        self.offset = 0;
        self.next = NextBytes::Tag;
        self.ends[0] = bytes;
        self.depth = 0;
        self.varint = 0;
        self.shift = 0;
        self.name.clear();
        self.names.clear();
        self.fallback.clear();
        self.is_found = false;
        self.expected = expected;
        self.sent_bytes = 0;
        self.total = None;
    }

    /// Length of the payload, once known.
    pub(super) fn payload_bytes(&self) -> Option<u64> {
        self.total
    }

    /// Whether the message has a list of bytes so far.
    pub(super) fn has_bytes(&self) -> bool {
        self.is_found || !self.fallback.is_empty()
    }

    /// Takes the next bytes of the message. They must not extend beyond its end.
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let NextBytes::Bytes(content, left) = self.next {
                let (piece, remainder) = rest.split_at(left.min(rest.len() as u64) as usize);
                match content {
                    FieldContent::Name => self.name.extend_from_slice(piece),
                    FieldContent::Payload => {
                        if self.sent_bytes == 0 && self.expected.is_none() {
                            sink.begin_encoded(&[]);
                        }
                        sink.payload(self.sent_bytes, piece)?;
                        self.sent_bytes += piece.len() as u64;
                    }
                    FieldContent::Unknown => {}
                }
                let missing = left - piece.len() as u64;
                self.offset += piece.len() as u64;
                self.next =
                    if missing == 0 { NextBytes::Tag } else { NextBytes::Bytes(content, missing) };
                rest = remainder;
            } else if let Some(number) = self.read_varint(&mut rest)? {
                match self.next {
                    NextBytes::Tag => self.read_tag(number)?,
                    NextBytes::Length(field) => self.begin_field(field, number)?,
                    NextBytes::Integer | NextBytes::Bytes(..) => self.next = NextBytes::Tag,
                }
            }
            self.close()?;
        }
        Ok(())
    }

    /// Completes the message after all of its bytes have been scanned.
    pub(super) fn end(&mut self) -> Result<ScanEnd, FormatError> {
        if self.next != NextBytes::Tag || self.shift > 0 || self.depth > 0 {
            return Err(self.error("the message ends within a field"));
        }
        if self.is_found {
            self.check_payload(self.sent_bytes)?;
            self.total = Some(self.sent_bytes);
            return Ok(ScanEnd::Found);
        }
        if !self.fallback.is_empty() {
            std::mem::swap(&mut self.wanted, &mut self.fallback);
            return Ok(ScanEnd::Renamed);
        }
        Ok(ScanEnd::Missing(String::from_utf8_lossy(&self.names).into_owned()))
    }

    /// Reads a variable-length number with 7 bits per byte; `None` if it is incomplete.
    fn read_varint(&mut self, rest: &mut &[u8]) -> Result<Option<u64>, FormatError> {
        while let Some((&byte, remainder)) = rest.split_first() {
            let bits = u64::from(byte & 0x7f);
            if self.shift > 63 || bits << self.shift >> self.shift != bits {
                return Err(self.error("a number of more than 64 bits"));
            }
            self.varint |= bits << self.shift;
            self.shift += 7;
            self.offset += 1;
            *rest = remainder;
            if byte < 0x80 {
                self.shift = 0;
                return Ok(Some(std::mem::take(&mut self.varint)));
            }
        }
        Ok(None)
    }

    fn read_tag(&mut self, tag: u64) -> Result<(), FormatError> {
        self.next = match (tag >> 3, tag & 7) {
            (0, _) => return Err(self.error("a field of number `0`: not a `tf.train.Example`")),
            (_, 0) => NextBytes::Integer,
            (_, 1) => self.skip(8)?,
            (field, 2) => NextBytes::Length(field),
            (_, 5) => self.skip(4)?,
            (_, kind) => {
                let message = format!("a field of wire type `{kind}`: not a `tf.train.Example`");
                return Err(self.error(message));
            }
        };
        Ok(())
    }

    /// Checks that a field of `len` bytes fits into the enclosing one, and returns the state that skips it.
    fn skip(&self, len: u64) -> Result<NextBytes, FormatError> {
        // A number can begin inside the enclosing field and end after it.
        let Some(left) = self.ends[self.depth].checked_sub(self.offset) else {
            return Err(self.error("a field extends beyond the field that contains it"));
        };
        if len > left {
            let message = format!(
                "a field of {len} bytes, with {left} bytes left of the field that contains it"
            );
            return Err(self.error(message));
        }
        Ok(if len == 0 { NextBytes::Tag } else { NextBytes::Bytes(FieldContent::Unknown, len) })
    }

    /// Begins field number `field`, which has `len` bytes.
    fn begin_field(&mut self, field: u64, len: u64) -> Result<(), FormatError> {
        self.next = self.skip(len)?;
        match (LEVELS[self.depth], field) {
            (MessageLevel::Example, 1) | (MessageLevel::Features, 1) => self.open(len),
            (MessageLevel::Entry, 1) => self.begin_name(len)?,
            (MessageLevel::Entry, 2) if self.name.is_empty() => {
                return Err(self.error("a feature whose value comes before its name"));
            }
            (MessageLevel::Entry, 2) => self.open(len),
            (MessageLevel::Feature, 1) => self.begin_bytes_list(len)?,
            (MessageLevel::BytesList, 1) => {
                let total = self.sent_bytes + len;
                // The last element of the list.
                if self.offset + len == self.ends[self.depth] {
                    self.check_payload(total)?;
                    self.total = Some(total);
                }
                if len > 0 {
                    self.next = NextBytes::Bytes(FieldContent::Payload, len);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, len: u64) {
        self.depth += 1;
        self.ends[self.depth] = self.offset + len;
        self.next = NextBytes::Tag;
        if LEVELS[self.depth] == MessageLevel::Entry {
            self.name.clear();
        }
    }

    /// Leaves the levels that end here.
    fn close(&mut self) -> Result<(), FormatError> {
        while self.depth > 0 && self.offset >= self.ends[self.depth] {
            let is_beyond = self.offset > self.ends[self.depth];
            if is_beyond || self.next != NextBytes::Tag || self.shift > 0 {
                return Err(self.error("a field extends beyond the field that contains it"));
            }
            if LEVELS[self.depth] == MessageLevel::Entry {
                self.record_name();
            }
            self.depth -= 1;
        }
        Ok(())
    }

    fn begin_name(&mut self, len: u64) -> Result<(), FormatError> {
        if len > NAME_BYTES_MAX as u64 {
            let message = format!("a feature name of {len} bytes, more than {NAME_BYTES_MAX}");
            return Err(self.error(message));
        }
        self.name.clear();
        if len > 0 {
            self.next = NextBytes::Bytes(FieldContent::Name, len);
        }
        Ok(())
    }

    fn begin_bytes_list(&mut self, len: u64) -> Result<(), FormatError> {
        if self.name == self.wanted {
            if self.is_found {
                let name = String::from_utf8_lossy(&self.name);
                return Err(self.error(format!("two lists of bytes called `{name}`")));
            }
            self.is_found = true;
            self.open(len);
        } else if self.fallback != ENCODED
            && (self.fallback.is_empty() || self.name == ENCODED || self.fallback_bytes < len)
        {
            self.fallback.clear();
            self.fallback.extend_from_slice(&self.name);
            self.fallback_bytes = len;
        }
        Ok(())
    }

    fn record_name(&mut self) {
        if self.names.len() + self.name.len() + 4 <= NAMES_BYTES_MAX {
            let comma: &[u8] = if self.names.is_empty() { b"`" } else { b", `" };
            self.names.extend_from_slice(comma);
            self.names.extend_from_slice(&self.name);
            self.names.push(b'`');
        }
    }

    fn check_payload(&self, bytes: u64) -> Result<(), FormatError> {
        match self.expected {
            Some(expected) if expected != bytes => {
                let message = format!("a sample of {bytes} bytes, but the plan says {expected}");
                Err(self.error(message))
            }
            _ => Ok(()),
        }
    }

    fn error(&self, message: impl Into<String>) -> FormatError {
        FormatError::new(self.origin + self.offset, message)
    }
}
