//! The requests that the usual library of a format makes for a file, as data. Libraries read through buffers, so that their requests end at
//! fixed offsets.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Upper limit on the bytes of a request.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// The requests of a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryRequests {
    /// Name of the library, for messages.
    pub library: Cow<'static, str>,
    /// Requests after a file is opened, before its samples. Their bytes are read again or not used.
    pub opening: Cow<'static, [OpeningRequest]>,
    /// Requests for samples.
    pub sizes: LibrarySizes,
}

/// A request after a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpeningRequest {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes, or fewer at the end of the file.
    pub bytes: u64,
}

/// The offsets at which requests for samples end. By default, a request extends to the end of what is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibrarySizes {
    /// Offsets at which the first requests of a file end; 0 for none.
    pub first_ends: [u64; 2],
    /// Requests end at the multiples of this number of bytes.
    pub period_bytes: Option<u64>,
    /// Length of the library's buffer. A request that fills the buffer begins at each multiple of the period, and another one begins where
    /// the last incomplete buffer of the needed bytes begins.
    pub buffer_bytes: Option<u64>,
}

impl OpeningRequest {
    /// Creates a request.
    pub const fn new(offset: u64, bytes: u64) -> Self {
        OpeningRequest { offset, bytes }
    }
}

impl LibrarySizes {
    /// Returns the length of the request at `offset`, if `needed_bytes` bytes are needed from there on. It is 0 only if none are needed.
    pub fn request_bytes(self, offset: u64, needed_bytes: u64) -> u64 {
        let needed_end = offset.saturating_add(needed_bytes.min(REQUEST_BYTES_MAX));
        let period_ends = self.period_bytes.map(|period| {
            let start = offset - offset % period;
            [start + period, self.buffer_bytes.map_or(0, |buffer| start + buffer)]
        });
        let ends = self.first_ends.into_iter().chain(period_ends.into_iter().flatten());
        let end = ends.filter(|end| *end > offset).fold(needed_end, u64::min);
        let buffer = self.buffer_bytes.unwrap_or(1);
        let whole_buffers_end = end - end % buffer;
        if whole_buffers_end > offset { whole_buffers_end - offset } else { end - offset }
    }

    /// Returns the number of requests for the first `bytes` bytes of a file.
    pub fn requests(self, bytes: u64) -> u64 {
        // The first periods contain `first_ends`; all later ones are equal.
        let period = self.period_bytes.unwrap_or(u64::MAX);
        let skipped_periods = (bytes / period).saturating_sub(2);
        let per_period = if self.buffer_bytes.is_some() { 2 } else { 1 };
        let rest = bytes - skipped_periods.saturating_mul(period);
        let mut requests = skipped_periods * per_period;
        let mut offset = 0;
        while offset < rest {
            offset += self.request_bytes(offset, rest - offset);
            requests += 1;
        }
        requests
    }
}

impl LibraryRequests {
    /// Returns the number of requests for a file of `bytes` bytes that is opened and read to its end.
    pub fn requests(&self, bytes: u64) -> u64 {
        self.opening.len() as u64 + self.sizes.requests(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lengths of the requests for a whole file.
    fn lengths(sizes: LibrarySizes, bytes: u64) -> Vec<u64> {
        let mut offset = 0;
        let next = || {
            let length = sizes.request_bytes(offset, bytes - offset);
            offset += length;
            (length > 0).then_some(length)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn requests_end_where_the_buffers_of_a_library_end() {
        let whole = LibrarySizes::default();
        let first = LibrarySizes { first_ends: [4096, 0], period_bytes: Some(65536), ..whole };
        let buffered = LibrarySizes {
            first_ends: [4096, 8192],
            period_bytes: Some(262_144),
            buffer_bytes: Some(4096),
        };
        let last_buffer = LibrarySizes { first_ends: [4096, 0], buffer_bytes: Some(4096), ..whole };
        for (sizes, bytes, expected) in [
            (whole, 300_000, &[300_000][..]),
            (first, 1000, &[1000]),
            (first, 150_000, &[4096, 61_440, 65_536, 18_928]),
            (buffered, 100_376, &[4096, 4096, 90_112, 2072]),
            (buffered, 600_000, &[4096, 4096, 253_952, 4096, 258_048, 4096, 69_632, 1984]),
            (last_buffer, 300_128, &[4096, 294_912, 1120]),
        ] {
            assert_eq!(lengths(sizes, bytes), expected, "{sizes:?} {bytes}");
        }
        for sizes in [first, buffered, last_buffer] {
            for bytes in [0, 1, 4096, 5000, 300_000, 2_000_000, 2_097_152] {
                let expected = lengths(sizes, bytes).len() as u64;
                assert_eq!(sizes.requests(bytes), expected, "{sizes:?} {bytes}");
            }
        }
    }
}
