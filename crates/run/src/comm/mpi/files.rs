//! Files that all ranks read together, by MPI-IO: the library decides who asks the file system for which part. A read cannot be
//! interrupted; when a rank is lost, the others' processes are ended.

use super::abi::{Handle, MpiStatus};
use super::calls::{Calls, FileFunctions, RankGroup};
use super::link::{Link, one_thread};
use super::state::RankState;
use crate::comm::{CommError, SharedFile, SharedFiles};
use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

const OPEN: &str = "MPI_File_open";

/// A group of all ranks, one thread of each, for reading files together.
pub(super) struct MpiFiles(Arc<Group>);

/// A file that all of them have open.
struct MpiFile {
    group: Arc<Group>,
    file: Handle,
}

struct Group {
    calls: Calls,
    functions: FileFunctions,
    group: RankGroup,
    state: Arc<RankState>,
    /// The one thread that may call, where the library wants one.
    thread: Option<ThreadId>,
}

impl MpiFiles {
    pub(super) fn new(link: &Link) -> Result<Self, CommError> {
        link.begin("MPI_Comm_dup")?;
        let functions = link.calls.files.map_err(|call| CommError::Library {
            call,
            reason: "the MPI library was built without it".to_owned(),
        })?;
        let group = link.calls.duplicate(link.calls.world())?;
        let thread = link.thread.map(|_| std::thread::current().id());
        let state = Arc::clone(&link.state);
        // Whether a thread is still in a call is not known when ranks part early.
        state.undone.set();
        Ok(MpiFiles(Arc::new(Group { calls: link.calls, functions, group, state, thread })))
    }
}

impl Group {
    fn may_call(&self, call: &'static str) -> Result<(), CommError> {
        self.state.may_call(call)?;
        match self.thread {
            Some(own) if own != std::thread::current().id() => Err(one_thread(call)),
            _ => Ok(()),
        }
    }
}

impl SharedFiles for MpiFiles {
    fn open(&self, path: &Path) -> Result<Box<dyn SharedFile>, CommError> {
        let own = &self.0;
        own.may_call(OPEN)?;
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| refused(path, "a zero byte in its name"))?;
        let (group, abi) = (own.group.0, own.calls.abi);
        // SAFETY: initialized; `name` ends with a zero.
        let opened = own.calls.made(OPEN, |file| unsafe {
            (own.functions.open)(group, name.as_ptr(), abi.read_only, abi.info_null, file)
        });
        match opened {
            Ok(file) => Ok(Box::new(MpiFile { group: Arc::clone(own), file })),
            Err(CommError::Library { reason, .. }) => Err(refused(path, &reason)),
            Err(other) => Err(other),
        }
    }
}

impl SharedFile for MpiFile {
    /// At most 2 GiB a rank. Open MPI's own MPI-IO (4.1) says that it read what it was asked for, also beyond the end.
    fn read_at_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, CommError> {
        const CALL: &str = "MPI_File_read_at_all";
        let own = &self.group;
        own.may_call(CALL)?;
        let (Ok(len), Ok(offset)) = (c_int::try_from(bytes.len()), i64::try_from(offset)) else {
            return Err(CommError::Library { call: CALL, reason: "more than 2 GiB".to_owned() });
        };
        let (to, byte) = (super::calls::to(bytes), own.calls.abi.byte);
        let mut status = MpiStatus::default();
        // SAFETY: an open file; `to` holds `len` bytes, and `status` the largest MPI_Status.
        let code =
            unsafe { (own.functions.read_at_all)(self.file, offset, to, len, byte, &mut status) };
        own.calls.check(CALL, code)?;
        let mut read = 0;
        // SAFETY: `status` was filled by the call above.
        let code = unsafe { (own.functions.get_count)(&status, byte, &mut read) };
        own.calls.check("MPI_Get_count", code)?;
        usize::try_from(read).map_err(|_| CommError::Library {
            call: CALL,
            reason: "the library does not say how much it has read".to_owned(),
        })
    }

    fn close(mut self: Box<Self>) -> Result<(), CommError> {
        const CALL: &str = "MPI_File_close";
        let own = Arc::clone(&self.group);
        own.may_call(CALL)?;
        // SAFETY: an open file, which nobody uses any more.
        let code = unsafe { (own.functions.close)(&mut self.file) };
        own.calls.check(CALL, code)
    }
}

fn refused(path: &Path, reason: &str) -> CommError {
    CommError::Library { call: OPEN, reason: format!("`{}`: {reason}", path.display()) }
}
