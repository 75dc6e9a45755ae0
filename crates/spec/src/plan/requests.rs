//! Requests: reads of whole files or row groups without decoding, of which each worker keeps several outstanding.
//!
//! MLPerf Storage v3's client reads so (`_local_fs_iterable_mixin.py`, `parquet_reader_file_iterable.py` and `torch_data_loader.py` of its
//! fork of DLIO).

use super::{LoaderPlan, OpeningRequest, PIECE_BYTES, Plan};
use serde::{Deserialize, Serialize};

/// Maximum bytes of a request for a directory.
const DIRECTORY_BYTES_MAX: u64 = 4096;

/// How workers read whole requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Maximum number of requests that a worker keeps outstanding.
    pub in_flight: u32,
    /// What a request reads.
    pub unit: RequestUnit,
    /// How far workers read beyond the batches that the loader has opened.
    pub ahead: ReadAhead,
}

/// What one request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestUnit {
    /// A whole file, which holds one sample.
    File,
    /// A row group, from its first to its last selected column chunk.
    RowGroup,
}

/// How far a worker reads beyond the open batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAhead {
    /// Only samples of open batches are read.
    None,
    /// Requests are read in windows of this number. A batch is delivered when the windows of its samples are complete, and while a window is
    /// delivered, the next one is read.
    Windows(u32),
    /// Up to this number of requests after the one that is being delivered.
    Sliding(u32),
}

impl RequestUnit {
    /// Returns the plural noun for messages.
    pub fn plural(self) -> &'static str {
        match self {
            RequestUnit::File => "whole files",
            RequestUnit::RowGroup => "whole row groups",
        }
    }
}

impl LoaderPlan {
    /// Returns the number of requests that a worker keeps outstanding.
    pub fn in_flight(&self) -> u32 {
        self.requests.map_or(1, |requests| requests.in_flight.max(1))
    }

    /// Returns the number of reads for `bytes` bytes from the start of a file, without those after it is opened.
    pub fn payload_reads(&self, bytes: f64) -> f64 {
        match self.library {
            Some(library) => library.requests().sizes.requests(bytes as u64) as f64,
            None => (bytes / self.piece_bytes.max(1) as f64).ceil(),
        }
    }

    /// Returns the number of reads after a file is opened, before its samples, without those that also precede large reads of `bytes` bytes.
    pub fn opening_reads(&self, bytes: f64) -> u64 {
        let Some(library) = self.library else { return 0 };
        let requests = library.requests();
        let is_one_large_read = bytes <= PIECE_BYTES as f64;
        requests.opening.len() as u64 + if is_one_large_read { requests.directory_reads } else { 0 }
    }

    /// Returns the bytes that a library reads after it opens a file of `file_bytes`, in addition to the samples. Memory serves most of them, since
    /// they are read again.
    pub fn opening_bytes(&self, file_bytes: u64) -> u64 {
        let Some(library) = self.library else { return 0 };
        let requests = library.requests();
        let length =
            |request: &OpeningRequest| request.bytes.min(file_bytes.saturating_sub(request.offset));
        let directory_bytes = requests.directory_reads * DIRECTORY_BYTES_MAX.min(file_bytes);
        requests.opening.iter().map(length).sum::<u64>() + directory_bytes
    }

    /// Returns the number of threads of a worker: one for each request, and one that delivers batches while all others read ahead.
    pub fn threads_per_worker(&self) -> u32 {
        let is_ahead = self.requests.is_some_and(|requests| requests.ahead != ReadAhead::None);
        self.in_flight().saturating_add(u32::from(is_ahead))
    }

    /// Returns the number of threads that read for an accelerator.
    pub fn threads(&self) -> u32 {
        self.workers.max(1).saturating_mul(self.threads_per_worker())
    }

    /// Returns the number of reads that an accelerator can have outstanding: those of all its workers.
    pub fn streams(&self) -> u32 {
        self.workers.max(1).saturating_mul(self.in_flight())
    }
}

impl Plan {
    /// Returns the number of samples that a worker reads together: those of a row group if workers read row groups, else one. For row groups of
    /// existing files an estimate.
    pub fn samples_per_request(&self) -> u64 {
        let unit = self.loader.requests.map(|requests| requests.unit);
        match unit {
            Some(RequestUnit::RowGroup) => self.dataset.encoding.row_group_samples.max(1),
            Some(RequestUnit::File) | None => 1,
        }
    }

    /// Returns the largest number of batches that an accelerator's loader may hold or read in advance: the open batches, and what its
    /// workers read ahead. For row groups of existing files an estimate, from the planned length of row groups.
    pub fn stock_batches(&self) -> u64 {
        let loader = &self.loader;
        let samples_ahead = loader.requests.map_or(0, |requests| match requests.ahead {
            ReadAhead::None => 0,
            // The window that is delivered and the next one.
            ReadAhead::Windows(files) => 2 * u64::from(files),
            ReadAhead::Sliding(groups) => {
                u64::from(groups).saturating_mul(self.samples_per_request())
            }
        });
        let samples = samples_ahead.saturating_mul(loader.workers.max(1).into());
        u64::from(loader.batches_in_flight) + samples.div_ceil(loader.batch_size.max(1))
    }
}
