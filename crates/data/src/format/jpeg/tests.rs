//! What the contract suite does not see: sizes, pixels and ends.

use super::super::tests::{MemorySink, encoded, read, shape};
use super::super::*;
use feedrate_spec::shape::Element;

fn jpeg() -> &'static dyn Format {
    find("jpeg").unwrap()
}

/// Verification compares bytes: they must be the same on every machine and in every release.
#[test]
fn bytes_stay_what_they_were() {
    let grey = encoded(jpeg(), &shape(&[40, 41], Element::Uint8, 1), 1000);
    let rgb = encoded(jpeg(), &shape(&[40, 41, 3], Element::Uint8, 1), 1000);
    assert_eq!(
        [crc32fast::hash(&grey[0]), crc32fast::hash(&rgb[0])],
        [3_479_844_672, 1_048_598_118]
    );
}

/// Noise is what datasets hold; its transform seldom comes near the largest numbers, and has no long runs of zeros.
#[test]
fn flat_and_extreme_blocks_are_written_whole() {
    use super::blocks::{Divider, block};
    let divider = Divider::new(0);
    let flat = block(&[128; 64], 0, 8, &divider);
    assert_eq!((flat.coefficients, flat.nonzero), ([0; 64], 0));
    let white = block(&[255; 64], 0, 8, &divider);
    // 127 × 8, over a step of 8.
    assert_eq!((white.coefficients[0], white.nonzero), (127, 1));
    // All the most that any coefficient can be: each sample has the sign of its wave there.
    for (v, u) in (0..8).flat_map(|v| (0..8).map(move |u| (v, u))) {
        let wave = |i: usize, k: usize| {
            ((2 * i + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos()
        };
        for sign in [1.0, -1.0] {
            let samples: Vec<u8> = (0..64)
                .map(|i| if sign * wave(i / 8, v) * wave(i % 8, u) > 0.0 { 255 } else { 0 })
                .collect();
            let found = block(&samples, 0, 8, &divider);
            let exact = exact(&samples);
            for i in 0..64 {
                let from = usize::from(super::tables::ZIGZAG[i]);
                let wanted = exact[from] / f64::from(super::tables::STEPS[0][from]);
                let off = (f64::from(found.coefficients[i]) - wanted).abs();
                assert!(off < 0.6, "{v} {u} {i}: {wanted} {}", found.coefficients[i]);
                assert_eq!(found.nonzero >> i & 1 == 1, found.coefficients[i] != 0);
            }
        }
    }
}

#[test]
fn long_runs_of_zeros_are_written() {
    use super::blocks::Block;
    use super::codes::{Bits, Codes};
    use super::tables::{FIRST, OTHERS};
    let mut sink = MemorySink { parts: vec![vec![]], space: vec![0; 7] };
    let mut bits = Bits::new(&mut sink);
    let mut block = Block { coefficients: [0; 64], nonzero: 1 << 63 };
    block.coefficients[63] = -1;
    let (first, others) = (Codes::new(&FIRST[0]), Codes::new(&OTHERS[0]));
    bits.block(&block, &mut 0, &first, &others).unwrap();
    bits.no_block(&first, &others).unwrap();
    bits.finish().unwrap();
    // No distance; three times sixteen zeros; fourteen zeros and one bit, which is 0. No distance, and the end.
    let zeros = "11111111001".repeat(3);
    let text = format!("00{zeros}11111111111010110001010");
    let text = format!("{text}{}", "1".repeat(text.len().wrapping_neg() % 8));
    let bytes = text
        .as_bytes()
        .chunks(8)
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0')));
    let stuffed: Vec<u8> =
        bytes.flat_map(|byte| if byte == 255 { vec![255, 0] } else { vec![byte] }).collect();
    assert_eq!(sink.parts[0], stuffed);
}

/// The cosine transform by its definition.
fn exact(samples: &[u8]) -> [f64; 64] {
    let wave = |i: usize, k: usize| {
        let scale = if k == 0 { 0.5f64.sqrt() } else { 1.0 };
        scale * ((2 * i + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos()
    };
    std::array::from_fn(|at| {
        let sum = (0..64)
            .map(|i| (f64::from(samples[i]) - 128.0) * wave(i / 8, at / 8) * wave(i % 8, at % 8));
        sum.sum::<f64>() / 4.0
    })
}

#[test]
fn sizes_are_about_right() {
    for dims in [&[300, 301][..], &[64, 1000], &[300, 301, 3], &[64, 1000, 3]] {
        let shape = shape(dims, Element::Uint8, 1);
        let bytes = encoded(jpeg(), &shape, 1000)[0].len() as f64;
        let estimated = jpeg().file_bytes(&shape, &Encoding::default()) as f64;
        assert!((bytes / estimated - 1.0).abs() < 0.02, "{dims:?}: {bytes} of {estimated}");
    }
}

#[test]
fn what_is_behind_the_end_is_no_matter_and_a_missing_end_is() {
    let shape = shape(&[40, 41, 3], Element::Uint8, 1);
    let mut parts = encoded(jpeg(), &shape, 1000);
    let pixels = read(jpeg(), &parts, 0, Some(&shape)).unwrap();
    parts[0].extend(b"\xff\x00said later");
    assert!(read(jpeg(), &parts, 0, Some(&shape)) == Ok(pixels));
    let end = parts[0].len() - 14;
    assert_eq!(parts[0][end..end + 2], [0xff, 0xd9]);
    parts[0][end + 1] = 0;
    let error = read(jpeg(), &parts, 0, Some(&shape)).unwrap_err();
    assert_eq!(error.message, "the file ends before its picture does");
}

#[test]
fn what_cannot_be_read_says_why() {
    let frame = |kind: u8, depth: u8, side: [u8; 2], colours: u8| {
        let head =
            [0xff, 0xd8, 0xff, kind, 0, 17, depth, side[0], side[1], side[0], side[1], colours];
        vec![[&head[..], &[0; 60]].concat()]
    };
    let cases = [
        (frame(0xc0, 8, [0, 9], 4), "`4` colours: CMYK"),
        (frame(0xc0, 8, [0, 9], 2), "`2` colours"),
        (frame(0xc1, 12, [0, 9], 1), "samples of `12` bits"),
        (frame(0xc9, 8, [0, 9], 1), "kind `0xc9`"),
        (frame(0xc2, 8, [0, 0], 1), "a jpeg of `0` × `0` pixels"),
        (frame(0xc2, 8, [255, 255], 3), "cannot hold more than"),
        (frame(0xc0, 8, [0, 9], 1), "the file ends before its picture does"),
        (frame(0xda, 8, [0, 9], 1), "no frame header comes before the pixels"),
        (frame(0x00, 8, [0, 9], 1), "`0x00` is no marker"),
        (vec![vec![0xff; 5000]], "does not begin as a jpeg does"),
        (
            vec![[&[0xff, 0xd8][..], &[0xff; 5000]].concat()],
            "the file ends before its picture begins",
        ),
        (vec![vec![]], "the file is empty"),
    ];
    for (parts, wanted) in cases {
        let error = read(jpeg(), &parts, 0, None).unwrap_err();
        assert!(error.message.contains(wanted), "{wanted}: {error}");
    }
}
