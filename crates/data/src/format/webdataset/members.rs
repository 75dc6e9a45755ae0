//! Finds the samples of an archive: at computed offsets with a plan, or member after member in foreign archives.
//!
//! Consecutive members whose paths are equal up to the first dot of the file name form a sample; this common path is its
//! key. The largest member of the first sample determines the name after the key of all payloads. A sample without a
//! member of this name uses its largest member as payload. It is known only at the next sample, and a compressed archive would be read
//! from its start to go back to it, so there a later sample uses the first member with such an extension.
//!
//! Long because reading with and without a plan shares one state.

use super::ahead::{ByteCollector, Finder, ReadOrder, WantedSample, check_length};
use super::block::{self, BLOCK_BYTES, Block, MemberKind};
use super::npy_header::{self, HeaderProgress};
use super::{
    CursorOptions, END_BYTES, FileShape, FormatError, PayloadSink, UNKNOWN_LENGTH, archive_bytes,
    as_one_sample, compare_shapes, describe_shape, pax, round_up_to_block, sample_array,
    sample_bytes, shape_of_bytes, truncated, write_key,
};

/// Upper limit on the length of a name or an extended header.
const META_BYTES_MAX: u64 = 1 << 20;
/// Extensions of labels.
const LABELS: [&[u8]; 3] = [b"cls", b"txt", b"json"];
/// A label must be larger than every other member by this factor to be the payload: an image may be smaller than its label.
const LABEL_FACTOR: u64 = 16;

/// Upper limit on the extensions that are remembered.
const EXTENSIONS_MAX: usize = 16;

/// [`Finder`] of the format.
pub(super) struct Members {
    piece_bytes: u64,
    wanted: WantedSample,
    length: u64,
    offset: u64,
    phase: MemberPhase,
    /// The structure that is being read: a member's header, a long name, an extended header, or an array's header.
    head: ByteCollector,
    /// Path of the next member, from a long name or an extended header.
    path: Vec<u8>,
    /// Length of the next member, from an extended header.
    meta_bytes: Option<u64>,
    /// Key of the current sample.
    key: Vec<u8>,
    /// Number of samples that have begun.
    started_samples: u64,
    /// The largest member of the current sample so far.
    largest: MemberSpan,
    /// Name after the key of the archive's payloads.
    payload_name: Vec<u8>,
    /// Whether `payload_name` is final, which is the case after the first sample.
    payload_name_is_known: bool,
    /// Extensions of the first sample, which can be those of masks or labels.
    first_extensions: Vec<Extension>,
    /// Extensions of payloads with other names than the first.
    other_extensions: Vec<Extension>,
    /// The current member, or the payload if it is being read.
    member: MemberSpan,
    payload: Option<PayloadPosition>,
    planned_key: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberPhase {
    Header,
    /// A long name or an extended header.
    Meta(MemberKind),
    ArrayHead,
    Payload,
    Done,
}

/// Position of a member in the file.
#[derive(Clone, Copy, Default)]
struct MemberSpan {
    start: u64,
    bytes: u64,
    is_array: bool,
    extension: Extension,
}

/// The extension of a name; empty if it is longer than all known ones.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Extension([u8; EXTENSION_BYTES_MAX]);

const EXTENSION_BYTES_MAX: usize = 8;

impl Extension {
    fn new(text: &[u8]) -> Self {
        let mut extension = Extension::default();
        if let Some(bytes) = extension.0.get_mut(..text.len()) {
            bytes.copy_from_slice(text);
        }
        extension
    }

    fn as_bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

impl MemberSpan {
    /// End of the member with its padding.
    fn end(&self) -> u64 {
        self.start.saturating_add(round_up_to_block(self.bytes))
    }

    fn is_label(&self) -> bool {
        LABELS.contains(&self.extension.as_bytes())
    }

    /// Sort key: the member with the highest rank is the payload.
    fn rank(&self) -> (u64, bool) {
        let factor = if self.is_label() { 1 } else { LABEL_FACTOR };
        (self.bytes.saturating_mul(factor), !self.is_label())
    }
}

#[derive(Clone, Copy)]
struct PayloadPosition {
    start: u64,
    /// Shape of the sample alone.
    shape: FileShape,
    is_pickled: bool,
}

/// Splits a path into the key of its sample and the rest of the name; `None` if it is not part of a sample.
fn split_path(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let name = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = name + path[name..].iter().position(|&byte| byte == b'.')?;
    let top = path.split(|&byte| byte == b'/').next().unwrap_or_default();
    let is_meta = top.len() >= 4 && top.starts_with(b"__") && top.ends_with(b"__");
    (dot > name && !is_meta).then(|| (&path[..dot], &path[dot + 1..]))
}

/// The part of a name after its last dot.
fn last_extension(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b'.').next().unwrap_or_default()
}

/// Adds an extension that is known and not yet among `extensions`.
fn remember(extensions: &mut Vec<Extension>, extension: Extension) {
    let is_new = extension != Extension::default() && !extensions.contains(&extension);
    if is_new && extensions.len() < EXTENSIONS_MAX {
        extensions.push(extension);
    }
}

impl Members {
    pub(super) fn new(options: &CursorOptions) -> Self {
        Members {
            piece_bytes: options.piece_bytes as u64,
            wanted: WantedSample::default(),
            length: 0,
            offset: 0,
            phase: MemberPhase::Header,
            head: ByteCollector { bytes: Vec::with_capacity(BLOCK_BYTES as usize), wanted: 0 },
            path: Vec::with_capacity(256),
            meta_bytes: None,
            key: Vec::with_capacity(256),
            started_samples: 0,
            largest: MemberSpan::default(),
            payload_name: Vec::with_capacity(64),
            payload_name_is_known: false,
            first_extensions: Vec::with_capacity(EXTENSIONS_MAX),
            other_extensions: Vec::with_capacity(EXTENSIONS_MAX),
            member: MemberSpan::default(),
            payload: None,
            planned_key: String::with_capacity(64),
        }
    }

    /// Moves to the header at `offset`, which is between samples, after the start of `started_samples` samples.
    fn move_to_sample(&mut self, offset: u64, started_samples: u64) {
        self.go_to(offset);
        self.started_samples = started_samples;
        self.key.clear();
        self.path.clear();
        self.meta_bytes = None;
    }

    fn go_to(&mut self, header: u64) {
        self.offset = header;
        self.phase = MemberPhase::Header;
        self.head.begin(BLOCK_BYTES as usize);
    }

    fn block(&self) -> &Block {
        self.head.bytes.first_chunk().unwrap_or(&[0; BLOCK_BYTES as usize])
    }

    fn read_header(&mut self) -> Result<(), FormatError> {
        let start = self.offset - BLOCK_BYTES;
        let Some(header) = block::read(self.block(), start)? else {
            return self.end_archive(start);
        };
        let kind = header.kind;
        let bytes = match kind {
            MemberKind::WithoutBytes => 0,
            MemberKind::File => self.meta_bytes.take().unwrap_or(header.bytes),
            _ => header.bytes,
        };
        let left = self.length.saturating_sub(self.offset);
        if bytes > left {
            let message = format!("a member of {bytes} bytes, but the file ends after {left}");
            return Err(FormatError::new(start, message));
        }
        let span = MemberSpan { start: self.offset, bytes, ..MemberSpan::default() };
        match kind {
            MemberKind::File => return self.begin_file(span),
            MemberKind::LongName | MemberKind::Extended => {
                if bytes > META_BYTES_MAX {
                    let message = format!("a header of {bytes} bytes, more than {META_BYTES_MAX}");
                    return Err(FormatError::new(start, message));
                }
                self.member = span;
                self.head.begin(bytes as usize);
                self.phase = MemberPhase::Meta(kind);
                if bytes == 0 {
                    return self.apply_meta(kind);
                }
                return Ok(());
            }
            // A long name or extended header of this member does not apply to the next one.
            MemberKind::WithoutBytes | MemberKind::Unknown => {
                self.path.clear();
                self.meta_bytes = None;
            }
            MemberKind::Other => {}
        }
        self.go_to(span.end());
        Ok(())
    }

    /// Applies a long name or extended header after it has been read.
    fn apply_meta(&mut self, kind: MemberKind) -> Result<(), FormatError> {
        let start = self.member.start;
        let path = match kind {
            MemberKind::LongName => Some(block::field_text(&self.head.bytes)),
            _ => {
                let extended = pax::read(&self.head.bytes)
                    .ok_or_else(|| FormatError::new(start, "an invalid extended header"))?;
                if extended.is_sparse {
                    let message = "a sparse member, which is not supported";
                    return Err(FormatError::new(start, message));
                }
                self.meta_bytes = extended.bytes.or(self.meta_bytes);
                extended.path
            }
        };
        if let Some(path) = path {
            self.path.clear();
            self.path.extend_from_slice(path);
        }
        self.go_to(self.member.end());
        Ok(())
    }

    /// Begins a member that is a file.
    fn begin_file(&mut self, span: MemberSpan) -> Result<(), FormatError> {
        self.member = span;
        let mut path = std::mem::take(&mut self.path);
        if path.is_empty() {
            block::push_path(self.block(), &mut path);
        }
        let used = self.use_or_skip(&path, span);
        path.clear();
        self.path = path;
        used
    }

    /// Opens the file if it is the requested payload, or skips it.
    fn use_or_skip(&mut self, path: &[u8], span: MemberSpan) -> Result<(), FormatError> {
        let Some((key, name)) = split_path(path) else {
            self.go_to(span.end());
            return Ok(());
        };
        let extension = last_extension(name);
        let member = MemberSpan {
            is_array: extension == b"npy",
            extension: Extension::new(extension),
            ..span
        };
        if let Some(shape) = &self.wanted.expected {
            self.check_planned(shape, path, key, member)?;
        }
        let is_first_member = key != self.key;
        if is_first_member {
            self.payload_name_is_known |= self.started_samples == 1;
            if self.is_wanted() {
                return self.open_largest();
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            self.started_samples += 1;
        }
        if is_first_member || self.largest.rank() < member.rank() {
            self.largest = member;
            if self.started_samples == 1 && !self.payload_name_is_known {
                self.payload_name.clear();
                self.payload_name.extend_from_slice(name);
            }
        }
        if self.started_samples == 1 {
            remember(&mut self.first_extensions, member.extension);
        }
        let is_payload = if self.wanted.expected.is_some() {
            !member.is_label()
        } else {
            let is_other = name == extension && self.other_extensions.contains(&member.extension);
            self.payload_name_is_known && (name == self.payload_name || is_other)
        };
        if is_payload && self.is_wanted() {
            return self.open(member);
        }
        self.go_to(member.end());
        Ok(())
    }

    /// Whether the current members belong to the requested sample.
    fn is_wanted(&self) -> bool {
        self.started_samples == self.wanted.sample.saturating_add(1)
    }

    fn check_planned(
        &self,
        shape: &FileShape,
        path: &[u8],
        key: &[u8],
        span: MemberSpan,
    ) -> Result<(), FormatError> {
        let shown = String::from_utf8_lossy(&path[..path.len().min(100)]);
        let planned_bytes = npy_header::array_bytes(&sample_array(shape));
        let message = if key != self.planned_key.as_bytes() {
            format!("holds `{shown}`, but the plan says `{}.npy`", self.planned_key)
        } else if span.is_array && span.bytes != planned_bytes {
            format!("`{shown}` has {} bytes, but the plan says {planned_bytes}", span.bytes)
        } else if span.end() > self.planned_end(shape) {
            format!("`{shown}` has {} bytes, more than the plan says", span.bytes)
        } else {
            return Ok(());
        };
        Err(FormatError::new(span.start, message))
    }

    /// End of the planned sample.
    fn planned_end(&self, shape: &FileShape) -> u64 {
        sample_bytes(shape).saturating_mul(self.wanted.sample.saturating_add(1))
    }

    /// Reads the largest member as the payload.
    fn open_largest(&mut self) -> Result<(), FormatError> {
        let extension = self.largest.extension;
        let is_in_first = self.first_extensions.contains(&extension);
        if self.length == UNKNOWN_LENGTH && !is_in_first && !self.largest.is_label() {
            remember(&mut self.other_extensions, extension);
        }
        self.open(self.largest)
    }

    /// Reads this member as the payload.
    fn open(&mut self, span: MemberSpan) -> Result<(), FormatError> {
        self.member = span;
        self.offset = span.start;
        if span.is_array {
            self.head.begin(0);
            self.phase = MemberPhase::ArrayHead;
            return self.read_array_header();
        }
        if let Some(shape) = &self.wanted.expected {
            let message = format!(
                "a sample that is not an array, but the plan says {}",
                describe_shape(shape)
            );
            return Err(FormatError::new(span.start, message));
        }
        self.open_payload(shape_of_bytes(span.bytes, 1), false);
        Ok(())
    }

    fn open_payload(&mut self, shape: FileShape, is_pickled: bool) {
        self.payload = Some(PayloadPosition { start: self.offset, shape, is_pickled });
        self.phase = MemberPhase::Payload;
        self.check_end();
    }

    /// Continues to read the header of an array.
    fn read_array_header(&mut self) -> Result<(), FormatError> {
        let start = self.member.start;
        let header = match npy_header::read(&self.head.bytes) {
            Ok(HeaderProgress::Needs(bytes)) if bytes as u64 <= self.member.bytes => {
                self.head.wanted = bytes;
                return Ok(());
            }
            Ok(HeaderProgress::Needs(_)) => {
                return Err(FormatError::new(start, "a member too short for its array's header"));
            }
            Ok(HeaderProgress::Done(header)) => header,
            Err(error) => return Err(FormatError::new(start + error.offset, error.message)),
        };
        let array = header.shape;
        let head_bytes = self.head.bytes.len() as u64;
        if header.is_pickled {
            let bytes = self.member.bytes.saturating_sub(head_bytes);
            self.open_payload(shape_of_bytes(bytes, 1), true);
            return Ok(());
        }
        let sample = if header.is_single { Some(array) } else { as_one_sample(&array) };
        let sample = sample.ok_or_else(|| FormatError::new(start, "an array of too many axes"))?;
        if let Some(expected) = &self.wanted.expected
            && array != sample_array(expected)
        {
            let found = FileShape { samples: expected.samples, ..sample };
            return compare_shapes(&found, Some(expected));
        }
        let bytes = head_bytes.saturating_add(array.payload_bytes());
        if bytes != self.member.bytes {
            let message = format!("an array of {bytes} bytes in a member of {}", self.member.bytes);
            return Err(FormatError::new(start, message));
        }
        self.open_payload(sample, false);
        Ok(())
    }

    fn check_end(&mut self) {
        if self.offset == self.member.start + self.member.bytes {
            self.offset = self.member.end();
            self.phase = MemberPhase::Done;
        }
    }

    /// Opens the largest member of the last sample at the end of the archive, or returns an error.
    fn end_archive(&mut self, offset: u64) -> Result<(), FormatError> {
        self.payload_name_is_known |= self.started_samples == 1;
        if self.is_wanted() {
            return self.open_largest();
        }
        Err(match &self.wanted.expected {
            Some(shape) => {
                let planned = describe_shape(shape);
                FormatError::new(offset, format!("the archive ends, but the plan says {planned}"))
            }
            None => {
                let contents = format!("{} samples", self.started_samples);
                FormatError::no_sample(offset, self.started_samples, contents, self.wanted.sample)
            }
        })
    }
}

impl Finder for Members {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        let continues = order == ReadOrder::Forward && self.phase == MemberPhase::Done;
        self.wanted = *wanted;
        self.payload = None;
        if order == ReadOrder::NewFile {
            self.payload_name_is_known = false;
            self.first_extensions.clear();
            self.other_extensions.clear();
        }
        match &wanted.expected {
            Some(shape) => {
                write_key(&mut self.planned_key, wanted.file, wanted.sample);
                self.move_to_sample(
                    sample_bytes(shape).saturating_mul(wanted.sample),
                    wanted.sample,
                );
            }
            None if continues => self.go_to(self.offset),
            None => {
                self.member = MemberSpan::default();
                self.move_to_sample(0, 0);
            }
        }
    }

    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.length = bytes;
        let Some(shape) = &self.wanted.expected else { return Ok(()) };
        check_length(bytes, shape, archive_bytes(shape))
    }

    fn offset(&self) -> Option<u64> {
        (self.phase != MemberPhase::Done).then_some(self.offset)
    }

    fn end(&self) -> u64 {
        match (self.phase, &self.wanted.expected) {
            (MemberPhase::Done, _) => self.offset,
            (_, Some(shape)) => self.planned_end(shape),
            (MemberPhase::Header, None) => {
                let is_unknown = self.started_samples == 1 && !self.payload_name_is_known;
                let is_passed_over = self.started_samples < self.wanted.sample || is_unknown;
                let is_long = self.member.bytes >= self.piece_bytes;
                let header_end = self.offset + self.head.missing_bytes() as u64;
                if is_passed_over && is_long { header_end } else { u64::MAX }
            }
            _ => self.member.end(),
        }
    }

    fn record_bytes(&self) -> u64 {
        self.wanted.expected.as_ref().map_or(self.member.bytes, sample_bytes)
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.phase == MemberPhase::Payload {
            let left = self.member.start + self.member.bytes - self.offset;
            let piece = &bytes[..left.min(bytes.len() as u64) as usize];
            let start = self.payload.map_or(self.offset, |payload| payload.start);
            if self.offset == start && !self.member.is_array {
                sink.begin_encoded(self.member.extension.as_bytes());
            }
            sink.payload(self.offset - start, piece)?;
            self.offset += piece.len() as u64;
            self.check_end();
            return Ok(());
        }
        self.offset += self.head.take(bytes) as u64;
        match self.phase {
            _ if self.head.missing_bytes() > 0 => Ok(()),
            MemberPhase::Header => self.read_header(),
            MemberPhase::Meta(kind) => self.apply_meta(kind),
            MemberPhase::ArrayHead => self.read_array_header(),
            MemberPhase::Payload | MemberPhase::Done => Ok(()),
        }
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        if self.phase == MemberPhase::Header && self.head.bytes.is_empty() {
            return self.end_archive(self.offset);
        }
        let end = match self.phase {
            MemberPhase::Header => self.offset + self.head.missing_bytes() as u64,
            _ => self.member.end(),
        };
        Err(truncated(self.offset, end.saturating_sub(self.offset).max(1)))
    }

    /// The number of samples is known only at the last one, which is followed by the end of the archive.
    fn file_shape(&self) -> Option<FileShape> {
        let PayloadPosition { shape, .. } = self.payload?;
        if self.wanted.expected.is_some() {
            return self.wanted.expected;
        }
        let is_last = self.member.end().saturating_add(END_BYTES) >= self.length;
        is_last.then_some(FileShape { samples: self.started_samples, ..shape })
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.payload.map(|payload| payload.shape.sample_bytes())
    }

    fn decoded_shape(&self) -> Option<FileShape> {
        let is_array = self.member.is_array && self.wanted.expected.is_none();
        self.payload.filter(|payload| is_array && !payload.is_pickled).map(|payload| payload.shape)
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.payload.is_some_and(|payload| payload.is_pickled).then_some(npy_header::PICKLED)
    }
}
