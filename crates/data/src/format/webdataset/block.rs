//! Headers of tar members. They are written as POSIX ustar and read in the POSIX, GNU and old formats.

use super::FormatError;
use tar::{EntryType, Header as TarHeader};

/// Length of a block. Headers and members fill whole blocks.
pub(super) const BLOCK_BYTES: u64 = 512;

/// One block.
pub(super) type Block = [u8; BLOCK_BYTES as usize];

const SIZE: usize = 124;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// The header of a file. `name` must fit into its field.
pub(super) fn header(name: &str, bytes: u64) -> Block {
    let mut header = TarHeader::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    *header.as_bytes()
}

/// Types of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberKind {
    /// A file.
    File,
    /// The name of the next member, which is too long for its header (GNU).
    LongName,
    /// Attributes of the next member that do not fit into its header (POSIX).
    Extended,
    /// Metadata that is not needed.
    Other,
    /// A type that is specific to a writer.
    Unknown,
    /// A member without bytes, such as a folder, a link or a device.
    WithoutBytes,
}

/// The needed fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: MemberKind,
    /// Length of the member, without padding.
    pub(super) bytes: u64,
}

/// Reads the header at `offset`; `None` for the empty block after the last member.
pub(super) fn read(block: &Block, offset: u64) -> Result<Option<Header>, FormatError> {
    parse(block, offset).map_err(|message| FormatError::new(offset, message))
}

fn parse(block: &Block, offset: u64) -> Result<Option<Header>, &'static str> {
    if block.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let header = TarHeader::from_byte_slice(block);
    let (unsigned, signed) = byte_sums(block);
    if !header.cksum().is_ok_and(|sum| sum == unsigned || sum.cast_signed() == signed) {
        return Err(match block {
            [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', b'Z', ..]
                if offset == 0 =>
            {
                "a tar that is compressed, which is not supported: unpack it"
            }
            _ => "no tar header begins here: its checksum is wrong",
        });
    }
    let name = field_text(&header.as_old().name);
    let kind = match header.entry_type() {
        // Formats before POSIX mark a folder by its name.
        EntryType::Regular if header.as_old().linkflag == [0] && name.ends_with(b"/") => {
            MemberKind::WithoutBytes
        }
        EntryType::Regular | EntryType::Continuous => MemberKind::File,
        EntryType::GNULongName => MemberKind::LongName,
        EntryType::XHeader => MemberKind::Extended,
        EntryType::XGlobalHeader | EntryType::GNULongLink => MemberKind::Other,
        EntryType::GNUSparse => return Err("a sparse member, which is not supported"),
        kind if kind.as_byte() == b'X' => MemberKind::Extended,
        kind if (b'1'..=b'6').contains(&kind.as_byte()) => MemberKind::WithoutBytes,
        _ => MemberKind::Unknown,
    };
    // Negative or longer than 64 bits. The crate `tar` reads only the last 8 bytes of such sizes.
    let is_beyond = block[SIZE] >= 0x80 && block[SIZE..][..4] != [0x80, 0, 0, 0];
    match header.entry_size() {
        Ok(bytes) if !is_beyond => Ok(Some(Header { kind, bytes })),
        _ => Err("a tar header whose size is not a number"),
    }
}

/// Appends the member's path to `path`.
pub(super) fn push_path(block: &Block, path: &mut Vec<u8>) {
    path.extend_from_slice(&TarHeader::from_byte_slice(block).path_bytes());
}

/// The field up to its first NUL.
pub(super) fn field_text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    &field[..end]
}

/// Sums of all bytes as unsigned and as signed numbers, with spaces in place of the checksum. Old writers used signed
/// bytes.
fn byte_sums(block: &Block) -> (u32, i32) {
    block
        .iter()
        .enumerate()
        .map(|(i, &byte)| if CHECKSUM.contains(&i) { b' ' } else { byte })
        .fold((0, 0), |(sum, signed), byte| (sum + u32::from(byte), signed + i32::from(byte as i8)))
}
