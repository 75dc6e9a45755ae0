//! Decodes samples that are complete files inside foreign containers, such as images in a tar archive or a parquet
//! column, as the readers of WebDataset, Hugging Face and TensorFlow do.
//!
//! JPEG, PNG and numpy arrays are decoded. Members of other types are passed through unchanged and reported by name.

#[cfg(test)]
mod tests;

use super::npy_header::{self, HeaderProgress};
use super::whole_image::ImageDecoder;
use super::{
    Cursor, CursorOptions, FileMember, FileShape, FormatError, Need, PayloadSink, StoredSample,
    as_one_sample,
};

/// Number of bytes at the start of a member that are enough to recognise its type.
const HEAD_BYTES: usize = 16;
/// Upper limit on the length of a member that is decoded.
const MEMBER_BYTES_MAX: usize = 1 << 30;

/// Extension of records of an unknown type.
pub(super) const RECORD: &[u8] = b"record";

/// A type of file that a member can have.
struct MemberType {
    /// Name shown to the user.
    name: &'static str,
    /// File name extensions.
    extensions: &'static [&'static str],
    /// Bytes at fixed offsets that identify the type; empty if it has no signature.
    signature: &'static [(usize, &'static [u8])],
    decoder: Option<MemberDecoder>,
}

/// Decoder of a member type.
#[derive(Clone, Copy)]
enum MemberDecoder {
    Jpeg,
    Png,
    Npy,
}

/// The known types. A member is recognised by its signature, or else by its extension.
static MEMBER_TYPES: &[MemberType] = &[
    MemberType {
        decoder: Some(MemberDecoder::Jpeg),
        ..member_type("jpeg", &["jpg", "jpeg"], &[(0, b"\xff\xd8\xff")])
    },
    MemberType {
        decoder: Some(MemberDecoder::Png),
        ..member_type("png", &["png"], &[(0, b"\x89PNG\r\n\x1a\n")])
    },
    MemberType {
        decoder: Some(MemberDecoder::Npy),
        ..member_type("npy", &["npy"], &[(0, b"\x93NUMPY")])
    },
    member_type("webp", &["webp"], &[(0, b"RIFF"), (8, b"WEBP")]),
    member_type("gif", &["gif"], &[(0, b"GIF8")]),
    member_type("bmp", &["bmp"], &[(0, b"BM"), (6, &[0; 4])]),
    member_type("tiff", &["tif", "tiff"], &[(0, b"II*\0")]),
    member_type("tiff", &[], &[(0, b"MM\0*")]),
    member_type("pnm", &["ppm", "pgm", "pbm", "pnm"], &[]),
    member_type("jpeg2000", &["jp2", "j2k"], &[(4, b"jP  \r\n\x87\n")]),
    member_type("avif", &["avif"], &[(4, b"ftypavif")]),
    member_type("mp4", &["mp4", "m4a", "mov"], &[(4, b"ftyp")]),
    member_type("webm", &["webm", "mkv"], &[(0, b"\x1aE\xdf\xa3")]),
    member_type("avi", &["avi"], &[(0, b"RIFF"), (8, b"AVI ")]),
    member_type("wav", &["wav"], &[(0, b"RIFF"), (8, b"WAVE")]),
    member_type("flac", &["flac"], &[(0, b"fLaC")]),
    member_type("ogg", &["ogg", "opus"], &[(0, b"OggS")]),
    member_type("mp3", &["mp3"], &[(0, b"ID3")]),
    member_type("npz", &["npz", "zip"], &[(0, b"PK\x03\x04")]),
    member_type("gzip", &["gz"], &[(0, b"\x1f\x8b\x08")]),
    member_type("pickle", &["pyd", "pickle", "pkl"], &[]),
    member_type("pt", &["pth", "pt"], &[]),
    member_type("msgpack", &["mp", "msg"], &[]),
    member_type("cbor", &["cbor"], &[]),
    member_type("unknown record", &["record"], &[]),
];

/// A type that is not decoded.
const fn member_type(
    name: &'static str,
    extensions: &'static [&'static str],
    signature: &'static [(usize, &'static [u8])],
) -> MemberType {
    MemberType { name, extensions, signature, decoder: None }
}

impl MemberType {
    fn has_signature(&self, head: &[u8]) -> bool {
        let mut parts = self.signature.iter();
        !self.signature.is_empty()
            && parts.all(|&(offset, bytes)| head.get(offset..offset + bytes.len()) == Some(bytes))
    }

    fn has_extension(&self, extension: &[u8]) -> bool {
        self.extensions.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(extension))
    }
}

/// A cursor over a container whose samples are decoded.
pub(super) struct DecodingCursor {
    container: Box<dyn Cursor>,
    member: EncodedMember,
    /// Whether all bytes of the member have arrived, so that decoding is next.
    is_complete: bool,
}

impl DecodingCursor {
    pub(super) fn new(container: Box<dyn Cursor>, options: &CursorOptions) -> Self {
        let member = EncodedMember {
            state: MemberState::PassThrough,
            extension: Vec::with_capacity(HEAD_BYTES),
            bytes: Vec::with_capacity(HEAD_BYTES),
            jpeg: super::jpeg_decoder(options.check_crc),
            png: super::png_decoder(options.check_crc),
            decoded: None,
            undecoded: None,
        };
        DecodingCursor { container, member, is_complete: false }
    }
}

impl Cursor for DecodingCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        self.is_complete = false;
        self.member.state = MemberState::PassThrough;
        self.member.decoded = None;
        self.member.undecoded = None;
        self.container.begin(file, sample, expected);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let need = self.container.need()?;
        self.is_complete = need == Need::Done && self.member.is_collected();
        Ok(if self.is_complete { Need::Buffered } else { need })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.is_complete {
            return self.member.decode(sink);
        }
        self.container.feed(bytes, &mut MemberSink { member: &mut self.member, sink })
    }

    fn file_shape(&self) -> Option<FileShape> {
        if self.member.is_collected() {
            return None;
        }
        let found = self.container.file_shape()?;
        let decoded = self.member.decoded.unwrap_or(found);
        Some(FileShape { samples: found.samples, ..decoded })
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.container.payload_bytes()
    }

    fn decoded_shape(&self) -> Option<FileShape> {
        self.member.decoded.or_else(|| self.container.decoded_shape())
    }

    fn members(&self) -> Vec<FileMember> {
        self.container.members()
    }

    fn elsewhere(&self) -> Option<&str> {
        self.container.elsewhere()
    }

    fn stored_sample(&self) -> Option<StoredSample> {
        self.container.stored_sample()
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.member.undecoded.or_else(|| self.container.undecoded_type())
    }

    fn ready_samples(&self) -> u64 {
        self.container.ready_samples()
    }

    fn take_ready(&mut self, samples: u64) -> u64 {
        self.container.take_ready(samples)
    }
}

/// The current member, in memory that is reused.
struct EncodedMember {
    state: MemberState,
    extension: Vec<u8>,
    bytes: Vec<u8>,
    jpeg: ImageDecoder,
    png: ImageDecoder,
    /// Shape of the decoded content.
    decoded: Option<FileShape>,
    /// Type of the member, if it cannot be decoded or is broken.
    undecoded: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum MemberState {
    /// Bytes are passed through unchanged.
    PassThrough,
    /// The first bytes are collected to recognise the type.
    Head,
    /// All bytes are collected for the decoder.
    Collect(&'static MemberType, MemberDecoder),
}

impl EncodedMember {
    /// Whether bytes are collected until the member is complete.
    fn is_collected(&self) -> bool {
        !matches!(self.state, MemberState::PassThrough)
    }

    fn begin(&mut self, extension: &[u8]) {
        self.state = MemberState::Head;
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
            MemberState::PassThrough => return sink.payload(offset, bytes),
            MemberState::Head => {
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
            MemberState::Collect(member_type, _) => {
                let fits = self.bytes.len() + bytes.len() <= MEMBER_BYTES_MAX;
                if !fits || self.bytes.try_reserve(bytes.len()).is_err() {
                    self.pass_through_undecoded(member_type, sink)?;
                    return sink.payload(offset, bytes);
                }
            }
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Recognises the member by its first bytes, or else by its extension. Only members with a signature are decoded.
    fn recognise(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let by_signature =
            MEMBER_TYPES.iter().find(|member_type| member_type.has_signature(&self.bytes));
        let by_extension =
            MEMBER_TYPES.iter().find(|member_type| member_type.has_extension(&self.extension));
        match (
            by_signature.or(by_extension),
            by_signature.and_then(|member_type| member_type.decoder),
        ) {
            (Some(member_type), Some(decoder)) => {
                self.state = MemberState::Collect(member_type, decoder);
                Ok(())
            }
            (Some(member_type), None) => self.pass_through_undecoded(member_type, sink),
            (None, _) => self.pass_through(sink),
        }
    }

    /// Reports the type of a member that is not decoded, and passes its bytes through.
    fn pass_through_undecoded(
        &mut self,
        member_type: &MemberType,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        self.undecoded = Some(member_type.name);
        self.pass_through(sink)
    }

    /// Passes the collected bytes, and all further ones, through unchanged.
    fn pass_through(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.state = MemberState::PassThrough;
        if self.bytes.is_empty() { Ok(()) } else { sink.payload(0, &self.bytes) }
    }

    /// Decodes the member after all of its bytes have arrived.
    fn decode(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if matches!(self.state, MemberState::Head) {
            self.recognise(sink)?;
        }
        let MemberState::Collect(member_type, decoder) = self.state else { return Ok(()) };
        self.state = MemberState::PassThrough;
        let decoded = match decoder {
            MemberDecoder::Jpeg => self.jpeg.decode(&self.bytes),
            MemberDecoder::Png => self.png.decode(&self.bytes),
            MemberDecoder::Npy => decode_npy(&self.bytes),
        };
        // Readers of real data skip broken members or stop. For a measurement it is enough to report them.
        let Ok((shape, payload)) = decoded else {
            return self.pass_through_undecoded(member_type, sink);
        };
        self.decoded = Some(shape);
        if payload.is_empty() { Ok(()) } else { sink.payload(0, payload) }
    }
}

/// The shape of a numpy array that is one sample, and its payload.
fn decode_npy(file: &[u8]) -> Result<(FileShape, &[u8]), FormatError> {
    let mut head_bytes = 0;
    let array = loop {
        match npy_header::read(&file[..head_bytes])? {
            HeaderProgress::Done(array) => break array,
            HeaderProgress::Needs(bytes) if bytes <= file.len() => head_bytes = bytes,
            HeaderProgress::Needs(_) => return Err(FormatError::new(0, "incomplete header")),
        }
    };
    let payload = &file[head_bytes..];
    let shape = if array.is_single { Some(array.shape) } else { as_one_sample(&array.shape) };
    let shape = shape
        .filter(|_| !array.is_pickled)
        .filter(|shape| shape.sample_bytes() == payload.len() as u64)
        .ok_or_else(|| FormatError::new(0, "incomplete array"))?;
    Ok((shape, payload))
}

/// The sink of the container's cursor, which passes the bytes to the member.
struct MemberSink<'s> {
    member: &'s mut EncodedMember,
    sink: &'s mut dyn PayloadSink,
}

impl PayloadSink for MemberSink<'_> {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        self.member.take(offset, bytes, self.sink)
    }

    fn begin_encoded(&mut self, extension: &[u8]) {
        self.member.begin(extension);
    }
}
