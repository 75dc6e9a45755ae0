//! Reads the records of a POSIX extended header: `<length> <key>=<value>\n`, where the length includes all of the record.
//!
//! The crate `tar` is not used, because it splits records at newlines, which values of extended attributes may contain.

/// Attributes of the next member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExtendedHeader<'h> {
    pub(super) path: Option<&'h [u8]>,
    pub(super) bytes: Option<u64>,
    pub(super) is_sparse: bool,
}

/// Reads all records; `None` if they are invalid.
pub(super) fn read(header: &[u8]) -> Option<ExtendedHeader<'_>> {
    let mut extended = ExtendedHeader::default();
    let mut rest = header;
    // Some writers fill the block with NULs and include them in the length of the header.
    while rest.first().is_some_and(|&byte| byte != 0) {
        let space = rest.iter().position(|&byte| byte == b' ')?;
        let len = usize::try_from(parse_number(&rest[..space])?).ok()?;
        let record = rest.get(space + 1..len)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|&byte| byte == b'=')?;
        let value = &record[equals + 1..];
        match &record[..equals] {
            b"path" => extended.path = Some(value),
            b"size" => extended.bytes = Some(parse_number(value)?),
            key => extended.is_sparse |= key.starts_with(b"GNU.sparse."),
        }
        rest = &rest[len..];
    }
    Some(extended)
}

fn parse_number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
