//! The header of a tar member, one block: written as POSIX ustar, read as POSIX, GNU and old tars wrote it.

use super::FormatError;

/// Headers and members fill whole blocks.
pub(super) const BLOCK_BYTES: u64 = 512;

/// One block.
pub(super) type Block = [u8; BLOCK_BYTES as usize];

const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const USER: std::ops::Range<usize> = 108..116;
const GROUP: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const TIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..265;
const PREFIX: std::ops::Range<usize> = 345..500;
const POSIX: &[u8] = b"ustar\x0000";
/// The largest size in octal digits.
const OCTAL_MAX: u64 = 0o777_7777_7777;

/// The header of a file; `name` fits its field.
pub(super) fn header(name: &str, bytes: u64) -> Block {
    let mut block = [0; BLOCK_BYTES as usize];
    block[..name.len()].copy_from_slice(name.as_bytes());
    for (field, value) in [(MODE, 0o644), (USER, 0), (GROUP, 0), (TIME, 0)] {
        write_octal(&mut block[field], value);
    }
    if bytes <= OCTAL_MAX {
        write_octal(&mut block[SIZE], bytes);
    } else {
        block[SIZE.start] = 0x80;
        block[SIZE.end - 8..SIZE.end].copy_from_slice(&bytes.to_be_bytes());
    }
    block[KIND] = b'0';
    block[MAGIC].copy_from_slice(POSIX);
    let sum = sums(&block).0;
    write_octal(&mut block[CHECKSUM.start..CHECKSUM.end - 1], sum.into());
    block[CHECKSUM.end - 1] = b' ';
    block
}

/// Digits, then a NUL.
fn write_octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    for (place, byte) in field[..digits].iter_mut().rev().enumerate() {
        *byte = b'0' + (value >> (3 * place) & 7) as u8;
    }
}

/// What follows a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file.
    File,
    /// The name of the next member, too long for its header (GNU).
    LongName,
    /// What the next member's header cannot say (POSIX).
    Extended,
    /// Bytes that say nothing of the next member that matters.
    Other,
    /// Some writer's own.
    Unknown,
    /// No bytes: a folder, a link, a device.
    Bare,
}

/// A header, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Of the member, without padding.
    pub(super) bytes: u64,
}

/// Read a header at `at`; `None` for the empty block behind the last member.
pub(super) fn read(block: &Block, at: u64) -> Result<Option<Header>, FormatError> {
    if block.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let error = |message: &str| FormatError::new(at, message);
    let stored = number(&block[CHECKSUM]);
    let (unsigned, signed) = sums(block);
    if stored != Some(unsigned.into()) && stored != u64::try_from(signed).ok() {
        return Err(error(match block {
            [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', b'Z', ..]
                if at == 0 =>
            {
                "a tar that is compressed, which is not supported: unpack it"
            }
            _ => "no tar header begins here: its checksum is wrong",
        }));
    }
    let kind = match block[KIND] {
        // Before POSIX a folder was known by its name.
        0 if field_text(&block[NAME]).ends_with(b"/") => Kind::Bare,
        b'1'..=b'6' => Kind::Bare,
        b'L' => Kind::LongName,
        b'x' | b'X' => Kind::Extended,
        b'g' | b'K' => Kind::Other,
        b'S' => return Err(error("a sparse member, which is not supported")),
        0 | b'0' | b'7' => Kind::File,
        _ => Kind::Unknown,
    };
    let bytes = number(&block[SIZE]);
    let bytes = bytes.ok_or_else(|| error("a tar header whose size is not a number"))?;
    Ok(Some(Header { kind, bytes }))
}

/// Append the member's path to `path`.
pub(super) fn push_path(block: &Block, path: &mut Vec<u8>) {
    let prefix = field_text(&block[PREFIX]);
    if block[MAGIC].starts_with(&POSIX[..6]) && !prefix.is_empty() {
        path.extend_from_slice(prefix);
        path.push(b'/');
    }
    path.extend_from_slice(field_text(&block[NAME]));
}

/// Up to the first NUL.
pub(super) fn field_text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    &field[..end]
}

/// In octal digits, or where the first bit is set big-endian (GNU).
fn number(field: &[u8]) -> Option<u64> {
    if field[0] == 0x80 {
        let (high, low) = field[1..].split_last_chunk()?;
        return high.iter().all(|&byte| byte == 0).then_some(u64::from_be_bytes(*low));
    }
    let text = field_text(field).trim_ascii();
    let digit = |value: u64, byte: &u8| match byte {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    text.iter().try_fold(0, digit)
}

/// The sum of all bytes, the checksum taken for blanks; and as it comes out where bytes are signed.
fn sums(block: &Block) -> (u32, i32) {
    let blank = |i: usize, byte: u8| if CHECKSUM.contains(&i) { b' ' } else { byte };
    block
        .iter()
        .enumerate()
        .map(|(i, &byte)| blank(i, byte))
        .fold((0, 0), |(sum, signed), byte| (sum + u32::from(byte), signed + i32::from(byte as i8)))
}
