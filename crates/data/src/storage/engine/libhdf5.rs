//! HDF5's own C library: what h5py does, and every other reader of HDF5. It knows no bytes of files: what it serves are
//! the samples' payloads, one after the other, as if the file held nothing else.
//!
//! A sample is read by one call of `H5Dread` for each dataset, into memory of the handle's. The library does one call at a
//! time in a process, and reads while it holds that lock: other workers wait.

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
    kept: Mutex<KeptSample>,
    /// Closed after its datasets.
    _file: File,
}

/// One dataset, the samples along its first axis.
struct Records {
    dataset: Dataset,
    /// The file's, in the order of bytes that memory has here.
    datatype: Datatype,
    dims: Vec<u64>,
    /// Length of one sample.
    bytes: u64,
}

/// The sample that was read last, which is fetched in pieces.
#[derive(Default)]
struct KeptSample {
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
        let sample_bytes = records.iter().map(|records| records.bytes).sum();
        let kept = Mutex::default();
        Ok(OpenedFile { fd, records, samples, sample_bytes, kept, _file: file })
    }

    fn len(&self) -> u64 {
        self.samples.saturating_mul(self.sample_bytes)
    }

    /// Read from `offset` of all payload, to the end of `buffer` or of the payload.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            if at >= self.len() {
                break;
            }
            let (sample, skip) = (at / self.sample_bytes, (at % self.sample_bytes) as usize);
            if kept.sample != Some(sample) {
                self.fetch(sample, &mut kept).map_err(|_| Errno::IO)?;
            }
            let rest = &kept.bytes[skip..];
            let len = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + len].copy_from_slice(&rest[..len]);
            filled += len;
        }
        Ok(filled)
    }

    fn fetch(&self, sample: u64, kept: &mut KeptSample) -> hdf5_metno::Result<()> {
        kept.sample = None;
        kept.bytes.resize(self.sample_bytes as usize, 0);
        let mut rest = &mut kept.bytes[..];
        for records in &self.records {
            let (now, later) = rest.split_at_mut(records.bytes as usize);
            records.read(sample, now)?;
            rest = later;
        }
        kept.sample = Some(sample);
        Ok(())
    }
}

impl Records {
    fn new(dataset: Dataset) -> hdf5_metno::Result<Self> {
        let dims: Vec<u64> = dataset.shape().into_iter().map(|side| side as u64).collect();
        let datatype = in_order_of_memory(&dataset.dtype()?)?;
        let bytes = dims.get(1..).and_then(|sides| {
            sides.iter().try_fold(datatype.size() as u64, |bytes, side| bytes.checked_mul(*side))
        });
        let bytes = bytes.ok_or("no dataset of samples")?;
        Ok(Records { dataset, datatype, dims, bytes })
    }

    /// Read one sample, which is as long as `memory`.
    fn read(&self, sample: u64, memory: &mut [u8]) -> hdf5_metno::Result<()> {
        assert_eq!(memory.len() as u64, self.bytes);
        let in_file = self.dataset.space()?;
        let mut start = vec![0; self.dims.len()];
        let mut count = self.dims.clone();
        (start[0], count[0]) = (sample, 1);
        let sides: Vec<usize> = count.iter().map(|side| *side as usize).collect();
        let in_memory = Dataspace::try_new(&sides[..])?;
        let _lock = LOCK.lock();
        // SAFETY: ids are of objects held here; `start` and `count` have a number for each dimension; `memory` has room for
        // all elements selected, which are of the datatype that `bytes` was made of. The library's lock is held.
        let read = unsafe {
            let set = H5S_seloper_t::H5S_SELECT_SET;
            let (start, count) = (start.as_ptr(), count.as_ptr());
            match H5Sselect_hyperslab(in_file.id(), set, start, ptr::null(), count, ptr::null()) {
                0.. => H5Dread(
                    self.dataset.id(),
                    self.datatype.id(),
                    in_memory.id(),
                    in_file.id(),
                    H5P_DEFAULT,
                    memory.as_mut_ptr().cast(),
                ),
                error => error,
            }
        };
        if read < 0 { Err("cannot read a sample".into()) } else { Ok(()) }
    }
}

/// A copy of a file's datatype.
fn in_order_of_memory(datatype: &Datatype) -> hdf5_metno::Result<Datatype> {
    let _lock = LOCK.lock();
    // SAFETY: the datatype is held for the call, under the library's lock; the copy is ours.
    let copy = unsafe { from_id::<Datatype>(H5Tcopy(datatype.id())) }?;
    // SAFETY: as above.
    match unsafe { H5Tset_order(copy.id(), H5T_order_t::H5T_ORDER_LE) } {
        0.. => Ok(copy),
        _ => Err("its elements are no numbers".into()),
    }
}

fn opened(file: &Handle) -> Result<&OpenedFile, Errno> {
    file.kept().ok_or(Errno::BADF)
}

impl Engine for LibHdf5 {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        let opened = OpenedFile::new(fd).map_err(|_| Errno::INVAL)?;
        Ok(Handle::keeping(opened))
    }

    fn fd<'h>(&self, file: &'h Handle) -> Result<BorrowedFd<'h>, Errno> {
        Ok(opened(file)?.fd.as_fd())
    }

    fn len(&self, file: &Handle) -> Option<u64> {
        opened(file).ok().map(OpenedFile::len)
    }

    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        opened(file)?.read(offset, buffer)
    }
}
