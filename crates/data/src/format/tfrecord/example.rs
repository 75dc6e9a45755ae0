//! The bytes of one `tf.train.Example` on their way: finds the sample in the message, whose pieces may be cut
//! anywhere, and copies none of it.
//!
//! `Example { features: Features { feature: map<string, Feature> } }`, and a `Feature` is a list of bytes, of floats
//! or of integers. Entries of the map come in any order, and what is not known is skipped.

use super::{FormatError, PayloadSink};

/// The name that TensorFlow's datasets give a picture, which lies among other features of bytes.
const ENCODED: &[u8] = b"image/encoded";
/// The longest feature name that is read.
const NAME_BYTES_MAX: usize = 1024;
/// Upper limit on the length of the names kept for an error.
const NAMES_BYTES_MAX: usize = 512;

/// Levels of nested messages that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Example,
    Features,
    Entry,
    Feature,
    BytesList,
}

const LEVELS: [Nested; 5] =
    [Nested::Example, Nested::Features, Nested::Entry, Nested::Feature, Nested::BytesList];

/// Meaning of the next bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expects {
    Tag,
    /// Length of the field with this number.
    Length(u64),
    Integer,
    /// So many bytes of something.
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
    /// No feature of that name, but another of bytes, which is taken from now on.
    Renamed,
    /// No feature of bytes; the names of those there are.
    Missing(String),
}

/// Scanner of one message.
pub(super) struct Scanner {
    /// The name of the feature that is the sample.
    wanted: Vec<u8>,
    /// The feature of bytes that is taken where there is none of that name: that of a picture, else the largest.
    other: Vec<u8>,
    other_bytes: u64,
    /// Start of the message in the file.
    origin: u64,
    at: u64,
    next: Expects,
    /// End of each open level.
    ends: [u64; LEVELS.len()],
    depth: usize,
    varint: u64,
    shift: u32,
    name: Vec<u8>,
    names: Vec<u8>,
    taken: bool,
    /// Payload bytes by the plan.
    expected: Option<u64>,
    /// Payload bytes seen, and whether there can be more.
    sent: u64,
    total: Option<u64>,
}

impl Scanner {
    /// The sample is the feature called `name`, where there is one.
    pub(super) fn new(name: &str) -> Self {
        Scanner {
            wanted: name.as_bytes().to_vec(),
            other: Vec::with_capacity(NAME_BYTES_MAX),
            other_bytes: 0,
            origin: 0,
            at: 0,
            next: Expects::Tag,
            ends: [0; LEVELS.len()],
            depth: 0,
            varint: 0,
            shift: 0,
            name: Vec::with_capacity(NAME_BYTES_MAX),
            names: Vec::with_capacity(NAMES_BYTES_MAX),
            taken: false,
            expected: None,
            sent: 0,
            total: None,
        }
    }

    /// Forget what a foreign file called it.
    pub(super) fn want(&mut self, name: &str) {
        self.wanted.clear();
        self.wanted.extend_from_slice(name.as_bytes());
    }

    /// Start on a message of `bytes` at `origin` of the file.
    pub(super) fn begin(&mut self, origin: u64, bytes: u64, expected: Option<u64>) {
        (self.origin, self.at, self.next) = (origin, 0, Expects::Tag);
        (self.ends[0], self.depth) = (bytes, 0);
        (self.varint, self.shift) = (0, 0);
        self.name.clear();
        self.names.clear();
        self.other.clear();
        (self.taken, self.expected, self.sent, self.total) = (false, expected, 0, None);
    }

    /// Payload bytes of the message, once they are known.
    pub(super) fn payload_bytes(&self) -> Option<u64> {
        self.total
    }

    /// The next bytes of the message, none of them behind its end.
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Expects::Bytes(content, left) = self.next {
                let (now, later) = rest.split_at(left.min(rest.len() as u64) as usize);
                match content {
                    FieldContent::Name => self.name.extend_from_slice(now),
                    FieldContent::Payload => {
                        if self.sent == 0 && self.expected.is_none() {
                            sink.encoded(&[]);
                        }
                        sink.payload(self.sent, now)?;
                        self.sent += now.len() as u64;
                    }
                    FieldContent::Unknown => {}
                }
                let left = left - now.len() as u64;
                self.at += now.len() as u64;
                self.next = if left == 0 { Expects::Tag } else { Expects::Bytes(content, left) };
                rest = later;
            } else if let Some(number) = self.varint(&mut rest)? {
                match self.next {
                    Expects::Tag => self.tag(number)?,
                    Expects::Length(field) => self.field(field, number)?,
                    Expects::Integer | Expects::Bytes(..) => self.next = Expects::Tag,
                }
            }
            self.close()?;
        }
        Ok(())
    }

    /// The message has ended.
    pub(super) fn end(&mut self) -> Result<ScanEnd, FormatError> {
        if self.next != Expects::Tag || self.shift > 0 || self.depth > 0 {
            return Err(self.error("the message ends within a field"));
        }
        if self.taken {
            self.check_payload(self.sent)?;
            self.total = Some(self.sent);
            return Ok(ScanEnd::Found);
        }
        if !self.other.is_empty() {
            std::mem::swap(&mut self.wanted, &mut self.other);
            return Ok(ScanEnd::Renamed);
        }
        Ok(ScanEnd::Missing(String::from_utf8_lossy(&self.names).into_owned()))
    }

    /// A number of 7 bits a byte, once it is whole.
    fn varint(&mut self, rest: &mut &[u8]) -> Result<Option<u64>, FormatError> {
        while let Some((&byte, later)) = rest.split_first() {
            let bits = u64::from(byte & 0x7f);
            if self.shift > 63 || bits << self.shift >> self.shift != bits {
                return Err(self.error("a number of more than 64 bits"));
            }
            self.varint |= bits << self.shift;
            self.shift += 7;
            self.at += 1;
            *rest = later;
            if byte < 0x80 {
                self.shift = 0;
                return Ok(Some(std::mem::take(&mut self.varint)));
            }
        }
        Ok(None)
    }

    fn tag(&mut self, tag: u64) -> Result<(), FormatError> {
        self.next = match (tag >> 3, tag & 7) {
            (0, _) => return Err(self.error("a field of number `0`: not a `tf.train.Example`")),
            (_, 0) => Expects::Integer,
            (_, 1) => self.skip(8)?,
            (field, 2) => Expects::Length(field),
            (_, 5) => self.skip(4)?,
            (_, kind) => {
                let message = format!("a field of wire type `{kind}`: not a `tf.train.Example`");
                return Err(self.error(message));
            }
        };
        Ok(())
    }

    fn skip(&self, len: u64) -> Result<Expects, FormatError> {
        // A number can begin within a field and end behind it.
        let Some(left) = self.ends[self.depth].checked_sub(self.at) else {
            return Err(self.error("a field ends behind what holds it"));
        };
        if len > left {
            let message = format!("a field of {len} bytes in the last {left} of what holds it");
            return Err(self.error(message));
        }
        Ok(if len == 0 { Expects::Tag } else { Expects::Bytes(FieldContent::Unknown, len) })
    }

    /// A field of `len` bytes begins.
    fn field(&mut self, field: u64, len: u64) -> Result<(), FormatError> {
        self.next = self.skip(len)?;
        match (LEVELS[self.depth], field) {
            (Nested::Example, 1) | (Nested::Features, 1) => self.open(len),
            (Nested::Entry, 1) => self.name_field(len)?,
            (Nested::Entry, 2) if self.name.is_empty() => {
                return Err(self.error("a feature whose value comes before its name"));
            }
            (Nested::Entry, 2) => self.open(len),
            (Nested::Feature, 1) => self.bytes_list(len)?,
            (Nested::BytesList, 1) => {
                let total = self.sent + len;
                // The last of the list.
                if self.at + len == self.ends[self.depth] {
                    self.check_payload(total)?;
                    self.total = Some(total);
                }
                if len > 0 {
                    self.next = Expects::Bytes(FieldContent::Payload, len);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, len: u64) {
        self.depth += 1;
        self.ends[self.depth] = self.at + len;
        self.next = Expects::Tag;
        if LEVELS[self.depth] == Nested::Entry {
            self.name.clear();
        }
    }

    /// Leave the levels that end here.
    fn close(&mut self) -> Result<(), FormatError> {
        while self.depth > 0 && self.at >= self.ends[self.depth] {
            let is_behind = self.at > self.ends[self.depth];
            if is_behind || self.next != Expects::Tag || self.shift > 0 {
                return Err(self.error("a field ends behind what holds it"));
            }
            if LEVELS[self.depth] == Nested::Entry {
                self.note_name();
            }
            self.depth -= 1;
        }
        Ok(())
    }

    fn name_field(&mut self, len: u64) -> Result<(), FormatError> {
        if len > NAME_BYTES_MAX as u64 {
            let message = format!("a feature name of {len} bytes, more than {NAME_BYTES_MAX}");
            return Err(self.error(message));
        }
        self.name.clear();
        if len > 0 {
            self.next = Expects::Bytes(FieldContent::Name, len);
        }
        Ok(())
    }

    fn bytes_list(&mut self, len: u64) -> Result<(), FormatError> {
        if self.name == self.wanted {
            if self.taken {
                let name = String::from_utf8_lossy(&self.name);
                return Err(self.error(format!("two lists of bytes called `{name}`")));
            }
            self.taken = true;
            self.open(len);
        } else if self.other != ENCODED
            && (self.other.is_empty() || self.name == ENCODED || self.other_bytes < len)
        {
            self.other.clear();
            self.other.extend_from_slice(&self.name);
            self.other_bytes = len;
        }
        Ok(())
    }

    fn note_name(&mut self) {
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
        FormatError::new(self.origin + self.at, message)
    }
}
