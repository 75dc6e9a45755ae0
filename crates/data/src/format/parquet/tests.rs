//! Tests of row groups and reading orders, of small files of pyarrow, and of invalid files.

use super::super::tests::{encode_with, options, read, read_with, shape};
use super::super::{Need, find};
use super::chunk::ChunkStream;
use super::footer::{RowGroup, SampleColumn};
use super::*;

/// Files of pyarrow 26 (`write_table`) with seven rows in row groups of four, after a column of int32. Files with nulls
/// have one in row 2.
const FIXTURES: [(&str, &[u8]); 5] = [
    ("snappy_dictionary_v1", include_bytes!("fixtures/snappy_dictionary_v1.parquet")),
    ("gzip_nulls_v1", include_bytes!("fixtures/gzip_nulls_v1.parquet")),
    ("plain_nulls_dictionary_v2", include_bytes!("fixtures/plain_nulls_dictionary_v2.parquet")),
    ("snappy_v2", include_bytes!("fixtures/snappy_v2.parquet")),
    ("fixed", include_bytes!("fixtures/fixed.parquet")),
];

fn rows(fixture: &str) -> Vec<Vec<u8>> {
    if fixture == "fixed" {
        return vec![b"12345678".to_vec(); 7];
    }
    let text = b"abcdefgh".repeat(4);
    vec![
        text.clone(),
        b"de".to_vec(),
        vec![],
        b"xyz".repeat(20),
        text,
        b"de".to_vec(),
        b"q".repeat(9),
    ]
}

fn parquet() -> &'static Format {
    find("parquet").unwrap()
}

fn encoding_with_groups(row_group_samples: u64) -> Encoding {
    Encoding { row_group_samples, ..Encoding::default() }
}

fn gzip_with_groups(row_group_samples: u64, compression_level: u32) -> Encoding {
    Encoding {
        compression: Compression::Gzip,
        compression_level,
        ..encoding_with_groups(row_group_samples)
    }
}

#[test]
fn every_size_of_row_group_is_read_in_every_order() {
    for (dims, samples) in [(&[1][..], 1000), (&[5000], 23), (&[700_000], 5)] {
        let shape = shape(dims, Element::Uint8, samples);
        for rows in [1, 2, 7, 64, 5000] {
            let encoding = encoding_with_groups(rows);
            let parts = encode_with(parquet(), &shape, &encoding, 5000);
            assert_eq!(parts[0].len() as u64, layout::file_bytes(&shape, &encoding));
            for piece_bytes in [4096, 1 << 20] {
                read_in_orders(&shape, &parts, piece_bytes);
            }
        }
    }
}

/// With sinks of different lengths, and at each compression level.
#[test]
fn compressed_row_groups_are_read_in_every_order() {
    for (dims, samples) in [(&[1][..], 1000), (&[5000], 23), (&[1_200_000], 3)] {
        let shape = shape(dims, Element::Uint8, samples);
        for (rows, level) in [(7, 0), (64, 1), (7, 4), (64, 9)] {
            let encoding = gzip_with_groups(rows, level);
            let parts = encode_with(parquet(), &shape, &encoding, 5000);
            assert_eq!(parts, encode_with(parquet(), &shape, &encoding, 1 << 20));
            let expected = layout::file_bytes(&shape, &encoding) as f64;
            let is_tiny = shape.sample_bytes() < 100;
            let ratio = parts[0].len() as f64 / expected;
            assert!(is_tiny || (ratio - 1.0).abs() < 0.06, "{ratio} {dims:?} {level}");
            read_in_orders(&shape, &parts, 64 << 10);
        }
    }
}

fn read_in_orders(shape: &FileShape, parts: &[Vec<u8>], piece_bytes: usize) {
    let mut content = Content::new(42);
    content.select_file(5);
    let mut cursor = (parquet().cursor)(&options(piece_bytes));
    let steps = |step: u64| (0..shape.samples).map(move |i| i * step % shape.samples);
    // Ascending, ascending with gaps, and in random order.
    for sample in steps(1).chain(steps(3)).chain(steps(shape.samples - 1).take(30)) {
        let payload = read_with(&mut *cursor, piece_bytes, parts, sample, Some(shape)).unwrap();
        assert_eq!(payload.len() as u64, shape.sample_bytes());
        assert_eq!(content.matches(sample, 0, shape.element, &payload), Ok(()), "{sample}");
    }
}

/// The requests of a cursor for some samples.
fn reads(parts: &[Vec<u8>], shape: &FileShape, samples: &[u64]) -> Vec<(u64, usize)> {
    let mut cursor = (parquet().cursor)(&options(8192));
    let mut reads = Vec::new();
    for &sample in samples {
        cursor.begin(1, sample, Some(shape));
        loop {
            match cursor.need().unwrap() {
                Need::Done => break,
                Need::Again { offset, len, .. } => {
                    let bytes = &parts[0][offset as usize..][..len];
                    cursor.feed(bytes, &mut super::super::Discard).unwrap();
                }
                Need::Buffered => cursor.feed(&[], &mut super::super::Discard).unwrap(),
                Need::Length { .. } => {
                    let length = parts[0].len() as u64;
                    cursor.feed(&length.to_le_bytes(), &mut super::super::Discard).unwrap();
                }
                Need::Bytes { offset, len, .. } => {
                    reads.push((offset, len));
                    let bytes = &parts[0][offset as usize..][..len];
                    cursor.feed(bytes, &mut super::super::Discard).unwrap();
                }
            }
        }
    }
    reads
}

#[test]
fn samples_in_order_read_each_byte_of_a_row_group_once() {
    let packed = [10, 3000, 50_000].map(|size| (size, gzip_with_groups(8, 1)));
    let plain = [10, 1000, 3000, 50_000].map(|size| (size, encoding_with_groups(8)));
    for (size, encoding) in packed.into_iter().chain(plain) {
        let shape = shape(&[size], Element::Uint8, 40);
        let parts = encode_with(parquet(), &shape, &encoding, 5000);
        let all: Vec<u64> = (0..40).collect();
        let mut reads = reads(&parts, &shape, &all);
        let read: usize = reads.iter().map(|(_, len)| len).sum();
        assert!(read <= parts[0].len(), "{read} bytes of {}", parts[0].len());
        reads.sort_unstable();
        assert!(reads.windows(2).all(|w| w[0].0 + w[0].1 as u64 <= w[1].0), "{reads:?}");
    }
}

#[test]
fn a_sample_is_read_from_the_start_of_its_row_group() {
    let shape = shape(&[10_000], Element::Uint8, 40);
    let parts = encode_with(parquet(), &shape, &encoding_with_groups(8), 5000);
    let bytes = |samples: &[u64]| reads(&parts, &shape, samples).iter().map(|r| r.1).sum::<usize>();
    let first = bytes(&[8]);
    assert!((10_000..30_000).contains(&first), "{first}");
    let last = bytes(&[15]);
    assert!((80_000..83_000).contains(&last), "{last}");
    // A step back reads the row group again, a step forward does not.
    assert!((140_000..160_000).contains(&(bytes(&[15, 14]))));
    assert!(bytes(&[8, 15]) <= last + 2000);
}

#[test]
fn foreign_files_can_be_read() {
    for (name, bytes) in FIXTURES {
        let parts = [bytes.to_vec()];
        for piece_bytes in [4096, 1 << 20] {
            let mut cursor = (parquet().cursor)(&options(piece_bytes));
            for sample in [0, 1, 2, 3, 4, 5, 6, 3, 1, 6, 0] {
                let read = read_with(&mut *cursor, piece_bytes, &parts, sample, None);
                if sample == 2 && name.contains("nulls") {
                    let error = read.unwrap_err().message;
                    assert_eq!(error, "row 2 of the row group is null");
                    continue;
                }
                assert_eq!(read.unwrap(), rows(name)[sample as usize], "{name} {sample}");
                let found = cursor.file_shape().unwrap();
                let dims = [rows(name)[sample as usize].len() as u64];
                assert_eq!((found.samples, found.dims.as_slice()), (7, &dims[..]));
            }
        }
        let plan = shape(&[8], Element::Uint8, 7);
        let error = read(parquet(), &parts, 0, Some(&plan)).unwrap_err();
        assert!(error.message.contains("but the plan says"), "{error}");
    }
}

#[test]
fn broken_foreign_files_do_not_make_a_cursor_panic() {
    for (name, bytes) in FIXTURES {
        for len in 0..bytes.len() {
            assert!(read(parquet(), &[bytes[..len].to_vec()], 6, None).is_err(), "{name} {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let parts = [flipped];
            for sample in [0, 3, 6] {
                let _ = read(parquet(), &parts, sample, None);
            }
        }
        for start in 0..bytes.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut broken = bytes.to_vec();
                let end = bytes.len().min(start + 6);
                broken[start..end].fill(value);
                let _ = read(parquet(), &[broken], 5, None);
            }
        }
    }
}

#[test]
fn runs_and_packed_bits_are_decoded() {
    // 3 times 5, then 1 2 3 4 5 6 7 0 of 3 bits, the example of the specification shifted by one.
    let bytes = [6, 5, 3, 0b1101_0001, 0b0101_1000, 0b0001_1111];
    let mut numbers = hybrid::HybridReader::new(3, 0).unwrap();
    let mut on_piece = Vec::new();
    while let Some((value, _)) = numbers.peek_run(&bytes) {
        on_piece.push(value);
        numbers.skip(1);
    }
    assert_eq!(on_piece, [5, 5, 5, 1, 2, 3, 4, 5, 6, 7, 0]);
    assert_eq!(hybrid::HybridReader::new(0, 0).unwrap().peek_run(&[]), Some((0, u64::MAX)));
    assert!(hybrid::HybridReader::new(33, 0).is_none());
    for endless in [&[0; 40][..], &[1; 40], &[0xff; 40]] {
        let mut numbers = hybrid::HybridReader::new(8, 0).unwrap();
        while numbers.peek_run(endless).is_some() {
            numbers.skip(1 << 20);
        }
    }
}

#[test]
fn refusals_name_the_cause() {
    let refusal = |shape: FileShape, rows| {
        find_unsupported_setting(&shape, &encoding_with_groups(rows)).map(|unfit| unfit.message)
    };
    assert_eq!(refusal(shape(&[100], Element::Uint8, 1000), 1), None);
    assert_eq!(refusal(shape(&[SAMPLE_BYTES_MAX], Element::Uint8, 3), 1), None);
    let long = shape(&[PACKED_SAMPLE_BYTES_MAX + 1], Element::Uint8, 1);
    let packed = find_unsupported_setting(&long, &gzip_with_groups(1, 1)).unwrap();
    assert_eq!(find_unsupported_setting(&long, &encoding_with_groups(1)), None);
    insta::assert_snapshot!([
        packed.message,
        refusal(shape(&[100], Element::Uint8, 1000), 0).unwrap(),
        refusal(shape(&[SAMPLE_BYTES_MAX + 1], Element::Uint8, 3), 1).unwrap(),
        refusal(shape(&[u64::MAX], Element::Uint64, u64::MAX), 1).unwrap(),
        refusal(shape(&[1], Element::Uint8, 6_400_001), 64).unwrap(),
    ].join("\n"), @r"
    a sample of `133169153` bytes is longer than the 133169152 of a compressed page
    row groups of `0` samples
    a sample of `2147483644` bytes is longer than the 2147483643 of a page
    a sample of `18446744073709551615` bytes is longer than the 2147483643 of a page
    `6400001` samples in row groups of 64 are more than 100000 groups
    ");
    // The length is computed even for refused files.
    assert_eq!(
        layout::file_bytes(&shape(&[1], Element::Uint8, u64::MAX), &encoding_with_groups(0)),
        u64::MAX
    );
}

/// The limits on writing and on reading are consistent.
#[test]
fn the_longest_footer_can_be_read() {
    let size = 40_000_000_000_000;
    let shape = shape(&[size / GROUPS_MAX], Element::Uint8, GROUPS_MAX);
    let bytes = layout::file_bytes(&shape, &encoding_with_groups(1));
    assert!(bytes - shape.payload_bytes() < FOOTER_BYTES_MAX + GROUPS_MAX * 100);
}

/// If row groups overlap, a piece that was read for one may extend beyond the next.
#[test]
fn a_chunk_ends_before_bytes_that_were_read_beyond_it() {
    let parts =
        encode_with(parquet(), &shape(&[8], Element::Uint8, 4), &encoding_with_groups(4), 5000);
    let start = MAGIC.len();
    let group = RowGroup { start: start as u64, rows: 4, bytes: 3, ..RowGroup::default() };
    let mut stream = ChunkStream::default();
    stream.start(SampleColumn::default(), &group, None).unwrap();
    let error = stream.feed(&parts[0][start..], 0, &mut Vec::new()).unwrap_err();
    assert_eq!(error.message, "the column chunk ends within the header of a page");
}

#[test]
fn errors_name_the_cause() {
    let error = |bytes: &[u8]| read(parquet(), &[bytes.to_vec()], 0, None).unwrap_err().to_string();
    let error_of_tail = |bytes: u32, magic: &[u8; 4]| {
        let mut file = vec![b'x'; 100];
        file[92..96].copy_from_slice(&bytes.to_le_bytes());
        file[96..].copy_from_slice(magic);
        error(&file)
    };
    let mut long = vec![0; (FOOTER_BYTES_MAX + 100) as usize];
    let tail_start = long.len() - 8;
    long[tail_start..tail_start + 4].copy_from_slice(&(FOOTER_BYTES_MAX as u32 + 1).to_le_bytes());
    long[tail_start + 4..].copy_from_slice(MAGIC);
    insta::assert_snapshot!(
        [
            error(b""),
            error(&[0; 5000]),
            error(&long),
            error_of_tail(0, MAGIC),
            error_of_tail(u32::MAX, MAGIC),
            error_of_tail(89, MAGIC),
            error_of_tail(50, MAGIC),
            error_of_tail(50, b"PARE"),
        ]
        .join("\n"), @"
    at byte 0: a file of 0 bytes is too short for parquet
    at byte 4996: no `PAR1` at the end: the file is cut off, or is not parquet
    at byte 16777308: a footer of 16777217 bytes, more than 16777216
    at byte 92: a footer of 0 bytes in a file of 100
    at byte 92: a footer of 4294967295 bytes in a file of 100
    at byte 92: a footer of 89 bytes in a file of 100
    at byte 42: broken parquet footer: it ends within a value
    at byte 96: the footer is encrypted, which is not supported
    "
    );
}
