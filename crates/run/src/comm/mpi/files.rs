//! Files that all ranks read together, by MPI-IO. The library decides which rank reads which part from the file system. A read cannot
//! be interrupted; if a rank is lost, the processes of the other ranks are aborted.

use super::abi::{Abi, Handle, MpiStatus};
use super::calls::{Calls, FileFunctions, RankGroup};
use super::link::{Link, wrong_thread};
use super::state::RankState;
use crate::comm::{CommError, SharedFile, SharedFiles};
use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

const OPEN: &str = "MPI_File_open";

/// Opens files for all ranks, with one thread of each.
pub(super) struct MpiFiles(Arc<FileGroup>);

/// A file that all ranks have open.
struct MpiFile {
    group: Arc<FileGroup>,
    file: Handle,
}

struct FileGroup {
    calls: Calls,
    functions: FileFunctions,
    ranks: RankGroup,
    state: Arc<RankState>,
    /// The only thread that may call the library, if it requires one.
    thread: Option<ThreadId>,
}

impl MpiFiles {
    pub(super) fn new(link: &Link) -> Result<Self, CommError> {
        link.begin("MPI_Comm_dup")?;
        let functions = link.calls.files.map_err(|call| CommError::Library {
            call,
            reason: "the MPI library was built without it".to_owned(),
        })?;
        let ranks = link.calls.duplicate(link.calls.world())?;
        let thread = link.thread.map(|_| std::thread::current().id());
        let state = Arc::clone(&link.state);
        // If the ranks end early, a thread may still be in a call.
        state.unfinished.set();
        Ok(MpiFiles(Arc::new(FileGroup { calls: link.calls, functions, ranks, state, thread })))
    }
}

impl FileGroup {
    fn check_call(&self, call: &'static str) -> Result<(), CommError> {
        self.state.check_call(call)?;
        match self.thread {
            Some(thread) if thread != std::thread::current().id() => Err(wrong_thread(call)),
            _ => Ok(()),
        }
    }
}

impl SharedFiles for MpiFiles {
    fn open(&self, path: &Path) -> Result<Box<dyn SharedFile>, CommError> {
        let group = &self.0;
        group.check_call(OPEN)?;
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| open_error(path, "a zero byte in its name"))?;
        let Abi { read_only, info_null, .. } = group.calls.abi;
        // SAFETY: initialized; `name` ends with a zero.
        let opened = group.calls.make_handle(OPEN, |file| unsafe {
            (group.functions.open)(group.ranks.0, name.as_ptr(), read_only, info_null, file)
        });
        match opened {
            Ok(file) => Ok(Box::new(MpiFile { group: Arc::clone(group), file })),
            Err(CommError::Library { reason, .. }) => Err(open_error(path, &reason)),
            Err(other) => Err(other),
        }
    }
}

impl SharedFile for MpiFile {
    /// Reads at most 2 GiB in each rank. Open MPI's MPI-IO (4.1) reports the requested length even beyond the end of the file.
    fn read_at_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, CommError> {
        const CALL: &str = "MPI_File_read_at_all";
        let FileGroup { calls, functions, .. } = &*self.group;
        self.group.check_call(CALL)?;
        let (Ok(len), Ok(offset)) = (c_int::try_from(bytes.len()), i64::try_from(offset)) else {
            return Err(CommError::Library { call: CALL, reason: "more than 2 GiB".to_owned() });
        };
        let target = super::calls::address_mut(bytes);
        let byte = calls.abi.byte;
        let mut status = MpiStatus::default();
        // SAFETY: an open file; `target` has `len` bytes, and `status` the size of the largest MPI_Status.
        let code =
            unsafe { (functions.read_at_all)(self.file, offset, target, len, byte, &mut status) };
        calls.check(CALL, code)?;
        let mut read_bytes = 0;
        // SAFETY: `status` was filled by the call above.
        let code = unsafe { (functions.get_count)(&status, byte, &mut read_bytes) };
        calls.check("MPI_Get_count", code)?;
        usize::try_from(read_bytes).map_err(|_| CommError::Library {
            call: CALL,
            reason: "the library does not report how much it has read".to_owned(),
        })
    }

    fn close(mut self: Box<Self>) -> Result<(), CommError> {
        const CALL: &str = "MPI_File_close";
        self.group.check_call(CALL)?;
        // SAFETY: an open file, which is not used after this.
        let code = unsafe { (self.group.functions.close)(&mut self.file) };
        self.group.calls.check(CALL, code)
    }
}

fn open_error(path: &Path, reason: &str) -> CommError {
    CommError::Library { call: OPEN, reason: format!("`{}`: {reason}", path.display()) }
}
