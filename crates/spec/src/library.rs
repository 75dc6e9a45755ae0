//! The requests that the usual libraries of formats make for a file, as data. Libraries read through buffers, so that their requests end at
//! fixed offsets.

use serde::{Deserialize, Serialize};

/// Upper limit on the bytes of a request.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// A library that reads files of a format. Plans record its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// `numpy.load` of an npz file, from numpy 2.3 on (older ones open the array twice). It recognises the file, searches the directory with
    /// two requests at its end, and reads 256 KiB at a time through Python's buffer. Feedrate's reader reads the directory, in one request.
    NumpyNpz,
    /// `numpy.load` of an npy file. It reads the header through Python's buffer, seeks in C's, and reads the array with `fread`.
    NumpyNpy,
    /// Pillow with a png file. It reads 64 KiB at a time through Python's buffer.
    PillowPng,
    /// Pillow with a jpeg file. It reads the header through Python's buffer, and then 64 KiB at a time.
    PillowJpeg,
    /// h5py. It reads the structures of a file one by one, the last one here by feedrate's reader, and a contiguous sample in one request.
    H5py,
    /// tf.data with TFRecords. It reads 256 KiB at a time.
    TfData,
}

/// The requests of a library.
#[derive(Debug)]
pub struct LibraryRequests {
    /// Name of the library, for messages.
    pub library: &'static str,
    /// Requests after a file is opened, before its samples. Their bytes are read again or not used.
    pub opening: &'static [OpeningRequest],
    /// Further requests after a file is opened, by feedrate's reader. A large request for a whole file contains their bytes.
    pub directory_reads: u64,
    /// Requests for samples.
    pub sizes: LibrarySizes,
}

/// A request after a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningRequest {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes, or fewer at the end of the file.
    pub bytes: u64,
}

/// The offsets at which requests for samples end. By default, a request extends to the end of what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibrarySizes {
    /// Offsets at which the first requests of a file end; 0 for none.
    pub first_ends: [u64; 2],
    /// Requests end at the multiples of this number of bytes.
    pub period_bytes: Option<u64>,
    /// Length of the library's buffer. A request that fills the buffer begins at each multiple of the period, and another one begins where
    /// the last incomplete buffer of the needed bytes begins.
    pub buffer_bytes: Option<u64>,
}

static NUMPY_NPZ: LibraryRequests = LibraryRequests {
    library: "numpy",
    opening: &[
        OpeningRequest::new(0, 4096),
        OpeningRequest::new(0, 22),
        OpeningRequest::new(0, 42),
    ],
    directory_reads: 1,
    sizes: LibrarySizes {
        first_ends: [4096, 8192],
        period_bytes: Some(256 << 10),
        buffer_bytes: Some(4096),
    },
};

static NUMPY_NPY: LibraryRequests = LibraryRequests {
    library: "numpy",
    opening: &[OpeningRequest::new(0, 4096), OpeningRequest::new(0, 128)],
    directory_reads: 0,
    sizes: LibrarySizes { first_ends: [4096, 0], period_bytes: None, buffer_bytes: Some(4096) },
};

static PILLOW_PNG: LibraryRequests = LibraryRequests {
    library: "Pillow",
    opening: &[],
    directory_reads: 0,
    sizes: LibrarySizes {
        first_ends: [4096, 0],
        period_bytes: Some(64 << 10),
        buffer_bytes: Some(4096),
    },
};

static PILLOW_JPEG: LibraryRequests = LibraryRequests {
    library: "Pillow",
    opening: &[],
    directory_reads: 0,
    sizes: LibrarySizes { first_ends: [4096, 0], period_bytes: Some(64 << 10), buffer_bytes: None },
};

static H5PY: LibraryRequests = LibraryRequests {
    library: "h5py",
    opening: &[
        OpeningRequest::new(0, 8),
        OpeningRequest::new(0, 48),
        OpeningRequest::new(48, 48),
        OpeningRequest::new(96, 512),
        OpeningRequest::new(680, 512),
        OpeningRequest::new(136, 544),
        OpeningRequest::new(1072, 328),
    ],
    directory_reads: 0,
    sizes: LibrarySizes { first_ends: [0, 0], period_bytes: None, buffer_bytes: None },
};

static TF_DATA: LibraryRequests = LibraryRequests {
    library: "tf.data",
    opening: &[],
    directory_reads: 0,
    sizes: LibrarySizes { first_ends: [0, 0], period_bytes: Some(256 << 10), buffer_bytes: None },
};

impl Library {
    /// Returns the requests of the library.
    pub fn requests(self) -> &'static LibraryRequests {
        match self {
            Library::NumpyNpz => &NUMPY_NPZ,
            Library::NumpyNpy => &NUMPY_NPY,
            Library::PillowPng => &PILLOW_PNG,
            Library::PillowJpeg => &PILLOW_JPEG,
            Library::H5py => &H5PY,
            Library::TfData => &TF_DATA,
        }
    }
}

impl LibraryRequests {
    /// Returns the number of requests for a file of one sample, of which `bytes` bytes are read for the sample.
    pub fn file_requests(&self, bytes: u64) -> u64 {
        self.opening.len() as u64 + self.directory_reads + self.sizes.requests(bytes)
    }
}

impl OpeningRequest {
    /// Creates a request.
    pub const fn new(offset: u64, bytes: u64) -> Self {
        OpeningRequest { offset, bytes }
    }
}

impl LibrarySizes {
    /// Returns the length of the request at `offset`, if `needed_bytes` bytes are needed from there on and requests have at most
    /// `request_bytes_max` bytes. It is 0 only if no bytes are needed.
    pub fn request_bytes(self, offset: u64, needed_bytes: u64, request_bytes_max: u64) -> u64 {
        let needed_end = offset.saturating_add(needed_bytes.min(request_bytes_max.max(1)));
        let period_ends = self.period_bytes.map(|period| {
            let start = offset - offset % period;
            let end = |bytes| start.saturating_add(bytes);
            [end(period), self.buffer_bytes.map_or(0, end)]
        });
        let ends = self.first_ends.into_iter().chain(period_ends.into_iter().flatten());
        let end = ends.filter(|end| *end > offset).fold(needed_end, u64::min);
        let buffer = self.buffer_bytes.unwrap_or(1);
        let whole_buffers_end = end - end % buffer;
        if whole_buffers_end > offset { whole_buffers_end - offset } else { end - offset }
    }

    /// Returns the number of requests in a period, or in the largest request if there is none.
    pub fn requests_per_period(self) -> u64 {
        if self.period_bytes.is_some() && self.buffer_bytes.is_some() { 2 } else { 1 }
    }

    /// Returns the number of requests for the first `bytes` bytes of a file.
    pub fn requests(self, bytes: u64) -> u64 {
        // The first periods contain `first_ends`; all later ones are equal.
        let period = self.period_bytes.unwrap_or(REQUEST_BYTES_MAX);
        let skipped_periods = (bytes / period).saturating_sub(2);
        let rest = bytes - skipped_periods * period;
        let mut requests = skipped_periods * self.requests_per_period();
        let mut offset = 0;
        while offset < rest {
            offset += self.request_bytes(offset, rest - offset, REQUEST_BYTES_MAX);
            requests += 1;
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lengths of the requests for a whole file.
    fn lengths(sizes: LibrarySizes, bytes: u64) -> Vec<u64> {
        let mut offset = 0;
        let next = || {
            let length = sizes.request_bytes(offset, bytes - offset, REQUEST_BYTES_MAX);
            offset += length;
            (length > 0).then_some(length)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn requests_end_where_the_buffers_of_a_library_end() {
        let sizes = |library: Library| library.requests().sizes;
        let whole = sizes(Library::H5py);
        let first = sizes(Library::PillowJpeg);
        let buffered = sizes(Library::NumpyNpz);
        let last_buffer = sizes(Library::NumpyNpy);
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
        for sizes in [whole, first, buffered, last_buffer] {
            for bytes in [0, 1, 4096, 5000, 300_000, 2_000_000, 2_097_152, 300_000_000] {
                let expected = lengths(sizes, bytes).len() as u64;
                assert_eq!(sizes.requests(bytes), expected, "{sizes:?} {bytes}");
            }
        }
    }

    #[test]
    fn numpy_reads_an_npz_of_eight_megabytes_in_many_requests() {
        assert_eq!(Library::NumpyNpz.requests().file_requests((8 << 20) + 300), 70);
    }

    #[test]
    fn plans_record_the_names_of_libraries() {
        let name = serde_json::to_value(Library::NumpyNpz).unwrap();
        assert_eq!(name, "numpy-npz");
        assert_eq!(serde_json::from_value::<Library>(name).unwrap(), Library::NumpyNpz);
        assert!(serde_json::from_str::<Library>(r#""other""#).is_err());
    }

    /// Records of others can claim any number of bytes.
    #[test]
    fn requests_for_any_length_are_counted() {
        for library in [Library::NumpyNpz, Library::NumpyNpy, Library::PillowJpeg, Library::H5py] {
            let sizes = library.requests().sizes;
            let period = sizes.period_bytes.unwrap_or(REQUEST_BYTES_MAX);
            assert!(u64::MAX / period <= sizes.requests(u64::MAX), "{library:?}");
            for offset in [0, u64::MAX - 1] {
                for request_bytes_max in [0, 1, u64::MAX] {
                    let bytes = sizes.request_bytes(offset, 1 << 20, request_bytes_max);
                    let longest = request_bytes_max.clamp(1, 1 << 20);
                    assert!((1..=longest).contains(&bytes), "{library:?} {offset}: {bytes}");
                }
            }
        }
    }
}
