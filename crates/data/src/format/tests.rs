//! The contract of a format, run over every row: what is written is read back, sizes are as promised, and no
//! file, however broken, makes a cursor panic, loop or claim memory without bound.

use super::*;
use feedrate_spec::catalog::Ability;
use feedrate_spec::shape::{Dims, Element};
use proptest::prelude::*;

const SEED: u64 = 42;
const FILE: u64 = 5;

/// Parts of a file in memory, written in small and odd pieces.
struct MemorySink {
    parts: Vec<Vec<u8>>,
    space: Vec<u8>,
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

fn shape(dims: &[u64], element: Element, samples: u64) -> FileShape {
    FileShape { dims: Dims::new(dims).unwrap(), element, samples }
}

fn encoded(format: &dyn Format, shape: &FileShape, space_bytes: usize) -> Vec<Vec<u8>> {
    let parts = format.parts().iter().map(|_| Vec::new()).collect();
    let mut sink = MemorySink { parts, space: vec![0; space_bytes] };
    let mut content = Content::new(SEED);
    content.start(FILE);
    format.encode(shape, &mut content, &mut sink).unwrap();
    sink.parts
}

struct Collect(Vec<u8>);

impl PayloadSink for Collect {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        assert_eq!(offset, self.0.len() as u64, "payload comes in order");
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn options(piece_bytes: usize) -> CursorOptions {
    CursorOptions { piece_bytes, check_crc: true, wants_payload: true }
}

/// Read a sample of a file in memory, holding the cursor to its contract.
fn read_with(
    cursor: &mut dyn Cursor,
    piece_bytes: usize,
    parts: &[Vec<u8>],
    sample: u64,
    expected: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    let mut collect = Collect(Vec::new());
    let total: usize = parts.iter().map(Vec::len).sum();
    cursor.begin(FILE, sample, expected);
    for _ in 0..total + 100 {
        match cursor.need()? {
            Need::Done => return Ok(collect.0),
            Need::Length { part } => {
                let length = parts[part].len() as u64;
                cursor.feed(&length.to_le_bytes(), &mut collect)?;
            }
            Need::Bytes { part, offset, len } => {
                assert!(0 < len && len <= piece_bytes, "asks for {len} bytes");
                let from = (offset as usize).min(parts[part].len());
                let to = from.saturating_add(len).min(parts[part].len());
                cursor.feed(&parts[part][from..to], &mut collect)?;
            }
        }
    }
    panic!("the cursor does not come to an end");
}

fn read(
    format: &dyn Format,
    parts: &[Vec<u8>],
    sample: u64,
    expected: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    read_with(&mut *format.cursor(&options(4096)), 4096, parts, sample, expected)
}

fn with_files() -> impl Iterator<Item = &'static dyn Format> {
    FORMATS.iter().copied().filter(|format| !format.member().has(Ability::NoFiles))
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
    ];
    shapes.extend(Element::ALL.map(|element| shape(&[33], element, 2)));
    shapes
}

fn small() -> FileShape {
    shape(&[4, 5], Element::Float32, 3)
}

#[test]
fn names_are_unique_and_found() {
    for format in FORMATS {
        let name = format.member().name;
        assert_eq!(find(name).unwrap().member().name, name);
        assert_eq!(FORMATS.iter().filter(|other| other.member().name == name).count(), 1);
        assert_eq!(format.parts()[0], "", "the data file comes first");
    }
    assert_eq!(entries().len(), FORMATS.len());
}

#[test]
fn what_is_written_is_read_back() {
    for format in with_files() {
        for shape in shapes() {
            let parts = encoded(format, &shape, 1000);
            let bytes: usize = parts.iter().map(Vec::len).sum();
            let context = format!("{} {}", format.member().name, in_words(&shape));
            assert_eq!(format.file_bytes(&shape), bytes as u64, "{context}");
            assert_eq!(parts, encoded(format, &shape, 4099), "{context}");
            for piece_bytes in [4096, 8192, 1 << 20] {
                let mut cursor = format.cursor(&options(piece_bytes));
                for expected in [Some(&shape), None] {
                    for sample in [0, shape.samples - 1] {
                        let payload =
                            read_with(&mut *cursor, piece_bytes, &parts, sample, expected);
                        let payload = payload.unwrap_or_else(|error| panic!("{context}: {error}"));
                        assert_eq!(payload.len() as u64, shape.sample_bytes(), "{context}");
                        let mut content = Content::new(SEED);
                        content.start(FILE);
                        assert_eq!(
                            content.matches(sample, 0, shape.element, &payload),
                            Ok(()),
                            "{context}"
                        );
                        assert!(cursor.found().is_none_or(|found| found.samples == shape.samples));
                    }
                }
            }
        }
    }
}

#[test]
fn pieces_begin_at_multiples_of_the_piece() {
    for format in with_files() {
        let shape = shape(&[300, 1000], Element::Uint8, 1);
        let parts = encoded(format, &shape, 1 << 20);
        let mut cursor = format.cursor(&options(8192));
        let mut reads = 0;
        cursor.begin(FILE, 0, Some(&shape));
        loop {
            let bytes: Vec<u8> = match cursor.need().unwrap() {
                Need::Done => break,
                Need::Length { part } => (parts[part].len() as u64).to_le_bytes().into(),
                Need::Bytes { part, offset, len } => {
                    let begins_whole = offset % 8192 == 0 || len < 8192;
                    assert!(begins_whole, "{}: {len} at {offset}", format.member().name);
                    reads += 1;
                    parts[part][offset as usize..][..len].to_vec()
                }
            };
            cursor.feed(&bytes, &mut Discard).unwrap();
        }
        assert!(reads <= 300_000 / 8192 + 4, "{}: {reads} reads", format.member().name);
    }
}

#[test]
fn a_file_of_another_shape_is_refused_with_both_shapes() {
    for format in with_files() {
        let parts = encoded(format, &small(), 1000);
        for other in [
            shape(&[4, 6], Element::Float32, 3),
            shape(&[4, 5], Element::Float32, 2),
            shape(&[4, 5], Element::Float64, 3),
        ] {
            let error = read(format, &parts, 0, Some(&other)).unwrap_err();
            assert!(
                error.message.contains("but the plan says"),
                "{}: {error}",
                format.member().name
            );
        }
        let error = read(format, &parts, 3, None).unwrap_err();
        assert!(
            error.message.contains("there is no sample 3"),
            "{}: {error}",
            format.member().name
        );
    }
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    for format in with_files() {
        let parts = encoded(format, &small(), 1000);
        for part in 0..parts.len() {
            for len in 0..parts[part].len() {
                let mut cut = parts.clone();
                cut[part].truncate(len);
                for expected in [Some(&small()), None] {
                    let last = read(format, &cut, 2, expected);
                    assert!(last.is_err(), "{} part {part} at {len}", format.member().name);
                }
            }
        }
    }
}

/// Beyond the payload a flipped bit is either refused or harmless; in checked payload it is refused.
#[test]
fn no_flipped_bit_makes_a_cursor_panic() {
    for format in with_files() {
        let parts = encoded(format, &small(), 1000);
        let whole = read(format, &parts, 1, None).unwrap();
        for part in 0..parts.len() {
            for bit in 0..parts[part].len() * 8 {
                let mut flipped = parts.clone();
                flipped[part][bit / 8] ^= 1 << (bit % 8);
                let payload = read(format, &flipped, 1, Some(&small()));
                if format.member().has(Ability::ChecksContent) {
                    assert!(payload.is_err() || payload == Ok(whole.clone()), "bit {bit}");
                }
                let _ = read(format, &flipped, 1, None);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_cursor_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000), sample in 0u64..4) {
        for format in with_files() {
            let parts = vec![bytes.clone(); format.parts().len()];
            let _ = read(format, &parts, sample, None);
            let _ = read(format, &parts, sample, Some(&small()));
        }
    }

    /// Broken files that begin well get further than noise does.
    #[test]
    fn no_overwritten_bytes_make_a_cursor_panic(
        at in 0usize..1200, patch in proptest::collection::vec(any::<u8>(), 1..12), sample in 0u64..4,
    ) {
        for format in with_files() {
            let mut parts = encoded(format, &small(), 1000);
            for part in &mut parts {
                let from = at % part.len();
                let len = patch.len().min(part.len() - from);
                part[from..from + len].copy_from_slice(&patch[..len]);
            }
            let _ = read(format, &parts, sample, None);
            let _ = read(format, &parts, sample, Some(&small()));
        }
    }
}

/// Skips what it may; the rest must be what a whole encoding has there.
struct SparseSink {
    whole: MemorySink,
    at: u64,
    reserved: u64,
}

impl FileSink for SparseSink {
    fn space(&mut self, part: usize) -> &mut [u8] {
        self.whole.space(part)
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        if part == 0 {
            let from = self.at as usize;
            assert_eq!(self.whole.space[..len], self.whole.parts[0][from..from + len], "at {from}");
            self.at += len as u64;
        }
        Ok(())
    }

    fn reserve(&mut self, _part: usize, len: usize) -> Result<(), SinkError> {
        self.at += len as u64;
        self.reserved += len as u64;
        Ok(())
    }

    fn patch(&mut self, _part: usize, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }

    fn skip(&mut self, part: usize, len: u64) -> bool {
        let skips = part == 0 && self.at > 100_000;
        self.at += if skips { len } else { 0 };
        skips
    }
}

#[test]
fn a_sink_may_skip_payload() {
    for format in with_files() {
        for shape in [shape(&[3_000_000], Element::Uint8, 1), shape(&[500_000], Element::Uint16, 3)]
        {
            let parts = encoded(format, &shape, 1 << 20);
            let bytes = parts[0].len() as u64;
            let whole = MemorySink { parts, space: vec![0; 1 << 20] };
            let mut sink = SparseSink { whole, at: 0, reserved: 0 };
            let mut content = Content::new(SEED);
            content.start(FILE);
            format.encode(&shape, &mut content, &mut sink).unwrap();
            assert_eq!(sink.at, bytes, "{}", format.member().name);
        }
    }
}

#[test]
fn null_reads_as_many_bytes_as_the_plan_says() {
    let format = find("null").unwrap();
    let shape = shape(&[10_000], Element::Uint8, 2);
    let parts = [vec![7; 20_000]];
    assert_eq!(read(format, &parts, 1, Some(&shape)).unwrap(), vec![7; 10_000]);
    assert!(read(format, &parts, 1, None).unwrap().is_empty());
    assert_eq!(format.file_bytes(&shape), 0);
}

mod npz {
    //! Archives that feedrate does not write, put together byte by byte.

    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    /// A member as Python's `zipfile` writes it to a seekable file.
    struct Member {
        name: &'static str,
        method: u16,
        packed: Vec<u8>,
        bytes: u64,
        crc: u32,
    }

    fn array(len: usize) -> Vec<u8> {
        let mut bytes = npy_header::write(&shape(&[len as u64], Element::Uint8, 1));
        bytes.extend((0..len).map(|i| (i % 251) as u8));
        bytes
    }

    fn stored(name: &'static str, bytes: &[u8]) -> Member {
        Member {
            name,
            method: 0,
            packed: bytes.to_vec(),
            bytes: bytes.len() as u64,
            crc: crc32fast::hash(bytes),
        }
    }

    fn deflated(name: &'static str, bytes: &[u8]) -> Member {
        let mut packed = Vec::with_capacity(bytes.len() + 1000);
        let mut compress = Compress::new(Compression::default(), false);
        compress.compress_vec(bytes, &mut packed, FlushCompress::Finish).unwrap();
        Member { packed, method: 8, ..stored(name, bytes) }
    }

    /// Small headers, no zip64; `comment` at the end.
    fn archive(members: &[Member], comment: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut directory = Vec::new();
        for m in members {
            let offset = file.len() as u32;
            let mut fields = Vec::new();
            for value in [20, 0, m.method, 0, 33] {
                fields.extend(u16::to_le_bytes(value));
            }
            fields.extend(m.crc.to_le_bytes());
            fields.extend((m.packed.len() as u32).to_le_bytes());
            fields.extend((m.bytes as u32).to_le_bytes());
            fields.extend((m.name.len() as u16).to_le_bytes());
            fields.extend([0, 0]);
            file.extend(b"PK\x03\x04");
            file.extend(&fields);
            file.extend(m.name.as_bytes());
            file.extend(&m.packed);
            directory.extend(b"PK\x01\x02\x14\x00");
            directory.extend(&fields);
            directory.extend([0; 10]);
            directory.extend(offset.to_le_bytes());
            directory.extend(m.name.as_bytes());
        }
        let start = file.len() as u32;
        file.extend(&directory);
        file.extend(b"PK\x05\x06\0\0\0\0");
        file.extend([(members.len() as u16).to_le_bytes(); 2].concat());
        file.extend((directory.len() as u32).to_le_bytes());
        file.extend(start.to_le_bytes());
        file.extend((comment.len() as u16).to_le_bytes());
        file.extend(comment);
        file
    }

    fn read_npz(file: Vec<u8>) -> Result<Vec<u8>, String> {
        let format = find("npz").unwrap();
        let small = read(format, std::slice::from_ref(&file), 0, None);
        let large = read_with(&mut *format.cursor(&options(1 << 20)), 1 << 20, &[file], 0, None);
        assert_eq!(small, large);
        small.map_err(|error| error.to_string())
    }

    fn check(members: &[Member], comment: &[u8], len: usize) {
        let expected: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        assert_eq!(read_npz(archive(members, comment)), Ok(expected));
    }

    #[test]
    fn other_archives_are_read() {
        for len in [0, 1, 100, 4096, 100_000] {
            let bytes = array(len);
            check(&[stored("x.npy", &bytes)], b"", len);
            check(&[deflated("x.npy", &bytes)], b"", len);
            check(&[deflated("y.npy", &array(9)), stored("x.npy", &bytes)], b"a comment", len);
            check(
                &[deflated("x.npy", &bytes), stored("z.npy", &array(70_000))],
                &[b'-'; 0xffff],
                len,
            );
        }
    }

    #[test]
    fn many_members_need_a_longer_look() {
        let mut members: Vec<Member> =
            (0..2000).map(|_| stored("some_other_member.npy", b"")).collect();
        members.insert(1000, stored("x.npy", &array(5000)));
        check(&members, b"", 5000);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let bytes = array(100);
        let lied = |change: fn(&mut Member)| {
            let mut member = stored("x.npy", &array(100));
            change(&mut member);
            read_npz(archive(&[member], b"")).unwrap_err()
        };
        let many: Vec<Member> = (0..12).map(|_| stored("data.npy", &bytes)).collect();
        let mut broken = deflated("x.npy", &bytes);
        broken.packed[0] ^= 0x06;
        insta::assert_snapshot!([
            read_npz(Vec::new()).unwrap_err(),
            read_npz(vec![b'x'; 5000]).unwrap_err(),
            read_npz(vec![0; 100_000]).unwrap_err(),
            read_npz(archive(&[], b"")).unwrap_err(),
            read_npz(archive(&many, b"")).unwrap_err(),
            lied(|m| m.crc ^= 1),
            lied(|m| m.method = 93),
            lied(|m| m.bytes += 1),
            lied(|m| { m.packed.push(0); m.bytes += 1; }),
            lied(|m| { m.packed.pop(); m.bytes -= 1; }),
            lied(|m| { m.packed[0] = 0; }),
            read_npz(archive(&[broken], b"")).unwrap_err(),
        ].join("\n"), @r#"
        at byte 0: a file of 0 bytes is too short for an npz
        at byte 5000: no zip directory: the file is cut off, or is not an npz
        at byte 100000: no zip directory: the file is cut off, or is not an npz
        at byte 0: no member `x.npy`: the archive holds nothing
        at byte 3192: no member `x.npy`: the archive holds `data.npy`, `data.npy`, `data.npy`, `data.npy`, `data.npy`, `data.npy`, `data.npy`, `data.npy` and 4 more
        at byte 0: CRC-32 of `x.npy` is 36a7010f, the archive says 36a7010e
        at byte 0: member `x.npy` is compressed by method `93`, not deflate
        at byte 0: member `x.npy` is stored, yet 229 bytes take up 228
        at byte 0: member `x.npy` holds 229 bytes, but its array is 228 long
        at byte 0: member `x.npy` holds 227 bytes, but its array is 228 long
        at byte 35: not an npy array: it does not start with `\x93NUMPY`
        at byte 35: broken deflate stream: deflate decompression error: invalid code lengths set
        "#);
    }

    /// A megabyte of zeros packs to a kilobyte: memory stays what it was, and a lie about the length is found.
    #[test]
    fn a_bomb_is_refused_when_it_exceeds_its_claim() {
        let mut bytes = array(100);
        bytes.extend(vec![0; 50_000_000]);
        let mut bomb = deflated("x.npy", &bytes);
        bomb.bytes = array(100).len() as u64;
        let error = read_npz(archive(&[bomb], b"")).unwrap_err();
        assert!(error.contains("goes on"), "{error}");
    }

    /// Of a member beyond 4 GiB: only the numbers are that large.
    #[test]
    fn sizes_beyond_32_bits_are_exact() {
        let format = find("npz").unwrap();
        let payload = 5_000_000_000;
        let one = format.file_bytes(&shape(&[payload], Element::Uint8, 1));
        // numpy.savez of the same shapes, by its own arithmetic: 20 more for x's sizes, 12 for y's offset, 76 at the end.
        assert_eq!(one, 1_049_074 - (1 << 20) + payload + 20 + 12 + 76);
        assert_eq!(format.file_bytes(&shape(&[1024, 1024], Element::Uint8, 1)), 1_049_074);
    }
}
