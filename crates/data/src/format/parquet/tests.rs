//! Tests of row groups and reading orders, of small files of pyarrow, and of invalid files.
//!
//! Long because small files are built byte by byte.

use super::super::tests::{encode_with, options, read, read_with, shape};
use super::super::{CursorOptions, Need, find};
use super::chunk::ChunkStream;
use super::footer::Chunk;
use super::schema::SampleColumn;
use super::*;
use feedrate_spec::shape::{ColumnType, TableColumn};

/// Files of pyarrow 26 (`write_table`) with seven rows in row groups of four, after a column of int32. Files with nulls
/// have one in row 2.
const FIXTURES: [(&str, &[u8]); 5] = [
    ("snappy_dictionary_v1", include_bytes!("fixtures/snappy_dictionary_v1.parquet")),
    ("gzip_nulls_v1", include_bytes!("fixtures/gzip_nulls_v1.parquet")),
    ("plain_nulls_dictionary_v2", include_bytes!("fixtures/plain_nulls_dictionary_v2.parquet")),
    ("snappy_v2", include_bytes!("fixtures/snappy_v2.parquet")),
    ("fixed", include_bytes!("fixtures/fixed.parquet")),
];

/// Files of pyarrow 26 with seven rows in row groups of four: a list, text and numbers; and a struct with bytes that can be null, beside
/// lists and a list of lists.
const TABLES: [(&str, &[u8]); 2] = [
    ("table_zstd_v2", include_bytes!("fixtures/table_zstd_v2.parquet")),
    ("struct_lz4_v1", include_bytes!("fixtures/struct_lz4_v1.parquet")),
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
            assert_eq!(parts[0].len() as u64, file_bytes(&shape, &encoding));
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
            let expected = file_bytes(&shape, &encoding) as f64;
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

/// The requests of a cursor for some samples, without the first ones for the end of the file, which contains the footer.
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
    let tail_start = parts[0].len().saturating_sub(8192) as u64;
    let tail: usize =
        reads.iter().map_while(|&(start, len)| (start >= tail_start).then_some(len)).sum();
    assert!((8192..16_384).contains(&tail) || tail == parts[0].len(), "{tail} bytes from the end");
    reads.into_iter().skip_while(|&(start, _)| start >= tail_start).collect()
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
    let bytes = |samples: &[u64]| {
        let reads = reads(&parts, &shape, samples);
        reads.iter().map(|read| read.1).sum::<usize>()
    };
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
                // Row 2 is empty or null.
                let read = read_with(&mut *cursor, piece_bytes, &parts, sample, None);
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
fn every_stored_byte_of_a_table_is_read() {
    for (name, bytes) in TABLES {
        let parts = [bytes.to_vec()];
        let mut cursor =
            (parquet().cursor)(&CursorOptions { decodes_members: false, ..options(4096) });
        let mut read = 0;
        for row in 0..7 {
            let sample = read_with(&mut *cursor, 4096, &parts, row, None).unwrap();
            read += sample.len() as u64;
            assert_eq!(cursor.payload_bytes(), Some(sample.len() as u64), "{name} {row}");
        }
        let stored: u64 = cursor.members().iter().map(|member| member.stored_bytes).sum();
        assert_eq!(read, stored, "{name}");
        // With decoding, the struct's bytes are the samples.
        let mut cursor = (parquet().cursor)(&options(4096));
        let lengths = [0, 1, 2, 3, 4, 5, 6]
            .map(|row| read_with(&mut *cursor, 4096, &parts, row, None).unwrap().len() as u64);
        if name == "struct_lz4_v1" {
            assert_eq!(
                (lengths, cursor.undecoded_type()),
                ([18, 0, 1, 18, 0, 1, 30], Some("nested lists"))
            );
        } else {
            assert_eq!((lengths.iter().sum(), cursor.undecoded_type()), (stored, None));
        }
    }
}

/// Rows whose bytes were read with an earlier row are taken together, with the lengths of rows that are read one by one.
#[test]
fn ready_rows_have_the_lengths_of_single_rows() {
    let column = |name: &str, column_type| TableColumn { name: name.into(), column_type, size: 1 };
    let columns = vec![column("a", ColumnType::Float32), column("b", ColumnType::Int8)];
    let encoding = Encoding { columns, ..encoding_with_groups(900) };
    let mut parts = encode_with(parquet(), &shape(&[5], Element::Uint8, 2000), &encoding, 5000);
    // In files of other programs, a row is a share of the bytes of its row group.
    let writer = parts[0].windows(8).rposition(|bytes| bytes == CREATED_BY.as_bytes()).unwrap();
    parts[0][writer] = b'x';
    let mut single = parquet().reader(&options(4096));
    let lengths: Vec<u64> = (0..2000)
        .map(|row| {
            let payload = read_with(&mut *single, 4096, &parts, row, None).unwrap();
            assert_eq!(single.ready_samples(), 0, "the payload is wanted");
            payload.len() as u64
        })
        .collect();
    assert!(lengths.contains(&6) && lengths.contains(&7));
    for (piece_bytes, taken_max, step) in [(4096, 2000, 1), (4096, 7, 1), (1 << 20, 2000, 3)] {
        let options = CursorOptions { wants_payload: false, ..options(piece_bytes) };
        let mut cursor = parquet().reader(&options);
        let mut row = 0;
        let mut taken_rows = 0;
        while row < 2000 {
            read_with(&mut *cursor, piece_bytes, &parts, row, None).unwrap();
            assert_eq!(cursor.payload_bytes(), Some(lengths[row as usize]), "{row}");
            let ready = cursor.ready_samples().min(taken_max);
            let next = row + 1 + ready;
            let bytes: u64 = lengths[row as usize + 1..next as usize].iter().sum();
            assert_eq!(cursor.take_ready(ready), bytes, "{ready} rows after {row}");
            taken_rows += ready;
            row = next - 1 + step;
        }
        assert!(taken_rows > 1600 || step > 1 && taken_rows > 500, "{taken_rows}");
        // A step backward reads the row group again.
        read_with(&mut *cursor, piece_bytes, &parts, 3, None).unwrap();
        assert_eq!(cursor.payload_bytes(), Some(lengths[3]));
    }
}

#[test]
fn broken_foreign_files_do_not_make_a_cursor_panic() {
    let column =
        |name: &str, column_type, size| TableColumn { name: name.into(), column_type, size };
    let columns = vec![column("a", ColumnType::Float32, 3), column("b", ColumnType::Binary, 5)];
    let bytes = columns.iter().map(TableColumn::row_bytes).sum();
    let encoding = Encoding { columns, ..encoding_with_groups(4) };
    let columns = encode_with(parquet(), &shape(&[bytes], Element::Uint8, 7), &encoding, 5000);
    let columns = [("columns", &*columns[0])];
    for (name, bytes) in FIXTURES.into_iter().chain(TABLES).chain(columns) {
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

/// Columns of every type, alone and together, with one and several values in a row.
fn column_sets() -> Vec<Vec<TableColumn>> {
    let column = |column_type: ColumnType, size| TableColumn {
        name: format!("{}_{size}", column_type.name()),
        column_type,
        size,
    };
    let sizes = [1, 2, 7, 300];
    let mut sets: Vec<_> = ColumnType::ALL
        .map(|column_type| sizes.map(|size| column(column_type, size)).to_vec())
        .into();
    sets.push(ColumnType::ALL.map(|column_type| column(column_type, 3)).to_vec());
    sets.push(vec![column(ColumnType::Float32, 400_000)]);
    sets
}

#[test]
fn columns_are_written_and_read_in_every_order() {
    for columns in column_sets() {
        let bytes = columns.iter().map(TableColumn::row_bytes).sum();
        for (samples, rows) in [(1, 4), (9, 4), (40, 16), (13, 100)] {
            let shape = shape(&[bytes], Element::Uint8, samples);
            let encoding = Encoding { columns: columns.clone(), ..encoding_with_groups(rows) };
            let parts = encode_with(parquet(), &shape, &encoding, 5000);
            assert_eq!(parts[0].len() as u64, file_bytes(&shape, &encoding), "{columns:?}");
            read_in_orders(&shape, &parts, 4096);
        }
    }
}

/// The requests of pyarrow: the end of the file, then whole row groups.
#[test]
fn row_groups_are_read_whole_and_once() {
    let columns = column_sets().pop().unwrap();
    let shape = shape(&[1_600_000], Element::Uint8, 7);
    let encoding = Encoding { columns, ..encoding_with_groups(2) };
    let parts = encode_with(parquet(), &shape, &encoding, 5000);
    let reads = reads(&parts, &shape, &[0, 1, 2, 3, 4, 5, 6]);
    let mut end = MAGIC.len() as u64;
    for (offset, len) in reads {
        assert_eq!(offset, end);
        end += len as u64;
    }
    let footer_bytes = parts[0].len() as u64 - end;
    assert!(footer_bytes < 1000, "{footer_bytes} bytes unread");
}

#[test]
fn refused_columns_name_the_cause() {
    let refusal = |columns: &[TableColumn], samples, encoding| {
        let bytes = columns.iter().map(TableColumn::row_bytes).sum();
        let encoding = Encoding { columns: columns.to_vec(), ..encoding };
        let shape = shape(&[bytes], Element::Uint8, samples);
        find_unsupported_setting(&shape, &encoding).map(|unfit| unfit.message)
    };
    let column = TableColumn { name: "x".into(), column_type: ColumnType::Float32, size: 8 };
    assert_eq!(refusal(std::slice::from_ref(&column), 100, encoding_with_groups(1)), None);
    let long = TableColumn { size: 1 << 40, ..column.clone() };
    insta::assert_snapshot!([
        refusal(&[long], 1, encoding_with_groups(1)).unwrap(),
        refusal(std::slice::from_ref(&column), 10, gzip_with_groups(1, 1)).unwrap(),
        refusal(&[column], 1_000_000, encoding_with_groups(1)).unwrap(),
    ].join("\n"), @r"
    a row of column `x` is longer than 133169152 bytes
    columns are written without compression
    `1` columns in 1000000 row groups are more than 600000 column chunks
    ");
}

#[test]
fn only_selected_columns_are_read() {
    let parts = [include_bytes!("fixtures/snappy_v2.parquet").to_vec()];
    let mut cursor = (parquet().cursor)(&options(4096));
    read_with(&mut *cursor, 4096, &parts, 0, None).unwrap();
    let members = cursor.members();
    assert!(members.len() == 2 && members.iter().all(|member| member.is_read), "{members:?}");
    let other = members.iter().find(|member| member.name != "image").unwrap();
    let selected = CursorOptions { members: [other.name.clone()].into(), ..options(4096) };
    let mut cursor = (parquet().cursor)(&selected);
    let bytes: u64 = (0..7)
        .map(|row| read_with(&mut *cursor, 4096, &parts, row, None).unwrap().len() as u64)
        .sum();
    assert_eq!(bytes, other.stored_bytes);
    let unknown = CursorOptions { members: ["x".to_string()].into(), ..options(4096) };
    let mut cursor = (parquet().cursor)(&unknown);
    let error = read_with(&mut *cursor, 4096, &parts, 0, None).unwrap_err();
    assert!(error.message.starts_with("no column `x`: the file holds `"), "{error}");
}

#[test]
fn lz4_blocks_of_hadoop_are_decompressed() {
    let block = |bytes: &[u8]| {
        let packed = lz4_flex::block::compress(bytes);
        let lengths = [bytes.len() as u32, packed.len() as u32].map(u32::to_be_bytes);
        [lengths.concat(), packed].concat()
    };
    let unpack = |packed: &[u8], bytes: u64| {
        let mut output = Vec::new();
        let unpacker = &mut unpack::Unpacker::default();
        unpacker.unpack(unpack::Codec::Lz4Hadoop, packed, bytes, &mut output).map(|()| output)
    };
    let text = b"abcdefgh".repeat(100);
    let two = [block(&text), block(b"xyz")].concat();
    assert_eq!(unpack(&two, 803), Ok([&text[..], b"xyz"].concat()));
    assert_eq!(unpack(&lz4_flex::block::compress(&text), 800), Ok(text));
    assert!(unpack(&two, 802).is_err() && unpack(&two[..two.len() - 1], 803).is_err());
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
        file_bytes(&shape(&[1], Element::Uint8, u64::MAX), &encoding_with_groups(0)),
        u64::MAX
    );
}

/// The limits on writing and on reading are consistent.
#[test]
fn the_longest_footer_can_be_read() {
    let size = 40_000_000_000_000;
    let shape = shape(&[size / GROUPS_MAX], Element::Uint8, GROUPS_MAX);
    let bytes = file_bytes(&shape, &encoding_with_groups(1));
    assert!(bytes - shape.payload_bytes() < FOOTER_BYTES_MAX + GROUPS_MAX * 100);
}

/// If row groups overlap, a piece that was read for one may extend beyond the next.
#[test]
fn a_chunk_ends_before_bytes_that_were_read_beyond_it() {
    let parts =
        encode_with(parquet(), &shape(&[8], Element::Uint8, 4), &encoding_with_groups(4), 5000);
    let start = MAGIC.len();
    let chunk = Chunk { start: start as u64, bytes: 3, ..Chunk::default() };
    let mut stream = ChunkStream::default();
    stream.start(SampleColumn::default(), &chunk, 4, None);
    let error = stream.feed(&parts[0][start..], 0, &mut Vec::new()).unwrap_err();
    assert_eq!(error.message, "the column chunk ends within the header of a page");
}

/// A page that is too long for the memory is divided among its rows.
#[test]
fn rows_of_a_long_page_are_shares_of_its_bytes() {
    const ROW_BYTES: u64 = 200_000;
    for (kind, field) in [(0, 5), (2, 7)] {
        let rows = 1000;
        let mut writer = thrift::ThriftWriter::default();
        writer.begin();
        writer.i32(1, kind);
        writer.i32(2, (ROW_BYTES * rows + 7) as i64);
        writer.i32(3, (ROW_BYTES * rows) as i64);
        writer.begin_field(field);
        writer.i32(1, rows as i64);
        writer.i32(2, PLAIN);
        writer.end();
        writer.end();
        let header = writer.bytes;
        let bytes = header.len() as u64 + ROW_BYTES * rows;
        let codec = Some(unpack::Codec::Snappy);
        let chunk = Chunk { start: 4, bytes, codec, ..Chunk::default() };
        let mut stream = ChunkStream::default();
        stream.start(SampleColumn { level: 1, ..SampleColumn::default() }, &chunk, rows, None);
        stream.begin_sample();
        stream.feed(&header, 1, &mut Vec::new()).unwrap();
        for row in [1, 2] {
            let mut sample = Vec::new();
            stream.begin_sample();
            while !stream.has_passed(row) {
                stream.feed(&[row as u8; 1000], row, &mut sample).unwrap();
            }
            assert_eq!(sample.len() as u64, ROW_BYTES);
            assert_eq!(stream.found_bytes(), Some(ROW_BYTES));
            assert!(stream.undecoded().is_some());
            assert_eq!(stream.offset(), 4 + header.len() as u64 + (row + 1) * ROW_BYTES);
        }
    }
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
    at byte 67108956: a footer of 67108865 bytes, more than 67108864
    at byte 92: a footer of 0 bytes in a file of 100
    at byte 92: a footer of 4294967295 bytes in a file of 100
    at byte 92: a footer of 89 bytes in a file of 100
    at byte 42: broken parquet footer: it ends within a value
    at byte 96: the footer is encrypted, which is not supported
    "
    );
}
