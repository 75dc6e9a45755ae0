//! The checksums of HDF5: Jenkins's lookup3 (`hashlittle`) for metadata, Fletcher's for filtered chunks.

/// Jenkins's lookup3 with initial value 0.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (block, remainder) = rest.split_at(12);
        add(&mut state, block);
        for (x, y, z, rotation) in
            [(0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4)]
        {
            state[x] = state[x].wrapping_sub(state[y]) ^ state[y].rotate_left(rotation);
            state[y] = state[y].wrapping_add(state[z]);
        }
        rest = remainder;
    }
    if rest.is_empty() {
        return state[2];
    }
    let mut tail = [0; 12];
    tail[..rest.len()].copy_from_slice(rest);
    add(&mut state, &tail);
    for (x, y, rotation) in
        [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)]
    {
        state[x] = (state[x] ^ state[y]).wrapping_sub(state[y].rotate_left(rotation));
    }
    state[2]
}

fn add(state: &mut [u32; 3], bytes: &[u8]) {
    for (state, word) in state.iter_mut().zip(bytes.as_chunks().0) {
        *state = state.wrapping_add(u32::from_le_bytes(*word));
    }
}

/// `H5_checksum_fletcher32` over big-endian words of 16 bits and a possible odd byte at the end.
pub(super) fn fletcher32(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let mut sum1 = 0u32;
    let mut sum2 = 0u32;
    // The sums of 360 words do not overflow 32 bits.
    for block in words.chunks(360) {
        for word in block {
            sum1 += u32::from(u16::from_be_bytes(*word));
            sum2 += sum1;
        }
        sum1 = fold(sum1);
        sum2 = fold(sum2);
    }
    if let [byte] = odd {
        sum1 += u32::from(*byte) << 8;
        sum2 += sum1;
        sum1 = fold(sum1);
        sum2 = fold(sum2);
    }
    (fold(sum2) << 16) | fold(sum1)
}

fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from the test at the end of lookup3.c.
    #[test]
    fn lookup3_matches_the_reference() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
