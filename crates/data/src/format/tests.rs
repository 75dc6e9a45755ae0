//! Contract tests of formats, run on every row of the table: files that are written can be read, sizes are as planned, and
//! broken files do not make a cursor panic, loop or allocate memory without limit.
//!
//! Long because each format keeps every rule of the contract.

use super::*;
use feedrate_spec::catalog::Ability;
use feedrate_spec::shape::{Compression, Dims, Element, Encoding};
use proptest::prelude::*;

const SEED: u64 = 42;
const FILE: u64 = 5;

/// The parts of a file in memory, written in small pieces of odd lengths.
pub(super) struct MemorySink {
    pub(super) parts: Vec<Vec<u8>>,
    pub(super) space: Vec<u8>,
}

impl FileSink for MemorySink {
    fn space(&mut self, _part: usize) -> &mut [u8] {
        &mut self.space
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.parts[part].extend_from_slice(&self.space[..len]);
        Ok(())
    }

    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.write(part, &vec![0xee; len])
    }

    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        self.parts[part][offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

pub(super) fn shape(dims: &[u64], element: Element, samples: u64) -> FileShape {
    FileShape { dims: Dims::new(dims).unwrap(), element, samples }
}

/// Encodes a file with the default encoding of its format.
pub(super) fn encode_default(
    format: &Format,
    shape: &FileShape,
    space_bytes: usize,
) -> Vec<Vec<u8>> {
    encode_with(format, shape, &Encoding::default(), space_bytes)
}

pub(super) fn encode_with(
    format: &Format,
    shape: &FileShape,
    encoding: &Encoding,
    space_bytes: usize,
) -> Vec<Vec<u8>> {
    let parts = format.parts.iter().map(|_| Vec::new()).collect();
    let mut sink = MemorySink { parts, space: vec![0; space_bytes] };
    let mut content = Content::new(SEED);
    content.select_file(FILE);
    (format.encode)(shape, encoding, &mut content, &mut sink).unwrap();
    sink.parts
}

struct CollectingSink(Vec<u8>);

impl PayloadSink for CollectingSink {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        assert_eq!(offset, self.0.len() as u64, "payload arrives in order");
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

pub(super) fn options(piece_bytes: usize) -> CursorOptions {
    CursorOptions {
        piece_bytes,
        library: None,
        check_crc: true,
        wants_payload: true,
        is_payload_only: false,
        decodes_members: true,
        members: [].into(),
        examines_members: false,
    }
}

/// Reads a sample of a file in memory, and checks that the cursor fulfils its contract.
pub(super) fn read_with(
    cursor: &mut dyn Cursor,
    piece_bytes: usize,
    parts: &[Vec<u8>],
    sample: u64,
    expected: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    let mut sink = CollectingSink(Vec::new());
    let total: usize = parts.iter().map(Vec::len).sum();
    cursor.begin(FILE, sample, expected);
    for _ in 0..total + 100 {
        match cursor.need()? {
            Need::Done => return Ok(sink.0),
            Need::Buffered => cursor.feed(&[], &mut sink)?,
            Need::Length { part } => {
                let length = parts[part].len() as u64;
                cursor.feed(&length.to_le_bytes(), &mut sink)?;
            }
            Need::Bytes { part, offset, len, .. } | Need::Again { part, offset, len } => {
                assert!(0 < len && len <= piece_bytes, "requests {len} bytes");
                let start = (offset as usize).min(parts[part].len());
                let end = start.saturating_add(len).min(parts[part].len());
                cursor.feed(&parts[part][start..end], &mut sink)?;
            }
        }
    }
    panic!("the cursor does not end");
}

pub(super) fn read(
    format: &Format,
    parts: &[Vec<u8>],
    sample: u64,
    expected: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    read_with(&mut *(format.cursor)(&options(4096)), 4096, parts, sample, expected)
}

/// Rows of text have no index, so the runs of a folder must read them in order.
#[test]
fn rows_of_text_are_read_in_order_by_default() {
    let formats = FORMATS.iter().map(|format| format.member());
    for member in formats.filter(|member| member.has(Ability::Undescribed)) {
        let has_index = member.has(Ability::NeedsPlan);
        assert_eq!(member.has(Ability::Sequential), !has_index, "{}", member.name);
    }
}

/// Options with which foreign files that cannot be decoded are errors.
fn strict_options() -> CursorOptions {
    CursorOptions { decodes_members: false, ..options(4096) }
}

/// The error of reading a foreign file that cannot be decoded.
pub(super) fn decoding_error(format: &Format, parts: &[Vec<u8>]) -> FormatError {
    read_with(&mut *(format.cursor)(&strict_options()), 4096, parts, 0, None).unwrap_err()
}

/// The formats that generate files.
fn formats_with_files() -> impl Iterator<Item = &'static Format> {
    let exempt = [Ability::NoFiles, Ability::ReadOnly];
    FORMATS
        .iter()
        .copied()
        .filter(move |format| !exempt.iter().any(|&ability| format.member().has(ability)))
}

/// The formats that only read files.
fn read_only_formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().copied().filter(|format| format.member().has(Ability::ReadOnly))
}

fn shapes() -> Vec<FileShape> {
    let mut shapes = vec![
        shape(&[1], Element::Uint8, 1),
        shape(&[7, 13], Element::Float32, 3),
        shape(&[61, 67], Element::Uint8, 1),
        shape(&[61, 67], Element::Uint8, 3),
        shape(&[5, 3, 2, 2], Element::Float64, 2),
        shape(&[100, 101], Element::Float16, 1),
        shape(&[3], Element::Int16, 1000),
        shape(&[200_000], Element::Uint8, 3),
        shape(&[31, 37, 2], Element::Uint8, 1),
        shape(&[31, 37, 3], Element::Uint8, 1),
        shape(&[131, 137, 4], Element::Uint16, 1),
    ];
    shapes.extend(Element::ALL.map(|element| shape(&[33], element, 2)));
    shapes
}

/// Returns the first of `shapes` that the format supports.
fn first_supported(format: &Format, shapes: &[FileShape]) -> FileShape {
    *shapes.iter().find(|shape| is_supported(format, shape, &Encoding::default())).unwrap()
}

fn is_supported(format: &Format, shape: &FileShape, encoding: &Encoding) -> bool {
    let elements = format.entry.elements;
    let has_element = elements.is_empty() || elements.contains(&shape.element);
    has_element && (format.entry.unsupported_setting)(shape, encoding).is_none()
}

fn small(format: &Format) -> FileShape {
    first_supported(
        format,
        &[shape(&[4, 5], Element::Float32, 3), shape(&[4, 5], Element::Uint8, 1)],
    )
}

/// All encodings of a format: without compression and with each supported one, and in chunks if it has them.
fn encodings(format: &Format, shape: &FileShape) -> Vec<Encoding> {
    let entry = format.entry;
    let mut chunkings = vec![Vec::new()];
    if entry.encoding_keys.contains(&"dataset.hdf5.chunk_dims") {
        let halves = shape.dims.as_slice().iter().map(|dim| dim.div_ceil(2));
        chunkings.push([1].into_iter().chain(halves).collect());
        let whole = shape.dims.as_slice().iter().copied();
        chunkings.push([shape.samples.min(2)].into_iter().chain(whole).collect());
    }
    let packed = entry.compressions.iter().copied();
    let compressions: Vec<Compression> = [Compression::None].into_iter().chain(packed).collect();
    let encoding = |chunk_dims: &Vec<u64>, compression| Encoding {
        compression,
        chunk_dims: chunk_dims.clone(),
        ..Encoding::default()
    };
    let chunkings = chunkings.iter();
    chunkings.flat_map(|dims| compressions.iter().map(move |&c| encoding(dims, c))).collect()
}

#[test]
fn abilities_agree_with_the_members_of_formats() {
    for format in FORMATS {
        let name = format.member().name;
        assert_eq!(format.parts.len() > 1, format.member().has(Ability::Sidecars), "{name}");
        assert_eq!(format.lister.is_some(), format.member().has(Ability::RowGroups), "{name}");
    }
}

#[test]
fn names_are_unique_and_found() {
    for format in FORMATS {
        let name = format.member().name;
        assert_eq!(find(name).unwrap().member().name, name);
        assert_eq!(FORMATS.iter().filter(|other| other.member().name == name).count(), 1);
        assert_eq!(format.parts[0], Part::DATA, "the data file comes first");
    }
    assert_eq!(entries().len(), FORMATS.len());
}

#[test]
fn written_samples_can_be_read() {
    for format in formats_with_files() {
        for (shape, encoding) in shapes().iter().flat_map(|shape| {
            encodings(format, shape).into_iter().map(move |encoding| (*shape, encoding))
        }) {
            if is_supported(format, &shape, &encoding) {
                read_back(format, &shape, &encoding);
            }
        }
    }
}

fn read_back(format: &Format, shape: &FileShape, encoding: &Encoding) {
    let context = format!("{} {} {encoding:?}", format.member().name, describe_shape(shape));
    let parts = encode_with(format, shape, encoding, 1000);
    if format.entry.has_exact_size(encoding) {
        let bytes: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(format.file_bytes(shape, encoding), bytes as u64, "{context}");
    }
    assert_eq!(parts, encode_with(format, shape, encoding, 4099), "{context}");
    for piece_bytes in [4096, 8192, 1 << 20] {
        let mut cursor = (format.cursor)(&options(piece_bytes));
        for expected in [Some(shape), None] {
            let is_other =
                format.member().has(Ability::NeedsPlan) || includes_labels(format, shape);
            if expected.is_none() && is_other {
                continue;
            }
            for sample in [0, shape.samples - 1] {
                let payload = read_with(&mut *cursor, piece_bytes, &parts, sample, expected);
                let payload = payload.unwrap_or_else(|error| panic!("{context}: {error}"));
                check_payload(format, shape, sample, expected, &payload, &context);
                assert!(cursor.file_shape().is_none_or(|found| found.samples == shape.samples));
            }
        }
    }
}

/// Whether labels of 8 bytes have a tenth of the bytes of npz samples. Then a sample without a plan includes them.
fn includes_labels(format: &Format, shape: &FileShape) -> bool {
    format.member().name == "npz" && shape.sample_bytes() <= 80
}

fn check_payload(
    format: &Format,
    shape: &FileShape,
    sample: u64,
    expected: Option<&FileShape>,
    payload: &[u8],
    context: &str,
) {
    // Without a plan the start of a sample in a file without header is unknown.
    if expected.is_none() && format.member().has(Ability::Undescribed) {
        return;
    }
    assert_eq!(payload.len() as u64, shape.sample_bytes(), "{context}");
    if !format.member().has(Ability::Lossy) {
        let mut content = Content::new(SEED);
        content.select_file(FILE);
        assert_eq!(content.matches(sample, 0, shape.element, payload), Ok(()), "{context}");
    }
}

#[test]
fn pieces_begin_at_multiples_of_the_piece() {
    for format in formats_with_files() {
        let shape = shape(&[300, 1000], Element::Uint8, 1);
        let parts = encode_default(format, &shape, 1 << 20);
        let bytes: usize = parts.iter().map(Vec::len).sum();
        let mut cursor = (format.cursor)(&options(8192));
        let mut reads = 0;
        cursor.begin(FILE, 0, Some(&shape));
        loop {
            let bytes: Vec<u8> = match cursor.need().unwrap() {
                Need::Done => break,
                Need::Buffered => Vec::new(),
                Need::Again { part, offset, len } => parts[part][offset as usize..][..len].to_vec(),
                Need::Length { part } => (parts[part].len() as u64).to_le_bytes().into(),
                Need::Bytes { part, offset, len, .. } => {
                    let is_aligned = offset % 8192 == 0 || len < 8192;
                    assert!(is_aligned, "{}: {len} at {offset}", format.member().name);
                    reads += 1;
                    parts[part][offset as usize..][..len].to_vec()
                }
            };
            cursor.feed(&bytes, &mut Discard).unwrap();
        }
        assert!(reads <= bytes / 8192 + 6, "{}: {reads} reads", format.member().name);
    }
}

/// Number of bytes that a cursor reads until it knows the shape.
fn bytes_until_found(format: &Format, file: &[u8]) -> Result<usize, FormatError> {
    let mut cursor = (format.cursor)(&strict_options());
    cursor.begin(FILE, 0, None);
    let mut read = 0;
    while cursor.file_shape().is_none() {
        match cursor.need()? {
            Need::Length { .. } => cursor.feed(&(file.len() as u64).to_le_bytes(), &mut Discard)?,
            Need::Bytes { offset, len, .. } => {
                read += len;
                let fed = cursor.feed(&file[offset as usize..][..len], &mut Discard);
                fed.map_err(|error| FormatError::new(read as u64, error.message))?;
            }
            need => panic!("{need:?} of an image"),
        }
    }
    Ok(read)
}

#[test]
fn images_are_recognised_or_refused_by_their_first_bytes() {
    let shape = shape(&[400, 400], Element::Uint8, 1);
    for name in ["png", "jpeg"] {
        let format = find(name).unwrap();
        let mut file = encode_default(format, &shape, 1000).remove(0);
        assert!(file.len() > 50_000);
        assert_eq!(bytes_until_found(format, &file), Ok(4096), "{name}");
        file[0] ^= 1;
        let error = bytes_until_found(format, &file).unwrap_err();
        assert_eq!(error.offset, 4096, "{name}: {error}");
    }
}

#[test]
fn long_headers_of_a_jpeg_are_read() {
    let (jpeg, shape) = (find("jpeg").unwrap(), shape(&[400, 400], Element::Uint8, 1));
    let plain = encode_default(jpeg, &shape, 1000).remove(0);
    let segment = [&[0xff, 0xe1, 0xc3, 0x52][..], &[0; 50_000]].concat();
    let file = [&plain[..2], &segment, &plain[2..]].concat();
    let found = bytes_until_found(jpeg, &file).unwrap();
    assert!((50_000..=2 * 50_000).contains(&found), "{found}");
    assert_eq!(read(jpeg, &[file], 0, None), read(jpeg, &[plain], 0, None));
}

#[test]
fn a_file_of_another_shape_is_refused_with_both_shapes() {
    for format in formats_with_files().filter(|format| !format.member().has(Ability::Undescribed)) {
        let small = small(format);
        let parts = encode_default(format, &small, 1000);
        for other in [
            shape(&[4, 6], small.element, small.samples),
            shape(&[4, 5], small.element, 2),
            shape(&[4, 5], Element::Float64, small.samples),
        ] {
            if !is_supported(format, &other, &Encoding::default()) {
                continue;
            }
            let error = read(format, &parts, 0, Some(&other)).unwrap_err();
            assert!(
                error.message.contains("but the plan says"),
                "{}: {error}",
                format.member().name
            );
        }
        let error = read(format, &parts, small.samples, None).unwrap_err();
        let wanted = format!("there is no sample {}", small.samples);
        assert!(error.message.contains(&wanted), "{}: {error}", format.member().name);
    }
}

#[test]
fn a_file_truncated_anywhere_is_an_error() {
    for format in formats_with_files() {
        let small = small(format);
        let parts = encode_default(format, &small, 1000);
        let has_loose_end = format.member().has(Ability::LooseEnd);
        let required_parts = (0..parts.len()).filter(|&part| !format.parts[part].optional);
        for part in required_parts {
            for len in 0..parts[part].len() {
                let mut truncated = parts.clone();
                truncated[part].truncate(len);
                let planned = read(format, &truncated, small.samples - 1, Some(&small));
                let mut cursor = (format.cursor)(&strict_options());
                let free = read_with(&mut *cursor, 4096, &truncated, small.samples - 1, None);
                if !has_loose_end {
                    assert!(planned.is_err(), "{} part {part} at {len}", format.member().name);
                    let has_shape = !format.member().has(Ability::Undescribed);
                    assert!(
                        !has_shape || free.is_err(),
                        "{} part {part} at {len}",
                        format.member().name
                    );
                }
            }
        }
    }
}

/// A flipped bit outside the payload is either refused or harmless. In payload with a checksum, it is refused.
#[test]
fn a_flipped_bit_does_not_make_a_cursor_panic() {
    for format in formats_with_files() {
        let small = small(format);
        let parts = encode_default(format, &small, 1000);
        let sample = small.samples - 1;
        let whole = read(format, &parts, sample, Some(&small)).unwrap();
        for part in 0..parts.len() {
            for bit in 0..parts[part].len() * 8 {
                let mut flipped = parts.clone();
                flipped[part][bit / 8] ^= 1 << (bit % 8);
                let payload = read(format, &flipped, sample, Some(&small));
                if format.member().has(Ability::ChecksContent) {
                    assert!(payload.is_err() || payload == Ok(whole.clone()), "bit {bit}");
                }
                let _ = read(format, &flipped, sample, None);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_make_a_cursor_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000), sample in 0u64..4) {
        for format in read_only_formats() {
            let _ = read(format, &vec![bytes.clone(); format.parts.len()], sample, None);
        }
        for format in formats_with_files() {
            let parts = vec![bytes.clone(); format.parts.len()];
            let _ = read(format, &parts, sample, None);
            let _ = read(format, &parts, sample, Some(&small(format)));
        }
    }

    /// Broken files with a valid start reach more code than random bytes.
    #[test]
    fn overwritten_bytes_do_not_make_a_cursor_panic(
        offset in 0usize..1200, patch in proptest::collection::vec(any::<u8>(), 1..12), sample in 0u64..4,
    ) {
        for format in formats_with_files() {
            let mut parts = encode_default(format, &small(format), 1000);
            for part in &mut parts {
                let start = offset % part.len();
                let len = patch.len().min(part.len() - start);
                part[start..start + len].copy_from_slice(&patch[..len]);
            }
            let _ = read(format, &parts, sample, None);
            let _ = read(format, &parts, sample, Some(&small(format)));
        }
    }
}

/// A sink that skips as much as possible. The other bytes must be the same as in a complete encoding.
struct SparseSink {
    whole: MemorySink,
    position: u64,
    reserved: u64,
}

impl FileSink for SparseSink {
    fn space(&mut self, part: usize) -> &mut [u8] {
        self.whole.space(part)
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        if part == 0 {
            let start = self.position as usize;
            assert_eq!(
                self.whole.space[..len],
                self.whole.parts[0][start..start + len],
                "at {start}"
            );
            self.position += len as u64;
        }
        Ok(())
    }

    fn reserve(&mut self, _part: usize, len: usize) -> Result<(), SinkError> {
        self.position += len as u64;
        self.reserved += len as u64;
        Ok(())
    }

    fn patch(&mut self, _part: usize, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }

    fn skip(&mut self, part: usize, len: u64) -> bool {
        let is_skipped = part == 0 && self.position > 100_000;
        self.position += if is_skipped { len } else { 0 };
        is_skipped
    }
}

#[test]
fn a_sink_may_skip_payload() {
    for format in formats_with_files() {
        for shape in [shape(&[3_000_000], Element::Uint8, 1), shape(&[500_000], Element::Uint16, 3)]
        {
            if !is_supported(format, &shape, &Encoding::default()) {
                continue;
            }
            let parts = encode_default(format, &shape, 1 << 20);
            let bytes = parts[0].len() as u64;
            let whole = MemorySink { parts, space: vec![0; 1 << 20] };
            let mut sink = SparseSink { whole, position: 0, reserved: 0 };
            let mut content = Content::new(SEED);
            content.select_file(FILE);
            (format.encode)(&shape, &Encoding::default(), &mut content, &mut sink).unwrap();
            assert_eq!(sink.position, bytes, "{}", format.member().name);
        }
    }
}

#[test]
fn null_reads_the_planned_number_of_bytes() {
    let format = find("null").unwrap();
    let shape = shape(&[10_000], Element::Uint8, 2);
    let parts = [vec![7; 20_000]];
    assert_eq!(read(format, &parts, 1, Some(&shape)).unwrap(), vec![7; 10_000]);
    assert!(read(format, &parts, 1, None).unwrap().is_empty());
    assert_eq!(format.file_bytes(&shape, &Encoding::default()), 0);
}

/// The index is too long to be kept in memory, so entries are read one by one.
#[test]
fn a_long_index_is_read_entry_by_entry() {
    let format = find("indexed_binary").unwrap();
    let shape = shape(&[1], Element::Uint8, (16 << 20) / 16 + 1);
    let parts = encode_default(format, &shape, 1 << 20);
    for sample in [0, 77, shape.samples - 1] {
        let payload = read(format, &parts, sample, Some(&shape)).unwrap();
        check_payload(format, &shape, sample, Some(&shape), &payload, "");
    }
}

#[test]
fn a_broken_gzip_stream_is_not_recognised() {
    let mut head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    // No block of a deflate stream begins with these bits.
    head.extend([0xff; 200]);
    assert!(recognise(&head, "gz").is_none());
}
