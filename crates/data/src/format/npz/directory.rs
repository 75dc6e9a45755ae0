//! Finds the member `x.npy` in the directory at the end of a zip archive (PKWARE APPNOTE 6.3, including zip64). In foreign
//! archives, finds the arrays that the user named, or else those of at least a tenth of the length of the largest.
//!
//! Memory is limited even for archives with invalid lengths. Long because the headers of arrays are read to choose among the members.

use super::{DEFLATED, FormatError, STORED, piece_len, truncated};
use std::ops::Range;
use std::sync::Arc;

const NAME: &[u8] = b"x.npy";
/// Names of the arrays of DLIO.
const SAMPLES: &str = "x";
const LABELS: &str = "y";
/// Length up to which an array `y` beside `x` alone is taken for labels.
const LABELS_BYTES_MAX: u64 = 4096;
const SUFFIX: &[u8] = b".npy";
/// Usual length of an array's header.
const HEADER_BYTES: u64 = 128;
/// An array of less than the largest divided by this number is not read, unless the user names it.
const SHARE_DIVISOR: u64 = 10;
/// Length of the first read at the end of a file.
pub(super) const TAIL_BYTES: u64 = 4096;
const END_BYTES: usize = 22;
const ZIP64_END_BYTES: u64 = 56;
const ZIP64_LOCATOR_BYTES: usize = 20;
const COMMENT_BYTES_MAX: usize = 0xffff;
/// Upper limit on the length of a directory: about 20 000 members.
const DIRECTORY_BYTES_MAX: u64 = 1 << 20;
const NAMES_SHOWN_MAX: usize = 8;

/// Position and compression of the array's member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ArrayEntry {
    /// Offset of the local header.
    pub(super) offset: u64,
    pub(super) packed_bytes: u64,
    pub(super) bytes: u64,
    pub(super) crc: u32,
    pub(super) method: u16,
    /// Offset of the directory. The member ends before it.
    pub(super) limit: u64,
}

/// An array of an archive.
pub(super) struct ArchiveMember {
    /// Position of the name, without its suffix, in [`ArchiveMembers::names`].
    name: Range<usize>,
    pub(super) entry: ArrayEntry,
    /// Reason why the array cannot be read, phrased to follow its name.
    problem: Option<String>,
    /// Offset of its header, for errors.
    header_offset: u64,
    pub(super) is_read: bool,
}

/// The arrays of an archive. The memory is reused for the next one.
#[derive(Default)]
pub(super) struct ArchiveMembers {
    pub(super) members: Vec<ArchiveMember>,
    names: String,
    /// Whether arrays that the user named are missing.
    pub(super) lacks_chosen: bool,
}

impl ArrayEntry {
    /// Name of the compression, if it is not reversed.
    pub(super) fn unknown_method(&self) -> Option<&'static str> {
        match self.method {
            STORED | DEFLATED => None,
            12 => Some("bzip2"),
            14 => Some("lzma"),
            93 => Some("zstd"),
            95 => Some("xz"),
            _ => Some("unknown compression"),
        }
    }
}

impl ArchiveMembers {
    pub(super) fn name(&self, member: &ArchiveMember) -> &str {
        &self.names[member.name.clone()]
    }

    fn clear(&mut self) {
        self.members.clear();
        self.names.clear();
    }

    fn add(&mut self, header: &CentralHeader, header_offset: u64, directory_start: u64) {
        let start = self.names.len();
        let stem = header.name.strip_suffix(SUFFIX).unwrap_or(header.name);
        match std::str::from_utf8(stem) {
            Ok(stem) => self.names.push_str(stem),
            Err(_) => self.names.push_str(&String::from_utf8_lossy(stem)),
        }
        let name = start..self.names.len();
        let found = header.entry(directory_start);
        let unread = ArrayEntry { bytes: header.bytes().unwrap_or(u64::MAX), ..Default::default() };
        let problem = found.as_ref().err().cloned();
        let entry = found.unwrap_or(unread);
        self.members.push(ArchiveMember { name, entry, problem, header_offset, is_read: false });
    }

    /// Chooses the members that are read.
    fn choose(&mut self, chosen: &[String]) -> Result<(), FormatError> {
        self.lacks_chosen = !self.choose_named(chosen);
        if !self.members.iter().any(|member| member.is_read) {
            self.choose_largest();
        }
        let is_broken = |member: &&ArchiveMember| member.is_read && member.problem.is_some();
        if let Some(broken) = self.members.iter().find(is_broken) {
            let name = printable_name(self.name(broken).as_bytes());
            let problem = broken.problem.as_deref().unwrap_or_default();
            let message = format!("member `{name}.npy` {problem}");
            return Err(FormatError::new(broken.header_offset, message));
        }
        Ok(())
    }

    fn choose_largest(&mut self) {
        // Headers make short arrays look comparable.
        let content = |bytes: u64| bytes.saturating_sub(HEADER_BYTES);
        let labels = self.labels();
        let others = || (0..).zip(&self.members).filter(|(i, _)| labels != Some(*i));
        let entries = || others().map(|(_, member)| &member.entry);
        let packed_max = entries().map(|entry| content(entry.packed_bytes)).max().unwrap_or(0);
        let bytes_max = entries().map(|entry| entry.bytes).max().unwrap_or(0);
        let packed_min = packed_max.div_ceil(SHARE_DIVISOR).max(1);
        let bytes_min = content(bytes_max).div_ceil(SHARE_DIVISOR).max(1);
        for (i, member) in self.members.iter_mut().enumerate() {
            let ArrayEntry { bytes, packed_bytes, .. } = member.entry;
            let is_comparable = packed_min <= content(packed_bytes) || bytes_min <= content(bytes);
            let is_largest = bytes == bytes_max;
            member.is_read = labels != Some(i) && (is_comparable || is_largest);
        }
    }

    /// Number of the labels in an archive of DLIO, which has only `x` and short labels `y`.
    fn labels(&self) -> Option<usize> {
        let find = |name: &str| self.members.iter().position(|member| self.name(member) == name);
        let labels = find(LABELS).filter(|_| self.members.len() == 2 && find(SAMPLES).is_some());
        labels.filter(|i| self.members[*i].entry.bytes <= LABELS_BYTES_MAX)
    }

    /// Chooses the members that the user named, and returns whether there are all of them.
    fn choose_named(&mut self, chosen: &[String]) -> bool {
        let mut found_all = true;
        for name in chosen {
            let stem = name.strip_suffix(".npy").unwrap_or(name);
            // The last entry of a name is the one that Python uses.
            match self.members.iter().rposition(|member| self.name(member) == stem) {
                Some(i) => self.members[i].is_read = true,
                None => found_all = false,
            }
        }
        found_all
    }
}

/// Loads one range after another until the members are found.
pub(super) struct DirectoryReader {
    piece_bytes: usize,
    /// Names of arrays that the user chose.
    chosen: Arc<[String]>,
    pub(super) found: ArchiveMembers,
    file_bytes: u64,
    is_foreign: bool,
    next_structure: ZipStructure,
    /// Range of the searched structure.
    range: Range<u64>,
    requested: usize,
    loaded: Vec<u8>,
}

/// The next structure to read, and the range that contains it.
type NextRead = (ZipStructure, Range<u64>);

#[derive(Clone, Copy)]
enum ZipStructure {
    End,
    Zip64End,
    Directory,
}

impl DirectoryReader {
    pub(super) fn new(piece_bytes: usize, chosen: Arc<[String]>) -> Self {
        DirectoryReader {
            piece_bytes,
            chosen,
            found: ArchiveMembers::default(),
            file_bytes: 0,
            is_foreign: false,
            next_structure: ZipStructure::End,
            range: 0..0,
            requested: 0,
            loaded: Vec::with_capacity(TAIL_BYTES as usize),
        }
    }

    /// Starts reading a file. A file that fits into a piece is read at once.
    pub(super) fn begin(&mut self, file_bytes: u64, is_foreign: bool) {
        self.is_foreign = is_foreign;
        let fits = file_bytes <= self.piece_bytes as u64;
        let tail = if fits { file_bytes } else { TAIL_BYTES.min(file_bytes) };
        self.file_bytes = file_bytes;
        self.next_structure = ZipStructure::End;
        self.range = file_bytes - tail..file_bytes;
        self.loaded.clear();
    }

    /// Offset and length of the bytes needed next.
    ///
    /// # Errors
    /// The file is too short for an archive.
    pub(super) fn need(&mut self) -> Result<(u64, usize), FormatError> {
        if self.file_bytes < END_BYTES as u64 {
            let message = format!("a file of {} bytes is too short for an npz", self.file_bytes);
            return Err(FormatError::new(0, message));
        }
        let offset = self.range.start + self.loaded.len() as u64;
        let left = self.range.end - offset;
        // A range that fits into a piece is one read, even if it is not aligned.
        let fits = left <= self.piece_bytes as u64;
        self.requested =
            if fits { left as usize } else { piece_len(self.piece_bytes, offset, left) };
        Ok((offset, self.requested))
    }

    /// End of the range that is searched.
    pub(super) fn end(&self) -> u64 {
        self.range.end
    }

    /// Takes the requested bytes. Returns the offset of `bytes` in the file once the members are found.
    ///
    /// # Errors
    /// The file is not an archive, or has no such members.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<u64>, FormatError> {
        let range = self.range.clone();
        let offset = range.start + self.loaded.len() as u64;
        let end = offset + bytes.len() as u64;
        if bytes.len() < self.requested {
            return Err(truncated(end, range.end - end));
        }
        let found = if self.loaded.is_empty() && end == range.end {
            self.search(bytes, range.start)?
        } else {
            self.loaded.extend_from_slice(bytes);
            if end < range.end {
                return Ok(None);
            }
            let loaded = std::mem::take(&mut self.loaded);
            let found = self.search(&loaded, range.start)?;
            self.loaded = loaded;
            self.loaded.clear();
            found
        };
        Ok(found.then_some(offset))
    }

    /// Reads one structure after another from `bytes`, which begin at `start` of the file. Returns whether the members were found;
    /// otherwise other bytes are needed.
    fn search(&mut self, bytes: &[u8], start: u64) -> Result<bool, FormatError> {
        loop {
            let Some(part) = bytes_in_range(bytes, start, &self.range) else { return Ok(false) };
            (self.next_structure, self.range) = match self.next_structure {
                ZipStructure::End => self.read_end(part, self.range.start)?,
                ZipStructure::Zip64End => read_zip64_end(part, self.range.start)?,
                ZipStructure::Directory => {
                    let start = self.range.start;
                    return if self.is_foreign {
                        self.find_members(part, start)
                    } else {
                        self.find_samples(part, start)
                    };
                }
            };
        }
    }

    /// Finds the end record, searching backwards, and returns the structure that it points to.
    fn read_end(&self, tail: &[u8], start: u64) -> Result<NextRead, FormatError> {
        let last = tail.len().saturating_sub(END_BYTES);
        let first = last.saturating_sub(COMMENT_BYTES_MAX);
        let Some(end_start) = (first..=last).rev().find(|&position| is_end_record(tail, position))
        else {
            return self.request_longer_tail(start);
        };
        let Some(locator) =
            end_start.checked_sub(ZIP64_LOCATOR_BYTES).map(|start| &tail[start..end_start])
        else {
            return if start > 0 {
                self.request_longer_tail(start)
            } else {
                directory_from_end(&tail[end_start..], end_start as u64)
            };
        };
        let end_offset = start + end_start as u64;
        if !locator.starts_with(b"PK\x06\x07") {
            return directory_from_end(&tail[end_start..], end_offset);
        }
        let record = u64_at(locator, 8).unwrap_or(u64::MAX);
        let range = checked_range("zip64 end record", record, ZIP64_END_BYTES, end_offset)?;
        Ok((ZipStructure::Zip64End, range))
    }

    /// Finds the last entry called `x.npy`, which is the one that Python uses.
    fn find_samples(&mut self, directory: &[u8], start: u64) -> Result<bool, FormatError> {
        self.found.clear();
        let mut found = None;
        for header in headers(directory) {
            let (offset, header) = header.map_err(|offset| broken_directory(start, offset))?;
            if header.name == NAME {
                found = Some((offset, header));
            }
        }
        let Some((offset, header)) = found else { return Err(no_arrays(directory, start)) };
        self.found.add(&header, start + offset as u64, start);
        self.found.members[0].is_read = true;
        self.found.choose(&[])?;
        Ok(true)
    }

    /// Finds the arrays of a foreign archive. Fails if one that is chosen cannot be read, because a smaller one, such as labels, must
    /// not be read instead.
    fn find_members(&mut self, directory: &[u8], start: u64) -> Result<bool, FormatError> {
        self.found.clear();
        for header in headers(directory) {
            let (offset, header) = header.map_err(|offset| broken_directory(start, offset))?;
            if header.name.ends_with(SUFFIX) {
                self.found.add(&header, start + offset as u64, start);
            }
        }
        if self.found.members.is_empty() {
            return Err(no_arrays(directory, start));
        }
        self.found.choose(&self.chosen)?;
        Ok(true)
    }

    /// Continues with a longer tail, because a comment may follow the end record.
    fn request_longer_tail(&self, start: u64) -> Result<NextRead, FormatError> {
        let most = END_BYTES + COMMENT_BYTES_MAX + ZIP64_LOCATOR_BYTES;
        let earliest = self.file_bytes.saturating_sub(most as u64);
        if start <= earliest {
            let message = "no zip directory: the file is cut off, or is not an npz";
            return Err(FormatError::new(self.file_bytes, message));
        }
        Ok((ZipStructure::End, earliest..self.file_bytes))
    }
}

/// Reads the zip64 end record, and returns the range of the directory.
fn read_zip64_end(record: &[u8], start: u64) -> Result<NextRead, FormatError> {
    if !record.starts_with(b"PK\x06\x06") {
        return Err(FormatError::new(start, "no zip64 end record where its locator points"));
    }
    let bytes = u64_at(record, 40).unwrap_or(u64::MAX);
    directory_range(u64_at(record, 48).unwrap_or(u64::MAX), bytes, start)
}

/// Whether the end record is at `position`: its comment must end at the end of the file.
fn is_end_record(tail: &[u8], position: usize) -> bool {
    let comment_bytes = tail.len() - position - END_BYTES;
    tail[position..].starts_with(b"PK\x05\x06")
        && u16_at(tail, position + 20).is_some_and(|bytes| usize::from(bytes) == comment_bytes)
}

/// The bytes of `range`, if all of them are in `bytes`, which begin at `start`.
fn bytes_in_range<'b>(bytes: &'b [u8], start: u64, range: &Range<u64>) -> Option<&'b [u8]> {
    let first = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let end = usize::try_from(range.end - start).ok()?;
    bytes.get(first..end)
}

fn directory_from_end(end_record: &[u8], end_offset: u64) -> Result<NextRead, FormatError> {
    let field = |at| u32_at(end_record, at).map_or(u64::MAX, u64::from);
    directory_range(field(16), field(12), end_offset)
}

fn directory_range(start: u64, bytes: u64, end: u64) -> Result<NextRead, FormatError> {
    let range = checked_range("zip directory", start, bytes, end)?;
    if bytes > DIRECTORY_BYTES_MAX {
        let message = format!("zip directory of {bytes} bytes, more than {DIRECTORY_BYTES_MAX}");
        return Err(FormatError::new(start, message));
    }
    Ok((ZipStructure::Directory, range))
}

/// The range of a structure, which must end before `limit`.
fn checked_range(
    name: &str,
    start: u64,
    bytes: u64,
    limit: u64,
) -> Result<Range<u64>, FormatError> {
    match start.checked_add(bytes) {
        Some(end) if end <= limit => Ok(start..end),
        _ => {
            let message = format!("{name} of {bytes} bytes, starting at {start}, does not fit");
            Err(FormatError::new(limit, message))
        }
    }
}

fn broken_directory(start: u64, offset: usize) -> FormatError {
    FormatError::new(start + offset as u64, "broken zip directory")
}

fn no_arrays(directory: &[u8], start: u64) -> FormatError {
    let message = format!("no member `x.npy`: the archive holds {}", describe_names(directory));
    FormatError::new(start, message)
}

/// The entries of the directory with their offsets. The error is the offset of a broken entry.
fn headers(directory: &[u8]) -> impl Iterator<Item = Result<(usize, CentralHeader<'_>), usize>> {
    let mut next_offset = 0;
    std::iter::from_fn(move || {
        let offset = next_offset;
        let rest = directory.get(offset..).filter(|rest| !rest.is_empty())?;
        let header = CentralHeader::read(rest);
        next_offset =
            header.as_ref().map_or(directory.len(), |header| offset + header.header_bytes);
        Some(header.map(|header| (offset, header)).ok_or(offset))
    })
}

/// The first few names, for an error.
fn describe_names(directory: &[u8]) -> String {
    let shown: Vec<String> = headers(directory)
        .flatten()
        .take(NAMES_SHOWN_MAX)
        .map(|(_, header)| format!("`{}`", printable_name(header.name)))
        .collect();
    match headers(directory).count() - shown.len() {
        0 if shown.is_empty() => "nothing".to_string(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn printable_name(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(64)]).escape_debug().to_string()
}

struct CentralHeader<'d> {
    fixed: &'d [u8],
    name: &'d [u8],
    extra: &'d [u8],
    /// Length of the header itself.
    header_bytes: usize,
}

impl<'d> CentralHeader<'d> {
    fn read(directory: &'d [u8]) -> Option<Self> {
        let fixed = directory.get(..46).filter(|fixed| fixed.starts_with(b"PK\x01\x02"))?;
        let name_end = 46 + usize::from(u16_at(fixed, 28)?);
        let extra_end = name_end + usize::from(u16_at(fixed, 30)?);
        let header_bytes = extra_end + usize::from(u16_at(fixed, 32)?);
        let name = directory.get(46..name_end)?;
        let extra = directory.get(name_end..extra_end)?;
        let is_complete = header_bytes <= directory.len();
        is_complete.then_some(CentralHeader { fixed, name, extra, header_bytes })
    }

    /// Uncompressed length of the member.
    fn bytes(&self) -> Result<u64, String> {
        self.read_size(24, &mut self.zip64_values())
    }

    /// The member that the header describes. The error is the reason why it cannot be read, phrased to follow its name.
    fn entry(&self, directory_start: u64) -> Result<ArrayEntry, String> {
        if u16_at(self.fixed, 8).unwrap_or_default() & 1 == 1 {
            return Err("is encrypted, which is not supported".to_string());
        }
        let mut zip64_values = self.zip64_values();
        // The order of values in the zip64 field.
        let bytes = self.read_size(24, &mut zip64_values)?;
        let packed_bytes = self.read_size(20, &mut zip64_values)?;
        let offset = self.read_size(42, &mut zip64_values)?;
        let limit = directory_start;
        let end = offset.checked_add(packed_bytes).and_then(|end| end.checked_add(30));
        if end.is_none_or(|end| end > limit) {
            return Err(format!(
                "of {packed_bytes} bytes at {offset} does not fit before the directory"
            ));
        }
        let method = u16_at(self.fixed, 10).unwrap_or_default();
        Ok(ArrayEntry { offset, packed_bytes, bytes, crc: self.word(16), method, limit })
    }

    fn word(&self, at: usize) -> u32 {
        u32_at(self.fixed, at).unwrap_or_default()
    }

    /// A size or offset. If it does not fit into its field, returns the next of `zip64_values`.
    fn read_size(
        &self,
        at: usize,
        zip64_values: &mut impl Iterator<Item = u64>,
    ) -> Result<u64, String> {
        match self.word(at) {
            u32::MAX => zip64_values.next().ok_or("has no zip64 sizes".to_string()),
            small => Ok(u64::from(small)),
        }
    }

    /// The values in the zip64 field.
    fn zip64_values(&self) -> impl Iterator<Item = u64> + 'd {
        let mut extra = self.extra;
        let mut values: &[u8] = &[];
        while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
            let end = (4 + usize::from(len)).min(extra.len());
            if id == 1 {
                values = &extra[4..end];
            }
            extra = &extra[end..];
        }
        values.chunks_exact(8).filter_map(|value| u64_at(value, 0))
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}
