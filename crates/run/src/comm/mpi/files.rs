//! Files that all ranks read together, by MPI-IO: the library decides who asks the file system for which part. A read cannot be
//! interrupted; when a rank is lost, the others' processes are ended by [`super::Mpi`].

use super::abi::{Handle, Status};
use super::calls::{Calls, Group, functions};
use super::link::{Link, one_thread};
use super::watch::State;
use crate::comm::CommError;
use libloading::os::unix::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

functions! {
    FileFunctions, FILE_NAMES:
    open "MPI_File_open" (Handle, *const c_char, c_int, Handle, *mut Handle),
    read_at_all "MPI_File_read_at_all" (Handle, i64, *mut c_void, c_int, Handle, *mut Status),
    close "MPI_File_close" (*mut Handle),
    get_count "MPI_Get_count" (*const Status, Handle, *mut c_int),
}

/// A group of all ranks, one thread of each, for reading files together.
#[derive(Clone)]
pub struct MpiFiles {
    calls: Calls,
    functions: FileFunctions,
    group: Group,
    state: Arc<State>,
    /// The one thread that may call, where the library wants one.
    thread: Option<ThreadId>,
}

/// A file that all ranks have opened.
#[must_use = "all ranks have to close it"]
pub struct MpiFile {
    files: MpiFiles,
    file: Handle,
}

impl MpiFiles {
    pub(super) fn new(link: &Link) -> Result<Self, CommError> {
        link.begin("MPI_Comm_dup")?;
        let functions = link.calls.files.map_err(|call| CommError::Library {
            call,
            reason: "the MPI library was built without it".to_owned(),
        })?;
        let group = link.calls.duplicate(link.calls.world())?;
        let thread = (!link.threads).then(|| std::thread::current().id());
        let state = Arc::clone(&link.state);
        // Whether a thread is still in a call is not known when ranks part early.
        state.leave_undone();
        Ok(MpiFiles { calls: link.calls, functions, group, state, thread })
    }

    /// Open `path` for reading. Collective: all ranks name the same file.
    ///
    /// # Errors
    /// The library's, on all ranks or on some.
    pub fn open(&self, path: &Path) -> Result<MpiFile, CommError> {
        const CALL: &str = "MPI_File_open";
        self.may_call(CALL)?;
        let told = |reason: String| CommError::Library {
            call: CALL,
            reason: format!("`{}`: {reason}", path.display()),
        };
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|_| told("a zero byte in its name".to_owned()))?;
        let (group, abi) = (self.group.0, self.calls.abi);
        let mut file = 0;
        // SAFETY: initialized; `name` ends with a zero; `file` is 0 where an int handle leaves it alone.
        let code = unsafe {
            (self.functions.open)(group, name.as_ptr(), abi.read_only, abi.info_null, &mut file)
        };
        match self.calls.check(CALL, code) {
            Ok(()) => Ok(MpiFile { files: self.clone(), file }),
            Err(CommError::Library { reason, .. }) => Err(told(reason)),
            Err(other) => Err(other),
        }
    }

    fn may_call(&self, call: &'static str) -> Result<(), CommError> {
        self.state.may_call(call)?;
        let elsewhere = |own: &ThreadId| *own != std::thread::current().id();
        if self.thread.as_ref().is_some_and(elsewhere) { Err(one_thread(call)) } else { Ok(()) }
    }
}

impl MpiFile {
    /// Read from `offset` on, and say how many bytes that were. Collective: every rank asks for what it wants, which may be
    /// nothing. At most 2 GiB a rank. Ask for what is there: Open MPI's own MPI-IO (4.1) says that it read what it was asked
    /// for, also beyond the end.
    ///
    /// # Errors
    /// The library's.
    pub fn read_at_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, CommError> {
        const CALL: &str = "MPI_File_read_at_all";
        let MpiFiles { calls, functions, .. } = &self.files;
        self.files.may_call(CALL)?;
        let beyond = |_| CommError::Library { call: CALL, reason: "more than 2 GiB".to_owned() };
        let len = c_int::try_from(bytes.len()).map_err(beyond)?;
        let offset = i64::try_from(offset).map_err(beyond)?;
        let (to, byte) = (super::calls::to(bytes), calls.abi.byte);
        let mut status = Status::default();
        // SAFETY: an open file; `to` holds `len` bytes, and `status` the largest MPI_Status.
        let code =
            unsafe { (functions.read_at_all)(self.file, offset, to, len, byte, &mut status) };
        calls.check(CALL, code)?;
        let mut read = 0;
        // SAFETY: `status` was filled by the call above.
        let code = unsafe { (functions.get_count)(&status, byte, &mut read) };
        calls.check("MPI_Get_count", code)?;
        usize::try_from(read).map_err(|_| CommError::Library {
            call: CALL,
            reason: "the library does not say how much it has read".to_owned(),
        })
    }

    /// Close it. Collective.
    ///
    /// # Errors
    /// The library's.
    pub fn close(mut self) -> Result<(), CommError> {
        const CALL: &str = "MPI_File_close";
        self.files.may_call(CALL)?;
        // SAFETY: an open file, which nobody uses any more.
        let code = unsafe { (self.files.functions.close)(&mut self.file) };
        self.files.calls.check(CALL, code)
    }
}
