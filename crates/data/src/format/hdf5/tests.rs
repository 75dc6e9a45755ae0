//! Tests with files that feedrate does not write, and with broken files.
//!
//! Long because all tests use the builder of files.

use super::super::tests::{encode_with, options, read, read_with, shape};
use super::super::{Discard, Need};
use super::checksum::lookup3;
use super::metadata::little_endian;
use super::*;

/// Files written by h5py. `OLD`: `libver="earliest"`, chunks with every filter. The others: `"latest"`, with a fixed array
/// of gzip chunks, and with an extensible array of 300 chunks. The values are 0, 1, 2, …, in the last file modulo 251.
const OLD: &[u8] = include_bytes!("h5py/old.hdf5");
const FIXED: &[u8] = include_bytes!("h5py/fixed.hdf5");
const EXTENSIBLE: &[u8] = include_bytes!("h5py/extensible.hdf5");

fn chunked(chunk_dims: &[u64], compression: Compression, datasets_per_record: u64) -> Encoding {
    let chunk_dims = chunk_dims.to_vec();
    Encoding { chunk_dims, compression, datasets_per_record, ..Encoding::default() }
}

/// Files with each supported structure, and their shapes.
fn files() -> Vec<(Vec<u8>, FileShape)> {
    let written = shape(&[4, 5], Element::Uint16, 3);
    let mut files: Vec<(Vec<u8>, FileShape)> = [
        chunked(&[], Compression::None, 1),
        chunked(&[], Compression::None, 2),
        chunked(&[1, 2, 3], Compression::None, 1),
        chunked(&[2, 4, 5], Compression::Gzip, 1),
    ]
    .iter()
    .map(|encoding| (encode_with(&FORMAT, &written, encoding, 1000).remove(0), written))
    .collect();
    files.push((OLD.to_vec(), shape(&[5, 4], Element::Uint16, 6)));
    files.push((FIXED.to_vec(), shape(&[5, 4], Element::Uint16, 6)));
    files.push((EXTENSIBLE.to_vec(), shape(&[1], Element::Uint8, 300)));
    files
}

#[test]
fn files_of_h5py_are_read() {
    for file in [OLD, FIXED] {
        for sample in 0..6u16 {
            let payload: Vec<u8> = (sample * 20..).take(20).flat_map(u16::to_le_bytes).collect();
            assert_eq!(read(&FORMAT, &[file.to_vec()], sample.into(), None), Ok(payload));
        }
    }
    for sample in 0..300 {
        let payload = vec![(sample % 251) as u8];
        assert_eq!(read(&FORMAT, &[EXTENSIBLE.to_vec()], sample, None), Ok(payload));
    }
}

/// Number of bytes that a cursor requests to read `sample`.
fn requested_bytes(
    cursor: &mut dyn Cursor,
    file: &[u8],
    sample: u64,
    expected: Option<&FileShape>,
) -> usize {
    feed_sample(cursor, file, sample, expected, &mut Discard)
}

/// Passes `sample` on to `sink`, and returns the number of bytes that the cursor requests.
fn feed_sample(
    cursor: &mut dyn Cursor,
    file: &[u8],
    sample: u64,
    expected: Option<&FileShape>,
    sink: &mut dyn PayloadSink,
) -> usize {
    cursor.begin(0, sample, expected);
    let mut requested = 0;
    loop {
        match cursor.need().unwrap() {
            Need::Bytes { offset, len, .. } => {
                requested += len;
                let bytes = &file[offset as usize..][..len];
                cursor.feed(bytes, sink).unwrap();
            }
            Need::Length { .. } => {
                cursor.feed(&(file.len() as u64).to_le_bytes(), sink).unwrap();
            }
            Need::Buffered => cursor.feed(&[], sink).unwrap(),
            Need::Again { .. } => panic!("the hdf5 cursor requests no bytes again"),
            Need::Done => return requested,
        }
    }
}

#[test]
fn metadata_is_read_once_per_file() {
    let shape = shape(&[100, 100], Element::Uint8, 5);
    for encoding in [Encoding::default(), chunked(&[1, 100, 100], Compression::None, 1)] {
        let file = encode_with(&FORMAT, &shape, &encoding, 1000).remove(0);
        let mut cursor = (FORMAT.cursor)(&options(1 << 20));
        assert!(requested_bytes(&mut *cursor, &file, 3, Some(&shape)) > 10_000);
        for sample in [4, 0, 3, 1] {
            assert_eq!(requested_bytes(&mut *cursor, &file, sample, Some(&shape)), 10_000);
        }
    }
}

/// As in the library, whose cache has 8 MiB for each dataset.
#[test]
fn chunks_of_several_samples_are_read_once_if_they_fit_into_the_cache() {
    let check = |side: u64, chunk: &[u64], samples: &[u64], expected: &[usize]| {
        let shape = shape(&[side, side], Element::Uint8, 8);
        let file = encode_with(&FORMAT, &shape, &chunked(chunk, Compression::None, 1), 1000);
        let mut cursor = (FORMAT.cursor)(&options(4 << 20));
        requested_bytes(&mut *cursor, &file[0], 7, Some(&shape));
        let requested: Vec<usize> = samples
            .iter()
            .map(|sample| requested_bytes(&mut *cursor, &file[0], *sample, Some(&shape)))
            .collect();
        assert_eq!(requested, expected, "chunks of {chunk:?}");
    };
    check(100, &[4, 100, 100], &[0, 1, 3, 4, 0], &[40_000, 0, 0, 0, 0]);
    check(100, &[4, 50, 100], &[0, 1, 3, 4, 0], &[40_000, 0, 0, 0, 0]);
    check(1200, &[4, 1200, 1200], &[0, 1, 4, 0], &[5_760_000, 0, 5_760_000, 5_760_000]);
    check(2200, &[2, 2200, 2200], &[0, 1, 0], &[4_840_000, 4_840_000, 4_840_000]);
    check(100, &[1, 100, 100], &[0, 1, 0], &[10_000, 10_000, 10_000]);
}

/// As in the library, whose sieve buffer has 64 KiB for each dataset. Only in files of others: the layout of generated files is known.
#[test]
fn samples_of_contiguous_datasets_are_read_in_pieces() {
    let shape = shape(&[1000], Element::Uint8, 100);
    let file = encode_with(&FORMAT, &shape, &Encoding::default(), 1000).remove(0);
    let mut cursor = (FORMAT.cursor)(&options(4 << 20));
    let mut check = |expected: Option<&FileShape>, samples: &[u64], requested: &[usize]| {
        requested_bytes(&mut *cursor, &file, 99, expected);
        let found = samples.iter().map(|i| requested_bytes(&mut *cursor, &file, *i, expected));
        assert_eq!(found.collect::<Vec<_>>(), requested);
    };
    check(Some(&shape), &[0, 1, 0], &[1000, 1000, 1000]);
    check(None, &[0, 1, 64, 65, 66, 0, 90, 99], &[65_536, 0, 0, 35_000, 0, 65_536, 10_000, 0]);
    let payload = |sample| read(&FORMAT, std::slice::from_ref(&file), sample, None).unwrap();
    let mut in_order = Vec::new();
    for sample in 60..70 {
        in_order.clear();
        feed_sample(&mut *cursor, &file, sample, None, &mut in_order);
        assert_eq!(in_order, payload(sample), "sample {sample}");
    }
}

#[test]
fn a_file_truncated_anywhere_is_an_error() {
    let mut cursor = (FORMAT.cursor)(&options(4096));
    for (mut file, shape) in files() {
        while file.pop().is_some() {
            let parts = [file];
            for expected in [None, Some(&shape)] {
                let payload = read_with(&mut *cursor, 4096, &parts, shape.samples - 1, expected);
                assert!(payload.is_err(), "{} bytes of {}", parts[0].len(), describe_shape(&shape));
            }
            [file] = parts;
        }
    }
}

/// First bytes of metadata blocks.
const SIGNATURES: [&[u8]; 12] = [
    b"\x89HDF", b"OHDR", b"OCHK", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EADB", b"EASB", b"TREE",
    b"HEAP", b"SNOD",
];

fn block_starts(file: &[u8]) -> Vec<usize> {
    let begins =
        |offset: &usize| SIGNATURES.iter().any(|signature| file[*offset..].starts_with(signature));
    (0..file.len()).filter(begins).collect()
}

/// Positions of the checksums, each with the start of the range that it covers.
fn checksum_ranges(file: &[u8]) -> Vec<(usize, usize)> {
    let checksum_range = |start: usize| {
        let ends = (start + 8..file.len().saturating_sub(3))
            .filter(|&end| file[end..].starts_with(&lookup3(&file[start..end]).to_le_bytes()));
        ends.map(|end| (start, end)).next()
    };
    block_starts(file).into_iter().filter_map(checksum_range).collect()
}

/// Writes `bytes` at `offset`, corrects the checksums, reads a few samples, and undoes the change.
fn read_changed(
    cursor: &mut dyn Cursor,
    file: &mut Vec<u8>,
    checksums: &[(usize, usize)],
    offset: usize,
    bytes: &[u8],
) {
    let whole = file.clone();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    for &(start, end) in checksums.iter().filter(|(start, end)| *start <= offset && offset < *end) {
        let sum = lookup3(&file[start..end]).to_le_bytes();
        file[end..end + 4].copy_from_slice(&sum);
    }
    let parts = [std::mem::take(file)];
    for sample in [0, 2] {
        // The reader may accept or refuse the file, but it must end without a panic.
        let _ = read_with(cursor, 4096, &parts, sample, None);
    }
    *file = whole;
}

#[test]
fn changed_bytes_with_correct_checksums_do_not_cause_a_panic() {
    let mut cursor = (FORMAT.cursor)(&options(4096));
    for (mut file, _) in files() {
        let checksums = checksum_ranges(&file);
        let has_old_structures = file[SIGNATURE.len()] == 0;
        assert!(checksums.len() > 2 || has_old_structures, "{} checksums", checksums.len());
        for offset in 0..file.len() {
            let byte = file[offset];
            for changed in [byte ^ 1, byte ^ 0x80, !byte, byte.wrapping_add(8)] {
                read_changed(&mut *cursor, &mut file, &checksums, offset, &[changed]);
            }
        }
    }
}

/// Blocks that point to themselves or to one another.
#[test]
fn exchanged_addresses_do_not_cause_a_panic() {
    let mut cursor = (FORMAT.cursor)(&options(4096));
    for (mut file, _) in files() {
        let (checksums, blocks) = (checksum_ranges(&file), block_starts(&file));
        let mut exchanged = 0;
        for offset in 0..file.len() - 8 {
            let mut word = [0; 8];
            word.copy_from_slice(&file[offset..offset + 8]);
            let address = u64::from_le_bytes(word);
            if address > 0 && blocks.iter().any(|&block| block as u64 == address) {
                let end = file.len() as u64;
                let others = blocks.iter().map(|&block| block as u64);
                for other in others.chain([end - 1, end, u64::MAX - 1, u64::MAX]) {
                    read_changed(&mut *cursor, &mut file, &checksums, offset, &other.to_le_bytes());
                    exchanged += 1;
                }
            }
        }
        assert!(exchanged > 5, "{exchanged} addresses exchanged");
    }
}

/// Blocks of a file, one after another, after space for the superblock.
struct Builder(Vec<u8>);

impl Builder {
    fn new() -> Self {
        Builder(vec![0; 48])
    }

    fn put(&mut self, block: &[u8]) -> u64 {
        let address = self.0.len() as u64;
        self.0.extend(block);
        address
    }

    fn finish(mut self, root: u64) -> Vec<u8> {
        let little_endian = [0, UNDEFINED, self.0.len() as u64, root];
        let superblock =
            [&SIGNATURE[..], &[2, 8, 8, 0], &little_endian.map(u64::to_le_bytes).concat()];
        self.0[..48].copy_from_slice(&with_checksum(superblock.concat()));
        self.0
    }

    fn read(self, root: u64) -> Result<Vec<u8>, FormatError> {
        read(&FORMAT, &[self.finish(root)], 0, None)
    }

    /// A file with a dataset `records_0` of these dimensions, layout and filters.
    fn read_dataset(
        mut self,
        dims: &[u64],
        layout: Vec<u8>,
        filters: &[u8],
    ) -> Result<Vec<u8>, FormatError> {
        let dataset = self.dataset(dims, layout, filters);
        self.read_linked(&[("records_0", dataset)])
    }

    /// Adds a dataset and returns its address.
    fn dataset(&mut self, dims: &[u64], layout: Vec<u8>, filters: &[u8]) -> u64 {
        let space = [&[2, dims.len() as u8, 0, 1][..], &little_endian(dims)].concat();
        let kind = vec![0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
        let mut messages = vec![(0x01, space), (0x03, kind), (0x08, layout)];
        if !filters.is_empty() {
            messages.push((0x0b, filters.to_vec()));
        }
        self.put(&object_header(&messages))
    }

    /// A file with these datasets in the root group.
    fn read_linked(mut self, links: &[(&str, u64)]) -> Result<Vec<u8>, FormatError> {
        let root = self.root(links);
        self.read(root)
    }

    /// Adds a root group with these datasets and returns its address.
    fn root(&mut self, links: &[(&str, u64)]) -> u64 {
        let link = |(name, address): &(&str, u64)| {
            let link = [&[1, 0, name.len() as u8], name.as_bytes(), &address.to_le_bytes()];
            (0x06, link.concat())
        };
        let links: Vec<_> = links.iter().map(link).collect();
        self.put(&object_header(&links))
    }
}

/// An object header of version 2 with the given messages, each with its type.
fn object_header(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        let [low, high] = (message.len() as u16).to_le_bytes();
        body.extend([*kind, low, high, 0]);
        body.extend(message);
    }
    with_checksum([&b"OHDR\x02\x02"[..], &(body.len() as u32).to_le_bytes(), &body].concat())
}

/// The block followed by its checksum.
fn with_checksum(mut block: Vec<u8>) -> Vec<u8> {
    block.extend(lookup3(&block).to_le_bytes());
    block
}

/// A chunked layout of version 3, the index at `index`.
fn tree_layout(index: u64, chunk: &[u32]) -> Vec<u8> {
    let dims = chunk.iter().chain(&[1]).flat_map(|dim| dim.to_le_bytes());
    [&[3, 2, chunk.len() as u8 + 1][..], &index.to_le_bytes()]
        .concat()
        .into_iter()
        .chain(dims)
        .collect()
}

/// A node with one child of a chunk index in two dimensions.
fn node(level: u8, stored: u32, child: u64) -> Vec<u8> {
    let key = [&stored.to_le_bytes()[..], &[0; 28]].concat();
    [&b"TREE\x01"[..], &[level, 1, 0], &[0xff; 16], &key, &child.to_le_bytes(), &[0xff; 32]]
        .concat()
}

const FILTERS_DEFLATE: &[u8] = &[2, 1, 1, 0, 0, 0, 0, 0];
const FILTERS_SHUFFLE: &[u8] = &[2, 1, 2, 0, 0, 0, 1, 0, 4, 0, 0, 0];

fn assert_refused(payload: Result<Vec<u8>, FormatError>, reason: &str) {
    let error = payload.unwrap_err();
    assert!(error.message.contains(reason), "{error}");
}

#[test]
fn blocks_that_point_to_themselves_are_refused() {
    let mut tree = Builder::new();
    let own_address = tree.0.len() as u64;
    tree.put(&node(1, 4, own_address));
    assert_refused(
        tree.read_dataset(&[2, 2], tree_layout(own_address, &[1, 2]), &[]),
        "leads back to itself",
    );

    let mut chain = Builder::new();
    let continuation = |address: u64| [&address.to_le_bytes()[..], &28u64.to_le_bytes()].concat();
    let own_address = chain.0.len() as u64;
    let block = [&b"OCHK\x10\x10\0\0"[..], &continuation(own_address)].concat();
    chain.put(&with_checksum(block));
    let root = chain.put(&object_header(&[(0x10, continuation(own_address))]));
    assert_refused(chain.read(root), "in more than 2048 blocks or 8388608 bytes");

    // Each node has 64 children that are all the next node, so the number of nodes grows exponentially.
    let mut table = Builder::new();
    let heap = table.put(&[&b"HEAP\0\0\0\0"[..], &little_endian(&[8, 0, 48])].concat());
    let mut next = table.put(b"SNOD\x01\0\0\0");
    for level in 0..200 {
        let children = [0, next].map(u64::to_le_bytes).concat().repeat(64);
        let head = [&b"TREE\0"[..], &[level, 64, 0], &[0xff; 16]].concat();
        next = table.put(&[head, children, vec![0; 8]].concat());
    }
    let root_head = [1, 0, 1, 0, 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 16, 0, 0, 0, 0, 0];
    let root = table.put(&[&root_head[..], &little_endian(&[next, heap])].concat());
    assert_refused(table.read(root), "a symbol table of more than 16384 nodes");
}

/// The library appends a block to the root's header for each attribute that is written after another object.
#[test]
fn an_object_header_in_many_blocks_is_read() {
    let mut file = Builder::new();
    let dataset = file.dataset(&[2, 8], [&[3, 1][..], &little_endian(&[48, 16])].concat(), &[]);
    let link = [&[1, 0, 1][..], b"a", &dataset.to_le_bytes()].concat();
    let message = |kind: u8, body: &[u8]| [&[kind, body.len() as u8, 0, 0], body].concat();
    let mut next = message(0x06, &link);
    for _ in 0..1000 {
        let block = with_checksum([&b"OCHK"[..], &next].concat());
        let address = file.put(&block);
        next = message(0x10, &little_endian(&[address, block.len() as u64]));
    }
    let root = file.put(&object_header(&[(0x10, next[4..].to_vec())]));
    assert_eq!(file.read(root).map(|payload| payload.len()), Ok(8));
}

/// Each of the objects continues in the same block, which is full of empty messages and continues in itself.
#[test]
fn objects_that_share_a_long_block_are_not_parsed_without_end() {
    const BLOCK_BYTES: u64 = 1 << 20;
    let mut file = Builder::new();
    let start = file.0.len() as u64;
    let head = [0x10, 0, 16, 0, 0, 0, 0, 0];
    let continuation = [&head[..], &little_endian(&[start, BLOCK_BYTES])].concat();
    file.put(&vec![0; BLOCK_BYTES as usize - continuation.len()]);
    file.put(&continuation);
    let object = [&[1, 0, 1, 0, 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0][..], &continuation].concat();
    let names: Vec<String> = (0..16_000).map(|i| i.to_string()).collect();
    let links: Vec<(&str, u64)> = names.iter().map(|name| (&**name, file.put(&object))).collect();
    assert_refused(file.read_linked(&links), "the largest dataset, cannot be read");
}

#[test]
fn a_broken_largest_dataset_is_not_skipped() {
    let contiguous = |bytes: u64| [&[3, 1][..], &little_endian(&[48, bytes])].concat();
    let read = |dims: &[u64], bytes: u64| {
        let mut file = Builder::new();
        file.put(&[7; 64]);
        let small = file.dataset(&[2, 8], contiguous(16), &[]);
        let large = file.dataset(dims, contiguous(bytes), &[]);
        file.read_linked(&[("a", small), ("b", large)])
    };
    assert_eq!(read(&[1, 32], 32), Ok(vec![7; 32]));
    assert_eq!(read(&[1, 4], 0), Ok(vec![7; 8]), "a dataset that is not read may be broken");
    assert_refused(read(&[1, 32], 31), "31 bytes of data instead of 32");
    assert_refused(read(&[1, 1 << 20], 1 << 20), "extend beyond the end");
    assert_refused(read(&[1, u64::MAX], u64::MAX), "more than a file can hold");
}

/// A dataset beyond the limit could be the largest.
#[test]
fn objects_beyond_the_limit_count_as_stored_elsewhere() {
    let layout = || [&[3, 1][..], &little_endian(&[48, 8])].concat();
    // 17,000 datasets, and fewer whose headers are so far apart that each takes metadata of its own.
    for (count, gap, [least, most]) in
        [(17_000, 0, [16_382, 16_382]), (16_000, 2048, [12_000, 14_336])]
    {
        let mut file = Builder::new();
        let names: Vec<String> = (0..count).map(|i| format!("images/{i}")).collect();
        let links: Vec<(&str, u64)> = names
            .iter()
            .map(|name| {
                file.put(&vec![0; gap]);
                (&name[7..], file.dataset(&[1, 8], layout(), &[]))
            })
            .collect();
        let group = file.root(&links);
        let root = file.root(&[("images", group)]);
        let parts = [file.finish(root)];
        let mut cursor = (FORMAT.cursor)(&options(4096));
        let payload = read_with(&mut *cursor, 4096, &parts, 0, None).unwrap();
        let members = cursor.members();
        let read = members.iter().filter(|member| member.is_read).count();
        assert_eq!(payload.len(), 8 * read);
        assert!((least..=most).contains(&read), "{read} of {count}");
        assert_eq!(cursor.elsewhere(), Some(&*members[read].name));
        let chosen = ["images/13999".to_string()].into();
        let mut cursor = (FORMAT.cursor)(&CursorOptions { members: chosen, ..options(4096) });
        assert_eq!(read_with(&mut *cursor, 4096, &parts, 0, None).map(|p| p.len()), Ok(8));
        assert_eq!(cursor.elsewhere(), None);
    }
    // None of the groups of the samples is examined.
    let mut file = Builder::new();
    let names: Vec<String> = (0..17_000).map(|i| i.to_string()).collect();
    let links: Vec<(&str, u64)> = names
        .iter()
        .map(|name| {
            let image = file.dataset(&[1, 8], layout(), &[]);
            (&**name, file.root(&[("image", image)]))
        })
        .collect();
    assert_refused(file.read_linked(&links), "name the datasets to read in `dataset.members`");
}

/// Its length is unknown, so it could be the largest.
#[test]
fn a_link_to_another_file_is_named() {
    let mut file = Builder::new();
    let dataset = file.dataset(&[2, 8], [&[3, 1][..], &little_endian(&[48, 16])].concat(), &[]);
    let hard = [&[1, 0, 1][..], b"a", &dataset.to_le_bytes()].concat();
    let external = [&[1, 8, 64, 1][..], b"b", &[5, 0, 0, b'f', 0, b'/', 0]].concat();
    let root = file.put(&object_header(&[(0x06, external), (0x06, hard)]));
    let file = file.finish(root);
    let files = [file];
    let mut cursor = (FORMAT.cursor)(&options(4096));
    read_with(&mut *cursor, 4096, &files, 0, None).unwrap();
    let members = cursor.members();
    let found: Vec<_> = members.iter().map(|m| (&*m.name, m.is_read, m.is_elsewhere)).collect();
    assert_eq!(found, [("b", false, true), ("a", true, false)]);
    let chosen = CursorOptions { members: ["a".to_string()].into(), ..options(4096) };
    let examining = CursorOptions { examines_members: true, ..chosen.clone() };
    for (options, elsewhere) in [(options(4096), Some("b")), (chosen, None), (examining, Some("b"))]
    {
        let mut cursor = (FORMAT.cursor)(&options);
        read_with(&mut *cursor, 4096, &files, 0, None).unwrap();
        assert_eq!(cursor.elsewhere(), elsewhere);
        // A file follows that ends before anything is known of it.
        cursor.begin(u64::MAX, 0, None);
        cursor.need().unwrap();
        cursor.feed(&4u64.to_le_bytes(), &mut Discard).unwrap();
        assert_eq!(cursor.elsewhere(), None);
    }
}

#[test]
fn excessive_lengths_are_refused_before_memory_is_allocated() {
    let contiguous = |bytes: u64| [&[3, 1][..], &little_endian(&[48, bytes])].concat();
    let read = |dims: &[u64], layout| Builder::new().read_dataset(dims, layout, &[]);
    assert_refused(read(&[1, 1 << 40], contiguous(1 << 40)), "extend beyond the end");
    assert_refused(read(&[u64::MAX, u64::MAX], contiguous(u64::MAX)), "more than a file can hold");
    assert_refused(read(&[1 << 60, 16], contiguous(16)), "more than a file can hold");
    assert_refused(read(&[1, 9], contiguous(8)), "8 bytes of data instead of 9");
    assert_refused(read(&[1; 10], contiguous(8)), "`10` dimensions");
    assert_refused(read(&[2, 0], contiguous(8)), "nothing to read");

    let chunk = |chunk: &[u32], dims: &[u64], filters: &[u8], stored: u32| {
        let mut file = Builder::new();
        let data = file.put(&[7; 64]);
        let index = file.put(&node(0, stored, data));
        file.read_dataset(dims, tree_layout(index, chunk), filters)
    };
    assert_eq!(chunk(&[1, 8], &[1, 8], &[], 8), Ok(vec![7; 8]));
    assert_refused(chunk(&[1, 0], &[1, 8], &[], 8), "chunks of `[1, 0, ");
    assert_refused(chunk(&[1, 1 << 20], &[1, 8], &[], 8), "extends beyond the end");
    assert_refused(chunk(&[1, 1 << 30], &[1, 1 << 30], FILTERS_SHUFFLE, 8), "in memory at once");
    assert_refused(chunk(&[1, 8], &[1, 8], FILTERS_SHUFFLE, 1 << 20), "extends beyond the end");
    assert_refused(chunk(&[1, 8], &[1, 8], FILTERS_SHUFFLE, 9), "a chunk of 8 bytes holds 9");
    assert_refused(chunk(&[1, 8], &[1, 8], FILTERS_DEFLATE, 0), "an empty chunk");
    assert_refused(chunk(&[1, 8], &[1, 8], FILTERS_DEFLATE, 8), "broken deflate stream");
}

#[test]
fn a_chunk_that_inflates_to_more_than_a_chunk_is_refused() {
    let mut packer = flate2::Compress::new(flate2::Compression::new(9), true);
    let mut packed = Vec::with_capacity(1 << 20);
    let zeros = vec![0; 64 << 20];
    packer.compress_vec(&zeros, &mut packed, flate2::FlushCompress::Finish).unwrap();
    for filters in [FILTERS_DEFLATE, &[2, 2, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]] {
        let mut file = Builder::new();
        let data = file.put(&packed);
        let index = file.put(&node(0, packed.len() as u32, data));
        let payload = file.read_dataset(&[1, 8], tree_layout(index, &[1, 8]), filters);
        assert_refused(payload, "does not inflate to that length");
    }
}

/// Reads of (offset, bytes) that a sample needs.
fn reads(file: &[u8], sample: u64, check_crc: bool) -> Result<Vec<(u64, usize)>, FormatError> {
    let mut cursor = (FORMAT.cursor)(&CursorOptions { check_crc, ..options(1 << 20) });
    let mut reads = Vec::new();
    cursor.begin(0, sample, None);
    loop {
        match cursor.need()? {
            Need::Bytes { offset, len, .. } => {
                reads.push((offset, len));
                cursor.feed(&file[offset as usize..][..len], &mut Discard)?;
            }
            Need::Length { .. } => cursor.feed(&(file.len() as u64).to_le_bytes(), &mut Discard)?,
            Need::Buffered => cursor.feed(&[], &mut Discard)?,
            Need::Done => return Ok(reads),
            Need::Again { .. } => panic!("the hdf5 cursor never requests bytes again"),
        }
    }
}

#[test]
fn only_the_requested_sample_is_read() {
    let shape = shape(&[100, 50], Element::Uint16, 40);
    let head = (0, 2048);
    let read = |chunk_dims: &[u64], compression, datasets, sample| {
        let file = encode_with(&FORMAT, &shape, &chunked(chunk_dims, compression, datasets), 1000);
        reads(&file[0], sample, true).unwrap()
    };
    let plain = |chunk_dims: &[u64], sample| read(chunk_dims, Compression::None, 1, sample);
    assert_eq!(plain(&[], 39), [head, (2048 + 39 * 10_000, 10_000)]);
    let index = [head, (2048, 2048)];
    let chunks = 2048 + 24 + 64 * 48 + 40;
    let in_chunks = |dims: &[u64], sample| {
        let reads = plain(dims, sample);
        assert_eq!(reads[..2], index, "{dims:?}");
        reads[2..].to_vec()
    };
    assert_eq!(in_chunks(&[1, 100, 50], 7), [(chunks + 7 * 10_000, 10_000)]);
    // Chunks of four samples are read completely, also at the edge of the dataset.
    assert_eq!(in_chunks(&[4, 100, 50], 7), [(chunks + 4 * 10_000, 40_000)]);
    let chunk_bytes = 4 * 60 * 30 * 2;
    let whole = (4..8).map(|chunk| (chunks + chunk * chunk_bytes, chunk_bytes as usize));
    assert_eq!(in_chunks(&[4, 60, 30], 7), Vec::from_iter(whole));
    let shared = read(&[], Compression::None, 2, 3);
    // With what follows, as the library reads contiguous datasets.
    assert_eq!(shared, [head, (2048 + 3 * 5000, 65_536), (2048 + 43 * 5000, 65_536)]);
    let packed = read(&[], Compression::Gzip, 1, 39);
    assert!(packed[..2] == index && packed.len() == 3 && packed[2].1 < 10_100, "{packed:?}");
}

#[test]
fn checksums_of_chunks_are_verified_if_configured() {
    let mut broken = OLD.to_vec();
    // The checksum is at the end of the first chunk, which follows the index.
    let found = reads(OLD, 0, true).unwrap();
    let (offset, len) = found[found.len() - 2];
    broken[offset as usize + len - 1] ^= 1;
    assert_eq!(reads(&broken, 0, false), Ok(found));
    let error = reads(&broken, 0, true).unwrap_err();
    assert!(error.message.starts_with("checksum `"), "{error}");
}

#[test]
fn unsupported_settings_are_refused_with_their_key() {
    let [small, large] = [shape(&[6, 4], Element::Uint8, 5), shape(&[1 << 18], Element::Uint8, 1)];
    let check = FORMAT.entry.unsupported_setting;
    let key = |encoding: &Encoding| Some(check(&small, encoding)?.key);
    let chunk = |dims: &[u64]| key(&chunked(dims, Compression::None, 1));
    let datasets = |count| key(&chunked(&[], Compression::None, count));
    let max = |max: &[u64], chunk: &[u64]| {
        let max_shape = max.to_vec();
        key(&Encoding { max_shape, ..chunked(chunk, Compression::None, 1) })
    };
    let (chunk_key, max_key) = (Some("dataset.hdf5.chunk_dims"), Some("dataset.hdf5.max_shape"));
    assert_eq!(chunk(&[5, 6, 4]), None);
    let unsupported_chunks = [&[5, 6][..], &[0, 6, 4], &[6, 6, 4], &[5, 7, 4]];
    assert_eq!(unsupported_chunks.map(chunk), [chunk_key; 4]);
    assert_eq!(max(&[0, 6, 4], &[]), None);
    assert_eq!(max(&[9, 6, 4], &[9, 6, 4]), None);
    assert_eq!(max(&[0, 4], &[]), None, "the axis of samples is added, as in DLIO");
    let unsupported_max = [&[6][..], &[5, 6], &[4, 6, 4], &[5, 6, 3]];
    assert_eq!(unsupported_max.map(|dims| max(dims, &[])), [max_key; 4]);
    assert_eq!(datasets(3), None);
    assert_eq!([0, 4, 257].map(datasets), [Some("dataset.hdf5.num_dset_per_record"); 3]);
    let message = |dims: &[u64]| Some(check(&large, &chunked(dims, Compression::None, 1))?.message);
    assert_eq!(message(&[1, 2]), None);
    assert_eq!(message(&[1, 1]).as_deref(), Some("`262144` chunks per sample"));
}

#[test]
fn generated_files_are_as_long_as_files_of_the_library() {
    // The library puts the metadata of several datasets that do not fit into 2048 bytes partly after the data.
    for (dims, datasets, metadata_bytes) in [
        (&[128, 128][..], 1, 2048),
        (&[1], 1, 2048),
        (&[9, 8, 7, 1, 2, 3, 4, 5], 1, 2048),
        (&[6, 9], 2, 2048),
        (&[6, 9], 3, 2216),
        (&[5], 5, 2768),
    ] {
        for samples in [1, 2, 300, 100_000] {
            let shape = shape(dims, Element::Float16, samples);
            let encoding = chunked(&[], Compression::None, datasets);
            let bytes = shape.payload_bytes() + 8 * samples + metadata_bytes;
            assert_eq!((FORMAT.entry.file_bytes)(&shape, &encoding), bytes, "{dims:?}");
        }
    }
}

/// DLIO leaves out a part's first dimension if it is 1. Earlier versions of feedrate wrote it.
#[test]
fn parts_with_and_without_a_first_dimension_of_1_are_read() {
    let read_parts = |dims: &[u64], plan: &[u64]| {
        let mut file = Builder::new();
        let links = ["records_0", "records_1", "records_2"].map(|name| {
            let data = file.put(&[name.as_bytes()[8]; 8]);
            let layout = [&[3, 1][..], &little_endian(&[data, product(dims)])].concat();
            (name, file.dataset(dims, layout, &[]))
        });
        let root = file.root(&links);
        let file = [file.finish(root)];
        let planned = read(&FORMAT, &file, 0, Some(&shape(plan, Element::Uint8, 1)));
        (planned, read(&FORMAT, &file, 0, None))
    };
    let payload = |bytes: usize| Ok([b'0', b'1', b'2'].map(|byte| vec![byte; bytes]).concat());
    for (dims, plan, bytes) in [
        (&[1, 1, 2, 4][..], &[3, 2, 4][..], 8),
        (&[1, 2, 4], &[3, 2, 4], 8),
        (&[1, 2, 4], &[6, 4], 8),
        (&[1], &[3], 1),
    ] {
        assert_eq!(read_parts(dims, plan), (payload(bytes), payload(bytes)), "{dims:?}");
    }
    assert_refused(read_parts(&[1, 2, 4], &[2, 3, 4]).0, "holds ");
}

/// For the largest allowed number of chunks per sample, the index fits into the limit on metadata.
#[test]
fn a_sample_with_the_largest_number_of_chunks_is_read() {
    let shape = shape(&[1 << 17, 1, 1, 1, 1, 1, 1, 1], Element::Uint8, 1);
    let parts = encode_with(&FORMAT, &shape, &chunked(&[1; 9], Compression::None, 1), 1 << 20);
    let payload = read(&FORMAT, &parts, 0, Some(&shape)).unwrap();
    assert_eq!(payload.len(), 1 << 17);
}
