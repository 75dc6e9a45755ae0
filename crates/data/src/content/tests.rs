//! Tests that content is stable, that any range of it can be generated, and that it has the configured redundancy.

use super::*;
use proptest::prelude::*;

fn generate(sample: u64, offset: u64, element: Element, len: usize) -> Vec<u8> {
    let mut content = Content::new(7);
    content.select_file(3);
    let mut bytes = vec![0; len];
    content.fill(sample, offset, element, &mut bytes);
    bytes
}

/// A change of these bytes changes every existing dataset.
#[test]
fn bytes_are_stable() {
    assert_eq!(hex(&generate(1, 0, Element::Uint8, 16)), "ab7e904c553536a39f2898cc486fca27");
    assert_eq!(hex(&generate(1, 4096, Element::Uint8, 16)), "8194eba73edf177f3895637f27ee796e");
}

fn redundant_content(compressible_percent: u32, duplicate_percent: u32) -> Content {
    Content::with_redundancy(7, Redundancy { compressible_percent, duplicate_percent })
}

#[test]
fn redundant_bytes_are_stable() {
    let hash = |compressible, duplicate| {
        crc32fast::hash(&samples(&mut redundant_content(compressible, duplicate), 3, 300_000))
    };
    assert_eq!(
        [hash(50, 0), hash(0, 50), hash(37, 20)],
        [3_111_931_966, 2_533_682_250, 1_311_388_499]
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn bytes_take_every_value_and_do_not_repeat() {
    let bytes = generate(0, 0, Element::Uint8, 1 << 16);
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|&b| counts[b as usize] += 1);
    assert!(counts.iter().all(|&n| (150..370).contains(&n)), "{counts:?}");
    let mut blocks: Vec<&[u8]> = bytes.chunks(64).collect();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), 1024);
}

#[test]
fn files_samples_and_seeds_differ() {
    let mut seen = std::collections::HashSet::new();
    for seed in 0..3 {
        for file in 0..5 {
            for sample in 0..5 {
                let mut content = Content::new(seed);
                content.select_file(file);
                let mut bytes = [0; 16];
                content.fill(sample, 0, Element::Uint8, &mut bytes);
                assert!(seen.insert(bytes));
            }
        }
    }
}

#[test]
fn floats_are_finite() {
    let bytes = generate(0, 0, Element::Float32, 1 << 16);
    let (words, _) = bytes.as_chunks::<4>();
    assert!(words.iter().all(|w| f32::from_le_bytes(*w).is_finite()));
    let bytes = generate(0, 0, Element::Float64, 1 << 16);
    let (words, _) = bytes.as_chunks::<8>();
    assert!(words.iter().all(|w| f64::from_le_bytes(*w).is_finite()));
    let bytes = generate(0, 0, Element::Float16, 1 << 16);
    let (words, _) = bytes.as_chunks::<2>();
    assert!(words.iter().all(|w| u16::from_le_bytes(*w) & 0x7c00 != 0x7c00));
}

proptest! {
    #[test]
    fn any_range_can_be_generated(offset in 0usize..20_000, len in 0usize..9000) {
        let complete = generate(5, 0, Element::Float32, 30_000);
        let part = generate(5, offset as u64, Element::Float32, len);
        prop_assert_eq!(&part, &complete[offset..offset + len]);
    }

    #[test]
    fn any_range_of_redundant_content_can_be_generated(
        offset in 0usize..200_000, len in 0usize..9000, compressible in 0u32..=100, duplicate in 0u32..=100,
    ) {
        let mut content = redundant_content(compressible, duplicate);
        let mut complete = vec![0; 210_000];
        content.fill(5, 0, Element::Float32, &mut complete);
        let mut part = vec![0; len];
        content.fill(5, offset as u64, Element::Float32, &mut part);
        prop_assert_eq!(&part, &complete[offset..offset + len]);
        prop_assert_eq!(content.matches(5, offset as u64, Element::Float32, &part), Ok(()));
    }

    #[test]
    fn the_first_difference_is_reported(offset in 0u64..9000, len in 1usize..9000, position in 0usize..9000) {
        let mut bytes = generate(2, offset, Element::Uint8, len);
        let mut content = Content::new(7);
        content.select_file(3);
        prop_assert_eq!(content.matches(2, offset, Element::Uint8, &bytes), Ok(()));
        let position = position % len;
        bytes[position] ^= 1;
        prop_assert_eq!(content.matches(2, offset, Element::Uint8, &bytes), Err(offset + position as u64));
    }
}

/// Consecutive samples of the same length.
fn samples(content: &mut Content, count: u64, sample_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; count as usize * sample_bytes];
    for (sample, bytes) in bytes.chunks_mut(sample_bytes).enumerate() {
        content.fill(sample as u64, 0, Element::Uint8, bytes);
    }
    bytes
}

fn share_of_zeros(bytes: &[u8]) -> f64 {
    bytes.iter().filter(|&&byte| byte == 0).count() as f64 / bytes.len() as f64
}

/// Share of zeros, corrected for random bytes, of which one in 256 is zero.
#[test]
fn samples_of_any_length_have_the_configured_share_of_zeros() {
    for percent in [1, 10, 37, 50, 75, 90, 99, 100] {
        let share = f64::from(percent) / 100.0;
        let expected = share + (1.0 - share) / 256.0;
        for (count, sample_bytes, tolerance) in
            [(1, 4 << 20, 0.003), (100, 10_000, 0.01), (20_000, 150, 0.015)]
        {
            let found =
                share_of_zeros(&samples(&mut redundant_content(percent, 0), count, sample_bytes));
            let context = format!("{percent} %: {found} in samples of {sample_bytes}");
            assert!((found - expected).abs() < tolerance, "{context}");
        }
    }
}

fn deflated_share(bytes: &[u8], level: u32) -> f64 {
    let mut packed = Vec::with_capacity(bytes.len() * 9 / 8);
    let mut deflate = flate2::Compress::new(flate2::Compression::new(level), false);
    deflate.compress_vec(bytes, &mut packed, flate2::FlushCompress::Finish).unwrap();
    assert_eq!(deflate.total_in(), bytes.len() as u64);
    packed.len() as f64 / bytes.len() as f64
}

#[test]
fn deflate_saves_the_configured_share() {
    for percent in [0, 25, 50, 75, 90] {
        let bytes = samples(&mut redundant_content(percent, 0), 2, 1 << 20);
        // Level 1 of zlib-rs uses fixed Huffman codes, in which half of the bytes take 9 bits.
        for (level, tolerance) in [(1, 0.07), (2, 0.02), (4, 0.02), (9, 0.02)] {
            let kept = deflated_share(&bytes, level);
            let wanted = 1.0 - f64::from(percent) / 100.0;
            let context = format!("{percent} % at level {level}: {kept} is left");
            assert!((kept - wanted).abs() < tolerance, "{context}");
        }
    }
}

/// The window of deflate has 32 KiB, so it does not find the repeated stretches.
#[test]
fn deflate_does_not_find_copies() {
    let bytes = samples(&mut redundant_content(0, 50), 2, 2 << 20);
    assert!(deflated_share(&bytes, 6) > 0.99);
}

/// Share of file system blocks that deduplication saves, when `shift` bytes of header come first.
fn share_of_copies(content: &mut Content, shift: usize, files: u64) -> f64 {
    let mut kept = std::collections::HashSet::new();
    let mut count = 0;
    for file in 0..files {
        content.select_file(file);
        let mut bytes = vec![0; shift];
        bytes.extend(samples(content, 1, 8 << 20));
        for block in bytes[BLOCK_BYTES..].chunks_exact(BLOCK_BYTES) {
            kept.insert(block.to_vec());
            count += 1;
        }
    }
    1.0 - kept.len() as f64 / f64::from(count)
}

#[test]
fn the_share_of_copies_does_not_depend_on_the_header() {
    for percent in [0u32, 20, 50, 100] {
        // The pool of 4 MiB is stored once.
        let wanted = f64::from(percent) / 100.0 - if percent > 0 { 4.0 / 64.0 } else { 0.0 };
        let found = share_of_copies(&mut redundant_content(0, percent), 0, 8);
        assert!((found - wanted).abs() < 0.01, "{percent} %: {found}");
        let shifted = share_of_copies(&mut redundant_content(0, percent), 183, 8);
        let tolerance = wanted / f64::from(STRETCH_BLOCKS as u32) + 0.01;
        assert!((found - shifted).abs() < tolerance, "{percent} %: {shifted} shifted");
    }
}

#[test]
fn short_samples_have_the_same_share_of_copies() {
    for percent in [20, 50] {
        let bytes = samples(&mut redundant_content(0, percent), 10_000, 150);
        let distinct: std::collections::HashSet<&[u8]> = bytes.chunks(150).collect();
        let share = 1.0 - (distinct.len() - POOL_STRETCHES as usize) as f64 / 10_000.0;
        assert!((share - f64::from(percent) / 100.0).abs() < 0.02, "{percent} %: {share}");
    }
}

#[test]
fn redundant_floats_are_finite() {
    let mut bytes = vec![0; 1 << 18];
    redundant_content(33, 33).fill(0, 0, Element::Float32, &mut bytes);
    let (words, _) = bytes.as_chunks::<4>();
    assert!(words.iter().all(|w| f32::from_le_bytes(*w).is_finite()));
}
