//! The calls of an opened library, with the signatures of MPI 3.1's C binding. All unsafe calls are here and in `files.rs`. Calls do
//! not block unless their documentation says so.

use super::abi::{Abi, Handle, MpiStatus};
use crate::comm::CommError;
use crate::functions::functions;
use libloading::os::unix::Library;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

type Request = *mut Handle;

functions! {
    Functions:
    init_thread "MPI_Init_thread" (*mut c_int, *mut c_void, c_int, *mut c_int),
    finalize "MPI_Finalize" (),
    abort "MPI_Abort" (Handle, c_int),
    comm_rank "MPI_Comm_rank" (Handle, *mut c_int),
    comm_size "MPI_Comm_size" (Handle, *mut c_int),
    comm_dup "MPI_Comm_dup" (Handle, *mut Handle),
    comm_split "MPI_Comm_split" (Handle, c_int, c_int, *mut Handle),
    comm_split_type "MPI_Comm_split_type" (Handle, c_int, c_int, Handle, *mut Handle),
    comm_set_errhandler "MPI_Comm_set_errhandler" (Handle, Handle),
    error_string "MPI_Error_string" (c_int, *mut c_char, *mut c_int),
    library_version "MPI_Get_library_version" (*mut c_char, *mut c_int),
    ibarrier "MPI_Ibarrier" (Handle, Request),
    ibcast "MPI_Ibcast" (*mut c_void, c_int, Handle, c_int, Handle, Request),
    isend "MPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, Request),
    irecv "MPI_Irecv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, Request),
    test "MPI_Test" (Request, *mut c_int, *mut MpiStatus),
}

functions! {
    FileFunctions:
    open "MPI_File_open" (Handle, *const c_char, c_int, Handle, *mut Handle),
    read_at_all "MPI_File_read_at_all" (Handle, i64, *mut c_void, c_int, Handle, *mut MpiStatus),
    close "MPI_File_close" (*mut Handle),
    get_count "MPI_Get_count" (*const MpiStatus, Handle, *mut c_int),
}

/// An opened library.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    /// Constants of the library.
    pub(super) abi: Abi,
    functions: Functions,
    /// Functions of MPI-IO. A library may be built without them; `Err` is then the name of a missing one.
    pub(super) files: Result<FileFunctions, &'static str>,
}

/// A communicator, that is, a group of processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankGroup(pub(super) Handle);

/// The other end of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageEnd {
    pub(super) group: RankGroup,
    pub(super) rank: u32,
    pub(super) tag: u32,
}

/// A pending operation. The library may access its buffers until it is done.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) call: &'static str,
    request: Handle,
}

/// Returns the address of `bytes`. The address of an empty slice may be 1, which libraries take for `MPI_IN_PLACE`, so a valid address
/// is returned instead.
fn address(bytes: &[u8]) -> *const c_void {
    static PLACEHOLDER: u64 = 0;
    if bytes.is_empty() { (&raw const PLACEHOLDER).cast() } else { bytes.as_ptr().cast() }
}

/// Returns the address of `bytes` for writing, as [`address`] does. Nothing is written to the placeholder of an empty slice.
pub(super) fn address_mut(bytes: &mut [u8]) -> *mut c_void {
    if bytes.is_empty() { address(&[]).cast_mut() } else { bytes.as_mut_ptr().cast() }
}

fn join_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Converts a length to a C int.
pub(super) fn count(bytes: usize) -> c_int {
    c_int::try_from(bytes).expect("transfers are cut to pieces that a C int can count")
}

impl Calls {
    /// Looks up the functions of `library`; `Err` names a missing one.
    pub(super) fn find(library: &Library, abi: Abi) -> Result<Self, &'static str> {
        let files = FileFunctions::find(library);
        Ok(Calls { abi, functions: Functions::find(library)?, files })
    }

    /// Initializes MPI and returns the thread level that the library grants. Blocks until the launcher answers. It may be called once
    /// in a process.
    pub(super) fn init(&self) -> Result<c_int, CommError> {
        let mut granted = 0;
        let wanted = self.abi.threads.multiple;
        // SAFETY: MPI 2 and later take null for argc and argv; `granted` outlives the call.
        let code =
            unsafe { (self.functions.init_thread)(null_mut(), null_mut(), wanted, &mut granted) };
        self.check("MPI_Init_thread", code)?;
        // SAFETY: initialized; both are predefined handles. The handler makes errors return codes instead of ending the process.
        let code =
            unsafe { (self.functions.comm_set_errhandler)(self.abi.world, self.abi.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)?;
        Ok(granted)
    }

    /// Ends MPI in this process. Blocks until all ranks do; no other call is allowed afterwards.
    pub(super) fn finalize(&self) {
        // SAFETY: initialized by `connect`; the caller makes no further calls.
        unsafe { (self.functions.finalize)() };
    }

    /// Ends the processes of all ranks. Most libraries end this process too.
    pub(super) fn abort(&self, code: c_int) {
        // SAFETY: initialized and not finalized.
        unsafe { (self.functions.abort)(self.abi.world, code) };
    }

    pub(super) fn world(&self) -> RankGroup {
        RankGroup(self.abi.world)
    }

    /// Returns this process's rank in `group` and the size of the group.
    pub(super) fn rank_and_size(&self, group: RankGroup) -> Result<(u32, u32), CommError> {
        let mut rank = 0;
        let mut size = 0;
        // SAFETY: a live communicator; the ints outlive the calls.
        let code = unsafe { (self.functions.comm_rank)(group.0, &mut rank) };
        self.check("MPI_Comm_rank", code)?;
        // SAFETY: as above.
        let code = unsafe { (self.functions.comm_size)(group.0, &mut size) };
        self.check("MPI_Comm_size", code)?;
        Ok((rank as u32, size as u32))
    }

    /// Creates a group of the same processes with separate messages. Blocks until all call it.
    pub(super) fn duplicate(&self, group: RankGroup) -> Result<RankGroup, CommError> {
        // SAFETY: a live communicator.
        let copy = self.make_handle("MPI_Comm_dup", |copy| unsafe {
            (self.functions.comm_dup)(group.0, copy)
        });
        copy.map(RankGroup)
    }

    /// Creates the group of processes that share memory with this one, in rank order. Blocks until all call it.
    pub(super) fn node_group(&self, rank: u32) -> Result<RankGroup, CommError> {
        let Abi { world, shared, info_null, .. } = self.abi;
        // SAFETY: predefined handles.
        let node = self.make_handle("MPI_Comm_split_type", |node| unsafe {
            (self.functions.comm_split_type)(world, shared, rank as c_int, info_null, node)
        });
        node.map(RankGroup)
    }

    /// Creates the group of processes that pass the same `colour`, in rank order. Blocks until all call it.
    pub(super) fn split(&self, colour: bool, rank: u32) -> Result<RankGroup, CommError> {
        // SAFETY: a predefined handle.
        let group = self.make_handle("MPI_Comm_split", |group| unsafe {
            (self.functions.comm_split)(self.abi.world, colour.into(), rank as c_int, group)
        });
        group.map(RankGroup)
    }

    /// Returns the name and version that the library reports. May be called before `init`.
    pub(super) fn version(&self) -> String {
        let text = self.text(|text, len| {
            // SAFETY: `text` holds more than any library's MPI_MAX_LIBRARY_VERSION_STRING.
            unsafe { (self.functions.library_version)(text, len) }
        });
        // Build details follow in further lines or after a comma.
        let first = text.split(['\n', ',']).next().unwrap_or_default();
        join_lines(first)
    }

    pub(super) fn start_barrier(&self, group: RankGroup) -> Result<PendingCall, CommError> {
        // SAFETY: a live communicator; the request outlives the call.
        self.start("MPI_Ibarrier", |request| unsafe { (self.functions.ibarrier)(group.0, request) })
    }

    /// Starts to copy the `bytes` of rank 0 to all ranks.
    ///
    /// # Safety
    /// `bytes` must neither move nor be accessed until the operation is done.
    pub(super) unsafe fn start_broadcast(
        &self,
        group: RankGroup,
        bytes: &mut [u8],
    ) -> Result<PendingCall, CommError> {
        let len = count(bytes.len());
        let target = address_mut(bytes);
        // SAFETY: `target` has `len` bytes and stays valid, as the caller guarantees.
        self.start("MPI_Ibcast", |request| unsafe {
            (self.functions.ibcast)(target, len, self.abi.byte, 0, group.0, request)
        })
    }

    /// Starts to send `bytes` to the other end.
    ///
    /// # Safety
    /// As for `start_broadcast`.
    pub(super) unsafe fn start_send(
        &self,
        bytes: &[u8],
        end: MessageEnd,
    ) -> Result<PendingCall, CommError> {
        // SAFETY: `bytes` stays valid, as the caller guarantees.
        self.start("MPI_Isend", |request| unsafe {
            (self.functions.isend)(
                address(bytes),
                count(bytes.len()),
                self.abi.byte,
                end.rank as c_int,
                end.tag as c_int,
                end.group.0,
                request,
            )
        })
    }

    /// Starts to receive a message of the other end into `bytes`.
    ///
    /// # Safety
    /// As for `start_broadcast`.
    pub(super) unsafe fn start_receive(
        &self,
        bytes: &mut [u8],
        end: MessageEnd,
    ) -> Result<PendingCall, CommError> {
        // SAFETY: `bytes` stays valid, as the caller guarantees.
        self.start("MPI_Irecv", |request| unsafe {
            (self.functions.irecv)(
                address_mut(bytes),
                count(bytes.len()),
                self.abi.byte,
                end.rank as c_int,
                end.tag as c_int,
                end.group.0,
                request,
            )
        })
    }

    /// Lets the library make progress and returns whether `pending` is done. Must not be called again for a finished operation.
    pub(super) fn is_done(&self, pending: &mut PendingCall) -> Result<bool, CommError> {
        let mut done = 0;
        let mut status = MpiStatus::default();
        // SAFETY: a request of this library; `status` holds its largest MPI_Status.
        let code = unsafe { (self.functions.test)(&mut pending.request, &mut done, &mut status) };
        self.check(pending.call, code)?;
        Ok(done != 0)
    }

    fn start(
        &self,
        call: &'static str,
        begin: impl FnOnce(Request) -> c_int,
    ) -> Result<PendingCall, CommError> {
        Ok(PendingCall { call, request: self.make_handle(call, begin)? })
    }

    /// Returns the handle that `make` writes. It is initialised to 0, so that the upper half is 0 for a library with int handles.
    pub(super) fn make_handle(
        &self,
        call: &'static str,
        make: impl FnOnce(*mut Handle) -> c_int,
    ) -> Result<Handle, CommError> {
        let mut handle = 0;
        let code = make(&mut handle);
        self.check(call, code)?;
        Ok(handle)
    }

    /// Turns a return code into a result. `MPI_SUCCESS` is 0 in every library.
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), CommError> {
        if code == 0 {
            return Ok(());
        }
        let text = self.text(|text, len| {
            // SAFETY: `text` holds more than any library's MPI_MAX_ERROR_STRING.
            unsafe { (self.functions.error_string)(code, text, len) }
        });
        let description = join_lines(&text);
        let reason = if description.is_empty() { format!("error {code}") } else { description };
        Err(CommError::Library { call, reason })
    }

    /// Returns the text that `write` writes, or an empty text if it fails.
    fn text(&self, write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
        let mut text = vec![0_u8; 16 << 10];
        let mut len = 0;
        if write(text.as_mut_ptr().cast(), &mut len) != 0 {
            return String::new();
        }
        text.truncate(usize::try_from(len).unwrap_or(0));
        String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned()
    }
}
