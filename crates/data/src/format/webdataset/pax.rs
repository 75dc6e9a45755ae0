//! The records of a POSIX extended header: `<length> <key>=<value>\n`, where the length counts all of that.
//! Not by `tar`, which cuts records at newlines: values may hold some, as those of extended attributes do.

/// Attributes of the next member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extended<'h> {
    pub(super) path: Option<&'h [u8]>,
    pub(super) bytes: Option<u64>,
    pub(super) is_sparse: bool,
}

/// Read all records; `None` if they are not records.
pub(super) fn read(header: &[u8]) -> Option<Extended<'_>> {
    let mut extended = Extended::default();
    let mut rest = header;
    // Some writers fill the block with NULs and count them.
    while rest.first().is_some_and(|&byte| byte != 0) {
        let blank = rest.iter().position(|&byte| byte == b' ')?;
        let len = usize::try_from(number(&rest[..blank])?).ok()?;
        let record = rest.get(blank + 1..len)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|&byte| byte == b'=')?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" => extended.path = Some(value),
            b"size" => extended.bytes = Some(number(value)?),
            _ => extended.is_sparse |= key.starts_with(b"GNU.sparse."),
        }
        rest = &rest[len..];
    }
    Some(extended)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
