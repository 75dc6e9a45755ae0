//! The use of a file, which a library may open several times: numpy opens a file three times to map it, and reads its header twice.

/// How an open of a file relates to the opens before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The file is used anew.
    First,
    /// The file was opened shortly before to inspect its start, so both opens are for one use.
    Again,
}

/// The use of the file that a reader opened last. By default there is none.
#[derive(Debug, Default)]
pub(super) struct FileUse {
    /// The file; `None` after its use has ended.
    file: Option<u32>,
    /// Number of its opens that were not closed.
    open: u64,
    /// Bytes read so far.
    read_bytes: u64,
    /// End of the reads of the header so far.
    header_end: u64,
    /// Whether the file was opened more than once.
    is_opened_again: bool,
    /// Whether a read so far was neither within [`INSPECTED_BYTES_MAX`] of the start nor of the end, or at an unknown offset.
    reads_content: bool,
}

/// Largest part of a file, such as its header or the directory of an archive, that libraries read before they open it again.
const INSPECTED_BYTES_MAX: u64 = 64 << 10;

impl FileUse {
    /// Counts an open of a file whose length is `length_bytes`, as far as it is known. The use continues if the file was only inspected so
    /// far, and if it is still open or most of it is unread.
    pub(super) fn open(&mut self, file: u32, length_bytes: u64) -> Opening {
        let is_mostly_unread = self.read_bytes == 0 || self.read_bytes < length_bytes.div_ceil(2);
        let may_continue = !self.reads_content && (self.open > 0 || is_mostly_unread);
        if self.file == Some(file) && may_continue {
            self.open += 1;
            self.is_opened_again = true;
            return Opening::Again;
        }
        *self = FileUse { file: Some(file), open: 1, ..FileUse::default() };
        Opening::First
    }

    /// Counts a close.
    pub(super) fn close(&mut self, file: u32) {
        if self.file == Some(file) {
            self.open = self.open.saturating_sub(1);
        }
    }

    /// Counts a read of any file, whose length is `length_bytes`, as far as it is known. Returns how many of its bytes were
    /// read before the file was opened again for the same use.
    pub(super) fn read(
        &mut self,
        file: u32,
        length_bytes: u64,
        offset: Option<u64>,
        bytes: u64,
    ) -> u64 {
        if self.file != Some(file) {
            self.end();
            return 0;
        }
        let Some(start) = offset else {
            self.reads_content = true;
            return 0;
        };
        let end = start.saturating_add(bytes);
        let is_repeated = self.is_opened_again && !self.reads_content;
        let repeated_end = if is_repeated { self.header_end.min(end) } else { 0 };
        self.read_bytes = self.read_bytes.saturating_add(bytes);
        if end <= INSPECTED_BYTES_MAX {
            self.header_end = self.header_end.max(end);
        } else if start < length_bytes.saturating_sub(INSPECTED_BYTES_MAX) {
            self.reads_content = true;
        }
        self.reads_content |= INSPECTED_BYTES_MAX < self.read_bytes;
        repeated_end.saturating_sub(start)
    }

    /// Ends the use: a later open is for another one.
    pub(super) fn end(&mut self) {
        self.file = None;
    }
}
