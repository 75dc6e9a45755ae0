//! Samples that are files of their own inside a container that others made: a picture in a tar or a column, as readers of
//! WebDataset, Hugging Face and TensorFlow decode it. Decoded by the decoders of the formats `jpeg` and `png`, and as
//! numpy's arrays; others are passed on as they are, and named.

#[cfg(test)]
mod tests;

use super::npy_header::{self, HeaderProgress};
use super::whole_image::PictureDecoder;
use super::{Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, as_one_sample};

/// So many bytes tell what a file is.
const HEAD_BYTES: usize = 16;
/// The longest member that is gathered to be decoded.
const MEMBER_BYTES_MAX: usize = 1 << 30;

/// A kind of file.
struct EncodedKind {
    /// As users know it.
    name: &'static str,
    /// Ends of its files' names.
    extensions: &'static [&'static str],
    /// Bytes that its files have at these offsets; none where they have nothing of their own.
    begins: &'static [(usize, &'static [u8])],
    decodes: Option<MemberDecoder>,
}

/// Who decodes it.
#[derive(Clone, Copy)]
enum MemberDecoder {
    Jpeg,
    Png,
    Npy,
}

/// The kinds that are known: a member is what it begins like, else what its name says.
static KINDS: &[EncodedKind] = &[
    EncodedKind {
        decodes: Some(MemberDecoder::Jpeg),
        ..kind("jpeg", &["jpg", "jpeg"], &[(0, b"\xff\xd8\xff")])
    },
    EncodedKind {
        decodes: Some(MemberDecoder::Png),
        ..kind("png", &["png"], &[(0, b"\x89PNG\r\n\x1a\n")])
    },
    EncodedKind {
        decodes: Some(MemberDecoder::Npy),
        ..kind("npy", &["npy"], &[(0, b"\x93NUMPY")])
    },
    kind("webp", &["webp"], &[(0, b"RIFF"), (8, b"WEBP")]),
    kind("gif", &["gif"], &[(0, b"GIF8")]),
    kind("bmp", &["bmp"], &[(0, b"BM"), (6, &[0; 4])]),
    kind("tiff", &["tif", "tiff"], &[(0, b"II*\0")]),
    kind("tiff", &[], &[(0, b"MM\0*")]),
    kind("pnm", &["ppm", "pgm", "pbm", "pnm"], &[]),
    kind("jpeg2000", &["jp2", "j2k"], &[(4, b"jP  \r\n\x87\n")]),
    kind("avif", &["avif"], &[(4, b"ftypavif")]),
    kind("mp4", &["mp4", "m4a", "mov"], &[(4, b"ftyp")]),
    kind("webm", &["webm", "mkv"], &[(0, b"\x1aE\xdf\xa3")]),
    kind("avi", &["avi"], &[(0, b"RIFF"), (8, b"AVI ")]),
    kind("wav", &["wav"], &[(0, b"RIFF"), (8, b"WAVE")]),
    kind("flac", &["flac"], &[(0, b"fLaC")]),
    kind("ogg", &["ogg", "opus"], &[(0, b"OggS")]),
    kind("mp3", &["mp3"], &[(0, b"ID3")]),
    kind("npz", &["npz", "zip"], &[(0, b"PK\x03\x04")]),
    kind("gzip", &["gz"], &[(0, b"\x1f\x8b\x08")]),
    kind("pickle", &["pyd", "pickle", "pkl"], &[]),
    kind("pt", &["pth", "pt"], &[]),
    kind("msgpack", &["mp", "msg"], &[]),
    kind("cbor", &["cbor"], &[]),
];

/// A kind that is not decoded.
const fn kind(
    name: &'static str,
    extensions: &'static [&'static str],
    begins: &'static [(usize, &'static [u8])],
) -> EncodedKind {
    EncodedKind { name, extensions, begins, decodes: None }
}

impl EncodedKind {
    fn is_begun_by(&self, head: &[u8]) -> bool {
        let mut parts = self.begins.iter();
        !self.begins.is_empty()
            && parts.all(|&(at, bytes)| head.get(at..at + bytes.len()) == Some(bytes))
    }

    fn is_named(&self, extension: &[u8]) -> bool {
        self.extensions.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(extension))
    }
}

/// A cursor over a container whose samples are decoded.
pub(super) struct DecodingCursor {
    container: Box<dyn Cursor>,
    member: EncodedMember,
    /// The member is whole, and decoded next.
    is_whole: bool,
}

impl DecodingCursor {
    pub(super) fn new(container: Box<dyn Cursor>, options: &CursorOptions) -> Self {
        let member = EncodedMember {
            state: MemberState::Plain,
            extension: Vec::with_capacity(HEAD_BYTES),
            bytes: Vec::with_capacity(HEAD_BYTES),
            jpeg: super::jpeg_decoder(options.check_crc),
            png: super::png_decoder(options.check_crc),
            decoded: None,
            undecoded: None,
        };
        DecodingCursor { container, member, is_whole: false }
    }
}

impl Cursor for DecodingCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        self.is_whole = false;
        self.member.state = MemberState::Plain;
        (self.member.decoded, self.member.undecoded) = (None, None);
        self.container.begin(file, sample, expected);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let need = self.container.need()?;
        self.is_whole = need == Need::Done && self.member.is_kept();
        Ok(if self.is_whole { Need::Kept } else { need })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.is_whole {
            return self.member.decode(sink);
        }
        self.container.feed(bytes, &mut MemberSink { member: &mut self.member, sink })
    }

    fn found(&self) -> Option<FileShape> {
        if self.member.is_kept() {
            return None;
        }
        let found = self.container.found()?;
        let decoded = self.member.decoded.unwrap_or(found);
        Some(FileShape { samples: found.samples, ..decoded })
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.container.payload_bytes()
    }

    fn decoded(&self) -> Option<FileShape> {
        self.member.decoded
    }

    fn undecoded(&self) -> Option<&'static str> {
        self.member.undecoded
    }
}

/// The member that comes, and memory that is reused.
struct EncodedMember {
    state: MemberState,
    extension: Vec<u8>,
    bytes: Vec<u8>,
    jpeg: PictureDecoder,
    png: PictureDecoder,
    /// The decoded content.
    decoded: Option<FileShape>,
    /// Its kind, where nobody decodes that or it is broken.
    undecoded: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum MemberState {
    /// The rest is handed on.
    Plain,
    /// Its first bytes are gathered.
    Begins,
    /// All its bytes are gathered.
    Gathers(&'static EncodedKind, MemberDecoder),
}

impl EncodedMember {
    /// Bytes of it are kept until it is whole.
    fn is_kept(&self) -> bool {
        !matches!(self.state, MemberState::Plain)
    }

    fn begin(&mut self, extension: &[u8]) {
        self.state = MemberState::Begins;
        self.bytes.clear();
        self.extension.clear();
        self.extension.extend_from_slice(&extension[..extension.len().min(HEAD_BYTES)]);
    }

    fn take(
        &mut self,
        offset: u64,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        match self.state {
            MemberState::Plain => return sink.payload(offset, bytes),
            MemberState::Begins => {
                let missing = (HEAD_BYTES - self.bytes.len()).min(bytes.len());
                let (head, rest) = bytes.split_at(missing);
                self.bytes.extend_from_slice(head);
                if self.bytes.len() < HEAD_BYTES {
                    return Ok(());
                }
                self.recognise(sink)?;
                if rest.is_empty() {
                    return Ok(());
                }
                return self.take(offset + missing as u64, rest, sink);
            }
            MemberState::Gathers(kind, _) => {
                let fits = self.bytes.len() + bytes.len() <= MEMBER_BYTES_MAX;
                if !fits || self.bytes.try_reserve(bytes.len()).is_err() {
                    self.give_up(kind, sink)?;
                    return sink.payload(offset, bytes);
                }
            }
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Tell by the first bytes, and by the name, what it is.
    fn recognise(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let begun = KINDS.iter().find(|kind| kind.is_begun_by(&self.bytes));
        let named = KINDS.iter().find(|kind| kind.is_named(&self.extension));
        match (begun.or(named), begun.and_then(|kind| kind.decodes)) {
            (Some(kind), Some(decoder)) => {
                self.state = MemberState::Gathers(kind, decoder);
                Ok(())
            }
            (Some(kind), None) => self.give_up(kind, sink),
            (None, _) => self.hand_on(sink),
        }
    }

    fn give_up(
        &mut self,
        kind: &EncodedKind,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        self.undecoded = Some(kind.name);
        self.hand_on(sink)
    }

    /// The kept bytes are payload as they are, and so is the rest.
    fn hand_on(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.state = MemberState::Plain;
        if self.bytes.is_empty() { Ok(()) } else { sink.payload(0, &self.bytes) }
    }

    /// All of it has come.
    fn decode(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if matches!(self.state, MemberState::Begins) {
            self.recognise(sink)?;
        }
        let MemberState::Gathers(kind, decoder) = self.state else { return Ok(()) };
        self.state = MemberState::Plain;
        let decoded = match decoder {
            MemberDecoder::Jpeg => self.jpeg.decode(&self.bytes),
            MemberDecoder::Png => self.png.decode(&self.bytes),
            MemberDecoder::Npy => array(&self.bytes),
        };
        // A reader of real data passes over what is broken, or stops; to measure, it is enough to know how many are.
        let Ok((shape, payload)) = decoded else { return self.give_up(kind, sink) };
        self.decoded = Some(shape);
        if payload.is_empty() { Ok(()) } else { sink.payload(0, payload) }
    }
}

/// The shape of the one sample that an array is, and its payload.
fn array(file: &[u8]) -> Result<(FileShape, &[u8]), FormatError> {
    let mut head_bytes = 0;
    let array = loop {
        match npy_header::read(&file[..head_bytes])? {
            HeaderProgress::Done(array) => break array,
            HeaderProgress::Needs(bytes) if bytes <= file.len() => head_bytes = bytes,
            HeaderProgress::Needs(_) => return Err(FormatError::new(0, "no whole header")),
        }
    };
    let payload = &file[head_bytes..];
    let shape = as_one_sample(&array);
    let whole = shape.filter(|shape| shape.sample_bytes() == payload.len() as u64);
    whole.map(|shape| (shape, payload)).ok_or_else(|| FormatError::new(0, "no whole array"))
}

/// Sorts what a container hands on.
struct MemberSink<'s> {
    member: &'s mut EncodedMember,
    sink: &'s mut dyn PayloadSink,
}

impl PayloadSink for MemberSink<'_> {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        self.member.take(offset, bytes, self.sink)
    }

    fn encoded(&mut self, extension: &[u8]) {
        self.member.begin(extension);
    }
}
