//! Reads through HDF5's C library, as h5py does. The library returns elements and not bytes of the file, so this engine
//! serves the payloads of the samples, one after another, as if the file contained nothing else.
//!
//! A sample is read by one `H5Dread` call per dataset into memory of the handle. The library allows one call at a time
//! per process and holds its lock while it reads, so other workers wait.

use super::{Engine, Handle};
use feedrate_spec::catalog::{Ability, Member};
use hdf5_metno::{Dataset, Dataspace, Datatype, File, from_id};
use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5d::H5Dread;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_seloper_t, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{H5T_order_t, H5Tcopy, H5Tset_order};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::ptr;
use std::sync::{Mutex, PoisonError};

pub(super) struct LibHdf5;

static MEMBER: Member = Member {
    name: "libhdf5",
    summary: "Samples through HDF5's own library, one call at a time in a process, as h5py reads them.",
    abilities: &[Ability::ServesSamples],
};

/// An open file.
struct OpenedFile {
    fd: OwnedFd,
    records: Vec<Records>,
    samples: u64,
    sample_bytes: u64,
    last_sample: Mutex<LastSample>,
    /// The last field, because it must be closed after its datasets.
    _file: File,
}

/// One dataset with the samples along its first axis.
struct Records {
    dataset: Dataset,
    /// The dataset's datatype in little-endian byte order.
    datatype: Datatype,
    dims: Vec<u64>,
    /// Length of one sample.
    sample_bytes: u64,
}

/// The last sample that was read. Callers fetch a sample in several pieces.
#[derive(Default)]
struct LastSample {
    sample: Option<u64>,
    bytes: Vec<u8>,
}

impl OpenedFile {
    fn new(fd: OwnedFd) -> hdf5_metno::Result<Self> {
        let file = File::open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        let mut records = Vec::new();
        while file.link_exists(&format!("records_{}", records.len())) {
            records.push(Records::new(file.dataset(&format!("records_{}", records.len()))?)?);
        }
        let samples = records.iter().map(|records| records.dims[0]).min();
        let samples = samples.ok_or("there is no dataset `records_0`")?;
        let sample_bytes = records.iter().map(|records| records.sample_bytes).sum();
        let last_sample = Mutex::default();
        Ok(OpenedFile { fd, records, samples, sample_bytes, last_sample, _file: file })
    }

    fn len(&self) -> u64 {
        self.samples.saturating_mul(self.sample_bytes)
    }

    /// Fills `buffer` with payload from `offset` on, up to the end of the payload, and returns the number of bytes read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut last = self.last_sample.lock().unwrap_or_else(PoisonError::into_inner);
        let mut filled = 0;
        while filled < buffer.len() {
            let position = offset.saturating_add(filled as u64);
            if position >= self.len() {
                break;
            }
            let sample = position / self.sample_bytes;
            let skip = (position % self.sample_bytes) as usize;
            if last.sample != Some(sample) {
                self.read_sample(sample, &mut last).map_err(|_| Errno::IO)?;
            }
            let rest = &last.bytes[skip..];
            let len = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + len].copy_from_slice(&rest[..len]);
            filled += len;
        }
        Ok(filled)
    }

    fn read_sample(&self, sample: u64, last: &mut LastSample) -> hdf5_metno::Result<()> {
        last.sample = None;
        last.bytes.resize(self.sample_bytes as usize, 0);
        let mut rest = &mut last.bytes[..];
        for records in &self.records {
            let (memory, remainder) = rest.split_at_mut(records.sample_bytes as usize);
            records.read(sample, memory)?;
            rest = remainder;
        }
        last.sample = Some(sample);
        Ok(())
    }
}

impl Records {
    fn new(dataset: Dataset) -> hdf5_metno::Result<Self> {
        let dims: Vec<u64> = dataset.shape().into_iter().map(|dim| dim as u64).collect();
        let datatype = little_endian(&dataset.dtype()?)?;
        let sample_bytes = dims.get(1..).and_then(|dims| {
            dims.iter().try_fold(datatype.size() as u64, |bytes, dim| bytes.checked_mul(*dim))
        });
        let sample_bytes = sample_bytes.ok_or("the dataset has no axis of samples")?;
        Ok(Records { dataset, datatype, dims, sample_bytes })
    }

    /// Reads one sample into `memory`, which has the length of a sample.
    fn read(&self, sample: u64, memory: &mut [u8]) -> hdf5_metno::Result<()> {
        assert_eq!(memory.len() as u64, self.sample_bytes);
        let file_space = self.dataset.space()?;
        let mut start = vec![0; self.dims.len()];
        let mut count = self.dims.clone();
        start[0] = sample;
        count[0] = 1;
        let memory_dims: Vec<usize> = count.iter().map(|dim| *dim as usize).collect();
        let memory_space = Dataspace::try_new(&memory_dims[..])?;
        let _lock = LOCK.lock();
        // SAFETY: the ids belong to objects that live here. `start` and `count` have one number per dimension. `memory` has
        // room for all selected elements, since `sample_bytes` was computed from the same datatype. The library's lock is
        // held.
        let status = unsafe {
            match H5Sselect_hyperslab(
                file_space.id(),
                H5S_seloper_t::H5S_SELECT_SET,
                start.as_ptr(),
                ptr::null(),
                count.as_ptr(),
                ptr::null(),
            ) {
                0.. => H5Dread(
                    self.dataset.id(),
                    self.datatype.id(),
                    memory_space.id(),
                    file_space.id(),
                    H5P_DEFAULT,
                    memory.as_mut_ptr().cast(),
                ),
                error => error,
            }
        };
        if status < 0 { Err("cannot read a sample".into()) } else { Ok(()) }
    }
}

/// A copy of a datatype in little-endian byte order.
fn little_endian(datatype: &Datatype) -> hdf5_metno::Result<Datatype> {
    let _lock = LOCK.lock();
    // SAFETY: the datatype lives through the call, which is made under the library's lock; the result owns the copy.
    let copy = unsafe { from_id::<Datatype>(H5Tcopy(datatype.id())) }?;
    // SAFETY: as above.
    match unsafe { H5Tset_order(copy.id(), H5T_order_t::H5T_ORDER_LE) } {
        0.. => Ok(copy),
        _ => Err("the elements are not numbers".into()),
    }
}

fn opened_file(file: &Handle) -> Result<&OpenedFile, Errno> {
    file.object().ok_or(Errno::BADF)
}

impl Engine for LibHdf5 {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        let opened = OpenedFile::new(fd).map_err(|_| Errno::INVAL)?;
        Ok(Handle::from_object(opened))
    }

    fn fd<'h>(&self, file: &'h Handle) -> Result<BorrowedFd<'h>, Errno> {
        Ok(opened_file(file)?.fd.as_fd())
    }

    fn len(&self, file: &Handle) -> Option<u64> {
        opened_file(file).ok().map(OpenedFile::len)
    }

    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        opened_file(file)?.read(offset, buffer)
    }
}
