//! The checksums of HDF5: Jenkins's lookup3 (`hashlittle`) over metadata, Fletcher's over filtered chunks.

/// Jenkins's lookup3 of metadata, without an initial value.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (now, later) = rest.split_at(12);
        let [x, y, z] = words(now);
        (a, b, c) = mix(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
        rest = later;
    }
    if rest.is_empty() {
        return c;
    }
    let mut tail = [0; 12];
    tail[..rest.len()].copy_from_slice(rest);
    let [x, y, z] = words(&tail);
    last(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z))
}

fn words(bytes: &[u8]) -> [u32; 3] {
    let (words, _) = bytes.as_chunks::<4>();
    [0, 1, 2].map(|i| words.get(i).map_or(0, |word| u32::from_le_bytes(*word)))
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for (turn_a, turn_b, turn_c) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(turn_a);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(turn_b);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(turn_c);
        b = b.wrapping_add(a);
    }
    (a, b, c)
}

fn last(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    step(c, b, 24)
}

fn step(x: u32, y: u32, turn: u32) -> u32 {
    (x ^ y).wrapping_sub(y.rotate_left(turn))
}

/// `H5_checksum_fletcher32`: over big-endian words of 16 bits, an odd byte last.
pub(super) fn fletcher32(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let (mut sum1, mut sum2) = (0u32, 0u32);
    // So many words do not overflow 32 bits.
    for block in words.chunks(360) {
        for word in block {
            sum1 += u32::from(u16::from_be_bytes(*word));
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [byte] = odd {
        sum1 += u32::from(*byte) << 8;
        sum2 += sum1;
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    (fold(sum2) << 16) | fold(sum1)
}

fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test at the end of lookup3.c.
    #[test]
    fn lookup3_is_jenkins_own() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
